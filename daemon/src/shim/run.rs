//! The loop of a shim: it waits for pipes, children, orders and deadlines, tells the machine, and does what the machine
//! says.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::Path;
use std::process::{ChildStderr, ChildStdout, ExitCode};
use std::time::Duration;

use minder_proto::error::exit;
use minder_proto::stamp::Stamp;
use minder_proto::turn::folder::{News, Order, Progress, Spec};
use minder_proto::turn::names::Trigger;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::wait::WaitStatus;

use super::clock::Clock;
use super::links::Links;
use super::machine::{Action, Event, MARKED_MS, Machine, Rules, SWEEP_MS, Stream};
use super::place::Place;
use super::report::{self, Shown};
use super::signals::Signals;
use super::spool::Spool;
use super::start::{Started, start};
use super::stream::Lines;
use super::{limits, tree};

/// Bytes that are read of a pipe at once.
const PIECE: usize = 64 * 1024;
/// How often the progress line is written anew at most, in milliseconds.
const SHOW_EVERY: u64 = 250;
/// How long somebody waits for whom there was no descriptor, in milliseconds.
const ACCEPT_AGAIN: u64 = 1_000;
/// How long a result waits to be needed no more before it is flushed: that would slow down who hears of it.
const FLUSH_AFTER: Duration = Duration::from_millis(250);
/// Between two attempts to put the result into its place.
const PLACE_AGAIN: Duration = Duration::from_millis(100);

/// The shim, from its start to its end. What is wrong with it is seen by who looks into its folder: a lock that is free
/// and no result.
pub fn main(folder: Option<&Path>) -> ExitCode {
    crate::descriptors::close_inherited(&[]);
    code_of(&in_folder(folder))
}

/// What a shim exits with.
pub fn code_of(run: &io::Result<()>) -> ExitCode {
    match run {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.kind() == ErrorKind::InvalidData => ExitCode::from(exit::DATA),
        Err(_) => ExitCode::from(exit::IO),
    }
}

/// The same, in a process that has no descriptors but its own.
pub fn in_folder(folder: Option<&Path>) -> io::Result<()> {
    match Place::take(folder)? {
        Some((spec, place)) => in_place(spec, place),
        None => Ok(()),
    }
}

/// The same, where everything is there.
pub fn in_place(spec: Spec, place: Place) -> io::Result<()> {
    limits::files(spec.limits.files);
    let Place { signals, subreaper, mut links, spool, shown, lock } = place;
    links.take_input()?;
    let spool = spool.keeping(spec.policy.output_max);
    let mut shim = Shim::new(spec, subreaper, links, spool, shown, lock);
    shim.start(false);
    shim.turn(&signals)
}

/// One turn that runs.
struct Shim {
    spec: Spec,
    clock: Clock,
    began: Stamp,
    machine: Machine,
    links: Links,
    spool: Spool,
    shown: Shown,
    shown_at: Option<u64>,
    changed: bool,
    lines: Option<Lines>,
    stale: Finder,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    root: Option<i32>,
    settled: bool,
    /// What the root orphans becomes a child of this process.
    subreaper: bool,
    _lock: File,
}

impl Shim {
    fn new(spec: Spec, subreaper: bool, links: Links, spool: Spool, shown: Shown, lock: File) -> Self {
        let clock = Clock::start();
        let began = Stamp::now();
        Self {
            machine: Machine::new(Rules::of(&spec, subreaper)),
            links,
            spool,
            shown,
            shown_at: None,
            changed: true,
            lines: spec.rules.as_ref().map(Lines::new),
            stale: Finder::new(spec.heal.iter().flat_map(|heal| &heal.texts)),
            stdout: None,
            stderr: None,
            root: None,
            settled: false,
            subreaper,
            clock,
            began,
            spec,
            _lock: lock,
        }
    }

