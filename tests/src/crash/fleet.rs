//! The sessions of a store and the clients that speak for them. Made once, kept as a folder beside the store, and
//! begun with again and again.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use minder_client::rpc::Client;
use minder_proto::id::SessionId;
use minder_proto::layout::Home;
use minder_proto::record::{Channel, Watcher};
use minder_proto::rpc::{self, Call};
use minder_proto::trial;

use super::clients::{Agent, Closer, Declarer, Sender, Spooler, Taker};
use super::daemon::{Daemon, How};
use super::followers::{Stream, Waiter, Waiting, Waits};
use super::primary::Primary;
use crate::isolate::Isolated;

/// How many of each.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Who send, all at once.
    pub senders: usize,
    /// Who are sent to, and take.
    pub receivers: usize,
    /// Who declare; the first of them has all the watchers.
    pub declarers: usize,
    /// Who watch.
    pub watchers: usize,
    /// Bytes behind each message.
    pub padding: usize,
    /// Whether a flush costs anything: while it does, the next group gathers.
    pub on_disk: bool,
}

/// A store's sessions and clients.
#[derive(Clone)]
pub struct Fleet {
    /// Where they live.
    pub isolated: Arc<Isolated>,
    /// Everybody who sends.
    pub senders: Vec<Sender>,
    /// Who take: the receivers, and the supervisor last.
    pub takers: Vec<Taker>,
    /// Who declare fast.
    pub declarers: Vec<Declarer>,
    /// Who declare now and then, for the waits.
    pub slow: Vec<Declarer>,
    /// Declares after each start, so that followers have something to tell.
    pub probe: Declarer,
    /// Declare for the primary alone.
    pub hosted: Vec<Declarer>,
    /// Has a host.
    pub primary: Primary,
    /// Closes sessions.
    pub closer: Closer,
    /// Leave requests.
    pub spoolers: Vec<Spooler>,
    /// Wait for those who declare now and then.
    pub waits: Waits,
    /// What is made wrong in the programs.
    pub fault: Option<&'static str>,
}

impl Fleet {
    /// A store with nothing in its histories, and nobody who serves it.
    pub fn new(shape: Shape) -> Result<Self> {
        let isolated = if shape.on_disk { Isolated::new()? } else { Isolated::in_memory()? };
        let config = isolated.config_home().join("minder/config.toml");
        std::fs::create_dir_all(config.parent().context("it lies in a folder")?)?;
        let limits = "[queue]\nmax_messages = 100000\n";
        // Nobody is killed while it is made.
        std::fs::write(&config, format!("{limits}[store]\ndurability = \"none\"\n"))?;
        let daemon = Daemon::start(&isolated, &How::default())?;
        let mut client = daemon.client()?;
        let mut agents = |name: &str, n: usize| -> Result<Vec<Agent>> {
            (0..n).map(|i| agent(&mut client, &format!("{name}-{i}"))).collect()
        };
        let receivers = agents("receiver", shape.receivers)?;
        let senders = agents("sender", shape.senders)?;
        let declarers = agents("declarer", shape.declarers)?;
        let slow = agents("slow", 6)?;
        let supervisor = agents("supervisor", 1)?.remove(0);
        let probe = agents("probe", 1)?.remove(0);
        let closer = agents("closer", 1)?.remove(0);
        let spoolers = agents("spooler", 2)?;
        let hosted = agents("hosted", 2)?;
        let primary = agents("primary", 1)?.remove(0);
        let named = |agents: Vec<Agent>, name: &str| -> Vec<(Agent, String)> {
            agents.into_iter().enumerate().map(|(i, a)| (a, format!("{name}-{i}"))).collect()
        };
        let mut takers: Vec<Taker> = receivers.iter().cloned().map(Taker::new).collect();
        takers.push(Taker::new(supervisor.clone()));
        let mut fleet = Self {
            isolated: Arc::clone(&isolated),
            senders: named(senders, "sender")
                .into_iter()
                .map(|(agent, name)| Sender::new(agent, name, &receivers, shape.padding))
                .collect(),
            takers,
            declarers: named(declarers, "declarer").into_iter().map(|(a, n)| Declarer::new(a, n)).collect(),
            slow: named(slow, "slow").into_iter().map(|(a, n)| Declarer::new(a, n)).collect(),
            probe: Declarer::new(probe, "probe".to_owned()),
            hosted: named(hosted, "hosted").into_iter().map(|(a, n)| Declarer::new(a, n)).collect(),
            primary: Primary::new(primary),
            closer: Closer::new(closer, "closing".to_owned()),
            spoolers: named(spoolers, "spooler")
                .into_iter()
                .map(|(a, n)| Spooler::new(a, n, receivers[0].clone()))
                .collect(),
            waits: Waits::default(),
            fault: None,
        };
        fleet.watch(&mut client, &supervisor, shape.watchers)?;
        fleet.host(&mut client)?;
        if daemon.stop(super::daemon::LIMIT)? {
            bail!("the daemon did not stop when it was asked to");
        }
        fleet.write_watchers()?;
        std::fs::write(&config, limits)?;
        // Where they begin.
        fleet.drain_waits()?;
        copy(fleet.home().root(), &fleet.kept())?;
        Ok(fleet)
    }

