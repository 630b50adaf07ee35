//! The server's conversations: turns that begin and end, texts that join them, tools.

use std::process::{Command, Stdio};
use std::sync::Arc;

use anyhow::{Context, Result};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::Server;
use super::requests::shown_turn;
use super::step::{Steers, Turns};
use crate::fake::run::gates::Gates;

/// One conversation.
#[derive(Debug)]
pub struct Thread {
    folder: String,
    forked_from: Option<String>,
    turn: Option<Turn>,
    /// Those that are over, as clients are told of them.
    turns: Vec<Value>,
    waits: bool,
}

#[derive(Debug)]
struct Turn {
    id: String,
    answer: String,
    items: Vec<Value>,
    /// Accepted, and not taken yet.
    pending: Vec<Text>,
}

/// What a client wants said.
#[derive(Clone, Debug)]
pub struct Text {
    content: Value,
    client: Value,
}

impl Text {
    pub fn of(params: &Value) -> Self {
        Self { content: params["input"].clone(), client: params["clientUserMessageId"].clone() }
    }
}

fn now_ms() -> i64 {
    Timestamp::now().as_millisecond()
}

impl Server {
    /// An id in a form that Codex's have: in order, and none twice among all processes.
    pub(super) fn number(&self, kind: &str) -> String {
        let mut state = self.state();
        state.numbers += 1;
        format!("{:08x}-0000-7000-{kind}-{:012}", std::process::id(), state.numbers)
    }

    /// A conversation more; as it is shown.
    pub(super) fn add_thread(&self, id: &str, folder: Option<String>, forked_from: Option<String>) -> Value {
        let here = || std::env::current_dir().unwrap_or_default().display().to_string();
        let mut state = self.state();
        state.first.get_or_insert_with(|| id.to_owned());
        let of = forked_from.as_ref().and_then(|from| state.threads.get(from));
        let folder = folder.or_else(|| of.map(|thread| thread.folder.clone())).unwrap_or_else(here);
        let thread = Thread { folder, forked_from, turn: None, turns: Vec::new(), waits: false };
        state.threads.insert(id.to_owned(), thread);
        drop(state);
        self.record.note("thread", json!({ "thread": id }));
        self.shown(id, false).unwrap_or_default()
    }

    pub(super) fn fork(&self, from: &str, to: &str) -> Result<()> {
        self.state().threads.get(from).with_context(|| format!("no such thread: {from}"))?;
        let shown = self.add_thread(to, None, Some(from.to_owned()));
        self.tell("thread/started", &json!({ "thread": shown }));
        Ok(())
    }

    pub(super) fn loaded(&self) -> Vec<String> {
        self.state().threads.keys().cloned().collect()
    }

    /// The id of the turn that runs.
    pub(super) fn active(&self, thread: &str) -> Option<String> {
        Some(self.state().threads.get(thread)?.turn.as_ref()?.id.clone())
    }

    /// A conversation as clients are told of it.
    pub(super) fn shown(&self, id: &str, with_turns: bool) -> Option<Value> {
        let state = self.state();
        let thread = state.threads.get(id)?;
        let mut turns: Vec<Value> = if with_turns { thread.turns.clone() } else { Vec::new() };
        if let Some(turn) = thread.turn.as_ref().filter(|_| with_turns) {
            turns.push(shown_turn(&turn.id, "inProgress", Some(&turn.items)));
        }
        Some(json!({ "id": id, "sessionId": id, "forkedFromId": thread.forked_from, "cwd": thread.folder,
            "status": status(thread), "ephemeral": false, "cliVersion": "0.171.0", "source": "cli",
            "canAcceptDirectInput": true, "turns": turns }))
    }

    /// So many of a conversation's turns as are asked for, the newest first, without what was said in them.
    pub(super) fn turns_of(&self, id: &str, asked: &Value) -> Vec<Value> {
        let mut turns = self.all_turns(id);
        for turn in &mut turns {
            turn["items"] = json!([]);
        }
        turns.reverse();
        turns.truncate(limit(asked));
        turns
    }

    /// So much of what was said in a conversation as is asked for.
    pub(super) fn items_of(&self, id: &str, asked: &Value) -> Vec<Value> {
        let of = |turn: &Value| {
            let items = turn["items"].as_array().cloned().unwrap_or_default();
            items.into_iter().map(|item| json!({ "turnId": turn["id"], "item": item })).collect::<Vec<_>>()
        };
        let mut items: Vec<Value> = self.all_turns(id).iter().flat_map(of).collect();
        if asked["sortDirection"] == "desc" {
            items.reverse();
        }
        items.truncate(limit(asked));
        items
    }

    /// The oldest first, the one that runs included.
    fn all_turns(&self, id: &str) -> Vec<Value> {
        let shown = self.shown(id, true).unwrap_or_default();
        shown["turns"].as_array().cloned().unwrap_or_default()
    }

    fn tell_status(&self, id: &str) {
        let status = self.state().threads.get(id).map(status);
        self.tell("thread/status/changed", &json!({ "threadId": id, "status": status }));
    }

