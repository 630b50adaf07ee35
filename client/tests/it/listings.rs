//! What is read from files alone: `ls`, `show`, `queue`, `inbox`, `watch list` and the bare command.

use std::time::Duration;

use minder_proto::stamp::Stamp;
use serde_json::json;

use crate::world::daemon::Reply;
use crate::world::store::{Session, at};
use crate::world::{Ran, World};

const API: &str = "5f1c2d4a-90c3-4f0e-8a17-c2b6d1e4f700";
const LEAD: &str = "3f0a91c2-7d1e-4c55-9a6b-0d5a1f2e3b4c";

fn ago(s: u64) -> Stamp {
    Stamp::now().minus(Duration::from_secs(s))
}

/// A lead and its worker, as in the first hour.
fn two() -> (World, Session, Session) {
    let world = World::new();
    let home = world.home();
    let lead = Session::new(&home, "lead", &json!({"id": LEAD, "state_at": ago(600)}));
    let mut api = Session::new(
        &home,
        "api",
        &json!({"id": API, "title": "api worker", "parent": LEAD, "state": "review", "state_by": "agent",
            "state_at": ago(540), "note": "PR 12 is up, tests green", "harness": "claude"}),
    );
    api.line(&json!({"kind": "state", "from": "idle", "to": "working", "by": "hook", "note": "do it"}));
    api.line(&json!({"kind": "state", "from": "working", "to": "review", "by": "agent",
        "note": "PR 12 is up, tests green", "text": "All tests pass.\nPR 12 is up."}));
    api.write(
        "watchers.json",
        &json!([{"watcher": LEAD, "sources": ["parent"], "since": ago(60),
        "states": minder_proto::state::StateSet::WATCH}]),
    );
    (world, lead, api)
}

fn ran(command: &mut std::process::Command) -> Ran {
    crate::world::finish(command, b"")
}

#[test]
fn a_list_and_the_bare_command_over_it() {
    let (world, ..) = two();
    let table = "STATE   AGE  SESSION  TITLE       NOTE                      HARNESS  WATCHERS\n\
                 review  9m   api      api worker  PR 12 is up, tests green  claude   1\n\
                 idle    10m  lead\n\
                 2 sessions: 1 has news for you\n";
    assert_eq!(world.run(&["ls"]).ok(), table);
    assert_eq!(world.run(&["session", "ls"]).ok(), table);
    let head = "you: ana, a person's shell                             minderd is not running\n";
    assert_eq!(world.run(&[]).ok(), format!("{head}{table}"));
    assert_eq!(world.run(&["session"]).ok(), format!("{head}{table}"));
    assert!(world.run(&["ls", "lead"]).ok().ends_with("1 session: nothing new\n"));
    world.run(&["ls", "nobody"]).failed(2);
    let none = World::new();
    assert!(
        none.run(&[]).ok().ends_with(
            "no sessions\nminder setup: finds your harnesses, shows every change, asks, installs\n"
        )
    );
    assert!(!none.home().root().exists(), "to look makes nothing");
}

#[test]
fn the_bare_command_asks_a_daemon_that_runs() {
    let (world, ..) = two();
    let started = ago(3 * 86_400);
    let daemon = world.daemon(move |_, _| {
        Reply::With(json!({"version": "9.9.9", "protocol": 1, "pid": 1, "started": started, "store": "/s",
            "socket": "/x", "sessions": 2, "corrupt": [], "waiting": 0, "held": 0, "dead": 0, "commits": 1,
            "flushes": 1, "journal_bytes": 0, "start_ms": 1, "replayed": 0,
            "you": {"kind": "session", "id": LEAD}}))
    });
    let first = world.run(&[]).ok().lines().next().unwrap().to_owned();
    assert!(first.starts_with("you: lead (3f0a91c2), idle  "), "{first}");
    assert!(first.ends_with("  minderd 9.9.9, up 3d"), "{first}");
    assert_eq!(daemon.next().method, "daemon.status");
    assert_eq!(world.run(&["--json"]).json()["daemon"]["version"], "9.9.9");
    // One that does not answer holds nothing up.
    drop(daemon);
    let _daemon = world.daemon(|_, _| Reply::Silence);
    assert!(world.run(&[]).ok().lines().next().unwrap().contains("not answering"));
}

