//! How far one message got, read from the ledgers: found by the end of its id wherever it lies, and told in one
//! line.

use std::path::{Path, PathBuf};

use minder_proto::error::exit;
use minder_proto::event::{Message, Receipt};
use minder_proto::id::{MIN_PARTIAL, MessageId, Party, SessionId};
use minder_proto::layout::Home;
use minder_proto::record::QueueLine;
use minder_proto::snapshot;
use minder_proto::stamp::Stamp;

use crate::fault::CommandError;
use crate::holds;

/// One message with all that happened to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Tracked {
    /// Which.
    pub id: MessageId,
    /// Who gets it.
    pub to: Party,
    /// The message, where its line can still be read.
    pub message: Option<Message>,
    /// Every change of its receipt, oldest first.
    pub history: Vec<QueueLine>,
}

/// True if a word can name a message.
pub fn is_message_word(word: &str) -> bool {
    word.len() >= MIN_PARTIAL && word.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-')
}

/// The message whose id ends with `word`: in the queues of open sessions, of the person, of closed sessions.
pub fn find(home: &Home, word: &str) -> Result<Tracked, CommandError> {
    let places = places(home)?;
    // What a ledger has forgotten stands in the timeline still.
    for read in [in_ledger, snapshot::histories] {
        let mut found: Vec<Tracked> = Vec::new();
        for (to, dir) in &places {
            for (id, history) in read(dir, word) {
                let message = history.first().and_then(|l| snapshot::message(dir, l.seq).ok().flatten());
                found.push(Tracked { id, to: *to, message, history });
            }
        }
        match found.len() {
            0 => {}
            1 => return Ok(found.remove(0)),
            n => {
                let all: Vec<String> = found.iter().map(|t| t.id.to_string()).collect();
                let message = format!("{word:?} fits {n} messages: {}", all.join(", "));
                return Err(CommandError::new("ambiguous", exit::USAGE, message));
            }
        }
    }
    Err(CommandError::not_found(format!("no message {word:?}")))
}

/// Every recipient there is, and its folder.
fn places(home: &Home) -> Result<Vec<(Party, PathBuf)>, CommandError> {
    let mut places = vec![(Party::Operator, home.operator())];
    for folder in [home.sessions(), home.trash()] {
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => continue,
            Err(e) => return Err(CommandError::io(folder.display(), &e)),
        };
        for entry in entries.flatten() {
            if let Some(id) = entry.file_name().to_str().and_then(|n| n.parse::<SessionId>().ok()) {
                places.push((Party::Session(id), entry.path()));
            }
        }
    }
    Ok(places)
}

fn in_ledger(dir: &Path, word: &str) -> snapshot::Histories {
    let bytes = minder_proto::whole::read(&dir.join("queue.jsonl")).unwrap_or_default();
    let mut found = snapshot::Histories::new();
    for line in bytes.split(|b| *b == b'\n') {
        let Ok(line) = serde_json::from_slice::<QueueLine>(line) else { continue };
        if line.id.ends_with(word) {
            match found.iter_mut().find(|(id, _)| *id == line.id) {
                Some((_, history)) => history.push(line),
                None => found.push((line.id, vec![line])),
            }
        }
    }
    found
}

/// `queued 12:00:01.204, handed .310, seen .311`: each time in full where it is not of the second before.
pub fn path(history: &[QueueLine], now: Stamp) -> String {
    let mut words = Vec::with_capacity(history.len());
    let mut before: Option<Stamp> = None;
    for line in history {
        let mut word = holds::receipt(line.r, line.reason.as_deref());
        word.push(' ');
        word.push_str(&moment(line.at, before, now));
        if line.attempt > 1 && line.r == Receipt::Handed {
            word.push_str(&format!(" (try {})", line.attempt));
        }
        words.push(word);
        before = Some(line.at);
    }
    words.join(", ")
}

/// A time of day, short where it is of the same second as the one before, with its day where that is another.
fn moment(at: Stamp, before: Option<Stamp>, now: Stamp) -> String {
    let full = at.clock(true);
    let second = |s: Stamp| s.as_millis().div_euclid(1_000);
    match before {
        Some(before) if second(before) == second(at) => full[full.len() - 4..].to_owned(),
        Some(before) if before.day() == at.day() => full,
        None if at.day() == now.day() => full,
        _ => format!("{} {full}", at.day()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(r: Receipt, at: i64, attempt: u32, reason: Option<&str>) -> QueueLine {
        QueueLine {
            at: Stamp::from_millis(at),
            id: "0199c2d4-90c3-7f0e-8a17-c2b67be21c09".parse().unwrap(),
            seq: 3,
            r,
            reason: reason.map(str::to_owned),
            attempt,
            channel: None,
            brief: None,
        }
    }

    #[test]
    fn a_path_is_short_where_all_of_it_was_one_second() {
        let t = 1_796_040_001_204;
        let history = [
            line(Receipt::Queued, t, 0, None),
            line(Receipt::Handed, t + 106, 1, None),
            line(Receipt::Seen, t + 107, 1, Some("ack")),
        ];
        let at = |ms| Stamp::from_millis(ms).clock(true);
        let now = Stamp::from_millis(t + 5_000);
        assert_eq!(path(&history, now), format!("queued {}, handed .310, seen .311", at(t)));
        let slow = [
            line(Receipt::Queued, t, 0, None),
            line(Receipt::Held, t + 2_000, 1, Some("busy")),
            line(Receipt::Handed, t + 3 * 86_400_000, 2, None),
        ];
        let later = Stamp::from_millis(t + 3 * 86_400_000);
        assert_eq!(
            path(&slow, later),
            format!(
                "queued {} {}, held(busy) {}, handed {} {} (try 2)",
                slow[0].at.day(),
                at(t),
                at(t + 2_000),
                later.day(),
                later.clock(true)
            )
        );
    }

    #[test]
    fn a_message_is_found_where_it_lies_by_its_end() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path());
        assert_eq!(find(&home, "7be21c09").unwrap_err().exit, 2);
        let session = SessionId::random();
        std::fs::create_dir_all(home.trashed(session)).unwrap();
        let text = serde_json::to_string(&line(Receipt::Dead, 1, 0, Some("closed"))).unwrap();
        std::fs::write(home.trashed(session).join("queue.jsonl"), format!("{text}\ngarbage\n")).unwrap();
        let found = find(&home, "e21c09").unwrap();
        assert_eq!((found.to, found.history.len()), (Party::Session(session), 1));
        // The same end in another queue: named by more of it.
        std::fs::create_dir_all(home.operator()).unwrap();
        let other = text.replace("c2b67be21c09", "ffffffe21c09");
        std::fs::write(home.operator().join("queue.jsonl"), format!("{other}\n")).unwrap();
        assert_eq!(find(&home, "e21c09").unwrap_err().exit, 64);
        assert_eq!(find(&home, "7be21c09").unwrap().to, Party::Session(session));
    }
}
