//! The thread that owns the screen: it takes keys, steps and news of the conversation, and draws what came of them.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::json;

use super::composer::Composer;
use super::conversation::Job;
use super::habits::{Enter, Habits};
use super::keys::{Decoder, Key};
use super::look::{self, Busy, Dialog, Look, Said, Screen, View};
use super::step::{Habit, Step, Talk};
use super::terminal;
use crate::fake::run::record::{Record, escape};

/// The question to a terminal whether it is there; it answers when all before it is on its screen.
const ASK: &[u8] = b"\x1b[5n";
/// How long a spinner stands still.
const TICK: Duration = Duration::from_millis(150);
/// How much of the composer a frame's line in the record has, in characters.
const SHOWN: usize = 200;
/// Lines of the conversation that are kept.
const KEPT: usize = 200;

/// All by which a look is known, as words of somebody.
const MARKERS: &str = "\u{276f} 1. Yes\n\u{276f}\u{a0}\nDo you want to proceed?\nEsc to cancel \u{b7} Tab to amend\n\
    Enter to select \u{b7} \u{2191}/\u{2193} to navigate \u{b7} Esc to cancel\nAccessing workspace:\n\
    Yes, I trust this folder\nesc to interrupt\n\u{273b} Spelunking\u{2026}\n[Pasted text #1 +20 lines]\n\
    manual mode on \u{b7} ? for shortcuts\n\u{2500}\u{2500}\u{2500}\u{2500}\u{2500}\u{2500}\u{2500}\u{2500}\n\
    \u{203a} Ask Codex to do anything\n\u{203a} 1. Yes, proceed (y)\n\
    Would you like to run the following command?\nPress enter to confirm or esc to cancel\n\
    Trust this folder?\n[Pasted Content 1492 chars]\nYou've hit your session limit \u{b7} resets 3:10am\n\
    -- NORMAL --";

/// What the owner is told.
pub enum Event {
    Input(Vec<u8>),
    Step(Step, Sender<Result<()>>),
    News(News),
}

/// What the conversation has to say to the screen.
pub enum News {
    Said(Said),
    Busy(bool),
    Queued(Vec<String>),
    /// A prompt comes back into the composer.
    PutBack(String),
    /// A new conversation: nothing was said in it.
    Cleared,
    /// The program ends.
    Exit(i32),
}

struct Owner {
    record: Record,
    events: Sender<Event>,
    jobs: Sender<Job>,
    taken: bool,
    decoder: Decoder,
    composer: Composer,
    habits: Habits,
    look: Look,
    screen: Screen,
    /// Since when.
    screen_since: Instant,
    folder: String,
    said: Vec<Said>,
    queued: Vec<String>,
    busy_since: Option<Instant>,
    spinner: Vec<char>,
    title: Option<Vec<u8>>,
    when_text: Vec<Step>,
    text_at: Option<Instant>,
    interrupts: u32,
    frames: u64,
    /// Frames to which the terminal has not answered yet.
    unconfirmed: VecDeque<u64>,
}

/// Starts it.
pub fn start(record: Record, events: Sender<Event>, coming: Receiver<Event>, jobs: Sender<Job>) {
    let folder = std::env::current_dir().unwrap_or_default().display().to_string();
    let owner = Owner {
        record,
        events,
        jobs,
        taken: false,
        decoder: Decoder::default(),
        composer: Composer::default(),
        habits: Habits::default(),
        look: Look::default(),
        screen: Screen::Composer,
        screen_since: Instant::now(),
        folder,
        said: Vec::new(),
        queued: Vec::new(),
        busy_since: None,
        spinner: Look::default().spinner().chars().collect(),
        title: None,
        when_text: Vec::new(),
        text_at: None,
        interrupts: 0,
        frames: 0,
        unconfirmed: VecDeque::new(),
    };
    std::thread::spawn(move || owner.run(&coming));
}

