//! The script of `fake run`: text to steps. `docs/fake.md` is its description.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::sys::signal::Signal;

use crate::fake::{server, tui};

/// Which of the two outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    Stdout,
    Stderr,
}

/// What a child has of its parent's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Child {
    pub stdout: bool,
    pub stderr: bool,
    /// No environment at all.
    pub cleared: bool,
}

/// One step.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    Record(PathBuf),
    Control(PathBuf),
    Version(String),
    Title(String),
    Show,
    Note(String),
    ReadStdin,
    ReadFile(PathBuf),
    Echo,
    Write(To, Vec<u8>),
    /// So many bytes, without end where there is no number.
    Flood(To, Option<u64>),
    Line(u64),
    Sleep(Duration),
    Hang,
    Burn(Option<Duration>),
    Ignore(Vec<Signal>),
    On(Signal, Vec<Step>),
    Wait(String),
    Go(String),
    Repeat(Option<u64>, Duration, Vec<Step>),
    Exit(i32),
    Die(Signal),
    RemoveDirectory,
    Setsid,
    Group,
    /// The steps stay text: the child reads them.
    Spawn(Child, String),
    Breed(Duration),
    Hop(Duration),
    Tree,
    /// One that concerns the terminal.
    Tui(tui::Step),
    /// One that concerns the app-server.
    Server(server::Step),
}

/// The steps of a script file, one a line.
pub fn parse(text: &str) -> Result<Vec<Step>> {
    let mut steps = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_start();
        if !line.is_empty() && !line.starts_with('#') {
            steps.extend(list_of(line, false).with_context(|| format!("line {}: {line}", number + 1))?);
        }
    }
    Ok(steps)
}

/// Steps with `; ` between them. One that takes steps takes all that follow.
pub fn list(text: &str) -> Result<Vec<Step>> {
    list_of(text, true)
}

fn list_of(text: &str, several: bool) -> Result<Vec<Step>> {
    let mut steps = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let takes_steps =
            ["child", "parent", "on ", "repeat ", "when "].iter().any(|word| rest.starts_with(word));
        let (one, after) =
            if several && !takes_steps { rest.split_once("; ").unwrap_or((rest, "")) } else { (rest, "") };
        step(one, &mut steps)?;
        rest = after.trim_start();
    }
    Ok(steps)
}

fn step(text: &str, steps: &mut Vec<Step>) -> Result<()> {
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    let path = || PathBuf::from(rest);
    let raw = |to| Step::Write(to, format!("{rest}\n").into_bytes());
    steps.push(match word {
        "record" => Step::Record(path()),
        "control" => Step::Control(path()),
        "version" => Step::Version(rest.to_owned()),
        "title" => Step::Title(rest.to_owned()),
        "show" => Step::Show,
        "note" => Step::Note(rest.to_owned()),
        "read" if rest == "stdin" => Step::ReadStdin,
        "read" => Step::ReadFile(path()),
        "echo" => Step::Echo,
        "print" => raw(To::Stdout),
        "error" => raw(To::Stderr),
        "write" => Step::Write(To::Stdout, escaped(rest)?),
        "flood" => {
            let (many, to) = rest.split_once(' ').unwrap_or((rest, "stdout"));
            let to = if to == "stderr" { To::Stderr } else { To::Stdout };
            Step::Flood(to, if many == "endless" { None } else { Some(many.parse()?) })
        }
        "line" => Step::Line(rest.parse()?),
        "sleep" => Step::Sleep(span(rest)?),
        "hang" => Step::Hang,
        "burn" => Step::Burn(if rest.is_empty() { None } else { Some(span(rest)?) }),
        "ignore" => Step::Ignore(rest.split_whitespace().map(signal).collect::<Result<_>>()?),
        "on" => {
            let (name, then) = rest.split_once(' ').context("on SIGNAL STEPS")?;
            Step::On(signal(name)?, list(then)?)
        }
        "wait" => Step::Wait(rest.to_owned()),
        "go" => Step::Go(rest.to_owned()),
        "repeat" => {
            let mut words = rest.splitn(3, ' ');
            let (times, gap, then) = (words.next(), words.next(), words.next());
            let times = times.context("repeat N|forever GAP STEPS")?;
            let times = if times == "forever" { None } else { Some(times.parse()?) };
            Step::Repeat(times, span(gap.context("repeat N GAP STEPS")?)?, list(then.context("no steps")?)?)
        }
        "exit" => Step::Exit(if rest.is_empty() { 0 } else { rest.parse()? }),
        "die" => Step::Die(signal(rest)?),
        "remove-directory" => Step::RemoveDirectory,
        "setsid" => Step::Setsid,
        "group" => Step::Group,
        "child" | "parent" => {
            let (how, then) = rest.split_once(':').context("child [HOW...] : STEPS")?;
            let mut child = Child::default();
            for how in how.split_whitespace() {
                match how {
                    "holding-stdout" => child.stdout = true,
                    "holding-stderr" => child.stderr = true,
                    "cleared" => child.cleared = true,
                    _ => bail!("no such kind of child: {how}"),
                }
            }
            // Said now, where the script is read, and not by the child.
            list(then.trim_start())?;
            steps.push(Step::Spawn(child, then.trim_start().to_owned()));
            if word == "parent" {
                steps.push(Step::Hang);
            }
            return Ok(());
        }
        "breed" => Step::Breed(span(rest)?),
        "hop" => Step::Hop(span(rest)?),
        "tree" => Step::Tree,
        _ => match (tui::parse(word, rest)?, server::parse(word, rest)?) {
            (Some(step), _) => Step::Tui(step),
            (None, Some(step)) => Step::Server(step),
            (None, None) => bail!("no such step: {word}"),
        },
    });
    Ok(())
}

