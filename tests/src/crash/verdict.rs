//! The histories against the files: nothing that was told is lost, nothing is there twice, each client's order is kept,
//! nothing is there that nobody said, and what belongs together is there together.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use minder_client::rpc::Client;
use minder_proto::id::SessionId;

use super::Findings;
use super::clients::Closing;
use super::daemon::LIMIT;
use super::fleet::Fleet;
use super::followers::Stream;
use super::history::History;
use super::picture::{self, Pages};
use crate::process;

impl Fleet {
    /// Looks at everything, with a daemon that has just started and that nobody else speaks to.
    pub fn judge(&mut self, client: &mut Client, stream: &Stream) -> Result<Findings> {
        let mut findings = Findings::default();
        // What followers were told of before this is older; they have told all of it when they tell this.
        self.probe.step(client)?;
        self.messages(&mut findings)?;
        self.moves(&mut findings, stream)?;
        self.acknowledged(&mut findings)?;
        self.closed(&mut findings)?;
        self.hosted(&mut findings)?;
        self.waited(&mut findings)?;
        for path in picture::temporary(&self.home()) {
            findings.add(format!("{}: is left over", path.display()));
        }
        let spool = std::fs::read_dir(self.home().spool()).into_iter().flatten().flatten();
        for entry in spool {
            findings.add(format!("{}: is still in the spool", entry.path().display()));
        }
        let quarantine = std::fs::read_dir(self.home().quarantine()).into_iter().flatten().flatten();
        for entry in quarantine {
            findings.add(format!("{}: was moved aside", entry.path().display()));
        }
        Ok(findings)
    }

    /// `store check`, of a store that somebody serves or that was left by a crash.
    pub fn check(&self, findings: &mut Findings) -> Result<()> {
        let mut check = self.isolated.minderd()?;
        check.args(["--check"]).arg(self.home().root());
        let ran = process::run(&mut check, b"", LIMIT)?;
        if !ran.status.success() {
            let said = [ran.stdout, ran.stderr].map(|out| String::from_utf8_lossy(&out).into_owned());
            findings.add(format!(
                "store check: {}",
                said.join(" ").lines().take(5).collect::<Vec<_>>().join("; ")
            ));
        }
        Ok(())
    }

    fn pages(&self, id: SessionId, findings: &mut Findings) -> Result<Pages> {
        let pages = picture::read(&self.home(), id, findings)?;
        if pages.is_none() {
            findings.add(format!("session {id} is gone"));
        }
        Ok(pages.unwrap_or_default())
    }

    /// Each receiver has what each sender said to it, and nothing from anybody else.
    fn messages(&mut self, findings: &mut Findings) -> Result<()> {
        for number in 0..self.takers.len() - 1 {
            let id = self.takers[number].agent.id;
            let pages = self.pages(id, findings)?;
            let mut by_author: BTreeMap<String, Vec<(u64, String)>> = BTreeMap::new();
            for (seq, message) in pages.of_kind("message").filter(|(_, m)| m["about"].is_null()) {
                let mark = message["body"].as_str().unwrap_or_default().lines().next().unwrap_or_default();
                let author = mark.split(' ').next().unwrap_or_default();
                by_author.entry(author.to_owned()).or_default().push((seq, mark.to_owned()));
            }
            let mut compare = |name: &str, history: &mut History| {
                let found = by_author.remove(name).unwrap_or_default();
                history.compare(&format!("{name} to receiver-{number}"), &found, findings);
            };
            for sender in &mut self.senders {
                compare(&sender.name, &mut sender.to[number].1);
            }
            for spooler in self.spoolers.iter_mut().filter(|s| s.receiver.id == id) {
                compare(&spooler.name, &mut spooler.left);
            }
            for (author, found) in by_author {
                findings.add(format!(
                    "receiver-{number}: {} messages of {author:?}, who said nothing",
                    found.len()
                ));
            }
        }
        Ok(())
    }

