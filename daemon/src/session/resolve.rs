//! From what people type to sessions and messages.

use minder_proto::error::{Fault, Kind};
use minder_proto::id::{MIN_PARTIAL, MessageId, Party, SessionId};
use minder_proto::layout::Home;
use minder_proto::selector::{Selector, SelectorError};
use minder_proto::snapshot;
use minder_proto::timeline;

use crate::store::State;

fn fault(error: SelectorError) -> Fault {
    let kind = match &error {
        SelectorError::Bad { .. } => Kind::InvalidParams,
        SelectorError::NotFound(_) => Kind::NotFound,
        SelectorError::Ambiguous { .. } => Kind::Ambiguous,
        SelectorError::NoCaller(_) => Kind::Refused,
    };
    Fault::new(kind, error.to_string())
}

/// A name that no open session has may be one that was closed, or whose files cannot be read.
fn explain(state: &State, home: &Home, text: &str, error: SelectorError) -> Fault {
    if let SelectorError::NotFound(name) = &error {
        let corrupt = state.all_corrupt().find(|(id, _)| id.to_string().starts_with(name.as_str()));
        if let Some((id, why)) = corrupt.filter(|_| name.len() >= MIN_PARTIAL) {
            return Fault::new(Kind::InvalidState, format!("session {} cannot be read: {why}", id.short()));
        }
        if let Some(line) = snapshot::tombstones_named(home, name).first() {
            let (id, at) = (line.id, line.at);
            return Fault::new(Kind::Gone, format!("session {text:?} was closed at {at}")).about(id);
        }
    }
    fault(error)
}

/// The sessions that a selector names, where every word of it is a label, an id or the caller: found without a look at
/// each session. None: somebody has to look.
fn indexed(state: &State, selector: &Selector, caller: Option<SessionId>) -> Option<Vec<SessionId>> {
    let mut found = Vec::new();
    for word in selector.words()? {
        let open = |id: &SessionId| state.session(*id).is_some();
        let id = match word {
            "." => caller?,
            _ => state.by_label(word).or_else(|| word.parse().ok()).filter(open)?,
        };
        if !found.contains(&id) {
            found.push(id);
        }
        if found.len() > 64 {
            return None; // so many are found faster by a look at each session
        }
    }
    Some(found)
}

/// The sessions that a selector matches, oldest first where a broad part swept them in.
pub fn selected(
    state: &State,
    home: &Home,
    text: &str,
    caller: Option<SessionId>,
) -> Result<Vec<SessionId>, Fault> {
    let selector = Selector::parse(text).map_err(fault)?;
    if let Some(found) = indexed(state, &selector, caller) {
        return Ok(found);
    }
    let found = selector.resolve(state.records(), caller).map_err(|e| explain(state, home, text, e))?;
    let mut ids: Vec<SessionId> = found.into_iter().map(|m| m.id).collect();
    if selector.is_broad() {
        ids.sort_by_key(|id| state.session(*id).map(|s| (s.record.created, s.record.id)));
    }
    Ok(ids)
}

/// Exactly one session.
pub fn selected_one(
    state: &State,
    home: &Home,
    text: &str,
    caller: Option<SessionId>,
) -> Result<SessionId, Fault> {
    let selector = Selector::parse(text).map_err(fault)?;
    if let Some([one]) = indexed(state, &selector, caller).as_deref() {
        return Ok(*one);
    }
    selector.resolve_one(state.records(), caller).map_err(|e| explain(state, home, text, e))
}

/// Where a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// Its recipient.
    pub to: Party,
    /// The message.
    pub id: MessageId,
}

/// The messages whose ids end so, as far as the queues and the recent past know them. A text that cannot name one
/// is an error.
pub fn message(state: &State, end: &str) -> Result<Vec<Lookup>, Fault> {
    if end.len() < MIN_PARTIAL || !end.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-') {
        return Err(Fault::new(
            Kind::InvalidParams,
            format!("not a message id: {end:?} (the last {MIN_PARTIAL} or more characters of one)"),
        ));
    }
    Ok(state.find_message(end).into_iter().map(|(to, id)| Lookup { to, id }).collect())
}

/// The same from the ledgers and timelines of `parties`: a search of files, for what was settled long ago.
pub fn message_in_files(home: &Home, parties: &[Party], end: &str) -> Vec<Lookup> {
    let mut found: Vec<Lookup> = parties.iter().flat_map(|to| in_ledger(home, *to, end)).collect();
    found.sort_by_key(|l| (l.to, l.id));
    found.dedup();
    found
}

/// Exactly one of them.
pub fn only(found: &[Lookup], end: &str) -> Result<Lookup, Fault> {
    match found {
        [one] => Ok(*one),
        [] => Err(Fault::new(Kind::NotFound, format!("no message {end:?}")).hint("minder queue")),
        many => {
            let ids: Vec<String> = many.iter().map(|l| l.id.to_string()).collect();
            Err(Fault::new(
                Kind::Ambiguous,
                format!("{end:?} fits {} messages: {}", ids.len(), ids.join(", ")),
            ))
        }
    }
}

fn in_ledger(home: &Home, to: Party, end: &str) -> Vec<Lookup> {
    let dir = snapshot::party_dir(home, to);
    let Ok(bytes) = minder_proto::whole::read(&dir.join("queue.jsonl")) else { return Vec::new() };
    let mut found = Vec::new();
    for line in bytes.split(|b| *b == b'\n') {
        // A cheap look before the parse: the ledger of a busy session is long.
        if !line.windows(end.len()).any(|w| w.eq_ignore_ascii_case(end.as_bytes())) {
            continue;
        }
        if let Ok(line) = serde_json::from_slice::<minder_proto::record::QueueLine>(line)
            && line.id.ends_with(end)
        {
            found.push(Lookup { to, id: line.id });
        }
    }
    if found.is_empty() {
        // A ledger that was rewritten has forgotten what is settled; the timeline has not.
        let lines = timeline::last(&dir, 5_000).unwrap_or_default();
        found.extend(lines.into_iter().filter_map(|e| match e.body {
            minder_proto::event::Body::Message(m) if m.id.ends_with(end) => Some(Lookup { to, id: m.id }),
            _ => None,
        }));
    }
    found
}
