//! What a turn of a queue is given: the oldest messages that may start one, each in its envelope, and what may go along.
//! They are `handed` in the commit that begins the turn.

use minder_proto::envelope;
use minder_proto::error::{Fault, Kind};
use minder_proto::event::{Author, Receipt};
use minder_proto::id::{MessageId, Party, SessionId, TurnId};
use minder_proto::queue;
use minder_proto::record::{RunningTurn, TurnOrigin};
use minder_proto::snapshot;
use minder_proto::state::State;
use minder_proto::text::{first_line, one_line};

use super::{CHANNEL, WORDS};
use crate::delivery::mailbox::{bury_unreadable, is_notice};
use crate::delivery::rules::{Boundary, Entry, hops_after, may_enter, waits};
use crate::session::{Declaration, declare};
use crate::store::{Settled, Txn};
use crate::turn::adapter::Message;

/// Most bytes of text that one turn is given, unless its first message alone is longer.
const TEXT_MAX: usize = 1024 * 1024;

/// Takes what the next turn is given; nothing where nothing may start one. One that cannot be read is ended.
pub fn take(
    txn: &mut Txn<'_>,
    files: Settled<'_>,
    session: SessionId,
    turn: TurnId,
    most: usize,
) -> Result<Vec<Message>, Fault> {
    let party = Party::Session(session);
    let now = txn.now();
    let waiting: Vec<queue::Entry> = txn
        .session(session)?
        .inbox
        .queue
        .iter()
        .filter(|e| waits(e))
        .filter(|e| e.brief.as_ref().and_then(|b| b.expires).is_none_or(|at| at > now))
        .cloned()
        .collect();
    let waiting = choose(waiting, most);
    let home = files.home();
    let dir = snapshot::party_dir(home, party);
    let (mut given, mut entries, mut lost) = (Vec::new(), Vec::new(), Vec::new());
    let (mut bytes, mut words) = (0, None);
    for entry in waiting {
        let found = snapshot::message_of(&dir, &entry)
            .map_err(|e| Fault::new(Kind::ReadOnly, format!("{}: {e}", dir.display())))?;
        let Some(message) = found else {
            lost.push(entry);
            continue;
        };
        let text = envelope::render(home, &message);
        if !given.is_empty() && bytes + text.len() > TEXT_MAX {
            break;
        }
        bytes += text.len();
        words = words.or_else(|| Some(message.body).filter(|b| !b.is_empty()));
        // Attempts that never came to an end were taken back.
        given.push(Message { id: entry.id, text, failed: entry.attempt });
        entries.push(entry);
    }
    if !lost.is_empty() {
        bury_unreadable(txn, files, party, &lost)?;
    }
    if given.is_empty() {
        return Ok(given);
    }
    for entry in &entries {
        txn.receipt(party, entry.id, Receipt::Handed, None, entry.attempt + 1, Some(CHANNEL))?;
    }
    let words = words.filter(|_| txn.config().adopt.text);
    begin(
        txn,
        session,
        turn,
        &entries,
        words.map(|w| one_line(first_line(&w)).chars().take(WORDS).collect()),
    )?;
    Ok(given)
}

/// Of what waits, in its order: what may start a turn, at most so many, and in the room that is left what goes along.
fn choose(waiting: Vec<queue::Entry>, most: usize) -> Vec<queue::Entry> {
    let starts = |e: &queue::Entry| may_enter(e.class(), Boundary::Idle) == Entry::Yes;
    let of_its_own = waiting.iter().filter(|e| starts(e)).count().min(most);
    let (mut own, mut along) = (of_its_own, if of_its_own == 0 { 0 } else { most - of_its_own });
    let mut chosen = waiting;
    chosen.retain(|e| {
        let room = if starts(e) { &mut own } else { &mut along };
        let takes = *room > 0;
        *room -= usize::from(takes);
        takes
    });
    chosen
}

/// True if something waits that may start a turn.
pub fn may_start(queue: &queue::Queue) -> bool {
    queue.iter().filter(|e| waits(e)).any(|e| may_enter(e.class(), Boundary::Idle) == Entry::Yes)
}

/// The session works from here on; a notice alone makes it say nothing, since its watchers would hear of their own news.
fn begin(
    txn: &mut Txn<'_>,
    session: SessionId,
    turn: TurnId,
    entries: &[queue::Entry],
    note: Option<String>,
) -> Result<(), Fault> {
    let message = entries.iter().find(|e| !is_notice(e));
    let first = message.or(entries.first());
    let by = if message.is_some() { TurnOrigin::Message } else { TurnOrigin::Notice };
    let notice_about = first.filter(|_| by == TurnOrigin::Notice).and_then(|e| e.brief.as_ref()?.about);
    let cause = first.map(|e| e.id);
    let hops = hops_after(entries);
    let since = txn.now();
    txn.edit(session, |r| {
        r.turn = Some(RunningTurn {
            prompt_id: Some(turn.to_string()),
            since,
            by,
            cause,
            declared: false,
            dialog: None,
            dialog_input: None,
            dialog_since: None,
            messages: Vec::new(),
            notice_about,
            hops,
        });
    })?;
    if by == TurnOrigin::Message {
        declare(txn, session, Declaration::new(State::Working, note, Author::Runner))?;
    }
    Ok(())
}

/// The messages that a turn has which was given them and of which nothing came back.
pub fn handed(txn: &Txn<'_>, session: SessionId) -> Result<Vec<MessageId>, Fault> {
    let queue = &txn.session(session)?.inbox.queue;
    let out = queue.iter().filter(|e| e.receipt == Receipt::Handed && e.channel.as_deref() == Some(CHANNEL));
    Ok(out.map(|e| e.id).collect())
}

#[cfg(test)]
mod tests {
    use minder_proto::event::Class;
    use minder_proto::record::Brief;
    use minder_proto::stamp::Stamp;

    use super::*;

    fn entry(seq: u64, class: Class) -> queue::Entry {
        let at = Stamp::now();
        let brief = Brief {
            class,
            from: Party::Operator,
            about: None,
            segment: 1,
            offset: 0,
            expires: None,
            hops: 0,
        };
        queue::Entry {
            id: MessageId::now(),
            seq,
            brief: Some(brief),
            receipt: Receipt::Queued,
            reason: None,
            since: at,
            accepted: at,
            attempt: 0,
            channel: None,
        }
    }

    #[test]
    fn what_only_goes_along_never_stands_before_what_may_start_a_turn() {
        use Class::{Now, WithNext};
        let chosen = |classes: &[Class], most| {
            let waiting = classes.iter().zip(1..).map(|(class, seq)| entry(seq, *class)).collect();
            choose(waiting, most).into_iter().map(|e| e.seq).collect::<Vec<_>>()
        };
        assert_eq!(chosen(&[WithNext, WithNext, WithNext, Now], 2), [1, 4]);
        assert_eq!(chosen(&[WithNext, Now, Now], 2), [2, 3]);
        assert_eq!(chosen(&[WithNext, WithNext], 2), [0; 0]);
        assert_eq!(chosen(&[Now, WithNext, Now], 3), [1, 2, 3]);
    }
}
