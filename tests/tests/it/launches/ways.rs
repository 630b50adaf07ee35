//! How messages get into what was launched.

use std::os::unix::fs::symlink;

use minder_proto::event::Receipt;
use minder_proto::record::Channel;

use super::stage::Stage;

/// Puts a stand-in for a harness into the way, in a terminal.
fn actor(stage: &Stage, harness: &str) {
    let own = stage.scene.isolated.root().join("actors");
    std::fs::create_dir_all(&own).unwrap();
    let link = own.join(harness);
    symlink(stage.scene.isolated.program("fake").unwrap(), &link).unwrap();
    let script =
        format!("record {}\nlook {harness}\ndialect {harness}\nterminal\n", own.join("record").display());
    std::fs::write(own.join(format!("{harness}.script")), script).unwrap();
    stage.program(harness, &format!("#!/bin/sh\nexec '{}' \"$@\"\n", link.display()));
}

#[test]
fn a_codex_is_typed_its_first_message() {
    let stage = Stage::new();
    actor(&stage, "codex");
    stage.scene.minder(&["hooks", "install", "codex"]).ok();
    let api = stage.launched("api", &["--harness", "codex", "do it"]);
    let message = stage.scene.messages(api).remove(0);
    let line = stage.scene.wait_receipt(api, message.id, Receipt::Seen);
    assert_eq!(line.channel.as_deref(), Some("tmux"), "{}", stage.scene.road(api, message.id));
    // It has no server: what typed the first message types the next.
    stage.scene.wait_record(api, "its first hook", |r| !r.until_hook);
    let record = stage.scene.record(api);
    let pane = record.launch.unwrap().pane.unwrap();
    let socket = stage.tmux.socket().to_str().unwrap().to_owned();
    assert_eq!(record.channel, Channel::Tmux { socket, pane });
}

#[test]
fn what_is_launched_to_be_typed_to_is_typed_to_in_its_own_pane() {
    let stage = Stage::new();
    actor(&stage, "claude");
    let api = stage.launched("api", &["--harness", "claude", "--channel", "tmux"]);
    let record = stage.scene.record(api);
    let pane = record.launch.unwrap().pane;
    assert!(matches!(&record.channel, Channel::Tmux { pane: typed, .. } if Some(typed) == pane.as_ref()));
    let other = stage.launch("web", &["--harness", "pi", "--channel", "tmux"]);
    assert_eq!((other.code, stage.scene.records().len()), (64, 1), "{other:?}");
    assert!(other.stderr.contains("knows the screens of"), "{other:?}");
}
