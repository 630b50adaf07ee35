//! Several looks at a store that may change meanwhile. What is found counts once two looks in a row find it and the
//! journal names no change of those files in between.

use std::collections::{HashMap, HashSet};

use minder_proto::id::SessionId;

use super::finding::{Finding, Weight};
use crate::store::Recovered;

/// What is found in so many looks in a row is told, as what is not sure, even if its files changed all the time.
const PERSISTENT: usize = 4;

/// What the looks so far came to.
#[derive(Debug, Default)]
pub struct Rounds {
    sure: HashSet<Finding>,
    fresh: HashMap<Finding, Fresh>,
}

#[derive(Clone, Copy, Debug)]
struct Fresh {
    /// How many looks in a row found it.
    looks: usize,
    /// True if nothing it was concluded from changed since the look before the next.
    steady: bool,
}

impl Rounds {
    /// Takes in what a look found.
    pub fn found(&mut self, findings: Vec<Finding>) {
        let before = std::mem::take(&mut self.fresh);
        for finding in findings.into_iter().filter(|f| !self.sure.contains(f)).collect::<Vec<_>>() {
            match before.get(&finding) {
                Some(fresh) if fresh.steady => {
                    self.sure.insert(finding);
                }
                known => {
                    let looks = known.map_or(0, |f| f.looks) + 1;
                    self.fresh.insert(finding, Fresh { looks, steady: true });
                }
            }
        }
    }

    /// Notes what was committed since the journal was read for the last look.
    pub fn changed(&mut self, changed: &Changed) {
        for (finding, fresh) in &mut self.fresh {
            fresh.steady = !units(finding).any(|unit| changed.has(&unit));
        }
    }

    /// True if another look would tell nothing more.
    pub fn is_settled(&self) -> bool {
        self.fresh.is_empty()
    }

    /// The files that another look has to read again.
    pub fn doubtful(&self) -> HashSet<String> {
        self.fresh.keys().flat_map(units).collect()
    }

    /// Everything that counts, in the order of paths.
    pub fn finish(self) -> Vec<Finding> {
        let persistent =
            self.fresh.into_iter().filter(|(f, fresh)| fresh.looks >= PERSISTENT && f.weight > Weight::Note);
        let unsure = persistent.map(|(f, _)| Finding {
            what: format!("{} (not sure: it changed whenever it was looked at)", f.what),
            weight: Weight::Note,
            ..f
        });
        let mut findings: Vec<Finding> = self.sure.into_iter().chain(unsure).collect();
        findings.sort_by(|a, b| order(a).cmp(&order(b)));
        findings
    }
}

/// What one commit may change at once: a session's folder, or a file of the store.
pub fn unit(path: &str) -> String {
    let mut parts = path.split('/');
    match (parts.next(), parts.next()) {
        (Some("sessions" | "trash"), Some(id)) => format!("sessions/{id}"),
        (Some("operator"), _) => "operator".to_owned(),
        _ => path.to_owned(),
    }
}

fn units(finding: &Finding) -> impl Iterator<Item = String> + '_ {
    let also = finding.also.iter().map(|id: &SessionId| format!("sessions/{id}"));
    std::iter::once(unit(&finding.path)).chain(also)
}

/// What was committed between two readings of the journal.
#[derive(Debug)]
pub enum Changed {
    /// A checkpoint has removed what would tell.
    Anything,
    /// Just this.
    These(HashSet<String>),
}

impl Changed {
    /// Compares two readings.
    pub fn between(before: &Recovered, now: &Recovered) -> Self {
        if now.first() > before.next() {
            return Self::Anything;
        }
        let ops = now.since(before.next()).iter().flatten();
        Self::These(ops.map(|op| unit(&op.path())).collect())
    }

    fn has(&self, unit: &str) -> bool {
        match self {
            Self::Anything => true,
            Self::These(units) => units.contains(unit),
        }
    }
}

/// In the order of paths, and of lines within a file.
fn order(finding: &Finding) -> (Vec<&str>, Option<u64>, &str) {
    let number = finding.what.strip_prefix("line ").or_else(|| finding.what.strip_prefix("lines "));
    let number = number.and_then(|rest| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok());
    (finding.path.split('/').collect(), number, &finding.what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(path: &str, what: &str) -> Finding {
        Finding { path: path.into(), what: what.into(), weight: Weight::Damage, also: Vec::new() }
    }

    /// Runs looks, each with what it finds and what changed after it.
    fn told(looks: &[(&[&str], &[&str])]) -> Vec<String> {
        let mut rounds = Rounds::default();
        for (found, changed) in looks {
            rounds.found(found.iter().map(|path| finding(path, "broken")).collect());
            rounds.changed(&Changed::These(changed.iter().map(|c| (*c).to_owned()).collect()));
        }
        rounds.finish().into_iter().map(|f| format!("{}: {}", f.path, f.what)).collect()
    }

    #[test]
    fn only_what_is_found_again_unchanged_counts() {
        assert_eq!(told(&[(&["a"], &[]), (&["a"], &[])]), ["a: broken"]);
        assert!(told(&[(&["a"], &[])]).is_empty(), "once is not enough");
        assert!(told(&[(&["a"], &[]), (&[], &[]), (&["a"], &[])]).is_empty(), "nor twice with a break");
        assert!(told(&[(&["a"], &["a"]), (&["a"], &[])]).is_empty(), "nor where it changed");
        assert_eq!(told(&[(&["a"], &["a"]), (&["a"], &[]), (&["a"], &[])]), ["a: broken"]);
        let (path, unit) = ("trash/x/queue.jsonl", "sessions/x");
        assert!(told(&[(&[path], &[unit]), (&[path], &[])]).is_empty(), "a session is one wherever it lies");
        assert_eq!(told(&[(&[path], &["sessions/y"]), (&[path], &[])]).len(), 1);
    }

    #[test]
    fn what_never_rests_is_told_as_not_sure() {
        let restless: (&[&str], &[&str]) = (&["a"], &["a"]);
        assert!(told(&[restless; PERSISTENT - 1]).is_empty());
        assert_eq!(told(&[restless; 8]), ["a: broken (not sure: it changed whenever it was looked at)"]);
    }

    #[test]
    fn lines_are_in_the_order_of_files_and_numbers() {
        let mut all = [
            finding("a/b", "line 10: x"),
            finding("a.b", "x"),
            finding("a/b", "line 9: x"),
            finding("a", "x"),
            finding("a/b", "all of it"),
        ];
        all.sort_by(|a, b| order(a).cmp(&order(b)));
        let shown: Vec<_> = all.iter().map(|f| format!("{} {}", f.path, f.what)).collect();
        assert_eq!(shown, ["a x", "a/b all of it", "a/b line 9: x", "a/b line 10: x", "a.b x"]);
    }
}
