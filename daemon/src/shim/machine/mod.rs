//! What a turn does next: a pure function of its state, an event and the time. It owns the windows, the ladder and the
//! bound on settling; it reads no clock, sends no signal and touches no file. Times are milliseconds since the turn's
//! start on the clock that stands still in suspend.
//!
//! The bound: whatever happens, a turn is settled by [`Machine::settles_by`], which never grows while it runs.

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use minder_proto::turn::folder::{Found, Spec, Survivor, Trace, Unspawned};
use minder_proto::turn::names::{Action as Rung, TraceKind, Trigger};
use minder_proto::turn::policy::Policy;

/// How long the sweep of a tree may take.
pub const SWEEP_MS: u64 = 5_000;
/// How long the sweep by the marker may take that follows.
pub const MARKED_MS: u64 = 1_000;
/// How long a kill may take.
pub const KILL_MS: u64 = SWEEP_MS + MARKED_MS;
/// How long output is read after the root has ended.
pub const DRAIN_MS: u64 = 500;
/// How much of it.
pub const DRAIN_BYTES: u64 = 1024 * 1024;
/// The least that a harness gets to exit by itself after its answer.
const LEAVE_MS: u64 = 1_000;
/// Open tool calls that are told apart; more of them at once count, and hold no window.
const TOOLS_MAX: usize = 1024;

/// What the machine is told once.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Windows and bounds.
    pub policy: Policy,
    /// Asks the root to end, where something does.
    pub cancel_signal: Option<i32>,
    /// The signal at the budget.
    pub budget_signal: i32,
    /// There is another way to run the prompt.
    pub heals: bool,
}

impl Rules {
    /// What a spec asks for. Without a subreaper no signal goes to a root before the kill: what it orphans by ending is
    /// not found again.
    pub fn of(spec: &Spec, subreaper: bool) -> Self {
        Self {
            policy: spec.policy,
            cancel_signal: spec.cancel_signal.filter(|_| subreaper),
            budget_signal: spec.budget_signal,
            heals: spec.heal.is_some(),
        }
    }

    /// When the tree is killed whatever it does.
    pub fn wall_ms(&self) -> u64 {
        self.policy.budget_ms.saturating_add(self.policy.backstop_ms)
    }
}

/// Which pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The root runs.
    Spawned(i32),
    /// It could not be started.
    Unspawned(Unspawned),
    /// Bytes came.
    Output {
        /// Through which pipe.
        stream: Stream,
        /// How many.
        bytes: u64,
        /// They are progress as such.
        progress: bool,
    },
    /// A line of a typed stream that is progress.
    Line,
    /// A tool call began.
    ToolStart(String),
    /// Work behind a tool call begins, that may outlast it.
    TaskStart(String),
    /// A tool call ended.
    ToolEnd(String),
    /// The line with the final answer.
    ResultSeen,
    /// Such a line, which says that the run failed.
    FailureSeen,
    /// Standard error has a text that says that another way may work.
    HealSeen,
    /// The root has ended.
    RootExited {
        /// Its exit code.
        code: Option<i32>,
        /// The signal that it died of.
        signal: Option<i32>,
    },
    /// Nobody holds either pipe any more.
    PipesClosed,
    /// Somebody wants the end.
    Order(Trigger),
    /// Time has passed; told after everything else that was there at that time.
    Tick,
    /// The machine was suspended, for so long in all.
    Suspended(u64),
    /// The kill has come to its end.
    TreeGone {
        /// Processes that were killed.
        killed: u32,
        /// What could not be killed.
        survivors: Vec<Survivor>,
    },
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// This signal to the root alone.
    Signal(i32),
    /// Kill the root and everything below it, within [`KILL_MS`], and tell what came of it.
    Kill,
    /// Start the other way.
    Respawn,
    /// The result is complete.
    Settle,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Waiting,
    Running,
    /// Asked to end.
    Grace {
        until: u64,
    },
    Killing {
        until: u64,
        root_lived: bool,
        then: Then,
    },
    Draining {
        until: u64,
        left: u64,
        then: Then,
    },
    Settled,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    /// Read what is left in the pipes.
    Drain,
    /// Kill what is left of the tree.
    Sweep,
    Settle,
}

/// One turn.
#[derive(Debug)]
pub struct Machine {
    rules: Rules,
    phase: Phase,
    found: Found,
    /// The beginning of the present silence.
    quiet_since: u64,
    tools: BTreeSet<String>,
    budget_sent: bool,
    orders: u32,
    asked_early: Option<Trigger>,
    pipes_closed: bool,
    root_lives: bool,
    heal_seen: bool,
    /// The last that came is an answer, since then.
    answered: Option<u64>,
    /// That answer says that the run failed.
    answered_failed: bool,
    /// There was progress.
    got_going: bool,
    resumed: bool,
    actions: Vec<Action>,
}

