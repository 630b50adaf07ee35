//! A seeded simulation: any events in any order, a harness that obeys or does not, a kill that comes back or does not,
//! ticks that come late, and a shim or a daemon that dies. Every run settles once, by its bound, with the right name,
//! and the bound never grows.

use minder_proto::turn::names::TraceKind;

use super::*;

/// Runs of the simulation; each is of another seed.
const RUNS: u64 = 20_000;

/// Numbers that are the same for the same seed (splitmix64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below
    }

    fn one_in(&mut self, many: u64) -> bool {
        self.roll(many) == 0
    }
}

/// The world around one machine.
struct World {
    dice: Dice,
    machine: Machine,
    rules: Rules,
    now: u64,
    settled: u32,
    root: bool,
    /// What the root does about a signal: nothing, or it ends so much later.
    obeys: Option<u64>,
    ends_at: Option<u64>,
    /// A kill that is at work comes back then, if it does.
    kill_ends: Option<u64>,
    pipes: bool,
    bound: u64,
    trigger_at_exit: Option<(Option<Trigger>, bool)>,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut dice = Dice(seed);
        let policy = Policy {
            budget_ms: 1_000 + dice.roll(20_000),
            stall_ms: if dice.one_in(3) { 0 } else { 100 + dice.roll(5_000) },
            stall_in_tool_ms: if dice.one_in(2) { 0 } else { 100 + dice.roll(8_000) },
            grace_ms: dice.roll(6_000),
            backstop_ms: dice.roll(4_000),
            exit_wait_ms: dice.roll(4_000),
            output_max: dice.roll(5_000),
            overflow_fails: dice.one_in(4),
        };
        let cancel_signal = (!dice.one_in(4)).then_some(15);
        let rules = Rules { policy, cancel_signal, budget_signal: 15, heals: dice.one_in(3) };
        let obeys = dice.one_in(2).then(|| dice.roll(4_000));
        let machine = Machine::new(rules);
        let bound = machine.settles_by();
        Self {
            dice,
            machine,
            rules,
            now: 0,
            settled: 0,
            root: false,
            obeys,
            ends_at: None,
            kill_ends: None,
            pipes: true,
            bound,
            trigger_at_exit: None,
        }
    }

    fn tell(&mut self, event: Event) {
        let after_end = self.machine.is_settled().then(|| self.machine.found().clone());
        let root_exits = matches!(event, Event::RootExited { .. });
        for action in self.machine.on(event, self.now) {
            match action {
                Action::Signal(_) => self.ends_at = self.obeys.map(|after| self.now + after).or(self.ends_at),
                Action::Kill => {
                    assert_eq!(self.kill_ends, None, "a kill at a time");
                    let ends =
                        if self.dice.one_in(10) { u64::MAX } else { self.now + self.dice.roll(KILL_MS) };
                    self.kill_ends = Some(ends);
                }
                Action::Respawn => {
                    if self.dice.one_in(4) {
                        let why = Unspawned { failure: minder_proto::turn::Failure::NotFound, errno: None };
                        self.tell(Event::Unspawned(why));
                    } else {
                        self.spawn();
                    }
                }
                Action::Settle => self.settled += 1,
            }
        }
        if root_exits {
            let found = self.machine.found();
            self.trigger_at_exit.get_or_insert((found.trigger, found.killed));
        }
        if let Some(before) = after_end {
            assert_eq!(&before, self.machine.found(), "nothing follows the end");
        }
        let by = self.machine.settles_by();
        assert!(by <= self.bound, "the bound grew from {} to {by}: {:?}", self.bound, self.machine);
        self.bound = by;
    }

    fn spawn(&mut self) {
        (self.root, self.pipes, self.ends_at) = (true, true, None);
        self.trigger_at_exit = None;
        self.tell(Event::Spawned(100));
        if self.rules.heals && self.dice.one_in(4) {
            self.tell(Event::HealSeen);
            self.end_root(Some(1));
        }
    }

    /// The root ends, with a code that is well or not.
    fn end_root(&mut self, code: Option<i32>) {
        if self.root {
            self.root = false;
            let signal = code.is_none().then_some(9);
            self.tell(Event::RootExited { code, signal });
        }
    }

    /// Something that the harness, a caller or the system does.
    fn happens(&mut self) {
        let event = match self.dice.roll(16) {
            0..=2 => Event::Output {
                stream: if self.dice.one_in(3) { Stream::Stderr } else { Stream::Stdout },
                bytes: 1 + self.dice.roll(2_000),
                progress: self.dice.one_in(2),
            },
            3 => Event::Line,
            4 | 5 => Event::ToolStart(self.dice.roll(3).to_string()),
            6 | 7 => Event::ToolEnd(self.dice.roll(3).to_string()),
            8 if self.dice.one_in(4) => {
                if self.dice.one_in(3) {
                    Event::FailureSeen
                } else {
                    Event::ResultSeen
                }
            }
            9 => Event::HealSeen,
            10 if self.dice.one_in(6) => {
                let code = i32::try_from(self.dice.roll(2)).unwrap();
                return self.end_root(Some(code));
            }
            11 if self.dice.one_in(6) && self.pipes => {
                self.pipes = false;
                Event::PipesClosed
            }
            12 | 13 if self.dice.one_in(8) => Event::Order(Trigger::Cancel),
            14 if self.dice.one_in(8) => Event::Order(Trigger::Boundary),
            15 => Event::Suspended(self.dice.roll(1_000_000)),
            _ => return,
        };
        self.tell(event);
    }

    /// Until it is settled, or its shim dies. Time moves to what is due next, or a step on.
    fn run(&mut self, shim_dies: Option<u64>) -> bool {
        self.spawn();
        while self.settled == 0 {
            if shim_dies.is_some_and(|at| self.now >= at) {
                return false;
            }
            let step = self.now + 1 + self.dice.roll(700);
            let due = [self.machine.deadline(), self.ends_at.filter(|_| self.root), self.kill_ends];
            self.now = due.into_iter().flatten().chain([step]).min().unwrap().max(self.now);
            assert!(self.now <= self.bound, "not settled by {}: {:?}", self.bound, self.machine);
            if self.now == step {
                self.happens();
            }
            if self.ends_at.is_some_and(|at| self.now >= at) {
                self.ends_at = None;
                self.end_root(Some(0));
            }
            if self.kill_ends.is_some_and(|at| self.now >= at) {
                self.kill_ends = None;
                self.end_root(None);
                self.tell(Event::TreeGone { killed: 1, survivors: Vec::new() });
            }
            self.tell(Event::Tick);
            let over = self.machine.deadline().is_some_and(|at| at < self.now);
            assert!(!over, "a deadline that is over: {:?}", self.machine);
            if self.kill_ends == Some(u64::MAX) && !matches!(self.machine.phase, Phase::Killing { .. }) {
                self.kill_ends = None;
            }
        }
        true
    }

    /// The name is right.
    fn judge(&self) {
        let found = self.machine.found();
        let of = |kind| found.trace.iter().filter(move |t| t.kind == kind).count();
        assert_eq!((self.settled, of(TraceKind::Settled), of(TraceKind::Started)), (1, 1, 1));
        assert_eq!(found.trace.last().map(|t| t.kind), Some(TraceKind::Settled));
        assert!(found.trace.is_sorted_by_key(|t| t.at_ms), "{:?}", found.trace);
        assert!(of(TraceKind::Stalled) <= 1 && of(TraceKind::Recovery) <= 2);
        assert_eq!(found.stalled, found.trigger == Some(Trigger::Stall));
        assert_eq!(found.cancelled, found.trace.iter().any(|t| t.action == Some(Rung::Cancel)));
        assert_eq!(found.killed, found.trace.iter().any(|t| t.action == Some(Rung::Kill)));
        let wall = self.rules.wall_ms();
        assert!(found.duration_ms <= wall + KILL_MS + DRAIN_MS);
        match found.trigger {
            // What nobody triggered ended by itself, was done, or never ran.
            None => assert!(found.unspawned.is_some() || found.exit_observed || found.result_seen),
            Some(Trigger::WallClock) => assert!(found.killed && found.duration_ms >= wall),
            Some(Trigger::Budget) => {
                assert!(found.duration_ms >= self.rules.policy.budget_ms);
                assert!(!found.killed || found.result_seen, "what lives at the wall is the wall's");
            }
            Some(Trigger::Overflow) => assert!(self.rules.policy.overflow_fails),
            Some(Trigger::Stall) => {
                let windows = [self.rules.policy.stall_ms, self.rules.policy.stall_in_tool_ms];
                assert!(windows.into_iter().any(|w| w > 0 && found.longest_silence_ms.max(w) >= w));
            }
            Some(Trigger::Cancel | Trigger::Boundary) => {}
        }
        // What had ended before anything was wrong with it is what it was.
        if let Some((None, false)) = self.trigger_at_exit {
            assert_eq!((found.trigger, found.late, found.killed), (None, false, false));
        }
    }
}

