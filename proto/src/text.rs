//! Text that came from somebody else, made safe for a terminal and for one line.

use unicode_width::UnicodeWidthChar;

/// True for a character that moves a cursor, hides text, reorders it or starts an escape sequence.
fn is_hostile(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

fn push_escaped(out: &mut String, c: char) {
    match c {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        c if (c as u32) < 0x100 => out.push_str(&format!("\\x{:02x}", c as u32)),
        c => out.push_str(&format!("\\u{{{:x}}}", c as u32)),
    }
}

/// `text` on one line, with everything that could act on a terminal shown as an escape.
pub fn one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.trim_end_matches(['\n', '\r']).chars() {
        if is_hostile(c) { push_escaped(&mut out, c) } else { out.push(c) }
    }
    out
}

/// `text` over its own lines, with everything else that could act on a terminal shown as an escape.
pub fn block(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hostile(c) && c != '\n' && c != '\t' { push_escaped(&mut out, c) } else { out.push(c) }
    }
    out
}

/// The beginning of `text` that is at most `bytes` long, cut at a whole character.
pub fn cut(text: &str, bytes: usize) -> &str {
    let end = (0..=bytes.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or(0)]
}

/// `text` on one line of at most `bytes`, the last character an ellipsis where something was cut.
pub fn line_of(text: &str, bytes: usize) -> String {
    const MARK: char = '…';
    let line = one_line(text.trim());
    if line.len() <= bytes {
        return line;
    }
    let mut line = cut(&line, bytes.saturating_sub(MARK.len_utf8())).to_owned();
    line.push(MARK);
    line
}

/// Columns that `text` takes on a terminal.
pub fn width(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// `text` cut at a whole character to at most `columns`, the last one an ellipsis where something was cut.
pub fn fit(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 0;
    for c in text.chars() {
        let w = c.width().unwrap_or(0);
        if used + w + 1 > columns {
            break;
        }
        used += w;
        out.push(c);
    }
    if columns > 0 {
        out.push('…');
    }
    out
}

/// `text`, one line, folded between words into rows of at most `columns`, the later ones indented. A word that is longer
/// than a row, a path say, stays whole.
pub fn fold(text: &str, indent: usize, columns: usize) -> String {
    let mut out = String::new();
    let mut used = 0;
    for piece in text.split_inclusive(' ') {
        if used > indent && used + width(piece.trim_end()) > columns {
            out.truncate(out.trim_end().len());
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            used = indent;
        }
        out.push_str(piece);
        used += width(piece);
    }
    out
}

/// Columns of a title within a line: the first prompt of a conversation can be one.
pub const TITLE_COLUMNS: usize = 40;

/// A session in a line: its title, cut, and in parentheses what can be typed for it: its label, where that is not the
/// title, and `more`.
pub fn named(title: &str, label: &str, more: Option<&str>) -> String {
    let label = (title != label).then_some(label);
    let typed: Vec<&str> = label.into_iter().chain(more).collect();
    let title = fit(&one_line(title), TITLE_COLUMNS);
    if typed.is_empty() { title } else { format!("{title} ({})", typed.join(", ")) }
}

/// The first line of a text that has anything on it, trimmed.
pub fn first_line(text: &str) -> &str {
    text.lines().map(str::trim).find(|l| !l.is_empty()).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_acts_on_a_terminal_gets_through() {
        let evil = "a\x1b[31m\x07\r\n\u{9b}2J\u{2028}\u{202e}\0\u{200b}é日🙂";
        let shown = one_line(evil);
        assert!(shown.chars().all(|c| !is_hostile(c)), "{shown}");
        assert!(shown.contains("\\x1b[31m") && shown.ends_with("é日🙂"));
        assert_eq!(block("a\nb\x1b"), "a\nb\\x1b");
    }

    #[test]
    fn columns_are_cut_at_whole_characters() {
        assert_eq!(fit("日本語", 6), "日本語");
        assert_eq!(fit("日本語", 5), "日本…");
        assert_eq!(fit("日本語", 4), "日…");
        assert_eq!(fit("abc", 0), "");
    }

    #[test]
    fn a_long_line_is_folded_between_words() {
        assert_eq!(fold("for you   start it", 10, 80), "for you   start it");
        assert_eq!(
            fold("for you   start it in any terminal", 10, 22),
            "for you   start it in\n          any terminal"
        );
        assert_eq!(
            fold("hooks     /a/path/that/is/long: done", 10, 20),
            "hooks     /a/path/that/is/long:\n          done"
        );
    }

    #[test]
    fn what_can_be_typed_stands_beside_a_title() {
        assert_eq!(named("api", "api", None), "api");
        assert_eq!(named("api", "api", Some("5f1c2d4a")), "api (5f1c2d4a)");
        assert_eq!(named("api worker", "api", Some("5f1c2d4a")), "api worker (api, 5f1c2d4a)");
        let prompt = "Rework the login so that a session that ends says why it did\x1b[2J";
        assert_eq!(named(prompt, "web", None), "Rework the login so that a session that… (web)");
    }
}
