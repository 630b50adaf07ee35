//! A session ends: its last line, its watchers told, its undelivered messages dead and their senders told, its
//! folder to the trash. One commit.

use std::collections::BTreeMap;

use minder_proto::error::Fault;
use minder_proto::event::{About, Author, Class, Message, NoticeKind, Receipt, cut};
use minder_proto::id::{MessageId, Party, SessionId};
use minder_proto::queue::Entry;
use minder_proto::record::{ClosedLine, Process};
use minder_proto::snapshot;
use minder_proto::text::{first_line, one_line};

use crate::store::{Settled, Txn};

/// What a close did.
#[derive(Clone, Debug)]
pub struct Closed {
    /// Its last label.
    pub label: String,
    /// Messages for it that were not delivered.
    pub dead: usize,
    /// Messages of its own that were taken back.
    pub recalled: usize,
    /// Its process, where it runs on.
    pub left_running: Option<i32>,
    /// Its process, where that was started for it: whoever closes it ends that.
    pub ours: Option<Process>,
}

/// Closes a session.
pub fn close(
    txn: &mut Txn<'_>,
    files: Settled<'_>,
    id: SessionId,
    note: Option<String>,
    by: Author,
    recall: bool,
) -> Result<Closed, Fault> {
    let session = txn.session(id)?;
    let record = session.record.clone();
    let watchers = session.watchers.clone();
    let dead: Vec<Entry> = session.inbox.queue.iter().cloned().collect();
    for entry in &dead {
        txn.receipt(
            Party::Session(id),
            entry.id,
            Receipt::Dead,
            Some("closed".to_owned()),
            entry.attempt,
            None,
        )?;
    }
    tell_senders(txn, files, Party::Session(id), &record.title, &dead, "it was closed");
    let recalled = if recall { take_back(txn, id)? } else { 0 };
    let left = record.process.clone().filter(|p| p.ended.is_none());
    let line = ClosedLine {
        id,
        label: record.label.clone(),
        title: record.title,
        state: record.state,
        note,
        by,
        at: txn.now(),
        process: left.clone(),
    };
    let seq = txn.close(line)?;
    for watcher in watchers {
        if watcher.watcher == id || txn.state().session(watcher.watcher).is_none() {
            continue;
        }
        let about =
            About { session: id, seq, notice: NoticeKind::Closed, from: Some(record.state), to: None };
        let notice = from_minder(Some(about), String::new());
        // A watcher whose folder is gone does not keep this session open.
        let _ = txn.post(Party::Session(watcher.watcher), notice);
    }
    let ours = record.launch.is_some_and(|launch| launch.pane.is_some());
    let (ours, left) = if ours { (left, None) } else { (None, left) };
    Ok(Closed { label: record.label, dead: dead.len(), recalled, left_running: left.map(|p| p.pid), ours })
}

/// Takes back what a session sent and nobody was given yet.
fn take_back(txn: &mut Txn<'_>, id: SessionId) -> Result<usize, Fault> {
    let mut found: Vec<(Party, MessageId)> = Vec::new();
    let everybody = txn
        .state()
        .sessions()
        .map(|s| (Party::Session(s.record.id), &s.inbox.queue))
        .chain(txn.state().inbox(Party::Operator).map(|i| (Party::Operator, &i.queue)));
    for (party, queue) in everybody {
        let not_given = queue.iter().filter(|e| matches!(e.receipt, Receipt::Queued | Receipt::Held));
        let own = not_given.filter(|e| e.brief.as_ref().is_some_and(|b| b.from == Party::Session(id)));
        found.extend(own.map(|e| (party, e.id)));
    }
    for (party, message) in &found {
        txn.receipt(*party, *message, Receipt::Dead, Some("recalled".to_owned()), 0, None)?;
    }
    Ok(found.len())
}

/// Tells every sender of these messages, once each, that they will not be delivered: which, why and what they were.
pub fn tell_senders(
    txn: &mut Txn<'_>,
    files: Settled<'_>,
    to: Party,
    title: &str,
    messages: &[Entry],
    why: &str,
) {
    let dir = snapshot::party_dir(files.home(), to);
    let mut by_sender: BTreeMap<SessionId, Vec<(MessageId, String)>> = BTreeMap::new();
    for entry in messages {
        // A notice is minder's own: nobody waits for it. The person sees what died in `minder queue`.
        let Some(Party::Session(sender)) = entry.brief.as_ref().map(|b| b.from) else { continue };
        let body = snapshot::message_of(&dir, entry).ok().flatten().map(|m| m.body).unwrap_or_default();
        let shown = one_line(cut(first_line(&body), 120));
        by_sender.entry(sender).or_default().push((entry.id, shown));
    }
    for (sender, letters) in by_sender {
        if txn.state().session(sender).is_none() || Party::Session(sender) == to {
            continue;
        }
        let short = to.session().map_or_else(|| to.to_string(), |s| s.short());
        let title = one_line(title).replace('"', "'");
        let mut body = format!("not delivered to \"{title}\" ({short}): {why}.");
        for (id, shown) in &letters {
            body.push_str(&format!("\n{} {shown}", id.short()));
        }
        let about = to.session().map(|session| About {
            session,
            seq: 0,
            notice: NoticeKind::DeadLetter,
            from: None,
            to: None,
        });
        let _ = txn.post(Party::Session(sender), from_minder(about, body));
    }
}

/// A message of minder's own. Its id is given when it is posted.
pub(crate) fn from_minder(about: Option<About>, body: String) -> Message {
    Message {
        id: MessageId::now(),
        from: Party::Minder,
        about,
        body,
        class: Class::Now,
        key: None,
        reply_to: None,
        thread: None,
        cause: None,
        hops: 0,
        expires: None,
    }
}
