//! What a run came to: from its typed records first, from its exit where there are none, and from its words only for
//! what kind of failure it is.

use jiff::ZonedDateTime;
use minder_proto::turn::folder::{Found, Purpose, Spec};
use minder_proto::turn::line::SignalName;
use minder_proto::turn::names::{Class, Failure, Trigger, is_silent};

use super::plan::{Commands, inside};
use super::reading::{Told, WORDS_MAX};
use super::record::records;
use super::refusal::{self, Refusal};
use super::{Adapter, Judged, Limit, Output, reset};

/// Longest line for people, in characters.
const WHY_MAX: usize = 300;

/// Reads what a run left. `now` is the clock and the zone in which a harness tells when a limit ends.
pub fn judge(
    adapter: &Adapter,
    spec: &Spec,
    found: &Found,
    output: &Output<'_>,
    now: &ZonedDateTime,
) -> Judged {
    match &adapter.commands {
        None => plain(found, output, now),
        Some(commands) => typed(commands, spec, found, output, now),
    }
}

/// A program of which nothing is known: its exit says whether it failed.
fn plain(found: &Found, output: &Output<'_>, now: &ZonedDateTime) -> Judged {
    let stderr = end_of(output.stderr);
    let stdout = end_of(if output.tail.is_empty() { output.head } else { output.tail });
    let reply = String::from_utf8_lossy(output.head);
    let reply = reply.trim();
    let empty = reply.is_empty() && output.tail.is_empty();
    let told = if exited_well(found) {
        // A refusal is no silence, and no answer, because the program that met it ended well.
        let on_stderr = refusal::in_text(&stderr).filter(|(refusal, _)| empty && refusal.is_upstreams());
        let all_of_it = || output.tail.is_empty() && refusal::is_all_of(reply);
        on_stderr.or_else(|| if all_of_it() { refusal::in_text(reply) } else { None })
    } else {
        refusal::in_text(&stderr).or_else(|| refusal::in_text(&stdout))
    };
    let mut judged = Judged { silent: output.tail.is_empty() && is_silent(output.head), ..Judged::default() };
    if exited_well(found) && told.is_none() {
        name_class(&mut judged, found, None);
        return judged;
    }
    judged.silent = false;
    let words =
        told.map(|(_, line)| line.to_owned()).or_else(|| last_line(&stderr)).or_else(|| last_line(&stdout));
    let told = Told { typed: told.map(|(refusal, _)| refusal), words, reset: None };
    fail(&mut judged, Failure::AdapterExit, found, told, now);
    judged
}

/// A harness whose records are known.
fn typed(
    commands: &Commands,
    spec: &Spec,
    found: &Found,
    output: &Output<'_>,
    now: &ZonedDateTime,
) -> Judged {
    let messages = match &spec.purpose {
        Purpose::Queue { messages } => messages.as_slice(),
        _ => &[],
    };
    let resumed = spec.heal.is_some() && found.attempts <= 1;
    let several = messages.len() > 1;
    let all = records(output, found.stdout_bytes);
    let read = commands.reading.read(&commands.stream, all, several, resumed);
    let mut judged = Judged {
        conversation: read.conversation,
        usage: read.usage,
        taken: read.taken.iter().filter_map(|id| inside(id, messages)).collect(),
        ..Judged::default()
    };
    let well = read.end == Some(true) && !(several && read.failed.is_some());
    // It says of every message that it has it, and nothing else.
    judged.repeated = exited_well(found)
        && !read.any
        && !messages.is_empty()
        && messages.iter().all(|id| judged.taken.contains(id));
    judged.silent = (well || judged.repeated) && is_silent(read.text.as_bytes());
    if well || !read.text.is_empty() {
        judged.text = Some(read.text);
    }
    if well || judged.repeated {
        name_class(&mut judged, found, None);
        return judged;
    }
    let stderr = end_of(output.stderr);
    let name = if read.failed.is_some() {
        Failure::AdapterResult
    } else if exited_well(found) {
        Failure::AdapterError
    } else {
        Failure::AdapterExit
    };
    // An end that went on is over, unless it was the end of one message of several.
    let told = read.trouble.or(read.failed).unwrap_or_default();
    let by_words = || told.words.as_deref().and_then(refusal::in_text);
    let refused = refusal::sharpened(told.typed, || by_words().map(|(refusal, _)| refusal));
    let on_stderr = refusal::in_text(&stderr).filter(|_| refused.is_none());
    let words = told.words.clone().or_else(|| on_stderr.map(|(_, line)| line.to_owned()));
    let told = Told {
        typed: refused.or_else(|| on_stderr.map(|(refusal, _)| refusal)),
        words: words.or_else(|| last_line(&stderr)),
        reset: told.reset,
    };
    fail(&mut judged, name, found, told, now);
    judged
}

