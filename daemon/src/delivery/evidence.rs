//! Evidence that a message was read: its id in a prompt, or in a line of the transcript that a harness writes of
//! what its model saw. That a hook ran and printed is none.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use minder_proto::envelope;
use minder_proto::error::Fault;
use minder_proto::event::Receipt;
use minder_proto::id::{MessageId, Party, SessionId};
use minder_proto::queue;
use minder_proto::record::{SessionRecord, TurnEnd};
use serde_json::Value;
use tokio::time::timeout;

use super::Delivery;
use super::hand::{POINTER, POINTER_SEEN};
use super::mailbox::{answered_by, joins_turn, settle};
use crate::store::Txn;

/// How much of a transcript is looked through at most, in bytes from its end.
const LOOK_BACK: u64 = 8 * 1024 * 1024;

/// How long a look is waited for: a disk that does not answer holds up no other session.
const PATIENCE: Duration = Duration::from_secs(2);

/// How far a transcript was looked through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transcript {
    /// The file.
    pub path: PathBuf,
    /// Whole lines up to here were seen.
    pub offset: u64,
}

impl Transcript {
    /// A transcript from its present end on.
    pub fn at_end(path: &Path) -> Self {
        let offset = std::fs::metadata(path).map_or(0, |m| m.len());
        Self { path: path.to_owned(), offset }
    }

    /// The ids of `wanted` that new lines of the transcript show, and whether as a pointer. An unreadable transcript
    /// shows none.
    pub fn look(&mut self, wanted: &[MessageId]) -> Vec<(MessageId, bool)> {
        let mut found = Vec::new();
        let Ok(mut file) = open(&self.path) else { return found };
        let len = file.metadata().map_or(0, |m| m.len());
        if len < self.offset {
            self.offset = 0; // another file under this name
        }
        self.offset = self.offset.max(len.saturating_sub(LOOK_BACK));
        if file.seek(SeekFrom::Start(self.offset)).is_err() {
            return found;
        }
        let mut reader = BufReader::new(file).take(LOOK_BACK);
        let wanted = Wanted::new(wanted);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
            if line.last() != Some(&b'\n') {
                break; // still being written
            }
            self.offset += line.len() as u64;
            found.append(&mut shown(&line, &wanted));
            line.clear();
        }
        found.sort_unstable();
        found.dedup();
        found
    }
}

/// Opens a transcript to be read. Its path is a harness's word: what is no file, and may never end or never begin, is not
/// opened. It may be a link to one.
fn open(path: &Path) -> io::Result<File> {
    if path.metadata()?.is_file() { File::open(path) } else { Err(io::ErrorKind::InvalidData.into()) }
}

/// Ids that are looked for, by their short form. There may be thousands, and a line is gone through once for all of them.
struct Wanted(HashMap<String, Vec<MessageId>>);

impl Wanted {
    fn new(ids: &[MessageId]) -> Self {
        let mut by_short: HashMap<String, Vec<MessageId>> = HashMap::new();
        for id in ids {
            by_short.entry(id.short()).or_default().push(*id);
        }
        Self(by_short)
    }

    /// Those whose short form stands in a text.
    fn named_in(&self, text: &str) -> BTreeSet<MessageId> {
        let Some(len) = self.0.keys().next().map(String::len) else { return BTreeSet::new() };
        let words = text.split(|c: char| !c.is_ascii_hexdigit()).filter(|word| word.len() >= len);
        let parts = words.flat_map(|word| (0..=word.len() - len).map(move |at| &word[at..at + len]));
        let found = parts.filter_map(|part| self.0.get(part));
        found.flatten().copied().collect()
    }
}

