//! What one client said, in order, and what became of it.

use super::Findings;

/// What became of something that was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The client was told that it is done: as this line, where it was told that.
    Told(Option<u64>),
    /// The daemon went away before it answered: it may be done or not, wholly.
    Open,
}

/// One thing that was said.
#[derive(Clone, Debug)]
pub struct Said {
    /// What tells it from everything else that anybody says.
    pub mark: String,
    /// The idempotency key: what is open and has one is said again.
    pub key: Option<String>,
    /// What became of it.
    pub fate: Fate,
}

/// Everything that one client said to one place.
#[derive(Clone, Debug, Default)]
pub struct History {
    said: Vec<Said>,
    /// How many were begun: marks are never used again.
    begun: u64,
}

impl History {
    /// The number of what is said next.
    pub fn number(&mut self) -> u64 {
        self.begun += 1;
        self.begun
    }

    /// What is open and is said again before anything else.
    pub fn again(&self) -> Option<&Said> {
        self.said.last().filter(|s| s.fate == Fate::Open && s.key.is_some())
    }

    /// Something is about to be said.
    pub fn begin(&mut self, mark: String, key: Option<String>) {
        self.said.push(Said { mark, key, fate: Fate::Open });
    }

    /// What was begun last is done.
    pub fn told(&mut self, line: Option<u64>) {
        self.said.last_mut().expect("an answer follows a call").fate = Fate::Told(line);
    }

    /// What was begun last was refused: it never happens.
    pub fn refused(&mut self) {
        self.said.pop();
    }

    /// How much was told as done.
    pub fn done(&self) -> usize {
        self.said.iter().filter(|s| s.fate != Fate::Open).count()
    }

    /// Compares with what the files have, in the order of lines: the line and the mark. What was open and is not there
    /// never happens any more, unless it is said again.
    pub fn compare(&mut self, who: &str, found: &[(u64, String)], findings: &mut Findings) {
        let mut found = found.iter().peekable();
        let mut kept = Vec::with_capacity(self.said.len());
        let mut lost = 0;
        for mut said in std::mem::take(&mut self.said) {
            let there = found.next_if(|(_, mark)| *mark == said.mark);
            match (there, said.fate) {
                (Some((line, _)), Fate::Told(told)) => {
                    if told.is_some_and(|told| told != *line) {
                        findings
                            .add(format!("{who}: {:?} is line {line} and was told as {told:?}", said.mark));
                    }
                    kept.push(said);
                }
                (Some((line, _)), Fate::Open) if said.key.is_none() => {
                    said.fate = Fate::Told(Some(*line));
                    kept.push(said);
                }
                (Some(_), Fate::Open) => kept.push(said),
                (None, Fate::Told(_)) => {
                    lost += 1;
                    if lost <= 3 {
                        findings.add(format!(
                            "{who}: {:?} was told as done and is lost or out of order",
                            said.mark
                        ));
                    }
                }
                (None, Fate::Open) => kept.extend(said.key.is_some().then_some(said)),
            }
        }
        for (line, mark) in found.take(3) {
            findings.add(format!(
                "{who}: line {line}, {mark:?}, is there twice, out of order, or was never said"
            ));
        }
        self.said = kept;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(fates: &[(&str, bool, Fate)]) -> History {
        let mut history = History::default();
        for (mark, keyed, fate) in fates {
            history.begin((*mark).to_owned(), keyed.then(|| "k".to_owned()));
            if let Fate::Told(line) = fate {
                history.told(*line);
            }
        }
        history
    }

    fn compared(history: &mut History, found: &[(u64, &str)]) -> usize {
        let found: Vec<_> = found.iter().map(|(line, mark)| (*line, (*mark).to_owned())).collect();
        let mut findings = Findings::default();
        history.compare("x", &found, &mut findings);
        findings.len()
    }

    #[test]
    fn what_was_told_is_there_once_and_in_order_and_nothing_else_is() {
        let told = Fate::Told(None);
        let all = [("a", false, Fate::Told(Some(1))), ("b", false, told), ("c", false, told)];
        assert_eq!(compared(&mut history(&all), &[(1, "a"), (2, "b"), (3, "c")]), 0);
        assert_eq!(compared(&mut history(&all), &[(9, "a"), (10, "b"), (11, "c")]), 1, "another line");
        assert_eq!(compared(&mut history(&all), &[(1, "a"), (2, "b")]), 1, "lost");
        assert_eq!(compared(&mut history(&all), &[(1, "a"), (2, "b"), (3, "b"), (4, "c")]), 3, "twice");
        assert!(compared(&mut history(&all), &[(1, "a"), (2, "c"), (3, "b")]) > 0, "order");
        assert_eq!(compared(&mut history(&all), &[(1, "a"), (2, "b"), (3, "c"), (4, "d")]), 1, "invented");
    }

    #[test]
    fn what_is_open_may_be_there_and_is_decided_then() {
        let open = [("a", false, Fate::Told(None)), ("b", false, Fate::Open)];
        for (first, second, wrong) in [(true, true, 0), (true, false, 1), (false, true, 1), (false, false, 0)]
        {
            let mut history = history(&open);
            let found = |there: bool| if there { vec![(1, "a"), (2, "b")] } else { vec![(1, "a")] };
            assert_eq!(compared(&mut history, &found(first)), 0);
            assert_eq!(compared(&mut history, &found(second)), wrong, "{first} {second}");
        }
        let mut again = history(&[("a", true, Fate::Open)]);
        assert_eq!(compared(&mut again, &[]), 0);
        assert_eq!(again.again().map(|s| s.mark.as_str()), Some("a"));
        again.told(Some(4));
        assert_eq!(compared(&mut again, &[(4, "a")]), 0);
    }
}
