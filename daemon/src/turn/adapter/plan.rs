//! From the data of an adapter to an argument vector and standard input.

use minder_proto::error::{Fault, Kind};
use minder_proto::id::MessageId;
use minder_proto::turn::folder::Heal;
use minder_proto::turn::stream::{Rules, Shape, Tool};
use serde_json::json;
use uuid::{Builder, Uuid};

use super::reading::{End, Reading};
use super::{Adapter, Input, Launch, Message, Plan};

/// Most bytes of one argument, its ending zero included: what Linux takes.
pub const ARGUMENT_MAX: usize = 128 * 1024;

/// How a harness is started.
#[derive(Debug)]
pub struct Commands {
    /// Its program.
    pub program: &'static str,
    /// The arguments that begin a conversation.
    pub first: &'static [Arg],
    /// The arguments that go on with one.
    pub resume: &'static [Arg],
    /// Texts on standard error that say that the conversation is not known any more.
    pub stale: &'static [&'static str],
    /// How the prompt gets in.
    pub transport: Transport,
    /// Which lines of its output are signs of life.
    pub stream: Stream,
    /// What its output means.
    pub reading: Reading,
}

/// One place of an argument vector.
#[derive(Clone, Copy, Debug)]
pub enum Arg {
    /// This word.
    Word(&'static str),
    /// The conversation's id.
    Id,
    /// The caller's further arguments.
    Further,
    /// These words, where the messages go in by their ids.
    Typed(&'static [&'static str]),
    /// The prompt.
    Prompt,
}

/// How a prompt gets in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// By standard input, as it is.
    Stdin,
    /// By standard input; the messages of a queue as one JSON line each, with their ids.
    StdinTyped,
    /// As an argument: the harness has no other way that is known.
    Argument,
}

/// Fields that a line has, as in [`Shape`].
pub type Fields = &'static [(&'static str, &'static str)];

/// What the lines of a typed stream mean for the windows, as in [`Rules`].
#[derive(Debug)]
pub struct Stream {
    pub progress: &'static [Fields],
    pub tool_start: &'static [Call],
    pub tool_end: &'static [Call],
    pub result: &'static [Fields],
}

/// Where a tool call begins or ends, as in [`Tool`].
#[derive(Debug)]
pub struct Call {
    pub line: Fields,
    pub each: Option<&'static str>,
    pub item: Fields,
    pub id: &'static str,
    pub task: bool,
}

impl Adapter {
    /// How this is run.
    pub fn plan(&self, plan: &Plan<'_>) -> Result<Launch, Fault> {
        let mut launch = Launch {
            argv: plan.argv.to_vec(),
            heal: None,
            stdin: None,
            rules: None,
            stderr_is_progress: false,
            cancel_signal: self.cancel_signal,
            budget_signal: self.budget_signal,
        };
        let Some(commands) = &self.commands else {
            if plan.argv.is_empty() {
                return Err(Fault::new(Kind::InvalidParams, "no program is given to run"));
            }
            if plan.conversation.is_some() {
                let why = "a plain program has no conversation to go on with";
                return Err(Fault::new(Kind::InvalidParams, why));
            }
            launch.stdin = text(plan.input).map(String::into_bytes);
            return Ok(launch);
        };
        let prompt = text(plan.input)
            .filter(|prompt| !prompt.trim().is_empty())
            .ok_or_else(|| Fault::new(Kind::InvalidParams, format!("{} needs a prompt", self.name)))?;
        launch.rules = Some(commands.stream.rules(commands.reading.ends));
        let typed = match plan.input {
            Input::Messages(messages) if commands.transport == Transport::StdinTyped => Some(messages),
            _ => None,
        };
        let fresh = plan.fresh.to_string();
        let build = |args: &[Arg], id: &str| commands.argv(args, id, plan.argv, &prompt, typed.is_some());
        launch.argv = match plan.conversation {
            None => build(commands.first, &fresh),
            Some(id) => {
                if id.is_empty() || id.starts_with('-') {
                    return Err(Fault::new(Kind::InvalidParams, format!("not a conversation: {id:?}")));
                }
                launch.heal = (!commands.stale.is_empty()).then(|| Heal {
                    texts: commands.stale.iter().map(|text| (*text).to_owned()).collect(),
                    argv: build(commands.first, &fresh),
                });
                build(commands.resume, id)
            }
        };
        launch.stdin = match (commands.transport, typed) {
            (Transport::Argument, _) => {
                let size = prompt.len();
                if size >= ARGUMENT_MAX {
                    let name = self.name;
                    let why = format!(
                        "{name} takes its prompt as an argument only, under 128 KiB; this one has {size} bytes"
                    );
                    return Err(Fault::new(Kind::TooLarge, why));
                }
                None
            }
            (_, Some(messages)) => Some(lines(messages)),
            (_, None) => Some(prompt.into_bytes()),
        };
        Ok(launch)
    }
}

