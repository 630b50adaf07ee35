//! The rules of the windows and the ladder, as tables: what happens when, what is done then, what is found at the end.

use minder_proto::turn::Failure;
use minder_proto::turn::names::TraceKind as Kind;

use super::*;

const CANCEL: i32 = 2;
const BUDGET: i32 = 15;

fn rules() -> Rules {
    let policy = Policy {
        budget_ms: 60_000,
        stall_ms: 2_000,
        stall_in_tool_ms: 0,
        grace_ms: 1_000,
        backstop_ms: 5_000,
        exit_wait_ms: 3_000,
        output_max: 1_000,
        overflow_fails: false,
    };
    Rules { policy, cancel_signal: Some(CANCEL), budget_signal: BUDGET, heals: false }
}

fn out(bytes: u64) -> Event {
    Event::Output { stream: Stream::Stdout, bytes, progress: true }
}

fn exit(code: i32) -> Event {
    Event::RootExited { code: Some(code), signal: None }
}

fn gone(killed: u32) -> Event {
    Event::TreeGone { killed, survivors: Vec::new() }
}

/// Plays events at their times with a tick whenever one is due, and gives every action with its time.
struct Play {
    machine: Machine,
    done: Vec<(u64, Action)>,
}

impl Play {
    fn new(rules: Rules) -> Self {
        let mut play = Self { machine: Machine::new(rules), done: Vec::new() };
        play.at(0, Event::Spawned(7));
        play
    }

    fn at(&mut self, now: u64, event: Event) -> &mut Self {
        while let Some(due) = self.machine.deadline().filter(|due| *due < now) {
            self.tell(due, Event::Tick);
        }
        self.tell(now, event);
        self
    }

    fn until(&mut self, now: u64) -> &mut Self {
        self.at(now, Event::Tick)
    }

    fn tell(&mut self, now: u64, event: Event) {
        let actions = self.machine.on(event, now);
        self.done.extend(actions.into_iter().map(|action| (now, action)));
    }

    fn found(&self) -> &Found {
        assert!(self.machine.is_settled(), "{:?}", self.machine);
        self.machine.found()
    }

    fn trace(&self) -> Vec<(Kind, u64)> {
        self.machine.found().trace.iter().map(|t| (t.kind, t.at_ms)).collect()
    }
}

#[test]
fn a_run_that_ends_is_settled_at_once() {
    let mut play = Play::new(rules());
    play.at(10, out(5)).at(20, Event::PipesClosed).at(21, exit(0)).at(21, gone(0));
    assert_eq!(play.done, [(21, Action::Kill), (21, Action::Settle)]);
    let found = play.found();
    assert_eq!((found.exit_code, found.trigger, found.duration_ms, found.attempts), (Some(0), None, 21, 1));
    assert!(!found.killed && !found.late && found.exit_observed);
    assert_eq!((found.longest_silence_ms, found.first_output_ms), (11, Some(10)));
    let kinds = [(Kind::Started, 0), (Kind::Spawned, 0), (Kind::FirstOutput, 10), (Kind::Exited, 21)];
    assert_eq!(play.trace(), [&kinds[..], &[(Kind::Settled, 21)]].concat());
}

#[test]
fn f3_a_pipe_that_stays_open_is_read_for_half_a_second_or_a_mebibyte() {
    let mut play = Play::new(rules());
    play.at(10, exit(0)).at(11, out(5)).until(600).at(620, gone(1));
    assert_eq!(play.done, [(510, Action::Kill), (620, Action::Settle)]);
    let found = play.found();
    assert_eq!((found.left_behind, found.killed_processes, found.killed, found.trigger), (1, 1, false, None));

    let mut play = Play::new(rules());
    play.at(10, exit(0)).at(11, out(DRAIN_BYTES - 1));
    assert_eq!(play.done, []);
    play.at(12, out(1));
    assert_eq!(play.done, [(12, Action::Kill)]);
}

