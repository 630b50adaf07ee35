//! The screens of Claude Code 2.1.332. Its composer stands at the bottom between two rules, with a line below them that
//! says the mode; whatever asks or lists stands in its place.

use super::screen::{Row, Screen};
use super::sight::{Content, Sight, names_keys, without_composer};

/// What stands before a prompt, and before a command of the shell, which is a draft.
const SIGN: char = '\u{276f}';
const SHELL: char = '!';

/// Hints under a composer that has the keys.
const UNDER: [&str; 4] = ["esc to interrupt", "\u{2190} for agents", "shift+tab to cycle", "ctrl+t to"];

/// One of these is said under it.
const MODES: [&str; 9] = [
    "manual mode on",
    "accept edits on",
    "plan mode on",
    "auto mode on",
    "bypass permissions on",
    "? for shortcuts",
    "-- INSERT --",
    "-- NORMAL --",
    "! for shell mode",
];

/// Said for a moment, or about a draft: keys mean something else there.
const PASSING: [&str; 2] = ["again to exit", "again to clear"];

const TRUST: [&str; 4] =
    ["Accessing workspace:", "Detected a custom API key", "Select login method", "Choose the text style"];

/// What a screen is.
pub fn see(screen: &Screen) -> Sight {
    composer(screen).unwrap_or_else(|| without_composer(screen, &TRUST))
}

fn is_rule(row: &str) -> bool {
    row.chars().count() >= 20 && row.chars().all(|c| c == '\u{2500}')
}

fn composer(screen: &Screen) -> Option<Sight> {
    let last = screen.last()?;
    let below = (0..=last).rev().find(|n| is_rule(screen.row(*n)))?;
    let above = (0..below).rev().find(|n| is_rule(screen.row(*n)))?;
    let rows = &screen.rows[above + 1..below];
    let sign = rows.first()?.text.chars().next()?;
    let (column, line) = screen.cursor;
    if ![SIGN, SHELL].contains(&sign) || line <= above || line >= below || column < 2 {
        return None;
    }
    // Text goes on under itself.
    if rows[1..].iter().any(|row| !row.is_blank() && !row.text.starts_with("  ")) {
        return None;
    }
    let footer = || (below + 1..=last).map(|n| screen.row(n));
    let says = |words: &[&str]| footer().any(|row| words.iter().any(|word| row.contains(word)));
    if last - below > 4 || footer().any(|row| names_keys(row, &UNDER)) || says(&PASSING) {
        return None;
    }
    // What cannot be told from a menu by the line below it is not known.
    let collapsed = says(&["paste again to expand"]);
    if !says(&MODES) && !collapsed {
        return None;
    }
    let text: Vec<Row> = rows.iter().map(without_margin).collect();
    let at = (line == above + 1).then(|| column - 2);
    let content = if sign == SHELL {
        Content::Text(rows.iter().map(|row| row.text.clone()).collect())
    } else {
        Content::of(&text, at, "[Pasted text #")
    };
    Some(Sight::Composer { content, busy: says(&["esc to interrupt"]) })
}

/// A row without the sign or the blanks before it.
fn without_margin(row: &Row) -> Row {
    let cut = |text: &str| text.chars().skip(2).collect::<String>();
    Row { text: cut(&row.text), strong: cut(&row.strong) }
}
