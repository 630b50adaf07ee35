//! Runs without a harness: where a reason stands, what counts once, what is no end.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use minder_proto::turn::line::Usage;
use serde_json::json;

use super::*;
use crate::turn::adapter::by_name;

fn spec(adapter: &str) -> Spec {
    serde_json::from_value(json!({
        "turn": "01a22d70-0000-7000-8000-00000000000f", "seat": "s", "adapter": adapter, "purpose": {"for": "caller"},
        "asked": "2026-11-30T17:00:00Z", "boot": "b", "argv": [adapter], "dir": "/", "budget_signal": 15,
        "policy": {"budget_ms": 1, "stall_ms": 0, "stall_in_tool_ms": 0, "grace_ms": 1, "backstop_ms": 1,
            "exit_wait_ms": 1, "output_max": 8},
    }))
    .unwrap()
}

fn exited(code: i32) -> Found {
    Found { exit_observed: true, exit_code: Some(code), attempts: 1, ..Found::default() }
}

fn read(adapter: &str, found: &Found, stdout: &str, stderr: &str) -> Judged {
    let found = Found { stdout_bytes: stdout.len() as u64, ..found.clone() };
    let now = ZonedDateTime::new("2026-11-30T17:00:00Z".parse::<Timestamp>().unwrap(), TimeZone::UTC);
    let output = Output { head: stdout.as_bytes(), tail: b"", stderr: stderr.as_bytes() };
    judge(by_name(adapter).unwrap(), &spec(adapter), &found, &output, &now)
}

const LIMIT: &str = "You've hit your weekly limit · resets 9pm";

#[test]
fn m3_the_reason_counts_wherever_it_was_printed() {
    let record =
        json!({"type": "result", "subtype": "success", "is_error": true, "result": LIMIT}).to_string();
    for (adapter, code, stdout, stderr) in [
        ("command", 1, LIMIT, ""),
        ("command", 1, "", LIMIT),
        ("command", 0, LIMIT, ""),
        ("command", 0, "", LIMIT),
        ("command", 1, "half an answer", LIMIT),
        ("claude", 0, record.as_str(), ""),
        ("claude", 1, record.as_str(), ""),
        ("claude", 1, "", LIMIT),
        ("codex", 0, "", LIMIT),
    ] {
        let judged = read(adapter, &exited(code), stdout, stderr);
        let place = format!("{adapter} {code} {stdout:?} {stderr:?}");
        assert_eq!(judged.failure, Some(Failure::UpstreamRefused), "{place}");
        assert_eq!(judged.class, Some(Class::Quota), "{place}");
        assert_eq!(judged.why.as_deref(), Some(LIMIT), "{place}");
        let reset = Some("2026-11-30T21:00:00Z".parse().unwrap());
        assert_eq!(judged.limit, Some(Limit { reset }), "{place}");
        assert!(!judged.silent, "{place}");
    }
}

#[test]
fn m3_empty_answered_and_refused_are_three_things() {
    let of = |stdout: &str, stderr: &str| {
        let judged = read("command", &exited(0), stdout, stderr);
        (judged.failure.is_some(), judged.silent)
    };
    assert_eq!(of("", "a note about nothing"), (false, true));
    assert_eq!(of(" NO_REPLY\n", ""), (false, true));
    assert_eq!(of("an answer", "Rate limit exceeded"), (false, false));
    assert_eq!(of("", LIMIT), (true, false));
    // An answer about a refusal is an answer.
    assert_eq!(of(&format!("The log says:\n{LIMIT}\n"), ""), (false, false));
    assert_eq!(of("The server answered 503 Service Unavailable.", ""), (false, false));
}

#[test]
fn m4_prose_in_an_ordinary_failure_sets_no_class() {
    for text in [
        "Line 403 of file is wrong",
        "used 500 tokens",
        "see the billing page",
        "the tool said \"timed out after 30ms\"",
        "waiting for capacity",
    ] {
        for (stdout, stderr) in [(text, ""), ("", text)] {
            let judged = read("command", &exited(3), stdout, stderr);
            assert_eq!(judged.failure, Some(Failure::AdapterExit), "{text}");
            assert_eq!(
                (judged.class, judged.limit, judged.login),
                (Some(Class::Runtime), None, false),
                "{text}"
            );
            assert_eq!(judged.why.as_deref(), Some(text));
        }
    }
}