#[test]
fn f4_every_rung_has_its_deadline() {
    let mut play = Play::new(rules());
    play.until(1_999);
    assert_eq!(play.done, []);
    play.until(3_000).at(3_010, Event::RootExited { code: None, signal: Some(9) }).at(3_020, gone(3));
    assert_eq!(play.done, [(2_000, Action::Signal(CANCEL)), (3_000, Action::Kill)]);
    // The output that was on its way.
    play.at(3_021, Event::PipesClosed);
    let found = play.found();
    assert_eq!(
        (found.trigger, found.stalled, found.cancelled, found.killed),
        (Some(Trigger::Stall), true, true, true)
    );
    assert_eq!((found.killed_processes, found.left_behind, found.longest_silence_ms), (3, 0, 2_000));
    let rungs: Vec<_> = found.trace.iter().filter_map(|t| Some((t.at_ms, t.action?))).collect();
    assert_eq!(rungs, [(2_000, Rung::Cancel), (3_000, Rung::Kill)]);
    let stalls = found.trace.iter().filter(|t| t.kind == Kind::Stalled).count();
    assert_eq!(stalls, 1);
}

#[test]
fn f4_a_kill_that_does_not_come_back_is_no_reason_to_wait() {
    let mut play = Play::new(rules());
    play.at(500, Event::Order(Trigger::Cancel)).until(20_000);
    assert_eq!(play.done[1], (1_500, Action::Kill));
    assert_eq!(play.found().duration_ms, 1_500 + KILL_MS + DRAIN_MS);
    assert!(!play.found().exit_observed);
}

#[test]
fn f4_an_answer_in_the_grace_is_kept_and_late() {
    let mut play = Play::new(rules());
    play.at(500, Event::Order(Trigger::Cancel)).at(900, out(5)).at(901, exit(0)).at(902, Event::PipesClosed);
    play.at(902, gone(0));
    let found = play.found();
    assert_eq!((found.trigger, found.late, found.killed), (Some(Trigger::Cancel), true, false));
    let mut play = Play::new(rules());
    play.at(500, Event::Order(Trigger::Cancel)).at(900, Event::ResultSeen).until(1_500);
    assert_eq!(play.done[1], (1_500, Action::Kill), "a result does not lengthen the grace");
    assert!(play.machine.found().late && play.machine.found().result_seen);
    // Killed is not ended.
    let mut play = Play::new(rules());
    play.at(500, Event::Order(Trigger::Cancel)).at(1_501, exit(0));
    assert!(!play.machine.found().late);
}

#[test]
fn a_second_cancel_kills_at_once() {
    let mut play = Play::new(rules());
    play.at(500, Event::Order(Trigger::Cancel)).at(600, Event::Order(Trigger::Cancel));
    assert_eq!(play.done, [(500, Action::Signal(CANCEL)), (600, Action::Kill)]);
    // The first of a caller in the grace of a stall is not a second.
    let mut play = Play::new(rules());
    play.until(2_100).at(2_200, Event::Order(Trigger::Cancel));
    assert_eq!(play.done.len(), 1);
    play.at(2_300, Event::Order(Trigger::Cancel));
    assert_eq!(play.done[1], (2_300, Action::Kill));
    assert_eq!(play.machine.found().trigger, Some(Trigger::Stall));
}

#[test]
fn without_a_signal_there_is_nobody_to_wait_for() {
    let mut play = Play::new(Rules { cancel_signal: None, ..rules() });
    play.at(500, Event::Order(Trigger::Boundary));
    assert_eq!(play.done, [(500, Action::Kill)]);
    let found = play.machine.found();
    assert_eq!((found.trigger, found.cancelled, found.killed), (Some(Trigger::Boundary), false, true));
}

