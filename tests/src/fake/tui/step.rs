//! The steps of a script that concern the terminal: text to steps. `docs/fake.md` describes them.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::look::{Dialog, Look, Screen};
use super::transcript::Dialect;
use crate::fake::run::script::{escaped, span};

/// One of them.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Takes the terminal.
    Terminal,
    Look(Look),
    Screen(Screen),
    /// What somebody has typed so far.
    Draft(String),
    /// A spinner without a turn.
    Busy(bool),
    /// What goes round while something runs.
    Spinner(String),
    /// Text in the conversation.
    Say(String),
    /// All that any look is recognised by, as text of the conversation.
    Quotes,
    /// The window's title.
    Window(Vec<u8>),
    Habit(Habit),
    /// Steps that are done the moment the composer has taken text.
    WhenText(Vec<Step>),
    Talk(Talk),
}

/// How input is taken.
#[derive(Clone, Debug, PartialEq)]
pub enum Habit {
    /// Bracketed pastes.
    Brackets(bool),
    /// Pastes of more lines or more characters than these are shown as one word.
    Collapse(Option<(usize, usize)>),
    /// An Enter that comes so soon after text is no submission, but nothing or a newline.
    EarlyEnter(Duration, bool),
    /// So many Enters are not taken.
    DeafEnter(u32),
    /// So long a new dialog takes no key.
    DeafDialog(Duration),
    Vi(bool),
    /// For so long input is lost, or a command is taken for text.
    NotReady(Duration, bool),
    /// The kernel's lines instead of keys.
    Lines(bool),
    LoseHead(usize),
    LoseTail(usize),
    /// The terminal is asked to answer to each frame.
    Confirms(bool),
}

/// What concerns the conversation behind the composer.
#[derive(Clone, Debug, PartialEq)]
pub enum Talk {
    /// In whose form it is written and hooks are told.
    Dialect(Dialect),
    /// Its id.
    Id(String),
    /// A turn begins so long after its submission.
    Delay(Duration),
    /// A turn lasts so long and ends in this; without a time until it is told.
    Turn(Option<Duration>, String),
    /// Whether a submission's text reaches the turn.
    Takes(bool),
    /// The transcript has a text so much later.
    Late(Duration),
    /// Whether there is a transcript, and a status file.
    Transcript(bool),
    Status(bool),
    Hooks(Hooks),
    /// Runs the hooks of an event, with these further fields.
    Hook(String, Value),
    /// A turn that nobody submitted.
    Start(String),
    /// A tool call in the turn; of a sub-agent where it is said.
    Tool {
        name: String,
        input: Value,
        agent: bool,
    },
    /// The turn ends with this text.
    Answer(String),
    /// The turn ends by Esc, and no hook is told.
    Escape,
    Clear,
    /// For so long, without a time until it is told; whether under a new id afterwards.
    Compact(Option<Duration>, bool),
    Compacted,
    /// Another conversation, by its id.
    Resume(String),
    /// The conversation ends, for this reason.
    End(String),
}

/// Which hooks run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hooks {
    All,
    None,
    Missing(String),
    Twice(String),
    /// The first of the two is run after the second.
    Swapped(String, String),
    /// They run, and what they print is dropped.
    Dropped,
}

