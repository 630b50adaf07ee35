//! A JSON text that is changed without being rewritten.
//!
//! Settings files belong to people: they have comments, trailing commas, their own indentation, CRLF, a
//! byte order mark. So the text is parsed into nodes that know their span, and a change is a few bytes put
//! in or cut out; everything else stays as it was. `parse` reads, `edit` puts in and cuts out, `style` sees
//! how the file is written, `piece` is the small tree that is rendered into it.

mod edit;
mod parse;
mod piece;
mod style;

use std::ops::Range;

pub use edit::{Added, NewItem, insert_item, insert_root, remove_item, replace_item, without};
pub use parse::{ParseError, parse};
pub use piece::Piece;
pub use style::Style;

/// A parsed text: its only value, or none where it holds nothing but blanks and comments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// The value, if there is one.
    pub root: Option<Node>,
    /// Whether the text has a comment anywhere.
    pub has_comments: bool,
    /// Whether a container has a comma behind its last item.
    pub has_trailing_commas: bool,
}

/// One value and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Byte range of the value in the text.
    pub span: Range<usize>,
    /// What it is.
    pub kind: Kind,
}

/// The kinds of JSON values. Containers keep the place of every comma, to tell a trailing one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// A number, as it is spelt.
    Number(String),
    /// A string, decoded; a lone surrogate is U+FFFD.
    String(String),
    /// An array.
    Array { items: Vec<Node>, commas: Vec<usize> },
    /// An object, with duplicate keys where the text has them.
    Object { members: Vec<Member>, commas: Vec<usize> },
}

/// One member of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The decoded key.
    pub key: String,
    /// From the first quote of the key to the end of the value.
    pub span: Range<usize>,
    /// The value.
    pub value: Node,
}

impl Node {
    /// The members of an object; nothing for another kind.
    pub fn members(&self) -> &[Member] {
        match &self.kind {
            Kind::Object { members, .. } => members,
            _ => &[],
        }
    }

    /// The elements of an array; nothing for another kind.
    pub fn items(&self) -> &[Node] {
        match &self.kind {
            Kind::Array { items, .. } => items,
            _ => &[],
        }
    }

    /// The member that counts under this key: of duplicates the last one, as in every JSON reader in use.
    pub fn member(&self, key: &str) -> Option<&Node> {
        self.members().iter().rev().find(|member| member.key == key).map(|member| &member.value)
    }

    /// Whether it is an object.
    pub fn is_object(&self) -> bool {
        matches!(self.kind, Kind::Object { .. })
    }

    /// Whether it is an array.
    pub fn is_array(&self) -> bool {
        matches!(self.kind, Kind::Array { .. })
    }

    /// The text of a string value.
    pub fn as_str(&self) -> Option<&str> {
        match &self.kind {
            Kind::String(text) => Some(text),
            _ => None,
        }
    }

    /// What stands in a container, as spans: members or elements, and the commas. A scalar has neither.
    fn contents(&self) -> (Vec<Range<usize>>, &[usize]) {
        match &self.kind {
            Kind::Array { items, commas } => (items.iter().map(|item| item.span.clone()).collect(), commas),
            Kind::Object { members, commas } => {
                (members.iter().map(|member| member.span.clone()).collect(), commas)
            }
            _ => (Vec::new(), &[]),
        }
    }
}

/// Line and column (both from 1, the column in characters) of a byte offset.
pub fn position(text: &str, at: usize) -> (usize, usize) {
    let before = &text[..at];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let column = before[line_start..].trim_start_matches('\u{feff}').chars().count() + 1;
    (before.matches('\n').count() + 1, column)
}
