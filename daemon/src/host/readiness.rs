//! Whether the engine can take a batch at all, beside whether it may: the first part that is missing is the reason. While
//! the operator is there, what is missing is no news; while away, the primary is told.

use minder_proto::host::posture::Mode;
use minder_proto::host::reason::{Code, HostLine, Wake};
use minder_proto::stamp::Stamp;

use super::budget::Over;

/// What is known of the engine's program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    /// There is one, and it can be started.
    Ready,
    /// None is named, or the one that is cannot be used. With why.
    None(String),
    /// It is not there.
    Missing(String),
}

/// All that a turn needs, as it stands now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Means {
    /// The host is on.
    pub enabled: bool,
    /// The engine.
    pub program: Program,
    /// What the operator says to this primary is known to be recorded.
    pub mirror: bool,
    /// The primary's conversation is known.
    pub key: bool,
    /// Until when the engine is paused, and after how many errors.
    pub latched: Option<(Stamp, u32)>,
    /// Why its account is held, and until when.
    pub account: Option<(String, Option<Stamp>)>,
    /// Which limit is reached.
    pub budget: Option<Over>,
    /// A turn that begins now ends before the park does.
    pub fits: bool,
}

/// What follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// It can.
    Ready,
    /// The batch is the primary's, plainly. With the part that is missing, for the ledger.
    Plain(&'static str),
    /// The batch is the primary's, with this line.
    Told(HostLine),
    /// What is used up decides: by the configuration the primary is told, or the batch waits.
    Spent(HostLine, Stamp),
    /// The batch is the primary's, and then the park ends.
    Boundary,
}

/// Looks for the first part that is missing.
pub fn readiness(mode: Mode, means: &Means) -> Readiness {
    use Readiness::{Plain, Told};
    let away = mode.is_away();
    let line = |code, why: String| HostLine::not_taken(code, Wake::Away, &why);
    if !means.enabled {
        return Plain("off");
    }
    match &means.program {
        Program::Ready => {}
        _ if !away => return Plain("engine"),
        Program::None(why) => return Told(line(Code::EngineNone, format!("no usable engine ({why})"))),
        Program::Missing(name) => {
            return Told(line(Code::EngineMissing, format!("engine program {name} not found")));
        }
    }
    if !away && !means.mirror {
        return Plain("mirror");
    }
    if !means.key {
        return Plain("key");
    }
    if let Some((until, errors)) = means.latched {
        let why = format!("the engine is paused until {} after {errors} errors in a row", minute(until));
        return if away { Told(line(Code::Latched, why)) } else { Plain("latch") };
    }
    if let Some((why, until)) = &means.account {
        let until = until.map_or_else(|| "it is released".to_owned(), minute);
        let why = format!("the engine's account is on hold until {until} ({why})");
        return if away { Told(line(Code::AccountHold, why)) } else { Plain("account") };
    }
    if let Some(over) = means.budget {
        let what = match over {
            Over::Turns(_) => "turns",
            Over::Money(_) => "money",
        };
        let why = format!("engine budget used up until {} ({what})", minute(over.until()));
        let line = line(Code::Budget, why);
        return if away { Readiness::Spent(line, over.until()) } else { Plain("budget") };
    }
    if means.fits { Readiness::Ready } else { Readiness::Boundary }
}

/// `16:42`, in the local zone.
pub fn minute(at: Stamp) -> String {
    let mut clock = at.clock(false);
    clock.truncate(5);
    clock
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ready() -> Means {
        Means {
            enabled: true,
            program: Program::Ready,
            mirror: true,
            key: true,
            latched: None,
            account: None,
            budget: None,
            fits: true,
        }
    }

    fn said(mode: Mode, means: &Means) -> String {
        match readiness(mode, means) {
            Readiness::Ready => "ready".to_owned(),
            Readiness::Plain(part) => format!("plain: {part}"),
            Readiness::Told(line) => format!("{}: {}", line.code, line.text),
            Readiness::Spent(line, _) => format!("spent {}: {}", line.code, line.text),
            Readiness::Boundary => "boundary".to_owned(),
        }
    }

    /// 23.
    #[test]
    fn host23_each_part_that_is_missing_in_turn() {
        let at = Stamp::from_millis(0);
        let clock = minute(at);
        let could = "could not take this wake (away): ";
        type Break = fn(&mut Means);
        let parts: [(Break, &str, String); 9] = [
            (|m| m.fits = false, "boundary", "boundary".to_owned()),
            (
                |m| m.budget = Some(Over::Turns(Stamp::from_millis(0))),
                "plain: budget",
                format!("spent budget: {could}engine budget used up until {clock} (turns)"),
            ),
            (
                |m| m.account = Some(("limit reached".to_owned(), None)),
                "plain: account",
                format!(
                    "account-hold: {could}the engine's account is on hold until it is released (limit reached)"
                ),
            ),
            (
                |m| m.latched = Some((Stamp::from_millis(0), 2)),
                "plain: latch",
                format!("latched: {could}the engine is paused until {clock} after 2 errors in a row"),
            ),
            (|m| m.key = false, "plain: key", "plain: key".to_owned()),
            // Not asked while nobody is there to be recorded.
            (|m| m.mirror = false, "plain: mirror", "plain: key".to_owned()),
            (
                |m| m.program = Program::Missing("claude".to_owned()),
                "plain: engine",
                format!("engine-missing: {could}engine program claude not found"),
            ),
            (
                |m| m.program = Program::None("none is named".to_owned()),
                "plain: engine",
                format!("engine-none: {could}no usable engine (none is named)"),
            ),
            (|m| m.enabled = false, "plain: off", "plain: off".to_owned()),
        ];
        let mut means = ready();
        assert_eq!(said(Mode::Attended, &means), "ready");
        // Each is broken on top of those that are looked at later: the first one is the reason.
        for (break_it, attended, away) in parts {
            break_it(&mut means);
            assert_eq!(said(Mode::Attended, &means), attended);
            assert_eq!(said(Mode::Quiet, &means), attended);
            assert_eq!(said(Mode::Away, &means), away);
        }
    }
}