/// `250ms`, `2s`, or milliseconds.
pub fn span(text: &str) -> Result<Duration> {
    let bad = || format!("no span of time: {text:?}");
    let ms = if let Some(ms) = text.strip_suffix("ms") {
        ms.parse().with_context(bad)?
    } else if let Some(seconds) = text.strip_suffix('s') {
        seconds.parse::<u64>().with_context(bad)? * 1000
    } else {
        text.parse().with_context(bad)?
    };
    Ok(Duration::from_millis(ms))
}

fn signal(name: &str) -> Result<Signal> {
    Signal::from_str(&format!("SIG{name}")).with_context(|| format!("no such signal: {name}"))
}

/// `\n`, `\t`, `\\` and `\xHH`.
pub fn escaped(text: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next().context("a backslash at the end")? {
            b'n' => bytes.push(b'\n'),
            b't' => bytes.push(b'\t'),
            b'x' => {
                let digits: Vec<u8> = rest.by_ref().take(2).collect();
                bytes.push(u8::from_str_radix(std::str::from_utf8(&digits)?, 16)?);
            }
            other => bytes.push(other),
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_step_and_a_step_that_takes_steps_takes_the_rest() {
        let steps =
            parse("# what\n\nprint {\"a\": 1; 2}\n  sleep 2s\nchild : setsid; child cleared : hang\n");
        let nested = Step::Spawn(Child::default(), "setsid; child cleared : hang".to_owned());
        let print = Step::Write(To::Stdout, b"{\"a\": 1; 2}\n".to_vec());
        assert_eq!(steps.unwrap(), [print, Step::Sleep(Duration::from_secs(2)), nested]);
        let cleared = Child { cleared: true, ..Child::default() };
        let then = [Step::Setsid, Step::Spawn(cleared, "hang".to_owned())];
        assert_eq!(list("setsid; child cleared : hang").unwrap(), then);
        let on = Step::On(Signal::SIGTERM, vec![Step::Write(To::Stdout, b"late\n".to_vec()), Step::Exit(0)]);
        assert_eq!(parse("on TERM print late; exit 0").unwrap(), [on]);
        let write = Step::Write(To::Stdout, b"a\n\\\xff".to_vec());
        assert_eq!(parse(r"write a\n\\\xff").unwrap(), [write]);
    }

    #[test]
    fn what_is_no_step_is_an_error_with_its_line() {
        for bad in
            ["dance", "sleep long", "on TERM", "child hang", "child loud : hang", "child : dance", "die X"]
        {
            let error = format!("{:#}", parse(&format!("hang\n{bad}")).unwrap_err());
            assert!(error.starts_with(&format!("line 2: {bad}")), "{error}");
        }
    }
}
