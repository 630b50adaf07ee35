//! How a host stands, for who asks.

use minder_proto::error::{Fault, Kind};
use minder_proto::host::episode::Stage;
use minder_proto::host::row::{Owner, Row};
use minder_proto::id::SessionId;
use minder_proto::rpc::HostStatusAnswer;
use minder_proto::stamp::Stamp;

use super::step;
use crate::store::{State, Store};

/// How the host of a primary stands. `parked` says whether a hook waits beside it.
pub fn status(store: &Store, state: &State, id: SessionId, parked: bool) -> Result<HostStatusAnswer, Fault> {
    let session = state.session(id);
    let (Some(session), Some(host)) = (session, state.host(id)) else {
        return Err(
            Fault::new(Kind::NotFound, format!("{} has no host", id.short())).hint("minder host enable")
        );
    };
    let record = &session.record;
    let rows = &host.queue.rows;
    let of = |owner: Owner| rows.iter().filter(|row| row.owner == owner).count();
    let oldest: Option<Stamp> = rows.iter().map(|row: &Row| row.first_at).min();
    let owed = step::owed(&host.queue).count();
    Ok(HostStatusAnswer {
        session: id,
        label: record.label.clone(),
        harness: record.harness.clone(),
        enabled: host.record.enabled,
        binding: host.record.binding.generation,
        owned: host.record.binding.process.is_some(),
        since: host.record.binding.since,
        parked,
        working: record.turn.is_some(),
        rows_free: of(Owner::Free),
        rows_primary: of(Owner::Primary),
        rows_broken: host.queue.broken.len(),
        oldest,
        due: step::due(&host.queue, store.config().host.coalesce.0),
        generation: host.episode.generation,
        stage: host.episode.stage,
        episode_since: host.episode.since,
        next_announce: host.episode.next_announce.filter(|_| host.episode.stage == Stage::Seen && owed > 0),
        owed,
    })
}