fn exited_well(found: &Found) -> bool {
    found.exit_observed && found.exit_code == Some(0)
}

/// Names a failure and what is known of it.
fn fail(judged: &mut Judged, name: Failure, found: &Found, told: Told, now: &ZonedDateTime) {
    let refused = told.typed;
    judged.failure = Some(if found.trigger == Some(Trigger::Budget) {
        Failure::AdapterTimeout
    } else if refused.is_some_and(Refusal::is_upstreams) {
        Failure::UpstreamRefused
    } else {
        name
    });
    name_class(judged, found, refused);
    judged.login = refused == Some(Refusal::Login);
    judged.in_use = refused == Some(Refusal::InUse);
    if refused == Some(Refusal::Limit) {
        let said = || reset::find(told.words.as_deref()?, now);
        judged.limit = Some(Limit { reset: told.reset.and_then(reset::epoch).or_else(said) });
    }
    judged.why = told.words.as_deref().and_then(one_line).or_else(|| how_it_ended(judged, found));
}

/// The class of a run that failed, in whosever name.
fn name_class(judged: &mut Judged, found: &Found, refused: Option<Refusal>) {
    if judged.failure.is_some() || found.trigger.is_some() {
        judged.class = Some(refused.map_or(Class::Runtime, Refusal::class));
    }
}

fn how_it_ended(judged: &Judged, found: &Found) -> Option<String> {
    match (found.exit_code, found.signal) {
        (_, Some(signal)) => Some(format!("died of {}", SignalName::of(signal).as_str())),
        (Some(0), _) if judged.failure == Some(Failure::AdapterError) => {
            Some("ended without a result".to_owned())
        }
        (Some(code), _) => Some(format!("ended with code {code}")),
        _ => None,
    }
}

/// The last bytes of an output, from the beginning of a line where there is one.
fn end_of(bytes: &[u8]) -> String {
    let cut = bytes.len().saturating_sub(WORDS_MAX);
    let last = &bytes[cut..];
    let begin = if cut == 0 { 0 } else { last.iter().position(|b| *b == b'\n').map_or(0, |at| at + 1) };
    String::from_utf8_lossy(&last[begin..]).into_owned()
}

/// The last line that calls itself an error, or the last one at all.
fn last_line(text: &str) -> Option<String> {
    let lines = || text.lines().rev().filter(|line| !line.trim().is_empty());
    let is_error = |line: &&str| {
        let begin = super::sentence::uncoloured(line).trim_start().to_ascii_lowercase();
        begin.starts_with("error") || begin.starts_with("fatal")
    };
    lines().find(is_error).or_else(|| lines().next()).map(str::to_owned)
}

/// The first line of a text as one for people: nothing that acts on a terminal, not too long.
fn one_line(text: &str) -> Option<String> {
    let line = text.lines().find(|line| !line.trim().is_empty())?;
    let mut plain: String = super::sentence::uncoloured(line).chars().filter(|c| !c.is_control()).collect();
    if let Some((end, _)) = plain.char_indices().nth(WHY_MAX) {
        plain.truncate(end);
        plain.push('…');
    }
    let plain = plain.trim();
    (!plain.is_empty()).then(|| plain.to_owned())
}

#[cfg(test)]
mod tests;