#[test]
fn who_calls_is_told_from_the_variables() {
    let (world, _, api) = two();
    api.bind("conv-api");
    let bare = |id: &str| ran(world.command(&[]).env("CLAUDE_CODE_SESSION_ID", id));
    assert!(bare("conv-api").ok().starts_with("you: api worker (api, 5f1c2d4a), review  "));
    assert!(
        bare("unknown")
            .ok()
            .starts_with("you: a conversation of claude that is not registered (minder new)  ")
    );
    let as_api = |words: &[&str], id: &str| ran(world.command(words).env("CLAUDE_CODE_SESSION_ID", id));
    assert!(as_api(&["show"], "conv-api").ok().starts_with("api  api worker  5f1c2d4a-"));
    assert!(as_api(&["show"], "unknown").failed(3).ends_with(": minder new"));
    as_api(&["--as", "api", "show"], "unknown").failed(3);
    as_api(&["--as", "lead", "show"], "conv-api").failed(3);
    assert!(world.run(&["--as", "api", "show"]).ok().starts_with("api  "));
    world.run(&["--as", "nobody", "show"]).failed(2);
    world.run(&["show"]).failed(64);
    assert_eq!(
        as_api(&["ls", ".", "@parent", "--json"], "conv-api").json()["sessions"].as_array().unwrap().len(),
        2
    );
    world.run(&["ls", "."]).failed(64);
}

#[test]
fn what_ended_long_ago_is_counted_and_what_is_named_is_listed() {
    let world = World::new();
    let home = world.home();
    let old = |label, state| {
        let process = json!({"pid": 1, "start": 1, "boot": "b", "ended": ago(100_000)});
        Session::new(&home, label, &json!({"state": state, "process": process, "state_at": ago(100_001)}));
    };
    old("done", "done");
    old("asks", "asking");
    assert_eq!(
        world.run(&["ls"]).ok(),
        "STATE         AGE  SESSION\nasking ended  1d   asks\n\
         1 session: 1 has news for you; 1 ended over a day ago (minder ls --all)\n"
    );
    assert!(world.run(&["ls", "--all"]).ok().contains("done ended"));
    assert!(world.run(&["ls", "state:done"]).ok().contains("done ended"));
}

#[test]
fn one_bad_file_hides_nothing_else() {
    let (world, ..) = two();
    let home = world.home();
    let bad = Session::new(&home, "bad", &json!({}));
    bad.write("session.json", &json!({"half": true}));
    let ran = world.run(&["ls"]);
    assert_eq!((ran.code, ran.out.lines().count(), ran.err.lines().count()), (0, 4, 1), "{ran:?}");
    assert!(ran.err.contains("session.json"));
    assert_eq!(world.run(&["ls", "--json"]).code, 0);
    for words in [&["show", "bad"][..], &["queue", "bad"], &["ls", "bad"], &["watch", "list", "--of", "bad"]]
    {
        assert!(world.run(words).failed(65).ends_with(": minder store check"), "{words:?}");
    }
    world.run(&["show", &bad.id.short()]).failed(65);
    assert_eq!(world.run(&["show", "bad", "--json"]).error()["exit"], 65);
}

#[test]
fn a_closed_session_is_gone_and_said_to_be() {
    let (world, ..) = two();
    let line = json!({"id": "11111111-90c3-4f0e-8a17-c2b6d1e4f700", "label": "old", "title": "old", "state": "done",
        "note": "merged", "by": "agent", "at": ago(7_200)});
    std::fs::write(world.home().closed(), format!("{line}\n")).unwrap();
    let said = world.run(&["show", "old"]).failed(2).to_owned();
    assert_eq!(said, "minder: \"old\" was closed 2h ago, done: merged");
    assert_eq!(world.run(&["queue", "old", "--json"]).error()["kind"], "gone");
}

#[test]
fn show_says_all_that_is_known() {
    let (world, lead, mut api) = two();
    let id = api.message(&lead.id.to_string(), "merge it\nplease");
    api.ledger(&json!({"at": at(), "id": id, "seq": 4, "r": "held", "reason": "busy", "attempt": 1}));
    let shown = world.run(&["show", "api"]).ok().to_owned();
    for part in [
        "api  api worker  5f1c2d4a-90c3-4f0e-8a17-c2b6d1e4f700\n",
        "state     review for 9m: PR 12 is up, tests green\n",
        " (was working), declared by the session\n",
        "parent    lead (3f0a91c2)\n",
        "channel   mailbox\n",
        "watcher   lead (3f0a91c2): parent, told of every state but working\n",
        "queue     1 waiting, 1 held\n",
        &format!("  {}  queued ", id.short()),
        "held(busy)",
        "  working → review  PR 12 is up, tests green\n",
        "  message from lead: merge it\n",
        "last answer, 0s ago\n  All tests pass.\n  PR 12 is up.\n",
    ] {
        assert!(shown.contains(part), "{part:?} in\n{shown}");
    }
    let few = world.run(&["show", "api", "--timeline", "1", "--json"]).json();
    assert_eq!(few["events"].as_array().unwrap().len(), 1);
    assert_eq!(few["because"]["to"], "review");
    assert_eq!(few["waiting"][0]["id"], id.to_string());
}

