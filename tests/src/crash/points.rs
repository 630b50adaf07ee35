//! Exact places: a script of everything a client can do, once for each passing of each kill point and once for each
//! system call by which the daemon changes anything; and every start that follows a crash, crashed in its turn.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use minder_proto::trial::{self, KILL_POINTS};

use super::clients::Step;
use super::daemon::{Daemon, How, LIMIT, Settled, Tracer, launch};
use super::fleet::{Fleet, Shape};
use super::{Findings, Rng};

/// A store that is small, and whose files are about to be sealed and rewritten.
const SHAPE: Shape =
    Shape { senders: 2, receivers: 2, declarers: 1, watchers: 3, padding: 3_000, on_disk: false };

/// System calls by which something is changed, or somebody told. A process that dies at any other dies, as far as
/// anybody can see, at the one of these before it.
const CHANGES: &str = "pwrite64,write,writev,sendto,fdatasync,fsync,syncfs,openat,rename,renameat,renameat2,unlink,\
                       unlinkat,ftruncate,fallocate,mkdir,mkdirat,symlink,symlinkat,chmod,fchmod,flock";

/// Of these lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// All of them.
    All,
    /// One in so many, which ones the seed decides; the first of each.
    Sample(u64),
}

impl Which {
    fn skips(self, n: u64, rng: &mut Rng) -> bool {
        matches!(self, Self::Sample(in_) if n > 1 && !rng.once_in(in_))
    }
}

/// What a walk came to.
#[derive(Debug, Default)]
pub struct Walk {
    /// Places at which the daemon was killed.
    pub points: usize,
    /// What was found.
    pub findings: Findings,
}

/// Kills at one place after the other.
pub struct Walker {
    fleet: Fleet,
    rng: Rng,
    which: Which,
    fault: Option<&'static str>,
}

impl Walker {
    /// With a store of its own.
    pub fn new(seed: u64, which: Which, fault: Option<&'static str>) -> Result<Self> {
        let mut fleet = Fleet::new(SHAPE)?;
        // Until its files are about to be sealed: the script does it.
        let daemon = Daemon::start(&fleet.isolated, &small(How::default()))?;
        let mut findings = Findings::default();
        for _ in 0..2 {
            script(&mut fleet, &daemon, &mut findings)?;
        }
        daemon.stop(LIMIT)?;
        fleet.drain_waits()?;
        fleet.keep("kept")?;
        if !findings.is_empty() {
            bail!("before anything was killed: {:?}", findings.0);
        }
        fleet.fault = fault;
        Ok(Self { fleet, rng: Rng::new(seed), which, fault })
    }

    fn how(&self) -> How {
        small(self.fleet.how())
    }

    /// At every passing of every kill point.
    pub fn kill_points(&mut self, until_found: bool) -> Result<Walk> {
        let mut walk = Walk::default();
        for point in KILL_POINTS {
            let mut reached = 0;
            for n in 1.. {
                if self.which.skips(n, &mut self.rng) {
                    // A sample does not know how often a place is passed: it ends where one of it is not.
                    continue;
                }
                let at = format!("{point}:{n}");
                let how = self.how().with(trial::KILL_POINT, &at).with(trial::KILL_LINGER, "10");
                let mut fleet = self.again()?;
                let killed = if point.starts_with("recover.") {
                    self.crash(&mut fleet)?;
                    self.start_until_killed(&how)?
                } else {
                    run_until_killed(&mut fleet, &how, None, &mut walk.findings)?
                };
                if !killed {
                    break;
                }
                reached += 1;
                walk.points += 1;
                self.judge(&mut fleet, &at, &mut walk.findings)?;
                if until_found && !walk.findings.is_empty() {
                    return Ok(walk);
                }
            }
            if reached == 0 && self.fault.is_none() {
                walk.findings.add(format!("the script never comes to {point}"));
            }
        }
        Ok(walk)
    }

    /// At every system call of the thread that owns the store, from a first commit to the end of a clean stop.
    pub fn calls_of_the_owner(&mut self) -> Result<Walk> {
        let mut walk = Walk::default();
        for n in 1.. {
            if self.which.skips(n, &mut self.rng) {
                continue;
            }
            let mut fleet = self.again()?;
            if !run_until_killed(&mut fleet, &self.how(), Some(n), &mut walk.findings)? {
                break;
            }
            walk.points += 1;
            self.judge(&mut fleet, &format!("call {n} of the owner"), &mut walk.findings)?;
        }
        Ok(walk)
    }

    /// At every system call of a start after a crash.
    pub fn calls_of_a_start(&mut self) -> Result<Walk> {
        let mut walk = Walk::default();
        let mut crashed = self.again()?;
        self.crash(&mut crashed)?;
        let kept = crashed.keep("crashed")?;
        for n in 1.. {
            if self.which.skips(n, &mut self.rng) {
                continue;
            }
            let mut fleet = self.at(&crashed, &kept)?;
            let how = How { strace: inject(n), ..self.how() };
            if !self.start_until_killed(&how)? {
                break;
            }
            walk.points += 1;
            self.judge(&mut fleet, &format!("call {n} of a start"), &mut walk.findings)?;
        }
        Ok(walk)
    }

