//! From queued messages to the text that a hook prints: which of them, in which order, how much of each. Notices
//! about one target are given together. What is handed is `handed`, in the same commit.

use minder_proto::envelope;
use minder_proto::error::Fault;
use minder_proto::event::{About, Message, Receipt};
use minder_proto::id::{MessageId, Party, SessionId};
use minder_proto::layout::Home;
use minder_proto::queue;
use minder_proto::snapshot;

use super::rules::{Boundary, Entry, may_enter};
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

/// Reason of a `handed` whose text held only the beginning of the body and how to read on: that it was read is no
/// evidence for the rest, which is seen by an `ack`.
pub const POINTER: &str = "pointer";
/// The same once there is evidence for the beginning: it is not given again.
pub const POINTER_SEEN: &str = "pointer-seen";

struct Block {
    ids: Vec<MessageId>,
    kind: BlockKind,
}

enum BlockKind {
    One(Box<Message>),
    Notices(SessionId, Vec<(MessageId, About)>),
}

/// Hands over what may enter at a boundary, at most `max_chars` characters of it; nothing if nothing may.
pub fn hand(
    txn: &mut Txn<'_>,
    files: Settled<'_>,
    session: SessionId,
    boundary: Boundary,
    max_chars: usize,
) -> Result<Handed, Fault> {
    let party = Party::Session(session);
    let now = txn.now();
    let queue = &txn.session(session)?.inbox.queue;
    if queue.is_empty() {
        return Ok(Handed::default());
    }
    let waiting: Vec<queue::Entry> = queue
        .iter()
        .filter(|e| matches!(e.receipt, Receipt::Queued | Receipt::Held))
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
    let messages = waiting.iter().filter_map(|e| snapshot::message_of(&dir, e).ok().flatten());
    let mut handed = Handed::default();
    for block in blocks(messages) {
        let (text, whole) = render(home, &block, max_chars);
        let chars = text.chars().count() + 2;
        // Order is kept: what does not fit waits, and so does all behind it.
        if !handed.text.is_empty() && handed.text.chars().count() + chars > max_chars {
            break;
        }
        if !whole {
            handed.pointers.extend(&block.ids);
        }
        if !handed.text.is_empty() {
            handed.text.push_str("\n\n");
        }
        handed.text.push_str(&text);
        handed.ids.extend(block.ids);
    }
    for id in &handed.ids {
        let attempt = waiting.iter().find(|e| e.id == *id).map_or(0, |e| e.attempt);
        let pointer = handed.pointers.contains(id).then(|| POINTER.to_owned());
        txn.receipt(party, *id, Receipt::Handed, pointer, attempt + 1, Some("hook"))?;
    }
    Ok(handed)
}

/// Messages one by one, and each target's notices together where the first of them stands.
fn blocks(messages: impl Iterator<Item = Message>) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    for message in messages {
        match message.about.clone().filter(|a| a.notice.is_watch()) {
            Some(about) => {
                let target = about.session;
                let same =
                    blocks.iter_mut().find(|b| matches!(&b.kind, BlockKind::Notices(s, _) if *s == target));
                if let Some(Block { ids, kind: BlockKind::Notices(_, notices) }) = same {
                    ids.push(message.id);
                    notices.push((message.id, about));
                } else {
                    let kind = BlockKind::Notices(target, vec![(message.id, about)]);
                    blocks.push(Block { ids: vec![message.id], kind });
                }
            }
            None => blocks.push(Block { ids: vec![message.id], kind: BlockKind::One(Box::new(message)) }),
        }
    }
    blocks
}

/// The text of a block, and whether it is all of it.
fn render(home: &Home, block: &Block, max_chars: usize) -> (String, bool) {
    let message = match &block.kind {
        BlockKind::Notices(_, notices) => return (envelope::notice(home, notices), true),
        BlockKind::One(message) => message,
    };
    let whole = envelope::render(home, message);
    if whole.chars().count() <= max_chars {
        return (whole, true);
    }
    let mut short = (**message).clone();
    short.body = message.body.chars().take(SHOWN).collect();
    let text = envelope::render(home, &short);
    let (id, all) = (message.id.short(), message.body.chars().count());
    let rest = format!(
        "[minder] these are the first {SHOWN} of {all} characters. All of it: minder inbox list; then minder inbox ack {id}"
    );
    (format!("{text}\n\n{rest}"), false)
}

#[cfg(test)]
mod tests {
    use minder_proto::event::NoticeKind;
    use minder_proto::state::State;

    use super::*;
    use crate::session::from_minder;

    #[test]
    fn notices_of_one_target_are_one_block_in_order() {
        let (a, b) = (SessionId::random(), SessionId::random());
        let notice = |session, seq| {
            let about = About {
                session,
                seq,
                notice: NoticeKind::State,
                from: Some(State::Working),
                to: Some(State::Done),
            };
            from_minder(Some(about), String::new())
        };
        let plain = from_minder(None, "hello".into());
        let found = blocks([notice(a, 1), plain, notice(b, 1), notice(a, 2)].into_iter());
        let shapes: Vec<String> = found
            .iter()
            .map(|block| match &block.kind {
                BlockKind::One(m) => m.body.clone(),
                BlockKind::Notices(s, list) => {
                    let seqs: Vec<u64> = list.iter().map(|(_, a)| a.seq).collect();
                    format!("{}{seqs:?}", if *s == a { "a" } else { "b" })
                }
            })
            .collect();
        assert_eq!(shapes, ["a[1, 2]", "hello", "b[1]"]);
        assert_eq!(found[0].ids.len(), 2);
    }
}