    /// Starts the harness, or the other way to run it.
    fn start(&mut self, other: bool) {
        let argv = match &self.spec.heal {
            Some(heal) if other => &heal.argv,
            _ => &self.spec.argv,
        };
        let deadline = self.began.plus(Duration::from_millis(self.spec.policy.budget_ms));
        let started = start(&self.spec, argv, deadline).and_then(|started| {
            let unheard = |e: io::Error| minder_proto::turn::folder::Unspawned {
                failure: minder_proto::turn::Failure::SpawnFailed,
                errno: e.raw_os_error(),
            };
            non_blocking(&started.stdout).and_then(|()| non_blocking(&started.stderr)).map_err(unheard)?;
            Ok(started)
        });
        match started {
            Ok(Started { pid, stdout, stderr }) => {
                (self.stdout, self.stderr, self.root) = (Some(stdout), Some(stderr), Some(pid));
                self.lines = self.spec.rules.as_ref().map(Lines::new);
                self.tell(Event::Spawned(pid));
                self.links.tell(&News::Spawned { pid });
            }
            Err(why) => self.tell(Event::Unspawned(why)),
        }
    }

    /// Until the turn is settled.
    fn turn(&mut self, signals: &Signals) -> io::Result<()> {
        let mut piece = vec![0; PIECE];
        while !self.settled {
            self.show();
            let ready = self.wait(signals)?;
            // Whatever is there is taken before the time is looked at: what came in time is not late because this
            // process was.
            self.read_stdout(&mut piece);
            self.read_stderr(&mut piece);
            let heard = signals.heard();
            if heard.child {
                self.reap();
            }
            for _ in 0..heard.end {
                // A log-out, a shutdown: nobody takes back what the turn was for.
                self.tell(Event::Order(Trigger::Boundary));
            }
            if ready.links {
                let spawned = self.machine.found().pid.map(|pid| News::Spawned { pid });
                self.links.accept(spawned.as_ref());
                for order in self.links.orders() {
                    match order {
                        Order::End { why } => self.tell(Event::Order(why)),
                        // There is something to be minded yet.
                        Order::Leave { .. } => {}
                    }
                }
            }
            self.tell(Event::Suspended(self.clock.suspended()));
            self.tell(Event::Tick);
        }
        Ok(())
    }

    fn wait(&mut self, signals: &Signals) -> io::Result<Ready> {
        let now = self.clock.now();
        let due = self.machine.deadline().map(|at| at.saturating_sub(now));
        let show = self.shown_at.filter(|_| self.changed).map(|at| (at + SHOW_EVERY).saturating_sub(now));
        let again = self.links.is_short().then_some(ACCEPT_AGAIN);
        let patience = due.into_iter().chain(show).chain(again).min();
        let timeout = patience.map_or(PollTimeout::NONE, |ms| {
            PollTimeout::try_from(i32::try_from(ms).unwrap_or(i32::MAX)).unwrap_or(PollTimeout::MAX)
        });
        let wanted = |fd| PollFd::new(fd, PollFlags::POLLIN);
        let mut fds: Vec<PollFd> = self.links.fds().map(wanted).collect();
        let of_links = fds.len();
        fds.push(wanted(signals.fd()));
        fds.extend(self.stdout.as_ref().map(|pipe| wanted(pipe.as_fd())));
        fds.extend(self.stderr.as_ref().map(|pipe| wanted(pipe.as_fd())));
        match poll(&mut fds, timeout) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let links = again.is_some() || fds[..of_links].iter().any(|fd| fd.any().unwrap_or(true));
        Ok(Ready { links })
    }

    fn read_stdout(&mut self, piece: &mut [u8]) {
        let Some(pipe) = &mut self.stdout else { return };
        match pipe.read(piece) {
            Ok(0) => {
                self.stdout = None;
                self.with_lines(|lines, told| lines.finish(told));
                self.pipe_closed();
            }
            Ok(read) => {
                let bytes = &piece[..read];
                // What cannot be kept is counted all the same, and then more was said than is there.
                let _ = self.spool.stdout(bytes);
                let progress = self.lines.is_none();
                self.tell(Event::Output { stream: Stream::Stdout, bytes: read as u64, progress });
                self.with_lines(|lines, told| lines.push(bytes, told));
            }
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => {
                self.stdout = None;
                self.pipe_closed();
            }
        }
    }

