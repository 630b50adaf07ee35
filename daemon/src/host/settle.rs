//! What an engine's turn came to: whether it handled its wake, and what the primary is owed.

use minder_proto::host::bounds::CAUSE_MAX;
use minder_proto::host::episode::Cause;
use minder_proto::host::outcome::{Outcome, Verdict};
use minder_proto::host::posture::Mode;
use minder_proto::host::reason::{Code, HostLine, Wake};
use minder_proto::text;
use minder_proto::turn::Failure;

/// How the engine's process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// With 0 and a complete result.
    Complete,
    /// With 0, and what it printed is no result.
    Incomplete,
    /// With 0, and a result that says error.
    SaidError,
    /// With an error. With the runner's words for it: `3`, or of a signal.
    Exit(String),
    /// Its budget of time was over; in seconds.
    TimedOut(u64),
    /// It was silent for too long; in seconds.
    Stalled(u64),
    /// Somebody cancelled it.
    Cancelled(String),
    /// It did not start.
    NotStarted(Failure),
    /// Nobody knows.
    Lost(String),
}

impl End {
    /// True for what counts for the latch.
    pub fn is_engine_error(&self) -> bool {
        !matches!(self, Self::Complete | Self::Cancelled(_) | Self::Lost(_))
    }

    fn line(&self, wake: Wake) -> Option<HostLine> {
        let line = |code, why: String| Some(HostLine::not_finished(code, wake, &why));
        match self {
            Self::Complete => None,
            Self::Incomplete => {
                line(Code::ResultIncomplete, "the engine ended without a complete result".into())
            }
            Self::SaidError => line(Code::ResultError, "the engine's result says error".into()),
            Self::Exit(how) => line(Code::TurnExit, format!("the engine {how}")),
            Self::TimedOut(s) => line(Code::TurnTimeout, format!("the engine reached its limit of {s} s")),
            Self::Stalled(s) => line(Code::TurnStalled, format!("the engine was silent for {s} s")),
            Self::Cancelled(by) => line(Code::TurnCancelled, format!("the turn was cancelled by {by}")),
            Self::NotStarted(why) => Some(HostLine::not_taken(
                Code::StartFailed,
                wake,
                &format!("the engine could not be started: {why}"),
            )),
            Self::Lost(why) => line(Code::TurnLost, format!("the engine turn was lost ({why})")),
        }
    }
}

/// A turn that is over, and what it left.
#[derive(Clone, Debug)]
pub struct Over<'a> {
    /// How its process ended.
    pub end: End,
    /// Its rows that are still in the queue; none where the queue cannot be read.
    pub left: Option<Vec<u64>>,
    /// Its rows.
    pub granted: &'a [u64],
    /// What it reported; none where that cannot be looked up.
    pub outcomes: Option<&'a [Outcome]>,
    /// Reports that its record knows of.
    pub reports: usize,
    /// Where the operator was when it was claimed.
    pub began: Mode,
    /// Where the operator is now.
    pub now: Mode,
    /// Processes that could not be killed.
    pub survivors: &'a [i32],
}

/// What follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    /// All three conditions hold.
    pub handled: bool,
    /// The primary is owed something, for this reason.
    pub owed: Option<Cause>,
    /// The rows that it is shown with it: those of the batch.
    pub batch: bool,
    /// What it is told.
    pub lines: Vec<HostLine>,
}

/// Names a session in a line: its label and short id.
pub type Named<'a> = &'a dyn Fn(&Outcome) -> String;