impl Machine {
    /// A turn that begins now, at 0.
    pub fn new(rules: Rules) -> Self {
        let mut machine = Self {
            rules,
            phase: Phase::Waiting,
            found: Found::default(),
            quiet_since: 0,
            tools: BTreeSet::new(),
            budget_sent: false,
            orders: 0,
            asked_early: None,
            pipes_closed: false,
            root_lives: false,
            heal_seen: false,
            answered: None,
            answered_failed: false,
            got_going: false,
            resumed: false,
            actions: Vec::new(),
        };
        machine.trace(TraceKind::Started, None, 0);
        machine
    }

    /// What was found so far; complete once it is settled.
    pub fn found(&self) -> &Found {
        &self.found
    }

    /// The last progress.
    pub fn progress_ms(&self) -> u64 {
        self.quiet_since
    }

    /// Tool calls that are open.
    pub fn open_tools(&self) -> u32 {
        u32::try_from(self.tools.len()).unwrap_or(u32::MAX)
    }

    /// True once nothing follows.
    pub fn is_settled(&self) -> bool {
        self.phase == Phase::Settled
    }

    /// When the next [`Event::Tick`] is due.
    pub fn deadline(&self) -> Option<u64> {
        let wall = self.rules.wall_ms();
        match self.phase {
            Phase::Waiting | Phase::Settled => None,
            Phase::Running => {
                let budget = Some(self.rules.policy.budget_ms).filter(|_| self.budget_counts());
                [Some(wall), budget, self.stall_at(), self.leaves_at()].into_iter().flatten().min()
            }
            Phase::Grace { until } => Some(until.min(wall)),
            Phase::Killing { until, .. } | Phase::Draining { until, .. } => Some(until),
        }
    }

    /// The time by which it is settled, whatever happens from here on.
    pub fn settles_by(&self) -> u64 {
        let wall = self.rules.wall_ms();
        match self.phase {
            Phase::Settled => self.found.duration_ms,
            Phase::Waiting | Phase::Running => wall + KILL_MS + DRAIN_MS,
            _ if self.may_be_begun_anew() => wall + KILL_MS + DRAIN_MS,
            Phase::Grace { until } => until.min(wall) + KILL_MS + DRAIN_MS,
            Phase::Killing { until, then: Then::Drain, .. } => until + DRAIN_MS,
            Phase::Draining { until, then: Then::Sweep, .. } => until + KILL_MS,
            Phase::Killing { until, .. } | Phase::Draining { until, .. } => until,
        }
    }

    /// Takes an event, and gives what is to be done, in order.
    pub fn on(&mut self, event: Event, now: u64) -> Vec<Action> {
        if self.phase != Phase::Settled {
            self.take(event, now);
        }
        std::mem::take(&mut self.actions)
    }

    fn take(&mut self, event: Event, now: u64) {
        match event {
            Event::Spawned(pid) => self.spawned(pid, now),
            Event::Unspawned(why) => {
                self.found.unspawned = Some(why);
                self.settle(now);
            }
            Event::Output { stream, bytes, progress } => self.output(stream, bytes, progress, now),
            Event::Line => {
                self.found.events += 1;
                self.goes_on(now);
            }
            Event::ToolStart(id) => {
                self.goes_on(now);
                if self.tools.len() < TOOLS_MAX && !self.tools.insert(id) {
                    return;
                }
                self.found.tool_calls += 1;
            }
            Event::TaskStart(id) => {
                self.goes_on(now);
                if self.tools.len() < TOOLS_MAX {
                    self.tools.insert(id);
                }
            }
            Event::ToolEnd(id) => {
                if self.tools.contains(&id) {
                    self.progressed(now);
                    self.tools.remove(&id);
                }
            }
            Event::ResultSeen => self.result_seen(false, now),
            Event::FailureSeen => self.result_seen(true, now),
            Event::HealSeen => self.heal_seen = true,
            Event::RootExited { code, signal } => self.root_exited(code, signal, now),
            Event::PipesClosed => {
                self.pipes_closed = true;
                if let Phase::Draining { then, .. } = self.phase {
                    self.drained(then, now);
                }
            }
            Event::Order(why) => self.ordered(why, now),
            Event::Tick => self.tick(now),
            Event::Suspended(ms) => self.found.suspended_ms = self.found.suspended_ms.max(ms),
            Event::TreeGone { killed, survivors } => self.tree_gone(killed, survivors, now),
        }
    }

    fn spawned(&mut self, pid: i32, now: u64) {
        self.found.pid = Some(pid);
        self.found.attempts += 1;
        self.found.exit_code = None;
        self.found.signal = None;
        self.found.exit_observed = false;
        self.trace(TraceKind::Spawned, None, now);
        self.phase = Phase::Running;
        self.root_lives = true;
        self.pipes_closed = false;
        self.heal_seen = false;
        self.answered = None;
        self.tools.clear();
        self.quiet_since = now;
        if let Some(why) = self.asked_early.take() {
            self.climb(why, now);
        }
    }

