//! Rust text as far as the rules need it: without comments, without what stands in string literals, and, for what runs
//! in the programs, without tests.

/// Source text of which only code is left; everything else is blanks, line by line as before.
pub struct Code {
    text: String,
}

impl Code {
    /// All code.
    pub fn new(source: &str) -> Self {
        Self { text: blank(source) }
    }

    /// The code that runs in a program: without the items that `#[cfg(test)]` stands over.
    pub fn of_program(source: &str) -> Self {
        let mut text = blank(source);
        while let Some(start) = text.find("#[cfg(test)]") {
            let end = item_end(&text, start);
            cover(&mut text, start, end);
        }
        Self { text }
    }

    /// The code.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its lines that contain one of `words`, as `(number, line)`.
    pub fn lines_with<'a>(&'a self, words: &'a [&str]) -> impl Iterator<Item = (usize, &'a str)> {
        let numbered = self.text.lines().enumerate().map(|(n, line)| (n + 1, line.trim()));
        numbered.filter(|(_, line)| words.iter().any(|word| contains_word(line, word)))
    }

    /// The modules declared as files of their own.
    pub fn modules(&self) -> Vec<String> {
        let declared = |line: &str| {
            let rest = line.trim().strip_suffix(';')?;
            let (before, name) = rest.rsplit_once("mod ")?;
            let visible = before.is_empty() || before.starts_with("pub") || before.ends_with("] ");
            (visible && is_name(name)).then(|| name.to_owned())
        };
        self.text.lines().filter_map(declared).collect()
    }

    /// Those of them that are declared for tests alone.
    pub fn test_modules(&self) -> Vec<String> {
        let lines: Vec<&str> = self.text.lines().map(str::trim).collect();
        let pairs = lines.windows(2).filter(|pair| pair[0].ends_with("#[cfg(test)]"));
        pairs.filter_map(|pair| Some(pair[1].strip_suffix(';')?.rsplit_once("mod ")?.1.to_owned())).collect()
    }

    /// The first names of all paths that begin with `crate::`, those of grouped imports included.
    pub fn crate_paths(&self) -> Vec<(usize, String)> {
        let mut found = Vec::new();
        for (at, _) in self.text.match_indices("crate::") {
            let before = self.text[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
                continue;
            }
            let line = self.text[..at].lines().count().max(1);
            let rest = &self.text[at + "crate::".len()..];
            found.extend(first_names(rest).into_iter().map(|name| (line, name)));
        }
        found
    }
}

/// The first name of a path's rest; of a group, that of each of its members.
fn first_names(rest: &str) -> Vec<String> {
    let name = |text: &str| -> String {
        text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    let Some(group) = rest.strip_prefix('{') else { return vec![name(rest)] };
    let (mut depth, mut start, mut names) = (0, 0, Vec::new());
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' if depth == 0 => {
                names.push(name(&group[start..at]));
                start = at + 1;
            }
            '}' => {
                names.push(name(&group[start..at]));
                break;
            }
            _ => {}
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// True if `word` is in `line`, neither as the end of a longer name nor as a method.
fn contains_word(line: &str, word: &str) -> bool {
    let starts_name = word.starts_with(|c: char| c.is_alphanumeric());
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !starts_name || !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '.')
    })
}