/// The ids of `wanted` that a line shows, and whether as a pointer, if it is evidence.
fn shown(line: &[u8], wanted: &Wanted) -> Vec<(MessageId, bool)> {
    let text = String::from_utf8_lossy(line);
    let named = wanted.named_in(&text);
    if named.is_empty() {
        return Vec::new();
    }
    let Ok(line) = serde_json::from_slice::<Value>(line) else { return Vec::new() };
    if !is_evidence(&line) {
        return Vec::new();
    }
    let mut texts = Vec::new();
    texts_of(&line, &mut texts);
    let pointer = |id: &MessageId| texts.iter().any(|text| envelope::points_at(text, *id));
    let there = named.iter().filter(|id| texts.iter().any(|text| envelope::shows(text, **id)));
    there.map(|id| (*id, pointer(id))).collect()
}

/// Every text in a line.
fn texts_of<'a>(value: &'a Value, into: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => into.push(text),
        Value::Array(items) => items.iter().for_each(|item| texts_of(item, into)),
        Value::Object(fields) => fields.values().for_each(|field| texts_of(field, into)),
        _ => {}
    }
}

impl Delivery {
    /// From now on this session's transcript is looked through for what was just handed.
    pub(super) async fn remember_transcript(&self, session: SessionId) {
        let path = self
            .store
            .read(move |state| state.session(session)?.record.live_binding()?.transcript.clone())
            .await
            .ok()
            .flatten();
        if let Some(path) = path {
            self.watch_transcript(session, path.into()).await;
        }
    }

    /// The same, where the path is known.
    pub async fn watch_transcript(&self, session: SessionId, path: PathBuf) {
        if self.memory().transcripts.get(&session).is_some_and(|t| t.path == path) {
            return;
        }
        let end = tokio::task::spawn_blocking(move || Transcript::at_end(&path));
        if let Ok(Ok(transcript)) = timeout(PATIENCE, end).await {
            let mut memory = self.memory();
            let known = memory.transcripts.get(&session).is_some_and(|t| t.path == transcript.path);
            if !known {
                memory.transcripts.insert(session, transcript);
            }
        }
    }

    /// Marks as seen what the transcript shows by now. A look that takes long goes on without whoever asked for it.
    pub async fn look_for_evidence(self: &Arc<Self>, session: SessionId) {
        let found = self
            .store
            .read(move |state| {
                let session = state.session(session)?;
                let out = session.inbox.queue.iter().filter(|e| match e.receipt {
                    Receipt::Handed => matches!(e.channel.as_deref(), Some("hook" | "tmux")),
                    _ => may_be_there(e),
                });
                let out: Vec<MessageId> = out.map(|e| e.id).collect();
                let path = session.record.live_binding().and_then(|b| b.transcript.clone());
                Some((out, path?))
            })
            .await;
        let Ok(Some((out, path))) = found else { return };
        if out.is_empty() {
            self.memory().transcripts.remove(&session);
            return;
        }
        if self.memory().blind.contains(&session) {
            return; // the last look has not come back
        }
        let this = Arc::clone(self);
        let mut look = tokio::spawn(async move { this.look_through(session, path.into(), out).await });
        if timeout(PATIENCE, &mut look).await.is_err() {
            tracing::warn!(%session, "its transcript cannot be read: the disk does not answer");
            self.memory().blind.insert(session);
            let this = Arc::clone(self);
            tokio::spawn(async move {
                let _ = look.await;
                this.memory().blind.remove(&session);
            });
        }
    }

    async fn look_through(&self, session: SessionId, path: PathBuf, wanted: Vec<MessageId>) {
        // After a restart nothing is known of how far it was read: the end of it is looked through.
        let mut transcript = self
            .memory()
            .transcripts
            .remove(&session)
            .filter(|t| t.path == path)
            .unwrap_or(Transcript { path, offset: 0 });
        let looked = tokio::task::spawn_blocking(move || {
            let seen = transcript.look(&wanted);
            (transcript, seen)
        })
        .await;
        let Ok((transcript, ids)) = looked else { return };
        self.memory().transcripts.insert(session, transcript);
        if ids.is_empty() {
            return;
        }
        let result = self
            .store
            .write(move |txn| {
                for (id, pointer) in &ids {
                    evident(txn, session, *id, Evidence::Transcript, *pointer)?;
                }
                Ok(())
            })
            .await;
        if let Err(fault) = result {
            tracing::warn!(%session, %fault, "evidence could not be written yet");
        }
    }
}