    fn output(&mut self, stream: Stream, bytes: u64, progress: bool, now: u64) {
        match stream {
            Stream::Stdout => {
                if self.found.first_output_ms.is_none() {
                    self.found.first_output_ms = Some(now);
                    self.trace(TraceKind::FirstOutput, None, now);
                }
                self.found.stdout_bytes += bytes;
            }
            Stream::Stderr => self.found.stderr_bytes += bytes,
        }
        if progress {
            self.goes_on(now);
        }
        let policy = &self.rules.policy;
        let too_much = policy.overflow_fails && self.found.stdout_bytes > policy.output_max;
        match &mut self.phase {
            Phase::Running if too_much => self.climb(Trigger::Overflow, now),
            Phase::Draining { left, then, .. } => {
                *left = left.saturating_sub(bytes);
                if *left == 0 {
                    let then = *then;
                    self.drained(then, now);
                }
            }
            _ => {}
        }
    }

    /// Progress, or a tool call that begins: an answer before it was not the last.
    fn goes_on(&mut self, now: u64) {
        self.got_going = true;
        if self.phase == Phase::Running {
            self.answered = None;
        }
        self.progressed(now);
    }

    /// A silence is over.
    fn progressed(&mut self, now: u64) {
        self.end_silence(now);
        if self.found.stalled && !self.resumed && !self.found.killed {
            self.resumed = true;
            self.trace(TraceKind::Resumed, None, now);
        }
    }

    /// Silence is measured while the window of stalls runs: not in a tool call, not once the end has been asked for.
    fn end_silence(&mut self, now: u64) {
        if self.tools.is_empty() && self.root_lives && !self.ladder_is_set_off() {
            let silence = now.saturating_sub(self.quiet_since);
            self.found.longest_silence_ms = self.found.longest_silence_ms.max(silence);
        }
        self.quiet_since = now;
    }

    /// The budget alone sets no ladder off.
    fn ladder_is_set_off(&self) -> bool {
        self.found.trigger.is_some_and(|t| t != Trigger::Budget)
    }

    fn result_seen(&mut self, failed: bool, now: u64) {
        self.found.result_seen = true;
        self.found.late |= self.found.trigger.is_some() && !self.found.killed;
        (self.answered, self.answered_failed) = (Some(now), failed);
    }

    /// True while there is an answer, nothing came after it, and no tool call is open: nothing but the exit is awaited.
    fn is_done(&self) -> bool {
        self.answered.is_some() && self.tools.is_empty()
    }

    /// When one that is done is ended. A harness that answered well has the grace to write down what it did, and some time
    /// even where there is none.
    fn leaves_at(&self) -> Option<u64> {
        let since = self.answered.filter(|_| self.tools.is_empty())?.max(self.quiet_since);
        let policy = &self.rules.policy;
        let wait = if self.answered_failed { policy.exit_wait_ms } else { policy.grace_ms.max(LEAVE_MS) };
        Some(since.saturating_add(wait))
    }

    /// True while the budget's signal is to come. One that is done has its own end.
    fn budget_counts(&self) -> bool {
        !self.budget_sent && !self.is_done()
    }

    fn root_exited(&mut self, code: Option<i32>, signal: Option<i32>, now: u64) {
        self.end_silence(now);
        (self.found.exit_code, self.found.signal) = (code, signal);
        self.found.exit_observed = true;
        self.found.late |= code == Some(0) && self.found.trigger.is_some() && !self.found.killed;
        self.root_lives = false;
        self.trace(TraceKind::Exited, None, now);
        if matches!(self.phase, Phase::Running | Phase::Grace { .. }) {
            self.drain(Then::Sweep, now);
        }
    }

    fn ordered(&mut self, why: Trigger, now: u64) {
        self.orders += 1;
        match self.phase {
            Phase::Waiting => self.asked_early = self.asked_early.or(Some(why)),
            // There is an answer already: the process is asked to go, and is not waited for any longer than it was.
            Phase::Running if self.is_done() => match (self.rules.cancel_signal, self.leaves_at()) {
                (Some(signal), Some(until)) => {
                    self.actions.push(Action::Signal(signal));
                    self.phase = Phase::Grace { until };
                }
                _ => self.kill(now),
            },
            Phase::Running => self.climb(why, now),
            Phase::Grace { .. } if self.orders > 1 => self.kill(now),
            _ => {}
        }
    }