    /// The supervisor watches all who declare fast; the first of these has many watchers.
    fn watch(&mut self, client: &mut Client, supervisor: &Agent, watchers: usize) -> Result<()> {
        for declarer in &mut self.declarers {
            watch(client, supervisor, declarer)?;
        }
        for n in 0..watchers {
            self.declarers[0].watchers.push(must(client, &create(&format!("watcher-{n}")))?.id);
        }
        Ok(())
    }

    /// The primary supervises its own.
    fn host(&mut self, client: &mut Client) -> Result<()> {
        let session = Some(self.primary.agent.id.to_string());
        must(client, &rpc::HostSwitch { caller: None, session, enabled: true })?;
        for declarer in &mut self.hosted {
            watch(client, &self.primary.agent, declarer)?;
        }
        Ok(())
    }

    /// Writes down who watches the first who declares, while nobody serves the store: a thousand calls, each of which
    /// writes a longer list, would take their time.
    fn write_watchers(&self) -> Result<()> {
        let target = &self.declarers[0];
        let file = self.home().session(target.agent.id).join("watchers.json");
        let mut list: Vec<Watcher> = serde_json::from_slice(&std::fs::read(&file)?)?;
        let supervisor = list.first().context("the supervisor watches it")?.clone();
        list = target.watchers.iter().map(|id| Watcher { watcher: *id, ..supervisor.clone() }).collect();
        Ok(std::fs::write(&file, serde_json::to_vec(&list)?)?)
    }

    /// The store.
    pub fn home(&self) -> Home {
        Home::at(self.isolated.minder_home())
    }

    fn kept(&self) -> PathBuf {
        self.isolated.root().join("kept")
    }

    /// The store as it was made, in the place of what is there now.
    pub fn renew(&self) -> Result<()> {
        self.renew_from(&self.kept())
    }

    /// A store that was kept elsewhere, in the place of what is there now.
    pub fn renew_from(&self, kept: &Path) -> Result<()> {
        let root = self.home().root().to_owned();
        std::fs::remove_dir_all(&root)?;
        copy(kept, &root)
    }

    /// Keeps the store as it is now, under this name.
    pub fn keep(&self, name: &str) -> Result<PathBuf> {
        let to = self.isolated.root().join(name);
        if to.exists() {
            std::fs::remove_dir_all(&to)?;
        }
        copy(self.home().root(), &to)?;
        Ok(to)
    }

    /// Everybody who declares.
    pub fn all_declarers(&mut self) -> impl Iterator<Item = &mut Declarer> {
        self.declarers.iter_mut().chain(&mut self.slow).chain(&mut self.hosted).chain([&mut self.probe])
    }

    /// Those whose moves a stream tells.
    pub fn followed(&self) -> Vec<SessionId> {
        self.declarers.iter().chain([&self.probe]).map(|d| d.agent.id).collect()
    }