#[test]
fn m1_what_was_used_counts_once() {
    let row = |id: &str| {
        json!({"type": "assistant", "message": {"id": id, "content": [{"type": "text", "text": "x"}],
            "usage": {"input_tokens": 10, "output_tokens": 2, "cache_read_input_tokens": 100}}})
        .to_string()
    };
    let four = [row("a"), row("a"), row("a"), row("a"), row("b")].join("\n");
    let once = Usage {
        input_tokens: Some(20),
        output_tokens: Some(4),
        cache_read_tokens: Some(200),
        ..Usage::default()
    };
    assert_eq!(read("claude", &exited(143), &four, "").usage, once);
    // The result record has the totals, whatever stands in other rows: of this turn, not of the conversation.
    let result =
        json!({"type": "result", "is_error": false, "result": "x", "uuid": "r", "total_cost_usd": 9.0,
        "usage": {"input_tokens": 30, "output_tokens": 5, "cache_read_input_tokens": 7},
        "modelUsage": {"m": {"inputTokens": 900, "outputTokens": 90, "costUSD": 9.0}}})
        .to_string();
    let totals = Usage {
        input_tokens: Some(30),
        output_tokens: Some(5),
        cache_read_tokens: Some(7),
        ..Usage::default()
    };
    let judged = read("claude", &exited(0), &format!("{four}\n{result}\n{result}"), "");
    assert_eq!((judged.failure, judged.usage), (None, totals));
    let cached = json!({"type": "turn.completed", "usage": {"input_tokens": 100, "cached_input_tokens": 80, "output_tokens": 1}});
    let usage = read("codex", &exited(0), &cached.to_string(), "").usage;
    assert_eq!((usage.input_tokens, usage.cache_read_tokens), (Some(20), Some(80)));
}

#[test]
fn an_end_that_goes_on_is_no_end() {
    let well = json!({"type": "result", "is_error": false, "result": "one"}).to_string();
    let init = json!({"type": "system", "subtype": "init", "session_id": "s"}).to_string();
    assert_eq!(read("claude", &exited(0), &well, "").failure, None);
    // The answer is there; how the process went down after it is of no account.
    let killed =
        Found { exit_observed: true, signal: Some(9), killed: true, attempts: 1, ..Found::default() };
    assert_eq!(read("claude", &killed, &well, "").failure, None);
    let went_on = format!("{well}\n{init}\n");
    assert_eq!(read("claude", &exited(1), &went_on, "").failure, Some(Failure::AdapterExit));
    let judged = read("claude", &exited(0), &went_on, "");
    assert_eq!(judged.failure, Some(Failure::AdapterError));
    assert_eq!(judged.why.as_deref(), Some("ended without a result"));
}

#[test]
fn what_cannot_be_understood_is_said_to_be_so() {
    for stdout in ["", "plain words", "{\"type\":\"else\"}", "[1]\nnull\n{broken", "\u{0}\u{1b}[31m"] {
        let judged = read("claude", &exited(0), stdout, "");
        assert_eq!(
            (judged.failure, judged.class),
            (Some(Failure::AdapterError), Some(Class::Runtime)),
            "{stdout}"
        );
        assert!(!judged.silent && judged.text.is_none());
    }
}

#[test]
fn a_run_that_somebody_else_ended_has_a_class_too() {
    let retry =
        json!({"type": "system", "subtype": "api_retry", "error_status": 529, "error": "server_error"});
    let found = Found { trigger: Some(Trigger::Stall), killed: true, ..exited(143) };
    assert_eq!(read("claude", &found, &retry.to_string(), "").class, Some(Class::Unavailable));
    assert_eq!(read("claude", &found, "", "").class, Some(Class::Runtime));
    let budget = Found { trigger: Some(Trigger::Budget), signal: Some(15), exit_code: None, ..exited(0) };
    assert_eq!(read("command", &budget, "", "").failure, Some(Failure::AdapterTimeout));
}

#[test]
fn the_line_for_people_is_one_line_and_acts_on_no_terminal() {
    let long = format!("\u{1b}[31merror: {}\u{7}\nmore", "x".repeat(1_000));
    let why = read("command", &exited(1), "", &long).why.unwrap();
    assert!(why.starts_with("error: x") && why.ends_with('…') && why.chars().count() == WHY_MAX + 1, "{why}");
    assert_eq!(read("command", &exited(7), "", "").why.as_deref(), Some("ended with code 7"));
}