    /// Each declarer's moves are in its timeline; each watcher was told of each, and of nothing else; so were followers.
    fn moves(&mut self, findings: &mut Findings, stream: &Stream) -> Result<()> {
        let home = self.home();
        let mut found_of: BTreeMap<SessionId, Vec<u64>> = BTreeMap::new();
        let mut watched: BTreeMap<SessionId, Vec<SessionId>> = BTreeMap::new();
        for declarer in self.all_declarers() {
            let id = declarer.agent.id;
            let Some(pages) = picture::read(&home, id, findings)? else {
                findings.add(format!("session {id} is gone"));
                continue;
            };
            let found: Vec<(u64, String)> = pages
                .of_kind("state")
                .map(|(seq, line)| (seq, line["note"].as_str().unwrap_or_default().to_owned()))
                .collect();
            declarer.moves.compare(&declarer.name, &found, findings);
            for watcher in &declarer.watchers {
                watched.entry(*watcher).or_default().push(id);
            }
            found_of.insert(id, found.into_iter().map(|(seq, _)| seq).collect());
        }
        for (watcher, targets) in watched {
            let pages = self.pages(watcher, findings)?;
            for target in targets {
                let (told, moves) = (pages.notices(target, "state"), &found_of[&target]);
                if told != *moves {
                    let (first, second) = (differ(&told, moves), differ(moves, &told));
                    findings.add(format!(
                        "watcher {watcher}: of {target} it was told {first:?} beyond, and not told {second:?} of, {} moves",
                        moves.len()
                    ));
                }
            }
            whole(watcher, &pages, findings);
        }
        let probe = self.probe.agent.id;
        let newest = found_of.get(&probe).and_then(|lines| lines.last().copied()).unwrap_or(0);
        // Without a line there is nothing to tell, and that is found above.
        if newest > 0 && !stream.tells(probe, newest, LIMIT / 2) {
            findings.add("a stream does not tell a move that was made after the start");
        }
        for id in self.followed() {
            let told = stream.told(id);
            if let Some(moves) = found_of.get(&id).filter(|moves| **moves != told) {
                let (first, second) = (differ(&told, moves), differ(moves, &told));
                findings.add(format!("a stream told {first:?} of {id} beyond its moves, and {second:?} not"));
            }
        }
        Ok(())
    }

    /// What was acknowledged is settled and waits no more; nothing else is settled.
    fn acknowledged(&mut self, findings: &mut Findings) -> Result<()> {
        for taker in &self.takers {
            let id = taker.agent.id;
            let pages = self.pages(id, findings)?;
            whole(id, &pages, findings);
            let receipts: Vec<String> = pages
                .of_kind("receipt")
                .map(|(_, line)| line["id"].as_str().unwrap_or_default().to_owned())
                .collect();
            let acked: BTreeSet<String> = taker.acked.iter().map(ToString::to_string).collect();
            let open = taker.open.map(|id| id.to_string());
            for message in &acked {
                if !receipts.contains(message) {
                    findings.add(format!("{id}: message {message} was acknowledged and is not settled"));
                }
            }
            for receipt in receipts.iter().filter(|r| !acked.contains(*r) && open.as_ref() != Some(*r)) {
                findings.add(format!("{id}: message {receipt} is settled and nobody acknowledged it"));
            }
        }
        Ok(())
    }

    /// A session that was closed is so in every place, and one that was not, in none.
    fn closed(&mut self, findings: &mut Findings) -> Result<()> {
        let home = self.home();
        let tombstones = picture::tombstones(&home)?;
        let of_agent = self.pages(self.closer.agent.id, findings)?;
        let mut ids = BTreeSet::new();
        for (n, closing) in &self.closer.sessions {
            let label = self.closer.label(*n);
            let named = std::fs::read_to_string(home.label(&label)).ok();
            let Some(id) = closing.id else { continue };
            ids.insert(id.to_string());
            let Closing { watched, letter, begun, closed, .. } = closing;
            let pages = self.pages(id, findings)?;
            let places = [
                ("closed.jsonl", tombstones.get(&id.to_string()).copied().unwrap_or(0)),
                ("its folder", usize::from(!home.session(id).is_dir())),
                ("the trash", usize::from(home.trashed(id).is_dir())),
                ("its label", usize::from(named.is_none())),
                ("its last line", pages.of_kind("closed").count()),
                ("the notice", of_agent.notices(id, "closed").len()),
                ("the dead letter", of_agent.notices(id, "dead-letter").len()),
                ("the receipt", pages.of_kind("receipt").count()),
            ];
            let expected = if *closed {
                Some(1)
            } else if *begun {
                None
            } else {
                Some(0)
            };
            let first = expected.unwrap_or(places[0].1);
            if let Some((place, times)) = places.iter().find(|(_, times)| *times != first) {
                findings.add(format!("{label} is closed {first} times, and {times} times by {place}"));
            }
            let kept = pages.of_kind("created").count() == 1;
            let was_watched = of_agent.notices(id, "snapshot").len();
            let letters =
                pages.of_kind("message").filter(|(_, m)| m["body"] == format!("letter {label}")).count();
            if !kept
                || was_watched > 1
                || letters > 1
                || *watched && was_watched == 0
                || *letter && letters == 0
            {
                findings.add(format!("{label}: born {kept}, watched {was_watched}, told {letters} times"));
            }
        }
        for id in tombstones.keys().filter(|id| !ids.contains(*id)) {
            findings.add(format!("{id} is closed and nobody closed it"));
        }
        Ok(())
    }

