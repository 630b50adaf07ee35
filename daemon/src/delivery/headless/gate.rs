//! Whether a session's next turn may begin, and what is said of its messages where it may not. Pure.

use std::collections::HashMap;
use std::time::Duration;

use minder_proto::account::{AccountHold, Clocks, HoldKind, Window};
use minder_proto::hold::Hold;
use minder_proto::id::{SessionId, TurnId};
use minder_proto::record::SessionRecord;

/// What holds, or may hold, more than one session. Kept beside the store, and made of its records at a start.
#[derive(Debug, Default)]
pub struct Runs {
    /// The turns that sessions have on their way.
    pub turns: HashMap<SessionId, TurnId>,
    /// Holds by account, each with the session whose turn met it.
    pub holds: HashMap<String, (SessionId, AccountHold)>,
    /// Circuits that a used-up quota opened, by account, each with the session whose turn met it.
    pub circuits: HashMap<String, (SessionId, Window)>,
    /// The session that tries whether an account's circuit can be closed.
    pub probes: HashMap<String, SessionId>,
    /// Sessions that wait for one of these.
    pub waiting: Vec<SessionId>,
}

/// Why no turn begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The reason in the ledger.
    pub reason: String,
    /// When to look again, where no event says so.
    pub again: Option<Duration>,
}

impl Held {
    fn by(hold: Hold) -> Self {
        Self { reason: hold.to_string(), again: None }
    }
}

impl Runs {
    /// Whether a turn of this session may begin now, with so many at once in all.
    pub fn gate(&self, record: &SessionRecord, capacity: usize, now: Clocks<'_>) -> Result<(), Held> {
        if self.turns.contains_key(&record.id) || record.turn.is_some() {
            return Err(Held::by(Hold::Busy));
        }
        // Another process has its conversation: nobody but a person knows when that has ended.
        if let Some(hold) = record.account_hold.as_ref().filter(|hold| hold.kind == HoldKind::InUse) {
            return Err(Held { reason: hold.reason(), again: None });
        }
        let account = record.account();
        let another_tries = self.probes.get(account).is_some_and(|probe| *probe != record.id);
        match self.holds.get(account) {
            Some((_, hold)) if !hold.is_over(now.wall) => {
                let again = hold.until.map(|until| now.wall.age(until));
                return Err(Held { reason: hold.reason(), again });
            }
            // Its time is over, and one turn shows whether it is: not all of them at once.
            Some((_, hold)) if another_tries => {
                return Err(Held { reason: hold.reason(), again: None });
            }
            _ => {}
        }
        let own = record.circuit.as_ref().and_then(|c| c.open.as_ref());
        let shared = self.circuits.get(account).map(|(_, window)| window);
        let left = own.into_iter().chain(shared).map(|window| window.left(now)).max();
        let circuit = |again| Held { again, ..Held::by(Hold::Circuit) };
        match left {
            Some(left) if !left.is_zero() => return Err(circuit(Some(left))),
            // One tries for all of them.
            Some(_) if another_tries => return Err(circuit(None)),
            _ => {}
        }
        if self.turns.len() >= capacity {
            return Err(Held::by(Hold::Capacity));
        }
        Ok(())
    }

    /// A turn begins.
    pub fn begin(&mut self, record: &SessionRecord, turn: TurnId) {
        self.turns.insert(record.id, turn);
        let account = record.account();
        if self.circuits.contains_key(account) || self.holds.contains_key(account) {
            self.probes.insert(account.to_owned(), record.id);
        }
    }

    /// This turn of a session is over, or was none. An earlier one that is told of late ends nothing.
    pub fn end(&mut self, session: SessionId, turn: TurnId) {
        if self.turns.get(&session) == Some(&turn) {
            self.probes.retain(|_, probe| *probe != session);
            self.turns.remove(&session);
        }
    }

    /// A session is gone, and what only its record said of its account with it.
    pub fn forget(&mut self, session: SessionId) {
        self.holds.retain(|_, (of, _)| *of != session);
        self.circuits.retain(|_, (of, _)| *of != session);
    }

