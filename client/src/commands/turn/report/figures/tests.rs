//! M9: figures against a plain calculation, and the time that `--since` means.

use std::time::Duration;

use minder_proto::id::TurnId;
use serde_json::json;

use super::*;

/// A line of the log.
const PLAIN: &str = r#"{"v": 2, "ts": "", "seat": "api", "adapter": "codex", "path": "supervised", "eventType": null,
    "turnStart": "", "turnEnd": "", "durationMs": 1, "outcome": "delivered", "ok": true, "failure": null,
    "failureSource": null, "failureClass": null, "stalled": false, "cancelled": false, "killed": false,
    "exitCode": 0, "signal": null, "exitObserved": true, "childLeftRunning": false, "attempts": 1,
    "stallMs": 900000, "cancelGraceMs": 15000, "timeoutMs": 2760000, "turn": "", "session": null, "pid": 7,
    "firstOutputMs": 1, "longestSilenceMs": 0, "suspendedMs": 0, "outputBytes": 0, "events": 0, "toolCalls": 0,
    "killedProcesses": 0, "leftBehind": 0, "survivors": 0, "adopted": 0, "cpuMs": 0, "maxRssKb": 0,
    "inputTokens": null, "outputTokens": null, "cacheReadTokens": null, "cacheWriteTokens": null,
    "costUsd": null, "late": false}"#;

/// A turn that ended at `ts`.
fn turn(ts: &str, more: &serde_json::Value) -> Line {
    let mut line: serde_json::Value = serde_json::from_str(PLAIN).unwrap();
    for key in ["ts", "turnStart", "turnEnd"] {
        line[key] = json!(ts);
    }
    line["turn"] = json!(TurnId::now());
    for (key, value) in more.as_object().unwrap() {
        line[key] = value.clone();
    }
    serde_json::from_value(line).unwrap()
}

#[test]
fn m9_twenty_turns_come_to_what_a_plain_calculation_gives() {
    let ts = "2026-11-30T12:00:00.000Z";
    // Not in order, and not one like the other.
    let durations: Vec<u64> = (0..20_u64).map(|i| (i * 7 % 20 + 1) * 1_000).collect();
    let lines: Vec<Line> = (0..20)
        .map(|i| {
            let (outcome, failure, class) = match i {
                0..=11 => ("delivered", None, None),
                12..=14 => ("silent", None, None),
                15 | 16 => ("failed", Some("stall"), Some("runtime")),
                17 => ("failed", Some("adapter_exit"), Some("quota")),
                _ => ("failed", Some("adapter_exit"), Some("runtime")),
            };
            turn(ts, &json!({
                "durationMs": durations[i], "longestSilenceMs": durations[i] / 10, "outcome": outcome,
                "ok": failure.is_none(), "failure": failure, "failureClass": class, "stalled": failure == Some("stall"),
                "stallMs": if failure == Some("stall") { durations[i] / 10 } else { 2_500 },
                "costUsd": if i < 4 { Some(0.25) } else { None }, "inputTokens": if i < 5 { Some(100) } else { None },
            }))
        })
        .collect();
    let report = Report::of(&lines, None, 3);
    assert_eq!((report.turns, report.unreadable), (20, 3));
    assert_eq!(report.outcomes, [(Outcome::Delivered, 12), (Outcome::Failed, 5), (Outcome::Silent, 3)]);
    assert_eq!(
        report.failures,
        [
            (
                Failure::AdapterExit,
                Failed { turns: 3, classes: vec![(Class::Runtime, 2), (Class::Quota, 1)] }
            ),
            (Failure::Stall, Failed { turns: 2, classes: vec![(Class::Runtime, 2)] }),
        ]
    );
    // 1 s to 20 s, each once: the tenth, the eighteenth, the twentieth.
    let codex = &report.adapters[0];
    let d = codex.duration;
    assert_eq!((d.p50, d.p90, d.p99, d.longest), (10_000, 18_000, 20_000, 20_000));
    assert_eq!((d.window, d.reached, d.nearest), (2_760_000, 0, Some(2_740_000)));
    let s = codex.silence;
    assert_eq!((s.p50, s.p90, s.p99, s.longest), (1_000, 1_800, 2_000, 2_000));
    let left = (0..20).filter(|i| ![15, 16].contains(i)).map(|i| 2_500 - durations[i] / 10).min();
    assert_eq!((s.reached, s.nearest), (2, left));
    let u = report.usage;
    assert_eq!((u.with_cost, u.with_tokens, u.input_tokens), (4, 5, 500));
    assert!((u.cost_usd - 1.0).abs() < 1e-9);
}

/// A turn that was ended at its budget came to its limit, though the wall clock lies a minute behind that.
#[test]
fn a_turn_that_ended_at_its_budget_reached_its_limit() {
    let ts = "2026-11-30T12:00:00.000Z";
    let well = turn(ts, &json!({"durationMs": 60_000}));
    let ended = json!({"durationMs": 2_700_040, "outcome": "failed", "ok": false, "failure": "adapter_timeout",
        "failureClass": "runtime"});
    let report = Report::of(&[well, turn(ts, &ended)], None, 0);
    let duration = report.adapters[0].duration;
    assert_eq!((duration.window, duration.reached, duration.nearest), (2_760_000, 1, Some(2_700_000)));
}

#[test]
fn nearest_ranks_are_values_that_were_there() {
    for (values, ranks) in [
        (&[7][..], [7, 7, 7]),
        (&[1, 2], [1, 2, 2]),
        (&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10], [5, 9, 10]),
        (&[15, 20, 35, 40, 50], [35, 50, 50]),
    ] {
        assert_eq!([50, 90, 99].map(|p| rank(values, p)), ranks, "{values:?}");
    }
    let hundred: Vec<u64> = (1..=1_000).collect();
    assert_eq!([50, 90, 99].map(|p| rank(&hundred, p)), [500, 900, 990]);
}

/// A duration into the past is so many milliseconds, whatever a calendar has in between.
#[test]
fn m9_since_is_a_span_over_weeks_clock_changes_and_leap_days() {
    for (now, age, inside, outside) in [
        // Monday at midnight in UTC.
        ("2026-11-30T00:00:00.000Z", "7d", "2026-11-23T00:00:00.000Z", "2026-11-22T23:59:59.999Z"),
        ("2026-11-30T00:00:01.000Z", "1s", "2026-11-30T00:00:00.000Z", "2026-11-29T23:59:59.999Z"),
        // Clocks in Europe go back on 2026-10-25 and forward on 2026-03-29.
        ("2026-10-25T12:00:00.000Z", "1d", "2026-10-24T12:00:00.000Z", "2026-10-24T11:59:59.999Z"),
        ("2026-03-29T12:00:00.000Z", "24h", "2026-03-28T12:00:00.000Z", "2026-03-28T11:59:59.999Z"),
        // A leap day.
        ("2028-03-01T00:00:00.000Z", "1d", "2028-02-29T00:00:00.000Z", "2028-02-28T23:59:59.999Z"),
        ("2028-03-01T00:00:00.000Z", "2d", "2028-02-28T00:00:00.000Z", "2028-02-27T23:59:59.999Z"),
    ] {
        let age: Duration = minder_proto::stamp::parse_duration(age).unwrap();
        let since = now.parse::<Stamp>().unwrap().minus(age);
        let lines = [turn(inside, &json!({})), turn(outside, &json!({})), turn(now, &json!({}))];
        let report = Report::of(&lines, Some(since), 0);
        assert_eq!((report.turns, report.from), (2, Some(inside.parse().unwrap())), "{now}");
    }
}