    fn tick(&mut self, now: u64) {
        let wall = self.rules.wall_ms();
        if self.phase == Phase::Running && self.budget_counts() {
            let budget = self.rules.policy.budget_ms;
            match self.stall_at() {
                // Told late of both, the one that was due first has happened.
                Some(stall) if now >= stall && stall <= budget => self.climb(Trigger::Stall, now),
                _ if now >= budget && now < wall => {
                    self.budget_sent = true;
                    self.found.trigger = Some(Trigger::Budget);
                    self.actions.push(Action::Signal(self.rules.budget_signal));
                }
                _ => {}
            }
        }
        match self.phase {
            Phase::Running if self.leaves_at().is_some_and(|at| now >= at.min(wall)) => self.kill(now),
            Phase::Running if now >= wall => {
                self.end_silence(now);
                self.found.trigger = Some(Trigger::WallClock);
                self.kill(now);
            }
            Phase::Grace { until } if now >= until.min(wall) => self.kill(now),
            Phase::Killing { until, root_lived, then } if now >= until => {
                self.killed(root_lived, then, now);
            }
            Phase::Draining { until, then, .. } if now >= until => self.drained(then, now),
            _ => {}
        }
    }

    /// When the present silence is a stall.
    fn stall_at(&self) -> Option<u64> {
        let policy = &self.rules.policy;
        let window = if self.tools.is_empty() { policy.stall_ms } else { policy.stall_in_tool_ms };
        (window > 0 && self.budget_counts()).then(|| self.quiet_since.saturating_add(window))
    }

    /// Sets the ladder off. An adapter without a signal has no rung to ask on, and nobody to wait for.
    fn climb(&mut self, why: Trigger, now: u64) {
        self.end_silence(now);
        self.found.trigger = Some(why);
        if why == Trigger::Stall {
            self.found.stalled = true;
            self.trace(TraceKind::Stalled, None, now);
        }
        match self.rules.cancel_signal {
            Some(signal) => {
                self.found.cancelled = true;
                self.trace(TraceKind::Recovery, Some(Rung::Cancel), now);
                self.actions.push(Action::Signal(signal));
                self.phase = Phase::Grace { until: now.saturating_add(self.rules.policy.grace_ms) };
            }
            None => self.kill(now),
        }
    }

    fn kill(&mut self, now: u64) {
        self.found.killed = true;
        self.trace(TraceKind::Recovery, Some(Rung::Kill), now);
        self.sweep(Then::Drain, now);
    }

    fn sweep(&mut self, then: Then, now: u64) {
        self.phase = Phase::Killing { until: now + KILL_MS, root_lived: self.root_lives, then };
        self.actions.push(Action::Kill);
    }

    fn tree_gone(&mut self, killed: u32, survivors: Vec<Survivor>, now: u64) {
        if let Phase::Killing { root_lived, then, .. } = self.phase {
            self.found.killed_processes += killed;
            if !root_lived {
                self.found.left_behind += killed;
            }
            self.found.survivors.extend(survivors);
            self.killed(root_lived, then, now);
        }
    }

    fn killed(&mut self, root_lived: bool, then: Then, now: u64) {
        if !root_lived && self.may_heal() && now < self.rules.policy.budget_ms {
            // What the first run wrote is dropped, a typed result with it.
            (self.found.stdout_bytes, self.found.stderr_bytes) = (0, 0);
            self.found.first_output_ms = None;
            self.found.result_seen = false;
            self.actions.push(Action::Respawn);
            self.phase = Phase::Waiting;
        } else if then == Then::Drain {
            self.drain(Then::Settle, now);
        } else {
            self.settle(now);
        }
    }

    /// True where a run that ended by itself is begun anew in the other way.
    fn may_heal(&self) -> bool {
        self.may_be_begun_anew() && self.heal_seen && self.found.exit_observed
    }

    /// True while it is not certain that this run is the only one: it may still fail before any progress.
    fn may_be_begun_anew(&self) -> bool {
        let first = self.rules.heals && self.found.attempts == 1 && !self.got_going;
        let untouched = self.found.trigger.is_none() && self.orders == 0 && !self.found.killed;
        first && untouched && !(self.found.exit_observed && self.found.exit_code == Some(0))
    }

    fn drain(&mut self, then: Then, now: u64) {
        if self.pipes_closed {
            self.drained(then, now);
        } else {
            self.phase = Phase::Draining { until: now + DRAIN_MS, left: DRAIN_BYTES, then };
        }
    }

    fn drained(&mut self, then: Then, now: u64) {
        if then == Then::Sweep { self.sweep(Then::Settle, now) } else { self.settle(now) }
    }

    fn settle(&mut self, now: u64) {
        self.found.duration_ms = now;
        self.trace(TraceKind::Settled, None, now);
        self.phase = Phase::Settled;
        self.actions.push(Action::Settle);
    }

    fn trace(&mut self, kind: TraceKind, action: Option<Rung>, at_ms: u64) {
        self.found.trace.push(Trace { kind, at_ms, action });
    }
}