#[test]
fn every_run_settles_once_by_its_bound_with_the_right_name() {
    let mut triggers = std::collections::BTreeMap::new();
    let (mut late, mut healed) = (0, 0);
    for seed in 0..RUNS {
        let mut world = World::new(seed);
        assert!(world.run(None));
        world.judge();
        let found = world.machine.found();
        *triggers.entry(found.trigger).or_insert(0) += 1;
        late += u32::from(found.late);
        healed += u32::from(found.attempts == 2);
        // Whatever comes afterwards.
        for _ in 0..20 {
            world.now += 1 + world.dice.roll(10_000);
            world.happens();
            world.tell(Event::Tick);
        }
        assert_eq!(world.settled, 1);
    }
    // All of it was played.
    assert_eq!(triggers.len(), Trigger::ALL.len() + 1, "{triggers:?}");
    assert!(triggers.values().all(|n| *n > 20) && late > 20 && healed > 20, "{triggers:?} {late} {healed}");
}

/// What whoever comes later sees of a turn: the facts of its folder, and nothing else.
#[derive(Clone, Copy, Debug, Default)]
struct Folder {
    result: bool,
    lock_held: bool,
    lines: u32,
    orphans: bool,
}

/// One look of a daemon, in the order of the contract: the lock before the result, since a shim writes its result
/// while it holds the lock.
fn daemon_looks(folder: &mut Folder) {
    let free = !folder.lock_held;
    let done = folder.result || free;
    if done && folder.lines == 0 {
        // Of a shim that left no result the rest of the tree is ended first, by the marker.
        folder.orphans &= folder.result;
        folder.lines += 1;
    }
}

#[test]
fn a_shim_or_a_daemon_that_dies_leaves_one_line_and_no_process() {
    let (mut lost, mut found) = (0, 0);
    for seed in 0..2_000 {
        let mut world = World::new(seed);
        let dies = world.dice.one_in(2).then(|| world.dice.roll(12_000));
        let mut folder = Folder { lock_held: true, orphans: true, ..Folder::default() };
        // A daemon looks at any time, is killed, and another looks.
        for _ in 0..world.dice.roll(3) {
            daemon_looks(&mut folder);
        }
        assert_eq!(folder.lines, 0, "what runs is left alone");
        folder.result = world.run(dies);
        folder.orphans &= !folder.result;
        if world.dice.one_in(2) {
            // Between the result and the exit of the shim.
            daemon_looks(&mut folder);
        }
        folder.lock_held = false;
        for _ in 0..=world.dice.roll(3) {
            daemon_looks(&mut folder);
        }
        assert_eq!((folder.lines, folder.orphans), (1, false), "{folder:?}");
        *(if folder.result { &mut found } else { &mut lost }) += 1;
    }
    assert!(lost > 100 && found > 100);
}
