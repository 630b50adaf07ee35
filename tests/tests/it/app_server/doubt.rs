//! The codex channel with a scripted end: what was sent and may have been taken is not sent again, and what another road gave is
//! not sent at all.

use std::collections::BTreeMap;
use std::path::PathBuf;

use minder_proto::caller::Caller;
use minder_proto::id::{MessageId, SessionId};
use minder_proto::{queue, rpc};
use minder_tests::files;
use serde_json::Value;

use super::end::{End, Is, THREAD, Takes};
use crate::world::{LIMIT, Minderd, World, ran};

struct Bench {
    world: World,
    _daemon: Minderd,
    end: End,
    session: SessionId,
}

impl Bench {
    fn new() -> Self {
        let world = World::new();
        let daemon = world.start();
        let end = End::start(world.isolated.root());
        let new = ["new", "--label", "w", "--channel", "codex", "--socket", end.socket()];
        let session = ran(&mut world.minder(new), b"").ok().trim().parse().unwrap();
        world.run(&format!("set w --harness codex --harness-id {THREAD}")).ok();
        Self { world, _daemon: daemon, end, session }
    }

    fn send(&self, words: &[&str]) -> MessageId {
        let words = ["--json", "send", "w"].iter().chain(words).copied();
        let sent: Value = serde_json::from_str(&ran(&mut self.world.minder(words), b"").ok()).unwrap();
        sent["id"].as_str().unwrap().parse().unwrap()
    }

    fn dir(&self) -> PathBuf {
        self.world.home().session(self.session)
    }

    fn road(&self, id: MessageId) -> Vec<String> {
        let ledger = std::fs::read(self.dir().join("queue.jsonl")).unwrap();
        let said = queue::history(&ledger, id).into_iter().map(|l| match l.reason {
            Some(reason) => format!("{}({reason})", l.r),
            None => l.r.to_string(),
        });
        said.collect()
    }

    /// Until a message has gone this road.
    fn goes(&self, id: MessageId, road: &[&str]) {
        let found = files::wait_for(&self.dir(), LIMIT, || (self.road(id).len() >= road.len()).then_some(()));
        found.unwrap_or_else(|e| panic!("{road:?}: {e}\n{:?}", self.road(id)));
        assert_eq!(self.road(id)[..road.len()], *road);
    }

    /// The texts that the server was given.
    fn given(&self) -> Vec<String> {
        let texts = self.end.given().into_iter().map(|(_, text)| text);
        texts.map(|text| text.lines().last().unwrap_or_default().to_owned()).collect()
    }
}

#[test]
fn what_a_mailbox_gave_while_the_thread_was_looked_at_is_not_sent() {
    let bench = Bench::new();
    bench.end.stops_at(Some("thread/read"));
    let first = bench.send(&["first"]);
    bench.end.asked("thread/read", 1);
    let mut client = bench.world.client();
    let vars = BTreeMap::from([("CODEX_THREAD_ID".to_owned(), THREAD.to_owned())]);
    let caller = Some(Caller { vars, ..Caller::default() });
    let taken = client.call(&rpc::Take { caller, key: None }).unwrap().message;
    assert_eq!(taken.map(|taken| taken.id), Some(first));
    bench.end.stops_at(None);
    let second = bench.send(&["second"]);
    bench.goes(second, &["queued", "held(unknown)", "handed", "seen(thread)"]);
    assert_eq!(bench.given(), ["second"]);
    assert_eq!(bench.road(first), ["queued", "handed"]);
    drop(client);
}

#[test]
fn a_thread_that_cannot_be_read_is_not_taken_for_one_that_has_nothing() {
    let bench = Bench::new();
    bench.end.refuses(Some("thread/items/list"));
    bench.end.takes(Takes::Silently);
    let id = bench.send(&["once"]);
    bench.end.asked("thread/items/list", 2);
    bench.end.takes(Takes::Well);
    bench.end.refuses(None);
    bench.goes(id, &["queued", "held(unknown)", "seen(thread)"]);
    assert_eq!(bench.given(), ["once"]);
}

#[test]
fn a_message_is_found_behind_whatever_came_after_it() {
    let bench = Bench::new();
    bench.end.takes(Takes::Silently);
    bench.end.goes_on(450);
    let id = bench.send(&["once"]);
    bench.goes(id, &["queued", "held(unknown)", "seen(thread)"]);
    assert_eq!(bench.given(), ["once"]);
}

#[test]
fn a_retry_of_what_a_turn_may_have_yet_to_show_sends_nothing() {
    let bench = Bench::new();
    bench.end.is(Is::Works);
    let id = bench.send(&["once"]);
    bench.goes(id, &["queued", "held(unknown)", "handed"]);
    bench.world.run(&format!("retry {}", id.short())).ok();
    bench.goes(id, &["queued", "held(unknown)", "handed", "held(unknown)"]);
    bench.end.is(Is::Idle);
    bench.goes(id, &["queued", "held(unknown)", "handed", "held(unknown)", "seen(thread)"]);
    assert_eq!(bench.given(), ["once"]);
}

#[test]
fn what_a_server_took_that_does_not_have_the_thread_any_more_is_in_doubt_until_one_has() {
    let bench = Bench::new();
    bench.end.is(Is::Works);
    let id = bench.send(&["once"]);
    bench.goes(id, &["queued", "held(unknown)", "handed"]);
    bench.end.is(Is::Elsewhere);
    bench.goes(id, &["queued", "held(unknown)", "handed", "held(unknown)"]);
    bench.end.is(Is::Idle);
    bench.goes(id, &["queued", "held(unknown)", "handed", "held(unknown)", "seen(thread)"]);
    assert_eq!(bench.given(), ["once"]);
}

#[test]
fn what_a_turn_may_have_yet_to_show_is_not_sent_past_one_that_waits_for_its_end() {
    let bench = Bench::new();
    bench.end.is(Is::Works);
    let later = bench.send(&["--class", "turn-end", "later"]);
    bench.goes(later, &["queued", "held(busy)"]);
    bench.end.takes(Takes::Silently);
    let now = bench.send(&["now"]);
    bench.goes(now, &["queued", "held(unknown)"]);
    // The next connection looks at it, and waits.
    bench.end.asked("thread/items/list", 1);
    bench.end.takes(Takes::Well);
    bench.end.is(Is::Idle);
    bench.goes(now, &["queued", "held(unknown)", "seen(thread)"]);
    bench.goes(later, &["queued", "held(busy)", "held(unknown)", "handed", "seen(thread)"]);
    assert_eq!(bench.given(), ["now", "later"]);
}
