//! What holds accounts and sessions, shown, and ended by a person.

use std::sync::Arc;

use minder_proto::account::{AccountHold, HoldKind};
use minder_proto::error::{Fault, Kind};
use minder_proto::event::Receipt;
use minder_proto::id::SessionId;
use minder_proto::record::SessionRecord;
use minder_proto::rpc::{AccountListAnswer, AccountReleaseAnswer, OpenCircuit};

use super::clocks;
use crate::delivery::Delivery;
use crate::store::Session;

/// A session whose turns lack a variable, as a hold of its own.
fn without_variables(session: &Session) -> Option<AccountHold> {
    let waits = session.inbox.queue.iter().find(|e| e.receipt == Receipt::Held)?;
    let why = waits.reason.as_deref()?.strip_prefix("auth(")?.strip_suffix(')')?;
    Some(AccountHold {
        account: session.record.label.clone(),
        kind: HoldKind::Auth,
        since: waits.since,
        until: None,
        why: Some(why.to_owned()),
    })
}

impl Delivery {
    /// Holds that are not over, and circuits that are open.
    pub async fn accounts(&self) -> Result<AccountListAnswer, Fault> {
        let now = clocks();
        let answer = self.store.read(move |state| {
            let mut answer = AccountListAnswer { holds: Vec::new(), circuits: Vec::new() };
            for session in state.sessions() {
                let record = &session.record;
                answer.holds.extend(without_variables(session));
                if let Some(hold) = record.account_hold.as_ref().filter(|h| !h.is_over(now.wall)) {
                    answer.holds.push(hold.clone());
                }
                let Some(circuit) = &record.circuit else { continue };
                let Some(open) = &circuit.open else { continue };
                answer.circuits.push(OpenCircuit {
                    session: record.id,
                    label: record.label.clone(),
                    account: record.account().to_owned(),
                    circuit: circuit.clone(),
                    probe_s: open.left(now).as_secs(),
                });
            }
            answer.holds.sort_by(|a, b| (&a.account, a.since).cmp(&(&b.account, b.since)));
            answer.holds.dedup_by(|a, b| a.account == b.account && a.kind == b.kind);
            answer.circuits.sort_by(|a, b| a.label.cmp(&b.label));
            answer
        });
        answer.await
    }

    /// Ends what holds an account and closes its circuits; a session's label or id ends its own.
    pub async fn release(self: &Arc<Self>, name: &str) -> Result<AccountReleaseAnswer, Fault> {
        let known = {
            let runs = &self.memory().runs;
            runs.holds.contains_key(name) || runs.circuits.contains_key(name)
        };
        let wanted = name.to_owned();
        let released = self
            .store
            .write(move |txn| {
                let held = |s: &Session| {
                    let record = &s.record;
                    record.account_hold.is_some()
                        || record.circuit.is_some()
                        || without_variables(s).is_some()
                };
                let fits = |r: &SessionRecord| {
                    r.account() == wanted || r.label == wanted || r.id.to_string() == wanted
                };
                let found: Vec<(SessionId, String)> = txn
                    .state()
                    .sessions()
                    .filter(|s| held(s) && fits(&s.record))
                    .map(|s| (s.record.id, s.record.account().to_owned()))
                    .collect();
                if found.is_empty() && !known {
                    let why = format!("nothing holds an account or session {wanted:?}");
                    return Err(Fault::new(Kind::NotFound, why).hint("minder account list"));
                }
                for (id, _) in &found {
                    let record = &txn.session(*id)?.record;
                    if record.account_hold.is_some() || record.circuit.is_some() {
                        txn.edit(*id, |r| {
                            r.account_hold = None;
                            r.circuit = None;
                        })?;
                    }
                }
                Ok(found)
            })
            .await?;
        let waiting = {
            let mut memory = self.memory();
            memory.runs.release(name);
            for (session, account) in &released {
                memory.runs.release(account);
                memory.pauses.remove(session);
            }
            std::mem::take(&mut memory.runs.waiting)
        };
        let sessions: Vec<SessionId> = released.into_iter().map(|(id, _)| id).collect();
        sessions.iter().chain(&waiting).for_each(|session| self.look_again(*session));
        Ok(AccountReleaseAnswer { sessions })
    }
}
