//! Which session a hook speaks for: a known conversation's, a process's under a new id, a new one, or none.

use std::time::Duration;

use minder_proto::config::AdoptMode;
use minder_proto::error::Fault;
use minder_proto::id::SessionId;
use minder_proto::record::{Channel, Process, SessionRecord};
use minder_proto::rpc::HookEnv;
use minder_proto::stamp::Stamp;

use super::{Heard, Origin, Payload};
use crate::identity::harness::Runs;
use crate::identity::{Ancestry, has_token, process_of, ran_for};
use crate::session::{Born, bind, create};
use crate::store::Txn;

/// The session that this event belongs to; registered now if it is to be. None: nothing is written.
pub fn session_of(
    txn: &mut Txn<'_>,
    harness: &str,
    payload: &Payload,
    heard: &Heard,
    env: &HookEnv,
    origin: &Origin,
) -> Result<Option<SessionId>, Fault> {
    // A harness that loads another one's settings runs its hooks too: they speak for nobody.
    let beside = |ancestry: &Ancestry| ancestry.harness().is_some_and(|a| a.harness != Some(harness));
    if matches!(origin, Origin::Peer(ancestry) if beside(ancestry)) {
        return Ok(None);
    }
    let process = match origin {
        // The harness names its own process; it is believed where that is above the hook. What an ancestor looks
        // like is the next best.
        Origin::Peer(ancestry) => {
            let named = ancestry.iter().find(|a| Some(a.process.pid) == env.pid);
            named.or_else(|| ancestry.harness()).map(|a| a.process.clone())
        }
        Origin::Spooled(_) => None,
    };
    // Of a hook that is gone by now the kernel tells nothing. What it named is believed if it can have been that.
    let process = match origin {
        Origin::Peer(ancestry) if ancestry.iter().next().is_some() => process,
        Origin::Peer(_) => named(harness, env, txn.now()),
        Origin::Spooled(said) => named(harness, env, *said),
    };
    let bound = txn.state().by_binding(harness, &payload.session_id);
    // What the daemon started is the session that it was started for; a program that it started may start the harness.
    let own = launched(txn, harness, process.as_ref(), origin);
    if let Some(id) = own.filter(|id| bound.is_none_or(|bound| bound == *id)) {
        if bound.is_none() {
            let why = if let Heard::Begins { source } = heard { source.as_str() } else { "startup" };
            bind(txn, id, harness, &payload.session_id, why, payload.transcript_path.clone())?;
        }
        txn.edit(id, |r| {
            if process.is_some() {
                r.process.clone_from(&process);
            }
            if let Some(launch) = &mut r.launch {
                launch.heard = true;
            }
        })?;
        return known(txn, id, payload, heard, process, origin);
    }
    if let Some(id) = bound {
        return known(txn, id, payload, heard, process, origin);
    }
    let runs = runs_of(process.as_ref(), origin);
    let shared = runs == Some(Runs::Shared);
    if let Some(id) = by_token(txn, harness, env, origin).filter(|_| !matches!(heard, Heard::Ends(_))) {
        let why = if let Heard::Begins { source } = heard { source } else { "startup" };
        bind(txn, id, harness, &payload.session_id, why, payload.transcript_path.clone())?;
        // A server that the one which was started has handed its conversation to is its process from now on.
        txn.edit(id, |r| {
            if process.is_some() {
                r.process = process;
            }
            if let Some(launch) = &mut r.launch {
                launch.heard = true;
            }
        })?;
        return Ok(Some(id));
    }
    if let (Heard::Begins { source }, Some(process)) = (heard, &process)
        && matches!(source.as_str(), "clear" | "compact")
        && !shared
    {
        let here: Vec<SessionId> = txn.state().by_process(process).map(|s| s.record.id).collect();
        if let [id] = here[..] {
            bind(txn, id, harness, &payload.session_id, source, payload.transcript_path.clone())?;
            return Ok(Some(id));
        }
    }
    if process.as_ref().is_some_and(|p| txn.state().is_left(p)) {
        return Ok(None); // its session was closed: it is not heard until it ends
    }
    if matches!(heard, Heard::Ends(_)) || !wanted(txn, payload, attended(harness, env, runs)) {
        return Ok(None);
    }
    if !shared {
        leave_others(txn, process.as_ref(), None)?;
    }
    let why = match heard {
        Heard::Begins { source } => source.clone(),
        _ => "startup".to_owned(),
    };
    let born = Born {
        label: None,
        title: None,
        harness: Some(harness.to_owned()),
        conversation: Some((payload.session_id.clone(), why, payload.transcript_path.clone())),
        dir: payload.cwd.clone().unwrap_or_else(|| "/".to_owned()),
        parent: None,
        primary: false,
        channel: Channel::of_hooks(harness),
        process,
        adopted: true,
        said: origin.said(),
        launch: None,
    };
    create(txn, born).map(Some)
}