    /// The store as it was prepared, and the histories of then.
    fn again(&self) -> Result<Fleet> {
        self.fleet.renew()?;
        Ok(self.fleet.clone())
    }

    fn at(&self, crashed: &Fleet, kept: &Path) -> Result<Fleet> {
        self.fleet.renew_from(kept)?;
        Ok(crashed.clone())
    }

    /// A daemon that dies with much in its journal that is not in the files yet.
    fn crash(&self, fleet: &mut Fleet) -> Result<()> {
        // Files as long as ever: a checkpoint would leave less to do again.
        let how = self.fleet.how().with(trial::KILL_POINT, "apply.before-op:60");
        let mut heard = Findings::default();
        ensure!(run_until_killed(fleet, &how, None, &mut heard)?, "the script is too short for this crash");
        for spooler in &mut fleet.spoolers {
            spooler.step(&self.fleet.home())?;
        }
        Ok(())
    }

    /// True if the start was killed.
    fn start_until_killed(&self, how: &How) -> Result<bool> {
        match launch(&self.fleet.isolated, how)?.settle()? {
            Settled::Killed => Ok(true),
            Settled::Serves(daemon) => daemon.kill().map(|()| false),
        }
    }

    /// A clean start, and a look at everything.
    fn judge(&mut self, fleet: &mut Fleet, at: &str, findings: &mut Findings) -> Result<()> {
        let mut found = Findings::default();
        let stream = fleet.stream()?;
        if self.rng.once_in(4) {
            fleet.check(&mut found)?;
        }
        let started = Daemon::start(&fleet.isolated, &self.how());
        if let Some(daemon) = found.unless_failed("the start after it", started) {
            let judged = fleet.judge(&mut daemon.client()?, &stream);
            let judged = found.unless_failed("a look at the store", judged).unwrap_or_default();
            found.0.extend(judged.0);
            daemon.kill()?;
            fleet.check(&mut found)?;
        }
        findings.absorb(at, found);
        Ok(())
    }
}

fn small(how: How) -> How {
    how.with(trial::SIZES, "small")
}

fn inject(n: u64) -> Vec<String> {
    let changes = CHANGES.replace(' ', "");
    vec![
        "-e".to_owned(),
        format!("trace={changes}"),
        "-e".to_owned(),
        format!("inject={changes}:signal=KILL:when={n}"),
    ]
}

/// Starts a daemon, runs the script, and asks the daemon to end. True if it was killed on the way; by the system call
/// of this number of the owner's thread, if one is named.
fn run_until_killed(
    fleet: &mut Fleet,
    how: &How,
    call: Option<u64>,
    findings: &mut Findings,
) -> Result<bool> {
    let daemon = match launch(&fleet.isolated, how)?.settle()? {
        Settled::Killed => return Ok(true),
        Settled::Serves(daemon) => daemon,
    };
    let tracer = match call {
        Some(n) => Some(Tracer::attach(&fleet.isolated, daemon.owner()?, &inject(n))?),
        None => None,
    };
    let played = script(fleet, &daemon, findings);
    findings.unless_failed("the script", played);
    let killed = daemon.stop(LIMIT)?;
    drop(tracer);
    Ok(killed)
}

/// Everything a client can do, a few times each, as far as the daemon lives.
fn script(fleet: &mut Fleet, daemon: &Daemon, findings: &mut Findings) -> Result<()> {
    let client = &mut daemon.client()?;
    let home = fleet.home();
    let Fleet { senders, takers, declarers, slow, hosted, primary, closer, spoolers, .. } = fleet;
    for _ in 0..2 {
        for spooler in spoolers.iter_mut() {
            spooler.step(&home)?;
        }
        for declarer in declarers.iter_mut().chain(slow.iter_mut().take(2)).chain(hosted.iter_mut().take(1)) {
            if declarer.step(client)? == Step::Gone {
                return Ok(());
            }
        }
        for sender in senders.iter_mut() {
            if sender.step(client, findings)? == Step::Gone {
                return Ok(());
            }
        }
        for taker in takers.iter_mut() {
            if taker.step(client, findings)? == Step::Gone {
                return Ok(());
            }
        }
        if primary.step(client, findings)? == Step::Gone {
            return Ok(());
        }
        if closer.step(client)? == Step::Gone {
            return Ok(());
        }
    }
    // What was left is taken meanwhile.
    let deadline = Instant::now() + LIMIT;
    while std::fs::read_dir(home.spool())?.next().is_some()
        && !daemon.process().wait(Duration::from_millis(1))
    {
        ensure!(Instant::now() < deadline, "the daemon does not take what was left in the spool");
    }
    Ok(())
}
