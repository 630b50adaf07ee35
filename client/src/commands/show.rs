//! `session show`: one session with all that is known of it. Reads files only.

use clap::Args;
use minder_proto::error::exit;
use minder_proto::event::{ANSWER_NOTE, Body, Event, PERSON_AS_SESSION};
use minder_proto::id::{MessageId, SessionId};
use minder_proto::layout::Home;
use minder_proto::record::{SessionRecord, WatchSource, Watcher};
use minder_proto::snapshot::{self, author_words};
use minder_proto::stamp::{Stamp, short_age};
use minder_proto::text::{block, one_line};
use minder_proto::timeline;
use serde::Serialize;

use crate::cli::Outcome;
use crate::context::Context;
use crate::event_line;
use crate::fault::CommandError;
use crate::fleet::Fleet;
use crate::look::Look;
use crate::receipts;

/// Options of `show`.
#[derive(Args, Debug)]
#[command(after_help = "\
SEL: minder help selectors.

Example:
  minder show api --timeline 50")]
pub struct ShowArgs {
    /// The session [default: the caller]
    #[arg(value_name = "SEL")]
    session: Option<String>,
    /// How many of the last events
    #[arg(long, value_name = "N", default_value_t = 10)]
    timeline: usize,
}

/// Most events of `--timeline`.
const EVENTS_MAX: usize = 100_000;

/// Shows.
pub fn run(args: &ShowArgs, context: &mut Context) -> Outcome {
    if args.timeline > EVENTS_MAX {
        return Err(CommandError::usage(format!("--timeline: at most {EVENTS_MAX}")));
    }
    let fleet = context.fleet_for(args.session.as_deref())?;
    let home = context.home()?.clone();
    let id = match &args.session {
        Some(word) => fleet.one(&home, word, context.identity(&fleet)?.session())?.id,
        None => context.session(&fleet)?,
    };
    let record = fleet.get(id).ok_or_else(|| CommandError::not_found(format!("no session {id}")))?;
    let view = View::read(&home, record, args.timeline)?;
    if context.printer.is_json() {
        context.printer.object(&view)?;
    } else {
        for line in view.lines(&home, &fleet, Stamp::now(), context.printer.look()) {
            context.printer.line(line)?;
        }
    }
    Ok(exit::OK)
}

/// All that is shown of one session.
#[derive(Serialize)]
struct View<'a> {
    record: &'a SessionRecord,
    /// The line that says why the state is what it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    because: Option<Event>,
    watchers: Vec<Watcher>,
    waiting: Vec<Waiting>,
    held: usize,
    events: Vec<Event>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<Answer>,
}

/// A message that waits.
#[derive(Serialize)]
struct Waiting {
    id: MessageId,
    history: Vec<minder_proto::record::QueueLine>,
}

/// The last thing it said.
#[derive(Serialize)]
struct Answer {
    at: Stamp,
    text: String,
}

impl<'a> View<'a> {
    fn read(home: &Home, record: &'a SessionRecord, events: usize) -> Result<Self, CommandError> {
        let dir = home.session(record.id);
        let failed = |e: std::io::Error| CommandError::io(dir.display(), &e);
        let queue = snapshot::queue(&dir).map_err(failed)?;
        let ledger = minder_proto::whole::read(&dir.join("queue.jsonl")).unwrap_or_default();
        let waiting = queue
            .iter()
            .map(|e| Waiting { id: e.id, history: minder_proto::queue::history(&ledger, e.id) })
            .collect();
        Ok(Self {
            record,
            because: snapshot::last_state(&dir).map_err(failed)?,
            watchers: snapshot::watchers(home, record.id)?,
            waiting,
            held: queue.held(),
            events: timeline::last(&dir, events).map_err(failed)?,
            answer: last_answer(&dir).map_err(failed)?,
        })
    }

    fn lines(&self, home: &Home, fleet: &Fleet, now: Stamp, look: Look) -> Vec<String> {
        let mut page = Page { lines: Vec::new(), look };
        page.lines.push(self.title());
        self.state(&mut page, now);
        self.identity(&mut page, home, fleet, now);
        for w in &self.watchers {
            page.field("watcher", &watcher_words(fleet, home, w));
        }
        let queue = match self.waiting.len() {
            0 => "nothing waits".to_owned(),
            n => format!("{n} waiting, {} held", self.held),
        };
        page.field("queue", &queue);
        for waiting in &self.waiting {
            let path = one_line(&receipts::path(&waiting.history, now));
            page.lines.push(format!("  {}  {path}", waiting.id.short()));
        }
        page.head("last events");
        for event in &self.events {
            let line = event_line::line(event, |p| fleet.label(home, p), |s| fleet.named(home, s));
            page.lines.push(format!("  {}  {line}", look.faint(&event.at.clock(false))));
        }
        if let Some(answer) = &self.answer {
            page.head(&format!("last answer, {} ago", short_age(answer.at.age(now))));
            page.lines.extend(block(answer.text.trim_end()).lines().map(|l| format!("  {l}")));
        }
        page.lines
    }

