//! What can happen to a store, and how it is generated: first with picks instead of names, so that a move keeps its
//! sense when moves before it are left out.

use minder_proto::event::{Author, Class};
use minder_proto::state::{State, StateSet};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

/// A pick among those that are there; the highest few pick among those that are gone.
pub type Pick = u8;
/// From here on a pick means one that is closed.
pub const CLOSED: Pick = 236;

/// Labels that are asked for; the folder of all sessions gives the last two too.
pub const LABELS: [&str; 4] = ["a", "b", "w", "w-2"];
/// The folder of all sessions.
pub const DIR: &str = "/nowhere/w";
/// Conversations of one harness.
pub const CONVERSATIONS: [&str; 3] = ["c0", "c1", "c2"];
/// Bodies, notes and titles.
pub const TEXTS: [&str; 3] = ["one", "two\nlines", "say \"three\"\tanew — ünïcode"];
/// Most messages in a queue.
pub const QUEUE_MAX: usize = 5;
/// Most sessions at once.
pub const SESSIONS_MAX: usize = 6;

/// One mutation. `W` names a session, `M` a message in the queue of a party.
#[derive(Clone, Debug)]
pub enum Act<W, M> {
    Create {
        label: Option<&'static str>,
        title: Option<&'static str>,
        parent: Option<W>,
    },
    Declare {
        session: W,
        to: State,
        note: Option<&'static str>,
        by: Author,
        turn_end: bool,
    },
    Set {
        session: W,
        label: Option<&'static str>,
        title: Option<&'static str>,
        parent: Option<W>,
        conversation: Option<&'static str>,
    },
    Process {
        session: W,
        pid: Option<i32>,
    },
    Watch {
        watcher: W,
        targets: Vec<W>,
        states: Option<StateSet>,
    },
    Cancel {
        watcher: W,
        targets: Vec<W>,
    },
    Send {
        from: Option<W>,
        to: Option<W>,
        body: &'static str,
        class: Class,
        key: Option<u8>,
    },
    Hold {
        party: Option<W>,
        message: M,
    },
    Bury {
        party: Option<W>,
        message: M,
    },
    Close {
        session: W,
        note: Option<&'static str>,
        by: Author,
        recall: bool,
    },
    /// Does all that, and is then refused.
    Refused(Box<Self>),
}

impl<S, M> Act<S, M> {
    /// True for what takes texts out of timelines.
    pub fn reads_files(&self) -> bool {
        match self {
            Self::Bury { .. } | Self::Close { .. } => true,
            Self::Refused(act) => act.reads_files(),
            _ => false,
        }
    }
}

/// What happens next.
#[derive(Clone, Debug)]
pub enum Move {
    /// Mutations that the store takes as one group.
    Group(Vec<Act<Pick, Pick>>),
    /// A mailbox gives a message.
    Take { party: Option<Pick>, connection: u64, key: Option<&'static str> },
    /// A message is acknowledged, whatever became of it.
    Ack { party: Option<Pick>, message: Pick },
    /// A connection ends.
    Hangup { connection: u64 },
    /// A clean stop, and another start.
    Restart,
    /// The process is gone from one moment to the next.
    Crash,
    /// The machine is: of what was not made durable, any part is lost.
    PowerCut(u64),
}

fn pick() -> impl Strategy<Value = Pick> + Clone {
    prop_oneof![15 => 0..CLOSED, 1 => CLOSED..=Pick::MAX]
}

fn text() -> impl Strategy<Value = &'static str> {
    select(&TEXTS[..])
}

fn states() -> impl Strategy<Value = StateSet> {
    select(vec![
        StateSet::ALL,
        StateSet::WATCH,
        StateSet::ACTIONABLE,
        StateSet::of(&[State::Working]),
        StateSet::of(&[State::Review, State::Done]),
    ])
}

fn declaration() -> impl Strategy<Value = Act<Pick, Pick>> {
    let author = select(vec![Author::Agent, Author::Hook, Author::Operator, Author::Minder]);
    // Few states, so that some stand already.
    let state = select(vec![State::Idle, State::Working, State::Review, State::Asking]);
    let said = (pick(), state, option::of(text()), author, any::<bool>());
    said.prop_map(|(session, to, note, by, turn_end)| {
        let turn_end = turn_end && to == State::Idle && by == Author::Hook;
        Act::Declare { session, to, note, by, turn_end }
    })
}

fn plain(alone: bool) -> BoxedStrategy<Act<Pick, Pick>> {
    let label = || option::weighted(0.6, select(&LABELS[..]));
    let create = (label(), option::weighted(0.2, text()), option::weighted(0.6, pick()))
        .prop_map(|(label, title, parent)| Act::Create { label, title, parent });
    let conversation = option::weighted(0.4, select(&CONVERSATIONS[..]));
    let set = (
        pick(),
        option::weighted(0.4, select(&LABELS[..])),
        option::weighted(0.3, text()),
        option::weighted(0.4, pick()),
        conversation,
    )
        .prop_map(|(session, label, title, parent, conversation)| Act::Set {
            session,
            label,
            title,
            parent,
            conversation,
        });
    let process = (pick(), option::of(1..3_i32)).prop_map(|(session, pid)| Act::Process { session, pid });
    let watch = (pick(), vec(pick(), 1..4), option::of(states()))
        .prop_map(|(watcher, targets, states)| Act::Watch { watcher, targets, states });
    let cancel = (pick(), vec(pick(), 1..3)).prop_map(|(watcher, targets)| Act::Cancel { watcher, targets });
    let send = (
        option::weighted(0.8, pick()),
        option::weighted(0.8, pick()),
        text(),
        select(&Class::ALL[..]),
        option::weighted(0.2, 0..3_u8),
    )
        .prop_map(|(from, to, body, class, key)| Act::Send { from, to, body, class, key });
    let party = || option::weighted(0.8, pick());
    let hold = (party(), any::<Pick>()).prop_map(|(party, message)| Act::Hold { party, message });
    let bury = (party(), any::<Pick>()).prop_map(|(party, message)| Act::Bury { party, message });
    let close = (pick(), option::of(text()), any::<bool>()).prop_map(|(session, note, recall)| Act::Close {
        session,
        note,
        by: Author::Operator,
        recall,
    });
    prop_oneof![
        if alone { 5 } else { 2 } => create,
        9 => declaration(),
        4 => set,
        1 => process,
        4 => watch,
        2 => cancel,
        7 => send,
        2 => hold,
        1 => bury,
        if alone { 2 } else { 1 } => close,
    ]
    .boxed()
}

fn act(alone: bool) -> BoxedStrategy<Act<Pick, Pick>> {
    prop_oneof![
        9 => plain(alone),
        1 => plain(alone).prop_map(|act| Act::Refused(Box::new(act))),
    ]
    .boxed()
}

/// Any move.
pub fn any_move() -> BoxedStrategy<Move> {
    let party = || option::weighted(0.8, pick());
    let take = (party(), 0..3_u64, option::of(select(&["k", "l"][..])))
        .prop_map(|(party, connection, key)| Move::Take { party, connection, key });
    let ack = (party(), any::<Pick>()).prop_map(|(party, message)| Move::Ack { party, message });
    prop_oneof![
        30 => act(true).prop_map(|act| Move::Group(vec![act])),
        10 => vec(act(false), 2..6).prop_map(Move::Group),
        9 => take,
        4 => ack,
        1 => (0..3_u64).prop_map(|connection| Move::Hangup { connection }),
        1 => Just(Move::Restart),
        1 => Just(Move::Crash),
        2 => any::<u64>().prop_map(Move::PowerCut),
    ]
    .boxed()
}
