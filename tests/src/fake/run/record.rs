//! What `fake run` did and saw: a line of JSON each, with the running clock's time and the process. Children write into
//! the same file, so a line is one write.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use nix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

/// The file, once the script has named it.
#[derive(Clone, Debug, Default)]
pub struct Record(Arc<Mutex<Option<PathBuf>>>);

impl Record {
    pub fn open(&self, path: &Path) {
        *self.0.lock().expect("nobody panics with it") = Some(path.to_owned());
    }

    pub fn path(&self) -> Option<PathBuf> {
        self.0.lock().expect("nobody panics with it").clone()
    }

    /// Writes `what` happened, with these further fields.
    pub fn note(&self, what: &str, mut fields: Value) {
        let Some(path) = self.path() else { return };
        fields["what"] = json!(what);
        fields["pid"] = json!(std::process::id());
        fields["at_ms"] = json!(now_ms());
        let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
        // A folder that is gone has no reader either.
        let _ = file.and_then(|mut file| file.write_all(format!("{fields}\n").as_bytes()));
    }
}

/// The boot's running clock.
pub fn now_ms() -> u64 {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("there is one");
    u64::try_from(time.tv_sec()).unwrap_or(0) * 1000 + u64::try_from(time.tv_nsec()).unwrap_or(0) / 1_000_000
}

/// Bytes as text from which they can be had again: what is no character of UTF-8, or acts on a terminal, as `\xHH`.
pub fn escape(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => text.push_str("\\\\"),
                '\n' => text.push_str("\\n"),
                c if c.is_ascii_control() => text.push_str(&format!("\\x{:02x}", u32::from(c))),
                c => text.push(c),
            }
        }
        text.extend(chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_the_record_can_be_had_again() {
        let text = escape(b"a\\\x1b[200~\n\xc3\xa4\xff\r");
        assert_eq!(text, "a\\\\\\x1b[200~\\n\u{e4}\\xff\\x0d");
        assert_eq!(super::super::script::escaped(&text).unwrap(), b"a\\\x1b[200~\n\xc3\xa4\xff\r");
    }
}
