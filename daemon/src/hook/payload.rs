//! What harnesses give their hooks on standard input, in the names of Claude Code, and what of it minder hears. A shape
//! that is not the harness's own is another program's: silence.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::dialect::{self, Dialect, Event, Means};
use super::first_words;

/// One hook's input; every field that some event has.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Payload {
    /// The conversation.
    #[serde(deserialize_with = "lenient")]
    pub session_id: String,
    /// Which event.
    #[serde(deserialize_with = "lenient")]
    pub hook_event_name: String,
    /// Where the conversation is written.
    #[serde(deserialize_with = "lenient")]
    pub transcript_path: Option<String>,
    /// Its working directory.
    #[serde(deserialize_with = "lenient")]
    pub cwd: Option<String>,
    /// The turn; the same for all its events.
    #[serde(deserialize_with = "lenient")]
    pub prompt_id: Option<String>,
    /// Set in a sub-agent's events.
    #[serde(deserialize_with = "any_text")]
    pub agent_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    source: Option<String>,
    #[serde(deserialize_with = "lenient")]
    prompt: Option<String>,
    #[serde(deserialize_with = "lenient")]
    tool_name: Option<String>,
    #[serde(deserialize_with = "lenient")]
    tool_input: Option<Value>,
    #[serde(deserialize_with = "lenient")]
    stop_hook_active: bool,
    #[serde(deserialize_with = "lenient")]
    last_assistant_message: Option<String>,
    #[serde(deserialize_with = "tasks")]
    background_tasks: Vec<Task>,
    #[serde(deserialize_with = "lenient")]
    error: Option<String>,
    #[serde(deserialize_with = "lenient")]
    reason: Option<String>,
    #[serde(deserialize_with = "lenient")]
    notification_type: Option<String>,
    #[serde(deserialize_with = "lenient")]
    message: Option<String>,
    #[serde(deserialize_with = "lenient")]
    status: Option<String>,
    #[serde(deserialize_with = "lenient")]
    loop_count: u64,
}

/// A task that runs in the background at the end of a turn.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Task {
    /// Its command, where it is one.
    #[serde(deserialize_with = "lenient")]
    pub command: Option<String>,
    /// What it is for.
    #[serde(deserialize_with = "lenient")]
    pub description: Option<String>,
    /// `running`, or something that is over.
    #[serde(deserialize_with = "lenient")]
    pub status: Option<String>,
}

/// A field that is `null` or of another type is as one that is not there: only a conversation and an event's name are what
/// no event can do without.
fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(from: D) -> Result<T, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(from)?).unwrap_or_default())
}

/// A word of any type: that it is there says what there is to say.
fn any_text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Ok(match Value::deserialize(from)? {
        Value::Null => None,
        Value::String(text) => Some(text),
        other => Some(other.to_string()),
    })
}

/// Those of a list that are tasks.
fn tasks<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Task>, D::Error> {
    let Value::Array(list) = Value::deserialize(from)? else { return Ok(Vec::new()) };
    Ok(list.into_iter().filter_map(|task| serde_json::from_value(task).ok()).collect())
}

/// A tool call, as far as two events of one can be told from those of another: no payload has an id of it. Without a
/// name it may be any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolCall {
    /// The tool's name.
    pub tool: String,
    /// A checksum of its input. None where the answer to a dialog becomes part of the input.
    pub input: Option<u32>,
}

impl ToolCall {
    fn of(p: &Payload) -> Self {
        let tool = p.tool_name.clone().unwrap_or_default();
        let input = p.tool_input.as_ref().filter(|_| tool != "AskUserQuestion").cloned();
        // What a call is for is said beside its dialog, and not always when it is over.
        let what = input.map(|mut input| {
            input.as_object_mut().map(|fields| fields.shift_remove("description"));
            input
        });
        Self { tool, input: what.map(|v| crc32c::crc32c(v.to_string().as_bytes())) }
    }
}