/// The step that begins with this word, if it is one of these.
pub fn parse(word: &str, rest: &str) -> Result<Option<Step>> {
    let text = || rest.to_owned();
    let number = |text: &str| text.parse().with_context(|| format!("no number: {text:?}"));
    let habit = |habit| Ok(Some(Step::Habit(habit)));
    let talk = |talk| Ok(Some(Step::Talk(talk)));
    Ok(Some(match word {
        "terminal" => Step::Terminal,
        "look" => Step::Look(match rest {
            "claude" => Look::Claude,
            "codex" => Look::Codex,
            "plain" => Look::Plain,
            _ => bail!("look claude|codex|plain"),
        }),
        "composer" => Step::Screen(Screen::Composer),
        "draft" => Step::Draft(text()),
        "dialog" => Step::Screen(Screen::Dialog(dialog(rest, false)?)),
        "question" => Step::Screen(Screen::Dialog(dialog(rest, true)?)),
        "trust" => Step::Screen(Screen::Trust { yes: one_of(rest, "yes", "no")? }),
        "panel" => Step::Screen(Screen::Panel),
        "limit" if rest.is_empty() => {
            Step::Screen(Screen::Limit("You've hit your session limit \u{b7} resets 3:10am".to_owned()))
        }
        "limit" => Step::Screen(Screen::Limit(text())),
        "unknown" => Step::Screen(Screen::Unknown),
        "busy" => Step::Busy(on(rest)?),
        "spinner" => Step::Spinner(text()),
        "say" => Step::Say(String::from_utf8_lossy(&escaped(rest)?).into_owned()),
        "quotes" => Step::Quotes,
        "window" => Step::Window(escaped(rest)?),
        "when" => {
            let steps = rest.strip_prefix("text ").context("when text STEPS")?;
            let steps = steps.split("; ").map(|step| {
                let (word, rest) = step.split_once(' ').unwrap_or((step, ""));
                parse(word, rest)?.with_context(|| format!("no step for a terminal: {step}"))
            });
            Step::WhenText(steps.collect::<Result<_>>()?)
        }
        "paste" => return habit(Habit::Brackets(on(rest)?)),
        "collapse" if rest == "never" => return habit(Habit::Collapse(None)),
        "collapse" => {
            let (lines, chars) = rest.split_once(' ').context("collapse LINES CHARACTERS|never")?;
            return habit(Habit::Collapse(Some((number(lines)?, number(chars)?))));
        }
        "early-enter" => {
            let (how, time) = rest.split_once(' ').context("early-enter dropped|newline SPAN")?;
            return habit(Habit::EarlyEnter(span(time)?, one_of(how, "newline", "dropped")?));
        }
        "deaf-enter" => return habit(Habit::DeafEnter(rest.parse().context("deaf-enter N")?)),
        "deaf-dialog" => return habit(Habit::DeafDialog(span(rest)?)),
        "vi" => return habit(Habit::Vi(on(rest)?)),
        "not-ready" => {
            let (how, time) = rest.split_once(' ').context("not-ready swallows|text SPAN")?;
            return habit(Habit::NotReady(span(time)?, one_of(how, "swallows", "text")?));
        }
        "confirm" => return habit(Habit::Confirms(on(rest)?)),
        "line-mode" => return habit(Habit::Lines(on(rest)?)),
        "lose" => {
            let (what, many) = rest.split_once(' ').context("lose head|tail CHARACTERS")?;
            let head = one_of(what, "head", "tail")?;
            return habit(if head { Habit::LoseHead(number(many)?) } else { Habit::LoseTail(number(many)?) });
        }
        "dialect" => {
            let claude = one_of(rest, "claude", "codex")?;
            return talk(Talk::Dialect(if claude { Dialect::Claude } else { Dialect::Codex }));
        }
        "conversation" => return talk(Talk::Id(text())),
        "turn-delay" => return talk(Talk::Delay(span(rest)?)),
        "turn" => {
            let (time, answer) = rest.split_once(' ').unwrap_or((rest, "done"));
            let time = if time == "held" { None } else { Some(span(time)?) };
            return talk(Talk::Turn(time, answer.to_owned()));
        }
        "takes" => return talk(Talk::Takes(one_of(rest, "text", "nothing")?)),
        "late-record" => return talk(Talk::Late(span(rest)?)),
        "transcript" => return talk(Talk::Transcript(on(rest)?)),
        "status" => return talk(Talk::Status(on(rest)?)),
        "hooks" => return talk(Talk::Hooks(hooks(rest)?)),
        "hook" => {
            let (event, fields) = rest.split_once(' ').unwrap_or((rest, "{}"));
            return talk(Talk::Hook(event.to_owned(), serde_json::from_str(fields)?));
        }
        "start" => return talk(Talk::Start(text())),
        "tool" | "agent-tool" => {
            let (name, input) = rest.split_once(' ').unwrap_or((rest, "{}"));
            let input = serde_json::from_str(input)?;
            return talk(Talk::Tool { name: name.to_owned(), input, agent: word == "agent-tool" });
        }
        "answer" => return talk(Talk::Answer(text())),
        "escape" => return talk(Talk::Escape),
        "clear" => return talk(Talk::Clear),
        "compact" => {
            let (time, new) = rest.split_once(' ').unwrap_or((rest, ""));
            let time = match time {
                "held" => None,
                "" => Some(Duration::ZERO),
                time => Some(span(time)?),
            };
            let new = !new.is_empty() && one_of(new, "new-id", "same-id")?;
            return talk(Talk::Compact(time, new));
        }
        "compacted" => return talk(Talk::Compacted),
        "resume" => return talk(Talk::Resume(text())),
        "end" => return talk(Talk::End(text())),
        _ => return Ok(None),
    }))
}

