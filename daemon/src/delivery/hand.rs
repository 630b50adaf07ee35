//! From queued messages to the text that a hook prints: which of them, in which order, how much of each. Notices
//! about one target are given together. What is handed is `handed`, in the same commit.

use std::path::Path;

use minder_proto::envelope;
use minder_proto::error::{Fault, Kind};
use minder_proto::event::{About, Message, Receipt};
use minder_proto::id::{MessageId, Party, SessionId};
use minder_proto::layout::Home;
use minder_proto::queue;
use minder_proto::snapshot;

use super::mailbox::bury_unreadable;
use super::rules::{Boundary, Entry, is_given_by_its_channel, may_enter};
use crate::store::{Settled, Txn};

/// Characters of a body that is longer than one hook call may print.
const SHOWN: usize = 2_000;

/// What was handed.
#[derive(Clone, Debug, Default)]
pub struct Handed {
    /// The text, with an envelope for each message.
    pub text: String,
    /// The messages and notices in it.
    pub ids: Vec<MessageId>,
    /// Those of which only the beginning stands in it.
    pointers: Vec<MessageId>,
}

impl Handed {
    /// A text in which no message is.
    pub fn of(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}

/// Reason of a `handed` whose text held only the beginning of the body and how to read on: that it was read is no
/// evidence for the rest, which is seen by an `ack`.
pub const POINTER: &str = "pointer";
/// The same once there is evidence for the beginning: it is not given again.
pub const POINTER_SEEN: &str = "pointer-seen";

/// What stands between two blocks.
const BETWEEN: &str = "\n\n";

/// Most notices in one block: its path and its ids stay readable, and every id is shown.
const NOTICES: usize = 50;

/// Entries that are given together: one message, or notices about one target.
struct Block<'a> {
    about: Option<SessionId>,
    entries: Vec<&'a queue::Entry>,
}

/// How long a text may be.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// In characters.
    pub chars: usize,
    /// In bytes too, where the harness counts those.
    pub bytes: Option<usize>,
}

impl Room {
    fn holds(self, parts: &[&str]) -> bool {
        let sum = |of: fn(&str) -> usize| parts.iter().map(|part| of(part)).sum::<usize>();
        sum(|part| part.chars().count()) <= self.chars && self.bytes.is_none_or(|most| sum(str::len) <= most)
    }
}

/// Hands over what may enter at a boundary, as much of it as there is room for; nothing if nothing may.
pub fn hand(
    txn: &mut Txn<'_>,
    files: Settled<'_>,
    session: SessionId,
    boundary: Boundary,
    room: Room,
) -> Result<Handed, Fault> {
    let party = Party::Session(session);
    let now = txn.now();
    let queue = &txn.session(session)?.inbox.queue;
    if queue.is_empty() {
        return Ok(Handed::default());
    }
    let waiting: Vec<queue::Entry> = queue
        .iter()
        .filter(|e| is_given_by_its_channel(e))
        .filter(|e| e.brief.as_ref().and_then(|b| b.expires).is_none_or(|at| at > now))
        .filter(|e| may_enter(e.class(), boundary) != Entry::No)
        .cloned()
        .collect();
    let own_right = waiting.iter().any(|e| may_enter(e.class(), boundary) == Entry::Yes);
    if !own_right {
        return Ok(Handed::default());
    }
    let home = files.home();
    let dir = snapshot::party_dir(home, party);
    let mut handed = Handed::default();
    let mut lost = Vec::new();
    // Read block by block: what waits behind the last that fits is not touched.
    for block in blocks(&waiting) {
        let messages = read(&dir, &block, &mut lost)?;
        let Some((text, whole)) = render(home, &messages, room) else { continue };
        // Order is kept: what does not fit waits, and so does all behind it.
        if !handed.text.is_empty() && !room.holds(&[&handed.text, BETWEEN, &text]) {
            break;
        }
        let ids = messages.iter().map(|m| m.id);
        if !whole {
            handed.pointers.extend(ids.clone());
        }
        if !handed.text.is_empty() {
            handed.text.push_str(BETWEEN);
        }
        handed.text.push_str(&text);
        handed.ids.extend(ids);
    }
    if !lost.is_empty() {
        bury_unreadable(txn, files, party, &lost)?;
    }
    for id in &handed.ids {
        let attempt = waiting.iter().find(|e| e.id == *id).map_or(0, |e| e.attempt);
        let pointer = handed.pointers.contains(id).then(|| POINTER.to_owned());
        txn.receipt(party, *id, Receipt::Handed, pointer, attempt + 1, Some("hook"))?;
    }
    Ok(handed)
}