/// The prompt as one text.
fn text(input: Input<'_>) -> Option<String> {
    match input {
        Input::None => None,
        Input::Text(text) => Some(text.to_owned()),
        Input::Messages(messages) => {
            Some(messages.iter().map(|m| m.text.as_str()).collect::<Vec<_>>().join("\n\n"))
        }
    }
}

/// Messages as lines that carry their ids.
fn lines(messages: &[Message]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for message in messages {
        let line = json!({
            "type": "user", "uuid": outside(message.id, message.failed), "session_id": "", "parent_tool_use_id": null,
            "message": {"role": "user", "content": message.text},
        });
        bytes.extend(line.to_string().bytes());
        bytes.push(b'\n');
    }
    bytes
}

/// Bytes of an id that are the same under every id that a harness knows a message by.
const SAME: std::ops::Range<usize> = 0..12;

/// The id by which a harness knows a message after so many turns that failed.
fn outside(id: MessageId, failed: u32) -> Uuid {
    let uuid = Uuid::parse_str(&id.to_string()).expect("an id is a UUID");
    if failed == 0 {
        return uuid;
    }
    let mut bytes = uuid.into_bytes();
    for (byte, more) in bytes[SAME.end..].iter_mut().zip(failed.to_be_bytes()) {
        *byte = byte.wrapping_add(more);
    }
    Builder::from_custom_bytes(bytes).into_uuid()
}

/// The message that a harness knows by this id.
pub fn inside(outside: &str, messages: &[MessageId]) -> Option<MessageId> {
    let wanted = Uuid::parse_str(outside).ok()?;
    let same = |id: &&MessageId| {
        let Ok(uuid) = Uuid::parse_str(&id.to_string()) else { return false };
        // The version is told apart in half a byte of the first part.
        let plain = |uuid: Uuid| {
            let mut bytes = uuid.into_bytes();
            (bytes[6], bytes[8]) = (bytes[6] & 0x0f, bytes[8] & 0x3f);
            bytes
        };
        plain(uuid)[SAME] == plain(wanted)[SAME]
    };
    messages.iter().find(same).copied()
}

impl Commands {
    fn argv(&self, args: &[Arg], id: &str, further: &[String], prompt: &str, typed: bool) -> Vec<String> {
        let mut argv = vec![self.program.to_owned()];
        for arg in args {
            match arg {
                Arg::Word(word) => argv.push((*word).to_owned()),
                Arg::Id => argv.push(id.to_owned()),
                Arg::Further => argv.extend_from_slice(further),
                Arg::Typed(words) if typed => argv.extend(words.iter().map(|word| (*word).to_owned())),
                Arg::Typed(_) => {}
                Arg::Prompt => argv.push(prompt.to_owned()),
            }
        }
        argv
    }
}

impl Stream {
    /// What a reader of the records takes for a failure is one for the windows too.
    fn rules(&self, ends: &[End]) -> Rules {
        let shapes = |all: &[Fields]| all.iter().map(|fields| shape(fields)).collect();
        let calls = |all: &[Call]| all.iter().map(Call::tool).collect();
        // One that also fits what ended well is for the rest.
        let is_rest = |line: Fields| {
            ends.iter().any(|end| end.well && line.iter().all(|field| end.line.contains(field)))
        };
        let failed = ends.iter().filter(|end| !end.well && !is_rest(end.line));
        Rules {
            progress: shapes(self.progress),
            tool_start: calls(self.tool_start),
            tool_end: calls(self.tool_end),
            result: shapes(self.result),
            failed: failed.map(|end| shape(end.line)).collect(),
        }
    }
}

impl Call {
    fn tool(&self) -> Tool {
        Tool {
            line: shape(self.line),
            each: self.each.map(str::to_owned),
            item: shape(self.item),
            id: self.id.to_owned(),
            task: self.task,
        }
    }
}

fn shape(fields: Fields) -> Shape {
    Shape(fields.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect())
}

#[cfg(test)]
mod tests;