#[test]
fn a_queue_and_one_message_of_it() {
    let (world, lead, mut api) = two();
    assert_eq!(world.run(&["queue", "api"]).ok(), "nothing waits for api\n");
    let id = api.message(&lead.id.to_string(), "merge it\nplease");
    api.message("operator", "and deploy");
    api.ledger(&json!({"at": at(), "id": id, "seq": 4, "r": "held", "reason": "busy", "attempt": 2}));
    let shown = world.run(&["queue", "api"]).ok().to_owned();
    let lines: Vec<&str> = shown.lines().collect();
    let words: Vec<&str> = lines[0].split_whitespace().collect();
    assert_eq!(words.join(" "), "MESSAGE FROM CLASS RECEIPT SINCE TRIES GOES ON WITH TEXT");
    let words: Vec<&str> = lines[1].split_whitespace().collect();
    let expected = format!("{} lead now held(busy) 0s 2 the end of the turn that runs merge it", id.short());
    assert_eq!(words.join(" "), expected);
    assert!(
        lines[2].contains("operator") && lines[2].contains("minder inbox take in that session"),
        "{shown}"
    );
    let one = world.run(&["queue", &id.short()]).ok().to_owned();
    assert!(one.starts_with(&format!("{}  lead to api  queued ", id.short())), "{one}");
    assert!(
        one.contains(", held(busy) ") && one.ends_with("goes on with the end of the turn that runs\n"),
        "{one}"
    );
    let json = world.run(&["queue", &id.to_string(), "--json"]).json();
    assert_eq!(json["history"].as_array().unwrap().len(), 2);
    assert_eq!(json["text"], "merge it\nplease");
    world.run(&["queue", "ffffff"]).failed(2);
    world.run(&["queue", "nobody"]).failed(2);
}

#[test]
fn an_inbox_shows_texts_and_notices_and_a_persons_is_seen_by_it() {
    let (world, mut lead, api) = two();
    lead.message(API, "which base?\n\nmain or next");
    lead.line(&json!({"kind": "message", "id": "0199c2d4-90c3-7f0e-8a17-c2b6a41be07c", "from": "minder",
        "about": {"session": API, "seq": 3, "notice": "state", "from": "working", "to": "review"}}));
    lead.ledger(&json!({"at": at(), "id": "0199c2d4-90c3-7f0e-8a17-c2b6a41be07c", "seq": 3, "r": "queued"}));
    let shown = world.run(&["--as", "lead", "inbox"]).ok().to_owned();
    let lines: Vec<&str> = shown.lines().collect();
    assert!(
        lines[0].contains("  [minder] message ")
            && lines[0].contains("from session \"api worker\" (api, 5f1c2d4a)")
    );
    assert_eq!(lines[1..5], ["", "          which base?", "", "          main or next"]);
    assert!(
        lines[5].starts_with(
            "a41be07c  [minder] watch: \"api worker\" (api, 5f1c2d4a) working → review — PR 12 is up"
        ),
        "{shown}"
    );
    assert_eq!(world.run(&["--as", "lead", "inbox", "list"]).ok(), shown);
    assert_eq!(world.run(&["--as", "api", "inbox"]).ok(), "nothing waits\n");
    assert_eq!(world.run(&["inbox"]).ok(), "nothing waits\n");

    // The person's: shown without a daemon, and told to one that runs.
    let id = Session::operator(&world.home()).message(&api.id.to_string(), "may I deploy?");
    assert!(world.run(&["inbox"]).ok().contains("may I deploy?"));
    let daemon = world.daemon(|_, params| Reply::With(json!({"id": params["id"], "receipt": "seen"})));
    assert!(world.run(&["inbox"]).ok().contains("may I deploy?"));
    let ack = daemon.next();
    assert_eq!((ack.method.as_str(), &ack.params["id"]), ("message.ack", &json!(id)));
    assert_eq!(world.shell("minder inbox >/dev/full").code, 74);
    assert_eq!(daemon.calls(), [], "what was not shown was not seen");
    ran(world.command(&["inbox"]).env("CLAUDE_CODE_SESSION_ID", "unknown")).failed(3);
}

#[test]
fn watches_are_listed_from_both_ends() {
    let (world, lead, api) = two();
    lead.bind("conv-lead");
    let all = world.run(&["watch", "list"]).ok().to_owned();
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(words(&all), "WATCHER TARGET SOURCE SINCE STATES lead api parent 1m every state but working");
    assert_eq!(world.run(&["watch", "list", "--of", "api"]).ok(), all);
    assert_eq!(world.run(&["watch", "list", "--of", "lead"]).ok(), "no watches\n");
    let own =
        ran(world.command(&["watch", "list", "--json"]).env("CLAUDE_CODE_SESSION_ID", "conv-lead")).json();
    assert_eq!((&own["rows"][0]["target"], &own["rows"][0]["gone"]), (&json!(API), &json!(false)));
    let ghost = "99999999-90c3-4f0e-8a17-c2b6d1e4f700";
    api.write(
        "watchers.json",
        &json!([{"watcher": ghost, "sources": ["manual"], "since": ago(5), "states": "done"}]),
    );
    assert!(world.run(&["watch", "list"]).ok().contains("99999999 (gone)"));
}