/// What minder hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// A conversation begins, or goes on under a new id.
    Begins {
        /// `startup`, `resume`, `clear`, `compact`, `fork`.
        source: String,
    },
    /// A prompt was taken.
    Prompt(String),
    /// A tool call is over.
    ToolDone(ToolCall),
    /// A dialog is open: what it asks about, and what a note says of it.
    Dialog {
        /// The call.
        call: ToolCall,
        /// `permission: Bash rm -rf build/`, `question: Which database?`
        note: String,
    },
    /// The turn would end.
    TurnEnd {
        /// A hook kept it going before, or a waiter started it.
        active: bool,
        /// Its last answer.
        text: String,
        /// What still runs.
        tasks: Vec<Task>,
    },
    /// The model failed for good.
    TurnFailed(String),
    /// A person broke the turn off.
    Interrupted,
    /// The conversation ends in this process.
    Ends(String),
    /// The conversation is being compacted, or has been.
    Compacting(bool),
}

/// A payload that is for minder.
#[derive(Clone, Debug)]
pub struct Told {
    /// Whose it is.
    pub dialect: &'static Dialect,
    /// Which event.
    pub event: Event,
    /// What it says.
    pub payload: Payload,
}

/// Reads a harness's payload. None: not for minder.
pub fn read(harness: &str, payload: Value) -> Option<(Told, Heard)> {
    let dialect = dialect::of(harness)?;
    let Value::Object(mut fields) = payload else { return None };
    if dialect.foreign.iter().any(|name| fields.contains_key(*name)) {
        return None;
    }
    rename(&mut fields, dialect.renamed);
    let payload: Payload = serde_json::from_value(Value::Object(fields)).ok()?;
    let plain = |id: &str| !id.is_empty() && id.len() <= 128 && !id.contains(char::is_control);
    if !plain(&payload.session_id) || payload.agent_id.is_some() {
        return None; // a sub-agent's events never touch the session's state
    }
    let event = dialect.event(&payload.hook_event_name)?;
    let heard = Heard::of(&payload, event.means)?;
    Some((Told { dialect, event, payload }, heard))
}

/// Gives fields the names under which they are read.
fn rename(fields: &mut Map<String, Value>, names: &[(&str, &str)]) {
    for (theirs, ours) in names {
        let value = match fields.remove(*theirs) {
            Some(Value::Array(list)) => list.into_iter().next(),
            value => value,
        };
        if let Some(value) = value {
            fields.insert((*ours).to_owned(), value);
        }
    }
}

impl Heard {
    fn of(p: &Payload, means: Means) -> Option<Self> {
        Some(match means {
            Means::Begins => {
                Self::Begins { source: p.source.clone().unwrap_or_else(|| "startup".to_owned()) }
            }
            Means::Prompt => Self::Prompt(p.prompt.as_deref().map(said).unwrap_or_default().to_owned()),
            Means::ToolDone => Self::ToolDone(ToolCall::of(p)),
            Means::Dialog => Self::Dialog { call: ToolCall::of(p), note: dialog_note(p) },
            Means::Answered => Self::ToolDone(ToolCall::default()),
            Means::Notification if p.notification_type.as_deref() == Some("ToolPermission") => {
                let what = p.message.as_deref().map_or_else(|| "a tool".to_owned(), |m| first_words(m, 200));
                Self::Dialog { call: ToolCall::default(), note: format!("permission: {what}") }
            }
            Means::Notification => return None,
            Means::TurnEnd => match p.status.as_deref() {
                Some("aborted") => Self::Interrupted,
                Some("error") => Self::failed(p),
                _ => Self::TurnEnd {
                    active: p.stop_hook_active || p.loop_count > 0,
                    text: p.last_assistant_message.clone().unwrap_or_default(),
                    tasks: p.background_tasks.clone(),
                },
            },
            Means::TurnFailed => Self::failed(p),
            Means::Interrupted => Self::Interrupted,
            Means::Ends => Self::Ends(p.reason.clone().unwrap_or_else(|| "other".to_owned())),
            Means::CompactionBegins => Self::Compacting(true),
            Means::CompactionEnds => Self::Compacting(false),
        })
    }

    fn failed(p: &Payload) -> Self {
        Self::TurnFailed(p.error.clone().unwrap_or_else(|| "unknown".to_owned()))
    }
}

/// What was said in a prompt: Gemini puts what its hooks brought before it.
fn said(prompt: &str) -> &str {
    let context = prompt.strip_prefix("<hook_context>").and_then(|rest| rest.split_once("</hook_context>"));
    context.map_or(prompt, |(_, said)| said.trim_start())
}