    fn title(&self) -> String {
        let r = self.record;
        let title = one_line(&r.title);
        let title = if title == r.label { String::new() } else { format!("  {title}") };
        format!("{}{title}  {}", r.label, r.id)
    }

    fn state(&self, page: &mut Page, now: Stamp) {
        let r = self.record;
        let age = short_age(r.state_at.age(now));
        let state = page.look.state(r.state, r.state.as_str());
        let note = r.note.as_deref().map_or_else(String::new, |n| format!(": {}", one_line(n)));
        page.field("state", &format!("{state} for {age}{note}"));
        page.field("", &self.because());
    }

    /// `since 2026-11-30 13:40:23 (was working), said by a hook: a turn ended and nothing was declared`
    fn because(&self) -> String {
        let r = self.record;
        let mut because = String::new();
        let mut who = author_words(r.state_by);
        let mut read_from = String::new();
        if let Some(Event { at, body: Body::State(t), .. }) = &self.because {
            because = format!("since {} {} (was {}), ", at.day(), at.clock(false), t.from);
            match t.proof.as_deref() {
                Some(PERSON_AS_SESSION) => who = "declared by the person as this session",
                Some(proof) => read_from = format!(", read from {}", one_line(proof)),
                None => {}
            }
        }
        because.push_str(who);
        if r.turn_end {
            because.push_str(": a turn ended and nothing was declared");
        }
        because + &read_from
    }

    fn identity(&self, page: &mut Page, home: &Home, fleet: &Fleet, now: Stamp) {
        let r = self.record;
        if let Some(parent) = r.parent {
            page.field("parent", &fleet.named(home, parent));
        }
        page.field("dir", &one_line(&r.dir));
        if let Some(harness) = &r.harness {
            page.field("harness", &one_line(harness));
        }
        for b in &r.bindings {
            let until = match b.until {
                Some(until) => format!("until {} {}", until.day(), until.clock(false)),
                None => format!("since {} {}", b.since.day(), b.since.clock(false)),
            };
            let (harness, id, why) = (one_line(&b.harness), one_line(&b.id), one_line(&b.why));
            page.field("binding", &format!("{harness} {id} ({why}) {until}"));
        }
        if let Some(p) = &r.process {
            let tty = p.tty.as_deref().map_or_else(String::new, |t| format!(" on {}", one_line(t)));
            let ended =
                p.ended.map_or_else(String::new, |e| format!(", ended {} ago", short_age(e.age(now))));
            page.field("process", &format!("{}{tty}{ended}", p.pid));
        }
        page.field("channel", r.channel.as_str());
        if r.primary {
            page.field("primary", "yes");
        }
        page.field("since", &format!("{} {}", r.created.day(), r.created.clock(false)));
    }
}

/// Lines that grow.
struct Page {
    lines: Vec<String>,
    look: Look,
}

impl Page {
    fn field(&mut self, name: &str, value: &str) {
        let name = self.look.faint(&format!("{name:<8}"));
        self.lines.push(format!("{name}  {value}"));
    }

    fn head(&mut self, text: &str) {
        self.lines.push(self.look.faint(text));
    }
}

/// `lead (3f0a91c2): parent, told of every state but working`
fn watcher_words(fleet: &Fleet, home: &Home, w: &Watcher) -> String {
    let who: SessionId = w.watcher;
    let sources: Vec<&str> = w.sources.iter().map(|s| source_word(*s)).collect();
    format!("{}: {}, told of {}", fleet.named(home, who), sources.join(" and "), states_words(w.states))
}

/// The word for why a watch exists.
pub fn source_word(source: WatchSource) -> &'static str {
    match source {
        WatchSource::Manual => "manual",
        WatchSource::Parent => "parent",
    }
}

/// A set of states in words.
pub fn states_words(states: minder_proto::state::StateSet) -> String {
    use minder_proto::state::StateSet;
    match states {
        StateSet::ALL => "all states".to_owned(),
        StateSet::WATCH => "every state but working".to_owned(),
        states => states.to_string(),
    }
}

/// The newest answer that a line keeps.
fn last_answer(dir: &std::path::Path) -> std::io::Result<Option<Answer>> {
    let mut n = 64;
    loop {
        let lines = timeline::last(dir, n)?;
        let all = lines.len() < n;
        let found = lines.into_iter().rev().find_map(|e| match e.body {
            Body::State(t) => t.text.map(|text| Answer { at: e.at, text }),
            Body::Note { what, text } if what == ANSWER_NOTE => Some(Answer { at: e.at, text }),
            _ => None,
        });
        if found.is_some() || all {
            return Ok(found);
        }
        n *= 16;
    }
}
