//! Comparing what a page shows with what was printed: equal but for what differs in every run.

use std::collections::HashMap;

/// Which id of the page is which of this run.
#[derive(Default)]
pub struct Ids {
    /// By the page's.
    run: HashMap<String, String>,
    /// By this run's.
    page: HashMap<String, String>,
}

/// A piece of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    /// A session's, a message's; the short form is 8 hexadecimal digits.
    Id(String),
    /// What differs by nature, with the name of its kind.
    Varying(&'static str),
}

impl Ids {
    /// Compares, and learns from what is equal which ids belong together. The error shows both.
    pub fn compare(&mut self, expected: &[&str], printed: &[String], ordered: bool) -> Result<(), String> {
        let mut left: Vec<Vec<Piece>> = expected.iter().map(|line| pieces(line)).collect();
        let mut right: Vec<Vec<Piece>> = printed.iter().map(|line| pieces(line)).collect();
        if !ordered {
            left.sort_by_cached_key(|line| shape(line));
            right.sort_by_cached_key(|line| shape(line));
        }
        let mut learnt = Vec::new();
        let same = left.len() == right.len()
            && left.iter().zip(&right).all(|(a, b)| shape(a) == shape(b) && self.pair(a, b, &mut learnt));
        if same {
            for (page, run) in learnt {
                self.learn(page, run);
            }
            return Ok(());
        }
        let page = expected.join("\n");
        Err(format!("the page has\n{page}\nand it printed\n{}", self.as_in_page(printed).join("\n")))
    }

    /// Pairs the ids of two lines of one shape; false if one is known to be another's.
    fn pair(&self, page: &[Piece], run: &[Piece], learnt: &mut Vec<(String, String)>) -> bool {
        page.iter().zip(run).all(|pair| {
            let (Piece::Id(page), Piece::Id(run)) = pair else { return true };
            let told = |(p, r): &(String, String)| p == page || r == run;
            let known = learnt.iter().find(|pair| told(pair)).map(|(p, r)| (p, r));
            let before = (self.run.get(page), self.page.get(run));
            match (known, before) {
                (Some((p, r)), _) => p == page && r == run,
                (None, (Some(r), _)) => r == run,
                (None, (None, Some(p))) => p == page,
                (None, (None, None)) => {
                    learnt.push((page.clone(), run.clone()));
                    true
                }
            }
        })
    }

    fn learn(&mut self, page: String, run: String) {
        // A whole id is shown short by its beginning (a session's) or its end (a message's).
        if page.len() == run.len() && page.len() == WHOLE {
            for part in [0..SHORT, WHOLE - SHORT..WHOLE] {
                self.learn(page[part.clone()].to_owned(), run[part].to_owned());
            }
        }
        self.run.insert(page.clone(), run.clone());
        self.page.insert(run, page);
    }

    /// A command of the page with this run's ids.
    pub fn as_in_run(&self, command: &str) -> String {
        exchange(command, &self.run)
    }

    /// What was printed, with the page's ids where they are known.
    pub fn as_in_page(&self, printed: &[String]) -> Vec<String> {
        printed.iter().map(|line| exchange(line, &self.page)).collect()
    }
}

const WHOLE: usize = 36;
const SHORT: usize = 8;

fn exchange(text: &str, ids: &HashMap<String, String>) -> String {
    words(text).map(|word| ids.get(word).map_or(word, String::as_str)).collect()
}

/// The line without what tells one run from another.
fn shape(line: &[Piece]) -> String {
    let piece = |piece: &Piece| match piece {
        Piece::Text(text) => text.clone(),
        Piece::Id(id) => format!("<id {}>", id.len()),
        Piece::Varying(kind) => format!("<{kind}>"),
    };
    line.iter().map(piece).collect()
}

/// A line's words with their meaning. Runs of blanks count as one: columns move with what stands in them.
fn pieces(line: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut pid = false;
    let all: Vec<&str> = words(line.trim_end()).collect();
    for (at, word) in all.iter().copied().enumerate() {
        let blank = word.starts_with(' ');
        let piece = match word {
            _ if blank => Piece::Text(" ".to_owned()),
            _ if is_id(word) => Piece::Id(word.to_owned()),
            _ if pid && is_number(word) => Piece::Varying("pid"),
            // `in 16 ms`
            _ if is_number(word) && all.get(at + 2) == Some(&"ms") => Piece::Varying("age"),
            _ => varying(word).map_or_else(|| Piece::Text(word.to_owned()), Piece::Varying),
        };
        pieces.push(piece);
        // `pid 4121`, `"pid":4121`
        pid = if blank || word.starts_with(['"', ':']) { pid } else { word == "pid" };
    }
    pieces
}