/// Where the item that begins (with its attributes) at `start` ends.
fn item_end(text: &str, start: usize) -> usize {
    let mut depth = 0_usize;
    for (at, byte) in text.bytes().enumerate().skip(start) {
        match byte {
            b'{' | b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.saturating_sub(1),
            // The braces of an import are followed by its end.
            b'}' if depth <= 1 => return at + 1 + usize::from(text[at + 1..].starts_with(';')),
            b'}' => depth -= 1,
            b';' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Replaces everything but line ends by blanks.
fn cover(text: &mut String, start: usize, end: usize) {
    let blanks: String = text[start..end].chars().map(|c| if c == '\n' { c } else { ' ' }).collect();
    text.replace_range(start..end, &blanks);
}

/// The text with comments and the insides of literals as blanks.
fn blank(source: &str) -> String {
    let chars: Vec<char> = source.chars().collect();
    let mut out = String::with_capacity(source.len());
    let mut at = 0;
    let cover = |out: &mut String, from: usize, to: usize| {
        out.extend(chars[from..to].iter().map(|c| if *c == '\n' { '\n' } else { ' ' }));
    };
    while at < chars.len() {
        let end = match chars[at] {
            '/' if chars.get(at + 1) == Some(&'/') => line_end(&chars, at),
            '/' if chars.get(at + 1) == Some(&'*') => comment_end(&chars, at),
            '"' => string_end(&chars, at),
            'r' if !follows_name(&chars, at) => raw_end(&chars, at).unwrap_or(at),
            '\'' => char_end(&chars, at).unwrap_or(at),
            _ => at,
        };
        if end == at {
            out.push(chars[at]);
            at += 1;
        } else {
            cover(&mut out, at, end);
            at = end;
        }
    }
    out
}

fn line_end(chars: &[char], at: usize) -> usize {
    chars[at..].iter().position(|c| *c == '\n').map_or(chars.len(), |n| at + n)
}

fn comment_end(chars: &[char], at: usize) -> usize {
    let (mut depth, mut at) = (0, at);
    while at < chars.len() {
        match (chars[at], chars.get(at + 1)) {
            ('/', Some('*')) => (depth, at) = (depth + 1, at + 2),
            ('*', Some('/')) => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

fn string_end(chars: &[char], at: usize) -> usize {
    let mut at = at + 1;
    while at < chars.len() && chars[at] != '"' {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(chars.len())
}

/// True if the character at `at` goes on a name; `b` before a raw string does not.
fn follows_name(chars: &[char], at: usize) -> bool {
    let word = |n: usize| chars.get(n).is_some_and(|c| c.is_alphanumeric() || *c == '_');
    match at.checked_sub(1) {
        Some(before) if chars[before] == 'b' || chars[before] == 'c' => {
            before.checked_sub(1).is_some_and(word)
        }
        Some(before) => word(before),
        None => false,
    }
}

/// The end of a raw string that begins at `at`.
fn raw_end(chars: &[char], at: usize) -> Option<usize> {
    let hashes = chars[at + 1..].iter().take_while(|c| **c == '#').count();
    let mut at = at + 1 + hashes;
    if chars.get(at) != Some(&'"') {
        return None;
    }
    at += 1;
    while at < chars.len() {
        let closes = chars[at] == '"' && chars[at + 1..].iter().take_while(|c| **c == '#').count() >= hashes;
        if closes {
            return Some(at + 1 + hashes);
        }
        at += 1;
    }
    Some(chars.len())
}

/// The end of a character literal that begins at `at`; a lifetime is none.
fn char_end(chars: &[char], at: usize) -> Option<usize> {
    if chars.get(at + 1) == Some(&'\\') {
        let close = chars[at + 3..].iter().position(|c| *c == '\'')?;
        return Some(at + 3 + close + 1);
    }
    (chars.get(at + 2) == Some(&'\'')).then_some(at + 3)
}

#[test]
fn comments_and_literals_are_no_code() {
    let source =
        "a(\"x // \\\" y\"); // b\nc('\"', '\\'', r#\"d \" e\"#, b\"f\"); /* g /* h */ i */ let r: &'j str;";
    let code = Code::new(source);
    let words: Vec<&str> = code.text().split_whitespace().collect();
    assert_eq!(words.join(" "), "a( ); c( , , , b ); let r: &'j str;");
    assert_eq!(code.text().lines().count(), source.lines().count());
}

#[test]
fn tests_are_not_of_the_program() {
    let source = "use a;\n#[cfg(test)]\nuse b::{c};\nfn d() {}\n#[cfg(test)]\nmod tests {\n fn e() { {} }\n}\nfn f() {}\n";
    let words = Code::of_program(source).text().split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(words, "use a; fn d() {} fn f() {}");
    assert_eq!(Code::new("#[cfg(test)]\nmod tests;\nmod a;\npub(crate) mod b;\n").test_modules(), ["tests"]);
    assert_eq!(Code::new("mod a;\npub(crate) mod b;\npub mod c {}\nmy mod;").modules(), ["a", "b"]);
}

#[test]
fn paths_into_the_crate_are_found_in_groups_too() {
    let code = Code::new("use crate::{a::{B, c}, d, e::F};\nfn g() { crate::h::i() }\nuse my_crate::j;\n");
    let names: Vec<_> = code.crate_paths().into_iter().map(|(_, name)| name).collect();
    assert_eq!(names, ["a", "d", "e", "h"]);
}
