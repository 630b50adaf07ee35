//! What became of a run: a pure function of what was asked, what the shim found and what the adapter made of the output.
//! The supervisor's own failures come first; text is never searched for one.

use std::path::Path;

use minder_proto::rpc::Settled;
use minder_proto::turn::folder::{Found, Purpose, STDERR, STDOUT, Spec, Unspawned};
use minder_proto::turn::line::SignalName;
use minder_proto::turn::names::{Class, Failure, Trigger};
use nix::errno::Errno;

use super::adapter::Judged;

/// What is known of a run once it is settled.
#[derive(Clone, Debug, PartialEq)]
pub struct Settlement {
    /// What failed, where something did.
    pub failure: Option<Failure>,
    /// What kind of failure that is.
    pub class: Option<Class>,
    /// What the adapter read.
    pub judged: Judged,
}

/// The failure that the supervisor names, from what the shim found.
fn supervised(found: &Found) -> Option<Failure> {
    if let Some(unspawned) = &found.unspawned {
        return Some(unspawned.failure);
    }
    Some(match found.trigger? {
        Trigger::Stall => Failure::Stall,
        Trigger::Budget => Failure::AdapterTimeout,
        Trigger::WallClock => Failure::WallClock,
        Trigger::Cancel | Trigger::Boundary => Failure::Cancelled,
        Trigger::Overflow => Failure::OutputOverflow,
    })
}

/// Names the failure of a run, or that there is none.
pub fn settle(found: &Found, judged: Judged) -> Settlement {
    let failure = supervised(found).or(judged.failure);
    let class = failure.map(|failure| match failure {
        // The same call fails again.
        Failure::CwdMissing | Failure::NotFound | Failure::NotExecutable => Class::Configuration,
        _ => judged.class.unwrap_or(Class::Runtime),
    });
    Settlement { failure, class, judged }
}

/// What is found of a turn whose shim was gone and had left no result.
pub fn lost(spec: &Spec) -> Found {
    Found {
        unspawned: Some(Unspawned { failure: Failure::SupervisorLost, errno: None }),
        boot: spec.boot.clone(),
        ..Found::default()
    }
}

/// What is found where not even a shim could be started.
pub fn unspawned(spec: &Spec, error: &std::io::Error) -> Found {
    let failure = Unspawned { failure: Failure::SpawnFailed, errno: error.raw_os_error() };
    Found { unspawned: Some(failure), boot: spec.boot.clone(), ..Found::default() }
}

impl Settlement {
    /// As a caller is told it. Names the files that are kept in the folder.
    pub fn told(&self, spec: &Spec, found: &Found, folder: &Path) -> Settled {
        // Where the daemon itself delivers, the files of a reply go with it.
        let stays = self.failure.is_some() || spec.purpose != Purpose::Caller;
        let kept =
            |name: &str, bytes: u64| (bytes > 0 && stays).then(|| folder.join(name).display().to_string());
        let judged = &self.judged;
        Settled {
            outcome: None,
            failure: self.failure,
            source: self.failure.map(Failure::source),
            class: self.class,
            trigger: found.trigger,
            why: self.failure.and_then(|failure| why(failure, spec, found).or_else(|| judged.why.clone())),
            exit_code: found.exit_code,
            signal: found.signal.map(SignalName::of),
            signal_number: found.signal,
            killed: found.killed,
            late: found.late,
            duration_ms: found.duration_ms,
            text: judged.text.clone().filter(|text| !text.is_empty()),
            stdout_bytes: found.stdout_bytes,
            stdout: kept(STDOUT, found.stdout_bytes),
            stderr: kept(STDERR, found.stderr_bytes),
            conversation: judged.conversation.clone(),
            usage: judged.usage,
            trace: found.trace.clone(),
            survivors: found.survivors.clone(),
            left_behind: found.left_behind,
        }
    }
}

/// The supervisor's word for people; none where the harness's own says more.
fn why(failure: Failure, spec: &Spec, found: &Found) -> Option<String> {
    let program = spec.argv.first().map_or("", String::as_str);
    let errno = found.unspawned.as_ref().and_then(|u| u.errno).map(Errno::from_raw);
    let said = errno.map_or_else(String::new, |errno| format!(": {}", errno.desc()));
    let policy = &spec.policy;
    Some(match failure {
        Failure::CwdMissing => format!("{}: no such directory", spec.dir),
        Failure::NotFound => format!("{program}: no such program"),
        Failure::NotExecutable => format!("{program}: cannot be executed{said}"),
        Failure::SpawnFailed => format!("{program}: could not be started{said}"),
        Failure::SupervisorLost => "its shim was gone and had left no result".to_owned(),
        Failure::Stall => format!("no progress for {}", span(policy.stall_ms)),
        Failure::WallClock => {
            format!("still there after {}", span(policy.budget_ms.saturating_add(policy.backstop_ms)))
        }
        Failure::AdapterTimeout => format!("its budget of {} was over", span(policy.budget_ms)),
        Failure::OutputOverflow => format!("more than {} bytes of output", policy.output_max),
        Failure::Cancelled
        | Failure::AdapterExit
        | Failure::AdapterError
        | Failure::AdapterResult
        | Failure::UpstreamRefused => return None,
    })
}

/// `900 ms`, `2.5 s`, `15 m`: exact where that is short.
fn span(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        _ if ms.is_multiple_of(60_000) => format!("{} m", ms / 60_000),
        _ if ms.is_multiple_of(1_000) => format!("{} s", ms / 1_000),
        _ => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(trigger: Option<Trigger>, exit_code: Option<i32>) -> Found {
        Found { trigger, exit_code, exit_observed: exit_code.is_some(), ..Found::default() }
    }

    #[test]
    fn the_supervisors_word_comes_before_the_adapters() {
        let judged =
            Judged { failure: Some(Failure::AdapterExit), class: Some(Class::Quota), ..Judged::default() };
        let cases = [
            (Trigger::Stall, Failure::Stall),
            (Trigger::Budget, Failure::AdapterTimeout),
            (Trigger::WallClock, Failure::WallClock),
            (Trigger::Cancel, Failure::Cancelled),
            (Trigger::Boundary, Failure::Cancelled),
            (Trigger::Overflow, Failure::OutputOverflow),
        ];
        for (trigger, failure) in cases {
            let settled = settle(&found(Some(trigger), Some(1)), judged.clone());
            assert_eq!((settled.failure, settled.class), (Some(failure), Some(Class::Quota)), "{trigger}");
        }
        assert_eq!(settle(&found(None, Some(1)), judged.clone()).failure, Some(Failure::AdapterExit));
        assert_eq!(settle(&found(None, Some(0)), Judged::default()).failure, None);
        // An answer that came in the grace is kept, and the turn has the name of what ended it.
        let late = Found { late: true, ..found(Some(Trigger::Stall), Some(0)) };
        assert_eq!(settle(&late, Judged::default()).failure, Some(Failure::Stall));
        for failure in [Failure::CwdMissing, Failure::NotFound, Failure::SpawnFailed, Failure::NotExecutable]
        {
            let none = Found { unspawned: Some(Unspawned { failure, errno: Some(2) }), ..Found::default() };
            assert_eq!(settle(&none, judged.clone()).failure, Some(failure));
        }
    }

    #[test]
    fn spans_read_well() {
        assert_eq!([900, 2_500, 2_000, 900_000].map(span), ["900 ms", "2.5 s", "2 s", "15 m"]);
    }
}
