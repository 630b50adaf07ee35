//! The wake queue: rows are added, folded, granted, shown and acknowledged. A row leaves it by its acknowledgement alone,
//! and has one owner at any time.

use std::collections::BTreeSet;

use minder_proto::host::bounds::{CHECK_TEXT_MAX, PATH_MAX, ROW_TEXT_MAX, ROWS_MAX};
use minder_proto::host::row::{Kind, Owner, Queue, Row};
use minder_proto::id::{MessageId, SessionId};
use minder_proto::stamp::Stamp;
use minder_proto::state::State;
use minder_proto::text;

/// The key of the row that stands for what did not fit.
pub const OVERFLOW: &str = "minder:overflow";
/// Sessions that its text names.
const NAMED: usize = 8;

/// What a producer has seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct News {
    /// What raised it.
    pub kind: Kind,
    /// In a word.
    pub what: String,
    /// Of what it is.
    pub key: String,
    /// Its session.
    pub session: Option<SessionId>,
    /// Of that session.
    pub incarnation: u64,
    /// The line of its timeline.
    pub ev: u64,
    /// Where it came from and to, as far as it is a move.
    pub states: Vec<State>,
    /// The notice.
    pub mid: Option<MessageId>,
    /// It is a question.
    pub decision: bool,
    /// For who reads it.
    pub text: String,
    /// Of what a check said.
    pub digest: Option<String>,
    /// The silence goes on for so long that somebody should look closely.
    pub inspect: bool,
}

impl News {
    /// Of no session.
    pub fn of(kind: Kind, what: &str, key: &str) -> Self {
        Self {
            kind,
            what: what.to_owned(),
            key: key.to_owned(),
            session: None,
            incarnation: 0,
            ev: 0,
            states: Vec::new(),
            mid: None,
            decision: false,
            text: String::new(),
            digest: None,
            inspect: false,
        }
    }
}

/// Adds what happened under the next number. A row of the same kind and key that nobody has or was shown goes into it.
pub fn add(queue: &mut Queue, next: &mut u64, news: News, now: Stamp) -> u64 {
    let seq = *next;
    *next += 1;
    let most = if news.kind == Kind::Check { CHECK_TEXT_MAX } else { ROW_TEXT_MAX };
    let mut row = Row {
        seq,
        at: now,
        first_at: now,
        kind: news.kind,
        what: news.what,
        key: news.key,
        session: news.session,
        incarnation: news.incarnation,
        ev: news.ev,
        states: news.states,
        mids: news.mid.into_iter().collect(),
        decision: news.decision,
        text: text::cut(&news.text, most).to_owned(),
        digest: news.digest,
        owner: Owner::Free,
        shown_gen: 0,
        raised: false,
        folded: 0,
        inspect: news.inspect,
    };
    let same = |other: &Row| other.kind == row.kind && other.key == row.key && other.is_untouched();
    if let Some(at) = queue.rows.iter().position(same) {
        let old = queue.rows.remove(at);
        row.first_at = old.first_at;
        row.folded = old.folded + 1;
        row.decision |= old.decision;
        row.states = old.states.into_iter().chain(row.states).collect();
        row.states.dedup();
        row.mids = old.mids.into_iter().chain(row.mids).collect();
    }
    let beyond = row.states.len().saturating_sub(PATH_MAX);
    row.states.drain(..beyond);
    queue.rows.push(row);
    overflow(queue, next, now);
    seq
}

