//! What the end of its process means for a session.

use minder_proto::event::Author;
use minder_proto::record::{Process, SessionRecord};
use minder_proto::state::State;

/// An end that is to be noted in the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// The note of an `error` that is said with it; none where the state stands as it is.
    pub error: Option<String>,
}

/// What to do about a session whose process has ended; nothing if it goes on in another process, or if this was noted
/// already. An error is said where work was cut short: in `working`, in `queued` with a first message that it has not taken, and where a hook had said that the session asks,
/// since nobody can answer a dialog that is gone. What the session itself declared stands.
pub fn decide(record: &SessionRecord, ended: &Process) -> Option<Ending> {
    record.process.as_ref().filter(|p| p.is(ended) && p.ended.is_none())?;
    // Of one that is being started whoever starts it tells.
    let starting = record.launch.as_ref().is_some_and(|launch| launch.pending);
    let cut_short = match record.state {
        _ if starting => false,
        State::Working | State::Queued => true,
        State::Asking => record.state_by == Author::Hook,
        _ => false,
    };
    let name = record.harness.as_deref().unwrap_or("its process");
    Some(Ending { error: cut_short.then(|| format!("{name} (pid {}) is gone", ended.pid)) })
}

#[cfg(test)]
mod tests {
    use minder_proto::stamp::Stamp;
    use serde_json::json;

    use super::*;

    fn process() -> Process {
        Process { pid: 4121, start: 7, boot: "b".into(), tty: Some("pts/3".into()), ended: None }
    }

    fn record(state: State, by: Author, process: Option<Process>) -> SessionRecord {
        let mut record: SessionRecord = serde_json::from_value(json!({
            "id": "5f1c2d4a-90c3-4f0e-8a17-c2b6d1e4f700", "label": "api", "title": "api", "dir": "/", "harness": "claude",
            "channel": {"kind": "hook"}, "created": "2026-11-30T12:00:00Z", "state": state,
            "state_at": "2026-11-30T12:00:00Z", "state_by": by, "last_seq": 1,
        }))
        .unwrap();
        record.process = process;
        record
    }

    #[test]
    fn an_error_is_said_only_where_work_was_cut_short() {
        for state in State::ALL {
            for by in [Author::Agent, Author::Hook, Author::Runner, Author::Operator, Author::Minder] {
                let cut_short = matches!(state, State::Working | State::Queued)
                    || (state == State::Asking && by == Author::Hook);
                let ending = decide(&record(state, by, Some(process())), &process()).unwrap();
                let note = cut_short.then(|| "claude (pid 4121) is gone".to_owned());
                assert_eq!(ending.error, note, "{state:?} by {by:?}");
            }
        }
        let mut unnamed = record(State::Working, Author::Agent, Some(process()));
        unnamed.harness = None;
        assert_eq!(decide(&unnamed, &process()).unwrap().error.unwrap(), "its process (pid 4121) is gone");
    }

    #[test]
    fn only_the_process_that_it_is_bound_to_now_counts_and_once() {
        let other = |change: fn(&mut Process)| {
            let mut process = process();
            change(&mut process);
            Some(process)
        };
        for bound in [
            None,
            other(|p| p.pid += 1),
            other(|p| p.start += 1),
            other(|p| p.boot = "another".into()),
            other(|p| p.ended = Some(Stamp::from_millis(0))),
        ] {
            assert_eq!(
                decide(&record(State::Working, Author::Hook, bound.clone()), &process()),
                None,
                "{bound:?}"
            );
        }
        // Its terminal is no part of what it is.
        assert!(decide(&record(State::Working, Author::Hook, other(|p| p.tty = None)), &process()).is_some());
    }
}
