//! The adapters of supervised turns: what is known of each harness, as data, and one interpreter for all of it. An
//! adapter says how its program is started for a prompt, which lines of its stream are signs of life, and what its
//! output and its exit mean. It starts nothing, reads no file and asks no clock.
//!
//! `claude`, `codex` and the others are the data; `plan` makes an argument vector of it; `judge` names what a run came
//! to, from its records (`record`, `reading`) and, where a harness has words only, from these (`sentence`, `refusal`,
//! `reset`).
//!
//! Uses: nothing of the daemon. Used by: `turn`, `delivery`.

mod claude;
mod codex;
mod command;
mod cursor_agent;
mod gemini;
mod judge;
mod opencode;
mod pi;
mod plan;
mod reading;
mod record;
mod refusal;
mod reset;
mod sentence;

use minder_proto::id::MessageId;
use minder_proto::stamp::Stamp;
use minder_proto::turn::folder::Heal;
use minder_proto::turn::line::Usage;
use minder_proto::turn::names::{Class, Failure};
use minder_proto::turn::stream::Rules;
use uuid::Uuid;

/// The clock and the zone that [`judge`] is given.
pub use jiff::ZonedDateTime;
pub use judge::judge;
use plan::Commands;

/// Every adapter.
pub static ALL: [&Adapter; 7] = [
    &command::ADAPTER,
    &claude::ADAPTER,
    &codex::ADAPTER,
    &opencode::ADAPTER,
    &pi::ADAPTER,
    &gemini::ADAPTER,
    &cursor_agent::ADAPTER,
];

/// The adapter of this name.
pub fn by_name(name: &str) -> Option<&'static Adapter> {
    ALL.iter().copied().find(|adapter| adapter.name == name)
}

/// What is known of one harness.
#[derive(Debug)]
pub struct Adapter {
    /// Its name.
    pub name: &'static str,
    /// The versions that its recordings were made with; empty where none could be run.
    pub seen: &'static [&'static str],
    /// The arguments that make its program say its version.
    pub version: &'static [&'static str],
    /// Variables of the caller that it needs: names, or beginnings that end in `*`.
    pub env: &'static [&'static str],
    /// How it is started; without it the caller gives the whole command.
    commands: Option<Commands>,
    /// The signal to its root that ends a run in good order, where there is one that does more than the kill.
    cancel_signal: Option<i32>,
    /// The signal that its own time-out would send.
    budget_signal: i32,
}

impl Adapter {
    /// True where standard output, as it is, is the reply.
    pub fn stdout_is_reply(&self) -> bool {
        self.commands.is_none()
    }

    /// True where a conversation can be gone on with in a later turn.
    pub fn has_conversations(&self) -> bool {
        self.commands.is_some()
    }
}

/// What is to be run.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    /// For `command` the program and its arguments; for the others further arguments.
    pub argv: &'a [String],
    /// What the harness is asked.
    pub input: Input<'a>,
    /// The harness's own id of the conversation that is gone on with; a new one where absent.
    pub conversation: Option<&'a str>,
    /// The id that a new conversation gets, where the harness takes one from its caller: a new one each time.
    pub fresh: Uuid,
}

/// What a harness is asked.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// Nothing.
    None,
    /// One prompt.
    Text(&'a str),
    /// Messages of a queue, in order. A harness that knows a message by its id is given the ids.
    Messages(&'a [Message]),
}

/// One message of a queue.
#[derive(Clone, Debug)]
pub struct Message {
    /// Its id.
    pub id: MessageId,
    /// What the harness reads: the envelope and the body.
    pub text: String,
    /// How many turns with it came to an end that was a failure; a turn that was lost without a result is none. A
    /// harness that knows messages by their ids takes none twice, even one that its model never answered: after a
    /// failure it gets the message under another id, and after a loss under the same.
    pub failed: u32,
}

/// How it is run.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    /// The program, by name or path, and its arguments.
    pub argv: Vec<String>,
    /// How it is run if the conversation is not known any more.
    pub heal: Option<Heal>,
    /// The bytes of standard input; `/dev/null` where absent.
    pub stdin: Option<Vec<u8>>,
    /// The rules of its typed stream.
    pub rules: Option<Rules>,
    /// Standard error is progress too.
    pub stderr_is_progress: bool,
    /// The signal to the root that asks it to end.
    pub cancel_signal: Option<i32>,
    /// The signal to the root at the budget.
    pub budget_signal: i32,
}

/// What a run wrote, as far as it was kept.
#[derive(Clone, Copy, Debug, Default)]
pub struct Output<'a> {
    /// The beginning of standard output.
    pub head: &'a [u8],
    /// The end of standard output, where it was longer than what is kept of its beginning.
    pub tail: &'a [u8],
    /// The end of standard error.
    pub stderr: &'a [u8],
}

/// What a run came to, in the adapter's reading.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judged {
    /// What failed, if the run did; of no account where the supervisor has a failure of its own.
    pub failure: Option<Failure>,
    /// What kind of failure it is; there for every run that did not end well, whoever names the failure.
    pub class: Option<Class>,
    /// The final text, at most [`TEXT_MAX`] bytes; none where standard output is the reply.
    pub text: Option<String>,
    /// The answer is empty or the word for it alone.
    pub silent: bool,
    /// The harness's own id of the conversation.
    pub conversation: Option<String>,
    /// What was used.
    pub usage: Usage,
    /// One line of what is known of a failure, for people.
    pub why: Option<String>,
    /// The account has used up what it was allowed.
    pub limit: Option<Limit>,
    /// The login or key is missing, expired or refused.
    pub login: bool,
    /// Another process has the conversation.
    pub in_use: bool,
    /// The messages of a queue that the harness says it has done with, whatever became of the rest. Empty for a harness
    /// that does not say.
    pub taken: Vec<MessageId>,
    /// The harness had every message already, from a turn whose end was lost, and asked its model nothing.
    pub repeated: bool,
}

/// A usage limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// When there is something to use again, where the harness says so.
    pub reset: Option<Stamp>,
}

/// Most bytes of a final text.
pub const TEXT_MAX: usize = 1024 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_adapter_has_the_name_by_which_it_is_asked_for() {
        let names = ALL.map(|adapter| adapter.name);
        assert_eq!(names, minder_proto::turn::policy::ADAPTERS);
        assert!(names.iter().all(|name| by_name(name).is_some_and(|adapter| adapter.name == *name)));
        assert!(by_name("Claude").is_none());
    }
}