/// Where a harness shows what its model was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// The prompt of the turn that runs now.
    Prompt,
    /// A line of the transcript: it may be of a turn that is over.
    Transcript,
}

/// True for what a receiver may have, whatever the ledger says of it: what was handed, and what a channel types or sends
/// into a harness. Such a message is held where nobody saw it taken; a key of the person's, or an answer that was lost on
/// its way, may have let it in all the same.
pub fn may_be_there(entry: &queue::Entry) -> bool {
    entry.receipt == Receipt::Handed
        || matches!(entry.channel.as_deref(), Some("tmux" | "codex" | "opencode"))
}

/// A harness showed that its model was given this id, or a pointer to its text.
pub fn evident(
    txn: &mut Txn<'_>,
    session: SessionId,
    id: MessageId,
    evidence: Evidence,
    pointer: bool,
) -> Result<(), Fault> {
    let party = Party::Session(session);
    let Some(entry) = txn.session(session)?.inbox.queue.get(id).cloned() else { return Ok(()) };
    let channel = entry.channel.clone().unwrap_or_else(|| "hook".to_owned());
    // Of what is held the ledger does not say how much of it was given.
    let pointer = match entry.receipt {
        Receipt::Handed => entry.reason.as_deref() == Some(POINTER),
        _ => pointer,
    };
    match entry.reason.as_deref() {
        Some(POINTER_SEEN) => return Ok(()),
        _ if pointer => {
            let reason = Some(POINTER_SEEN.to_owned());
            return txn.receipt(party, id, Receipt::Handed, reason, entry.attempt, Some(&channel));
        }
        _ => {}
    }
    let word = match evidence {
        Evidence::Prompt => "prompt",
        Evidence::Transcript => "transcript",
    };
    settle(txn, party, &entry, word, &channel)?;
    if evidence == Evidence::Transcript
        && let Some(end) = ended_since(&txn.session(session)?.record, &entry)
    {
        return answered_by(txn, party, &entry, end);
    }
    joins_turn(txn, party, &entry)
}

/// The end of the turn in which a message was given, where it is over by now.
fn ended_since(record: &SessionRecord, entry: &queue::Entry) -> Option<TurnEnd> {
    if record.turn.as_ref().is_some_and(|turn| turn.since <= entry.since) {
        return None;
    }
    record.last_end.filter(|end| end.at >= entry.since)
}

/// Who speaks, in a message of Codex's, where it is not the model.
const SPEAKERS: [&str; 2] = ["user", "developer"];

/// Kinds of line, of Claude Code's transcript, whose text reached the model. `hook_success` records that a hook ran
/// and `queue-operation` that the harness holds a text: neither is evidence.
const SEEN: [&str; 4] = ["user", "queued_command", "hook_additional_context", "hook_blocking_error"];

