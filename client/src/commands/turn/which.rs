//! Which turn a word means, from files alone: the folders of those that run or failed, and the logs.

use std::collections::BTreeSet;

use minder_proto::id::{MIN_PARTIAL, TurnId};
use minder_proto::layout::Home;
use minder_proto::turn::line::Line;

use crate::fault::CommandError;
use crate::turn_log;

/// A turn as the files show it.
pub struct Which {
    /// Its id.
    pub id: TurnId,
    /// Its line, once it has one.
    pub line: Option<Line>,
    /// Its folder is there.
    pub kept: bool,
}

/// The one turn that a word names.
pub fn one(home: &Home, word: &str) -> Result<Which, CommandError> {
    checked(word)?;
    let folder = home.turns().join("run");
    let kept: BTreeSet<TurnId> = std::fs::read_dir(&folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|id: &TurnId| id.ends_with(word))
        .collect();
    let logs = home.turn_logs()?;
    let mut lines = turn_log::named(&logs, word).map_err(|e| CommandError::io(logs.display(), &e))?;
    let all: BTreeSet<TurnId> = lines.keys().chain(&kept).copied().collect();
    match all.iter().collect::<Vec<_>>().as_slice() {
        [id] => Ok(Which { id: **id, line: lines.remove(id), kept: kept.contains(id) }),
        [] => Err(CommandError::not_found(format!("no turn {word}"))),
        several => {
            let ids: Vec<String> = several.iter().map(ToString::to_string).collect();
            let message = format!("{word} is the end of {} turns: {}", ids.len(), ids.join(", "));
            Err(CommandError::new("ambiguous", minder_proto::error::exit::USAGE, message))
        }
    }
}

/// Refuses what can be no id of a turn, before anybody is asked.
pub fn checked(word: &str) -> Result<(), CommandError> {
    let fits = word.len() >= MIN_PARTIAL && word.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
    if fits {
        Ok(())
    } else {
        Err(CommandError::usage(format!("not the id of a turn, nor its end: {word:?}")))
    }
}