    fn read_stderr(&mut self, piece: &mut [u8]) {
        let Some(pipe) = &mut self.stderr else { return };
        match pipe.read(piece) {
            Ok(read @ 1..) => {
                let bytes = &piece[..read];
                let _ = self.spool.stderr(bytes);
                let progress = self.spec.stderr_is_progress;
                self.tell(Event::Output { stream: Stream::Stderr, bytes: read as u64, progress });
                if self.stale.find(bytes) {
                    self.tell(Event::HealSeen);
                }
            }
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Ok(_) | Err(_) => {
                self.stderr = None;
                self.pipe_closed();
            }
        }
    }

    /// Tells the machine what the lines of a typed stream mean.
    fn with_lines(&mut self, work: impl FnOnce(&mut Lines, &mut dyn FnMut(super::stream::Line))) {
        let Some(mut lines) = self.lines.take() else { return };
        let mut events = Vec::new();
        work(&mut lines, &mut |line| {
            events.extend(line.progress.then_some(Event::Line));
            events.extend(line.starts.into_iter().map(Event::ToolStart));
            events.extend(line.tasks.into_iter().map(Event::TaskStart));
            events.extend(line.ends.into_iter().map(Event::ToolEnd));
            events.extend(line.result.then_some(if line.failed {
                Event::FailureSeen
            } else {
                Event::ResultSeen
            }));
        });
        self.lines = Some(lines);
        for event in events {
            self.tell(event);
        }
    }

    fn pipe_closed(&mut self) {
        if self.stdout.is_none() && self.stderr.is_none() {
            self.tell(Event::PipesClosed);
        }
    }

    fn reap(&mut self) {
        let root = self.root;
        let mut exited = None;
        tree::reap(&mut |status| exited = exited.take().or(ended(status, root)));
        if let Some(event) = exited {
            self.root_ended(event);
        }
    }

    fn root_ended(&mut self, event: Event) {
        self.root = None;
        self.tell(event);
    }

    /// Tells the machine, and does what it says.
    fn tell(&mut self, event: Event) {
        let now = self.clock.now();
        self.changed |= !matches!(event, Event::Tick | Event::Suspended(_));
        for action in self.machine.on(event, now) {
            match action {
                Action::Signal(signal) => {
                    self.changed = true;
                    if let Some(root) = self.root {
                        tree::signal_child(root, signal);
                    }
                }
                Action::Kill => self.kill(),
                Action::Respawn => {
                    let _ = self.spool.forget();
                    self.start(true);
                }
                Action::Settle => self.settle(),
            }
        }
    }

    fn kill(&mut self) {
        let within = Duration::from_millis(SWEEP_MS);
        let root = self.root;
        let mut exited = None;
        let mut swept = tree::kill_below(within, |status| exited = exited.take().or(ended(status, root)));
        if may_have_escaped(swept.killed, self.subreaper) {
            let marked = tree::kill_marked(&self.spec.turn, Duration::from_millis(MARKED_MS));
            swept.killed += marked.killed;
            // What the first sweep could not kill has the marker too.
            swept.survivors.retain(|one| !marked.survivors.contains(one));
            swept.survivors.extend(marked.survivors);
        }
        if let Some(event) = exited {
            self.root_ended(event);
        }
        self.tell(Event::TreeGone { killed: swept.killed, survivors: swept.survivors });
    }

    /// The result is put into its place, told, and then flushed, unless the turn has its line by then: a daemon that dies
    /// loses nothing either way.
    fn settle(&mut self) {
        self.settled = true;
        // What cannot be written is seen as a shim that left no result.
        let _ = self.write_down();
    }

