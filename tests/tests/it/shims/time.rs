//! Windows: silence, the budget, the wall.

use minder_proto::turn::folder::Found;
use minder_proto::turn::names::{Action, TraceKind, Trigger};
use minder_tests::files;
use minder_tests::isolate::Isolated;
use minder_tests::shim::{Shim, fake};

use super::{LIMIT, TERM, typed};

fn at(found: &Found, kind: TraceKind) -> Vec<u64> {
    found.trace.iter().filter(|t| t.kind == kind).map(|t| t.at_ms).collect()
}

#[test]
fn g1_a_long_tool_is_no_stall() {
    let isolated = Isolated::new().unwrap();
    let script =
        "print {\"type\":\"call\",\"id\":\"a\"}\nsleep 4s\nprint {\"type\":\"done\",\"id\":\"a\"}\nhang";
    let mut spec = fake(&isolated, script).unwrap();
    (spec.rules, spec.policy.stall_ms) = (Some(typed()), 1_500);
    let found = Shim::start(&isolated, spec, None).unwrap().result(LIMIT).unwrap();
    assert_eq!((found.trigger, found.tool_calls, found.stalled), (Some(Trigger::Stall), 1, true));
    assert!(at(&found, TraceKind::Stalled)[0] >= 5_500, "{:?}", found.trace);
    // The wall ends even an open tool.
    let mut spec = fake(&isolated, "ignore TERM\nprint {\"type\":\"call\",\"id\":\"a\"}\nhang").unwrap();
    (spec.rules, spec.policy.stall_ms) = (Some(typed()), 1_500);
    (spec.policy.budget_ms, spec.policy.backstop_ms) = (2_000, 500);
    let found = Shim::start(&isolated, spec, None).unwrap().result(LIMIT).unwrap();
    assert_eq!((found.trigger, found.killed, found.stalled), (Some(Trigger::WallClock), true, false));
}

/// Only what an adapter lists is progress: neither a line of another type nor anything on standard error.
#[test]
fn g2_noise_is_no_progress() {
    let isolated = Isolated::new().unwrap();
    let script =
        "print {\"type\":\"text\"}\nrepeat forever 100ms print {\"type\":\"heartbeat\"}; error retrying";
    let mut spec = fake(&isolated, script).unwrap();
    (spec.rules, spec.policy.stall_ms) = (Some(typed()), 1_500);
    let mut shim = Shim::start(&isolated, spec, None).unwrap();
    let found = shim.result(LIMIT).unwrap();
    assert_eq!((found.trigger, found.events), (Some(Trigger::Stall), 1));
    assert!(found.stdout_bytes > 100 && found.stderr_bytes > 50 && found.longest_silence_ms >= 1_500);
    // Where the adapter says that standard error counts, it does.
    let mut spec = fake(&isolated, "repeat 30 100ms error working\nexit 0").unwrap();
    (spec.stderr_is_progress, spec.policy.stall_ms) = (true, 2_000);
    let found = Shim::start(&isolated, spec, None).unwrap().result(LIMIT).unwrap();
    assert_eq!((found.trigger, found.exit_code), (None, Some(0)));
}

#[test]
fn g3_on_time_and_once() {
    let isolated = Isolated::new().unwrap();
    let mut spec = fake(&isolated, "ignore TERM\nprint up\nhang").unwrap();
    (spec.policy.stall_ms, spec.policy.grace_ms, spec.cancel_signal) = (2_000, 3_000, TERM);
    let mut shim = Shim::start(&isolated, spec, None).unwrap();
    let found = shim.result(LIMIT).unwrap();
    assert_eq!(found.trigger, Some(Trigger::Stall));
    assert_eq!(at(&found, TraceKind::Stalled).len(), 1);
    let cancel = found.trace.iter().find(|t| t.action == Some(Action::Cancel)).unwrap().at_ms;
    let silence = cancel - found.first_output_ms.unwrap();
    assert!((2_000..3_000).contains(&silence) && found.longest_silence_ms >= 2_000, "{silence}");
    let lines = files::json_lines(&shim.record());
    assert_eq!(lines.iter().filter(|line| line["what"] == "signal").count(), 1);
}

#[test]
fn g6_a_limit_is_announced_and_has_a_name_of_its_own() {
    let isolated = Isolated::new().unwrap();
    let mut spec = fake(&isolated, "on TERM exit 124\nshow\nhang").unwrap();
    (spec.policy.budget_ms, spec.policy.stall_ms) = (3_000, 600_000);
    let mut shim = Shim::start(&isolated, spec, None).unwrap();
    let found = shim.result(LIMIT).unwrap();
    assert_eq!((found.trigger, found.exit_code, found.killed), (Some(Trigger::Budget), Some(124), false));
    let shown = shim.wait_record(LIMIT, "shown").unwrap();
    let told = &shown["environment"];
    assert_eq!(told["MINDER_TURN"], shim.spec().turn.to_string());
    assert_eq!(told["MINDER_TURN_STALL_MS"], "600000");
    let deadline: minder_proto::stamp::Stamp =
        told["MINDER_TURN_DEADLINE"].as_str().unwrap().parse().unwrap();
    assert_eq!(deadline.as_millis() - found.started.unwrap().as_millis(), 3_000);
    // Without a window none is told; who does not listen has the wall.
    let mut spec = fake(&isolated, "ignore TERM\nshow\nhang").unwrap();
    (spec.policy.budget_ms, spec.policy.backstop_ms) = (2_000, 500);
    let mut shim = Shim::start(&isolated, spec, None).unwrap();
    let found = shim.result(LIMIT).unwrap();
    assert_eq!((found.trigger, found.killed, found.signal), (Some(Trigger::WallClock), true, Some(9)));
    assert!(shim.wait_record(LIMIT, "shown").unwrap()["environment"]["MINDER_TURN_STALL_MS"].is_null());
}
