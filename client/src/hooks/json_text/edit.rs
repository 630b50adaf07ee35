//! Puts items into containers and cuts them out again. Putting in only ever adds bytes (and says which), so
//! that taking back is exact; cutting out undoes what putting in did, also where the file was edited
//! meanwhile, and never takes a comment with it.

use std::ops::Range;

use super::piece::write_key;
use super::style::{line_indent, own_line_indent};
use super::{Document, Node, Piece, Style};

/// A text to which bytes were added, and where they stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Added {
    text: String,
    ranges: Vec<Range<usize>>,
}

impl Added {
    /// A text with nothing added yet.
    pub fn new(text: &str) -> Self {
        Self { text: text.to_owned(), ranges: Vec::new() }
    }

    /// The text with all that was added.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text and the ranges of all that was added, in order, neighbours joined.
    pub fn into_parts(self) -> (String, Vec<Range<usize>>) {
        let mut joined: Vec<Range<usize>> = Vec::new();
        for range in self.ranges {
            match joined.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ => joined.push(range),
            }
        }
        (self.text, joined)
    }

    fn insert(&mut self, at: usize, addition: &str) {
        let length = addition.len();
        for range in &mut self.ranges {
            if range.start >= at {
                range.start += length;
                range.end += length;
            } else if range.end > at {
                range.end += length;
            }
        }
        self.text.insert_str(at, addition);
        // Inside an older addition it belongs to that one.
        if !self.ranges.iter().any(|range| range.start < at && at < range.end) {
            let place = self.ranges.partition_point(|range| range.start < at);
            self.ranges.insert(place, at..at + length);
        }
    }
}

/// What is put into a container.
#[derive(Debug, Clone, Copy)]
pub enum NewItem<'a> {
    /// An element of an array.
    Element(&'a Piece),
    /// A member of an object.
    Member(&'a str, &'a Piece),
}

impl NewItem<'_> {
    fn render(&self, style: &Style, indent: &str, one_line: bool) -> String {
        match self {
            Self::Element(piece) => piece.render(style, indent, one_line),
            Self::Member(key, piece) => {
                let mut out = String::new();
                write_key(&mut out, style, one_line, key);
                out + &piece.render(style, indent, one_line)
            }
        }
    }
}

/// Adds an item at the end of a container, written as its neighbours are. `container` is a node of the text
/// as it is now.
pub fn insert_item(added: &mut Added, container: &Node, style: &Style, item: NewItem<'_>) {
    let text = added.text();
    let (items, commas) = container.contents();
    let close = container.span.end - 1;
    let outer = line_indent(text, container.span.start).to_owned();
    let inner = format!("{outer}{}", style.indent);
    let newline = style.newline;

    let Some(last) = items.last() else {
        let start = container.span.start + 1;
        if style.one_line {
            let addition = item.render(style, "", true);
            added.insert(close, &addition);
        } else if ends_its_line(&text[start..close]) {
            let at = start + trim_blanks_end(&text[start..close]).len();
            let addition = format!("{newline}{inner}{}", item.render(style, &inner, false));
            added.insert(at, &addition);
        } else {
            let addition = format!("{newline}{inner}{}{newline}{outer}", item.render(style, &inner, false));
            added.insert(close, &addition);
        }
        return;
    };

    let trailing_comma = (commas.len() == items.len()).then(|| commas[commas.len() - 1]);
    let after = trailing_comma.map_or(last.end, |comma| comma + 1);
    let trivia = &text[after..close];
    let comments = trim_blanks_end(trivia).len();
    let neighbour = items.iter().rev().find_map(|item| own_line_indent(text, item.start));

    // The first where items have lines of their own, the second where a comment ends the line.
    let mut addition = if let Some(indent) = neighbour {
        format!("{newline}{indent}{}", item.render(style, indent, false))
    } else if comments > 0 && ends_its_line(trivia) {
        format!("{newline}{inner}{}", item.render(style, &inner, false))
    } else {
        let one_line = !text[container.span.clone()].contains('\n');
        let blank = if style.one_line && !style.blank_after_comma { "" } else { " " };
        let base = line_indent(text, last.end);
        format!("{blank}{}", item.render(style, base, one_line))
    };
    let comma_at = last.end;
    if trailing_comma.is_some() {
        addition.push(',');
    }
    added.insert(after + comments, &addition);
    if trailing_comma.is_none() {
        added.insert(comma_at, ",");
    }
}

/// Gives a text of blanks and comments its only value.
pub fn insert_root(added: &mut Added, document: &Document, style: &Style, piece: &Piece) {
    let text = added.text();
    let open_line = document.has_comments && !text.ends_with('\n');
    let before = if open_line { style.newline } else { "" };
    let addition = format!("{before}{}{}", piece.render(style, "", false), style.newline);
    added.insert(text.len(), &addition);
}

