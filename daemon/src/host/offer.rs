//! Whether the engine may take a batch, and which rows: the offer. It is judged when a batch is due, and once more in the
//! commit that grants the rows.

use std::collections::BTreeSet;

use minder_proto::host::bounds::TRIES_MAX;
use minder_proto::host::posture::Mode;
use minder_proto::host::row::{Kind, Owner, Queue, Row};
use minder_proto::id::SessionId;
use minder_proto::state::State;

/// What is to be known of a session whose rows are judged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Its state; none of one that is closed.
    pub state: Option<State>,
    /// The lines behind what the primary was last shown of it, oldest first.
    pub unseen: Vec<Unseen>,
    /// A dialog is known to be open in it.
    pub dialog: bool,
    /// The operator keeps it for himself.
    pub held: bool,
}

/// A line that the primary was not shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unseen {
    /// The session came to a state.
    State(State),
    /// It was handed a message of the primary's or the operator's.
    Answered,
}

impl Facts {
    /// True for a session whose next step is a person's, or the primary's with a person's word. The whole unseen span
    /// counts, never the last line alone.
    pub fn decision_owned(&self) -> bool {
        let since_answer = self.unseen.iter().rev().take_while(|line| **line != Unseen::Answered);
        let asked = since_answer.into_iter().any(|line| *line == Unseen::State(State::Asking));
        self.state == Some(State::Asking) || asked || self.dialog || self.held
    }
}

/// What a look at the sessions of rows brought.
pub enum Look {
    /// What is known.
    Known(Facts),
    /// It is in no list of open or closed sessions, or what is to be known of it cannot be read.
    Unreadable,
}

/// The rows that an engine is granted, and what they are about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// Their numbers.
    pub rows: Vec<u64>,
    /// Their sessions.
    pub sessions: BTreeSet<SessionId>,
    /// It may report on the fleet as a whole.
    pub unscoped: bool,
}

/// Who has a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Offer {
    /// The engine.
    Engine(Claim),
    /// The primary, plainly; with why, for the ledger.
    Primary(&'static str),
    /// The primary, since a row cannot be read or placed; with its number, 0 for one that has none.
    Unreadable(u64),
    /// Nobody: the rows are gone.
    Nothing,
}