fn on(text: &str) -> Result<bool> {
    one_of(text, "on", "off")
}

fn one_of(text: &str, yes: &str, no: &str) -> Result<bool> {
    match text {
        _ if text == yes => Ok(true),
        _ if text == no => Ok(false),
        _ => bail!("{yes} or {no}, not {text:?}"),
    }
}

/// `DEFAULT TEXT | OPTION | OPTION ...`
fn dialog(text: &str, question: bool) -> Result<Dialog> {
    let (default, rest) = text.split_once(' ').context("DEFAULT TEXT | OPTION ...")?;
    let mut parts = rest.split(" | ").map(str::to_owned);
    let text = parts.next().unwrap_or_default();
    let options: Vec<String> = parts.collect();
    let marked = default.parse::<usize>().ok().and_then(|n| n.checked_sub(1)).filter(|n| *n < options.len());
    Ok(Dialog { question, text, options, marked: marked.context("the default is an option's number")? })
}

fn hooks(text: &str) -> Result<Hooks> {
    let words: Vec<&str> = text.split_whitespace().collect();
    Ok(match words[..] {
        ["on"] => Hooks::All,
        ["off"] => Hooks::None,
        ["dropped"] => Hooks::Dropped,
        ["missing", event] => Hooks::Missing(event.to_owned()),
        ["twice", event] => Hooks::Twice(event.to_owned()),
        ["swapped", one, other] => Hooks::Swapped(one.to_owned(), other.to_owned()),
        _ => bail!("hooks on|off|dropped|missing EVENT|twice EVENT|swapped EVENT EVENT"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_what_its_line_says() {
        let of = |line: &str| {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            parse(word, rest)
        };
        let dialog = Dialog {
            question: false,
            text: "Do it?".to_owned(),
            options: ["Yes", "No"].map(str::to_owned).into(),
            marked: 1,
        };
        let dialog = Step::Screen(Screen::Dialog(dialog));
        assert_eq!(of("dialog 2 Do it? | Yes | No").unwrap(), Some(dialog.clone()));
        assert_eq!(of("when text dialog 2 Do it? | Yes | No").unwrap(), Some(Step::WhenText(vec![dialog])));
        let turn = Talk::Turn(Some(Duration::from_secs(2)), "all done".to_owned());
        assert_eq!(of("turn 2s all done").unwrap(), Some(Step::Talk(turn)));
        assert_eq!(of("print x").unwrap(), None);
        for bad in [
            "dialog 3 Do it? | Yes | No",
            "dialog Do",
            "vi maybe",
            "hooks",
            "lose head",
            "when text sleep 1s",
        ] {
            assert!(of(bad).is_err(), "{bad}");
        }
    }
}