    pub(super) fn begin_turn(self: &Arc<Self>, id: &str, turn: &str, text: Text) {
        let turns = self.state().turns.clone();
        let answer = match &turns {
            Turns::Lasts(_, answer) => answer.clone(),
            Turns::Dies => String::new(),
        };
        if let Some(thread) = self.state().threads.get_mut(id) {
            thread.turn = Some(Turn { id: turn.to_owned(), answer, items: Vec::new(), pending: Vec::new() });
        }
        self.record.note("turn-begins", json!({ "thread": id, "turn": turn, "client": text.client }));
        self.tell_status(id);
        self.tell("turn/started", &json!({ "threadId": id, "turn": shown_turn(turn, "inProgress", None) }));
        match turns {
            Turns::Dies => drop(self.end_turn(id, "failed", None)),
            Turns::Lasts(lasts, _) => {
                self.take(id, text);
                let (server, id, turn) = (Arc::clone(self), id.to_owned(), turn.to_owned());
                let end = lasts.map(|lasts| {
                    move || {
                        Gates::default().pass(lasts);
                        // It may have ended otherwise, and another have begun.
                        if server.active(&id) == Some(turn) {
                            let _ = server.end_turn(&id, "completed", None);
                        }
                    }
                });
                end.map(std::thread::spawn);
            }
        }
    }

    /// A text for the turn that runs.
    pub(super) fn steer(&self, id: &str, text: Text, how: Steers) {
        self.record
            .note("steered", json!({ "thread": id, "client": text.client, "lost": how == Steers::Lost }));
        let mut state = self.state();
        let turn = state.threads.get_mut(id).and_then(|thread| thread.turn.as_mut());
        if let Some(turn) = turn.filter(|_| how != Steers::Lost) {
            turn.pending.push(text);
        }
    }

    /// The model is given a text.
    fn take(&self, id: &str, text: Text) {
        self.record.note("taken", json!({ "thread": id, "client": text.client, "content": text.content }));
        let item = json!({ "type": "userMessage", "id": self.number("0001"), "clientId": text.client,
            "content": text.content });
        self.item(id, &item);
    }

    fn item(&self, id: &str, item: &Value) {
        let mut state = self.state();
        let Some(turn) = state.threads.get_mut(id).and_then(|thread| thread.turn.as_mut()) else { return };
        turn.items.push(item.clone());
        let turn = turn.id.clone();
        drop(state);
        let now = now_ms();
        self.tell(
            "item/started",
            &json!({ "item": item, "threadId": id, "turnId": turn, "startedAtMs": now }),
        );
        self.tell(
            "item/completed",
            &json!({ "item": item, "threadId": id, "turnId": turn, "completedAtMs": now }),
        );
    }

    fn take_pending(&self, id: &str) {
        let pending = self
            .state()
            .threads
            .get_mut(id)
            .and_then(|thread| Some(std::mem::take(&mut thread.turn.as_mut()?.pending)));
        for text in pending.unwrap_or_default() {
            self.take(id, text);
        }
    }

    /// The turn that runs is over.
    pub(super) fn end_turn(&self, id: &str, status: &str, answer: Option<&String>) -> Result<()> {
        self.active(id).context("no turn runs there")?;
        if status == "completed" {
            self.take_pending(id);
            let own =
                self.state().threads.get(id).and_then(|thread| Some(thread.turn.as_ref()?.answer.clone()));
            let text = answer.cloned().or(own).unwrap_or_default();
            self.item(id, &json!({ "type": "agentMessage", "id": self.number("0002"), "text": text }));
        }
        let mut state = self.state();
        let thread = state.threads.get_mut(id).context("it was there")?;
        let turn = thread.turn.take().context("another end came first")?;
        let shown = shown_turn(&turn.id, status, Some(&turn.items));
        thread.turns.push(shown.clone());
        thread.waits = false;
        drop(state);
        self.record.note(
            "turn-ends",
            json!({ "thread": id, "turn": turn.id, "how": status,
            "untaken": turn.pending.len() }),
        );
        self.tell_status(id);
        self.tell("turn/completed", &json!({ "threadId": id, "turn": shown }));
        Ok(())
    }

    /// A tool call of a conversation: a command that is told whose it is, or whose the first one was.
    pub(super) fn tool(&self, id: &str, command: &str) -> Result<()> {
        let state = self.state();
        let thread = state.threads.get(id).with_context(|| format!("no such thread: {id}"))?;
        let told = state.first.clone().filter(|_| state.leak).unwrap_or_else(|| id.to_owned());
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", command]).current_dir(&thread.folder).env("CODEX_THREAD_ID", &told);
        drop(state);
        let child = shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        self.record.note("tool", json!({ "thread": id, "told": told, "child": child.id() }));
        self.item(
            id,
            &json!({ "type": "commandExecution", "id": self.number("0004"), "command": command,
            "status": "completed" }),
        );
        self.take_pending(id);
        Ok(())
    }

    pub(super) fn approval(&self, id: &str, waits: bool) -> Result<()> {
        let turn = self.active(id).context("no turn runs there")?;
        self.state().threads.get_mut(id).context("it was there")?.waits = waits;
        self.tell_status(id);
        if waits {
            let number = self.number("0005");
            let params = json!({ "threadId": id, "turnId": turn, "itemId": number, "command": "touch made" });
            let links = self.state().links.clone();
            for link in links {
                link.send(&json!({ "id": number, "method": "item/commandExecution/requestApproval", "params": params }));
            }
        }
        Ok(())
    }
}

fn limit(asked: &Value) -> usize {
    asked["limit"].as_u64().and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX)
}

fn status(thread: &Thread) -> Value {
    match &thread.turn {
        None => json!({ "type": "idle" }),
        Some(_) if thread.waits => json!({ "type": "active", "activeFlags": ["waitingOnApproval"] }),
        Some(_) => json!({ "type": "active", "activeFlags": [] }),
    }
}
