//! What comes from the terminal, as keys: text, pastes between their brackets, and the few keys that act.

/// One key, or a run of text that came in one piece.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Key {
    Text(String),
    /// Between brackets.
    Paste(String),
    Enter,
    /// A newline that is text: Ctrl-J, or a paste without brackets.
    Newline,
    Escape,
    Backspace,
    Up,
    Down,
    Tab,
    /// Ctrl with a letter.
    Control(char),
    /// The terminal's answer to the question whether it is there.
    Answer,
    /// A sequence that means nothing here.
    Other,
}

const OPENS: &[u8] = b"\x1b[200~";
const CLOSES: &[u8] = b"\x1b[201~";

/// Keeps what a read left unfinished: a paste, a character, a sequence.
#[derive(Debug, Default)]
pub struct Decoder {
    rest: Vec<u8>,
    paste: Option<Vec<u8>>,
}

impl Decoder {
    /// The keys of one read. `brackets`: whether the terminal was asked to mark pastes; otherwise marks are text.
    pub fn feed(&mut self, bytes: &[u8], brackets: bool) -> Vec<Key> {
        let mut input = std::mem::take(&mut self.rest);
        input.extend_from_slice(bytes);
        let mut keys = Vec::new();
        let mut at = 0;
        while at < input.len() {
            let here = &input[at..];
            if let Some(paste) = &mut self.paste {
                let end = here.windows(CLOSES.len()).position(|w| w == CLOSES);
                // Of a mark that is cut the beginning waits for the rest.
                let take = end.unwrap_or_else(|| here.len() - unfinished(here, CLOSES));
                paste.extend_from_slice(&here[..take]);
                at += take;
                if end.is_none() {
                    break;
                }
                at += CLOSES.len();
                let whole = self.paste.take().unwrap_or_default();
                // A terminal sends a line's end as a return, within brackets too.
                keys.push(Key::Paste(
                    String::from_utf8_lossy(&whole).replace("\r\n", "\n").replace('\r', "\n"),
                ));
                continue;
            }
            if brackets && here.starts_with(OPENS) {
                self.paste = Some(Vec::new());
                at += OPENS.len();
                continue;
            }
            if brackets && here.len() > 2 && OPENS.starts_with(here) {
                break;
            }
            match one(here, brackets) {
                Some((key, len)) => {
                    match (keys.last_mut(), key) {
                        (Some(Key::Text(text)), Key::Text(more)) => text.push_str(&more),
                        (_, key) => keys.push(key),
                    }
                    at += len;
                }
                None => break,
            }
        }
        self.rest = input[at..].to_vec();
        keys
    }
}

/// How many bytes at the end of `bytes` may be the beginning of `mark`.
fn unfinished(bytes: &[u8], mark: &[u8]) -> usize {
    (1..mark.len()).rev().find(|n| bytes.ends_with(&mark[..*n])).unwrap_or(0)
}

/// The first key and its length; nothing if the rest of a character is still to come.
fn one(bytes: &[u8], brackets: bool) -> Option<(Key, usize)> {
    let key = match bytes[0] {
        b'\r' => Key::Enter,
        b'\n' => Key::Newline,
        b'\t' => Key::Tab,
        0x7f | 8 => Key::Backspace,
        0x1b => return Some(sequence(bytes, brackets)),
        byte @ 1..=26 => Key::Control(char::from(byte + b'a' - 1)),
        byte if byte < 0x20 => Key::Other,
        _ => return character(bytes),
    };
    Some((key, 1))
}

/// An escape that ends what was read is the key; others begin a sequence.
fn sequence(bytes: &[u8], brackets: bool) -> (Key, usize) {
    let Some(b'[' | b'O') = bytes.get(1) else { return (Key::Escape, 1) };
    if !brackets && (bytes.starts_with(OPENS) || bytes.starts_with(CLOSES)) {
        // What a program that never asked for marks makes of one.
        return (Key::Text(String::from_utf8_lossy(&bytes[1..OPENS.len()]).into_owned()), OPENS.len());
    }
    let end = bytes[2..].iter().position(|b| (0x40..=0x7e).contains(b)).map_or(bytes.len(), |n| n + 3);
    let key = match &bytes[2..end] {
        b"A" => Key::Up,
        b"B" => Key::Down,
        b"0n" => Key::Answer,
        _ => Key::Other,
    };
    (key, end)
}

fn character(bytes: &[u8]) -> Option<(Key, usize)> {
    let end = bytes.iter().position(|b| *b < 0x20 || *b == 0x7f).unwrap_or(bytes.len());
    match std::str::from_utf8(&bytes[..end]) {
        Ok(text) => Some((Key::Text(text.to_owned()), end)),
        Err(error) if error.valid_up_to() > 0 => {
            let end = error.valid_up_to();
            Some((Key::Text(String::from_utf8_lossy(&bytes[..end]).into_owned()), end))
        }
        // A character whose rest is still to come.
        Err(error) if error.error_len().is_none() && end == bytes.len() => None,
        Err(error) => Some((Key::Text("\u{fffd}".to_owned()), error.error_len().unwrap_or(end))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Key {
        Key::Text(text.to_owned())
    }

    #[test]
    fn keys_are_the_same_wherever_a_read_ends() {
        let bytes = "a\u{4f60}\r\x1b[200~x\ry\u{1f600}\x1b[201~\x1b[A".as_bytes();
        let whole = Decoder::default().feed(bytes, true);
        let paste = Key::Paste("x\ny\u{1f600}".to_owned());
        assert_eq!(whole, [text("a\u{4f60}"), Key::Enter, paste, Key::Up]);
        // Within an arrow's sequence a cut makes an Escape of it, as in other programs.
        for cut in 1..bytes.len() - 3 {
            let mut decoder = Decoder::default();
            let mut keys = decoder.feed(&bytes[..cut], true);
            if bytes[..cut].ends_with(b"\x1b")
                || bytes[..cut].ends_with(b"\x1b[") && keys.contains(&Key::Other)
            {
                continue;
            }
            for key in decoder.feed(&bytes[cut..], true) {
                match (keys.last_mut(), key) {
                    (Some(Key::Text(one)), Key::Text(other)) => one.push_str(&other),
                    (_, key) => keys.push(key),
                }
            }
            assert_eq!(keys, whole, "cut at {cut}");
        }
    }

    #[test]
    fn without_brackets_a_mark_is_text_and_each_line_ends() {
        let keys = Decoder::default().feed(b"\x1b[200~a\rb\n\x1b[201~\x1b", false);
        let want = [text("[200~a"), Key::Enter, text("b"), Key::Newline, text("[201~"), Key::Escape];
        assert_eq!(keys, want);
        assert_eq!(
            Decoder::default().feed(b"\x15\x7f\xff\t", true),
            [Key::Control('u'), Key::Backspace, text("\u{fffd}"), Key::Tab]
        );
    }
}