/// The session of this harness whose process the daemon started, where that is one above the hook, or the one that started
/// the harness, and no hook of it was heard yet. It may be up for long: a harness may tell of its start with its first
/// prompt only.
fn launched(txn: &Txn<'_>, harness: &str, process: Option<&Process>, origin: &Origin) -> Option<SessionId> {
    let starts = |process: &Process| {
        let fits = |r: &SessionRecord| {
            r.launch.as_ref().is_some_and(|launch| !launch.heard)
                && r.harness.as_deref().is_none_or(|h| h == harness)
        };
        txn.state().by_process(process).find(|s| fits(&s.record)).map(|s| s.record.id)
    };
    // Of a hook that is gone by now only its harness can be looked at.
    let gone;
    let ancestry = match origin {
        Origin::Peer(ancestry) if ancestry.iter().next().is_some() => ancestry,
        _ => {
            gone = Ancestry::of(Some(process?.pid));
            &gone
        }
    };
    let above = || process_of(ancestry.harness()?.ppid);
    ancestry.iter().find_map(|a| starts(&a.process)).or_else(|| starts(&above()?))
}

/// A known conversation: its own process, a new one after the old is dead, or a second writer (nothing is written). Only a
/// conversation that begins is put in the place of another one that its process has: a late word of one that is over, or
/// a word that is piped to a hook, moves nothing.
fn known(
    txn: &mut Txn<'_>,
    id: SessionId,
    payload: &Payload,
    heard: &Heard,
    process: Option<Process>,
    origin: &Origin,
) -> Result<Option<SessionId>, Fault> {
    let record = &txn.session(id)?.record;
    let bound = record.process.clone();
    let transcript = record.live_binding().and_then(|b| b.transcript.clone());
    if let (Some(bound), Origin::Peer(ancestry)) = (&bound, origin)
        && bound.ended.is_none()
        && !ancestry.iter().any(|a| a.process.is(bound))
        && lives(bound)
    {
        tracing::warn!(session = %id, pid = bound.pid, "a second process writes this conversation; it is not heard");
        return Ok(None);
    }
    // A hook that is gone does not take a conversation from a process that lives.
    let absent = matches!(origin, Origin::Spooled(_));
    let taken = absent && bound.as_ref().is_some_and(|b| b.ended.is_none() && lives(b));
    let shared = matches!(origin, Origin::Peer(a) if a.harness().map(|a| a.runs) == Some(Runs::Shared));
    let begins = shared || matches!(heard, Heard::Begins { .. });
    let is_free = |p: &Process| begins || txn.state().by_process(p).all(|s| s.record.id == id);
    if let Some(process) =
        process.filter(|p| !taken || bound.as_ref().is_some_and(|b| b.is(p))).filter(is_free)
        && bound.as_ref().is_none_or(|b| b.ended.is_some() || !b.is(&process))
    {
        if !shared {
            leave_others(txn, Some(&process), Some(id))?;
        }
        txn.edit(id, |r| {
            if bound.is_some() {
                r.incarnation += 1;
                r.turn = None;
            }
            r.process = Some(process);
            // Somebody else started this one: it is not taken away with the session.
            if let Some(launch) = &mut r.launch {
                launch.pane = None;
                launch.heard = true;
            }
        })?;
    }
    if payload.transcript_path.is_some() && payload.transcript_path != transcript {
        txn.edit(id, |r| {
            if let Some(b) = r.bindings.iter_mut().rev().find(|b| b.until.is_none()) {
                b.transcript.clone_from(&payload.transcript_path);
            }
        })?;
    }
    Ok(Some(id))
}

