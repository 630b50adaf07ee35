//! Tables of what a wait does: lines in, steps out.

use std::time::Duration;

use minder_proto::event::{Author, Body};
use minder_proto::id::{MessageId, Party};
use minder_proto::state::State::*;

use super::*;
use crate::follow::news::Why;
use crate::follow::samples::{after, at, item, session, state, turn_end};

struct Rig {
    wait: Wait,
    start: Instant,
}

fn rules() -> Rules {
    Rules {
        filter: Filter::DEFAULT,
        each: false,
        keep_going: false,
        broad: false,
        inbox: false,
        deadline: None,
    }
}

impl Rig {
    fn new(rules: impl FnOnce(&mut Rules), targets: &[(u8, bool)]) -> Self {
        let start = Instant::now();
        let mut set = Rules { deadline: Some(start + Duration::from_secs(60)), ..self::rules() };
        rules(&mut set);
        let mut wait = Wait::new(set);
        for (n, named) in targets {
            wait.join(session(*n), *named, after(1));
        }
        Self { wait, start }
    }

    /// Hears lines as a reader would hand them over, as far as it is asked for them.
    fn hear(&mut self, n: u8, items: &[Item]) -> &mut Self {
        for item in items {
            let read = self.wait.target(session(n)).unwrap().cursor;
            if self.wait.reads(session(n)) && item.after.seq > read.seq {
                self.wait.hear(session(n), item);
            }
        }
        self
    }

    fn close(&mut self, n: u8) -> Option<Aside> {
        let aside = Aside::Closed { session: session(n), at: None, state: None, note: None };
        self.wait.gone(session(n), aside)
    }

    fn step(&self) -> String {
        self.step_at(0)
    }

    fn step_at(&self, seconds: u64) -> String {
        match self.wait.next(self.start + Duration::from_secs(seconds)) {
            Step::Tell(tell) => {
                let one = |t: &Tell| match t {
                    Tell::News(n) => format!("{}@{}", n.to, n.seq),
                    Tell::Letter(l) => format!("letter@{}", l.seq),
                };
                tell.iter().map(one).collect::<Vec<_>>().join(" ")
            }
            Step::Sleep(_) => "sleep".to_owned(),
            Step::End(End::Told { alarm: false }) => "end 0".to_owned(),
            Step::End(End::Deadline) => "end 1".to_owned(),
            Step::End(End::Gone(gone)) => format!("end 2 ({} gone)", gone.len()),
            Step::End(End::Told { alarm: true }) => "end 4".to_owned(),
        }
    }

    fn tell(&mut self) -> &mut Self {
        let Step::Tell(tell) = self.wait.next(self.start) else { panic!("nothing to tell: {}", self.step()) };
        tell.iter().for_each(|t| self.wait.told(t));
        self
    }

    fn refuse(&mut self) -> &mut Self {
        let Step::Tell(tell) = self.wait.next(self.start) else { panic!("nothing to tell: {}", self.step()) };
        tell.iter().for_each(|t| self.wait.refused(t));
        self
    }

    fn seq(&self, n: u8) -> u64 {
        self.wait.target(session(n)).unwrap().cursor.seq
    }
}

fn letter(seq: u64) -> Letter {
    Letter { seq, id: MessageId::now(), from: Party::Operator, about: None, at: at(seq) }
}

fn two_edges() -> [Item; 4] {
    [state(2, Idle, Working), state(3, Working, Review), state(4, Review, Working), state(5, Working, Done)]
}

#[test]
fn one_event_ends_it_and_the_next_is_left() {
    let mut rig = Rig::new(|_| (), &[(1, true)]);
    assert_eq!(rig.step(), "sleep");
    rig.hear(1, &two_edges());
    assert_eq!((rig.step(), rig.seq(1)), ("review@3".to_owned(), 2));
    rig.tell();
    assert_eq!((rig.step(), rig.seq(1)), ("end 0".to_owned(), 3));
}

#[test]
fn the_oldest_event_comes_first_and_the_other_sessions_stay_before_theirs() {
    let mut rig = Rig::new(|_| (), &[(1, true), (2, true)]);
    rig.hear(1, &[state(7, Working, Review)]).hear(2, &[state(4, Idle, Working), state(6, Working, Asking)]);
    assert_eq!(rig.step(), "asking@6");
    rig.tell();
    assert_eq!((rig.step(), rig.seq(2), rig.seq(1)), ("end 0".to_owned(), 6, 1));
}

#[test]
fn an_event_that_another_wait_told_is_passed() {
    let mut rig = Rig::new(|_| (), &[(1, true)]);
    rig.hear(1, &two_edges()).refuse();
    assert_eq!((rig.step(), rig.seq(1)), ("sleep".to_owned(), 3));
    rig.hear(1, &two_edges());
    assert_eq!(rig.step(), "done@5");
}

#[test]
fn time_is_up_only_when_nothing_is_there_to_tell() {
    let mut rig = Rig::new(|_| (), &[(1, true)]);
    assert_eq!((rig.step_at(59), rig.step_at(60)), ("sleep".to_owned(), "end 1".to_owned()));
    rig.hear(1, &[turn_end(2)]);
    assert_eq!(rig.step_at(99), "idle@2");
}

