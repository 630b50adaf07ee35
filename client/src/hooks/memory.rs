//! What an installation has to remember so that taking it back gives the bytes of the start: only where the
//! text alone does not tell (there was no file, or an empty container stood where ours went in). It holds
//! places and fingerprints, never a word of the settings.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::json_text::without;

/// What was there before, as far as the text with our hooks does not tell.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// There was no file.
    pub made_file: bool,
    /// Containers that were there and empty: `hooks`, or an event's name.
    pub empties: Vec<String>,
    /// Exactly what was added, good for as long as nobody else changes the file.
    pub exact: Option<Exact>,
}

/// The added bytes of one version of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exact {
    /// Fingerprint of the file with our hooks.
    pub after: String,
    /// Fingerprint of the file without them; nothing if there was none.
    pub before: Option<String>,
    /// The ranges that were added.
    pub added: Vec<(usize, usize)>,
}

/// A file as it was before: its text, or none.
pub type Before = Option<String>;

impl Memory {
    /// The memory of a file that was made.
    pub fn of_new_file(after: &str) -> Self {
        let exact = Exact { after: fingerprint(after), before: None, added: vec![(0, after.len())] };
        Self { made_file: true, empties: Vec::new(), exact: Some(exact) }
    }

    /// The memory of ranges that were added to a file.
    pub fn of_added(before: &str, after: &str, added: &[Range<usize>], empties: Vec<String>) -> Self {
        let added = added.iter().map(|range| (range.start, range.end)).collect();
        let exact = Exact { after: fingerprint(after), before: Some(fingerprint(before)), added };
        Self { made_file: false, empties, exact: Some(exact) }
    }

    /// The same for a file that was changed since: what was added is no longer known to the byte.
    #[must_use]
    pub fn without_exact(&self) -> Self {
        Self { exact: None, ..self.clone() }
    }

    /// Whether it says anything.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The file as it was, if the text is the very one that was written then.
    pub fn take_back(&self, text: &str) -> Option<Before> {
        let exact = self.exact.as_ref()?;
        if exact.after != fingerprint(text) {
            return None;
        }
        let Some(before) = &exact.before else { return Some(None) };
        let ranges: Vec<_> = exact.added.iter().map(|(start, end)| *start..*end).collect();
        without(text, &ranges).filter(|left| *before == fingerprint(left)).map(Some)
    }
}

/// Length and hash of a text. It tells an edited file from an untouched one; it is no seal.
pub fn fingerprint(text: &str) -> String {
    format!("{}-{:016x}", text.len(), fnv1a(text.as_bytes()))
}

/// The 64-bit FNV-1a: the same in every build, unlike the hasher of the standard library.
pub fn fnv1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fingerprint_is_the_published_function() {
        assert_eq!(fingerprint(""), "0-cbf29ce484222325");
        assert_eq!(fingerprint("foobar"), "6-85944171f73967e8");
    }

    #[test]
    fn only_the_very_text_is_taken_back() {
        let memory = Memory::of_added("ad", "abcd", std::slice::from_ref(&(1..3)), Vec::new());
        assert_eq!(memory.take_back("abcd"), Some(Some("ad".to_owned())));
        assert_eq!(memory.take_back("abcD"), None);
        assert_eq!(memory.without_exact().take_back("abcd"), None);
        assert_eq!(Memory::of_new_file("x").take_back("x"), Some(None));
    }

    #[test]
    fn a_memory_that_does_not_fit_its_own_fingerprints_is_not_followed() {
        let mut memory = Memory::of_added("ad", "abcd", std::slice::from_ref(&(1..3)), Vec::new());
        memory.exact.as_mut().unwrap().added = vec![(0, 2)];
        assert_eq!(memory.take_back("abcd"), None);
        memory.exact.as_mut().unwrap().added = vec![(3, 99)];
        assert_eq!(memory.take_back("abcd"), None);
    }
}