#[test]
fn the_budget_sends_one_signal_and_the_wall_kills() {
    let busy = Rules { policy: Policy { stall_ms: 0, ..rules().policy }, ..rules() };
    let mut play = Play::new(busy);
    play.until(60_100).at(60_200, exit(143)).at(60_200, Event::PipesClosed).at(60_200, gone(0));
    assert_eq!(play.done[0], (60_000, Action::Signal(BUDGET)));
    assert_eq!((play.found().trigger, play.found().killed), (Some(Trigger::Budget), false));
    let mut play = Play::new(busy);
    play.until(65_000);
    assert_eq!(play.done, [(60_000, Action::Signal(BUDGET)), (65_000, Action::Kill)]);
    assert_eq!(play.machine.found().trigger, Some(Trigger::WallClock));
    // A caller's cancel is a ladder of its own; the wall is not moved by it.
    let mut play = Play::new(Rules { policy: Policy { grace_ms: 60_000, ..busy.policy }, ..busy });
    play.until(60_000).at(61_000, Event::Order(Trigger::Cancel)).until(66_000);
    let done = [(60_000, Action::Signal(BUDGET)), (61_000, Action::Signal(CANCEL)), (65_000, Action::Kill)];
    assert_eq!(play.done, done);
    assert_eq!(play.machine.found().trigger, Some(Trigger::Cancel));
    // No backstop, no signal before the kill.
    let mut play = Play::new(Rules { policy: Policy { backstop_ms: 0, ..busy.policy }, ..busy });
    play.until(60_000);
    assert_eq!(play.done, [(60_000, Action::Kill)]);
}

#[test]
fn g1_an_open_tool_call_is_no_stall() {
    let mut play = Play::new(rules());
    play.at(1_000, Event::ToolStart("a".into())).at(1_500, Event::ToolStart("b".into()));
    play.at(10_000, Event::ToolEnd("a".into())).until(21_000);
    assert_eq!(play.done, []);
    play.at(21_000, Event::ToolEnd("b".into())).until(22_999);
    assert_eq!(play.done, []);
    play.until(23_000);
    assert_eq!(play.done, [(23_000, Action::Signal(CANCEL))]);
    assert_eq!((play.machine.found().tool_calls, play.machine.found().longest_silence_ms), (2, 2_000));
    // The end of a call that is not open is nothing.
    let mut play = Play::new(rules());
    play.at(1_500, Event::ToolEnd("x".into())).until(2_000);
    assert_eq!(play.done, [(2_000, Action::Signal(CANCEL))]);
    // The wall ends even an open tool.
    let mut play = Play::new(rules());
    play.at(1_000, Event::ToolStart("a".into())).until(65_000);
    assert_eq!(play.done, [(60_000, Action::Signal(BUDGET)), (65_000, Action::Kill)]);
    // A window of its own.
    let mut play =
        Play::new(Rules { policy: Policy { stall_in_tool_ms: 9_000, ..rules().policy }, ..rules() });
    play.at(1_000, Event::ToolStart("a".into())).until(10_000);
    assert_eq!(play.done, [(10_000, Action::Signal(CANCEL))]);
}

#[test]
fn g2_bytes_that_are_no_progress_are_silence() {
    let mut play = Play::new(rules());
    for at in (0..2_000).step_by(100) {
        play.at(at, Event::Output { stream: Stream::Stdout, bytes: 10, progress: false });
        play.at(at, Event::Output { stream: Stream::Stderr, bytes: 10, progress: false });
    }
    play.until(2_000);
    assert_eq!(play.done, [(2_000, Action::Signal(CANCEL))]);
    let mut play = Play::new(rules());
    play.at(1_900, Event::Line).until(3_800);
    assert_eq!((play.done.len(), play.machine.found().events), (0, 1));
}

#[test]
fn g3_one_episode_is_one_event_and_one_cancel() {
    let mut play = Play::new(Rules { policy: Policy { grace_ms: 30_000, ..rules().policy }, ..rules() });
    play.until(22_000).at(23_000, out(1)).at(29_000, out(1));
    assert_eq!(play.done, [(2_000, Action::Signal(CANCEL))]);
    let of = |kind| {
        play.machine.found().trace.iter().filter(|t| t.kind == kind).map(|t| t.at_ms).collect::<Vec<_>>()
    };
    assert_eq!((of(Kind::Stalled), of(Kind::Resumed)), (vec![2_000], vec![23_000]));
}