    fn write_down(&mut self) -> io::Result<()> {
        self.spool.finish();
        let mut found = self.machine.found().clone();
        found.started = Some(self.began);
        found.ended = Some(Stamp::now());
        found.boot.clone_from(&self.spec.boot);
        if let Ok(usage) = getrusage(UsageWho::RUSAGE_CHILDREN) {
            let ms = |time: nix::sys::time::TimeVal| {
                u64::try_from(time.tv_sec() * 1000 + time.tv_usec() / 1000).unwrap_or(0)
            };
            found.cpu_ms = ms(usage.user_time()) + ms(usage.system_time());
            // The one system counts bytes, the others kibibytes.
            let unit = if cfg!(target_os = "macos") { 1024 } else { 1 };
            found.max_rss_kb = u64::try_from(usage.max_rss() / unit).unwrap_or(0);
        }
        let file = report::place(Path::new("."), &found, || std::thread::sleep(PLACE_AGAIN))?;
        self.links.tell(&News::Settled { found: Some(Box::new(found)) });
        if self.links.let_go(FLUSH_AFTER) {
            return Ok(());
        }
        self.spool.sync()?;
        report::sync(&file)
    }

    fn show(&mut self) {
        let now = self.clock.now();
        if !self.changed || self.shown_at.is_some_and(|at| now < at + SHOW_EVERY) {
            return;
        }
        let found = self.machine.found();
        let progress = Progress {
            pid: found.pid,
            at_ms: now,
            progress_ms: self.machine.progress_ms(),
            stdout: found.stdout_bytes,
            stderr: found.stderr_bytes,
            tools: self.machine.open_tools(),
            start_mono_ms: self.clock.start_mono_ms(),
            trigger: found.trigger,
        };
        let _ = self.shown.show(&progress);
        (self.shown_at, self.changed) = (Some(now), false);
    }
}

struct Ready {
    links: bool,
}

/// True where a process of the turn may be elsewhere than below this one. Without a subreaper what the root orphaned is, also
/// if nothing was found here.
fn may_have_escaped(killed: u32, subreaper: bool) -> bool {
    killed > 0 || !subreaper
}

/// The end of the root, if that is what it is.
fn ended(status: WaitStatus, root: Option<i32>) -> Option<Event> {
    let (pid, code, signal) = match status {
        WaitStatus::Exited(pid, code) => (pid, Some(code), None),
        WaitStatus::Signaled(pid, signal, _) => (pid, None, Some(signal as i32)),
        _ => return None,
    };
    (Some(pid.as_raw()) == root).then_some(Event::RootExited { code, signal })
}

fn non_blocking(pipe: &impl AsFd) -> io::Result<()> {
    let fd: BorrowedFd<'_> = pipe.as_fd();
    debug_assert!(fd.as_raw_fd() > 2);
    fcntl(fd, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    Ok(())
}

/// Looks for texts in a stream that comes in pieces.
struct Finder {
    texts: Vec<Vec<u8>>,
    before: Vec<u8>,
}

impl Finder {
    fn new<'a>(texts: impl Iterator<Item = &'a String>) -> Self {
        let texts = texts.filter(|text| !text.is_empty()).map(|text| text.clone().into_bytes());
        Self { texts: texts.collect(), before: Vec::new() }
    }

    fn find(&mut self, bytes: &[u8]) -> bool {
        let Some(longest) = self.texts.iter().map(Vec::len).max() else { return false };
        self.before.extend_from_slice(bytes);
        let whole = &self.before;
        let found = self.texts.iter().any(|text| whole.windows(text.len()).any(|window| window == text));
        let keep = self.before.len().min(longest - 1);
        self.before.drain(..self.before.len() - keep);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_subreaper_an_empty_tree_proves_nothing() {
        assert!(may_have_escaped(0, false) && may_have_escaped(1, true));
        assert!(!may_have_escaped(0, true));
    }
}
