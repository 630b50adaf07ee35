//! Why a hand-back is one: a code for scripts, a line for the primary.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::bounds::CAUSE_MAX;
use crate::text::line_of;

/// What every line of the host's begins with.
pub const PREFIX: &str = "minder host: ";

macro_rules! codes {
    ($($name:ident = $code:literal, $doc:literal;)*) => {
        /// The code of a host line.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum Code {
            $(#[doc = $doc] #[serde(rename = $code)] $name,)*
        }

        impl Code {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The word in files and in `--json`.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $code,)* }
            }
        }
    };
}

codes! {
    Repeat = "repeat", "What was told is not acknowledged.";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One line of the host's in a hand-back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostLine {
    /// For scripts.
    pub code: Code,
    /// For the primary, without [`PREFIX`]; one line.
    pub text: String,
}

impl HostLine {
    /// A line with what somebody else may have written in it: one line, bounded, nothing in it that acts on a terminal.
    pub fn new(code: Code, text: &str) -> Self {
        Self { code, text: one_line(text) }
    }
}

impl fmt::Display for HostLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", self.text)
    }
}

/// Text of somebody else's in one line, bounded, nothing in it that acts on a terminal.
fn one_line(text: &str) -> String {
    line_of(text, CAUSE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_its_word_and_no_two_are_one() {
        let mut words: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
        for (code, word) in Code::ALL.iter().zip(&words) {
            assert_eq!(serde_json::to_value(code).unwrap(), *word);
        }
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), Code::ALL.len());
    }

    #[test]
    fn what_an_agent_wrote_is_one_bounded_line() {
        let line = HostLine::new(Code::Repeat, "a\nb\x1b[2J\u{9b}c");
        assert_eq!(line.to_string(), "minder host: a\\nb\\x1b[2J\\x9bc");
        let long = HostLine::new(Code::Repeat, &"ä".repeat(400)).text;
        assert!(long.len() <= CAUSE_MAX && long.ends_with("ä…"), "{}", long.len());
    }
}
