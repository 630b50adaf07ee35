//! What each harness tells at its boundaries, what that means, and what may be said to it there: one table a harness,
//! as data. A payload is read by the table of the harness that it was sent for; an event that is not in it, or a field
//! that only another harness writes, is another program's word: silence.
//!
//! OpenCode and Pi have no hook commands. An extension of minder's own runs in them and tells their events in the
//! names that Claude Code gives them ([`plugin`]).
//!
//! Uses: nothing. Used by: `hook`.

use minder_proto::rpc::HookAnswer;

mod claude;
mod codex;
mod cursor;
mod gemini;
pub mod plugin;

/// The ways in which a harness speaks.
#[derive(Debug)]
pub struct Dialect {
    /// Its name in records, bindings and on the command line.
    pub harness: &'static str,
    /// Its events, as far as they are heard.
    pub events: &'static [Event],
    /// Fields that it names in its own way, and the name under which each is read. Of a list the first element counts.
    pub renamed: &'static [(&'static str, &'static str)],
    /// Fields that only other harnesses have.
    pub foreign: &'static [&'static str],
    /// Whether all events of a turn carry its id. Where they do not, a prompt that comes while a turn runs joins it.
    pub turn_ids: bool,
    /// Whether a waiter beside an idle conversation can start a turn.
    pub wakes: bool,
    /// Most bytes of a text that its model gets whole through a hook; `None` where the count of characters is its
    /// only limit.
    pub max_bytes: Option<usize>,
    /// How it is answered.
    pub form: Form,
}

/// An event of a harness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// As the harness spells it.
    pub name: &'static str,
    /// What it says.
    pub means: Means,
    /// What its answer may bring.
    pub takes: Takes,
}

/// What an event says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means {
    /// A conversation begins, or goes on.
    Begins,
    /// A prompt was taken.
    Prompt,
    /// A tool call is over.
    ToolDone,
    /// A dialog is open.
    Dialog,
    /// The dialog was answered, whatever it was about.
    Answered,
    /// Something a person should know: a dialog, where it says so.
    Notification,
    /// The turn would end.
    TurnEnd,
    /// The model failed for good.
    TurnFailed,
    /// A person broke the turn off.
    Interrupted,
    /// The conversation ends in this process.
    Ends,
    /// It is being compacted.
    CompactionBegins,
    /// It was compacted.
    CompactionEnds,
}

/// What the answer to an event may bring to the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Nothing: it is not read, or what becomes of it was never seen.
    Nothing,
    /// A text beside what the model is given anyway.
    Context,
    /// A text that keeps the turn going, or that enters it as a user's message.
    More,
}

/// How an answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Claude Code's: `hookSpecificOutput.additionalContext` on standard output; a turn is kept going by exit 2, with
    /// the text on standard error.
    Claude,
    /// Cursor's: `followup_message` on standard output keeps a turn going.
    Cursor,
}

/// All that are heard.
pub const DIALECTS: [&Dialect; 6] =
    [&claude::DIALECT, &codex::DIALECT, &plugin::OPENCODE, &plugin::PI, &gemini::DIALECT, &cursor::DIALECT];

/// The dialect of a harness.
pub fn of(harness: &str) -> Option<&'static Dialect> {
    DIALECTS.into_iter().find(|d| d.harness == harness)
}

impl Dialect {
    /// The event of this name.
    pub fn event(&self, name: &str) -> Option<Event> {
        self.events.iter().find(|e| e.name == name).copied()
    }

    /// A text for the model beside what the event itself brings to it.
    pub fn context(&self, event: &str, text: &str) -> HookAnswer {
        if text.is_empty() {
            return HookAnswer::default();
        }
        let json = match self.form {
            Form::Claude => serde_json::json!({
                "hookSpecificOutput": {"hookEventName": event, "additionalContext": text}
            }),
            Form::Cursor => serde_json::json!({ "additional_context": text }),
        };
        HookAnswer { stdout: format!("{json}\n"), ..HookAnswer::default() }
    }

    /// A text that keeps a turn from ending.
    pub fn more(&self, text: String) -> HookAnswer {
        match self.form {
            // With Claude Code exit 2 with the text on stderr reaches the model once; a `block` decision, twice.
            Form::Claude => HookAnswer { stderr: text, exit: 2, ..HookAnswer::default() },
            Form::Cursor => {
                let json = serde_json::json!({ "followup_message": text });
                HookAnswer { stdout: format!("{json}\n"), ..HookAnswer::default() }
            }
        }
    }
}

const fn heard(name: &'static str, means: Means, takes: Takes) -> Event {
    Event { name, means, takes }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_names_each_event_once_and_says_what_fits() {
        for dialect in DIALECTS {
            for (i, event) in dialect.events.iter().enumerate() {
                let first = dialect.events.iter().position(|e| e.name == event.name);
                assert_eq!(first, Some(i), "{} {}", dialect.harness, event.name);
                let fits = match event.takes {
                    Takes::Nothing => true,
                    Takes::More => matches!(event.means, Means::TurnEnd | Means::ToolDone),
                    Takes::Context => {
                        matches!(event.means, Means::Begins | Means::Prompt | Means::ToolDone)
                    }
                };
                assert!(fits, "{} {}", dialect.harness, event.name);
            }
            for means in [Means::Prompt, Means::TurnEnd, Means::Begins, Means::Ends] {
                assert!(dialect.events.iter().any(|e| e.means == means), "{} {means:?}", dialect.harness);
            }
            assert_eq!(of(dialect.harness).unwrap().harness, dialect.harness);
        }
        assert!(of("grok").is_none());
    }

    #[test]
    fn answers_have_the_form_of_their_harness() {
        let codex = of("codex").unwrap();
        let context = codex.context("PostToolUse", "a \"b\"\n");
        assert_eq!(
            context.stdout,
            "{\"hookSpecificOutput\":{\"hookEventName\":\"PostToolUse\",\"additionalContext\":\"a \\\"b\\\"\\n\"}}\n"
        );
        assert_eq!(codex.context("PostToolUse", ""), HookAnswer::default());
        let more = codex.more("go on".to_owned());
        assert_eq!((more.exit, more.stderr.as_str(), more.stdout.as_str()), (2, "go on", ""));
        let more = of("cursor").unwrap().more("go on".to_owned());
        assert_eq!((more.exit, more.stdout.as_str()), (0, "{\"followup_message\":\"go on\"}\n"));
    }
}
