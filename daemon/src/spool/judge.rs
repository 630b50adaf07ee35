//! What becomes of a request after it was tried.

use std::time::Duration;

use minder_proto::error::{Fault, Kind};

/// How long a request is kept that is refused for now.
const KEPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// What becomes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was applied: its file goes.
    Applied,
    /// It stays, and so do all behind it: nothing can be taken now.
    Stop,
    /// It stays, and so does what is behind it in its line; the rest may go.
    Later,
    /// It can never be applied, and why.
    Refused(String),
}

/// Judges an attempt on a request of this age.
pub fn judge(outcome: &Result<(), Fault>, age: Duration) -> Verdict {
    let Err(fault) = outcome else { return Verdict::Applied };
    match fault.kind {
        Kind::ReadOnly | Kind::Unavailable => Verdict::Stop,
        _ if fault.kind.is_retryable() && age < KEPT => Verdict::Later,
        _ => {
            let hint = fault.hint.as_deref().map(|hint| format!(" ({hint})"));
            Verdict::Refused(format!("{}{}", fault.message, hint.unwrap_or_default()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_has_its_verdict() {
        assert_eq!(judge(&Ok(()), KEPT), Verdict::Applied);
        let refused = Verdict::Refused("it says why (minder ls)".into());
        for kind in Kind::ALL {
            let outcome = Err(Fault::new(kind, "it says why").hint("minder ls"));
            let (now, too_long) = match kind {
                Kind::ReadOnly | Kind::Unavailable => (Verdict::Stop, Verdict::Stop),
                Kind::Busy | Kind::Full | Kind::StaleFence | Kind::Deadline => {
                    (Verdict::Later, refused.clone())
                }
                _ => (refused.clone(), refused.clone()),
            };
            assert_eq!(judge(&outcome, Duration::ZERO), now, "{kind:?}");
            assert_eq!(judge(&outcome, KEPT), too_long, "{kind:?}");
        }
        let plain = judge(&Err(Fault::new(Kind::Gone, "it is gone")), Duration::ZERO);
        assert_eq!(plain, Verdict::Refused("it is gone".into()));
    }
}
