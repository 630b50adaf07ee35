//! Random moments: everybody speaks at once, the daemon is killed, starts again, and the store is judged. Many rounds on
//! one store; now and then a fresh one.

use std::fs::File;
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use minder_proto::layout::Home;
use minder_proto::trial;
use rustix::process::Signal;

use super::clients::{Declarer, Step};
use super::daemon::{Daemon, LIMIT, launch};
use super::fleet::{Fleet, Shape};
use super::{Findings, Rng};

/// Rounds on one store, where nothing else is said.
pub const ON_ONE_STORE: usize = 25;
/// Rounds on one with many watchers.
const ON_A_WIDE_ONE: usize = 5;

/// Most stores: 64 senders for one flush, and a few watchers.
const USUAL: Shape =
    Shape { senders: 64, receivers: 4, declarers: 4, watchers: 20, padding: 0, on_disk: true };
/// Every third store.
const WIDE: Shape =
    Shape { senders: 64, receivers: 4, declarers: 2, watchers: 1_000, padding: 0, on_disk: false };

/// What the rounds came to.
#[derive(Debug, Default)]
pub struct Rounds {
    /// How many there were.
    pub rounds: usize,
    /// What clients were told as done.
    pub told: usize,
    /// What was found.
    pub findings: Findings,
}

/// How the rounds are run.
pub struct Plan {
    /// How many.
    pub rounds: usize,
    /// What decides the moments.
    pub seed: u64,
    /// More for the environment of the daemon and the followers: a fault.
    pub fault: Option<&'static str>,
    /// Stores with a thousand watchers too.
    pub wide: bool,
    /// How many on one store.
    pub on_one_store: usize,
    /// Told after each store.
    pub progress: fn(&str),
}

/// Runs them; ends with the round in which something is found.
pub fn run(plan: &Plan) -> Result<Rounds> {
    let mut rng = Rng::new(plan.seed);
    let mut done = Rounds::default();
    let mut store = 0;
    let usual = Fleet::new(USUAL)?;
    let wide = if plan.wide { Some(Fleet::new(WIDE)?) } else { None };
    while done.rounds < plan.rounds && done.findings.is_empty() {
        store += 1;
        let (prepared, most) = match &wide {
            Some(wide) if store % 3 == 1 => (wide, ON_A_WIDE_ONE),
            _ => (&usual, plan.on_one_store),
        };
        let rounds = most.min(plan.rounds - done.rounds);
        let (begun, told) = (Instant::now(), done.told);
        one_store(prepared, plan, store, rounds, &mut rng, &mut done)?;
        (plan.progress)(&format!(
            "store {store}: {} rounds in all, {} calls told on it, {:.1} s",
            done.rounds,
            done.told - told,
            begun.elapsed().as_secs_f64()
        ));
    }
    Ok(done)
}

fn one_store(
    prepared: &Fleet,
    plan: &Plan,
    store: usize,
    rounds: usize,
    rng: &mut Rng,
    done: &mut Rounds,
) -> Result<()> {
    let mut fleet = prepared.clone();
    fleet.renew()?;
    fleet.fault = plan.fault;
    let stream = fleet.stream()?;
    // Half of the stores seal, rewrite and remove their files all the time.
    let small = store.is_multiple_of(2);
    let mut how = fleet.how();
    if small {
        how = how.with(trial::SIZES, "small");
    }
    let home = fleet.home();
    for round in 1..=rounds {
        done.rounds += 1;
        let at = format!("round {} (store {store}, its {round}th)", done.rounds);
        let started = Daemon::start(&fleet.isolated, &how);
        let Some(daemon) = done.findings.unless_failed(&at, started) else { break };
        // Mostly at once, sometimes within its own end.
        let grace = rng.once_in(4).then(|| Duration::from_millis(rng.below(40)));
        let after = (Duration::from_millis(20 + rng.below(250)), 20 + usize::try_from(rng.below(100))?);
        let end = End { after, grace };
        let before = timelines(&fleet)?;
        let mut heard = Findings::default();
        // They have looked before anything moves, and both are told of something.
        let two = fleet.waiter().two("5m")?;
        load(&mut fleet, daemon, end, &mut heard);
        done.findings.absorb(&at, heard);
        if !small && end.grace.is_none() && rng.once_in(2) {
            let grown = fleet.declarers.iter().zip(before.iter().zip(timelines(&fleet)?));
            for (declarer, _) in grown.filter(|(_, (before, now))| *before < now) {
                lengthen(&fleet.home(), declarer, rng)?;
            }
        }
        if rng.once_in(3) {
            let mut left = Findings::default();
            fleet.check(&mut left)?;
            done.findings.absorb(&format!("{at}, before the start"), left);
        }
        for spooler in &mut fleet.spoolers {
            spooler.step(&home)?;
        }
        // A start may be killed too.
        while rng.once_in(4) {
            launch(&fleet.isolated, &how)?.kill_after(Duration::from_millis(rng.below(120)))?;
        }
        let started = Daemon::start(&fleet.isolated, &how);
        let Some(daemon) = done.findings.unless_failed(&at, started) else { break };
        let roused = fleet.rouse(&mut daemon.client()?, two);
        done.findings.unless_failed(&at, roused);
        let judged = fleet.judge(&mut daemon.client()?, &stream);
        let found = done.findings.unless_failed(&at, judged).unwrap_or_default();
        done.findings.absorb(&at, found);
        daemon.kill()?;
        if round == rounds || rng.once_in(3) {
            let mut left = Findings::default();
            fleet.check(&mut left)?;
            done.findings.absorb(&format!("{at}, after it"), left);
        }
        if !done.findings.is_empty() {
            break;
        }
    }
    done.told += fleet.told();
    Ok(())
}

