//! The screens of Codex 0.171.0. Its composer has no box: a sign, text, a blank row, what model and folder it is, and a row
//! of hints, which is the last of the screen. The cursor shows there and nowhere else.

use super::screen::{Row, Screen};
use super::sight::{Content, Sight, names_keys, without_composer};

/// What stands before a prompt, and before a command of the shell, which is a draft.
const SIGN: char = '\u{203a}';
const SHELL: char = '!';

/// Hints under a composer that has the keys.
const UNDER: [&str; 2] = ["\u{2190} for agents", "tab to queue message"];

const TRUST: [&str; 4] = ["Trust this folder?", "need review", "Sign in with", "Folder access"];

/// What a screen is.
pub fn see(screen: &Screen) -> Sight {
    composer(screen).unwrap_or_else(|| without_composer(screen, &TRUST))
}

fn composer(screen: &Screen) -> Option<Sight> {
    let (column, line) = screen.cursor;
    // The capture ends in a newline.
    let height = screen.rows.len() - usize::from(screen.rows.last().is_some_and(Row::is_blank));
    let hints = height.checked_sub(1)?;
    let status = height.checked_sub(2)?;
    let end = height.checked_sub(3)?;
    let is_sign = |n: &usize| screen.row(*n).starts_with([SIGN, SHELL]);
    let first = (0..=line.min(end)).rev().find(is_sign)?;
    let sound = screen.cursor_shows
        && line < end
        && column >= 2
        && screen.rows[end].is_blank()
        && screen.row(status).starts_with("  ")
        && screen.row(status).contains('\u{b7}')
        && !names_keys(screen.row(status), &[])
        && !names_keys(screen.row(hints), &UNDER)
        && !screen.row(hints).contains(" again to ");
    let rows = &screen.rows[first..end];
    if !sound || rows[1..].iter().any(|row| !row.is_blank() && !row.text.starts_with("  ")) {
        return None;
    }
    let text: Vec<Row> = rows.iter().map(without_margin).collect();
    let at = (line == first).then(|| column - 2);
    let content = if screen.row(first).starts_with(SHELL) {
        Content::Text(rows.iter().map(|row| row.text.clone()).collect())
    } else {
        Content::of(&text, at, "[Pasted Content ")
    };
    Some(Sight::Composer { content, busy: works(screen, first) })
}

/// True if one of the rows just above the composer says that a turn runs.
fn works(screen: &Screen, composer: usize) -> bool {
    let above = (0..composer).rev().map(|n| screen.row(n)).filter(|row| !row.is_empty());
    above
        .take(8)
        .any(|row| row.starts_with(['\u{2022}', '\u{25e6}']) && row.contains("s \u{2022} esc to interrupt)"))
}

/// A row without the sign or the blanks before it.
fn without_margin(row: &Row) -> Row {
    let cut = |text: &str| text.chars().skip(2).collect::<String>();
    Row { text: cut(&row.text), strong: cut(&row.strong) }
}
