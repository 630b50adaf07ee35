//! Reads JSON text with comments and trailing commas into nodes with spans. Everything else is as strict as
//! RFC 8259: what a strict reader would refuse is refused here with line and column, so that a file which
//! does not parse is never touched.

use super::{Document, Kind, Member, Node, position};

/// Deeper than this is no settings file.
const DEPTH_LIMIT: usize = 128;

/// Where a text stops being JSON, and how.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {what}")]
pub struct ParseError {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What was found or missed.
    pub what: String,
}

/// Parses the whole text.
pub fn parse(text: &str) -> Result<Document, ParseError> {
    let mut parser = Parser { text, at: 0, depth: 0, has_comments: false, has_trailing_commas: false };
    if text.starts_with('\u{feff}') {
        parser.at = '\u{feff}'.len_utf8();
    }
    parser.skip_trivia()?;
    let root = if parser.peek().is_some() { Some(parser.value()?) } else { None };
    parser.skip_trivia()?;
    match parser.peek() {
        None => Ok(Document {
            root,
            has_comments: parser.has_comments,
            has_trailing_commas: parser.has_trailing_commas,
        }),
        Some(_) => Err(parser.unexpected("the end of the file")),
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    has_comments: bool,
    has_trailing_commas: bool,
}

impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn error_at(&self, at: usize, what: impl Into<String>) -> ParseError {
        let (line, column) = position(self.text, at);
        ParseError { line, column, what: what.into() }
    }

    fn unexpected(&self, expected: &str) -> ParseError {
        let found = match self.text[self.at..].chars().next() {
            None => "the end of the file".to_owned(),
            Some(character) => format!("{character:?}"),
        };
        self.error_at(self.at, format!("expected {expected}, found {found}"))
    }

    /// Steps over blanks and comments.
    fn skip_trivia(&mut self) -> Result<(), ParseError> {
        loop {
            match self.peek() {
                Some(b' ' | b'\t' | b'\r' | b'\n') => self.at += 1,
                Some(b'/') => self.skip_comment()?,
                _ => return Ok(()),
            }
        }
    }

    fn skip_comment(&mut self) -> Result<(), ParseError> {
        let rest = &self.text[self.at..];
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if let Some(body) = rest.strip_prefix("/*") {
            let end = body.find("*/").ok_or_else(|| self.error_at(self.at, "this comment has no end"))?;
            end + "/**/".len()
        } else {
            return Err(self.unexpected("a value or a comment"));
        };
        self.has_comments = true;
        self.at += length;
        Ok(())
    }

    fn value(&mut self) -> Result<Node, ParseError> {
        let start = self.at;
        let kind = match self.peek() {
            Some(b'{') => self.nested(Self::object)?,
            Some(b'[') => self.nested(Self::array)?,
            Some(b'"') => Kind::String(self.string()?),
            Some(b'-' | b'0'..=b'9') => Kind::Number(self.number()?),
            Some(b't') => self.word("true", Kind::Bool(true))?,
            Some(b'f') => self.word("false", Kind::Bool(false))?,
            Some(b'n') => self.word("null", Kind::Null)?,
            _ => return Err(self.unexpected("a value")),
        };
        Ok(Node { span: start..self.at, kind })
    }

    fn nested(&mut self, read: fn(&mut Self) -> Result<Kind, ParseError>) -> Result<Kind, ParseError> {
        if self.depth == DEPTH_LIMIT {
            return Err(self.error_at(self.at, format!("more than {DEPTH_LIMIT} levels deep")));
        }
        self.depth += 1;
        self.at += 1;
        let kind = read(self)?;
        self.depth -= 1;
        Ok(kind)
    }

    fn object(&mut self) -> Result<Kind, ParseError> {
        let mut members = Vec::new();
        let mut commas = Vec::new();
        loop {
            self.skip_trivia()?;
            match self.peek() {
                Some(b'}') => {
                    self.has_trailing_commas |= !commas.is_empty();
                    break;
                }
                Some(b'"') => {}
                _ => return Err(self.unexpected("a key in double quotes or '}'")),
            }
            let start = self.at;
            let key = self.string()?;
            self.skip_trivia()?;
            if self.peek() != Some(b':') {
                return Err(self.unexpected("':'"));
            }
            self.at += 1;
            self.skip_trivia()?;
            let value = self.value()?;
            members.push(Member { key, span: start..self.at, value });
            if !self.comma(&mut commas, b'}')? {
                break;
            }
        }
        self.at += 1;
        Ok(Kind::Object { members, commas })
    }

    fn array(&mut self) -> Result<Kind, ParseError> {
        let mut items = Vec::new();
        let mut commas = Vec::new();
        loop {
            self.skip_trivia()?;
            if self.peek() == Some(b']') {
                self.has_trailing_commas |= !commas.is_empty();
                break;
            }
            items.push(self.value()?);
            if !self.comma(&mut commas, b']')? {
                break;
            }
        }
        self.at += 1;
        Ok(Kind::Array { items, commas })
    }

    /// After an item: true at a comma (which is noted), false at the closing bracket.
    fn comma(&mut self, commas: &mut Vec<usize>, close: u8) -> Result<bool, ParseError> {
        self.skip_trivia()?;
        match self.peek() {
            Some(b',') => {
                commas.push(self.at);
                self.at += 1;
                Ok(true)
            }
            Some(byte) if byte == close => Ok(false),
            _ => Err(self.unexpected(if close == b'}' { "',' or '}'" } else { "',' or ']'" })),
        }
    }

    fn word(&mut self, word: &str, kind: Kind) -> Result<Kind, ParseError> {
        let rest = &self.text[self.at..];
        let length = rest.bytes().take_while(u8::is_ascii_alphanumeric).count();
        if &rest[..length] != word {
            return Err(self.unexpected("a value"));
        }
        self.at += length;
        Ok(kind)
    }

    fn number(&mut self) -> Result<String, ParseError> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(self.text[start..self.at].to_owned())
    }

    fn digits(&mut self) -> Result<(), ParseError> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at == start { Err(self.unexpected("a digit")) } else { Ok(()) }
    }

    fn string(&mut self) -> Result<String, ParseError> {
        let start = self.at;
        self.at += 1;
        let mut decoded = String::new();
        loop {
            let Some(character) = self.text[self.at..].chars().next() else {
                return Err(self.error_at(start, "this string has no end"));
            };
            match character {
                '"' => {
                    self.at += 1;
                    return Ok(decoded);
                }
                '\\' => decoded.push(self.escape()?),
                '\u{0}'..='\u{1f}' => return Err(self.unexpected("'\"'")),
                _ => {
                    decoded.push(character);
                    self.at += character.len_utf8();
                }
            }
        }
    }

    fn escape(&mut self) -> Result<char, ParseError> {
        let start = self.at;
        self.at += 1;
        let decoded = match self.peek() {
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.at += 1;
                return self.unicode_escape(start);
            }
            _ => return Err(self.error_at(start, "no such escape in a string")),
        };
        self.at += 1;
        Ok(decoded)
    }

    /// The part after `\u`, and the second half of a surrogate pair where one follows.
    fn unicode_escape(&mut self, start: usize) -> Result<char, ParseError> {
        let first = self.four_hex(start)?;
        if !(0xd800..0xdc00).contains(&first) {
            return Ok(char::from_u32(first).unwrap_or('\u{fffd}'));
        }
        let after_first = self.at;
        if self.text[self.at..].starts_with("\\u") {
            self.at += 2;
            let second = self.four_hex(after_first)?;
            if (0xdc00..0xe000).contains(&second) {
                let joined = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                return Ok(char::from_u32(joined).unwrap_or('\u{fffd}'));
            }
            self.at = after_first;
        }
        Ok('\u{fffd}')
    }

    fn four_hex(&mut self, start: usize) -> Result<u32, ParseError> {
        let digits = self.text.as_bytes().get(self.at..self.at + 4).unwrap_or_default();
        let mut number = 0;
        for digit in digits {
            let Some(value) = char::from(*digit).to_digit(16) else {
                return Err(self.error_at(start, "\\u needs four hexadecimal digits"));
            };
            number = number * 16 + value;
        }
        if digits.len() != 4 {
            return Err(self.error_at(start, "\\u needs four hexadecimal digits"));
        }
        self.at += 4;
        Ok(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fails(text: &str) -> (usize, usize) {
        let error = parse(text).expect_err("is no JSON");
        (error.line, error.column)
    }

    #[test]
    fn comments_trailing_commas_and_a_byte_order_mark_are_read() {
        let text = "\u{feff}// head\r\n{ /* a */ \"a\" : [ 1, 2 , ], // tail\r\n \"b\":{\"c\":null,},\r\n}\r\n// end";
        let document = parse(text).unwrap();
        let root = document.root.unwrap();
        assert!(document.has_comments);
        let list = root.member("a").unwrap();
        assert_eq!(&text[list.span.clone()], "[ 1, 2 , ]");
        assert_eq!(list.items().len(), 2);
        let Kind::Array { commas, .. } = &list.kind else { panic!("is an array") };
        assert_eq!(commas.len(), 2);
        assert_eq!(root.member("b").unwrap().member("c").unwrap().kind, Kind::Null);
    }

    #[test]
    fn what_only_some_readers_take_is_seen() {
        let seen = |text: &str| {
            let document = parse(text).unwrap();
            (document.has_comments, document.has_trailing_commas)
        };
        for text in ["{}", "[1, {\"a\": [], \"b\": \"//,]\"}]", "\u{feff}{}", ""] {
            assert_eq!(seen(text), (false, false), "{text}");
        }
        for text in ["[1,]", "[{\"a\": 1, }]", "{\"a\": [1 ,\n]}"] {
            assert_eq!(seen(text), (false, true), "{text}");
        }
        for text in ["{} // c", "/**/", "[1, /* , */ 2]"] {
            assert_eq!(seen(text), (true, false), "{text}");
        }
    }

    #[test]
    fn of_duplicate_keys_the_last_counts_and_all_are_kept() {
        let root = parse(r#"{"a":1,"a":2}"#).unwrap().root.unwrap();
        assert_eq!(root.members().len(), 2);
        assert_eq!(root.member("a").unwrap().kind, Kind::Number("2".to_owned()));
    }

    #[test]
    fn escapes_are_decoded() {
        let root = parse(r#""a\"\\\/\b\f\n\r\tA\ud83d\ude00\ud83dx\ude00""#).unwrap().root.unwrap();
        assert_eq!(root.as_str(), Some("a\"\\/\u{8}\u{c}\n\r\tA😀\u{fffd}x\u{fffd}"));
        let root = parse(r#""\ud83dA""#).unwrap().root.unwrap();
        assert_eq!(root.as_str(), Some("\u{fffd}A"));
    }

    #[test]
    fn blank_texts_have_no_root() {
        for text in ["", " \r\n\t", "\u{feff}", "// only this", "/* and this */\n"] {
            assert_eq!(parse(text).unwrap().root, None, "{text:?}");
        }
    }

    #[test]
    fn what_is_no_json_is_refused_with_its_place() {
        let cases: &[(&str, (usize, usize))] = &[
            ("{", (1, 2)),
            ("{\n  \"a\": 1\n  \"b\": 2\n}", (3, 3)),
            ("{\"a\" 1}", (1, 6)),
            ("{'a': 1}", (1, 2)),
            ("{a: 1}", (1, 2)),
            ("[1,,2]", (1, 4)),
            ("[,]", (1, 2)),
            ("{,}", (1, 2)),
            ("[01]", (1, 3)),
            ("[1.]", (1, 4)),
            ("[.5]", (1, 2)),
            ("[1e]", (1, 4)),
            ("[+1]", (1, 2)),
            ("[-]", (1, 3)),
            ("[tru]", (1, 2)),
            ("[nulls]", (1, 2)),
            ("[NaN]", (1, 2)),
            ("\"open", (1, 1)),
            ("\"a\nb\"", (1, 3)),
            ("\"\\x\"", (1, 2)),
            ("\"\\u12g4\"", (1, 2)),
            ("\"\\u12", (1, 2)),
            ("{} {}", (1, 4)),
            ("{}\n/* open", (2, 1)),
            ("{} / {}", (1, 4)),
            ("\u{feff}é: {}", (1, 1)),
            ("{\"é\" x}", (1, 6)),
            ("{\u{a0}}", (1, 2)),
            ("\u{0}", (1, 1)),
            ("<<<<<<< HEAD\n{}", (1, 1)),
        ];
        for (text, place) in cases {
            assert_eq!(fails(text), *place, "{text:?}");
        }
    }

    #[test]
    fn a_well_of_brackets_is_refused_and_not_a_crash() {
        let text = "[".repeat(100_000);
        assert_eq!(fails(&text), (1, 129));
        let fits = format!("{}{}", "[".repeat(128), "]".repeat(128));
        assert!(parse(&fits).is_ok());
    }
}
