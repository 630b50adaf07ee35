//! How a file is written: its line ends, its indentation, whether it is all on one line. What is put in
//! follows it.

use super::{Document, Node};

/// The habits of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Style {
    /// `"\n"` or `"\r\n"`.
    pub newline: &'static str,
    /// One level of indentation.
    pub indent: String,
    /// The root has content and no line end: what is added goes on the same line.
    pub one_line: bool,
    /// On one line: a blank after a colon.
    pub blank_after_colon: bool,
    /// On one line: a blank after a comma.
    pub blank_after_comma: bool,
}

impl Style {
    /// The style of a new file.
    pub fn plain() -> Self {
        Self {
            newline: "\n",
            indent: "  ".to_owned(),
            one_line: false,
            blank_after_colon: true,
            blank_after_comma: true,
        }
    }

    /// Sees how a text is written.
    pub fn of(text: &str, document: &Document) -> Self {
        let mut style = Self::plain();
        if let Some(at) = text.find('\n')
            && text[..at].ends_with('\r')
        {
            style.newline = "\r\n";
        }
        let Some(root) = &document.root else { return style };
        let (items, commas) = root.contents();
        style.one_line = !items.is_empty() && !text[root.span.clone()].contains('\n');
        if let Some(indent) = unit(text, root) {
            indent.clone_into(&mut style.indent);
        }
        if let Some(member) = root.members().first() {
            let between = &text[member.span.start..member.value.span.start];
            style.blank_after_colon = between.ends_with([' ', '\t']);
        }
        // Without a comma to look at, a colon tells as well.
        style.blank_after_comma = match commas.first() {
            Some(comma) => text[comma + 1..].starts_with(' '),
            None => style.blank_after_colon,
        };
        style
    }
}

/// How much deeper the first item that starts a line stands than the line on which the root starts.
fn unit<'a>(text: &'a str, root: &Node) -> Option<&'a str> {
    let base = line_indent(text, root.span.start);
    let (items, _) = root.contents();
    let deep = items.iter().find_map(|item| own_line_indent(text, item.start))?;
    deep.strip_prefix(base).filter(|unit| !unit.is_empty())
}

/// The blanks at the start of the line that holds `at`.
pub fn line_indent(text: &str, at: usize) -> &str {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let line = &text[start..];
    let length = line.bytes().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    &line[..length]
}

/// The same, if `at` is the first thing on its line (and not on the first line of the text).
pub fn own_line_indent(text: &str, at: usize) -> Option<&str> {
    let start = text[..at].rfind('\n')? + 1;
    let before = &text[start..at];
    before.bytes().all(|byte| matches!(byte, b' ' | b'\t')).then_some(before)
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    fn style(text: &str) -> Style {
        Style::of(text, &parse(text).unwrap())
    }

    #[test]
    fn line_ends_and_indentation_are_seen() {
        let seen = style("{\r\n\t\"a\": 1\r\n}");
        assert_eq!((seen.newline, seen.indent.as_str(), seen.one_line), ("\r\n", "\t", false));
        assert_eq!(style("{\n    \"a\": 1\n}").indent, "    ");
        assert_eq!(style("// c\n   {\n      \"a\": 1\n   }").indent, "   ");
    }

    #[test]
    fn without_a_hint_it_is_two_blanks() {
        for text in ["", "{}", "{\n}", "{\n\"a\": 1\n}", "{\"a\": 1}"] {
            assert_eq!(style(text).indent, "  ", "{text:?}");
        }
    }

    #[test]
    fn one_line_files_are_told_apart() {
        assert!(!style("{}").one_line);
        assert!(!style("{}\n").one_line);
        let tight = style("{\"a\":1,\"b\":2}\n");
        assert!(tight.one_line && !tight.blank_after_colon && !tight.blank_after_comma);
        let loose = style("{\"a\": 1, \"b\": 2}");
        assert!(loose.one_line && loose.blank_after_colon && loose.blank_after_comma);
        assert!(!style("{\"a\":1}").blank_after_comma);
    }
}
