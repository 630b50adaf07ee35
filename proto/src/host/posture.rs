//! Whether the operator is there: `posture.json`, and what it was before, a line each in `postures.jsonl`.

use serde::{Deserialize, Serialize};

use super::bounds::WORDS_MAX;
use crate::id::Party;
use crate::stamp::Stamp;

/// Where the operator is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// At the primary.
    #[default]
    Attended,
    /// Somewhere else, and has said so.
    Away,
    /// There, and wants nothing routine.
    Quiet,
}

impl Mode {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Attended => "attended",
            Self::Away => "away",
            Self::Quiet => "quiet",
        }
    }

    /// True where the operator is not there.
    pub fn is_away(self) -> bool {
        self == Self::Away
    }
}

/// What happened in one window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Engine turns that were begun.
    pub turns: u64,
    /// Of these, those that handled their wake.
    pub handled: u64,
    /// Of these, those that did not.
    pub failed: u64,
    /// Errors of the engine.
    pub engine_errors: u64,
    /// What the turns cost, in micro-dollars.
    pub cost_microusd: u64,
    /// Turns whose cost is not known.
    pub cost_unknown: u64,
    /// Hand-backs to the primary.
    pub handbacks: u64,
}

/// `posture.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Posture {
    /// Grows with every change.
    pub version: u64,
    /// Where the operator is.
    pub mode: Mode,
    /// Since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entered: Option<Stamp>,
    /// Who said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entered_by: Option<Party>,
    /// When the operator meant to be back. Nothing follows from it but a word in the status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_return: Option<Stamp>,
    /// Most live children while nobody is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_sessions: Option<u32>,
    /// What happened since.
    #[serde(default)]
    pub counters: Counters,
    /// The operator came back, and no drain has shown yet what was meanwhile.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gate: bool,
    /// The newest outcome that the brief of the last return knew.
    #[serde(default)]
    pub horizon: u64,
    /// How long [`words`](Self::words) are, in bytes: words that were cut are no mandate.
    #[serde(default)]
    pub words_len: usize,
    /// What the operator said on leaving, verbatim. Last in the file.
    #[serde(default)]
    pub words: String,
}

/// A posture record that is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Damaged(pub &'static str);

impl Posture {
    /// Reads a record. One whose words are cut, or followed by anything, is damaged: a shortened mandate is none.
    pub fn read(text: &str) -> Result<Self, Damaged> {
        let posture: Self = serde_json::from_str(text).map_err(|_| Damaged("it is no posture record"))?;
        if posture.words.len() != posture.words_len || posture.words.len() > WORDS_MAX {
            return Err(Damaged("its words are cut or lengthened"));
        }
        Ok(posture)
    }

    /// The file's text.
    pub fn written(&self) -> String {
        serde_json::to_string(self).expect("a posture is plain data") + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_were_cut_or_lengthened_are_no_mandate() {
        let words = "Merge what is green.\n\n".to_owned();
        let posture = Posture { mode: Mode::Away, words_len: words.len(), words, ..Posture::default() };
        let text = posture.written();
        assert_eq!(Posture::read(&text).unwrap(), posture);
        for damaged in [
            text.replace("green.", "green"),
            text.replace("green.", "green, and all else."),
            text.replace('}', ",\"more\":1}"),
            text[..text.len() / 2].to_owned(),
            String::new(),
        ] {
            assert!(Posture::read(&damaged).is_err(), "{damaged}");
        }
    }
}
