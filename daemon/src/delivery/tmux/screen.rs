//! What a pane shows, from `capture-pane -p -e`: rows of characters, of which those that are faint are no text of
//! anybody's (a hint in an empty composer), and where the cursor is.

/// The screen of a pane.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Screen {
    /// From the top.
    pub rows: Vec<Row>,
    /// Column and row of the cursor, from 0.
    pub cursor: (usize, usize),
    /// True if the program shows it.
    pub cursor_shows: bool,
}

/// One row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Its characters, without the blanks at its end; every kind of blank is a space.
    pub text: String,
    /// The same with a space for each character that is faint.
    pub strong: String,
}

impl Row {
    /// True if nothing stands in it.
    pub fn is_blank(&self) -> bool {
        self.text.is_empty()
    }
}

impl Screen {
    /// A screen from what tmux captured.
    pub fn parse(captured: &str, cursor: (usize, usize), cursor_shows: bool) -> Self {
        let mut faint = false;
        let rows = captured.split('\n').map(|line| row(line, &mut faint)).collect();
        Self { rows, cursor, cursor_shows }
    }

    /// The row with this number; beyond the last there is nothing.
    pub fn row(&self, n: usize) -> &str {
        self.rows.get(n).map_or("", |row| &row.text)
    }

    /// The number of the last row in which something stands.
    pub fn last(&self) -> Option<usize> {
        self.rows.iter().rposition(|row| !row.is_blank())
    }
}

fn row(line: &str, faint: &mut bool) -> Row {
    let mut row = Row::default();
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        if c == '\u{1b}' {
            rest = sequence(rest, faint);
        } else if !c.is_control() {
            let c = if c.is_whitespace() { ' ' } else { c };
            row.text.push(c);
            row.strong.push(if *faint { ' ' } else { c });
        }
    }
    row.text.truncate(row.text.trim_end().len());
    row.strong.truncate(row.strong.trim_end().len());
    row
}

/// Reads what follows an escape; gives what is behind it.
fn sequence<'a>(rest: &'a str, faint: &mut bool) -> &'a str {
    if let Some(inside) = rest.strip_prefix('[') {
        let Some(end) = inside.find(|c: char| ('@'..='~').contains(&c)) else { return "" };
        if inside[end..].starts_with('m') {
            *faint = style(&inside[..end], *faint);
        }
        return &inside[end + 1..];
    }
    if let Some(inside) = rest.strip_prefix([']', 'P']) {
        // The address of a link, a title: up to its end.
        let ends = ["\u{1b}\\", "\u{7}"].into_iter().filter_map(|end| Some((inside.find(end)?, end.len())));
        return ends.min().map_or("", |(at, len)| &inside[at + len..]);
    }
    let mut chars = rest.chars();
    if chars.next().is_some_and(|c| "()*+ #%".contains(c)) {
        chars.next();
    }
    chars.as_str()
}

/// Whether text is faint after a change of style.
fn style(parameters: &str, mut faint: bool) -> bool {
    let mut numbers = parameters.split(';');
    while let Some(number) = numbers.next() {
        match number {
            "" | "0" | "22" => faint = false,
            "2" => faint = true,
            // A colour brings numbers of its own.
            "38" | "48" | "58" => match numbers.next() {
                Some("5") => drop(numbers.next()),
                Some("2") => drop(numbers.nth(2)),
                _ => {}
            },
            _ => {}
        }
    }
    faint
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_looks_that_matter_are_kept() {
        let captured = "\u{1b}[1m\u{203a}\u{1b}[0m\u{1b}[39m \u{1b}[2mAsk\u{1b}[22m me\u{1b}[0m  \n\
            \u{1b}[38;5;2ma\u{1b}[38;2;2;2;2mb\u{1b}[4:2mc\u{a0}\u{1b}]8;;http://x\u{1b}\\d\u{1b}]8;;\u{7}\u{1b}(Be \n\u{1b}[0;2mf\n\u{4f60}\u{1b}[mg\u{e}\u{1b}[";
        let screen = Screen::parse(captured, (2, 0), true);
        let texts: Vec<&str> = screen.rows.iter().map(|row| row.text.as_str()).collect();
        assert_eq!(texts, ["\u{203a} Ask me", "abc de", "f", "\u{4f60}g"]);
        let strong: Vec<&str> = screen.rows.iter().map(|row| row.strong.as_str()).collect();
        assert_eq!(strong, ["\u{203a}     me", "abc de", "", " g"]);
        assert_eq!((screen.last(), screen.row(9)), (Some(3), ""));
    }
}
