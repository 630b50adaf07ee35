//! A scanner of one line of JSON that keeps nothing but where it is: a path of names, and the string, `true`
//! or `false` that is being read if somebody wants it. It takes bytes in pieces of any size.

use super::VALUE_MAX;

/// Deepest nesting; a line that is deeper is no JSON to us, nor to most parsers.
const DEPTH_MAX: usize = 128;
/// Longest path that is told apart from others.
const PATH_MAX: usize = 512;
/// Stands in a path for an item of an array.
pub const ITEM: &[u8] = b"\xfd";
/// Stands for a point within a name, which is none between names.
const POINT: u8 = 0xfe;
/// Stands for a name that is too long to be one that somebody asks for.
const LOST: u8 = 0xff;

/// Who hears what stands in a line.
pub trait Sink {
    /// A value begins at this path: is it wanted, should it be a string, `true` or `false`?
    fn wants(&mut self, path: &[u8]) -> bool;
    /// A wanted string, or the word for one of the two others.
    fn string(&mut self, path: &[u8], value: &str);
    /// An item of an array is over.
    fn item_ends(&mut self, path: &[u8]);
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Start,
    Value,
    AfterValue,
    KeyOrEnd,
    Key,
    Colon,
    ItemOrEnd,
    Text {
        key: bool,
    },
    Scalar,
    Done,
    Bad,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    object: bool,
    /// The length of the path of the value that the frame is.
    path: usize,
}

/// A line that is being read.
#[derive(Debug, Default)]
pub struct Scanner {
    state: State,
    frames: Vec<Frame>,
    path: Vec<u8>,
    text: Vec<u8>,
    keep: bool,
    too_long: bool,
    /// 0: none; 1: behind a backslash; 2 to 5: so many less one digits of a code are to come.
    escape: u8,
    code: u32,
    high: Option<u32>,
}

impl Scanner {
    /// Takes bytes up to the end of the line at most; says how many, and whether the line ended.
    pub fn scan(&mut self, bytes: &[u8], sink: &mut impl Sink) -> (usize, bool) {
        let mut at = 0;
        while at < bytes.len() {
            // What nobody wants to know is passed over quickly.
            let skip = match self.state {
                State::Text { key: false } if self.escape == 0 && !self.keep => {
                    bytes[at..].iter().position(|b| matches!(b, b'"' | b'\\' | b'\n'))
                }
                State::Bad => bytes[at..].iter().position(|b| *b == b'\n'),
                _ => Some(0),
            };
            let Some(skip) = skip else { return (bytes.len(), false) };
            at += skip;
            let byte = bytes[at];
            at += 1;
            if byte == b'\n' {
                return (at, true);
            }
            self.step(byte, sink);
        }
        (at, false)
    }

    /// The line is over: true if it was one whole object. The scanner is ready for the next.
    pub fn finish(&mut self) -> bool {
        let whole = self.state == State::Done;
        self.state = State::Start;
        self.frames.clear();
        self.path.clear();
        self.begin_text(false);
        whole
    }

    /// Bytes that it keeps.
    #[cfg(test)]
    pub fn kept(&self) -> usize {
        self.path.capacity() + self.text.capacity() + self.frames.capacity() * size_of::<Frame>()
    }