#[test]
fn g5_a_suspend_is_neither_silence_nor_time() {
    let mut play = Play::new(rules());
    play.at(1_900, Event::Suspended(8 * 3_600_000)).until(1_999);
    assert_eq!(play.done, []);
    play.at(1_999, out(1)).at(2_500, exit(0)).at(2_500, Event::PipesClosed).at(2_500, gone(0));
    let found = play.found();
    assert_eq!((found.suspended_ms, found.duration_ms, found.stalled), (8 * 3_600_000, 2_500, false));
    assert_eq!(found.longest_silence_ms, 1_999);
}

#[test]
fn f12_an_answer_without_an_exit_is_reaped_after_the_grace() {
    let mut play = Play::new(rules());
    play.at(500, Event::ResultSeen).until(1_500);
    assert_eq!(play.done, [(1_500, Action::Kill)]);
    play.at(1_510, Event::RootExited { code: None, signal: Some(9) })
        .at(1_510, gone(1))
        .at(1_510, Event::PipesClosed);
    let found = play.found();
    assert_eq!((found.trigger, found.result_seen, found.killed, found.late), (None, true, true, false));
    // One that says that it failed has the exit wait, one without a grace has a second.
    let mut play = Play::new(rules());
    play.at(500, Event::FailureSeen).until(3_500);
    assert_eq!(play.done, [(3_500, Action::Kill)]);
    assert!(play.machine.found().result_seen);
    let hasty = Rules { policy: Policy { grace_ms: 0, ..rules().policy }, ..rules() };
    let mut play = Play::new(hasty);
    play.at(500, Event::ResultSeen).until(1_500);
    assert_eq!(play.done, [(1_500, Action::Kill)]);
    let mut play = Play::new(hasty);
    play.at(500, Event::ResultSeen).at(900, exit(0)).at(900, Event::PipesClosed).at(901, gone(0));
    assert!(!play.found().killed);
    // A caller that cannot wait asks the process to go, and waits no longer than it would have.
    let mut play = Play::new(rules());
    play.at(500, Event::ResultSeen).at(800, Event::Order(Trigger::Cancel)).until(1_500);
    assert_eq!(play.done, [(800, Action::Signal(CANCEL)), (1_500, Action::Kill)]);
    assert_eq!(play.machine.found().trigger, None);
}

#[test]
fn an_answer_that_is_followed_by_more_is_not_the_last() {
    let mut play = Play::new(rules());
    play.at(500, Event::ResultSeen).at(1_000, Event::Line).until(2_999);
    assert_eq!(play.done, []);
    play.until(3_000);
    assert_eq!((play.done.len(), play.machine.found().trigger), (1, Some(Trigger::Stall)));
    // A tool call in the background: the grace begins when it has ended.
    let mut play = Play::new(rules());
    play.at(400, Event::ToolStart("a".into())).at(500, Event::ResultSeen).until(9_000);
    play.at(9_000, Event::ToolEnd("a".into())).until(10_000);
    assert_eq!(play.done, [(10_000, Action::Kill)]);
    assert_eq!(play.machine.found().trigger, None);
    // So it does for work behind a call, which is none itself.
    let mut play = Play::new(rules());
    play.at(300, Event::ToolStart("a".into())).at(310, Event::TaskStart("t".into()));
    play.at(400, Event::ToolEnd("a".into())).at(500, Event::ResultSeen).until(9_000);
    play.at(9_000, Event::ToolEnd("t".into())).until(10_000);
    assert_eq!(
        (play.done.as_slice(), play.machine.found().tool_calls),
        ([(10_000, Action::Kill)].as_slice(), 1)
    );
    // One that never ends is at work, and has the wall.
    let mut play = Play::new(rules());
    play.at(400, Event::ToolStart("a".into())).at(500, Event::ResultSeen).until(65_000);
    assert_eq!(play.done, [(60_000, Action::Signal(BUDGET)), (65_000, Action::Kill)]);
    assert_eq!(play.machine.found().trigger, Some(Trigger::WallClock));
    // Done shortly before the budget: its end is the grace's, or the wall's.
    let long = Rules { policy: Policy { grace_ms: 9_000, ..rules().policy }, ..rules() };
    let mut play = Play::new(long);
    play.at(400, Event::ToolStart("a".into())).at(59_000, Event::ToolEnd("a".into()));
    play.at(59_500, Event::ResultSeen).until(65_000);
    assert_eq!(play.done, [(65_000, Action::Kill)]);
    assert_eq!(play.machine.found().trigger, None);
}