    /// What a record says of its account counts for all its sessions.
    pub fn learn(&mut self, record: &SessionRecord) {
        if let Some(hold) = record.account_hold.as_ref().filter(|hold| hold.kind != HoldKind::InUse) {
            self.holds.insert(hold.account.clone(), (record.id, hold.clone()));
        }
        let account = record.account();
        let quota = record.circuit.as_ref().filter(|c| c.class == minder_proto::turn::Class::Quota);
        match quota.and_then(|c| c.open.clone()) {
            Some(window) => {
                self.circuits.insert(account.to_owned(), (record.id, window));
            }
            None if self.circuits.get(account).is_some_and(|(of, _)| *of == record.id) => {
                self.circuits.remove(account);
            }
            None => {}
        }
    }

    /// An account goes on.
    pub fn release(&mut self, account: &str) {
        self.holds.remove(account);
        self.circuits.remove(account);
    }
}

#[cfg(test)]
mod tests {
    use minder_proto::account::Circuit;
    use minder_proto::stamp::Stamp;
    use minder_proto::turn::Class;

    use super::*;

    fn record(account: &str) -> SessionRecord {
        let id = SessionId::random();
        serde_json::from_value(serde_json::json!({
            "id": id, "label": "w", "title": "w", "dir": "/", "channel": {"kind": "headless"}, "account": account,
            "created": Stamp::now(), "state": "idle", "state_at": Stamp::now(), "state_by": "minder", "last_seq": 1,
        }))
        .unwrap()
    }

    fn at(mono_ms: u64) -> Clocks<'static> {
        Clocks { boot: "b", mono_ms, wall: Stamp::from_millis(i64::try_from(mono_ms).unwrap()) }
    }

    fn reason(runs: &Runs, record: &SessionRecord, mono_ms: u64) -> Option<String> {
        runs.gate(record, 2, at(mono_ms)).err().map(|held| held.reason)
    }

    #[test]
    fn so_many_at_once_and_one_of_a_session() {
        let (a, b, c) = (record("x"), record("x"), record("x"));
        let mut runs = Runs::default();
        let turn = TurnId::now();
        runs.begin(&a, turn);
        assert_eq!(reason(&runs, &a, 0).as_deref(), Some("busy"));
        assert_eq!(reason(&runs, &b, 0), None);
        runs.begin(&b, TurnId::now());
        assert_eq!(reason(&runs, &c, 0).as_deref(), Some("capacity"));
        runs.end(a.id, TurnId::now());
        assert_eq!(reason(&runs, &c, 0).as_deref(), Some("capacity"), "another turn was over");
        runs.end(a.id, turn);
        assert_eq!(reason(&runs, &c, 0), None);
    }

    #[test]
    fn a_hold_of_an_account_holds_all_its_sessions_and_no_others() {
        let (a, b, other) = (record("x"), record("x"), record("y"));
        let hold = AccountHold {
            account: "x".to_owned(),
            kind: HoldKind::UsageLimit,
            since: Stamp::from_millis(0),
            until: Some(Stamp::from_millis(5_000)),
            why: None,
        };
        let mut runs = Runs::default();
        let held = SessionRecord { account_hold: Some(hold), ..a };
        runs.learn(&held);
        assert!(reason(&runs, &b, 1_000).unwrap().starts_with("usage-limit("));
        assert_eq!(runs.gate(&b, 2, at(1_000)).unwrap_err().again, Some(Duration::from_secs(4)));
        assert_eq!(reason(&runs, &other, 1_000), None);
        assert_eq!(reason(&runs, &b, 5_000), None);
        let probe = TurnId::now();
        runs.begin(&b, probe);
        assert!(
            reason(&runs, &held, 5_000).unwrap().starts_with("usage-limit("),
            "one tries, not all at once"
        );
        runs.end(b.id, probe);
        // Whoever closes the session that met it ends it.
        runs.forget(held.id);
        assert_eq!(reason(&runs, &b, 1_000), None);
    }

    #[test]
    fn of_an_account_without_quota_one_session_tries_for_all() {
        let (mut a, b) = (record("x"), record("x"));
        a.circuit = Circuit::after(None, Class::Quota, at(0));
        let mut runs = Runs::default();
        runs.learn(&a);
        assert_eq!(reason(&runs, &b, 59_999).as_deref(), Some("circuit"));
        assert_eq!(reason(&runs, &b, 60_000), None);
        let probe = TurnId::now();
        runs.begin(&b, probe);
        assert_eq!(reason(&runs, &a, 60_000).as_deref(), Some("circuit"));
        runs.end(b.id, probe);
        a.circuit = None;
        runs.learn(&a);
        assert_eq!(reason(&runs, &b, 0), None);
    }
}