    /// Lets waits tell all there is.
    pub fn drain_waits(&mut self) -> Result<()> {
        let mut waits = std::mem::take(&mut self.waits);
        let drained = waits.drain(&self.waiter());
        self.waits = waits;
        drained
    }

    /// Moves all who declare now and then, until two waits have been told of something.
    pub fn rouse(&mut self, client: &mut Client, two: [Waiting; 2]) -> Result<()> {
        let deadline = Instant::now() + super::daemon::LIMIT;
        while !two.iter().all(Waiting::has_ended) {
            ensure!(Instant::now() < deadline, "a wait is not told of moves");
            for declarer in &mut self.slow {
                declarer.step(client)?;
            }
        }
        self.waits.take(two).map(drop)
    }

    /// The supervisor waits for all who declare now and then.
    pub fn waiter(&self) -> Waiter<'_> {
        Waiter {
            isolated: &self.isolated,
            conversation: &self.takers.last().expect("the supervisor is the last").agent.conversation,
            sessions: self.slow.iter().map(|d| d.agent.id).collect(),
            fault: self.fault,
        }
    }

    /// A stream of them, from the beginning of the store.
    pub fn stream(&self) -> Result<Stream> {
        Stream::start(&self.isolated, &self.followed(), self.fault)
    }

    /// How its daemon is started.
    pub fn how(&self) -> How {
        self.fault.map_or_else(How::default, |fault| How::default().with(trial::FAULT, fault))
    }

    /// How much was told as done.
    pub fn told(&self) -> usize {
        let sent = self.senders.iter().flat_map(|s| &s.to).map(|(_, history)| history.done());
        let declarers = self.declarers.iter().chain(&self.slow).chain(&self.hosted).chain([&self.probe]);
        let moved = declarers.map(|d| d.moves.done());
        let left = self.spoolers.iter().map(|s| s.left.done());
        let taken = self.takers.iter().map(|t| t.acked.len());
        let rows = [self.closer.sessions.len(), self.primary.acknowledged.len()];
        sent.chain(moved).chain(left).chain(taken).chain(rows).sum()
    }
}

/// A session with a conversation of its own.
fn agent(client: &mut Client, label: &str) -> Result<Agent> {
    let id = must(client, &create(label))?.id;
    let conversation = format!("conversation-of-{label}");
    let bind = rpc::Set {
        session: id.to_string(),
        harness: Some("claude".to_owned()),
        harness_id: Some(conversation.clone()),
        ..rpc::Set::default()
    };
    must(client, &bind)?;
    Ok(Agent { id, conversation })
}

fn create(label: &str) -> rpc::Create {
    rpc::Create {
        label: Some(label.to_owned()),
        channel: Some(Channel::Mailbox),
        dir: Some("/".to_owned()),
        ..rpc::Create::default()
    }
}

fn watch(client: &mut Client, watcher: &Agent, target: &mut Declarer) -> Result<()> {
    let states = Some("all".parse().map_err(anyhow::Error::msg)?);
    let (caller, sessions) = (watcher.caller(), target.agent.id.to_string());
    must(client, &rpc::WatchAdd { caller, sessions, states })?;
    target.watchers.push(watcher.id);
    Ok(())
}

fn must<C: Call>(client: &mut Client, call: &C) -> Result<C::Answer> {
    client.call(call).map_err(|e| anyhow::anyhow!("{}: {e}", C::METHOD))
}

/// Copies a store; of a segment of the journal only what was written.
fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let (path, copied) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy(&path, &copied)?;
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(std::fs::read_link(&path)?, &copied)?;
        } else if path.extension().is_some_and(|e| e == "wal") {
            let mut bytes = std::fs::read(&path)?;
            bytes.truncate(bytes.iter().rposition(|b| *b != 0).map_or(0, |last| last + 1));
            std::fs::write(&copied, bytes)?;
            std::fs::set_permissions(&copied, PermissionsExt::from_mode(0o600))?;
        } else {
            std::fs::copy(&path, &copied)?;
        }
    }
    std::fs::set_permissions(to, PermissionsExt::from_mode(0o700))?;
    Ok(())
}
