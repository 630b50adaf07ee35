//! Handed is not seen: only what the harness shows of what its model was given is evidence, whenever it shows it.

use minder_proto::event::Receipt;
use minder_proto::state::State;
use serde_json::json;

use super::bench::{Bench, is_silent};
use super::rig::{CODEX, Rig};

#[test]
fn c3_of_twenty_hooks_at_once_one_is_given_the_message() {
    let mut bench = Bench::new("");
    let id = bench.begin();
    bench.quietly("UserPromptSubmit");
    let sent = bench.send(id, &["only to one"]);
    let call = bench.call(&bench.payload("PostToolUse"), false);
    let pending: Vec<_> = (0..20).map(|_| bench.host.begin(call.clone()).unwrap()).collect();
    let answers = pending.iter().map(|hook| hook.wait(crate::scene::LIMIT).unwrap());
    let (given, silent): (Vec<_>, Vec<_>) = answers.partition(|answer| answer.stdout.contains("only to one"));
    assert_eq!(given.len(), 1, "{given:?}");
    assert!(silent.iter().all(is_silent), "{silent:?}");
    let handed = bench.scene.receipts(id, sent).iter().filter(|l| l.r == Receipt::Handed).count();
    assert_eq!(handed, 1, "{}", bench.scene.road(id, sent));
}

#[test]
fn c4_what_a_harness_takes_and_drops_is_given_again_and_never_counts_as_seen() {
    let mut bench = Bench::new("delivery.evidence_timeout = \"1s\"");
    let id = bench.begin();
    bench.quietly("UserPromptSubmit");
    let sent = bench.send(id, &["take this"]);
    let first = bench.tell(&bench.payload("PostToolUse"));
    assert!(first.stdout.contains("take this"), "{first:?}");
    // That a hook printed it is no proof, nor is that somebody prints it.
    bench.quietly("PostToolUse");
    bench.quietly("Stop");
    bench.scene.wait(id, "its return", || {
        let receipts = bench.scene.receipts(id, sent);
        let back = receipts.iter().skip_while(|l| l.r != Receipt::Handed).find(|l| l.r == Receipt::Queued);
        back.map(drop)
    });
    let again = bench.tell(&bench.of_turn("UserPromptSubmit", "turn-2"));
    assert!(again.stdout.contains("take this"), "{again:?}");
    assert!(again.stdout.contains(&sent.short()), "under the same id");
    let attempts: Vec<u32> =
        bench.scene.receipts(id, sent).iter().filter(|l| l.r == Receipt::Handed).map(|l| l.attempt).collect();
    assert_eq!(attempts, [1, 2]);

    bench.shown(&again.stdout);
    bench.reaches(id, sent, Receipt::Seen);
    let road = bench.scene.road(id, sent);
    assert_eq!(road.matches("seen").count(), 1, "{road}");
    assert!(is_silent(&bench.tell(&bench.of_turn("PostToolUse", "turn-2"))));
}

#[test]
fn c5_one_body_however_often_the_hook_runs() {
    let mut bench = Bench::new("");
    let id = bench.begin();
    let waiter = bench.wait("SessionStart");
    bench.quietly("UserPromptSubmit");
    bench.send(id, &["only once"]);
    let answers: Vec<_> = (0..4).map(|_| bench.tell(&bench.payload("PostToolUse"))).collect();
    assert_eq!(answers[0].stdout.matches("only once").count(), 1, "{answers:?}");
    assert!(answers[1..].iter().all(is_silent), "{answers:?}");
    bench.quietly("Stop");
    assert!(waiter.runs(), "it has nothing to bring");
}

/// A transcript's lines come some moments after the fact; a turn can be over by then.
#[test]
fn evidence_that_comes_after_the_end_of_a_turn_answers_what_was_given_in_it() {
    let mut bench = Bench::new("");
    let id = bench.begin();
    bench.quietly("UserPromptSubmit");
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| bench.scene.minder(&["send", "p", "--wait", "which one?"]));
        let sent = bench.scene.wait(id, "the message", || bench.scene.messages(id).first().map(|m| m.id));
        let call = bench.call(&bench.payload("PostToolUse"), false);
        let given = bench.host.call(call).unwrap();
        assert!(given.stdout.contains("which one?"), "{given:?}");
        let mut stop = bench.payload("Stop");
        stop["last_assistant_message"] = "The red one.\nSurely.".into();
        let call = bench.call(&stop, false);
        assert!(is_silent(&bench.host.call(call).unwrap()));
        assert_eq!(bench.scene.receipts(id, sent).last().unwrap().r, Receipt::Handed);

        bench.shown(&given.stdout);
        let asked = asking.join().unwrap();
        assert_eq!((asked.code, asked.stdout.as_str()), (0, "The red one.\nSurely.\n"), "{asked:?}");
        let end = bench.scene.moves(id).last().unwrap().0;
        let receipts = bench.scene.receipts(id, sent);
        let last = receipts.last().unwrap();
        assert_eq!((last.r, last.reason.clone()), (Receipt::Answered, Some(format!("turn {end}"))));
    });
}