/// Folds the oldest free routine rows into one that counts them, where there are too many. Their timelines have it all.
fn overflow(queue: &mut Queue, next: &mut u64, now: Stamp) {
    if queue.rows.len() <= ROWS_MAX {
        return;
    }
    let mut over = queue.rows.len() - ROWS_MAX + 1;
    let routine = |row: &Row| row.is_untouched() && !row.decision && row.kind != Kind::Check;
    let (mut gone, mut first_at, mut mids) = (Vec::new(), now, Vec::new());
    queue.rows.retain(|row| {
        let folds = over > 0 && routine(row);
        if folds {
            over -= 1;
            gone.push(row.key.clone());
            first_at = first_at.min(row.first_at);
            mids.extend_from_slice(&row.mids);
        }
        !folds
    });
    if gone.is_empty() {
        return;
    }
    let before = queue.rows.iter().position(|row| row.key == OVERFLOW && row.is_untouched());
    let old = before.map(|at| queue.rows.remove(at));
    let count = gone.len() + old.as_ref().map_or(0, |row| row.folded as usize);
    let names: Vec<String> = gone
        .iter()
        .collect::<BTreeSet<_>>()
        .into_iter()
        .take(NAMED)
        .map(|key| key.parse::<SessionId>().map_or_else(|_| key.clone(), |id| id.short()))
        .collect();
    let news = News {
        text: format!("{count} rows did not fit, of {} and others: minder ls", names.join(", ")),
        ..News::of(Kind::Check, "overflow", OVERFLOW)
    };
    let seq = *next;
    *next += 1;
    queue.rows.push(Row {
        seq,
        at: now,
        first_at: old.as_ref().map_or(first_at, |row| row.first_at.min(first_at)),
        kind: news.kind,
        what: news.what,
        key: news.key,
        session: None,
        incarnation: 0,
        ev: 0,
        states: Vec::new(),
        mids: old.into_iter().flat_map(|row| row.mids).chain(mids).collect(),
        decision: false,
        text: text::cut(&news.text, CHECK_TEXT_MAX).to_owned(),
        digest: None,
        owner: Owner::Free,
        shown_gen: 0,
        raised: false,
        folded: u32::try_from(count).unwrap_or(u32::MAX),
        inspect: false,
    });
}

/// The rows that a batch is judged for: free ones that never were. After this they have been.
pub fn raise(queue: &mut Queue) -> Vec<u64> {
    let rows = queue.rows.iter_mut().filter(|row| row.owner == Owner::Free && !row.raised);
    rows.map(|row| {
        row.raised = true;
        row.seq
    })
    .collect()
}

/// Shows the primary every row, under a generation.
pub fn show(queue: &mut Queue, generation: u64) {
    for row in &mut queue.rows {
        row.owner = Owner::Primary;
        if row.shown_gen == 0 {
            row.shown_gen = generation;
        }
        if let Some(session) = row.session {
            let through = queue.through.entry(session).or_default();
            through.shown = through.shown.max(row.ev);
        }
    }
}

/// Takes back that rows were told of: they are judged anew.
pub fn unshow(queue: &mut Queue) {
    for row in &mut queue.rows {
        (row.owner, row.shown_gen, row.raised) = (Owner::Free, 0, false);
    }
}

/// One that stands for all rows of a kind and key, in the place of the first of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown<'a> {
    /// The newest of them.
    pub row: &'a Row,
    /// How many rows it stands for, with those that were folded.
    pub count: u32,
}

/// What is presented of rows: for each kind and key its newest, in the place of the first. All heartbeats are one. What
/// an acknowledgement consumes does not depend on it.
pub fn collapse<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Vec<Shown<'a>> {
    let mut shown: Vec<Shown<'a>> = Vec::new();
    for row in rows {
        let count = row.folded + 1;
        let same = |other: &&mut Shown<'a>| {
            other.row.kind == row.kind && (row.kind == Kind::Heartbeat || other.row.key == row.key)
        };
        match shown.iter_mut().find(same) {
            Some(place) => {
                place.count += count;
                if row.seq > place.row.seq {
                    place.row = row;
                }
            }
            None => shown.push(Shown { row, count }),
        }
    }
    shown
}

/// What an acknowledgement of the primary's came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Acked {
    /// These rows are gone.
    Rows {
        /// Their places in the queue are free.
        rows: Vec<Row>,
        /// A newer hand-back waits: this one was for an older.
        older: bool,
    },
    /// There was nothing for it; rows that were shown stand above. With the command that covers them.
    Nothing {
        /// Up to which number.
        through: u64,
        /// Under which generation.
        generation: u64,
    },
    /// There is no such generation yet. With the present one.
    Unknown {
        /// The present one.
        generation: u64,
    },
}