    fn step(&mut self, byte: u8, sink: &mut impl Sink) {
        let blank = matches!(byte, b' ' | b'\t' | b'\r');
        match self.state {
            State::Bad => {}
            State::Text { key } => self.in_text(byte, key, sink),
            State::Scalar => match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'+' | b'-' | b'.' => self.keep(&[byte]),
                _ => {
                    if self.keep && matches!(self.text.as_slice(), b"true" | b"false") {
                        sink.string(&self.path, &String::from_utf8_lossy(&self.text));
                    }
                    self.value_ends(sink);
                    self.step(byte, sink);
                }
            },
            _ if blank => {}
            State::Start if byte == b'{' => self.open(true),
            State::KeyOrEnd if byte == b'}' => self.close(true, sink),
            State::ItemOrEnd if byte == b']' => self.close(false, sink),
            State::KeyOrEnd | State::Key if byte == b'"' => {
                self.state = State::Text { key: true };
                self.begin_text(true);
            }
            State::Colon if byte == b':' => self.state = State::Value,
            State::ItemOrEnd => {
                self.name(ITEM);
                self.value(byte, sink);
            }
            State::Value => self.value(byte, sink),
            State::AfterValue => match (byte, self.frames.last().is_some_and(|frame| frame.object)) {
                (b',', true) => self.state = State::Key,
                (b',', false) => {
                    self.name(ITEM);
                    self.state = State::Value;
                }
                (b'}', true) => self.close(true, sink),
                (b']', false) => self.close(false, sink),
                _ => self.state = State::Bad,
            },
            _ => self.state = State::Bad,
        }
    }

    /// The first byte of a value.
    fn value(&mut self, byte: u8, sink: &mut impl Sink) {
        let wanted = sink.wants(&self.path);
        match byte {
            b'{' => self.open(true),
            b'[' => self.open(false),
            b'"' => {
                self.state = State::Text { key: false };
                self.begin_text(wanted);
            }
            b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => {
                self.state = State::Scalar;
                self.begin_text(wanted && matches!(byte, b't' | b'f'));
                self.keep(&[byte]);
            }
            _ => self.state = State::Bad,
        }
    }

    fn open(&mut self, object: bool) {
        if self.frames.len() == DEPTH_MAX {
            self.state = State::Bad;
            return;
        }
        self.frames.push(Frame { object, path: self.path.len() });
        self.state = if object { State::KeyOrEnd } else { State::ItemOrEnd };
    }

    fn close(&mut self, object: bool, sink: &mut impl Sink) {
        match self.frames.pop() {
            Some(frame) if frame.object == object => {
                self.path.truncate(frame.path);
                self.value_ends(sink);
            }
            _ => self.state = State::Bad,
        }
    }

    /// The value at the path is complete: the path is again that of what holds it.
    fn value_ends(&mut self, sink: &mut impl Sink) {
        match self.frames.last() {
            None => self.state = State::Done,
            Some(frame) => {
                if !frame.object {
                    sink.item_ends(&self.path);
                }
                self.path.truncate(frame.path);
                self.state = State::AfterValue;
            }
        }
    }

    /// Adds a name to the path.
    fn name(&mut self, name: &[u8]) {
        if !self.path.is_empty() {
            self.path.push(b'.');
        }
        if self.path.len() + name.len() > PATH_MAX {
            self.path.push(LOST);
        } else {
            self.path.extend_from_slice(name);
        }
    }

    fn begin_text(&mut self, keep: bool) {
        self.text.clear();
        (self.keep, self.too_long, self.escape, self.high) = (keep, false, 0, None);
    }

    fn in_text(&mut self, byte: u8, key: bool, sink: &mut impl Sink) {
        match self.escape {
            0 => match byte {
                b'"' => self.text_ends(key, sink),
                b'\\' => self.escape = 1,
                _ => self.keep(&[byte]),
            },
            1 => {
                self.escape = 0;
                match byte {
                    b'"' | b'\\' | b'/' => self.keep(&[byte]),
                    b'b' => self.keep(b"\x08"),
                    b'f' => self.keep(b"\x0c"),
                    b'n' => self.keep(b"\n"),
                    b'r' => self.keep(b"\r"),
                    b't' => self.keep(b"\t"),
                    b'u' => (self.escape, self.code) = (5, 0),
                    _ => self.state = State::Bad,
                }
            }
            left => match char::from(byte).to_digit(16) {
                None => self.state = State::Bad,
                Some(digit) => {
                    self.code = self.code * 16 + digit;
                    self.escape = if left == 2 { 0 } else { left - 1 };
                    if left == 2 {
                        self.coded();
                    }
                }
            },
        }
    }

    /// A code of four digits is complete: a character, or half of one.
    fn coded(&mut self) {
        let code = match (self.high.take(), self.code) {
            (None, high @ 0xd800..=0xdbff) => {
                self.high = Some(high);
                return;
            }
            (Some(high), low @ 0xdc00..=0xdfff) => 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00),
            (_, code) => code,
        };
        let character = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
        self.keep(character.encode_utf8(&mut [0; 4]).as_bytes());
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.keep {
            if self.text.len() + bytes.len() > VALUE_MAX {
                (self.keep, self.too_long) = (false, true);
            } else {
                self.text.extend_from_slice(bytes);
            }
        }
    }

    fn text_ends(&mut self, key: bool, sink: &mut impl Sink) {
        if key {
            let mut name = std::mem::take(&mut self.text);
            if self.too_long || name.is_empty() {
                name = vec![LOST];
            }
            name.iter_mut().filter(|b| **b == b'.').for_each(|b| *b = POINT);
            self.name(&name);
            self.text = name;
            self.state = State::Colon;
        } else {
            if self.keep {
                sink.string(&self.path, &String::from_utf8_lossy(&self.text));
            }
            self.value_ends(sink);
        }
    }
}
