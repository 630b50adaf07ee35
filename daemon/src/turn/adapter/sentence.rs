//! A line of a harness's output as sentences of plain words, for rules about their shape: no colours, no punctuation,
//! lower case, and without what is quoted.

/// The words of one sentence.
#[derive(Debug)]
pub struct Sentence(String);

impl Sentence {
    /// Its words.
    pub fn words(&self) -> Vec<&str> {
        self.0.split(' ').filter(|w| !w.is_empty()).collect()
    }

    /// True if these words stand in it, next to each other.
    pub fn has(&self, words: &str) -> bool {
        let mut from = 0;
        while let Some(at) = self.0[from..].find(words) {
            let (start, end) = (from + at, from + at + words.len());
            let whole = |at: Option<u8>| at.is_none_or(|b| b == b' ');
            let before = start.checked_sub(1).map(|at| self.0.as_bytes()[at]);
            if whole(before) && whole(self.0.as_bytes().get(end).copied()) {
                return true;
            }
            from = end;
        }
        false
    }

    /// True if it begins with these words, with or without a number before them.
    pub fn begins(&self, words: &str) -> bool {
        let begins = |text: &str| {
            text.strip_prefix(words).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        };
        let after_number = self.0.split_once(' ').filter(|(n, _)| n.bytes().all(|b| b.is_ascii_digit()));
        begins(&self.0) || after_number.is_some_and(|(_, rest)| begins(rest))
    }
}

/// The sentences of one line.
pub fn sentences(line: &str) -> impl Iterator<Item = Sentence> {
    let plain = unquoted(&uncoloured(line)).replace('\u{2019}', "'");
    let mut parts = vec![String::new()];
    let mut rest = plain.as_str();
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        let at_blank = after.is_empty() || after.starts_with(char::is_whitespace);
        let ends = match c {
            '.' | '!' | '?' | ':' | ';' | '-' => at_blank,
            '(' | ')' | '[' | ']' | '|' | '·' | '∙' | '—' | '–' => true,
            _ => false,
        };
        if ends {
            parts.push(String::new());
        } else if let Some(part) = parts.last_mut() {
            part.push(c);
        }
        rest = after;
    }
    parts.into_iter().filter_map(|part| {
        let words: Vec<String> = part.split_whitespace().flat_map(word).collect();
        (!words.is_empty()).then(|| Sentence(words.join(" ")))
    })
}

/// A word without its punctuation, and the two words that some stand for.
fn word(raw: &str) -> Vec<String> {
    let is_inner = |c: char| c.is_alphanumeric() || c == '/';
    let word = raw.trim_start_matches(|c| !is_inner(c)).trim_end_matches(|c: char| !c.is_alphanumeric());
    let word = word.to_lowercase();
    if word.is_empty() {
        return Vec::new();
    }
    match word.split_once('\'') {
        Some((who, "ve")) => vec![who.to_owned(), "have".to_owned()],
        Some((who, "re")) => vec![who.to_owned(), "are".to_owned()],
        _ => vec![word],
    }
}

/// Without the sequences that colour a terminal.
pub fn uncoloured(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' && chars.next_if_eq(&'[').is_some() {
            while chars.next_if(|c| !c.is_ascii_alphabetic()).is_some() {}
            chars.next();
        } else {
            plain.push(c);
        }
    }
    plain
}

/// Without what stands in double quotation marks or in backticks: those are words of others.
fn unquoted(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(open) = rest.find(['"', '`', '\u{201c}']) {
        plain.push_str(&rest[..open]);
        let mark = rest[open..].chars().next().unwrap_or('"');
        let close = if mark == '\u{201c}' { '\u{201d}' } else { mark };
        let inside = &rest[open + mark.len_utf8()..];
        plain.push(' ');
        // What is not closed is quoted to the end.
        rest = inside.find(close).map_or("", |end| &inside[end + close.len_utf8()..]);
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_taken_apart() {
        let said = |line: &str| sentences(line).map(|s| s.0).collect::<Vec<_>>();
        assert_eq!(
            said("API Error: You\u{2019}ve hit your 5-hour limit \u{b7} resets 8:14pm (UTC)."),
            ["api error", "you have hit your 5-hour limit", "resets 8:14pm", "utc"]
        );
        assert_eq!(
            said("\u{1b}[91m\u{1b}[1mError: \u{1b}[0mSession not found"),
            ["error", "session not found"]
        );
        assert_eq!(said(r#"it said "timed out after 30ms" and `rate limit`."#), ["it said and"]);
        assert_eq!(said("never \"closed"), ["never"]);
        assert_eq!(said(" \u{1b}[0m "), [""; 0]);
    }

    #[test]
    fn words_are_found_whole() {
        let s = Sentence("the weekly limits are near".to_owned());
        assert!(s.has("weekly limits") && s.begins("the weekly"));
        assert!(!s.has("weekly limit") && !s.begins("the week") && !s.has("ear"));
    }
}