/// The text with the value of a node exchanged, written over as many lines as the old one was.
pub fn replace_item(text: &str, node: &Node, style: &Style, piece: &Piece) -> String {
    let one_line = !text[node.span.clone()].contains('\n');
    let new = piece.render(style, line_indent(text, node.span.end - 1), one_line);
    format!("{}{new}{}", &text[..node.span.start], &text[node.span.end..])
}

/// The text without one item of a container, its comma and the blanks before it.
pub fn remove_item(text: &str, container: &Node, index: usize) -> String {
    let (items, commas) = container.contents();
    let item = &items[index];
    let open = container.span.start + 1;
    let close = container.span.end - 1;
    let lead_start = if index == 0 { open } else { commas[index - 1] + 1 };
    let lead = &text[lead_start..item.start];
    let comments = trim_blanks_end(lead);
    let mut cut = lead_start + comments.len()..item.end;
    let mut other_comma = None;

    match commas.get(index) {
        Some(comma) if is_blank(&text[item.end..*comma]) => cut.end = comma + 1,
        Some(comma) => other_comma = Some(*comma),
        None => other_comma = index.checked_sub(1).map(|before| commas[before]),
    }
    if items.len() == 1 && is_blank(&text[open..cut.start]) && is_blank(&text[cut.end..close]) {
        cut = open..close;
    } else if !comments.is_empty() && !starts_with_line_end(&text[cut.end..]) {
        // The comment before may be one that needs its line end.
        if let Some(line_end) = text[cut.start..item.start].find('\n') {
            cut.start += line_end + 1;
        }
    } else if index == 0 && own_line_indent(text, item.start).is_none() {
        let rest = &text[cut.end..];
        let blanks = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        if !starts_with_line_end(rest) {
            cut.end += blanks;
        }
    }

    let mut ranges = vec![cut];
    if let Some(comma) = other_comma {
        ranges.push(comma..comma + 1);
    }
    ranges.sort_by_key(|range| range.start);
    without(text, &ranges).expect("the ranges of a parsed text are in order and on character borders")
}

/// The text without these ranges; nothing if they do not fit it.
pub fn without(text: &str, ranges: &[Range<usize>]) -> Option<String> {
    let mut left = String::with_capacity(text.len());
    let mut at = 0;
    for range in ranges {
        left.push_str(text.get(at..range.start)?);
        text.get(range.clone())?;
        at = range.end;
    }
    left.push_str(text.get(at..)?);
    Some(left)
}

/// Whether there is a line end in the blanks at the end of a trivia.
fn ends_its_line(trivia: &str) -> bool {
    trivia[trim_blanks_end(trivia).len()..].contains('\n')
}

fn trim_blanks_end(trivia: &str) -> &str {
    trivia.trim_end_matches([' ', '\t', '\r', '\n'])
}

fn is_blank(trivia: &str) -> bool {
    trim_blanks_end(trivia).is_empty()
}