fn dialog_note(p: &Payload) -> String {
    let tool = p.tool_name.as_deref().unwrap_or("a tool");
    let input =
        |pointer: &str| p.tool_input.as_ref().and_then(|v| v.pointer(pointer)).and_then(Value::as_str);
    if tool == "AskUserQuestion" {
        let question = input("/questions/0/question").unwrap_or("a question");
        return format!("question: {}", first_words(question, 200));
    }
    let what =
        ["/command", "/file_path", "/url", "/pattern", "/path", "/description"].into_iter().find_map(input);
    let what = what.map(|w| format!(" {}", first_words(w, 200))).unwrap_or_default();
    format!("permission: {tool}{what}")
}

impl Task {
    /// True while it runs.
    pub fn runs(&self) -> bool {
        self.status.as_deref().is_none_or(|s| s == "running" || s == "pending")
    }

    /// What it is, in a few words.
    pub fn name(&self) -> String {
        first_words(self.command.as_deref().or(self.description.as_deref()).unwrap_or("a task"), 80)
    }

    /// For whom it waits, where it is a `minder wait`: everybody where it names nobody.
    pub fn waits_for(&self) -> Option<String> {
        let command = self.command.as_deref()?;
        let words: Vec<&str> = command.split_whitespace().collect();
        let at = words.iter().position(|w| w.rsplit('/').next() == Some("minder"))?;
        let mut rest = words[at + 1..].iter().copied().peekable();
        while rest.peek().is_some_and(|w| *w == "session" || w.starts_with("--")) {
            rest.next();
        }
        if rest.next() != Some("wait") {
            return None;
        }
        let mut whom = Vec::new();
        while let Some(word) = rest.next() {
            match word {
                "--timeout" | "--states" | "--since" | "--name" | "--only" => drop(rest.next()),
                w if ends_command(w) => break,
                w if w.starts_with('-') => {}
                w => whom.push(w),
            }
        }
        Some(if whom.is_empty() { "every session".to_owned() } else { whom.join(" ") })
    }
}