#[test]
fn c7_what_a_turn_did_not_take_is_given_in_the_next() {
    let mut bench = Bench::new("delivery.evidence_timeout = \"1s\"");
    let id = bench.begin();
    bench.quietly("UserPromptSubmit");
    let sent = bench.send(id, &["not lost"]);
    // The turn would end, is given the text, and is interrupted: its conversation ends.
    let blocked = bench.tell(&bench.payload("Stop"));
    assert!(blocked.code == Some(2) && blocked.stderr.contains("not lost"), "{blocked:?}");
    bench.quietly("SessionEnd");
    bench.quietly("SessionStart");
    let answer = bench.tell(&bench.of_turn("UserPromptSubmit", "turn-2"));
    assert!(answer.stdout.contains("not lost") && answer.stdout.contains(&sent.short()), "{answer:?}");
}

#[test]
fn c7_what_comes_during_a_compaction_is_given_after_it_in_order() {
    let mut bench = Bench::new("");
    let id = bench.begin();
    let waiter = bench.wait("SessionStart");
    bench.quietly("PreCompact");
    let (one, two) = (bench.send(id, &["the first"]), bench.send(id, &["the second"]));
    for sent in [one, two] {
        bench.reaches(id, sent, Receipt::Held);
        assert_eq!(bench.scene.road(id, sent), "queued, held(compacting)");
    }
    assert!(waiter.runs());
    bench.quietly("SessionStart-compact");
    bench.quietly("PostCompact");
    let woken = waiter.wait(crate::scene::LIMIT).unwrap();
    let places = ["the first", "the second"].map(|text| woken.stderr.find(text).unwrap());
    assert!(woken.code == Some(2) && places[0] < places[1], "{woken:?}");
    assert_eq!(bench.scene.records().len(), 1);
}

/// A channel that types or sends holds what nobody saw taken. It may have been taken all the same: by a person's Enter, or
/// in a moment in which its server's answer was not there yet.
#[test]
fn what_is_held_and_was_taken_is_recognised_in_the_prompt_and_not_given_again() {
    for (channel, option) in [("tmux", "--pane"), ("codex", "--socket")] {
        for (rest, last) in [("Text: a text", "seen(prompt)"), ("Read it: minder inbox list", "pointer-seen")]
        {
            let mut rig = Rig::new(CODEX, "");
            let id = rig.begin();
            let nobody = rig.scene.isolated.root().join("nobody").display().to_string();
            let place = if channel == "tmux" { format!("{nobody}:%0") } else { nobody };
            rig.scene.minder(&["set", "p", "--channel", channel, option, &place]).ok();
            let sent = rig.send(id, "a text");
            let held = rig.scene.wait_receipt(id, sent, Receipt::Held);
            assert_eq!(held.channel.as_deref(), Some(channel));
            let short = sent.short();
            let pointer = if last == "pointer-seen" {
                format!("; then: minder inbox ack {short}")
            } else {
                String::new()
            };
            let mut taken = rig.payload("UserPromptSubmit");
            taken["prompt"] =
                format!("[minder] message {short} from your user, sent with minder. {rest}{pointer}").into();
            let answer = rig.tell(&taken);
            assert!(is_silent(&answer), "{channel}: {answer:?}");
            let settled = rig.scene.receipts(id, sent).pop().unwrap();
            let said = settled.reason.unwrap_or_default();
            let now = if settled.r == Receipt::Seen { format!("seen({said})") } else { said };
            assert_eq!(now, last, "{channel}");
            let (_, working) = rig.scene.moves(id).pop().unwrap();
            assert_eq!((working.to, working.cause), (State::Working, Some(sent)), "{channel}");
        }
    }
}

/// Calls run beside each other: one that ends is not the one that is asked about.
#[test]
fn nothing_is_given_at_the_end_of_another_call_while_a_dialog_is_open() {
    let mut bench = Bench::new("");
    let id = bench.begin();
    for name in ["UserPromptSubmit", "PermissionRequest"] {
        bench.quietly(name);
    }
    let sent = bench.send(id, &["not into the dialog"]);
    bench.reaches(id, sent, Receipt::Held);
    let mut other = bench.payload("PostToolUse");
    other["tool_name"] = "Read".into();
    other["tool_input"] = json!({"file_path": "/etc/hosts"});
    let answer = bench.tell(&other);
    assert!(is_silent(&answer), "{answer:?}");
    assert_eq!(bench.scene.record(id).state, State::Asking);
    let asked = bench.payload("PermissionRequest");
    let mut done = bench.payload("PostToolUse");
    done["prompt_id"] = asked["prompt_id"].clone();
    done["tool_name"] = asked["tool_name"].clone();
    done["tool_input"] = asked["tool_input"].clone();
    let answer = bench.tell(&done);
    assert!(answer.stdout.contains("not into the dialog"), "{answer:?}");
    assert_eq!(bench.scene.record(id).state, State::Working);
}
