//! What a screen is: one of the few things that matter to whoever would type into it. Each harness has its own rules,
//! made of screens that were recorded from it; what fits none of them is unknown, and nothing is typed there.

use super::screen::{Row, Screen};
use super::{claude, codex};

/// What a pane shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sight {
    /// The place where prompts are typed has the keys.
    Composer {
        /// What stands in it.
        content: Content,
        /// True if a turn is seen to run.
        busy: bool,
    },
    /// Something is asked: a permission, a question, a plan.
    Dialog,
    /// Whether a folder, a key, hooks are trusted, or who one is.
    Trust,
    /// A menu or a view that takes the keys.
    Panel,
    /// A usage limit asks what to do about it.
    Limit,
    /// None of these for certain.
    Unknown,
}

/// What stands in a composer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Nothing, or a hint.
    Empty,
    /// A paste that is shown by a word for it, alone: that word.
    Collapsed(String),
    /// Text, as rows.
    Text(Vec<String>),
}

/// What is known of a harness's terminal, beside its screens.
#[derive(Debug)]
pub struct Manner {
    /// Its name in records.
    pub harness: &'static str,
    /// The version whose screens were recorded.
    pub version: &'static str,
    /// Most characters that it takes as a prompt when they are pasted in one line; more become an attachment.
    pub whole: usize,
    see: fn(&Screen) -> Sight,
}

/// The harnesses whose screens are known.
pub static MANNERS: [Manner; 2] = [
    Manner { harness: "claude", version: "2.1.332", whole: 700, see: claude::see },
    Manner { harness: "codex", version: "0.171.0", whole: 900, see: codex::see },
];

impl Manner {
    /// That of a harness.
    pub fn of(harness: &str) -> Option<&'static Self> {
        MANNERS.iter().find(|manner| manner.harness == harness)
    }

    /// What a screen of it is.
    pub fn see(&self, screen: &Screen) -> Sight {
        (self.see)(screen)
    }
}

impl Content {
    /// The content of a composer's rows, the sign before them and their indentation taken away. `at` is the column of the
    /// cursor in the first row, where it stands there. `collapsed` is how the harness begins its word for a paste.
    pub fn of(rows: &[Row], at: Option<usize>, collapsed: &str) -> Self {
        let strong: Vec<&str> = rows.iter().map(|row| row.strong.trim_end()).collect();
        let all = |n: usize| rows[n].text.as_str();
        // The cursor stands on the first letter of a hint and lets it look like text.
        let hint = at == Some(0) && rows.len() == 1 && strong[0].chars().count() <= 1 && all(0) != strong[0];
        if hint || (at == Some(0) && strong.iter().all(|row| row.is_empty())) {
            return Self::Empty;
        }
        let text: Vec<String> = rows.iter().map(|row| row.text.clone()).collect();
        match text.as_slice() {
            [one] if one.starts_with(collapsed) && one.ends_with(']') && one.matches('[').count() == 1 => {
                Self::Collapsed(one.clone())
            }
            _ => Self::Text(text),
        }
    }

    /// True if this text stands there, all of it and nothing else. Where a row ends blanks may be missing.
    pub fn is(&self, text: &str) -> bool {
        let Self::Text(rows) = self else { return false };
        let mut rest = text.trim();
        for row in rows.iter().map(|row| row.trim()).filter(|row| !row.is_empty()) {
            let Some(behind) = rest.strip_prefix(row) else { return false };
            rest = behind.trim_start();
        }
        rest.is_empty()
    }
}

/// True if a row is made of hints for keys that mean that something else than a composer has them. `known` are those
/// that stand under a composer.
pub fn names_keys(row: &str, known: &[&str]) -> bool {
    const KEYS: [&str; 14] = [
        "enter ", "esc ", "space ", "tab ", "ctrl+", "shift+", "alt+", "press ", "\u{2191}", "\u{2193}",
        "\u{2190}", "\u{2192}", "y to ", "s to ",
    ];
    row.split('\u{b7}').map(|hint| hint.trim().to_lowercase()).any(|hint| {
        KEYS.iter().any(|key| hint.starts_with(key)) && !known.iter().any(|known| hint.starts_with(known))
    })
}