#[test]
fn too_much_output_sets_the_ladder_off_where_it_is_to_fail() {
    let mut play = Play::new(rules());
    play.at(10, out(1_001));
    assert_eq!(play.done, []);
    let mut play = Play::new(Rules { policy: Policy { overflow_fails: true, ..rules().policy }, ..rules() });
    play.at(10, out(1_000)).at(20, out(1)).at(30, out(1));
    assert_eq!(play.done, [(20, Action::Signal(CANCEL))]);
    assert_eq!(play.machine.found().trigger, Some(Trigger::Overflow));
}

#[test]
fn a_run_that_failed_before_any_progress_is_begun_anew_once() {
    let heals = Rules { heals: true, ..rules() };
    let silent = Event::Output { stream: Stream::Stdout, bytes: 9, progress: false };
    let mut play = Play::new(heals);
    play.at(10, silent.clone()).at(10, Event::ResultSeen).at(11, Event::HealSeen).at(12, exit(1));
    play.at(13, Event::PipesClosed).at(14, gone(1));
    assert_eq!(play.done, [(13, Action::Kill), (14, Action::Respawn)]);
    play.at(15, Event::Spawned(8)).at(20, Event::HealSeen).at(21, exit(1)).at(21, Event::PipesClosed);
    play.at(22, gone(0));
    assert_eq!(play.done[2..], [(21, Action::Kill), (22, Action::Settle)]);
    let found = play.found();
    assert_eq!((found.attempts, found.stdout_bytes, found.result_seen, found.pid), (2, 0, false, Some(8)));
    // Not where it was well, had got going, was asked to end, or says nothing of the kind.
    for events in [
        vec![Event::HealSeen, exit(0)],
        vec![out(1), Event::HealSeen, exit(1)],
        vec![Event::HealSeen, Event::Order(Trigger::Cancel), exit(1)],
        vec![exit(1)],
        vec![Event::HealSeen, exit(1), Event::Order(Trigger::Cancel)],
    ] {
        let mut play = Play::new(heals);
        for event in events.clone() {
            play.at(10, event);
        }
        play.at(11, Event::PipesClosed).at(12, gone(0));
        assert!(play.done.iter().all(|(_, action)| *action != Action::Respawn), "{events:?}");
        assert!(play.machine.is_settled(), "{events:?}");
    }
}

#[test]
fn what_could_not_be_started_is_settled() {
    let mut machine = Machine::new(rules());
    let why = Unspawned { failure: Failure::NotFound, errno: Some(2) };
    assert_eq!(machine.on(Event::Unspawned(why.clone()), 3), [Action::Settle]);
    assert_eq!((machine.found().unspawned.as_ref(), machine.found().attempts), (Some(&why), 0));
    assert_eq!(machine.on(Event::Order(Trigger::Cancel), 4), []);
    assert_eq!(machine.found().trace.last().map(|t| t.kind), Some(Kind::Settled));
}

#[test]
fn told_late_of_two_deadlines_the_first_has_happened() {
    let both = Rules { policy: Policy { stall_ms: 30_000, ..rules().policy }, ..rules() };
    let mut play = Play::new(both);
    play.tell(100_000, Event::Tick);
    assert_eq!(play.machine.found().trigger, Some(Trigger::Stall));
    assert_eq!(play.done, [(100_000, Action::Signal(CANCEL)), (100_000, Action::Kill)]);
}