/// The process that a hook which is gone has named as its harness: such a process of this user, which ran by then.
fn named(harness: &str, env: &HookEnv, said: Stamp) -> Option<Process> {
    let pid = env.pid?;
    let ancestry = Ancestry::of(Some(pid));
    let found = ancestry.iter().next().filter(|a| a.process.pid == pid && a.harness == Some(harness))?;
    // A tick of the one clock, a millisecond of the other.
    let slack = Duration::from_millis(100);
    let ran = ran_for(&found.process)? + slack >= said.age(Stamp::now());
    (ran && super::is_own(pid)).then(|| found.process.clone())
}

/// True if this very process runs, not a later one of its number.
fn lives(process: &Process) -> bool {
    process_of(process.pid).is_some_and(|p| p.is(process))
}

/// A process has one conversation: a session that it was before is without a process now.
fn leave_others(txn: &mut Txn<'_>, process: Option<&Process>, but: Option<SessionId>) -> Result<(), Fault> {
    let Some(process) = process else { return Ok(()) };
    let others: Vec<SessionId> =
        txn.state().by_process(process).map(|s| s.record.id).filter(|id| Some(*id) != but).collect();
    for other in others {
        txn.edit(other, |r| {
            r.process = None;
            r.turn = None;
        })?;
    }
    Ok(())
}

/// The session that minder started this process for, proven by its token, which only the first conversation has. What a
/// harness that was started starts in its turn inherits the token and is nobody's: it is another harness, or has not the
/// process that was started above it, or at its side as a server has.
fn by_token(txn: &Txn<'_>, harness: &str, env: &HookEnv, origin: &Origin) -> Option<SessionId> {
    let id = env.session.as_deref()?.parse().ok()?;
    if !has_token(txn.state(), id, env.token.as_deref()) {
        return None;
    }
    let record = &txn.state().session(id)?.record;
    let at = record.launch.as_ref()?.at;
    if record.harness.as_deref().is_some_and(|started| started != harness) {
        return None;
    }
    if let (Some(bound), Origin::Peer(ancestry)) = (&record.process, origin)
        && let Some(own) = ancestry.harness().filter(|own| own.runs != Runs::Shared)
        && bound.ended.is_none()
        && lives(bound)
        && !ancestry.iter().any(|a| a.process.is(bound))
        && !process_of(own.ppid).is_some_and(|above| above.is(bound))
    {
        return None;
    }
    record.live_binding().is_none_or(|b| b.since < at).then_some(id)
}

/// How the harness of a hook runs. None where nothing of it can be seen.
fn runs_of(process: Option<&Process>, origin: &Origin) -> Option<Runs> {
    match origin {
        Origin::Peer(ancestry) if ancestry.iter().next().is_some() => {
            Some(ancestry.harness().map(|a| a.runs).unwrap_or_default())
        }
        _ => process.and_then(|p| Ancestry::of(Some(p.pid)).harness().map(|a| a.runs)),
    }
}

/// Whether somebody sits at a conversation, for all that is known. Claude Code says it to its hooks; of the others the
/// process tells, and of one that cannot be seen any more nothing does.
fn attended(harness: &str, env: &HookEnv, runs: Option<Runs>) -> bool {
    let denied = env.attended == Some(false) || env.entrypoint.as_deref() == Some("sdk-cli");
    let untold = runs.is_none() && harness != "claude";
    !denied && !untold && runs != Some(Runs::Unattended)
}

/// Whether a conversation that nobody registered becomes a session.
fn wanted(txn: &Txn<'_>, payload: &Payload, attended: bool) -> bool {
    let adopt = &txn.config().adopt;
    let mode = match adopt.mode {
        AdoptMode::Off => false,
        AdoptMode::Attended => attended,
        AdoptMode::All => true,
    };
    let ignored = payload
        .cwd
        .as_ref()
        .is_some_and(|cwd| adopt.ignore.iter().any(|d| std::path::Path::new(cwd).starts_with(d)));
    mode && !ignored
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_said_to_sit_where_nothing_can_be_seen() {
        let unseen = [Origin::Peer(Ancestry::default()), Origin::Spooled(Stamp::now())];
        let env = HookEnv::default();
        for origin in unseen {
            let runs = runs_of(None, &origin);
            assert!(!attended("codex", &env, runs) && !attended("gemini", &env, runs), "{origin:?}");
            assert!(attended("claude", &env, runs), "it says so itself where nobody does: {origin:?}");
        }
        let seen = Origin::Peer(Ancestry::of(i32::try_from(std::process::id()).ok()));
        assert!(attended("codex", &env, runs_of(None, &seen)));
    }
}
