//! The rungs: asked, waited for, killed; each with its deadline, and the answer that comes in between.

use std::os::unix::net::UnixStream;
use std::time::Duration;

use minder_proto::turn::folder::{Found, SOCKET, STDERR};
use minder_proto::turn::names::{Action, TraceKind, Trigger};
use minder_tests::files;
use minder_tests::isolate::Isolated;
use minder_tests::shim::{Shim, fake, say};

use super::{LIMIT, TERM, typed};

fn rung(found: &Found, action: Action) -> Option<u64> {
    found.trace.iter().find(|t| t.action == Some(action)).map(|t| t.at_ms)
}

fn signals(shim: &Shim) -> Vec<String> {
    let lines = files::json_lines(&shim.record());
    let signals = lines.iter().filter(|line| line["what"] == "signal");
    signals.map(|line| line["signal"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn f4_who_ignores_everything_is_dead_at_the_end_of_the_grace() {
    let isolated = Isolated::new().unwrap();
    let mut spec = fake(&isolated, "ignore HUP INT TERM\nprint up\nnote up\nhang").unwrap();
    (spec.cancel_signal, spec.policy.grace_ms) = (TERM, 400);
    let mut shim = Shim::start(&isolated, spec, None).unwrap();
    shim.wait_record(LIMIT, "note").unwrap();
    shim.order(Trigger::Cancel).unwrap();
    let found = shim.result(LIMIT).unwrap();
    let (cancel, kill) = (rung(&found, Action::Cancel).unwrap(), rung(&found, Action::Kill).unwrap());
    assert!(kill >= cancel + 400, "{:?}", found.trace);
    assert_eq!((found.trigger, found.signal, found.late), (Some(Trigger::Cancel), Some(9), false));
    assert!(found.cancelled && found.killed && found.exit_observed);
    assert_eq!(found.trace.last().map(|t| t.kind), Some(TraceKind::Settled));
    assert_eq!(signals(&shim), ["TERM"]);
}

#[test]
fn f4_an_answer_after_the_signal_and_before_the_kill_is_kept() {
    let isolated = Isolated::new().unwrap();
    let script = "on TERM sleep 200ms; print the answer; exit 0\nnote up\nhang";
    let mut spec = fake(&isolated, script).unwrap();
    spec.cancel_signal = TERM;
    let mut shim = Shim::start(&isolated, spec, None).unwrap();
    shim.wait_record(LIMIT, "note").unwrap();
    shim.order(Trigger::Boundary).unwrap();
    let found = shim.result(LIMIT).unwrap();
    assert_eq!((found.trigger, found.exit_code), (Some(Trigger::Boundary), Some(0)));
    assert!(found.late && found.cancelled && !found.killed);
    assert_eq!(shim.stdout().unwrap(), b"the answer\n");
}

#[test]
fn a_second_cancel_by_whomever_kills_at_once() {
    let isolated = Isolated::new().unwrap();
    let mut spec = fake(&isolated, "ignore TERM\nnote up\nhang").unwrap();
    (spec.cancel_signal, spec.policy.grace_ms) = (TERM, 600_000);
    let mut shim = Shim::start(&isolated, spec, None).unwrap();
    shim.wait_record(LIMIT, "note").unwrap();
    shim.order(Trigger::Cancel).unwrap();
    shim.wait_record(LIMIT, "signal").unwrap();
    // Another daemon has come to it meanwhile, by the folder's socket.
    let mut other = UnixStream::connect(shim.folder().join(SOCKET)).unwrap();
    say(&mut other, Trigger::Cancel).unwrap();
    let found = shim.result(LIMIT).unwrap();
    assert!(found.killed && found.trigger == Some(Trigger::Cancel));
    assert_eq!(signals(&shim), ["TERM"]);
    // It is told too.
    let mut told = String::new();
    std::io::Read::read_to_string(&mut other, &mut told).unwrap();
    assert!(told.lines().last().unwrap().contains("settled"), "{told}");
}

#[test]
fn a_signal_to_the_shim_is_the_surroundings_and_no_cancel() {
    let isolated = Isolated::new().unwrap();
    let mut spec = fake(&isolated, "note up\nhang").unwrap();
    spec.cancel_signal = TERM;
    let mut shim = Shim::start(&isolated, spec, None).unwrap();
    shim.wait_record(LIMIT, "note").unwrap();
    shim.process().signal(rustix::process::Signal::TERM);
    let found = shim.result(LIMIT).unwrap();
    assert_eq!((found.trigger, found.signal, found.killed), (Some(Trigger::Boundary), Some(15), false));
}

#[test]
fn a_daemon_that_goes_away_changes_nothing() {
    let isolated = Isolated::new().unwrap();
    let control = isolated.root().join("c");
    let script = format!("control {}\nnote up\nwait on\nprint done\nexit 0", control.display());
    let mut shim = Shim::start(&isolated, fake(&isolated, &script).unwrap(), None).unwrap();
    shim.wait_record(LIMIT, "note").unwrap();
    shim.hang_up().unwrap();
    let mut fake = UnixStream::connect(control).unwrap();
    std::io::Write::write_all(&mut fake, b"go on\n").unwrap();
    assert!(shim.process().wait(LIMIT));
    let found = shim.found().unwrap();
    assert_eq!((found.exit_code, found.trigger), (Some(0), None));
}

#[test]
fn f12_an_answer_without_an_exit_is_reaped_after_the_grace() {
    let isolated = Isolated::new().unwrap();
    let mut spec = fake(&isolated, "ignore TERM\nprint {\"type\":\"result\",\"text\":\"42\"}\nhang").unwrap();
    (spec.rules, spec.cancel_signal, spec.policy.grace_ms) = (Some(typed()), TERM, 300);
    let mut shim = Shim::start(&isolated, spec, None).unwrap();
    let found = shim.result(LIMIT).unwrap();
    assert_eq!((found.trigger, found.result_seen, found.late, found.killed), (None, true, false, true));
    assert!(found.duration_ms >= 300 && signals(&shim).is_empty());
}

#[test]
fn a_conversation_that_is_not_known_any_more_is_begun_anew_once() {
    let isolated = Isolated::new().unwrap();
    let mut spec =
        fake(&isolated, "print {\"type\":\"result\"}\nerror No conversation found\nexit 1").unwrap();
    spec.rules = Some(typed());
    let anew = fake(&isolated, "print anew\nerror fine\nexit 0").unwrap();
    let texts = vec!["never said".to_owned(), "No conversation found".to_owned()];
    spec.heal = Some(minder_proto::turn::folder::Heal { texts, argv: anew.argv });
    let mut shim = Shim::start(&isolated, spec, None).unwrap();
    let found = shim.result(LIMIT).unwrap();
    assert_eq!((found.attempts, found.exit_code, found.result_seen), (2, Some(0), false));
    assert_eq!((found.stdout_bytes, found.stderr_bytes), (5, 5));
    assert_eq!(shim.stdout().unwrap(), b"anew\n");
    assert_eq!(std::fs::read(shim.folder().join(STDERR)).unwrap(), b"fine\n");
    assert!(shim.process().wait(Duration::from_secs(60)));
}

/// What both attempts have started is gone.
#[test]
fn i5_an_id_that_is_in_use_is_given_up_for_a_fresh_one_in_the_same_turn() {
    let isolated = Isolated::new().unwrap();
    let mut spec =
        fake(&isolated, "child : hang\nerror Error: Session ID 8a17 is already in use.\nexit 1").unwrap();
    let anew = fake(&isolated, "child : hang\nprint {\"type\":\"result\"}\nexit 0").unwrap();
    spec.rules = Some(typed());
    let texts = vec!["is already in use".to_owned()];
    spec.heal = Some(minder_proto::turn::folder::Heal { texts, argv: anew.argv });
    let mut shim = Shim::start(&isolated, spec, None).unwrap();
    let found = shim.result(LIMIT).unwrap();
    assert_eq!((found.attempts, found.exit_code, found.result_seen), (2, Some(0), true));
    assert_eq!((found.left_behind, found.survivors.len()), (2, 0), "{found:?}");
}