/// True for a word with which a command's own words are over: an operator of the shell, or a redirection, with the number
/// of its descriptor.
fn ends_command(word: &str) -> bool {
    let after = word.trim_start_matches(|c: char| c.is_ascii_digit());
    word.starts_with(['&', '|', ';', '>', '<', ')'])
        || (after.len() < word.len() && after.starts_with(['>', '<']))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn heard(mut payload: Value) -> Option<Heard> {
        payload["session_id"] = json!("c1");
        read("claude", payload).map(|(_, h)| h)
    }

    #[test]
    fn events_are_heard() {
        let dialog = json!({"hook_event_name": "PermissionRequest", "tool_name": "Bash", "tool_input": {"command": "rm -rf build/\nls"}});
        let Some(Heard::Dialog { call, note }) = heard(dialog.clone()) else { panic!("{dialog}") };
        assert_eq!((call.tool.as_str(), note.as_str()), ("Bash", "permission: Bash rm -rf build/"));
        let mut done = dialog.clone();
        done["hook_event_name"] = json!("PostToolUse");
        let mut described = dialog;
        described["tool_input"]["description"] = json!("to begin anew");
        assert!(matches!(heard(described), Some(Heard::Dialog { call: said, .. }) if said == call));
        assert_eq!(heard(done.clone()), Some(Heard::ToolDone(call.clone())), "the same call");
        done["tool_input"]["command"] = json!("ls");
        let Some(Heard::ToolDone(other)) = heard(done) else { panic!("a tool call is over") };
        assert!(other.tool == call.tool && other.input != call.input);
        let question = json!({"hook_event_name": "PermissionRequest", "tool_name": "AskUserQuestion",
            "tool_input": {"questions": [{"question": "Which database?"}]}});
        assert_eq!(
            heard(question),
            Some(Heard::Dialog {
                call: ToolCall { tool: "AskUserQuestion".into(), input: None },
                note: "question: Which database?".into()
            })
        );
        assert_eq!(
            heard(
                json!({"hook_event_name": "Stop", "stop_hook_active": true, "last_assistant_message": "ok"})
            ),
            Some(Heard::TurnEnd { active: true, text: "ok".into(), tasks: vec![] })
        );
    }

    #[test]
    fn what_is_not_for_minder_is_not_heard() {
        assert_eq!(heard(json!({"hook_event_name": "Stop", "agent_id": "a1"})), None, "a sub-agent");
        assert_eq!(heard(json!({"hook_event_name": "PreToolUse"})), None);
        assert_eq!(heard(json!({"hookEventName": "Stop"})), None, "another harness's shape");
        assert!(read("claude", json!([1, 2])).is_none());
        assert!(read("claude", json!({"session_id": "", "hook_event_name": "Stop"})).is_none());
        assert!(read("claude", json!({"session_id": "a\nb", "hook_event_name": "Stop"})).is_none());
        assert!(read("grok", json!({"session_id": "c1", "hook_event_name": "Stop"})).is_none());
        // An argument of that name inside the tool's input is not the harness's word.
        let faked =
            json!({"hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_input": {"agent_id": "a1"}});
        assert!(matches!(heard(faked), Some(Heard::ToolDone(call)) if call.tool == "Bash"));
    }

    #[test]
    fn a_field_of_another_type_costs_itself_only() {
        let whole = json!({"session_id": "c1", "transcript_path": "/t", "cwd": "/w", "prompt_id": "p", "agent_id": null,
            "source": "startup", "prompt": "hi", "tool_name": "Bash", "tool_input": {}, "stop_hook_active": false,
            "last_assistant_message": "ok", "background_tasks": [{"command": "x"}], "error": "e", "reason": "r",
            "notification_type": "n", "message": "m", "status": "s", "loop_count": 0});
        let others = [
            json!(null),
            json!(7),
            json!(-1.5),
            json!(true),
            json!("word"),
            json!([1, {}]),
            json!({"a": []}),
        ];
        for event in [
            "SessionStart",
            "UserPromptSubmit",
            "PostToolUse",
            "PermissionRequest",
            "Stop",
            "StopFailure",
            "SessionEnd",
        ] {
            for field in whole.as_object().unwrap().keys().filter(|f| *f != "session_id") {
                for other in &others {
                    let mut payload = whole.clone();
                    payload["hook_event_name"] = event.into();
                    payload[field] = other.clone();
                    let sub_agent = field == "agent_id" && !other.is_null();
                    assert_eq!(read("claude", payload).is_none(), sub_agent, "{event}: {field} = {other}");
                }
            }
        }
        let tasks = json!({"hook_event_name": "Stop", "background_tasks": [7, {"command": "x", "status": null}, {"command": 7}]});
        let Some(Heard::TurnEnd { tasks, .. }) = heard(tasks) else { panic!("an end") };
        assert_eq!(tasks.iter().map(Task::name).collect::<Vec<_>>(), ["x", "a task"]);
        assert!(read("claude", json!({"session_id": 7, "hook_event_name": "Stop"})).is_none());
    }

    #[test]
    fn each_harness_is_heard_in_its_own_words() {
        let read = |harness: &str, event: &str, more: Value| {
            let mut payload = json!({"session_id": "c1", "hook_event_name": event});
            payload.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
            read(harness, payload)
        };
        let heard = |harness, event, more| read(harness, event, more).map(|(_, heard)| heard);
        let end = |text: &str, active| Heard::TurnEnd { active, text: text.into(), tasks: vec![] };
        // Codex: a turn's id under another name, an interrupt.
        let (told, said) =
            read("codex", "Stop", json!({"turn_id": "t", "last_assistant_message": "ok"})).unwrap();
        assert_eq!((told.payload.prompt_id.as_deref(), said), (Some("t"), end("ok", false)));
        assert_eq!(heard("codex", "Interrupt", json!({"turn_id": "t"})), Some(Heard::Interrupted));
        assert_eq!(heard("codex", "StopFailure", json!({})), None);
        // Gemini: other events, an answer under another name, dialogs as one kind of notice.
        let answer =
            json!({"prompt": "p", "prompt_response": "ok", "stop_hook_active": true, "timestamp": "t"});
        assert_eq!(heard("gemini", "AfterAgent", answer), Some(end("ok", true)));
        assert_eq!(heard("gemini", "BeforeAgent", json!({"prompt": "hi"})), Some(Heard::Prompt("hi".into())));
        let brought = json!({"prompt": "<hook_context>[minder] a</hook_context>\n\nhi"});
        assert_eq!(heard("gemini", "BeforeAgent", brought), Some(Heard::Prompt("hi".into())));
        let notice = |kind: &str| json!({"notification_type": kind, "message": "Run Shell"});
        let dialog = Heard::Dialog { call: ToolCall::default(), note: "permission: Run Shell".into() };
        assert_eq!(heard("gemini", "Notification", notice("ToolPermission")), Some(dialog));
        assert_eq!(heard("gemini", "Notification", notice("Other")), None);
        assert_eq!(heard("gemini", "Stop", json!({})), None);
        // Cursor: nearly everything under other names.
        let cursor = |status: &str| {
            json!({"session_id": null, "conversation_id": "c9", "generation_id": "g", "workspace_roots": ["/w", "/v"],
                "status": status, "loop_count": 1, "error_message": "no"})
        };
        let (told, said) = read("cursor", "stop", cursor("completed")).unwrap();
        let Payload { session_id, prompt_id, cwd, .. } = &told.payload;
        assert_eq!(
            (session_id.as_str(), prompt_id.as_deref(), cwd.as_deref()),
            ("c9", Some("g"), Some("/w"))
        );
        assert_eq!(said, end("", true));
        assert_eq!(heard("cursor", "stop", cursor("aborted")), Some(Heard::Interrupted));
        assert_eq!(heard("cursor", "stop", cursor("error")), Some(Heard::TurnFailed("no".into())));
        for harness in ["opencode", "pi"] {
            assert_eq!(
                heard(harness, "UserPromptSubmit", json!({"prompt": "hi"})),
                Some(Heard::Prompt("hi".into()))
            );
            assert_eq!(heard(harness, "Interrupt", json!({})), Some(Heard::Interrupted));
            assert_eq!(
                heard(harness, "PermissionReplied", json!({})),
                Some(Heard::ToolDone(ToolCall::default()))
            );
        }
    }

    #[test]
    fn h3_the_words_of_one_harness_are_silence_for_another() {
        let claude = json!({"session_id": "c1", "hook_event_name": "Stop", "prompt_id": "p"});
        let codex = json!({"session_id": "c1", "hook_event_name": "Stop", "turn_id": "t"});
        let cursor = json!({"conversation_id": "c1", "hook_event_name": "stop", "generation_id": "g"});
        let gemini = json!({"session_id": "c1", "hook_event_name": "AfterAgent", "prompt_response": ""});
        let plugin = json!({"session_id": "c1", "hook_event_name": "Stop"});
        for (of, payload, also) in [
            ("claude", claude, &[][..]),
            ("codex", codex, &[]),
            ("cursor", cursor, &[]),
            ("gemini", gemini, &[]),
            // What is in all of Claude's shapes cannot be told by its words; the process that it comes from tells.
            ("pi", plugin, &["claude", "codex", "opencode"]),
        ] {
            for dialect in dialect::DIALECTS {
                let expected = dialect.harness == of || also.contains(&dialect.harness);
                assert_eq!(
                    read(dialect.harness, payload.clone()).is_some(),
                    expected,
                    "{of} to {}",
                    dialect.harness
                );
            }
        }
    }

    #[test]
    fn a_wait_in_the_background_is_recognised() {
        let waits = |c: &str| Task { command: Some(c.into()), ..Task::default() }.waits_for();
        assert_eq!(waits("minder wait api").as_deref(), Some("api"));
        assert_eq!(
            waits("cd /x && /opt/bin/minder session wait --timeout 5m api web 2>&1").as_deref(),
            Some("api web")
        );
        assert_eq!(waits("minder wait 2f1c2d4a").as_deref(), Some("2f1c2d4a"));
        for end in ["2>/dev/null", "10>&1", "&>x", "2>> log", "</dev/null", "&", "| cat", "; ls", ") &"] {
            assert_eq!(
                waits(&format!("minder wait 2f1c2d4a 22 {end}")).as_deref(),
                Some("2f1c2d4a 22"),
                "{end}"
            );
        }
        assert_eq!(waits("minder --json wait").as_deref(), Some("every session"));
        assert_eq!(waits("minder ls"), None);
        assert_eq!(waits("npm run wait"), None);
    }
}
