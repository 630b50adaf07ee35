//! How input is taken: what of it is lost, what an Enter comes to.

use std::time::{Duration, Instant};

use super::look::Look;
use super::step::Habit;

/// All of them, as they stand.
#[derive(Clone, Debug)]
pub struct Habits {
    /// Bracketed pastes.
    pub brackets: bool,
    collapse: Option<(usize, usize)>,
    early: Duration,
    early_is_newline: bool,
    deaf_enters: u32,
    pub deaf_dialog: Duration,
    /// Vi's keys: whether they are commands now.
    pub normal: Option<bool>,
    unready: Option<Unready>,
    pub lines: bool,
    lose_head: usize,
    lose_tail: usize,
    /// Each frame ends in a question to the terminal.
    pub confirms: bool,
}

#[derive(Clone, Copy, Debug)]
struct Unready {
    span: Duration,
    since: Instant,
    swallows: bool,
}

/// What becomes of an Enter in the composer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enter {
    Submits,
    Newline,
    /// Nothing, for this reason.
    Lost(&'static str),
}

impl Default for Habits {
    fn default() -> Self {
        Self {
            brackets: true,
            collapse: None,
            early: Duration::ZERO,
            early_is_newline: false,
            deaf_enters: 0,
            deaf_dialog: Duration::ZERO,
            normal: None,
            unready: None,
            lines: false,
            lose_head: 0,
            lose_tail: 0,
            confirms: false,
        }
    }
}

impl Habits {
    pub fn set(&mut self, habit: &Habit, now: Instant) {
        match habit {
            Habit::Brackets(on) => self.brackets = *on,
            Habit::Collapse(limits) => self.collapse = *limits,
            Habit::EarlyEnter(time, newline) => (self.early, self.early_is_newline) = (*time, *newline),
            Habit::DeafEnter(times) => self.deaf_enters = *times,
            Habit::DeafDialog(time) => self.deaf_dialog = *time,
            Habit::Vi(on) => self.normal = on.then_some(true),
            Habit::NotReady(span, swallows) => {
                self.unready = Some(Unready { span: *span, since: now, swallows: *swallows });
            }
            Habit::Lines(on) => self.lines = *on,
            Habit::LoseHead(many) => self.lose_head = *many,
            Habit::LoseTail(many) => self.lose_tail = *many,
            Habit::Confirms(on) => self.confirms = *on,
        }
    }

    /// What is known of a harness's own.
    pub fn of(&mut self, look: Look) {
        self.collapse = match look {
            Look::Claude => Some((4, 800)),
            Look::Codex => Some((usize::MAX, 1000)),
            Look::Plain => None,
        };
    }

    /// The program is up from now on.
    pub fn begin(&mut self, now: Instant) {
        if let Some(unready) = &mut self.unready {
            unready.since = now;
        }
    }

    fn unready(&self, now: Instant) -> Option<Unready> {
        self.unready.filter(|unready| now < unready.since + unready.span)
    }

    /// Whether all input is lost.
    pub fn swallows(&self, now: Instant) -> bool {
        self.unready(now).is_some_and(|unready| unready.swallows)
    }

    /// Whether a command is taken for text.
    pub fn knows_no_commands(&self, now: Instant) -> bool {
        self.unready(now).is_some()
    }

    /// What of a paste arrives.
    pub fn arrives<'a>(&self, paste: &'a str) -> &'a str {
        let at = |n: usize| paste.char_indices().nth(n).map_or(paste.len(), |(at, _)| at);
        let many = if self.lose_tail > 0 { paste.chars().count() } else { usize::MAX };
        let (start, end) = (at(self.lose_head), at(many.saturating_sub(self.lose_tail)));
        paste.get(start..end).unwrap_or_default()
    }

    pub fn collapses(&self, text: &str) -> bool {
        self.collapse.is_some_and(|(lines, chars)| {
            text.matches('\n').count() >= lines || text.len() > chars && text.chars().count() > chars
        })
    }

    /// An Enter, when text came last at `text`.
    pub fn enter(&mut self, text: Option<Instant>, now: Instant) -> Enter {
        if text.is_some_and(|text| now.duration_since(text) < self.early) {
            return if self.early_is_newline { Enter::Newline } else { Enter::Lost("early") };
        }
        if self.normal == Some(true) {
            return Enter::Lost("vi");
        }
        if self.deaf_enters > 0 {
            self.deaf_enters -= 1;
            return Enter::Lost("ignored");
        }
        Enter::Submits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_enter_submits_where_nothing_is_in_its_way() {
        let start = Instant::now();
        let after = |ms| start + Duration::from_millis(ms);
        let mut habits = Habits::default();
        assert_eq!(habits.enter(Some(start), start), Enter::Submits);
        habits.set(&Habit::EarlyEnter(Duration::from_millis(30), false), start);
        habits.set(&Habit::DeafEnter(1), start);
        assert_eq!(habits.enter(Some(start), after(29)), Enter::Lost("early"));
        assert_eq!(habits.enter(Some(start), after(30)), Enter::Lost("ignored"));
        assert_eq!(habits.enter(Some(start), after(30)), Enter::Submits);
        habits.set(&Habit::EarlyEnter(Duration::from_millis(30), true), start);
        assert_eq!(habits.enter(Some(start), after(1)), Enter::Newline);
        habits.set(&Habit::Vi(true), start);
        assert_eq!(habits.enter(None, after(1)), Enter::Lost("vi"));
    }

    #[test]
    fn pastes_lose_their_ends_and_collapse_by_size() {
        let mut habits = Habits::default();
        let now = Instant::now();
        assert_eq!(habits.arrives("\u{4f60}\u{597d}!"), "\u{4f60}\u{597d}!");
        habits.set(&Habit::LoseHead(1), now);
        habits.set(&Habit::LoseTail(1), now);
        assert_eq!(habits.arrives("\u{4f60}\u{597d}!"), "\u{597d}");
        assert_eq!(habits.arrives("a"), "");
        assert!(!habits.collapses(&"x".repeat(5000)));
        habits.of(Look::Claude);
        assert!(habits.collapses("1\n2\n3\n4\n5") && !habits.collapses("1\n2\n3\n4"));
        assert!(habits.collapses(&"x".repeat(801)) && !habits.collapses(&"x".repeat(800)));
        habits.set(&Habit::NotReady(Duration::from_secs(1), false), now);
        assert!(!habits.swallows(now) && habits.knows_no_commands(now));
        assert!(!habits.knows_no_commands(now + Duration::from_secs(1)));
    }
}
