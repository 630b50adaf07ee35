//! The text of a message or a note: from `-` or `--stdin`, from `--body-file F`, or a short literal argument.
//! Its bytes are taken as they are. Standard input is read only where it was asked for.

use std::io::{self, Read};
use std::path::PathBuf;

use clap::Args;

use crate::fault::CommandError;

/// The two ways to give a text that are options.
#[derive(Args, Clone, Debug, Default)]
pub struct TextOptions {
    /// Read the text from standard input; the same as -
    #[arg(long)]
    pub stdin: bool,
    /// Read the text from a file
    #[arg(long, value_name = "FILE")]
    pub body_file: Option<PathBuf>,
}

impl TextOptions {
    /// True if an option gives the text.
    pub fn is_given(&self) -> bool {
        self.stdin || self.body_file.is_some()
    }

    /// The text, if one was given: `literal` is the argument, where `-` means standard input. `what` names it
    /// in errors (`the text`, `the note`), `limit` is in bytes.
    pub fn read(
        &self,
        literal: Option<&str>,
        what: &str,
        limit: usize,
    ) -> Result<Option<String>, CommandError> {
        let is_dash = |text: &std::ffi::OsStr| text == "-";
        let dash = literal.is_some_and(|l| is_dash(l.as_ref()));
        let literal = literal.filter(|_| !dash);
        let file = self.body_file.as_ref().filter(|f| !is_dash(f.as_os_str()));
        let stdin = dash || self.stdin || (file.is_none() && self.body_file.is_some());
        let forms = [stdin, file.is_some(), literal.is_some()];
        if forms.iter().filter(|given| **given).count() > 1 {
            return Err(CommandError::usage(format!(
                "{what} is given twice: take one of -, --body-file or an argument"
            )));
        }
        if stdin {
            return bytes(io::stdin().lock(), "standard input", what, limit).map(Some);
        }
        match (file, literal) {
            (Some(path), _) => {
                let name = path.display().to_string();
                let file = std::fs::File::open(path).map_err(|e| CommandError::io(&name, &e))?;
                bytes(file, &name, what, limit).map(Some)
            }
            (None, Some(text)) => checked(text.as_bytes().to_vec(), what, limit).map(Some),
            (None, None) => Ok(None),
        }
    }
}

/// A note as it is declared: the newline that a here-document ends with is not part of it, and an empty note is
/// none.
pub fn note(text: Option<String>) -> Option<String> {
    let text = text?;
    let text = text.trim_end_matches(['\n', '\r']);
    (!text.trim().is_empty()).then(|| text.to_owned())
}

fn bytes(from: impl Read, name: &str, what: &str, limit: usize) -> Result<String, CommandError> {
    let mut bytes = Vec::new();
    from.take(limit as u64 + 1).read_to_end(&mut bytes).map_err(|e| CommandError::io(name, &e))?;
    checked(bytes, what, limit)
}

/// What can be stored and shown again as it came: UTF-8 without NUL, within the limit.
fn checked(bytes: Vec<u8>, what: &str, limit: usize) -> Result<String, CommandError> {
    if bytes.len() > limit {
        return Err(CommandError::data(format!("{what} is longer than {} ({limit} bytes)", size(limit))));
    }
    if let Some(at) = bytes.iter().position(|b| *b == 0) {
        return Err(CommandError::data(format!("{what} holds a NUL byte, at byte {at}")));
    }
    String::from_utf8(bytes).map_err(|e| {
        CommandError::data(format!("{what} is not UTF-8, at byte {}", e.utf8_error().valid_up_to()))
    })
}

/// A limit in words.
fn size(bytes: usize) -> String {
    if bytes.is_multiple_of(1024) { format!("{} KiB", bytes / 1024) } else { format!("{bytes} bytes") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_comes_one_way_only() {
        let options = TextOptions { body_file: Some("x".into()), ..TextOptions::default() };
        for literal in ["-", "text"] {
            assert_eq!(options.read(Some(literal), "the text", 9).unwrap_err().exit, 64);
        }
        let stdin = TextOptions { stdin: true, ..TextOptions::default() };
        assert_eq!(stdin.read(Some("text"), "the text", 9).unwrap_err().exit, 64);
        assert_eq!(TextOptions::default().read(None, "the text", 9).unwrap(), None);
        assert_eq!(TextOptions::default().read(Some("text"), "x", 9).unwrap().as_deref(), Some("text"));
    }

    #[test]
    fn bytes_are_kept_and_what_cannot_be_kept_is_broken_data() {
        let odd = "`a` $(b) ! ' \" \t\n\n no end";
        assert_eq!(bytes(odd.as_bytes(), "f", "the text", 100).unwrap(), odd);
        for (bad, says) in [
            (&b"a\0b"[..], "a NUL byte, at byte 1"),
            (&b"ab\xff"[..], "not UTF-8, at byte 2"),
            (&b"12345678901"[..], "longer than 10 bytes"),
        ] {
            let error = bytes(bad, "f", "the text", 10).unwrap_err();
            assert_eq!(error.exit, 65);
            assert!(error.message.contains(says), "{}", error.message);
        }
        assert!(checked(vec![b'x'; 4097], "the note", 4096).unwrap_err().message.contains("4 KiB"));
    }
}