/// Consumes what the primary was shown up to a number, in a generation or before it. `present` is the newest generation.
pub fn acknowledge(queue: &mut Queue, through: u64, generation: u64, present: u64) -> Acked {
    if generation > present {
        return Acked::Unknown { generation: present };
    }
    let covered = |row: &Row| {
        row.owner == Owner::Primary && row.seq <= through && row.shown_gen != 0 && row.shown_gen <= generation
    };
    let (gone, left): (Vec<Row>, Vec<Row>) = std::mem::take(&mut queue.rows).into_iter().partition(covered);
    queue.rows = left;
    let shown = || queue.rows.iter().filter(|row| row.owner == Owner::Primary);
    if let (true, Some(through)) = (gone.is_empty(), shown().map(|row| row.seq).max()) {
        // Under the generation that covers them, and no newer one: that may have rows which were not shown.
        let generation = shown().map(|row| row.shown_gen).max().unwrap_or(present);
        return Acked::Nothing { through, generation };
    }
    cover(queue, &gone);
    Acked::Rows { rows: gone, older: generation < present }
}

fn cover(queue: &mut Queue, gone: &[Row]) {
    for row in gone {
        if let Some(session) = row.session {
            let through = queue.through.entry(session).or_default();
            through.covered = through.covered.max(row.ev);
        }
    }
}

#[cfg(test)]
mod tests {
    use minder_proto::host::row::NO_KEY;

    use super::*;

    fn signal(session: SessionId, ev: u64, state: State) -> News {
        News {
            session: Some(session),
            ev,
            states: vec![state],
            decision: state == State::Asking,
            ..News::of(Kind::Signal, state.as_str(), &session.to_string())
        }
    }

    fn at(ms: i64) -> Stamp {
        Stamp::from_millis(ms)
    }

    fn seqs(queue: &Queue) -> Vec<u64> {
        queue.rows.iter().map(|row| row.seq).collect()
    }

    #[test]
    fn what_nobody_was_shown_goes_into_the_newer_row_and_a_question_is_not_forgotten() {
        let (mut queue, mut next, api) = (Queue::default(), 1, SessionId::random());
        add(&mut queue, &mut next, signal(api, 4, State::Asking), at(10));
        add(&mut queue, &mut next, signal(api, 6, State::Review), at(20));
        let row = &queue.rows[0];
        assert_eq!((queue.rows.len(), row.seq, row.folded, row.decision), (1, 2, 1, true));
        assert_eq!((row.first_at, row.at, row.ev), (at(10), at(20), 6));
        assert_eq!(row.states, [State::Asking, State::Review]);
    }

    /// 52.
    #[test]
    fn host52_of_one_key_there_are_few_rows_whatever_comes() {
        let (mut queue, mut next, api) = (Queue::default(), 1, SessionId::random());
        add(&mut queue, &mut next, signal(api, 1, State::Asking), at(1));
        let first = raise(&mut queue);
        show(&mut queue, 1);
        for ev in 2..3_002 {
            let state = if ev % 2 == 0 { State::Review } else { State::Asking };
            add(&mut queue, &mut next, signal(api, ev, state), at(3));
        }
        assert_eq!(queue.rows.len(), 2);
        let last = queue.rows.last().unwrap();
        assert_eq!((last.folded, last.decision, last.states.len()), (2_999, true, PATH_MAX));
        assert!(queue.rows.iter().any(|row| row.seq == first[0] && row.owner == Owner::Primary));
    }