/// Cuts into words, blanks and signs; a sign within a time, an id or a version does not cut.
fn words(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let end = if first == ' ' {
            rest.find(|c| c != ' ')
        } else if first.is_alphanumeric() || first == '.' {
            let inside = |c: char| c.is_alphanumeric() || [':', '.', '-', '+'].contains(&c);
            let end = rest[first.len_utf8()..].find(|c| !inside(c)).map(|n| n + first.len_utf8());
            // A sign at the end belongs to the sentence.
            let word = &rest[..end.unwrap_or(rest.len())];
            let trimmed = word.trim_end_matches([':', '.', '-', '+']);
            Some(if trimmed.is_empty() { first.len_utf8() } else { trimmed.len() })
        } else {
            Some(first.len_utf8())
        };
        let (word, left) = rest.split_at(end.unwrap_or(rest.len()));
        rest = left;
        Some(word)
    })
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit())
}

fn is_id(word: &str) -> bool {
    let hexadecimal = |part: &str| part.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    let lengths: Vec<usize> = word.split('-').map(str::len).collect();
    hexadecimal(&word.replace('-', "")) && (lengths == [SHORT] || lengths == [8, 4, 4, 4, 12])
}

/// What differs by nature: the name of its kind.
fn varying(word: &str) -> Option<&'static str> {
    let digits: String = word.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    let age = |unit: &str| word.strip_suffix(unit).is_some_and(is_number);
    match digits.as_str() {
        "0000-00-00T00:00:00.000Z" => Some("stamp"),
        "00:00:00" | "00:00:00.000" | ".000" => Some("time"),
        "0000-00-00" => Some("day"),
        _ if ["ms", "s", "m", "h", "d"].into_iter().any(age) => Some("age"),
        _ if digits.split('.').count() == 3 && digits.split('.').all(is_number) => Some("version"),
        _ => None,
    }
}

#[test]
fn what_differs_in_every_run_is_no_difference() {
    let mut ids = Ids::default();
    let whole = ("3f0a91c2-7d1e-4c55-9a6b-0d5a1f2e3b4c", "00000001-7d1e-4c55-9a6b-0d5a00000002");
    ids.compare(&[whole.0], &[whole.1.to_owned()], true).unwrap();
    let page = ["3f0a91c2  idle   2m (pid 7) at 12:00:01.204, seen .311", "7be21c09 up 3d, 1.0.0 in 5 ms"];
    let run = ["00000001 idle  14s (pid 4711) at 08:09:10.111, seen .999", "aaaaaaaa up 0s, 0.1.0 in 17 ms"];
    ids.compare(&page, &run.map(str::to_owned), true).unwrap();
    assert_eq!(ids.as_in_run("minder ack 7be21c09 1f2e3b4c"), "minder ack aaaaaaaa 00000002");
    assert_eq!(ids.as_in_page(&["to aaaaaaaa".to_owned()]), ["to 7be21c09"]);
}

#[test]
fn what_differs_otherwise_is_one() {
    for (page, run) in [
        ("api idle", "api done"),
        ("12 of 13", "12 of 14"),
        ("pid x", "pid y"),
        ("a b", "ab"),
        ("aaaaaaaa then aaaaaaaa", "bbbbbbbb then cccccccc"),
        ("aaaaaaaa then bbbbbbbb", "cccccccc then cccccccc"),
        ("\"port\":12", "\"port\":13"),
    ] {
        let result = Ids::default().compare(&[page], &[run.to_owned()], true);
        assert!(result.is_err(), "{page:?} passed for {run:?}");
    }
    let mut ids = Ids::default();
    assert!(ids.compare(&["a", "b"], &["b".to_owned(), "a".to_owned()], true).is_err());
    ids.compare(&["a", "b"], &["b".to_owned(), "a".to_owned()], false).unwrap();
    assert!(ids.compare(&["\"pid\":12"], &["\"pid\":13".to_owned()], true).is_ok());
}