#[test]
fn a_gone_session_ends_it_after_what_it_said() {
    let closed = item(4, Body::Closed { note: None, by: Author::Operator });
    let mut rig = Rig::new(|_| (), &[(1, true), (2, true)]);
    rig.hear(1, &[state(3, Working, Done)]);
    assert_eq!(rig.close(1), None, "its event comes first");
    assert_eq!(rig.step(), "done@3");
    rig.tell();
    assert_eq!(rig.step(), "end 0");
    let mut next = Rig::new(|_| (), &[(1, true), (2, true)]);
    assert!(matches!(next.wait.hear(session(1), &closed), Some(Aside::Closed { .. })));
    assert_eq!(next.close(1), None, "it is said at the end");
    assert_eq!(next.step(), "end 2 (1 gone)");
}

#[test]
fn who_keeps_going_ends_when_none_is_left() {
    let mut rig = Rig::new(|r| r.keep_going = true, &[(1, true), (2, true)]);
    assert!(rig.close(1).is_some(), "narrated");
    assert_eq!(rig.step(), "sleep");
    rig.hear(2, &[state(3, Working, Review)]).tell();
    assert_eq!(rig.step(), "end 0");
    let mut rig = Rig::new(|r| r.keep_going = true, &[(1, true), (2, true)]);
    rig.close(1);
    rig.close(2);
    assert_eq!(rig.step(), "end 2 (2 gone)");
}

#[test]
fn a_swept_session_that_goes_is_narrated() {
    let mut rig = Rig::new(|r| r.broad = true, &[(1, false)]);
    assert!(rig.close(1).is_some());
    assert_eq!((rig.step(), rig.step_at(60)), ("sleep".to_owned(), "end 1".to_owned()));
}

#[test]
fn an_error_that_was_not_asked_for_is_4() {
    let done = Filter::asked("done".parse().unwrap());
    let mut rig = Rig::new(|r| r.filter = done, &[(1, true)]);
    rig.hear(1, &[state(2, Working, Review), state(3, Review, Error)]);
    assert_eq!(rig.step(), "error@3");
    rig.tell();
    assert_eq!(rig.step(), "end 4");
    let mut rig = Rig::new(|_| (), &[(1, true)]);
    rig.hear(1, &[state(3, Working, Error)]).tell();
    assert_eq!(rig.step(), "end 0");
}

#[test]
fn each_has_one_and_all_that_is_there_is_told_at_once() {
    let mut rig = Rig::new(|r| r.each = true, &[(1, true), (2, true), (3, true)]);
    rig.hear(1, &two_edges()).hear(2, &[state(2, Working, Asking)]);
    assert_eq!(rig.step(), "asking@2 review@3");
    rig.tell();
    assert_eq!((rig.step(), rig.seq(1)), ("sleep".to_owned(), 3));
    rig.hear(1, &two_edges());
    assert_eq!((rig.step(), rig.step_at(60)), ("sleep".to_owned(), "end 1".to_owned()));
    rig.hear(3, &[state(9, Working, Done)]).tell();
    assert_eq!(rig.step(), "end 0");
}

#[test]
fn each_that_keeps_going_counts_only_who_is_left() {
    let mut rig = Rig::new(|r| (r.each, r.keep_going) = (true, true), &[(1, true), (2, true)]);
    rig.hear(1, &two_edges()).tell();
    rig.close(2);
    assert_eq!(rig.step(), "end 0");
}

#[test]
fn messages_have_their_place_in_time_and_are_not_heard_unasked() {
    let mut rig = Rig::new(|r| r.inbox = true, &[(1, false)]);
    rig.wait.letter(Some(letter(5)));
    assert_eq!(rig.step(), "letter@5");
    rig.hear(1, &[state(3, Working, Review)]);
    assert_eq!(rig.step(), "review@3");
    let mut rig = Rig::new(|r| r.inbox = true, &[(1, false)]);
    rig.wait.letter(Some(letter(5)));
    rig.tell();
    assert_eq!(rig.step(), "end 0");
    let mut rig = Rig::new(|r| r.inbox = true, &[]);
    rig.wait.letter(Some(letter(5)));
    rig.refuse();
    assert_eq!(rig.step(), "sleep");
    let mut rig = Rig::new(|_| (), &[(1, false)]);
    rig.wait.letter(Some(letter(5)));
    assert_eq!(rig.step(), "sleep");
}

#[test]
fn a_lost_position_with_news_stays_before_them_until_they_are_told() {
    let mut rig = Rig::new(|_| (), &[(1, true), (2, true)]);
    let news = |n: u8, seq: u64| News {
        session: session(n),
        why: Why::Gap,
        seq,
        at: at(seq),
        states: vec![Review],
        from: None,
        to: Review,
        note: None,
        answer: None,
        before: after(seq - 1),
        after: after(seq),
        edge: seq,
    };
    for n in [1, 2] {
        rig.wait.gap(session(n), Some(after(90)), after(9));
        rig.wait.offer(news(n, u64::from(n) + 5));
    }
    assert_eq!(rig.step(), "review@6");
    rig.tell();
    assert_eq!((rig.seq(1), rig.seq(2)), (6, 6));
    assert_eq!(rig.wait.target(session(2)).unwrap().wrong, Some(after(90)));
}