fn starts_with_line_end(text: &str) -> bool {
    text.trim_start_matches([' ', '\t', '\r']).starts_with('\n')
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    fn root(text: &str) -> Node {
        parse(text).unwrap().root.unwrap()
    }

    /// Adds the element `7` to an array or the member `"k": 7` to an object, checks that cutting the added
    /// bytes and cutting the item both give the start, and returns the text with it.
    fn put(text: &str) -> String {
        let document = parse(text).unwrap();
        let container = document.root.clone().unwrap();
        let style = Style::of(text, &document);
        let piece = Piece::Number(7);
        let item = if container.is_array() { NewItem::Element(&piece) } else { NewItem::Member("k", &piece) };
        let mut added = Added::new(text);
        insert_item(&mut added, &container, &style, item);
        let (after, ranges) = added.into_parts();
        assert_eq!(without(&after, &ranges).as_deref(), Some(text));
        let (items, _) = container.contents();
        if !items.is_empty() {
            assert_eq!(remove_item(&after, &root(&after), items.len()), text, "{after}");
        }
        after
    }

    #[test]
    fn an_item_is_written_as_its_neighbours_are() {
        let cases = [
            ("[]", "[\n  7\n]"),
            ("{}", "{\n  \"k\": 7\n}"),
            ("[\n]", "[\n  7\n]"),
            ("[ ]", "[ \n  7\n]"),
            ("[\r\n]", "[\r\n  7\r\n]"),
            ("[ // none\n]", "[ // none\n  7\n]"),
            ("[ /* none */ ]", "[ /* none */ \n  7\n]"),
            ("[1]", "[1, 7]"),
            ("[1,2]", "[1,2,7]"),
            ("[1, 2,]", "[1, 2, 7,]"),
            ("[1 /* one */]", "[1, /* one */ 7]"),
            ("[1 // one\n]", "[1, // one\n  7\n]"),
            ("[1, // one\n]", "[1, // one\n  7,\n]"),
            ("[\n\t1\n]", "[\n\t1,\n\t7\n]"),
            ("[\n    1, 2 ]", "[\n    1, 2,\n    7 ]"),
            ("[\r\n 1,\r\n]", "[\r\n 1,\r\n 7,\r\n]"),
            ("[\n  1 // one\n  // more\n\n]", "[\n  1, // one\n  // more\n  7\n\n]"),
            ("[\n  1  \r\n]", "[\n  1,\n  7  \r\n]"),
            ("[\n\n]", "[\n  7\n\n]"),
            ("{\"a\":1}", "{\"a\":1,\"k\":7}"),
            ("{\"a\": 1}", "{\"a\": 1, \"k\": 7}"),
            ("{ \"a\": {\n  } }", "{ \"a\": {\n  }, \"k\": 7 }"),
            ("[{\n    \"a\": 1\n  }]", "[{\n    \"a\": 1\n  }, 7]"),
        ];
        for (text, expected) in cases {
            assert_eq!(put(text), expected, "{text:?}");
        }
    }

    #[test]
    fn items_that_share_brackets_lines_are_indented_as_their_line() {
        let text = "{\n    \"list\": [{\n        \"a\": 1\n    }]\n}";
        let document = parse(text).unwrap();
        let style = Style::of(text, &document);
        let root = document.root.unwrap();
        let piece = Piece::Object(vec![("b", Piece::Number(2))]);
        let mut added = Added::new(text);
        insert_item(&mut added, root.member("list").unwrap(), &style, NewItem::Element(&piece));
        let expected = "{\n    \"list\": [{\n        \"a\": 1\n    }, {\n        \"b\": 2\n    }]\n}";
        assert_eq!(added.text(), expected);
    }

    #[test]
    fn a_removed_item_leaves_comments_and_neighbours_alone() {
        let cases = [
            ("[7]", 0, "[]"),
            ("[ 7, ]", 0, "[]"),
            ("[\n  7\n]", 0, "[]"),
            ("[\n  // why\n  7\n]", 0, "[\n  // why\n]"),
            ("[ // why\n 7 ]", 0, "[ // why\n ]"),
            ("[7, 1]", 0, "[1]"),
            ("[7,\n 1]", 0, "[\n 1]"),
            ("[\n  7,\n  1\n]", 0, "[\n  1\n]"),
            ("[1, 7, 2]", 1, "[1, 2]"),
            ("[1, 7]", 1, "[1]"),
            ("[1, 7,]", 1, "[1,]"),
            ("[1, 7 /* x */, 2]", 1, "[1, /* x */ 2]"),
            ("[1, // one\n 7, 2]", 1, "[1, // one\n 2]"),
            ("[1, // one\n 7 // seven\n]", 1, "[1 // one\n // seven\n]"),
            ("[1 // one\n , 7]", 1, "[1 // one\n ]"),
            ("[1, /* a */ 7, 2]", 1, "[1, /* a */ 2]"),
        ];
        for (text, index, expected) in cases {
            let left = remove_item(text, &root(text), index);
            assert_eq!(left, expected, "{text:?}");
            assert!(parse(&left).is_ok());
        }
    }

    #[test]
    fn added_ranges_move_with_later_additions() {
        let mut added = Added::new("0123456789");
        added.insert(8, "bb");
        added.insert(2, "aaa");
        added.insert(3, "x");
        added.insert(2, "y");
        let (text, ranges) = added.into_parts();
        assert_eq!(text, "01yaxaa234567bb89");
        assert_eq!(ranges, vec![2..7, 13..15]);
        assert_eq!(without(&text, &ranges).unwrap(), "0123456789");
    }

    #[test]
    fn ranges_that_do_not_fit_cut_nothing() {
        assert_eq!(without("abc", std::slice::from_ref(&(2..9))), None);
        assert_eq!(without("abc", &[2..3, 0..1]), None);
        assert_eq!(without("aéc", std::slice::from_ref(&(1..2))), None);
    }

    #[test]
    fn a_replaced_item_keeps_its_place_and_its_lines() {
        let text =
            "{\n    \"a\": [\n        {\n            \"b\": 1\n        },\n        {\"b\": 1}\n    ]\n}";
        let document = parse(text).unwrap();
        let style = Style::of(text, &document);
        let list = document.root.as_ref().unwrap().member("a").unwrap();
        let piece = Piece::Object(vec![("b", Piece::Number(2))]);
        let after = replace_item(text, &list.items()[0], &style, &piece);
        assert_eq!(after, text.replacen('1', "2", 1));
        let after = replace_item(text, &list.items()[1], &style, &piece);
        assert_eq!(
            after,
            "{\n    \"a\": [\n        {\n            \"b\": 1\n        },\n        {\"b\": 2}\n    ]\n}"
        );
    }
}