/// What a screen without a composer is, by how such screens look in every harness: options with numbers and hints for
/// keys. It matters to people only: nothing is typed into any of them.
pub fn without_composer(screen: &Screen, trust: &[&str]) -> Sight {
    let Some(last) = screen.last() else { return Sight::Unknown };
    let from = last.saturating_sub(20);
    let rows = || (from..=last).map(|n| screen.row(n).trim());
    let says = |word: &str| rows().any(|row| row.contains(word));
    let marked = |row: &str| {
        let option = row.strip_prefix(['\u{276f}', '\u{203a}', '>']).map(str::trim_start);
        option.is_some_and(|option| {
            option.split_once(". ").is_some_and(|(number, _)| number.parse::<u8>().is_ok())
        })
    };
    let options = rows().any(marked);
    // A composer that could not be made out has these.
    let hints = names_keys(screen.row(last), &["\u{2190} for agents", "esc to interrupt"]);
    if trust.iter().any(|word| says(word)) {
        return Sight::Trust;
    }
    let lower = |word: &str| rows().any(|row| row.to_lowercase().contains(word));
    if options && lower("limit") && lower("reset") {
        return Sight::Limit;
    }
    let closing = screen.row(last).to_lowercase();
    let answered = ["tab to amend", "enter to select", "confirm or esc to cancel"];
    if answered.iter().any(|word| closing.contains(word)) || (options && !hints) {
        return Sight::Dialog;
    }
    if hints { Sight::Panel } else { Sight::Unknown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_ours_only_where_all_of_it_stands_there_and_nothing_else() {
        let rows = |rows: &[&str]| Content::Text(rows.iter().map(ToString::to_string).collect());
        let text = "[minder] message 7be21c09 from x: do  it";
        assert!(rows(&[text]).is(text));
        assert!(rows(&["[minder] message", "7be21c09 from x: do", "it"]).is(text));
        assert!(
            rows(&["[minder] mess", "age 7be21c09 from x: do  it", ""]).is(text),
            "an empty line behind it"
        );
        for other in [
            &["[minder] message 7be21c09 from x: do it"][..],
            &["[minder] message 7be21c09 from x: do"],
            &["minder] message 7be21c09 from x: do  it"],
            &["dele[minder] message 7be21c09 from x: do  it"],
            &["[minder] message 7be21c09 from x: do  it", "dele"],
            &["[minder] message 7be21c09 from x: do  it dele"],
            &[""],
        ] {
            assert!(!rows(other).is(text), "{other:?}");
        }
        assert!(!Content::Empty.is(text) && !Content::Collapsed(text.to_owned()).is(text));
    }

    #[test]
    fn a_hint_is_no_text_and_a_letter_is() {
        let row = |text: &str, strong: &str| Row { text: text.to_owned(), strong: strong.to_owned() };
        let content = |row: Row, at| Content::of(&[row], at, "[Pasted ");
        assert_eq!(content(row("Ask me", ""), Some(0)), Content::Empty);
        assert_eq!(content(row("Press up", "P"), Some(0)), Content::Empty);
        assert_eq!(content(row("", ""), Some(0)), Content::Empty);
        for (text, at) in [("P", Some(1)), ("P", Some(0)), ("", Some(1)), ("Press up", None)] {
            let text = row(text, text);
            assert!(matches!(content(text.clone(), at), Content::Text(_)), "{text:?} {at:?}");
        }
        assert!(matches!(content(row("[Pasted text #1]", "[Pasted text #1]"), None), Content::Collapsed(_)));
        assert!(matches!(
            content(row("[Pasted text #1] x]", "[Pasted text #1] x]"), None),
            Content::Collapsed(_)
        ));
        assert!(matches!(content(row("a [Pasted text #1]", "a [Pasted text #1]"), None), Content::Text(_)));
    }
}
