//! What is said while no daemon can be had is left for it.

use minder_proto::stamp::Stamp;
use serde_json::json;

use crate::world::World;
use crate::world::daemon::Reply;

#[test]
fn what_is_said_without_a_daemon_is_recorded_in_order() {
    let world = World::new();
    let before = Stamp::now();
    for words in [
        &["state", "review", "--note", "PR 12"][..],
        &["send", "api", "text", "--key", "mine"],
        &["--as", "api", "inbox", "ack", "7be21c09"],
    ] {
        let ran = world.run(words);
        assert_eq!(
            (ran.code, ran.out.as_str(), ran.err.as_str()),
            (0, "", "recorded; no daemon is running\n")
        );
    }
    let spooled = world.spooled();
    let methods: Vec<_> = spooled.iter().map(|s| s["method"].as_str().unwrap()).collect();
    assert_eq!(methods, ["session.state", "message.send", "message.ack"]);
    assert_eq!(spooled[0]["params"]["note"], "PR 12");
    assert!(spooled[0]["params"]["key"].as_str().is_some_and(|k| k.len() == 36));
    assert_eq!(
        (&spooled[1]["params"]["key"], &spooled[1]["params"]["body"]),
        (&json!("mine"), &json!("text"))
    );
    assert_eq!(spooled[2]["params"]["caller"]["as"], "api");
    for one in &spooled {
        let at: Stamp = serde_json::from_value(one["at"].clone()).unwrap();
        assert!(at >= before && at <= Stamp::now());
    }
    let ran = world.run(&["state", "done", "--json"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, "{\"note\":\"recorded; no daemon is running\"}\n"));
}

#[test]
fn who_needs_an_answer_gets_none_from_a_spool() {
    let world = World::new();
    world.run(&["send", "api", "text", "--wait"]).failed(69);
    world.run(&["state", "review", "--if", "working"]).failed(69);
    assert_eq!(world.spooled(), [] as [serde_json::Value; 0]);
    // Where nothing can be left either, nothing is said to be recorded.
    std::fs::write(world.home().root(), "a file stands where the store belongs").unwrap();
    let line = world.run(&["state", "review"]).failed(69).to_owned();
    assert!(line.contains("cannot be left in"), "{line}");
}

#[test]
fn a_daemon_that_ends_in_the_middle_is_asked_again_with_the_same_key() {
    let world = World::new();
    let first = std::sync::atomic::AtomicBool::new(true);
    let daemon = world.daemon(move |_, _| {
        if first.swap(false, std::sync::atomic::Ordering::SeqCst) {
            Reply::Die
        } else {
            let mut answer = crate::bodies::sent();
            answer["duplicate"] = json!(true);
            Reply::With(answer)
        }
    });
    // The key was not the caller's: that its own first try went through is no news.
    assert_eq!(world.run(&["send", "api", "text"]).ok(), "7be21c09 queued\n");
    let (a, b) = (daemon.next(), daemon.next());
    assert_eq!((a.params.clone(), a.connection + 1), (b.params, b.connection));
    assert!(a.params["key"].is_string());
    assert_eq!(
        world.run(&["send", "api", "text", "--key", "k"]).ok(),
        "7be21c09 queued  (a repeat: this key was used before)\n"
    );
}
