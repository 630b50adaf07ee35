//! How each harness is started, and what is refused before it is.

use super::*;
use crate::turn::adapter::{ALL, by_name};

const FRESH: &str = "11111111-1111-4111-8111-111111111111";

fn plan<'a>(argv: &'a [String], input: Input<'a>, conversation: Option<&'a str>) -> Plan<'a> {
    Plan { argv, input, conversation, fresh: FRESH.parse().unwrap() }
}

fn launch(name: &str, plan: &Plan<'_>) -> Result<Launch, Fault> {
    by_name(name).unwrap().plan(plan)
}

/// How each harness is started for a new conversation, and for one that is gone on with.
#[test]
fn a_harness_is_started_as_its_program_wants_it() {
    let further = ["--model".to_owned(), "m".to_owned()];
    for (name, first, resume) in [
        (
            "claude",
            "claude -p --output-format stream-json --verbose --session-id FRESH --model m",
            "claude -p --output-format stream-json --verbose --resume ID --model m",
        ),
        ("codex", "codex exec --json --model m -", "codex exec --json --model m resume ID -"),
        (
            "opencode",
            "opencode run --format json --model m",
            "opencode run --format json --session ID --model m",
        ),
        ("pi", "pi -p --mode json --model m", "pi -p --mode json --session ID --model m"),
        (
            "gemini",
            "gemini -o stream-json --session-id FRESH --model m",
            "gemini -o stream-json --resume ID --model m",
        ),
        (
            "cursor",
            "cursor-agent -p --output-format stream-json --model m -- hello",
            "cursor-agent -p --output-format stream-json --resume ID --model m -- hello",
        ),
    ] {
        let words = |launch: &Launch| launch.argv.join(" ").replace(FRESH, "FRESH");
        let new = launch(name, &plan(&further, Input::Text("hello"), None)).unwrap();
        assert_eq!((words(&new).as_str(), &new.heal), (first, &None));
        let old = launch(name, &plan(&further, Input::Text("hello"), Some("ID"))).unwrap();
        assert_eq!(words(&old), resume);
        let healed = old.heal.map(|heal| heal.argv.join(" ").replace(FRESH, "FRESH"));
        assert!(healed.is_none_or(|healed| healed == first), "{name}");
        let by_stdin = name != "cursor";
        assert_eq!(new.stdin.as_deref(), by_stdin.then_some(b"hello".as_slice()), "{name}");
        let rules = new.rules.unwrap();
        assert!(!rules.progress.is_empty(), "{name}");
        // An answer may say that the run failed, and is not every one.
        assert!(rules.result.is_empty() || !rules.failed.is_empty(), "{name}");
        assert!(rules.failed.iter().all(|shape| !rules.result.contains(shape) || name == "codex"), "{name}");
    }
}

#[test]
fn any_program_is_run_as_it_is() {
    let argv = ["prog".to_owned(), "a b".to_owned()];
    let with = launch("command", &plan(&argv, Input::Text("in"), None)).unwrap();
    assert_eq!((with.argv, with.stdin, with.rules), (argv.to_vec(), Some(b"in".to_vec()), None));
    assert_eq!(launch("command", &plan(&argv, Input::None, None)).unwrap().stdin, None);
    let kind = |plan: &Plan<'_>| launch("command", plan).unwrap_err().kind;
    assert_eq!(kind(&plan(&[], Input::None, None)), Kind::InvalidParams);
    assert_eq!(kind(&plan(&argv, Input::None, Some("id"))), Kind::InvalidParams);
}

#[test]
fn a_prompt_that_is_an_argument_has_its_limit_and_the_error_names_it() {
    let of = |bytes: usize| launch("cursor", &plan(&[], Input::Text(&"x".repeat(bytes)), None));
    assert!(of(ARGUMENT_MAX - 1).is_ok());
    let fault = of(ARGUMENT_MAX).unwrap_err();
    assert_eq!(fault.kind, Kind::TooLarge);
    assert!(fault.message.contains("128 KiB") && fault.message.contains("131072"), "{}", fault.message);
    let long = "x".repeat(ARGUMENT_MAX);
    for adapter in ALL.iter().filter(|a| !["cursor", "command"].contains(&a.name)) {
        let launch = adapter.plan(&plan(&[], Input::Text(&long), None)).unwrap();
        assert!(launch.argv.iter().all(|arg| arg.len() < 100), "{}", adapter.name);
    }
}

#[test]
fn what_cannot_be_run_is_refused() {
    for adapter in ALL.iter().filter(|a| !a.stdout_is_reply()) {
        let kind = |input, id| adapter.plan(&plan(&[], input, id)).unwrap_err().kind;
        assert_eq!(kind(Input::None, None), Kind::InvalidParams, "{}", adapter.name);
        assert_eq!(kind(Input::Text(" \n"), None), Kind::InvalidParams);
        // An id that an option could be made of.
        for id in ["", "-p", "--dangerous"] {
            assert_eq!(kind(Input::Text("x"), Some(id)), Kind::InvalidParams, "{} {id}", adapter.name);
        }
    }
}

#[test]
fn messages_go_in_by_their_ids_where_the_harness_knows_them() {
    let ids = [MessageId::now(), MessageId::now()];
    let messages = [
        Message { id: ids[0], text: "one\nline".to_owned(), failed: 0 },
        Message { id: ids[1], text: "two".to_owned(), failed: 3 },
    ];
    let launch = |name| launch(name, &plan(&[], Input::Messages(&messages), None)).unwrap();
    let claude = launch("claude");
    assert!(claude.argv.windows(2).any(|two| two == ["--input-format", "stream-json"]));
    let stdin = String::from_utf8(claude.stdin.unwrap()).unwrap();
    let lines: Vec<serde_json::Value> = stdin.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(
        (lines[0]["uuid"].as_str(), &lines[0]["message"]["content"]),
        (Some(ids[0].to_string().as_str()), &json!("one\nline"))
    );
    // After failures under another id each time, by which it is still known here.
    let second = lines[1]["uuid"].as_str().unwrap();
    assert_ne!(second, ids[1].to_string());
    assert_eq!(inside(second, &ids), Some(ids[1]));
    assert_eq!(outside(ids[1], 3), outside(ids[1], 3));
    assert_ne!(outside(ids[1], 3), outside(ids[1], 2));
    assert_eq!(inside(FRESH, &ids), None);
    let codex = launch("codex");
    assert_eq!(codex.stdin.as_deref(), Some(b"one\nline\n\ntwo".as_slice()));
}

/// The fresh one is begun with the flag that begins, and all else as it was.
#[test]
fn i5_an_id_that_is_in_use_is_given_up_for_a_fresh_one() {
    let further = ["--model".to_owned(), "m".to_owned()];
    let launch = launch("claude", &plan(&further, Input::Text("hello"), Some("ID"))).unwrap();
    let heal = launch.heal.unwrap();
    let said = "Error: Session ID ID is already in use.";
    assert!(heal.texts.iter().any(|text| said.contains(text)), "{:?}", heal.texts);
    let argv = heal.argv.join(" ");
    assert!(
        argv.ends_with(&format!("--session-id {FRESH} --model m")) && !argv.contains("--resume"),
        "{argv}"
    );
}