    /// 52.
    #[test]
    fn host52_beyond_a_thousand_keys_the_oldest_routine_rows_are_one_that_counts_them() {
        let (mut queue, mut next) = (Queue::default(), 1);
        let asking = SessionId::random();
        add(&mut queue, &mut next, signal(asking, 1, State::Asking), at(0));
        for n in 0..1_010 {
            add(&mut queue, &mut next, signal(SessionId::random(), 1, State::Done), at(n));
        }
        assert_eq!(queue.rows.len(), ROWS_MAX);
        let overflow: Vec<&Row> = queue.rows.iter().filter(|row| row.key == OVERFLOW).collect();
        assert_eq!(overflow.len(), 1);
        let others = u32::try_from(queue.rows.len()).unwrap() - 2;
        assert_eq!(overflow[0].folded + others, 1_010, "each is counted once");
        assert!(queue.rows.iter().any(|row| row.session == Some(asking) && row.decision));
        let mut numbers = seqs(&queue);
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), queue.rows.len(), "no number is given twice");
    }

    /// 35, 36.
    #[test]
    fn host36_each_acknowledgement_takes_only_what_was_shown() {
        let (mut queue, mut next) = (Queue::default(), 1);
        let [a, b] = [(); 2].map(|()| SessionId::random());
        for (n, session) in [a, b].into_iter().enumerate() {
            add(&mut queue, &mut next, signal(session, n as u64 + 1, State::Done), at(1));
        }
        raise(&mut queue);
        show(&mut queue, 5);
        add(&mut queue, &mut next, signal(a, 9, State::Error), at(2));

        assert_eq!(acknowledge(&mut queue, 99, 6, 5), Acked::Unknown { generation: 5 });
        let nothing = Acked::Nothing { through: 2, generation: 5 };
        assert_eq!(acknowledge(&mut queue, 99, 4, 5), nothing, "it was not shown then");
        let Acked::Rows { rows, older } = acknowledge(&mut queue, 99, 5, 5) else { panic!() };
        assert_eq!((rows.iter().map(|r| r.seq).collect::<Vec<_>>(), older), (vec![1, 2], false));
        assert_eq!(seqs(&queue), [3], "what came later stays");
        assert_eq!(queue.through[&a].covered, 1);
    }

    /// 34.
    #[test]
    fn host34_an_acknowledgement_that_was_printed_before_stays_valid_for_what_it_covered() {
        let (mut queue, mut next) = (Queue::default(), 1);
        let [a, b] = [(); 2].map(|()| SessionId::random());
        add(&mut queue, &mut next, signal(a, 1, State::Done), at(1));
        show(&mut queue, 1);
        add(&mut queue, &mut next, signal(b, 1, State::Done), at(2));
        show(&mut queue, 2);
        let Acked::Rows { rows, older } = acknowledge(&mut queue, 1, 1, 2) else { panic!() };
        assert_eq!((rows.len(), older), (1, true));
        assert_eq!(seqs(&queue), [2]);
        // With nothing in it, any acknowledgement closes what has no rows.
        assert!(matches!(acknowledge(&mut queue, 2, 2, 2), Acked::Rows { .. }));
        assert_eq!(acknowledge(&mut queue, 0, 2, 2), Acked::Rows { rows: vec![], older: false });
    }

    #[test]
    fn rows_of_one_kind_and_key_are_shown_as_the_newest_in_the_place_of_the_first() {
        let (mut queue, mut next) = (Queue::default(), 1);
        let [a, b] = [(); 2].map(|()| SessionId::random());
        for (session, ev) in [(a, 1), (b, 1)] {
            add(&mut queue, &mut next, signal(session, ev, State::Review), at(1));
        }
        show(&mut queue, 1);
        add(&mut queue, &mut next, signal(a, 2, State::Done), at(2));
        for _ in 0..2 {
            add(&mut queue, &mut next, News::of(Kind::Heartbeat, "", NO_KEY), at(3));
            show(&mut queue, 1);
        }
        let shown = collapse(&queue.rows);
        let list: Vec<(u64, u32)> = shown.iter().map(|s| (s.row.seq, s.count)).collect();
        assert_eq!(list, [(3, 2), (2, 1), (5, 2)]);
    }
}
