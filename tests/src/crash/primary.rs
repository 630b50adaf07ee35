//! A primary with a host: it drains its wake queue and acknowledges what it was shown. What was acknowledged is gone, and
//! every move that somebody should look at is in a row or was acknowledged.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use minder_client::rpc::Client;
use minder_proto::id::SessionId;
use minder_proto::layout::Home;
use minder_proto::rpc;
use serde_json::Value;

use super::Findings;
use super::clients::{Agent, Outcome, Step, call};
use super::picture;

/// One that drains and acknowledges.
#[derive(Clone, Debug)]
pub struct Primary {
    /// Who it is.
    pub agent: Agent,
    /// Rows that it was told are gone.
    pub acknowledged: BTreeSet<u64>,
}

impl Primary {
    /// One that was shown nothing.
    pub fn new(agent: Agent) -> Self {
        Self { agent, acknowledged: BTreeSet::new() }
    }

    /// Drains, and acknowledges what it was shown.
    pub fn step(&mut self, client: &mut Client, findings: &mut Findings) -> Result<Step> {
        let caller = self.agent.caller();
        let drain = rpc::HostDrain { caller: caller.clone(), session: None };
        let shown = match call(client, &drain)? {
            Outcome::Told(shown) => shown,
            Outcome::Lost => return Ok(Step::Gone),
            Outcome::Busy => return Ok(Step::Idle),
        };
        let drained = rpc::HostDrained {
            caller: caller.clone(),
            session: None,
            notices: shown.notice_ids,
            unseen: shown.unseen_lines,
            broken: shown.broken_count,
        };
        if !matches!(call(client, &drained)?, Outcome::Told(_)) {
            return Ok(Step::Gone);
        }
        if shown.broken_count > 0 {
            findings.add(format!("{} rows cannot be read", shown.broken_count));
        }
        if shown.through == 0 {
            return Ok(Step::Idle);
        }
        let (through, generation) = (shown.through, shown.generation);
        match call(client, &rpc::HostAck { caller, session: None, through, generation })? {
            Outcome::Told(answer) => {
                for row in answer.rows {
                    if !self.acknowledged.insert(row) {
                        findings.add(format!("row {row} was acknowledged twice"));
                    }
                }
                Ok(Step::More)
            }
            Outcome::Lost => Ok(Step::Gone),
            Outcome::Busy => Ok(Step::Idle),
        }
    }

    /// The files against what it was told: `moves` are the sessions that it supervises, each with the lines of its
    /// moves that somebody should look at.
    pub fn judge(&self, home: &Home, moves: &[(SessionId, Vec<u64>)], findings: &mut Findings) -> Result<()> {
        let id = self.agent.id;
        let pages = picture::read(home, id, findings)?.context("the primary is there")?;
        let file = home.host(id).join("queue.json");
        let queue: Value = match std::fs::read(&file) {
            Ok(bytes) => serde_json::from_slice(&bytes).with_context(|| file.display().to_string())?,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Value::Null,
            Err(e) => return Err(e).with_context(|| file.display().to_string()),
        };
        let rows = queue["rows"].as_array().cloned().unwrap_or_default();
        let number = |row: &Value| row["seq"].as_u64().unwrap_or_default();
        let numbers: BTreeSet<u64> = rows.iter().map(number).collect();
        if numbers.len() != rows.len() {
            findings.add(format!("of {} rows some have one number", rows.len()));
        }
        for row in self.acknowledged.intersection(&numbers) {
            findings.add(format!("row {row} was acknowledged and is still there"));
        }
        for (session, lines) in moves {
            let Some(newest) = lines.last() else { continue };
            let of = |row: &&Value| row["session"] == session.to_string();
            let in_row =
                rows.iter().filter(of).filter_map(|row| row["ev"].as_u64()).max().unwrap_or_default();
            let covered = queue["through"][session.to_string()]["covered"].as_u64().unwrap_or_default();
            if in_row.max(covered) != *newest {
                findings.add(format!(
                    "of {session} row {in_row} and acknowledgement {covered} are the newest, its line is {newest}"
                ));
            }
        }
        // A notice that waits is behind a row, or is one that no row is made of.
        let behind: BTreeSet<&str> = rows
            .iter()
            .filter_map(|row| row["mids"].as_array())
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        for (_, notice) in pages.of_kind("message") {
            let (mid, about) = (notice["id"].as_str().unwrap_or_default(), &notice["about"]);
            let asks = about["to"] == "review";
            if pages.waiting.contains_key(mid) && asks && !behind.contains(mid) {
                findings.add(format!("notice {mid} waits and no row is made of it"));
            }
            if pages.settled.contains(mid) && behind.contains(mid) {
                findings.add(format!("notice {mid} is settled and its row is there"));
            }
        }
        Ok(())
    }
}
