//! Labels: the names that people and agents type for a session.

/// Most characters of a label.
pub const MAX: usize = 64;

/// Words that commands and selectors use and that are therefore no labels.
pub const RESERVED: [&str; 6] = ["all", "list", "cancel", "stream", "operator", "minder"];

/// Why a text is no label.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum BadLabel {
    /// Wrong characters or length.
    #[error("not a label: {0:?} (a-z, 0-9, '.', '_', '-'; at most 64; begins with a letter or digit)")]
    Shape(String),
    /// A state or a word of the command line.
    #[error("{0:?} is a word of minder's own and cannot be a label")]
    Reserved(String),
}

/// Checks a label that somebody gave.
pub fn check(text: &str) -> Result<(), BadLabel> {
    let shown = || text.chars().take(80).collect::<String>();
    let first = text.bytes().next();
    let begins = first.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let all = text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._-".contains(&b));
    if !begins || !all || text.len() > MAX {
        return Err(BadLabel::Shape(shown()));
    }
    if RESERVED.contains(&text) || text.parse::<crate::state::State>().is_ok() {
        return Err(BadLabel::Reserved(shown()));
    }
    // A full id as a label would shadow the session of that id.
    if text.parse::<crate::id::SessionId>().is_ok() {
        return Err(BadLabel::Shape(shown()));
    }
    Ok(())
}

/// Makes a label out of any text, for example a folder's name. Always valid.
pub fn from_text(text: &str) -> String {
    let mut label = String::new();
    for c in text.chars().flat_map(char::to_lowercase) {
        if label.len() >= MAX - 8 {
            break; // room for a `-12` that makes it unique
        }
        if c.is_ascii_lowercase() || c.is_ascii_digit() || (!label.is_empty() && matches!(c, '.' | '_' | '-'))
        {
            label.push(c);
        } else if !label.is_empty() && !label.ends_with('-') {
            label.push('-');
        }
    }
    let label = label.trim_end_matches(['-', '.']).to_owned();
    match check(&label) {
        Ok(()) => label,
        Err(_) if label.is_empty() => "session".to_owned(),
        Err(_) => format!("{label}-1"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_and_reserved_words() {
        for good in ["api", "api-2", "0", "a.b_c-d"] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for bad in
            ["", "-a", "A", "a b", "é", "state:x", "dir:x", &"a".repeat(65), "review", "all", "operator"]
        {
            assert!(check(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn any_text_gives_a_label() {
        assert_eq!(from_text("My Project (v2)"), "my-project-v2");
        assert_eq!(from_text("error"), "error-1");
        assert_eq!(from_text("日本"), "session");
        assert!(check(&from_text(&"x".repeat(300))).is_ok());
    }
}
