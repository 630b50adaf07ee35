//! How a screen is drawn, in the look of a harness or in one that nobody has described. A look makes rows of what a
//! [`View`] holds; it decides nothing.

mod claude;
mod codex;
mod plain;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::composer::{Collapsed, Composer};

/// Whose screens these are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Look {
    Claude,
    Codex,
    #[default]
    Plain,
}

/// What the screen shows of all there is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Screen {
    Composer,
    Dialog(Dialog),
    /// Whether a folder is trusted; the default may be either.
    Trust {
        yes: bool,
    },
    /// A panel over everything.
    Panel,
    /// A usage limit is reached: its text.
    Limit(String),
    /// A screen that nobody has described.
    Unknown,
}

impl Screen {
    /// Its name in the record.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Composer => "composer",
            Self::Dialog(dialog) if dialog.question => "question",
            Self::Dialog(_) => "dialog",
            Self::Trust { .. } => "trust",
            Self::Panel => "panel",
            Self::Limit(_) => "limit",
            Self::Unknown => "unknown",
        }
    }
}

/// Options with numbers, one of which is marked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dialog {
    /// A question of the agent's instead of leave for a tool.
    pub question: bool,
    pub text: String,
    pub options: Vec<String>,
    pub marked: usize,
}

/// A line of the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    User(String),
    Agent(String),
    /// As it is.
    Text(String),
    Interrupted,
}

/// A turn that runs.
#[derive(Clone, Debug)]
pub struct Busy {
    /// What turns before the word.
    pub glyph: char,
    pub seconds: u64,
}

/// All that a look needs.
pub struct View<'a> {
    pub rows: usize,
    pub columns: usize,
    pub folder: &'a str,
    pub said: &'a [Said],
    pub queued: &'a [String],
    pub busy: Option<Busy>,
    pub screen: &'a Screen,
    pub composer: &'a Composer,
    /// Where vi's keys are on: whether they are commands now.
    pub normal: Option<bool>,
}

/// Rows, and where the cursor is: row and column from 0, and whether it shows.
#[derive(Clone, Debug, Default)]
pub struct Frame {
    pub rows: Vec<String>,
    pub cursor: (usize, usize, bool),
    pub title: String,
}

impl Look {
    pub fn frame(self, view: &View<'_>) -> Frame {
        match self {
            Self::Claude => claude::frame(view),
            Self::Codex => codex::frame(view),
            Self::Plain => plain::frame(view),
        }
    }

    /// How it shows a paste that it collapses.
    pub fn collapsed(self) -> Collapsed {
        match self {
            Self::Claude => claude::collapsed,
            Self::Codex => codex::collapsed,
            Self::Plain => plain::collapsed,
        }
    }

    /// What goes round while a turn runs.
    pub fn spinner(self) -> &'static str {
        match self {
            Self::Claude => "\u{b7}\u{2722}\u{2733}\u{2736}\u{273b}\u{273d}",
            Self::Codex => "\u{2022}\u{25e6}",
            Self::Plain => "|/-\\",
        }
    }
}

/// The bytes that put a frame on the terminal.
pub fn bytes(frame: &Frame, rows: usize) -> Vec<u8> {
    let mut out = String::from("\x1b[?2026h\x1b[?25l\x1b[H");
    for row in 0..rows {
        let text = frame.rows.get(row).map_or("", String::as_str);
        out.push_str(&format!("\x1b[{};1H\x1b[0m{text}\x1b[0m\x1b[K", row + 1));
    }
    let (row, column, shows) = frame.cursor;
    out.push_str(&format!("\x1b[{};{}H", row + 1, column + 1));
    out.push_str(if shows { "\x1b[?25h" } else { "" });
    out.push_str(&format!("\x1b]0;{}\x07\x1b[?2026l", frame.title));
    out.into_bytes()
}

/// `above` from the top, `below` down to the last row; of what is too much above, the end.
fn stack(above: Vec<String>, below: &[String], rows: usize) -> Vec<String> {
    let room = rows.saturating_sub(below.len());
    let mut all = above;
    if all.len() > room {
        all.drain(..all.len() - room);
    }
    all.resize(room, String::new());
    all.extend_from_slice(below);
    all
}

/// Lines of at most this width. Words stay whole where they can; the blank where a line breaks stays at its end.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for line in text.split('\n') {
        let mut row = String::new();
        let mut used = 0;
        for word in line.split_inclusive(' ') {
            let wide = word.trim_end_matches(' ').width();
            if used > 0 && used + wide > width {
                lines.push(std::mem::take(&mut row));
                used = 0;
            }
            for c in word.chars() {
                let wide = c.width().unwrap_or(0);
                if used + wide > width && c != ' ' {
                    lines.push(std::mem::take(&mut row));
                    used = 0;
                }
                row.push(if c.is_control() { ' ' } else { c });
                used += wide;
            }
        }
        lines.push(row);
    }
    lines
}

/// The end of what was wrapped, as the composer shows it, with the place of the cursor behind it.
fn typed(view: &View<'_>, collapsed: Collapsed, width: usize, most: usize) -> (Vec<String>, usize) {
    let mut shown = view.composer.shown(collapsed);
    // Of a text without measure only the end can be on the screen.
    let many = shown.chars().count();
    let room = most * width;
    if many > 2 * room {
        shown = shown.chars().skip(many - 2 * room).collect();
    }
    let mut lines = wrap(&shown, width);
    if lines.len() > most {
        lines.drain(..lines.len() - most);
    }
    let column = lines.last().map_or(0, |line| line.width());
    (lines, column)
}

/// Text of so many columns at most.
fn cut(text: &str, width: usize) -> String {
    let mut used = 0;
    let fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used <= width
    };
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take_while(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_whole_and_what_is_wider_than_a_row_is_broken() {
        assert_eq!(wrap("ab cd efghij", 5), ["ab cd ", "efghi", "j"]);
        assert_eq!(wrap("a\n\nb", 5), ["a", "", "b"]);
        assert_eq!(wrap("\u{4f60}\u{597d}\u{4f60}", 5), ["\u{4f60}\u{597d}", "\u{4f60}"]);
        assert_eq!(cut("\u{4f60}\u{597d}\u{4f60}\t", 5), "\u{4f60}\u{597d}");
    }
}
