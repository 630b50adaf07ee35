//! A store with something in it before the daemon is started, and its timelines read while one runs.

use std::sync::Arc;

use minder_daemon::identity::process_of;
use minder_daemon::session::{Born, Declaration, create, declare};
use minder_daemon::store::Store;
use minder_proto::config::Config;
use minder_proto::event::{Author, Body, Event, Transition};
use minder_proto::id::SessionId;
use minder_proto::layout::Home;
use minder_proto::record::{Channel, Process, SessionRecord};
use minder_proto::state::State;
use minder_proto::{snapshot, timeline};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify;

use crate::raw::DEADLINE;

/// A session to be in the store.
pub struct Wanted<'a> {
    pub label: &'a str,
    /// The claude conversation that is bound to it.
    pub conversation: Option<&'a str>,
    pub process: Option<Process>,
    pub state: State,
    pub by: Author,
}

/// Puts sessions into the store of a daemon that does not run.
pub fn put(home: &Home, wanted: &[Wanted]) -> Vec<SessionId> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (store, _) = Store::open(home, Arc::new(Config::default()), Vec::new(), Vec::new()).unwrap();
    let put = |wanted: &Wanted| {
        let born = Born {
            label: Some(wanted.label.to_owned()),
            title: None,
            harness: Some("claude".to_owned()),
            conversation: wanted.conversation.map(|id| (id.to_owned(), "startup".to_owned(), None)),
            dir: "/".to_owned(),
            parent: None,
            primary: false,
            channel: Channel::Hook,
            process: wanted.process.clone(),
            adopted: true,
            said: None,
            launch: None,
        };
        let (state, by) = (wanted.state, wanted.by);
        let written = store.write(move |txn| {
            let id = create(txn, born)?;
            declare(txn, id, Declaration::new(state, Some("as it was put".to_owned()), by))?;
            Ok(id)
        });
        runtime.block_on(written).unwrap()
    };
    let ids = wanted.iter().map(put).collect();
    store.stop();
    ids
}

/// The process with this pid.
pub fn process(pid: u32) -> Process {
    process_of(i32::try_from(pid).unwrap()).unwrap()
}

pub fn record(home: &Home, id: SessionId) -> SessionRecord {
    snapshot::record(home, id).unwrap()
}

pub fn lines(home: &Home, id: SessionId) -> Vec<Event> {
    timeline::last(&home.session(id), 100).unwrap()
}

/// The newest state line.
pub fn last_state(home: &Home, id: SessionId) -> Transition {
    let lines = lines(home, id);
    let states = lines.into_iter().rev();
    let mut states = states.filter_map(|l| if let Body::State(line) = l.body { Some(line) } else { None });
    states.next().unwrap()
}

/// Waits until this holds, looking whenever the feed says that something was committed.
pub fn until(home: &Home, holds: impl Fn() -> bool) {
    let bell = inotify::init(inotify::CreateFlags::CLOEXEC).unwrap();
    inotify::add_watch(&bell, home.feed(), inotify::WatchFlags::MODIFY).unwrap();
    let limit = Timespec { tv_sec: DEADLINE.as_secs().try_into().unwrap(), tv_nsec: 0 };
    let mut buffer = [0; 4096];
    while !holds() {
        let rung = poll(&mut [PollFd::new(&bell, PollFlags::IN)], Some(&limit)).unwrap();
        assert_eq!(rung, 1, "nothing was committed in {DEADLINE:?}");
        rustix::io::read(&bell, &mut buffer[..]).unwrap();
    }
}
