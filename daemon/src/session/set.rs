//! A record is changed: label, title, parent, channel, or a conversation bound by hand. One commit.

use std::collections::BTreeMap;

use minder_proto::error::{Fault, Kind};
use minder_proto::event::Body;
use minder_proto::id::{Party, SessionId};
use minder_proto::label;
use minder_proto::limits;
use minder_proto::record::{Binding, Channel, TitleSource, WatchSource, Watcher};
use minder_proto::state::StateSet;

use crate::store::Txn;

/// The changes asked for, with selectors resolved.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// A new label.
    pub label: Option<String>,
    /// A new title.
    pub title: Option<String>,
    /// A new parent.
    pub parent: Option<SessionId>,
    /// A new way in.
    pub channel: Option<Channel>,
    /// What turns that no caller starts get, where the new way in has such.
    pub env: (BTreeMap<String, String>, Vec<String>),
    /// A conversation: harness and its id.
    pub conversation: Option<(String, String)>,
}

/// Changes a record; gives a line for each thing that changed.
pub fn set(txn: &mut Txn<'_>, id: SessionId, changes: Changes) -> Result<Vec<String>, Fault> {
    limits::text("a title", changes.title.as_deref(), limits::TITLE_MAX)?;
    if let Some(channel) = &changes.channel {
        limits::channel(channel)?;
    }
    let record = txn.session(id)?.record.clone();
    let mut lines = Vec::new();
    let mut note =
        |txn: &mut Txn<'_>, what: &str, from: Option<String>, to: Option<String>| -> Result<(), Fault> {
            let shown = |v: &Option<String>| v.clone().unwrap_or_else(|| "none".to_owned());
            lines.push(format!("{what}: {} → {}", shown(&from), shown(&to)));
            txn.append(Party::Session(id), Body::Record { what: what.to_owned(), from, to }).map(|_| ())
        };
    if let Some(label) = changes.label.filter(|l| *l != record.label) {
        label::check(&label).map_err(|e| Fault::new(Kind::InvalidParams, e.to_string()))?;
        if let Some(other) = txn.state().by_label(&label) {
            return Err(Fault::new(Kind::Conflict, format!("label {label:?} is taken by {}", other.short()))
                .about(other));
        }
        txn.edit(id, |r| {
            r.label.clone_from(&label);
            r.label_given = true;
            if matches!(r.title_from, TitleSource::Label | TitleSource::None | TitleSource::Prompt) {
                r.title.clone_from(&label);
                r.title_from = TitleSource::Label;
            }
        })?;
        note(txn, "label", Some(record.label.clone()), Some(label))?;
    }
    if let Some(title) = changes.title.filter(|t| *t != record.title) {
        txn.edit(id, |r| {
            r.title.clone_from(&title);
            r.title_from = TitleSource::Given;
        })?;
        note(txn, "title", Some(record.title.clone()), Some(title))?;
    }
    if let Some(parent) = changes.parent.filter(|p| Some(*p) != record.parent) {
        set_parent(txn, id, parent, record.parent)?;
        note(txn, "parent", record.parent.map(|p| p.to_string()), Some(parent.to_string()))?;
    }
    if changes.channel.is_some() && record.until_hook {
        txn.edit(id, |r| r.until_hook = false)?;
    }
    if let Some(channel) = changes.channel.filter(|c| *c != record.channel) {
        let (from, to) = (record.channel.as_str().to_owned(), channel.as_str().to_owned());
        let (env, env_names) = changes.env;
        txn.edit(id, |r| {
            r.channel = channel;
            r.env = env;
            r.env_names = env_names;
        })?;
        note(txn, "channel", Some(from), Some(to))?;
    }
    if let Some((harness, harness_id)) = changes.conversation {
        bind(txn, id, &harness, &harness_id, "new", None)?;
        lines.push(format!("conversation: {harness} {harness_id}"));
    }
    Ok(lines)
}

/// A hook of this session's conversation was heard: where nobody chose another way in, that is one. Gives the line that
/// was written. `way` is the one.
pub fn hook_heard(txn: &mut Txn<'_>, id: SessionId, way: Channel) -> Result<Option<u64>, Fault> {
    let record = &txn.session(id)?.record;
    if !record.until_hook {
        return Ok(None);
    }
    let from = record.channel.as_str().to_owned();
    let to = way.as_str().to_owned();
    let stays = record.channel == way;
    txn.edit(id, |r| {
        r.channel = way;
        r.until_hook = false;
    })?;
    if stays {
        return Ok(None);
    }
    let line = Body::Record { what: "channel".to_owned(), from: Some(from), to: Some(to) };
    txn.append(Party::Session(id), line).map(Some)
}

/// The parent's watch moves with the relation.
fn set_parent(
    txn: &mut Txn<'_>,
    id: SessionId,
    parent: SessionId,
    old: Option<SessionId>,
) -> Result<(), Fault> {
    if parent == id {
        return Err(Fault::new(Kind::Refused, "a session cannot be its own parent"));
    }
    // A ring of parents would make every broad question endless.
    let mut above = Some(parent);
    while let Some(next) = above {
        if next == id {
            return Err(Fault::new(Kind::Refused, "that session is below this one already"));
        }
        above = txn.session(next)?.record.parent.filter(|p| txn.state().session(*p).is_some());
    }
    txn.edit(id, |r| r.parent = Some(parent))?;
    let now = txn.now();
    let mut watchers = txn.session(id)?.watchers.clone();
    for w in &mut watchers {
        if Some(w.watcher) == old {
            w.sources.retain(|s| *s != WatchSource::Parent);
        }
    }
    watchers.retain(|w| !w.sources.is_empty());
    match watchers.iter_mut().find(|w| w.watcher == parent) {
        Some(w) if !w.sources.contains(&WatchSource::Parent) => w.sources.push(WatchSource::Parent),
        Some(_) => {}
        None => watchers.push(Watcher {
            watcher: parent,
            sources: vec![WatchSource::Parent],
            states: StateSet::WATCH,
            since: now,
            unknown: serde_json::Map::new(),
        }),
    }
    txn.set_watchers(id, watchers)
}

/// Binds a conversation to a session; the one before it ends. Gives false if it was bound already.
pub fn bind(
    txn: &mut Txn<'_>,
    id: SessionId,
    harness: &str,
    harness_id: &str,
    why: &str,
    transcript: Option<String>,
) -> Result<bool, Fault> {
    match txn.state().by_binding(harness, harness_id) {
        Some(other) if other == id => return Ok(false),
        Some(other) => {
            return Err(Fault::new(
                Kind::Conflict,
                format!("this conversation belongs to session {}", other.short()),
            )
            .about(other));
        }
        None => {}
    }
    limits::word("a harness", Some(harness), limits::HARNESS_MAX)?;
    limits::word("a conversation's id", Some(harness_id), limits::CONVERSATION_MAX)?;
    limits::text("a transcript's path", transcript.as_deref(), limits::PATH_MAX)?;
    let now = txn.now();
    txn.edit(id, |r| {
        for b in r.bindings.iter_mut().filter(|b| b.until.is_none()) {
            b.until = Some(now);
        }
        r.harness = Some(harness.to_owned());
        r.bindings.push(Binding {
            harness: harness.to_owned(),
            id: harness_id.to_owned(),
            since: now,
            until: None,
            why: why.to_owned(),
            transcript,
        });
    })?;
    let line =
        Body::Binding { harness: harness.to_owned(), harness_id: harness_id.to_owned(), why: why.to_owned() };
    txn.append(Party::Session(id), line)?;
    Ok(true)
}
