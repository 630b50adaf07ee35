//! What a run came to: from its exit, its typed records and, where there are none, its words.

use jiff::ZonedDateTime;
use minder_proto::turn::folder::{Found, Spec};
use minder_proto::turn::names::{Class, Failure};

use super::{Adapter, Judged, Output, SENTINEL};

/// Reads what a run left. `now` is the clock and the zone in which a harness tells when a limit ends.
pub fn judge(
    adapter: &Adapter,
    _spec: &Spec,
    found: &Found,
    output: &Output<'_>,
    _now: &ZonedDateTime,
) -> Judged {
    let mut judged = Judged::default();
    let ended_well = found.exit_observed && found.exit_code == Some(0);
    if !ended_well {
        judged.failure = Some(Failure::AdapterExit);
        judged.class = Some(Class::Runtime);
    }
    if adapter.stdout_is_reply() {
        let reply = output.head.trim_ascii();
        judged.silent = ended_well && (reply.is_empty() || reply == SENTINEL.as_bytes());
    }
    judged
}
