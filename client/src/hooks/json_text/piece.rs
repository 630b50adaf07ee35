//! The little tree that is put into a settings file: rendered over lines or on one line, and compared with
//! what stands there already, whatever the order of keys and the spelling.

use std::fmt::Write as _;

use super::{Kind, Node, Style};

/// A JSON value with the order of its keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// A boolean.
    Bool(bool),
    /// A whole number.
    Number(u64),
    /// A string.
    String(String),
    /// An array.
    Array(Vec<Self>),
    /// An object.
    Object(Vec<(&'static str, Self)>),
}

impl Piece {
    /// Rendered for a place whose line is indented by `indent`; over lines, or on one.
    pub fn render(&self, style: &Style, indent: &str, one_line: bool) -> String {
        let mut out = String::new();
        self.write(&mut out, style, indent, one_line);
        out
    }

    fn write(&self, out: &mut String, style: &Style, indent: &str, one_line: bool) {
        match self {
            Self::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Self::Number(value) => write!(out, "{value}").expect("a string takes every write"),
            Self::String(value) => quote(out, value),
            Self::Array(items) => {
                let items = items.iter().map(|item| (None, item));
                write_container(out, style, indent, one_line, ('[', ']'), items);
            }
            Self::Object(members) => {
                let members = members.iter().map(|(key, value)| (Some(*key), value));
                write_container(out, style, indent, one_line, ('{', '}'), members);
            }
        }
    }

    /// Whether a node of a parsed text is this value.
    pub fn matches(&self, node: &Node) -> bool {
        match (self, &node.kind) {
            (Self::Bool(value), Kind::Bool(found)) => value == found,
            (Self::Number(value), Kind::Number(found)) => found.parse() == Ok(*value),
            (Self::String(value), Kind::String(found)) => value == found,
            (Self::Array(values), Kind::Array { items, .. }) => {
                values.len() == items.len()
                    && values.iter().zip(items).all(|(value, item)| value.matches(item))
            }
            (Self::Object(values), Kind::Object { members, .. }) => {
                values.len() == members.len()
                    && values
                        .iter()
                        .all(|(key, value)| node.member(key).is_some_and(|found| value.matches(found)))
            }
            _ => false,
        }
    }
}

fn write_container<'a>(
    out: &mut String,
    style: &Style,
    indent: &str,
    one_line: bool,
    (open, close): (char, char),
    items: impl Iterator<Item = (Option<&'a str>, &'a Piece)>,
) {
    let deeper = format!("{indent}{}", style.indent);
    let mut empty = true;
    out.push(open);
    for (key, item) in items {
        if !empty {
            out.push(',');
        }
        if !one_line {
            out.push_str(style.newline);
            out.push_str(&deeper);
        } else if !empty && style.blank_after_comma {
            out.push(' ');
        }
        empty = false;
        if let Some(key) = key {
            write_key(out, style, one_line, key);
        }
        item.write(out, style, &deeper, one_line);
    }
    if !empty && !one_line {
        out.push_str(style.newline);
        out.push_str(indent);
    }
    out.push(close);
}

/// A key with its colon.
pub(super) fn write_key(out: &mut String, style: &Style, one_line: bool, key: &str) {
    quote(out, key);
    out.push(':');
    if !one_line || style.blank_after_colon {
        out.push(' ');
    }
}

fn quote(out: &mut String, text: &str) {
    out.push_str(&serde_json::to_string(text).expect("a string is always JSON"));
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    fn sample() -> Piece {
        Piece::Object(vec![
            ("b", Piece::Array(vec![Piece::Number(1), Piece::Bool(true)])),
            ("a", Piece::String("q\"\n".to_owned())),
            ("e", Piece::Array(vec![])),
        ])
    }

    #[test]
    fn it_is_rendered_over_lines_and_on_one() {
        let mut style = Style::plain();
        let expected =
            "{\n    \"b\": [\n      1,\n      true\n    ],\n    \"a\": \"q\\\"\\n\",\n    \"e\": []\n  }";
        assert_eq!(sample().render(&style, "  ", false), expected);
        assert_eq!(sample().render(&style, "", true), "{\"b\": [1, true], \"a\": \"q\\\"\\n\", \"e\": []}");
        style.blank_after_colon = false;
        style.blank_after_comma = false;
        assert_eq!(sample().render(&style, "", true), "{\"b\":[1,true],\"a\":\"q\\\"\\n\",\"e\":[]}");
    }

    #[test]
    fn it_matches_its_value_and_no_other() {
        let is = |text: &str| sample().matches(&parse(text).unwrap().root.unwrap());
        assert!(is(r#"{"a":"q\u0022\n","e":[],"b":[1,true]}"#));
        for other in [
            r#"{"a":"q\"\n","e":[],"b":[1,false]}"#,
            r#"{"a":"q\"\n","e":[],"b":[2,true]}"#,
            r#"{"a":"q\"\n","e":[],"b":[1]}"#,
            r#"{"a":"q","e":[],"b":[1,true]}"#,
            r#"{"a":"q\"\n","b":[1,true]}"#,
            r#"{"a":"q\"\n","e":[],"b":[1,true],"c":1}"#,
            r#"{"a":"q\"\n","e":{},"b":[1,true]}"#,
        ] {
            assert!(!is(other), "{other}");
        }
    }
}
