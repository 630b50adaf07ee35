//! A daemon that is killed while a message is on its way to OpenCode's server: it is there once, under its own ids.

use minder_proto::rpc;
use rustix::process::Signal;

use super::{Bench, LIMIT, tail};
use crate::cuts;

#[test]
fn c1_a_message_is_in_the_conversation_once_wherever_the_daemon_is_killed() {
    let bench = Bench::new();
    let sender = bench.world.session("sender");
    let daemon = bench.world.isolated.daemon().unwrap();
    assert!(daemon.signal(Signal::KILL) && daemon.wait(LIMIT));
    let mut sent = Vec::new();
    cuts::everywhere(|at| {
        let (to, key) = (Some(bench.session.to_string()), Some(at.to_owned()));
        let letter =
            rpc::Send { to, key, body: at.to_owned(), caller: sender.caller(), ..rpc::Send::default() };
        let seen = |id| bench.road(id).iter().any(|word| word == "seen(conversation)");
        let mut arrives = |id| {
            bench.until(id, "seen(conversation)");
            sent.push(id);
        };
        cuts::cut(&bench.world, at, &letter, &mut |id| seen(id), &mut arrives)
    });
    let prompts = bench.end.prompts(sent.len());
    let ids: Vec<&str> = prompts.iter().map(|p| p["messageID"].as_str().unwrap()).collect();
    for id in &sent {
        let times = ids.iter().filter(|prompt| prompt.ends_with(&tail(*id))).count();
        assert_eq!(times, 1, "{id}: {:?}", bench.road(*id));
    }
    assert_eq!(ids.len(), sent.len());
}
