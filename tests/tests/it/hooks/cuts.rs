//! A daemon that is killed while a hook is about to print a message: the model is shown it once, by this hook or by a later one.

use std::sync::Arc;

use minder_proto::event::Receipt;
use minder_proto::id::MessageId;
use minder_proto::rpc;
use rustix::process::Signal;
use serde_json::Value;

use super::bench::Bench;
use crate::cuts;
use crate::scene::LIMIT;
use crate::world::World;

impl Bench {
    /// A tool has run: its hook is called, and the harness shows its model what that prints. Gives the text.
    fn tool_done(&mut self) -> String {
        let mut call = self.call(&self.payload("PostToolUse"), false);
        // The daemon is this test's.
        call.environment.insert("MINDER_NO_AUTOSTART".to_owned(), "1".to_owned());
        let answer = self.host.call(call).unwrap();
        let printed: Value = serde_json::from_str(&answer.stdout).unwrap_or_default();
        let text = printed["hookSpecificOutput"]["additionalContext"].as_str().unwrap_or_default().to_owned();
        if !text.is_empty() {
            self.shown(&text);
        }
        text
    }
}

#[test]
fn c1_a_model_is_shown_a_message_once_wherever_the_daemon_is_killed() {
    let mut bench = Bench::new("[delivery]\nevidence_timeout = \"1s\"\n");
    let session = bench.begin();
    bench.quietly("UserPromptSubmit");
    let world = World { isolated: Arc::clone(&bench.scene.isolated) };
    let sender = world.session("sender");
    let daemon = bench.scene.isolated.daemon().unwrap();
    assert!(daemon.signal(Signal::KILL) && daemon.wait(LIMIT));
    let home = world.home();
    let settled = |id: MessageId| {
        let file = home.session(session).join("queue.jsonl");
        let history = minder_proto::queue::history(&std::fs::read(file).unwrap_or_default(), id);
        history.last().is_some_and(|line| line.r == Receipt::Seen)
    };
    let (mut sent, shown) = (Vec::new(), std::cell::RefCell::new(String::new()));
    cuts::everywhere(|at| {
        let (to, key) = (Some(session.to_string()), Some(at.to_owned()));
        let letter =
            rpc::Send { to, key, body: at.to_owned(), caller: sender.caller(), ..rpc::Send::default() };
        let bench = std::cell::RefCell::new(&mut bench);
        let look = |id| {
            shown.borrow_mut().push_str(&bench.borrow_mut().tool_done());
            settled(id)
        };
        let deadline = std::time::Instant::now() + LIMIT;
        let mut arrives = |id: MessageId| {
            while !look(id) {
                assert!(
                    std::time::Instant::now() < deadline,
                    "{at}: {}",
                    bench.borrow().scene.road(session, id)
                );
            }
            sent.push(id);
        };
        cuts::cut(&world, at, &letter, &mut |id| look(id), &mut arrives)
    });
    let shown = shown.into_inner();
    for id in &sent {
        let times = shown.matches(&format!("[minder] message {}", id.short())).count();
        assert_eq!(times, 1, "{}: {}", id.short(), bench.scene.road(session, *id));
    }
}