fn is_evidence(line: &Value) -> bool {
    // A command that printed the text stands in a `user` line too, as a tool's result.
    let parts = line.pointer("/message/content").and_then(Value::as_array);
    if parts.is_some_and(|p| p.iter().any(|p| p.get("type").and_then(Value::as_str) == Some("tool_result"))) {
        return false;
    }
    let word = |v: &Value, name: &str| v.get(name).and_then(Value::as_str).map(str::to_owned);
    // Codex: what a hook adds is a developer's message, what keeps a turn going a user's. What a tool printed is none.
    if word(line, "type").as_deref() == Some("response_item") {
        let Some(item) = line.get("payload") else { return false };
        let speaker = word(item, "role").is_some_and(|role| SPEAKERS.contains(&role.as_str()));
        return speaker && word(item, "type").as_deref() == Some("message");
    }
    let kind = |v: &Value| word(v, "type").is_some_and(|t| SEEN.contains(&t.as_str()));
    kind(line) || line.get("attachment").is_some_and(kind)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn codex(kind: &str, role: &str, text: &str) -> String {
        let content = format!("[{{\"type\":\"input_text\",\"text\":\"{text}\"}}]");
        format!(
            "{{\"type\":\"response_item\",\"payload\":{{\"type\":\"{kind}\",\"role\":\"{role}\",\"content\":{content}}}}}\n"
        )
    }

    #[test]
    fn only_what_the_model_saw_counts() {
        let id = MessageId::now();
        let other = MessageId::now();
        let text = format!("[minder] message {} from …", id.short());
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.jsonl");
        std::fs::write(&path, format!("{{\"type\":\"user\",\"message\":\"{text}\"}}\n")).unwrap();
        let mut transcript = Transcript::at_end(&path);
        let mut file = File::options().append(true).open(&path).unwrap();
        for (line, seen) in [
            (
                format!(
                    "{{\"type\":\"attachment\",\"attachment\":{{\"type\":\"hook_success\",\"stdout\":\"{text}\"}}}}\n"
                ),
                false,
            ),
            (
                format!(
                    "{{\"type\":\"queue-operation\",\"operation\":\"enqueue\",\"content\":\"{text}\"}}\n"
                ),
                false,
            ),
            (format!("{{\"type\":\"assistant\",\"message\":\"{text}\"}}\n"), false),
            (
                format!(
                    "{{\"type\":\"user\",\"message\":{{\"content\":[{{\"type\":\"tool_result\",\"content\":\"{text}\"}}]}}}}\n"
                ),
                false,
            ),
            (format!("not json {text}\n"), false),
            ("{\"type\":\"user\",\"message\":\"nothing of ours\"}\n".to_owned(), false),
            // Codex's.
            (codex("message", "developer", &text), true),
            (
                codex("message", "user", &format!("<hook_prompt hook_run_id=\\\"s\\\">{text}</hook_prompt>")),
                true,
            ),
            (codex("message", "assistant", &text), false),
            (codex("function_call_output", "", &text), false),
            (
                format!(
                    "{{\"type\":\"event_msg\",\"payload\":{{\"type\":\"item_completed\",\"item\":\"{text}\"}}}}\n"
                ),
                false,
            ),
            (
                format!(
                    "{{\"type\":\"attachment\",\"attachment\":{{\"type\":\"hook_additional_context\",\"content\":[\"{text}\"]}}}}\n"
                ),
                true,
            ),
        ] {
            file.write_all(line.as_bytes()).unwrap();
            assert_eq!(transcript.look(&[id, other]) == [(id, false)], seen, "{line}");
        }
        // A text that quotes another's envelope shows its own only.
        let quote = format!(
            "[minder] message {} (to its end line) from …\\n\\n{text}\\n[minder] end of {}",
            other.short(),
            other.short()
        );
        file.write_all(format!("{{\"type\":\"user\",\"message\":\"{quote}\"}}\n").as_bytes()).unwrap();
        assert_eq!(transcript.look(&[id, other]), [(other, false)]);
        // Half a line is not there yet.
        let whole = format!("{{\"type\":\"user\",\"message\":\"{text}\"}}\n");
        file.write_all(&whole.as_bytes()[..whole.len() - 5]).unwrap();
        assert!(transcript.look(&[id]).is_empty());
        file.write_all(&whole.as_bytes()[whole.len() - 5..]).unwrap();
        assert_eq!(transcript.look(&[id]), [(id, false)]);
        assert!(transcript.look(&[id]).is_empty(), "each line is looked at once");
        std::fs::remove_file(&path).unwrap();
        assert!(transcript.look(&[id]).is_empty());
        // What never ends, or never begins, is nobody's transcript.
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        for path in [path.as_path(), Path::new("/dev/zero"), dir.path()] {
            let mut other = Transcript { path: path.to_owned(), offset: 0 };
            assert!(other.look(&[id]).is_empty(), "{}", path.display());
        }
    }
}
