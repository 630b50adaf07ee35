//! A further process of a session goes on with its own conversation, by exact id.

use minder_proto::event::Receipt;
use minder_proto::id::SessionId;
use minder_proto::state::State;

use super::stage::Stage;
use crate::scene::LIMIT;

/// A session that has had a turn.
fn with_a_turn(stage: &Stage, label: &str) -> SessionId {
    let id = stage.launched(label, &["--harness", "claude", "hello"]);
    let message = stage.scene.messages(id).remove(0);
    stage.scene.wait_receipt(id, message.id, Receipt::Answered);
    id
}

fn end(stage: &Stage, id: SessionId) {
    assert!(stage.process(id).end(LIMIT));
    stage.scene.wait_record(id, "its end", |r| r.process.as_ref().is_some_and(|p| p.ended.is_some()));
}

#[test]
fn i1_two_sessions_of_one_folder_go_on_each_with_its_own_conversation() {
    let stage = Stage::new();
    let scene = &stage.scene;
    let both = ["one", "two"].map(|label| with_a_turn(&stage, label));
    let ids = both.map(|id| scene.record(id).bindings[0].id.clone());
    let running = stage.minder_with(&[], &["relaunch", "one"], "");
    assert_eq!((running.code, running.stdout.as_str()), (3, ""), "its process lives: {running:?}");
    for id in both {
        end(&stage, id);
    }
    for (id, conversation) in both.iter().zip(&ids) {
        let last = scene.last(*id);
        stage.minder_with(&[], &["relaunch", &id.to_string()], "").ok();
        scene.wait_move(*id, last, State::Idle);
        let record = scene.record(*id);
        assert_eq!((record.bindings.len(), record.bindings[0].id.as_str()), (1, conversation.as_str()));
        assert_eq!(record.incarnation, 1);
        assert_eq!(stage.calls().last().unwrap(), &format!("--resume {conversation}"));
    }
    // And it is woken in that conversation.
    let sent = scene.minder(&["send", "two", "again"]).ok();
    scene.wait_receipt(both[1], scene.sent(both[1], &sent), Receipt::Answered);
}

#[test]
fn i1_an_id_that_is_not_known_is_an_error_and_no_conversation_is_made() {
    let stage = Stage::new();
    let scene = &stage.scene;
    let api = with_a_turn(&stage, "api");
    end(&stage, api);
    let conversation = scene.record(api).bindings[0].id.clone();
    // The harness has forgotten it; where its file is, minder is not told.
    scene.minder(&["set", "api", "--harness", "claude", "--harness-id", "gone-1"]).ok();
    let last = scene.last(api);
    stage.minder_with(&[], &["relaunch", "api"], "").ok();
    let (_, error) = scene.wait_move(api, last, State::Error);
    let note = error.note.unwrap();
    assert!(
        note.contains("ended at once, 3 times (exit 1): No conversation found with session ID: gone-1"),
        "{note}"
    );
    assert!(stage.calls().iter().all(String::is_empty), "none was begun");
    assert_eq!(scene.record(api).bindings.len(), 2);
    // A new one is begun only where that is asked for.
    let last = scene.last(api);
    stage.minder_with(&[], &["relaunch", "api", "--fresh"], "").ok();
    scene.wait_move(api, last, State::Idle);
    let record = scene.record(api);
    let newest = record.live_binding().unwrap();
    assert!(newest.id != "gone-1" && newest.id != conversation, "{newest:?}");
    assert_eq!(record.incarnation, 2);
}

#[test]
fn i1_one_that_was_killed_before_its_first_word_is_begun_anew() {
    let stage = Stage::new();
    let scene = &stage.scene;
    let api = stage.launched("api", &["--harness", "claude"]);
    scene.wait_move(api, 0, State::Idle);
    let first = scene.record(api).bindings[0].id.clone();
    end(&stage, api);
    let last = scene.last(api);
    let ran = stage.minder_with(&[], &["relaunch", "api"], "");
    assert!(ran.stderr.contains(&format!("nothing was said in conversation {first}")), "{ran:?}");
    ran.ok();
    scene.wait_move(api, last, State::Idle);
    assert_eq!(stage.calls(), ["", ""]);
    assert_ne!(scene.record(api).live_binding().unwrap().id, first);
}

#[test]
fn i1_of_several_at_once_one_process_is_started() {
    let stage = Stage::new();
    let api = with_a_turn(&stage, "api");
    end(&stage, api);
    let (_gate, last) = (stage.gate(), stage.scene.last(api));
    let codes = std::thread::scope(|scope| {
        let one = || stage.minder_with(&[], &["relaunch", "api"], "").code;
        let all: Vec<_> = (0..4).map(|_| scope.spawn(one)).collect();
        all.into_iter().map(|ran| ran.join().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(codes.iter().filter(|code| **code == 0).count(), 1, "{codes:?}");
    assert!(codes.iter().all(|code| [0, 3].contains(code)), "{codes:?}");
    stage.scene.wait_move(api, last, State::Queued);
    assert_eq!(stage.scene.record(api).incarnation, 1);
}

#[test]
fn i2_where_its_folder_is_gone_the_error_names_it_and_all_else_is_there() {
    let stage = Stage::new();
    let scene = &stage.scene;
    let folder = scene.isolated.project("worker").unwrap();
    let dir = folder.to_str().unwrap().to_owned();
    let api = stage.launched("api", &["--harness", "claude", "--dir", &dir, "hello"]);
    let first = scene.messages(api).remove(0);
    scene.wait_receipt(api, first.id, Receipt::Answered);
    let conversation = scene.record(api).bindings[0].id.clone();
    end(&stage, api);
    let waits = scene.sent(api, &scene.minder(&["send", "api", "go on"]).ok());
    std::fs::rename(&folder, folder.with_file_name("renamed")).unwrap();
    let last = scene.last(api);
    let ran = stage.minder_with(&[], &["relaunch", "api"], "");
    let (_, error) = scene.wait_move(api, last, State::Error);
    let note = error.note.unwrap_or_default();
    assert!(note.contains(&dir), "{note}: {ran:?}");
    assert_eq!((scene.snapshot_queue(api), scene.record(api).bindings.len()), (1, 1));
    // It is back, and so is the conversation.
    std::fs::rename(folder.with_file_name("renamed"), &folder).unwrap();
    stage.minder_with(&[], &["relaunch", "api"], "").ok();
    scene.wait_receipt(api, waits, Receipt::Answered);
    assert_eq!(stage.calls().last().unwrap(), &format!("--resume {conversation}"));
}
