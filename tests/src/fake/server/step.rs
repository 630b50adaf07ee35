//! The steps of a script that concern the server: text to steps. `docs/fake.md` describes them.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::fake::run::script::span;

/// One of them.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Listens on this socket; on standard input where there is none.
    Serve(Option<PathBuf>),
    /// No connection comes to the socket any more; its file is gone.
    Unlink,
    /// A conversation that is loaded.
    Thread {
        id: String,
        folder: Option<String>,
    },
    /// Another conversation goes on in the place of this one, which accepts still.
    Fork {
        from: String,
        to: String,
    },
    Turn(Turns),
    Steers(Steers),
    /// What becomes of requests of a method.
    Answers {
        method: String,
        how: Answers,
    },
    /// Whether tools of all conversations are told the first one's id.
    Leak(bool),
    /// A command of the turn's, with the conversation's id in its environment.
    Tool {
        thread: String,
        command: String,
    },
    /// Whether somebody is asked for leave.
    Approval {
        thread: String,
        waits: bool,
    },
    /// The turn ends with this.
    Answer {
        thread: String,
        text: String,
    },
}

/// What becomes of a turn that is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turns {
    /// It lasts so long, without a time until it is told, and ends with this text.
    Lasts(Option<Duration>, String),
    /// It is accepted, and fails before it has taken anything.
    Dies,
}

/// What becomes of a text that steers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steers {
    /// It is taken with the next tool call, or at the end.
    Taken,
    /// It is accepted, and the turn ends without it.
    Lost,
    /// The turn ends just before it.
    Late,
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    AtOnce,
    Never,
    /// What it asks for is done at once, and said so much later.
    After(Duration),
}

/// The step that begins with this word, if it is one of these.
pub fn parse(word: &str, rest: &str) -> Result<Option<Step>> {
    let (first, then) = rest.split_once(' ').unwrap_or((rest, ""));
    let own = |text: &str| text.to_owned();
    Ok(Some(match (word, first) {
        ("serve", "stdio") => Step::Serve(None),
        ("serve", _) if !rest.is_empty() => Step::Serve(Some(PathBuf::from(rest))),
        ("server", "unlink") => Step::Unlink,
        ("server", "thread") => {
            let (id, folder) =
                then.split_once(' ').map_or((then, None), |(id, folder)| (id, Some(own(folder))));
            Step::Thread { id: own(id), folder }
        }
        ("server", "fork") => {
            let (from, to) = then.split_once(' ').context("server fork THREAD NEW")?;
            Step::Fork { from: own(from), to: own(to) }
        }
        ("server", "turn") => Step::Turn(match then.split_once(' ').unwrap_or((then, "done")) {
            ("dies", _) => Turns::Dies,
            ("held", text) => Turns::Lasts(None, own(text)),
            (time, text) => Turns::Lasts(Some(span(time)?), own(text)),
        }),
        ("server", "steers") => Step::Steers(match then {
            "taken" => Steers::Taken,
            "lost" => Steers::Lost,
            "late" => Steers::Late,
            _ => bail!("server steers taken|lost|late"),
        }),
        ("server", "answers") => {
            let (method, how) = then.split_once(' ').context("server answers METHOD at-once|never|SPAN")?;
            let how = match how {
                "at-once" => Answers::AtOnce,
                "never" => Answers::Never,
                time => Answers::After(span(time)?),
            };
            Step::Answers { method: own(method), how }
        }
        ("server", "leak") => Step::Leak(is_on(then)?),
        ("server", "tool") => {
            let (thread, command) = then.split_once(' ').context("server tool THREAD COMMAND")?;
            Step::Tool { thread: own(thread), command: own(command) }
        }
        ("server", "approval") => {
            let (thread, on) = then.split_once(' ').context("server approval THREAD on|off")?;
            Step::Approval { thread: own(thread), waits: is_on(on)? }
        }
        ("server", "answer") => {
            let (thread, text) = then.split_once(' ').context("server answer THREAD TEXT")?;
            Step::Answer { thread: own(thread), text: own(text) }
        }
        ("serve" | "server", _) => bail!("no such step of a server: {word} {rest}"),
        _ => return Ok(None),
    }))
}

fn is_on(text: &str) -> Result<bool> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => bail!("on or off, not {text:?}"),
    }
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
        let late = Answers::After(Duration::from_secs(2));
        let answers = Step::Answers { method: "turn/start".to_owned(), how: late };
        assert_eq!(of("server answers turn/start 2s").unwrap(), Some(answers));
        let turn = Step::Turn(Turns::Lasts(None, "all done".to_owned()));
        assert_eq!(of("server turn held all done").unwrap(), Some(turn));
        assert_eq!(of("serve /a b").unwrap(), Some(Step::Serve(Some(PathBuf::from("/a b")))));
        assert_eq!(of("print x").unwrap(), None);
        for bad in ["serve", "server", "server dance", "server steers", "server leak maybe", "server fork a"]
        {
            assert!(of(bad).is_err(), "{bad}");
        }
    }
}
