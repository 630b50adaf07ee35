//! The conversation behind the composer: submissions become turns, turns end, hooks are told, the transcript and the
//! status file follow. One thread does it in order; what it has to wait for, it is told when it is due.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::{Value, json};

use super::hooks::{Ran, Runner};
use super::look::Said;
use super::owner::{Event, News};
use super::status::Status;
use super::step::Talk;
use super::transcript::{Dialect, Transcript};
use crate::fake::run::children::Children;
use crate::fake::run::record::Record;

/// So many times a Stop hook may keep a turn going.
const STOP_BLOCKS: u32 = 8;

/// What the conversation is asked.
pub enum Job {
    /// The program is up.
    Begin(Sender<Result<()>>),
    Submit(String),
    Step(Talk, Option<Sender<Result<()>>>),
    /// What the screen waits for, in the status file's words.
    Waits(Option<&'static str>),
    /// A hook that ran beside it has ended.
    Woken(String, Ran),
    Exit(i32),
}

/// What happens at a time.
enum Due {
    Begin(String),
    /// A text gets into the transcript, and with it what hooks had to say.
    Write {
        prompt: String,
        text: String,
    },
    TurnEnds,
    Compacted,
}

struct Turn {
    answer: String,
    /// A hook kept it going.
    active: bool,
    blocks: u32,
    /// The model has done something in it.
    touched: bool,
    text: String,
}

struct Conversation {
    record: Record,
    news: Sender<Event>,
    jobs: Sender<Job>,
    hooks: Runner,
    folder: String,
    id: String,
    source: &'static str,
    transcript: Transcript,
    status: Status,
    waits: Option<&'static str>,
    begun: bool,
    started: bool,
    ids: u64,
    prompts: u64,
    tools: u64,
    turn: Option<Turn>,
    /// Whether a new id comes of it.
    compacting: Option<bool>,
    queue: VecDeque<String>,
    /// What woke it while a dialog was open.
    woken: Vec<String>,
    due: Vec<(Instant, Due)>,
    delay: Duration,
    lasts: Option<Duration>,
    answer: String,
    takes: bool,
    late: Duration,
}

/// Starts it. Nothing happens before it begins.
pub fn start(record: Record, children: Arc<Children>, news: Sender<Event>) -> Sender<Job> {
    let (jobs, coming) = channel();
    let folder = std::env::current_dir().unwrap_or_default().display().to_string();
    let named = |flag: &str| {
        let arguments: Vec<String> = std::env::args().collect();
        arguments.windows(2).find(|pair| pair[0] == flag).map(|pair| pair[1].clone())
    };
    let resumed = named("--resume");
    let source = if resumed.is_some() { "resume" } else { "startup" };
    let id = resumed.or_else(|| named("--session-id")).unwrap_or_else(|| number(0x4000, 1));
    let conversation = Conversation {
        hooks: Runner::new(record.clone(), children),
        transcript: Transcript::of(Dialect::Claude, &folder, &id),
        status: Status::new(&Dialect::Claude.home(), &folder),
        record,
        news,
        jobs: jobs.clone(),
        folder,
        id,
        source,
        waits: None,
        begun: false,
        started: false,
        ids: 1,
        prompts: 0,
        tools: 0,
        turn: None,
        compacting: None,
        queue: VecDeque::new(),
        woken: Vec::new(),
        due: Vec::new(),
        delay: Duration::ZERO,
        lasts: Some(Duration::ZERO),
        answer: "done".to_owned(),
        takes: true,
        late: Duration::ZERO,
    };
    std::thread::spawn(move || conversation.run(&coming));
    jobs
}

/// An id that no other process has, and no other thing of this one.
fn number(kind: u16, count: u64) -> String {
    format!("{:08x}-0000-{kind:04x}-8000-{count:012}", std::process::id())
}

impl Conversation {
    fn run(mut self, coming: &Receiver<Job>) {
        loop {
            let next = self.due.iter().map(|(at, _)| *at).min();
            let job = match next {
                Some(at) => coming.recv_timeout(at.saturating_duration_since(Instant::now())),
                None => coming.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match job {
                Ok(job) => self.take(job),
                Err(RecvTimeoutError::Timeout) => self.what_is_due(),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn what_is_due(&mut self) {
        let now = Instant::now();
        while let Some(n) = self.due.iter().position(|(at, _)| *at <= now) {
            match self.due.remove(n).1 {
                Due::Begin(text) => self.begin_turn(&text, false),
                Due::Write { prompt, text } => self.transcript.user(&prompt, &text),
                Due::TurnEnds => self.end_turn(None),
                Due::Compacted => self.compacted(),
            }
        }
    }

    fn take(&mut self, job: Job) {
        match job {
            Job::Begin(done) => {
                if !std::mem::replace(&mut self.begun, true) {
                    self.record.note("conversation", json!({ "id": self.id }));
                    // Codex's begins with its first prompt.
                    if !self.is_codex() {
                        self.start(self.source);
                    }
                }
                let _ = done.send(Ok(()));
            }
            Job::Submit(text) => self.submit(text),
            Job::Step(talk, done) => {
                self.step(talk);
                done.map(|done| done.send(Ok(())));
            }
            Job::Waits(what) => {
                self.waits = what;
                self.say_status();
                if what.is_none() {
                    for text in std::mem::take(&mut self.woken) {
                        self.join(text);
                    }
                }
            }
            Job::Woken(event, ran) => self.wake(&event, &ran),
            Job::Exit(code) => {
                self.status.remove();
                self.tell(News::Exit(code));
            }
        }
    }

    fn step(&mut self, talk: Talk) {
        match talk {
            Talk::Dialect(dialect) => {
                self.hooks.dialect = dialect;
                self.status.on = dialect == Dialect::Claude;
                self.rename(self.id.clone());
            }
            Talk::Id(id) => self.rename(id),
            Talk::Delay(time) => self.delay = time,
            Talk::Turn(lasts, answer) => (self.lasts, self.answer) = (lasts, answer),
            Talk::Takes(takes) => self.takes = takes,
            Talk::Late(time) => self.late = time,
            Talk::Transcript(on) => self.transcript.on = on,
            Talk::Status(on) => self.status.on = on,
            Talk::Hooks(how) => self.hooks.how = how,
            Talk::Hook(event, fields) => drop(self.hook(&event, fields)),
            Talk::Start(text) => self.start_turn(&text, false),
            Talk::Tool { name, input, agent } => self.tool(&name, &input, agent),
            Talk::Answer(text) => self.end_turn(Some(text)),
            Talk::Escape => self.escape(),
            Talk::Clear => {
                self.hook("SessionEnd", json!({ "reason": "clear" }));
                let id = self.another_id();
                self.rename(id);
                self.tell(News::Cleared);
                self.hook("SessionStart", json!({ "source": "clear" }));
                self.say_status();
            }
            Talk::Compact(time, new) => {
                self.compacting = Some(new);
                self.hook("PreCompact", json!({ "trigger": "manual", "custom_instructions": "" }));
                self.due.extend(time.map(|time| (Instant::now() + time, Due::Compacted)));
            }
            Talk::Compacted => self.compacted(),
            Talk::Resume(id) => {
                self.hook("SessionEnd", json!({ "reason": "other" }));
                self.rename(id);
                self.tell(News::Cleared);
                self.start("resume");
            }
            Talk::End(reason) => {
                self.hook("SessionEnd", json!({ "reason": reason }));
                self.status.remove();
            }
        }
    }

    fn tell(&self, news: News) {
        // The screen's thread ends with the program.
        let _ = self.news.send(Event::News(news));
    }

    fn rename(&mut self, id: String) {
        let on = self.transcript.on;
        self.transcript = Transcript::of(self.hooks.dialect, &self.folder, &id);
        self.transcript.on = on;
        self.record.note("conversation", json!({ "id": id }));
        self.id = id;
    }

    fn another_id(&mut self) -> String {
        self.ids += 1;
        number(0x4000, self.ids)
    }

    fn is_codex(&self) -> bool {
        self.hooks.dialect == Dialect::Codex
    }

    fn start(&mut self, source: &str) {
        self.started = true;
        self.say_status();
        for ran in self.hook("SessionStart", json!({ "source": source, "model": "claude-opus-5-5" })) {
            self.give(&ran, "SessionStart");
        }
    }

    fn say_status(&mut self) {
        if !self.begun {
            return;
        }
        let busy = self.turn.is_some() || self.compacting.is_some();
        let status = match self.waits {
            Some(_) => "waiting",
            None if busy => "busy",
            None => "idle",
        };
        self.status.say(&self.id, status, self.waits);
    }

    fn prompt_id(&self) -> String {
        number(0x5000, self.prompts)
    }

    /// Runs the hooks of an event of this conversation.
    fn hook(&mut self, event: &str, fields: Value) -> Vec<Ran> {
        let mut payload = json!({ "session_id": self.id, "transcript_path": self.transcript.path, "cwd": self.folder,
            "hook_event_name": event });
        let of_turn = self.prompts > 0 && event != "SessionStart";
        if self.is_codex() {
            payload["model"] = "sim-1".into();
            payload["permission_mode"] = "default".into();
            if of_turn {
                payload["turn_id"] = self.prompt_id().into();
            }
        } else {
            if of_turn {
                payload["prompt_id"] = self.prompt_id().into();
            }
            let mode = [
                "UserPromptSubmit",
                "PreToolUse",
                "PostToolUse",
                "PermissionRequest",
                "Stop",
                "SubagentStop",
            ];
            if mode.contains(&event) {
                payload["permission_mode"] = "default".into();
            }
            if mode[1..].contains(&event) {
                payload["effort"] = json!({ "level": "medium" });
            }
        }
        for (name, value) in fields.as_object().into_iter().flatten() {
            payload[name] = value.clone();
        }
        let (jobs, event) = (self.jobs.clone(), event.to_owned());
        // One whose conversation ended has nobody to wake.
        self.hooks.run(&payload, &move |ran| drop(jobs.send(Job::Woken(event.clone(), ran))))
    }

    /// What a hook printed for the model gets to it.
    fn give(&mut self, ran: &Ran, event: &str) {
        if let Some(text) = ran.context(event) {
            self.transcript.context(event, &text);
        }
    }

    fn submit(&mut self, text: String) {
        let begins = self.due.iter().any(|(_, due)| matches!(due, Due::Begin(_)));
        if self.turn.is_some() || self.compacting.is_some() || begins {
            return self.join(text);
        }
        if self.delay.is_zero() {
            self.begin_turn(&text, false);
        } else {
            self.due.push((Instant::now() + self.delay, Due::Begin(text)));
        }
    }

    /// A text for the turn that runs, or for one of its own.
    fn join(&mut self, text: String) {
        if self.turn.is_none() && self.compacting.is_none() {
            return self.begin_turn(&text, false);
        }
        self.transcript.queue("enqueue", Some(&text));
        self.queue.push_back(text.clone());
        self.tell_queue();
        if self.turn.is_some() && self.compacting.is_none() {
            // Told when it is queued, and not again when it is given.
            self.hook("UserPromptSubmit", json!({ "prompt": text }));
        }
    }

    fn tell_queue(&self) {
        self.tell(News::Queued(self.queue.iter().cloned().collect()));
    }

    fn wake(&mut self, event: &str, ran: &Ran) {
        // In Codex nobody is woken so.
        if ran.code != Some(2) || self.is_codex() {
            return;
        }
        let (command, text) = (&ran.command, &ran.stderr);
        let text = format!(
            "<task-notification>\n<summary>{event} hook feedback</summary>\n</task-notification>\n<system-reminder>\n\
             {event} hook blocking error from command \"{command}\": {text}\n\n</system-reminder>"
        );
        if self.waits.is_some() {
            self.woken.push(text);
        } else if self.turn.is_some() || self.compacting.is_some() {
            self.join(text);
        } else {
            self.start_turn(&text, true);
        }
    }

    /// A turn that begins with a prompt.
    fn begin_turn(&mut self, text: &str, was_queued: bool) {
        self.prompts += 1;
        if !self.started {
            self.start(self.source);
        }
        if !self.takes {
            self.record.note("turn-begins", json!({ "prompt": self.prompt_id(), "text": null }));
            return self.go_on(text);
        }
        let ran =
            if was_queued { Vec::new() } else { self.hook("UserPromptSubmit", json!({ "prompt": text })) };
        if let Some(reason) = ran.iter().find_map(Ran::blocks) {
            self.record.note("refused", json!({ "text": text, "reason": reason }));
            return self.tell(News::PutBack(text.to_owned()));
        }
        self.record.note("turn-begins", json!({ "prompt": self.prompt_id(), "text": text }));
        let prompt = self.prompt_id();
        if self.late.is_zero() {
            self.transcript.user(&prompt, text);
        } else {
            self.due.push((Instant::now() + self.late, Due::Write { prompt, text: text.to_owned() }));
        }
        for ran in ran {
            self.give(&ran, "UserPromptSubmit");
        }
        self.tell(News::Said(Said::User(text.to_owned())));
        self.go_on(text);
    }

    /// A turn that nobody submitted.
    fn start_turn(&mut self, text: &str, active: bool) {
        self.begin_turn(text, false);
        if let Some(turn) = &mut self.turn {
            turn.active = active;
        }
    }

    fn go_on(&mut self, text: &str) {
        let answer = self.answer.clone();
        self.turn = Some(Turn { answer, active: false, blocks: 0, touched: false, text: text.to_owned() });
        self.say_status();
        self.tell(News::Busy(true));
        self.plan_end();
    }

    fn plan_end(&mut self) {
        self.due.extend(self.lasts.map(|lasts| (Instant::now() + lasts, Due::TurnEnds)));
    }

    fn end_turn(&mut self, answer: Option<String>) {
        let Some(turn) = &mut self.turn else { return };
        turn.answer = answer.unwrap_or_else(|| turn.answer.clone());
        let (text, active, blocks) = (turn.answer.clone(), turn.active, turn.blocks);
        self.due.retain(|(_, due)| !matches!(due, Due::TurnEnds));
        self.transcript.agent(&text);
        self.tell(News::Said(Said::Agent(text.clone())));
        let fields = json!({ "stop_hook_active": active, "last_assistant_message": text, "background_tasks": [],
            "session_crons": [] });
        let ran = self.hook("Stop", fields);
        let blocked: Vec<(String, String)> =
            ran.iter().filter_map(|ran| Some((ran.command.clone(), ran.blocks()?))).collect();
        if !blocked.is_empty() && blocks < STOP_BLOCKS {
            for (command, reason) in blocked {
                self.transcript.blocked(&command, &reason);
            }
            if let Some(turn) = &mut self.turn {
                (turn.active, turn.blocks, turn.touched) = (true, blocks + 1, true);
            }
            return self.plan_end();
        }
        self.over("answer");
    }

    fn over(&mut self, how: &str) {
        self.turn = None;
        self.record.note("turn-ends", json!({ "prompt": self.prompt_id(), "how": how }));
        self.next(true);
    }

    /// What waits is the next turn; hooks may have been told of it before.
    fn next(&mut self, told: bool) {
        if let Some(next) = self.queue.pop_front() {
            self.transcript.queue("dequeue", None);
            self.tell_queue();
            return self.begin_turn(&next, told);
        }
        self.say_status();
        self.tell(News::Busy(false));
    }

    fn escape(&mut self) {
        let Some(turn) = self.turn.take() else { return };
        self.due.retain(|(_, due)| !matches!(due, Due::TurnEnds));
        let prompt = self.prompt_id();
        self.transcript.interrupted(&prompt);
        if self.is_codex() {
            self.hook("Interrupt", json!({}));
        }
        self.tell(News::Said(Said::Interrupted));
        // What nothing was made of comes back to whoever wrote it.
        if !turn.touched && self.queue.is_empty() {
            self.tell(News::PutBack(turn.text));
        }
        self.over("escape");
    }

    fn tool(&mut self, name: &str, input: &Value, agent: bool) {
        self.tools += 1;
        let id = format!("toolu_{:020}", self.tools);
        let mut fields = json!({ "tool_name": name, "tool_input": input, "tool_use_id": id });
        if agent {
            fields["agent_id"] = "task01".into();
            fields["agent_type"] = "general-purpose".into();
            self.hook("SubagentStart", json!({ "agent_id": "task01", "agent_type": "general-purpose" }));
        } else {
            self.transcript.tool(&id, name, input);
        }
        self.hook("PreToolUse", fields.clone());
        if self.is_codex() {
            fields["tool_response"] = "".into();
        } else {
            fields["tool_response"] = json!({ "stdout": "", "stderr": "", "interrupted": false, "isImage": false,
                "noOutputExpected": false });
            fields["duration_ms"] = 7.into();
        }
        let ran = self.hook("PostToolUse", fields);
        if agent {
            let fields = json!({ "agent_id": "task01", "agent_type": "general-purpose", "stop_hook_active": false,
                "last_assistant_message": "sub-done", "background_tasks": [], "session_crons": [] });
            drop(self.hook("SubagentStop", fields));
            return;
        }
        let prompt = self.prompt_id();
        self.transcript.tool_result(&prompt, &id, "");
        for ran in ran {
            self.give(&ran, "PostToolUse");
        }
        while let Some(text) = self.queue.pop_front() {
            self.transcript.joined(&text);
            self.tell(News::Said(Said::User(text)));
        }
        self.tell_queue();
        if let Some(turn) = &mut self.turn {
            turn.touched = true;
        }
    }

    fn compacted(&mut self) {
        let Some(new) = self.compacting else { return };
        if new {
            let id = self.another_id();
            self.rename(id);
        }
        for ran in self.hook("SessionStart", json!({ "source": "compact", "model": "claude-opus-5-5" })) {
            self.give(&ran, "SessionStart");
        }
        self.hook("PostCompact", json!({ "trigger": "manual", "compact_summary": "a short summary" }));
        self.compacting = None;
        if self.turn.is_none() {
            self.next(false);
        }
    }
}