/// Judges a turn.
pub fn settle(over: &Over<'_>, named: Named<'_>) -> Settled {
    let wake = if over.began.is_away() { Wake::Away } else { Wake::Here };
    let left = over.left.as_deref().unwrap_or(over.granted);
    let handled = over.end == End::Complete && over.reports > 0 && left.is_empty();
    let returned = over.began.is_away() && !over.now.is_away();
    let visible: Vec<&Outcome> =
        over.outcomes.unwrap_or_default().iter().filter(|o| o.is_visible()).collect();

    let mut lines = Vec::new();
    if !handled {
        lines.extend(over.end.line(wake));
        if over.reports == 0 && !matches!(over.end, End::NotStarted(_)) {
            lines.push(HostLine::not_finished(Code::NoReport, wake, "the engine recorded no outcome"));
        }
        if !left.is_empty() && !matches!(over.end, End::NotStarted(_)) {
            let why = format!("rows {} were left unacknowledged", list(left));
            lines.push(HostLine::not_finished(Code::RowsLeft, wake, &why));
        } else if left.is_empty() && over.reports > 0 {
            let seqs: Vec<u64> = over.outcomes.unwrap_or_default().iter().map(|o| o.seq).collect();
            let why =
                format!("rows {} were acknowledged; its outcomes are {}", list(over.granted), list(&seqs));
            lines.push(HostLine::not_finished(Code::TurnExit, wake, &why));
        }
    }
    if returned {
        let seqs: Vec<u64> = visible.iter().map(|o| o.seq).collect();
        let said = if seqs.is_empty() {
            "no visible outcome".to_owned()
        } else {
            format!("it recorded outcomes {}", list(&seqs))
        };
        lines
            .push(HostLine::new(Code::Returned, &format!("the operator came back during this turn; {said}")));
        lines.extend(visible.iter().map(|outcome| note(outcome, named)));
    }
    if over.outcomes.is_none() && (returned || over.reports > 0) {
        let text = "the outcomes of this turn could not be looked up: review `minder host outcomes`";
        lines.push(HostLine::new(Code::OutcomesUnverified, text));
    }
    if !over.survivors.is_empty() {
        let pids: Vec<u64> = over.survivors.iter().map(|pid| u64::try_from(*pid).unwrap_or(0)).collect();
        let text = format!("processes of the engine turn could not be killed: {}", list(&pids));
        lines.push(HostLine::new(Code::Survivors, &text));
    }
    let batch = !handled || returned;
    if batch {
        let cause = if lines.is_empty() { Cause::Batch } else { Cause::Reason };
        return Settled { handled, owed: Some(cause), batch, lines };
    }
    // Handled: what is for the operator wakes the primary where the operator is there, and was.
    let fresh: Vec<u64> = visible
        .iter()
        .filter(|o| o.verdict == Verdict::Operator && o.repeat_of.is_none())
        .map(|o| o.seq)
        .collect();
    let here = !over.began.is_away() && !over.now.is_away();
    if here && !fresh.is_empty() {
        let text = format!("outcome: {} for the operator; run minder host drain", list(&fresh));
        lines.insert(0, HostLine::new(Code::Outcome, &text));
        return Settled { handled, owed: Some(Cause::Outcome), batch, lines };
    }
    let owed = (!lines.is_empty() && here).then_some(Cause::Reason);
    Settled { handled, owed, batch, lines }
}

fn note(outcome: &Outcome, named: Named<'_>) -> HostLine {
    let verdict = match outcome.verdict {
        Verdict::Routine => "routine",
        Verdict::Operator => "operator",
    };
    let summary = text::line_of(&outcome.summary, CAUSE_MAX / 2);
    HostLine::new(
        Code::OutcomeNote,
        &format!("outcome {} {}, {verdict}: {summary}", outcome.seq, named(outcome)),
    )
}

