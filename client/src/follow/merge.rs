//! Puts the lines of many sessions in the order of time, holding only a piece of each. Pure.

use std::collections::{BTreeMap, HashMap};

use minder_proto::id::SessionId;
use minder_proto::stamp::Stamp;

/// Lines that wait for those of others which may be older.
#[derive(Debug)]
pub struct Merge<T> {
    held: BTreeMap<(Stamp, u64), T>,
    /// Sessions of which more is there to be read, and the time of the last line that was.
    unfinished: HashMap<SessionId, Stamp>,
    /// The time of each session's newest line: a clock that was set back does not turn its lines around.
    newest: HashMap<SessionId, Stamp>,
    count: u64,
}

impl<T> Default for Merge<T> {
    fn default() -> Self {
        Self { held: BTreeMap::new(), unfinished: HashMap::new(), newest: HashMap::new(), count: 0 }
    }
}

impl<T> Merge<T> {
    /// Takes the next line of a session.
    pub fn push(&mut self, id: SessionId, at: Stamp, line: T) {
        let at = self.newest.get(&id).map_or(at, |n| at.max(*n));
        self.newest.insert(id, at);
        self.count += 1;
        // Of one instant, first come is first shown.
        self.held.insert((at, self.count), line);
    }

    /// A piece of a session was read; `more` says whether that was all there is.
    pub fn read(&mut self, id: SessionId, more: bool) {
        match self.newest.get(&id).filter(|_| more) {
            Some(at) => {
                self.unfinished.insert(id, *at);
            }
            None => {
                self.unfinished.remove(&id);
            }
        }
    }

    /// The lines before which nothing more can come, oldest first.
    pub fn ready(&mut self) -> Vec<T> {
        let ready = match self.unfinished.values().min() {
            None => std::mem::take(&mut self.held),
            Some(horizon) => {
                let end = self.held.range(..).find(|((at, _), _)| at > horizon).map(|(key, _)| *key);
                match end {
                    None => std::mem::take(&mut self.held),
                    Some(end) => {
                        let later = self.held.split_off(&end);
                        std::mem::replace(&mut self.held, later)
                    }
                }
            }
        };
        if self.held.is_empty() && self.unfinished.is_empty() {
            self.newest.clear();
        }
        ready.into_values().collect()
    }

    /// Sessions of which more must be read before anything else is ready.
    pub fn wanted(&self) -> Vec<SessionId> {
        let Some(horizon) = self.unfinished.values().min() else { return Vec::new() };
        self.unfinished.iter().filter(|(_, at)| *at == horizon).map(|(id, _)| *id).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::follow::samples::{at, session};

    /// Reads `logs`, each a list of times, in pieces of `piece` lines.
    fn merged(logs: &[&[u64]], piece: usize) -> Vec<(usize, u64)> {
        let mut merge = Merge::default();
        let mut read = vec![0; logs.len()];
        let mut out = Vec::new();
        let mut wanted: Vec<usize> = (0..logs.len()).collect();
        while !wanted.is_empty() {
            for n in wanted {
                let lines = logs[n].iter().skip(read[n]).take(piece);
                for second in lines {
                    merge.push(session(n as u8), at(*second), (n, *second));
                    read[n] += 1;
                }
                merge.read(session(n as u8), read[n] < logs[n].len());
            }
            out.extend(merge.ready());
            wanted =
                merge.wanted().iter().map(|id| (0..9).find(|n| session(*n) == *id).unwrap().into()).collect();
        }
        out
    }

    #[test]
    fn pieces_of_any_size_give_the_order_of_time() {
        let logs: [&[u64]; 4] = [&[1, 2, 3, 9, 10, 11], &[2, 8], &[], &[4, 4, 4, 5, 12]];
        for piece in [1, 2, 3, 4, 5, 100] {
            let all = merged(&logs, piece);
            assert!(all.is_sorted_by_key(|(_, second)| *second), "{piece}: {all:?}");
            for (n, log) in logs.iter().enumerate() {
                let own: Vec<u64> =
                    all.iter().filter(|(of, _)| *of == n).map(|(_, second)| *second).collect();
                assert_eq!(own, *log, "{piece}");
            }
        }
    }

    #[test]
    fn a_clock_that_was_set_back_turns_nothing_around() {
        assert_eq!(merged(&[&[5, 2, 6]], 1), [(0, 5), (0, 2), (0, 6)]);
        assert_eq!(merged(&[&[5, 2, 6]], 3), [(0, 5), (0, 2), (0, 6)]);
    }
}