    /// The primary's wake queue.
    fn hosted(&mut self, findings: &mut Findings) -> Result<()> {
        let home = self.home();
        let mut moves = Vec::new();
        for declarer in &self.hosted {
            let pages = self.pages(declarer.agent.id, findings)?;
            let asks = pages.of_kind("state").filter(|(_, line)| line["to"] == "review");
            moves.push((declarer.agent.id, asks.map(|(seq, _)| seq).collect()));
        }
        self.primary.judge(&home, &moves, findings)
    }

    /// Two waits of one name, however they came between each other, told each event once.
    fn waited(&mut self, findings: &mut Findings) -> Result<()> {
        self.drain_waits()?;
        for declarer in &self.slow {
            let id = declarer.agent.id;
            let pages = picture::read(&self.home(), id, findings)?.context("a session is gone")?;
            let asks = |state: &serde_json::Value| state == "review";
            let lines: Vec<_> = pages.of_kind("state").collect();
            let edges = lines.iter().filter(|(_, line)| asks(&line["to"]) && !asks(&line["from"]));
            let edges: Vec<u64> = edges.map(|(seq, _)| *seq).collect();
            let told = self.waits.told.get(&id.to_string()).cloned().unwrap_or_default();
            // An event is told with the newest line of its state.
            let edge_of = |line: &u64| edges.iter().rev().find(|edge| *edge <= line).copied().unwrap_or(0);
            let mut told: Vec<u64> = told.iter().map(edge_of).collect();
            told.sort_unstable();
            if told != edges {
                let (first, second) = (differ(&told, &edges), differ(&edges, &told));
                findings.add(format!(
                    "two waits told {first:?} of {} too often, and {second:?} not",
                    declarer.name
                ));
            }
        }
        Ok(())
    }
}

/// Each message of a timeline either waits, or has one receipt; and nothing waits that is no message.
fn whole(id: SessionId, pages: &Pages, findings: &mut Findings) {
    let messages: BTreeMap<String, u64> = pages
        .of_kind("message")
        .map(|(seq, m)| (m["id"].as_str().unwrap_or_default().to_owned(), seq))
        .collect();
    let mut receipts: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, line) in pages.of_kind("receipt") {
        *receipts.entry(line["id"].as_str().unwrap_or_default()).or_default() += 1;
    }
    for (message, seq) in &messages {
        let times = receipts.get(message.as_str()).copied().unwrap_or(0);
        let waits = pages.waiting.get(message);
        if times + usize::from(waits.is_some()) != 1 || waits.is_some_and(|line| line != seq) {
            findings.add(format!(
                "{id}: message {message} of line {seq} has {times} receipts and waits as {waits:?}"
            ));
        }
    }
    for message in pages.waiting.keys().chain(&pages.settled).filter(|m| !messages.contains_key(*m)) {
        findings.add(format!("{id}: its ledger has message {message}, its timeline has not"));
    }
}

/// Numbers of one list that the other has not, or not as often; a few of them.
fn differ(these: &[u64], those: &[u64]) -> Vec<u64> {
    let mut left = those.to_vec();
    let mut beyond = Vec::new();
    for n in these {
        match left.iter().position(|other| other == n) {
            Some(i) => drop(left.swap_remove(i)),
            None => beyond.push(*n),
        }
    }
    beyond.truncate(5);
    beyond
}