/// How a daemon ends.
#[derive(Clone, Copy, Debug)]
struct End {
    /// After this time under load, and this many calls: on a busy machine the time alone may be too short for any.
    after: (Duration, usize),
    /// It is asked to end first, and killed after this time.
    grace: Option<Duration>,
}

/// Everybody speaks, until the time is over; then the daemon is in the middle of it.
fn load(fleet: &mut Fleet, daemon: Daemon, end: End, findings: &mut Findings) {
    let daemon = &daemon;
    let (over, told) = (AtomicBool::new(false), AtomicUsize::new(0));
    let home = fleet.home();
    let heard = Mutex::new(Findings::default());
    let Fleet { senders, takers, declarers, slow, hosted, primary, closer, spoolers, .. } = fleet;
    let results: Vec<Result<()>> = std::thread::scope(|scope| {
        let mut threads = Vec::new();
        let (over, heard, home, told) = (&over, &heard, &home, &told);
        macro_rules! client {
            (|$client:ident, $findings:ident| $step:expr) => {
                threads.push(scope.spawn(move || -> Result<()> {
                    let mut $client = daemon.client()?;
                    let mut $findings = Findings::default();
                    while !over.load(Ordering::Relaxed) {
                        match $step? {
                            Step::More => drop(told.fetch_add(1, Ordering::Relaxed)),
                            // Others make something to do, or it is over.
                            Step::Idle if daemon.process().wait(Duration::from_millis(1)) => break,
                            Step::Idle => {}
                            Step::Gone => break,
                        }
                    }
                    heard.lock().expect("no client panics").absorb("under load", $findings);
                    Ok(())
                }))
            };
        }
        for sender in senders.iter_mut() {
            client!(|client, findings| sender.step(&mut client, &mut findings));
        }
        for taker in takers.iter_mut() {
            client!(|client, findings| taker.step(&mut client, &mut findings));
        }
        for declarer in declarers.iter_mut() {
            client!(|client, _findings| declarer.step(&mut client));
        }
        for declarer in hosted.iter_mut() {
            client!(|client, _findings| declarer.step(&mut client));
        }
        client!(|client, findings| primary.step(&mut client, &mut findings));
        client!(|client, _findings| closer.step(&mut client));
        for spooler in spoolers.iter_mut() {
            let mut few = 0;
            client!(|_client, _findings| {
                few += 1;
                if few <= 5 { spooler.step(home) } else { Ok(Step::Gone) }
            });
        }
        // A few moves of those whom the waits are for.
        threads.push(scope.spawn(move || -> Result<()> {
            let mut client = daemon.client()?;
            for declarer in slow.iter_mut() {
                for _ in 0..2 {
                    if over.load(Ordering::Relaxed) || declarer.step(&mut client)? == Step::Gone {
                        return Ok(());
                    }
                }
            }
            Ok(())
        }));
        let (time, calls) = end.after;
        let deadline = Instant::now() + LIMIT;
        let mut early = daemon.process().wait(time);
        while !early && told.load(Ordering::Relaxed) < calls && Instant::now() < deadline {
            early = daemon.process().wait(Duration::from_millis(1));
        }
        if let Some(grace) = end.grace {
            daemon.process().signal(Signal::TERM);
            daemon.process().wait(grace);
        }
        daemon.process().signal(Signal::KILL);
        over.store(true, Ordering::Relaxed);
        let mut results: Vec<Result<()>> =
            threads.into_iter().map(|t| t.join().expect("no client panics")).collect();
        if early {
            results.push(Err(anyhow!("the daemon ended by itself")));
        }
        results
    });
    findings.0.extend(heard.into_inner().expect("no client panics").0);
    for result in results {
        findings.unless_failed("a client", result);
    }
}

/// How long the declarers' timelines are, in bytes.
fn timelines(fleet: &Fleet) -> Result<Vec<u64>> {
    let home = fleet.home();
    let length = |d: &Declarer| {
        let path = home.session(d.agent.id).join("timeline.jsonl");
        Ok(path.metadata().with_context(|| path.display().to_string())?.len())
    };
    fleet.declarers.iter().map(length).collect()
}

/// What a file system may leave behind a file's last bytes when it had made room before it had the data. The journal
/// names these files: they grew in this daemon's life.
fn lengthen(home: &Home, declarer: &Declarer, rng: &mut Rng) -> Result<()> {
    let ledger = declarer.watchers.first().map(|w| home.session(*w).join("queue.jsonl"));
    for path in ledger.into_iter().chain([home.session(declarer.agent.id).join("timeline.jsonl")]) {
        let zeros = vec![0; 1 + usize::try_from(rng.below(5_000))?];
        match File::options().append(true).open(&path) {
            Ok(mut file) => file.write_all(&zeros)?,
            // A fault that tells nobody of a move leaves its watcher without a ledger.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => return Err(e).with_context(|| path.display().to_string()),
        }
    }
    Ok(())
}
