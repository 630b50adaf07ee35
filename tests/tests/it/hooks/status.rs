//! What no hook tells and Claude Code's file of a process does: a compaction that was broken off, a dialog that was
//! answered with something else.

use std::path::PathBuf;

use minder_proto::event::Receipt;
use minder_proto::stamp::Stamp;
use minder_proto::state::State;
use rustix::process::Signal;
use serde_json::json;

use super::bench::Bench;
use crate::scene::LIMIT;

fn folder(bench: &Bench) -> PathBuf {
    let folder = bench.scene.isolated.home().join(".claude/sessions");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// The harness says this from now on.
fn says(bench: &Bench, status: &str) {
    let at = Stamp::now().as_millis() + 1;
    let file = folder(bench).join(format!("{}.json", bench.host.pid()));
    let text = json!({"pid": bench.host.pid(), "status": status, "updatedAt": at, "statusUpdatedAt": at});
    std::fs::write(file, text.to_string()).unwrap();
}

#[test]
fn a_compaction_that_is_broken_off_is_over_and_what_waited_is_given() {
    let mut bench = Bench::new("");
    says(&bench, "idle");
    let id = bench.begin();
    // The folder of another installation is in its place by now.
    std::fs::remove_dir_all(folder(&bench)).unwrap();
    says(&bench, "busy");
    let waiter = bench.wait("SessionStart");
    bench.quietly("PreCompact");
    let sent = bench.send(id, &["after it"]);
    assert_eq!(bench.scene.wait_receipt(id, sent, Receipt::Held).reason.as_deref(), Some("compacting"));
    says(&bench, "idle");
    let woken = waiter.wait(LIMIT).unwrap();
    assert!(woken.stderr.contains("after it"), "{woken:?}");

    // In a turn it ends the turn.
    for name in ["UserPromptSubmit", "PreCompact"] {
        bench.tell(&bench.of_turn(name, "turn-2"));
    }
    says(&bench, "idle");
    let (_, over) = bench.scene.wait_move(id, 0, State::Idle);
    assert_eq!(over.note.as_deref(), Some("interrupted"));
    assert!(!bench.scene.record(id).compacting);
}

#[test]
fn a_dialog_is_answered_where_the_harness_works_again() {
    let mut bench = Bench::new("");
    says(&bench, "busy");
    let id = bench.begin();
    for name in ["UserPromptSubmit", "PermissionRequest"] {
        bench.quietly(name);
    }
    for status in ["waiting", "busy"] {
        says(&bench, status);
    }
    bench.scene.wait_record(id, "the answer", |r| r.state == State::Working);
    assert_eq!(bench.scene.record(id).turn.and_then(|turn| turn.dialog), None);
}

#[test]
fn what_was_missed_because_too_much_happened_is_looked_for() {
    let mut bench = Bench::new("");
    says(&bench, "busy");
    let id = bench.begin();
    bench.quietly("UserPromptSubmit");
    let most: usize =
        std::fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap().trim().parse().unwrap();
    let daemon = bench.scene.isolated.daemon().unwrap();
    assert!(daemon.signal(Signal::STOP));
    // Two by turns: what follows on its like is counted once.
    let others = ["a", "b"].map(|name| std::fs::File::create(folder(&bench).join(name)).unwrap());
    for at in 0..=most as u64 {
        others.iter().for_each(|file| file.set_len(at).unwrap());
    }
    says(&bench, "idle");
    assert!(daemon.signal(Signal::CONT));
    let (_, over) = bench.scene.wait_move(id, 0, State::Idle);
    assert_eq!(over.note.as_deref(), Some("interrupted"));
}
