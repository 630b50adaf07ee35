//! `fake tui`: a program in a terminal that shows what a script says, takes input with the habits that it says, and has
//! a conversation behind it: turns, a transcript, hooks, a status file, in Claude Code's form. All that it reads and
//! draws stands in the record of [`run`](super::run), whose script it shares.
//!
//! One thread owns the screen, one the conversation, so that a hook that runs holds up neither keys nor frames.

mod composer;
mod conversation;
mod habits;
mod hooks;
mod keys;
mod look;
mod owner;
mod status;
mod step;
mod terminal;
mod transcript;

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use anyhow::{Context as _, Result};

use super::run::children::Children;
use super::run::record::Record;
use conversation::Job;
use owner::Event;

pub use step::{Step, parse};
pub use terminal::leave;

/// The terminal, whether it was taken yet or not.
pub struct Terminal {
    events: Sender<Event>,
    jobs: Sender<Job>,
}

impl Terminal {
    /// Nothing is shown and read before the step that takes it.
    pub fn new(record: &Record, children: &Arc<Children>) -> Self {
        let (events, coming) = channel();
        let jobs = conversation::start(record.clone(), Arc::clone(children), events.clone());
        owner::start(record.clone(), events.clone(), coming, jobs.clone());
        Self { events, jobs }
    }

    /// Does one step, to its end.
    pub fn perform(&self, step: &Step) -> Result<()> {
        let (done, answer) = channel();
        let gone = "the terminal's threads have ended";
        match step {
            Step::Talk(talk) => self.jobs.send(Job::Step(talk.clone(), Some(done))).context(gone)?,
            step => self.events.send(Event::Step(step.clone(), done)).context(gone)?,
        }
        let result = answer.recv().context(gone)?;
        if *step == Step::Terminal {
            result?;
            let (done, answer) = channel();
            self.jobs.send(Job::Begin(done)).context(gone)?;
            return answer.recv().context(gone)?;
        }
        result
    }
}