/// Judges a batch whose trigger are these rows.
pub fn offer(mode: Mode, queue: &Queue, trigger: &[u64], look: impl Fn(SessionId) -> Look) -> Offer {
    let away = mode.is_away();
    let free = || queue.rows.iter().filter(|row| row.owner == Owner::Free);
    let in_trigger = |row: &Row| trigger.contains(&row.seq);
    if free().any(|row| in_trigger(row) && row.is_own()) {
        return Offer::Primary("own");
    }
    if !away && free().any(|row| in_trigger(row) && row.kind == Kind::Check) {
        return Offer::Primary("check");
    }
    let (mut decided, mut unreadable) = (BTreeSet::new(), None);
    if !queue.broken.is_empty() {
        unreadable = Some(0);
    }
    for row in free() {
        let Some(session) = row.session else { continue };
        match look(session) {
            Look::Known(facts) => drop(facts.decision_owned().then(|| decided.insert(session))),
            Look::Unreadable => {
                unreadable.get_or_insert(row.seq);
            }
        }
    }
    let decided = |row: &Row| row.session.is_some_and(|session| decided.contains(&session));
    if !away && free().any(|row| in_trigger(row) && decided(row)) {
        return Offer::Primary("decision");
    }
    if let Some(seq) = unreadable {
        return if away { Offer::Unreadable(seq) } else { Offer::Primary("unreadable") };
    }
    let mut claim = Claim::default();
    for row in free() {
        let takes = row.tries < TRIES_MAX
            && match row.kind {
                _ if row.is_own() => false,
                Kind::Signal | Kind::Stale => away || !decided(row),
                Kind::Check => away,
                Kind::Heartbeat => away || in_trigger(row),
            };
        if takes {
            claim.rows.push(row.seq);
            claim.sessions.extend(row.session);
            claim.unscoped |= row.is_unscoped();
        }
    }
    if claim.rows.is_empty() {
        return if away { Offer::Nothing } else { Offer::Primary("empty") };
    }
    Offer::Engine(claim)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use minder_proto::host::row::NO_KEY;
    use minder_proto::stamp::Stamp;

    use super::*;
    use crate::host::queue::{self, News, add};

    /// A queue that is made by words: `s` a signal of its own session, `d` one of a session that asks, `c` a check, `h` a
    /// heartbeat, `o` a row of minder's own, `t` a signal that was tried twice; a capital letter is in the trigger.
    struct Bench {
        queue: Queue,
        trigger: Vec<u64>,
        facts: BTreeMap<SessionId, Facts>,
        words: Vec<(char, u64)>,
    }

    fn bench(words: &str) -> Bench {
        let (mut queue, mut next, mut facts) = (Queue::default(), 1, BTreeMap::new());
        let (mut trigger, mut list) = (Vec::new(), Vec::new());
        for (n, word) in words.chars().enumerate() {
            let session = SessionId::random();
            let news = match word.to_ascii_lowercase() {
                'c' => News::of(Kind::Check, "1", &format!("check{n}")),
                'h' => News::of(Kind::Heartbeat, "", NO_KEY),
                'o' => queue::own("late", &format!("minder:{n}"), String::new()),
                kind => {
                    let state = if kind == 'd' { State::Asking } else { State::Review };
                    facts.insert(session, Facts { state: Some(state), ..Facts::default() });
                    News { session: Some(session), ..News::of(Kind::Signal, "review", &session.to_string()) }
                }
            };
            let seq = add(&mut queue, &mut next, news, Stamp::from_millis(0));
            let row = queue.rows.last_mut().unwrap();
            row.raised = word.is_lowercase();
            row.tries = if word.eq_ignore_ascii_case(&'t') { TRIES_MAX } else { 0 };
            if word.is_uppercase() {
                trigger.push(seq);
            }
            list.push((word, seq));
        }
        Bench { queue, trigger, facts, words: list }
    }

    impl Bench {
        fn offer(&self, mode: Mode) -> Offer {
            offer(mode, &self.queue, &self.trigger, |id| {
                self.facts.get(&id).cloned().map_or(Look::Unreadable, Look::Known)
            })
        }

        /// The letters of what is claimed, or the word of who has it instead.
        fn said(&self, mode: Mode) -> String {
            match self.offer(mode) {
                Offer::Engine(claim) => {
                    let claimed = self.words.iter().filter(|(_, seq)| claim.rows.contains(seq));
                    claimed.map(|(word, _)| *word).collect()
                }
                Offer::Primary(why) => format!("-{why}"),
                Offer::Unreadable(seq) => format!("-unreadable {seq}"),
                Offer::Nothing => "-nothing".to_owned(),
            }
        }
    }

    /// 17, 18, 20, and the whole table.
    #[test]
    fn host17_host18_host20_the_claim_table() {
        for (words, attended, away) in [
            ("S", "S", "S"),
            ("Ss", "Ss", "Ss"),
            ("SS", "SS", "SS"),
            // Two in one window, one of which asks.
            ("SD", "-decision", "SD"),
            ("D", "-decision", "D"),
            // A question that waits stays, and takes nothing else with it.
            ("Sd", "S", "Sd"),
            ("C", "-check", "C"),
            ("SC", "-check", "SC"),
            ("Sc", "S", "Sc"),
            ("H", "H", "H"),
            ("Hs", "Hs", "Hs"),
            // What is co-present does not veto a review.
            ("Hcd", "H", "Hcd"),
            ("HC", "-check", "HC"),
            ("Sh", "S", "Sh"),
            ("O", "-own", "-own"),
            ("SO", "-own", "-own"),
            ("So", "S", "S"),
            ("St", "S", "S"),
            ("T", "-empty", "-nothing"),
            ("", "-empty", "-nothing"),
        ] {
            let bench = bench(words);
            assert_eq!(bench.said(Mode::Attended), attended, "{words} attended");
            assert_eq!(bench.said(Mode::Quiet), attended, "{words} quiet");
            assert_eq!(bench.said(Mode::Away), away, "{words} away");
        }
    }

    #[test]
    fn a_question_keeps_every_row_of_its_session() {
        let mut bench = bench("Sss");
        let session = bench.queue.rows[2].session;
        bench.queue.rows[1].session = session;
        bench.facts.get_mut(&session.unwrap()).unwrap().dialog = true;
        assert_eq!(bench.said(Mode::Attended), "S");
        assert_eq!(bench.said(Mode::Away), "Sss");
    }

    #[test]
    fn the_scope_of_a_claim_is_that_of_its_rows() {
        let scoped = bench("Ss");
        let Offer::Engine(claim) = scoped.offer(Mode::Attended) else { panic!() };
        assert_eq!((claim.sessions.len(), claim.unscoped), (2, false));
        let Offer::Engine(claim) = bench("Hs").offer(Mode::Attended) else { panic!() };
        assert!(claim.unscoped);
        let Offer::Engine(claim) = bench("Sc").offer(Mode::Away) else { panic!() };
        assert!(claim.unscoped);
    }

    /// 21.
    #[test]
    fn host21_what_cannot_be_read_or_placed_makes_the_whole_scan_unsafe() {
        let mut lost = bench("Ss");
        lost.facts.remove(&lost.queue.rows[1].session.unwrap());
        assert_eq!(lost.said(Mode::Attended), "-unreadable");
        assert_eq!(lost.said(Mode::Away), "-unreadable 2");
        let mut broken = bench("S");
        broken.queue.broken.push("{".to_owned());
        assert_eq!(broken.said(Mode::Away), "-unreadable 0");
        // What somebody has already is not looked at.
        let mut taken = bench("Ss");
        taken.facts.remove(&taken.queue.rows[1].session.unwrap());
        taken.queue.rows[1].owner = Owner::Primary;
        assert_eq!(taken.said(Mode::Away), "S");
    }

    /// 19.
    #[test]
    fn host19_a_question_in_the_unseen_span_counts_until_it_was_answered() {
        use Unseen::{Answered, State as To};
        let facts = |unseen: &[Unseen]| Facts {
            state: Some(State::Working),
            unseen: unseen.to_vec(),
            ..Facts::default()
        };
        for (unseen, owned) in [
            (&[][..], false),
            (&[To(State::Asking), To(State::Working)], true),
            (&[To(State::Asking), Answered, To(State::Working)], false),
            (&[Answered, To(State::Asking), To(State::Working)], true),
            (&[To(State::Review)], false),
        ] {
            assert_eq!(facts(unseen).decision_owned(), owned, "{unseen:?}");
        }
        assert!(Facts { state: Some(State::Asking), ..Facts::default() }.decision_owned());
        assert!(Facts { held: true, ..Facts::default() }.decision_owned());
        assert!(Facts { dialog: true, ..Facts::default() }.decision_owned());
    }
}