impl Owner {
    fn run(mut self, coming: &Receiver<Event>) {
        loop {
            let turning = self.taken && self.busy_since.is_some() && self.spinner.len() > 1;
            let event = if turning {
                coming.recv_timeout(TICK)
            } else {
                coming.recv().map_err(|_| RecvTimeoutError::Disconnected)
            };
            let mut answers = Vec::new();
            match event {
                Ok(event) => answers.extend(self.take(event)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            // All that is there by now is one frame.
            while let Ok(event) = coming.try_recv() {
                answers.extend(self.take(event));
            }
            self.draw();
            for (answer, result) in answers {
                // Whoever asked may have ended.
                let _ = answer.send(result);
            }
        }
    }

    fn take(&mut self, event: Event) -> Option<(Sender<Result<()>>, Result<()>)> {
        match event {
            Event::Input(bytes) => self.input(&bytes),
            Event::News(news) => self.hear(news),
            Event::Step(step, answer) => return Some((answer, self.step(step))),
        }
        None
    }

    fn step(&mut self, step: Step) -> Result<()> {
        match step {
            Step::Terminal => self.take_terminal()?,
            Step::Look(look) => {
                self.look = look;
                self.habits.of(look);
                self.spinner = look.spinner().chars().collect();
            }
            Step::Screen(screen) => self.show(screen),
            Step::Draft(text) => self.composer.set(&text),
            Step::Busy(on) => self.busy_since = on.then(Instant::now),
            Step::Spinner(glyphs) => self.spinner = glyphs.chars().collect(),
            Step::Say(text) => self.say(Said::Text(text)),
            Step::Quotes => self.say(Said::Text(MARKERS.to_owned())),
            Step::Window(title) => self.title = Some(title),
            Step::WhenText(steps) => self.when_text = steps,
            Step::Talk(talk) => self.job(Job::Step(talk, None)),
            Step::Habit(habit) => {
                self.habits.set(&habit, Instant::now());
                match habit {
                    Habit::Brackets(on) if self.taken => self.brackets(on),
                    Habit::Lines(on) if self.taken => self.lines(on)?,
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn take_terminal(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.taken, true) {
            return Ok(());
        }
        terminal::raw()?;
        let (rows, columns) = terminal::size();
        self.record.note("terminal", json!({ "rows": rows, "columns": columns }));
        if self.habits.lines {
            self.lines(true)?;
        } else {
            terminal::write(b"\x1b[?1049h");
            self.brackets(self.habits.brackets);
        }
        self.habits.begin(Instant::now());
        let events = self.events.clone();
        let record = self.record.clone();
        std::thread::spawn(move || {
            while let Some(bytes) = terminal::read() {
                record.note("input", json!({ "bytes": escape(&bytes) }));
                if events.send(Event::Input(bytes)).is_err() {
                    return;
                }
            }
            record.note("input-ends", json!({}));
        });
        Ok(())
    }

    fn brackets(&self, on: bool) {
        terminal::write(if on { b"\x1b[?2004h" } else { b"\x1b[?2004l" });
        self.record.note("mode", json!({ "mode": "bracketed-paste", "on": on }));
    }

    fn lines(&self, on: bool) -> Result<()> {
        if on {
            terminal::write(b"\x1b[?2004l\x1b[?1049l> ");
            terminal::lines()?;
        } else {
            terminal::raw()?;
            terminal::write(b"\x1b[?1049h");
        }
        self.record.note("mode", json!({ "mode": "lines", "on": on }));
        Ok(())
    }

    /// Another screen, and what the status file says of it.
    fn show(&mut self, screen: Screen) {
        let waits = match &screen {
            Screen::Dialog(dialog) if dialog.question => Some("input needed"),
            Screen::Dialog(_) => Some("permission prompt"),
            Screen::Panel | Screen::Limit(_) => Some("dialog open"),
            Screen::Composer | Screen::Trust { .. } | Screen::Unknown => None,
        };
        self.record.note("screen", json!({ "shows": screen.name() }));
        self.screen = screen;
        self.screen_since = Instant::now();
        self.job(Job::Waits(waits));
    }

    fn say(&mut self, said: Said) {
        self.said.push(said);
        if self.said.len() > KEPT {
            self.said.drain(..self.said.len() - KEPT);
        }
    }

    fn hear(&mut self, news: News) {
        match news {
            News::Said(said) => self.say(said),
            News::Busy(on) => {
                if on != self.busy_since.is_some() {
                    self.busy_since = on.then(Instant::now);
                }
            }
            News::Queued(texts) => self.queued = texts,
            News::PutBack(text) => {
                let draft = self.composer.text();
                self.composer.set(&text);
                self.composer.insert(&draft);
            }
            News::Cleared => self.said.clear(),
            News::Exit(code) => {
                terminal::leave();
                self.record.note("exits", json!({ "code": code }));
                std::process::exit(code)
            }
        }
    }

    fn job(&self, job: Job) {
        // Its thread ends with the program.
        let _ = self.jobs.send(job);
    }

    fn input(&mut self, bytes: &[u8]) {
        let now = Instant::now();
        if self.habits.lines {
            for line in String::from_utf8_lossy(bytes).lines().filter(|line| !line.is_empty()) {
                self.submit(line.to_owned(), now);
            }
            terminal::write(b"> ");
            return;
        }
        if self.habits.swallows(now) {
            self.record.note("swallowed", json!({ "by": "not-ready", "bytes": bytes.len() }));
            return;
        }
        for key in self.decoder.feed(bytes, self.habits.brackets) {
            if key == Key::Answer {
                // What came in before this was sent before the terminal had that frame.
                if let Some(number) = self.unconfirmed.pop_front() {
                    self.record.note("shown", json!({ "number": number }));
                }
                continue;
            }
            if key != Key::Control('c') {
                self.interrupts = 0;
            }
            match &self.screen {
                Screen::Composer => self.composer_key(key, now),
                Screen::Dialog(dialog) => {
                    let dialog = dialog.clone();
                    self.dialog_key(dialog, &key, now);
                }
                Screen::Trust { yes } => {
                    let yes = *yes;
                    self.trust_key(yes, &key);
                }
                Screen::Panel | Screen::Limit(_) | Screen::Unknown => {
                    self.record
                        .note("swallowed", json!({ "by": self.screen.name(), "key": format!("{key:?}") }));
                }
            }
        }
    }

    fn composer_key(&mut self, key: Key, now: Instant) {
        if self.habits.normal == Some(true) {
            match &key {
                // Keys are commands; a paste is none.
                Key::Text(text) => {
                    self.record.note("command-keys", json!({ "text": text }));
                    if text.starts_with(['i', 'a', 'A', 'I']) {
                        self.habits.normal = Some(false);
                    }
                    return;
                }
                Key::Newline | Key::Backspace => return,
                _ => {}
            }
        }
        match key {
            Key::Text(text) => self.text(&text, now),
            Key::Paste(text) => {
                let arrives = self.habits.arrives(&text).to_owned();
                if arrives.len() != text.len() {
                    self.record.note("lost", json!({ "bytes": text.len() - arrives.len() }));
                }
                self.text(&arrives, now);
            }
            Key::Newline => self.composer.insert("\n"),
            Key::Backspace => self.composer.backspace(),
            Key::Control('u') => self.composer.clear_line(),
            Key::Control('c') => {
                self.composer.clear();
                self.interrupts += 1;
                if self.interrupts > 1 {
                    self.job(Job::Step(Talk::End("prompt_input_exit".to_owned()), None));
                    self.job(Job::Exit(0));
                }
            }
            Key::Enter => match self.habits.enter(self.text_at, now) {
                Enter::Lost(why) => self.record.note("enter", json!({ "lost": why })),
                Enter::Newline => {
                    self.record.note("enter", json!({ "lost": "newline" }));
                    self.composer.insert("\n");
                }
                Enter::Submits => {
                    let text = self.composer.text();
                    self.record.note("enter", json!({ "takes": text.len() }));
                    if !text.is_empty() {
                        self.composer.clear();
                        self.submit(text, now);
                    }
                }
            },
            Key::Escape if self.habits.normal.is_some() => self.habits.normal = Some(true),
            Key::Escape => self.job(Job::Step(Talk::Escape, None)),
            Key::Up | Key::Down | Key::Tab | Key::Control(_) | Key::Answer | Key::Other => {}
        }
    }

    fn text(&mut self, text: &str, now: Instant) {
        if text.is_empty() {
            return;
        }
        if self.habits.collapses(text) {
            self.composer.insert_collapsed(text);
        } else {
            self.composer.insert(text);
        }
        self.text_at = Some(now);
        for step in std::mem::take(&mut self.when_text) {
            // None of these steps can fail.
            let _ = self.step(step);
        }
    }

    fn submit(&mut self, text: String, now: Instant) {
        let command = text.trim_start().starts_with('/') && !self.habits.knows_no_commands(now);
        let what = if command {
            "command"
        } else if text.starts_with('!') && self.look == Look::Claude {
            "shell"
        } else {
            "submitted"
        };
        self.record.note(what, json!({ "text": text, "busy": self.busy_since.is_some() }));
        match (what, text.trim()) {
            ("submitted", _) => self.job(Job::Submit(text)),
            (_, "/clear") => self.job(Job::Step(Talk::Clear, None)),
            (_, "/compact") => self.job(Job::Step(Talk::Compact(Some(Duration::ZERO), false), None)),
            (_, "/exit") => {
                self.job(Job::Step(Talk::End("prompt_input_exit".to_owned()), None));
                self.job(Job::Exit(0));
            }
            (_, "/model") => self.show(Screen::Panel),
            _ => {}
        }
    }

    fn dialog_key(&mut self, mut dialog: Dialog, key: &Key, now: Instant) {
        let deaf = now < self.screen_since + self.habits.deaf_dialog;
        let last = dialog.options.len() - 1;
        let chosen = match key {
            _ if deaf => None,
            Key::Enter => Some(dialog.marked),
            Key::Text(text) => match (text.parse::<usize>(), text.chars().next()) {
                (Ok(number), _) if text.len() == 1 && (1..=last + 1).contains(&number) => Some(number - 1),
                // One letter is enough for this one, whatever follows.
                (_, Some('y')) if self.look == Look::Codex => Some(0),
                (_, Some('p')) if self.look == Look::Codex && last > 1 => Some(1),
                _ => None,
            },
            Key::Escape => {
                self.record
                    .note("answered", json!({ "dialog": dialog.text, "option": null, "key": "Escape" }));
                self.show(Screen::Composer);
                return self.job(Job::Step(Talk::Escape, None));
            }
            Key::Up | Key::Down => {
                let up = *key == Key::Up;
                dialog.marked =
                    if up { dialog.marked.saturating_sub(1) } else { last.min(dialog.marked + 1) };
                return self.screen = Screen::Dialog(dialog);
            }
            _ => None,
        };
        match chosen {
            Some(option) => {
                let key = format!("{key:?}");
                self.record
                    .note("answered", json!({ "dialog": dialog.text, "option": option + 1, "key": key }));
                self.show(Screen::Composer);
            }
            None => {
                self.record.note("swallowed", json!({ "by": self.screen.name(), "key": format!("{key:?}") }));
            }
        }
    }

    fn trust_key(&mut self, yes: bool, key: &Key) {
        let answer = match key {
            Key::Enter => yes,
            Key::Up | Key::Down => return self.screen = Screen::Trust { yes: !yes },
            Key::Escape => false,
            _ => return self.record.note("swallowed", json!({ "by": "trust", "key": format!("{key:?}") })),
        };
        self.record
            .note("answered", json!({ "dialog": "trust", "option": if answer { "yes" } else { "no" } }));
        if answer {
            self.show(Screen::Composer);
        } else {
            self.job(Job::Exit(1));
        }
    }

    fn draw(&mut self) {
        if !self.taken || self.habits.lines {
            return;
        }
        self.frames += 1;
        let (rows, columns) = terminal::size();
        let busy = self.busy_since.map(|since| {
            let passed = since.elapsed();
            let turn = usize::try_from(passed.as_millis() / TICK.as_millis()).unwrap_or(0);
            let glyph = self.spinner.get(turn % self.spinner.len().max(1)).copied().unwrap_or(' ');
            Busy { glyph, seconds: passed.as_secs() }
        });
        let view = View {
            rows,
            columns,
            folder: &self.folder,
            said: &self.said,
            queued: &self.queued,
            busy,
            screen: &self.screen,
            composer: &self.composer,
            normal: self.habits.normal,
        };
        let frame = self.look.frame(&view);
        terminal::write(&look::bytes(&frame, rows));
        if let Some(title) = &self.title {
            terminal::write(&[b"\x1b]0;", &title[..], b"\x07"].concat());
        }
        let composer: String = self.composer.text().chars().take(SHOWN).collect();
        self.record.note(
            "frame",
            json!({ "number": self.frames, "shows": self.screen.name(), "composer": composer,
                "busy": self.busy_since.is_some() }),
        );
        if self.habits.confirms {
            self.unconfirmed.push_back(self.frames);
            terminal::write(ASK);
        }
    }
}