/// Messages one by one, and each target's notices together where the first of them stands.
fn blocks(waiting: &[queue::Entry]) -> Vec<Block<'_>> {
    let mut blocks: Vec<Block<'_>> = Vec::new();
    for entry in waiting {
        let about = entry.brief.as_ref().and_then(|b| b.about);
        let same = blocks
            .iter_mut()
            .filter(|b| about.is_some() && b.about == about)
            .find(|b| b.entries.len() < NOTICES);
        match same {
            Some(block) => block.entries.push(entry),
            None => blocks.push(Block { about, entries: vec![entry] }),
        }
    }
    blocks
}

/// The messages of a block. One whose line is damaged is put aside: it would block what is behind it.
fn read(dir: &Path, block: &Block<'_>, lost: &mut Vec<queue::Entry>) -> Result<Vec<Message>, Fault> {
    let mut messages = Vec::new();
    for entry in &block.entries {
        let found = snapshot::message_of(dir, entry);
        let found = found.map_err(|e| Fault::new(Kind::ReadOnly, format!("{}: {e}", dir.display())))?;
        match found {
            Some(message) => messages.push(message),
            None => lost.push((*entry).clone()),
        }
    }
    Ok(messages)
}

/// The text of a block, and whether it is all of it.
fn render(home: &Home, messages: &[Message], room: Room) -> Option<(String, bool)> {
    let message = messages.first()?;
    let watch = |m: &Message| Some((m.id, m.about.clone().filter(|a| a.notice.is_watch())?));
    let notices: Option<Vec<(MessageId, About)>> = messages.iter().map(watch).collect();
    if let Some(notices) = notices {
        return Some((envelope::notice(home, &notices), true));
    }
    let whole = envelope::render(home, message);
    if room.holds(&[&whole]) {
        return Some((whole, true));
    }
    let mut short = message.clone();
    short.body = message.body.chars().take(SHOWN).collect();
    let text = envelope::render(home, &short);
    let (id, all) = (message.id.short(), message.body.chars().count());
    let rest = format!(
        "[minder] these are the first {SHOWN} of {all} characters. All of it: minder inbox list; then minder inbox ack {id}"
    );
    Some((format!("{text}\n\n{rest}"), false))
}

#[cfg(test)]
mod tests {
    use minder_proto::event::Class;
    use minder_proto::record::Brief;
    use minder_proto::stamp::Stamp;

    use super::*;

    fn entry(seq: u64, about: Option<SessionId>) -> queue::Entry {
        let at = Stamp::now();
        queue::Entry {
            id: MessageId::now(),
            seq,
            brief: Some(Brief {
                class: Class::Now,
                from: Party::Minder,
                about,
                segment: 1,
                offset: 0,
                expires: None,
                hops: 0,
            }),
            receipt: Receipt::Queued,
            reason: None,
            since: at,
            accepted: at,
            attempt: 0,
            channel: None,
        }
    }

    fn shapes(waiting: &[queue::Entry]) -> Vec<Vec<u64>> {
        let blocks = blocks(waiting);
        blocks.iter().map(|b| b.entries.iter().map(|e| e.seq).collect()).collect()
    }

    #[test]
    fn notices_of_one_target_are_one_block_in_order() {
        let (a, b) = (Some(SessionId::random()), Some(SessionId::random()));
        let waiting = [entry(1, a), entry(2, None), entry(3, b), entry(4, a), entry(5, None)];
        assert_eq!(shapes(&waiting), [vec![1, 4], vec![2], vec![3], vec![5]]);
    }

    #[test]
    fn a_block_of_notices_has_an_end() {
        let a = Some(SessionId::random());
        let waiting: Vec<_> = (0..120).map(|n| entry(n, a)).collect();
        let sizes: Vec<usize> = shapes(&waiting).iter().map(Vec::len).collect();
        assert_eq!(sizes, [50, 50, 20]);
    }
}