/// `3, 4, 7`.
pub fn list(numbers: &[u64]) -> String {
    numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use minder_proto::host::outcome::Scope;
    use minder_proto::host::row::Kind;
    use minder_proto::id::TurnId;
    use minder_proto::stamp::Stamp;

    use super::*;

    fn outcome(seq: u64, verdict: Verdict, silent: bool) -> Outcome {
        Outcome {
            seq,
            at: Stamp::from_millis(0),
            turn: TurnId::now(),
            session: Scope::Fleet,
            incarnation: 0,
            verdict,
            silent,
            summary: "PR 12\nis up".to_owned(),
            rows: vec![1],
            trigger: Kind::Signal,
            status_ev: 0,
            posture: Mode::Attended,
            posture_version: 1,
            key: "k:1".to_owned(),
            mandate: false,
            late: false,
            repeat_of: None,
            upgraded: false,
        }
    }

    fn over<'a>(end: End, left: &[u64], outcomes: &'a [Outcome], modes: [Mode; 2]) -> Over<'a> {
        Over {
            end,
            left: Some(left.to_vec()),
            granted: &[1, 2],
            outcomes: Some(outcomes),
            reports: outcomes.len(),
            began: modes[0],
            now: modes[1],
            survivors: &[],
        }
    }

    fn said(over: &Over<'_>) -> (bool, bool, Vec<&'static str>) {
        let settled = settle(over, &|_| "@fleet".to_owned());
        assert_eq!(settled.owed.is_some(), settled.batch || !settled.lines.is_empty());
        let codes = settled.lines.iter().map(|line| line.code.as_str()).collect();
        (settled.handled, settled.batch, codes)
    }

    /// 6.3, the whole table.
    #[test]
    fn what_follows_by_posture() {
        use Mode::{Attended, Away};
        let routine = [outcome(1, Verdict::Routine, false)];
        let silent = [outcome(1, Verdict::Routine, true)];
        let operator = [outcome(1, Verdict::Routine, false), outcome(2, Verdict::Operator, false)];
        for (modes, outcomes, handled, lines) in [
            ([Attended, Attended], &routine[..], true, &[][..]),
            ([Attended, Attended], &silent, true, &[]),
            ([Attended, Attended], &operator, true, &["outcome"]),
            ([Attended, Away], &operator, true, &[]),
            ([Away, Away], &operator, true, &[]),
            ([Away, Attended], &operator, true, &["returned", "outcome-note", "outcome-note"]),
            ([Away, Attended], &silent, true, &["returned"]),
        ] {
            let (did, batch, codes) = said(&over(End::Complete, &[], outcomes, modes));
            assert_eq!((did, batch), (handled, modes == [Away, Attended]), "{modes:?}");
            assert_eq!(codes, lines, "{modes:?}");
        }
        // Not handled: always the batch and the reason; on a return the outcomes too.
        for (modes, lines) in [
            ([Attended, Attended], &["rows-left"][..]),
            ([Attended, Away], &["rows-left"]),
            ([Away, Away], &["rows-left"]),
            ([Away, Attended], &["rows-left", "returned", "outcome-note"]),
        ] {
            assert_eq!(said(&over(End::Complete, &[2], &routine, modes)), (false, true, lines.to_vec()));
        }
    }

    /// 3 to 8, as far as they are judged here.
    #[test]
    fn host3_host8_a_turn_is_handled_only_with_a_result_a_report_and_no_row_left() {
        let modes = [Mode::Attended; 2];
        let report = [outcome(1, Verdict::Routine, false)];
        for (end, left, outcomes, codes) in [
            (End::Exit("exited with 7".into()), &[][..], &report[..], &["turn-exit", "turn-exit"][..]),
            (End::TimedOut(1_200), &[1, 2], &[], &["turn-timeout", "no-report", "rows-left"]),
            (End::Stalled(900), &[1, 2], &[], &["turn-stalled", "no-report", "rows-left"]),
            (End::Complete, &[1, 2], &report, &["rows-left"]),
            (End::Complete, &[1, 2], &[], &["no-report", "rows-left"]),
            (End::Complete, &[], &[], &["no-report"]),
            (End::Incomplete, &[1], &report, &["result-incomplete", "rows-left"]),
            (End::SaidError, &[1], &report, &["result-error", "rows-left"]),
            (End::Lost("no result".into()), &[1, 2], &[], &["turn-lost", "no-report", "rows-left"]),
            (End::NotStarted(Failure::NotFound), &[1, 2], &[], &["start-failed"]),
        ] {
            let said = said(&over(end.clone(), left, outcomes, modes));
            assert_eq!(said, (false, true, codes.to_vec()), "{end:?}");
        }
    }

    #[test]
    fn a_queue_that_cannot_be_read_counts_as_all_rows_left() {
        let report = [outcome(1, Verdict::Routine, false)];
        let mut over = over(End::Complete, &[], &report, [Mode::Attended; 2]);
        over.left = None;
        let settled = settle(&over, &|_| String::new());
        assert!(settled.lines[0].text.ends_with("rows 1, 2 were left unacknowledged"));
        over.left = Some(vec![]);
        over.outcomes = None;
        assert_eq!(said(&over).2, ["outcomes-unverified"]);
    }

    /// 59.
    #[test]
    fn host59_what_repeats_an_unchanged_outcome_wakes_nobody() {
        let mut again = outcome(5, Verdict::Operator, false);
        again.repeat_of = Some(2);
        assert_eq!(said(&over(End::Complete, &[], &[again], [Mode::Attended; 2])), (true, false, vec![]));
    }

    #[test]
    fn a_line_names_what_it_is_of() {
        let operator = [outcome(4, Verdict::Operator, false)];
        let settled = settle(&over(End::Complete, &[], &operator, [Mode::Away, Mode::Attended]), &|_| {
            "api (5f1c2d4a)".to_owned()
        });
        assert_eq!(settled.lines[1].text, "outcome 4 api (5f1c2d4a), operator: PR 12\\nis up");
    }
}
