//! What a check finds, what mends it, and how both are shown.

use minder_proto::text::{fold, one_line};
use serde::Serialize;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// As it should be.
    Ok,
    /// Worth knowing, and no fault.
    Note,
    /// Something to mend.
    Wrong,
}

/// What mends it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mend {
    /// The command, word by word; nothing where it is not one command.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub argv: Vec<String>,
    /// As a person reads it.
    pub text: String,
    /// Whether `--fix` runs it.
    pub fix: bool,
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The check.
    pub check: &'static str,
    /// How bad it is.
    pub level: Level,
    /// What was found, on one line.
    pub text: String,
    /// What mends it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mend: Option<Mend>,
}

impl Finding {
    /// As it should be.
    pub fn ok(check: &'static str, text: impl AsRef<str>) -> Self {
        Self { check, level: Level::Ok, text: one_line(text.as_ref()), mend: None }
    }

    /// Worth knowing.
    pub fn note(check: &'static str, text: impl AsRef<str>) -> Self {
        Self { level: Level::Note, ..Self::ok(check, text) }
    }

    /// Something to mend.
    pub fn wrong(check: &'static str, text: impl AsRef<str>) -> Self {
        Self { level: Level::Wrong, ..Self::ok(check, text) }
    }

    /// With the command that mends it, for a person to run.
    #[must_use]
    pub fn by_hand(self, argv: &[&str]) -> Self {
        self.with(argv, false)
    }

    /// With the command that mends it, which `--fix` runs.
    #[must_use]
    pub fn fixed_by(self, argv: &[&str]) -> Self {
        self.with(argv, true)
    }

    /// With what a person does about it that is not one command.
    #[must_use]
    pub fn told(self, text: impl AsRef<str>) -> Self {
        let mend = Mend { argv: Vec::new(), text: one_line(text.as_ref()), fix: false };
        Self { mend: Some(mend), ..self }
    }

    fn with(self, argv: &[&str], fix: bool) -> Self {
        let text = argv.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
        let argv = argv.iter().map(|word| (*word).to_owned()).collect();
        Self { mend: Some(Mend { argv, text, fix }), ..self }
    }

    /// Its lines.
    pub fn lines(&self, columns: Option<usize>) -> Vec<String> {
        const INDENT: usize = 19;
        let mark = match self.level {
            Level::Ok => "ok",
            Level::Note => "note",
            Level::Wrong => "WRONG",
        };
        let folded =
            |line: String| columns.map_or_else(|| line.clone(), |columns| fold(&line, INDENT, columns));
        let mut lines = vec![folded(format!("{mark:<6} {:<11} {}", self.check, self.text))];
        if let Some(mend) = &self.mend {
            lines.push(folded(format!("{:INDENT$}-> {}", "", mend.text)));
        }
        lines
    }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    one_line(&format!("'{}'", word.replace('\'', "'\\''")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_can_be_pasted_into_a_shell() {
        let mend = |argv: &[&str]| Finding::wrong("x", "y").by_hand(argv).mend.unwrap().text;
        assert_eq!(mend(&["chmod", "-R", "go=", "/home/ana/a b"]), "chmod -R go= '/home/ana/a b'");
        assert_eq!(mend(&["x", "it's", ""]), "x 'it'\\''s' ''");
    }
}
