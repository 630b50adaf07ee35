//! What the real programs were seen to do: the table of `docs/harnesses.md`. A test that has shown a cell of it says so in its
//! last line, with [`proven`]: that leaves a note of it, under the version that the program itself names. `make docs` writes
//! the table from the notes of the last run; and the table may claim what tests in this tree say they show, no more and no
//! less.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use minder_tests::isolate::Isolated;
use minder_tests::process;

use crate::house::root;
use crate::scene::LIMIT;

/// A row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Harness {
    Claude,
    Codex,
    OpenCode,
    Pi,
    Gemini,
    Cursor,
}

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cell {
    Registration,
    Turn,
    Idle,
    Busy,
    Dialog,
    Notice,
    Resume,
    Kill,
    Uninstall,
}

const ROWS: [Harness; 6] =
    [Harness::Claude, Harness::Codex, Harness::OpenCode, Harness::Pi, Harness::Gemini, Harness::Cursor];

const COLUMNS: [(Cell, &str); 9] = [
    (Cell::Registration, "registration"),
    (Cell::Turn, "states of a turn"),
    (Cell::Idle, "message to idle"),
    (Cell::Busy, "message to busy"),
    (Cell::Dialog, "message at a dialog"),
    (Cell::Notice, "notice to a supervisor"),
    (Cell::Resume, "resume, new id"),
    (Cell::Kill, "kill"),
    (Cell::Uninstall, "uninstall"),
];

/// What a harness cannot do, and why.
const REASONS: [(Harness, Cell, &str); 1] = [(Harness::Pi, Cell::Dialog, "Pi asks for no permission")];

impl Harness {
    fn name(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex",
            Self::OpenCode => "OpenCode",
            Self::Pi => "Pi",
            Self::Gemini => "Gemini CLI",
            Self::Cursor => "Cursor",
        }
    }

    /// Its program, and the package of `tests/node` that has it.
    fn package(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Claude => Some(("claude", "@anthropic-ai/claude-code")),
            Self::Codex => Some(("codex", "@openai/codex")),
            Self::OpenCode => Some(("opencode", "opencode-ai")),
            Self::Pi => Some(("pi", "@mariozechner/pi-coding-agent")),
            Self::Gemini | Self::Cursor => None,
        }
    }

    /// The version that is pinned.
    fn version(self) -> Option<String> {
        let package: serde_json::Value =
            serde_json::from_str(include_str!("../../node/package.json")).unwrap();
        Some(package["dependencies"][self.package()?.1].as_str().unwrap().to_owned())
    }
}

fn note(harness: Harness, cell: Cell) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("harnesses").join(format!("{harness:?}-{cell:?}"))
}

/// The last line of a test that has shown these cells.
pub fn proven(harness: Harness, cells: &[Cell]) {
    let version = asked(harness);
    for cell in cells {
        let file = note(harness, *cell);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, &version).unwrap();
    }
}

/// The version that the installed program says it is; the one that is pinned.
fn asked(harness: Harness) -> String {
    static ASKED: Mutex<Option<HashMap<Harness, String>>> = Mutex::new(None);
    let mut asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner);
    let ask = || {
        let isolated = Isolated::new().unwrap();
        let bin = root().join("tests/node/node_modules/.bin");
        let mut command = isolated.command(bin.join(harness.package().unwrap().0));
        let out = process::run(command.arg("--version"), b"", LIMIT).unwrap();
        // Pi says it where errors are said.
        let (said, version) = ([out.stdout, b" ".to_vec(), out.stderr].concat(), harness.version().unwrap());
        let said = String::from_utf8(said).unwrap();
        assert!(said.split_whitespace().any(|word| word == version), "pinned is {version}, it says {said:?}");
        version
    };
    asked.get_or_insert_default().entry(harness).or_insert_with(ask).clone()
}

/// All calls of [`proven`] in this tree: each cell, and the tests that say they have shown it.
fn claims() -> BTreeMap<(Harness, Cell), Vec<String>> {
    let folder = root().join("tests/tests/it");
    let mut files = Vec::new();
    let mut folders = vec![folder.clone()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") && !path.ends_with("matrix.rs") {
                files.push(path);
            }
        }
    }
    let mut claims: BTreeMap<_, Vec<String>> = BTreeMap::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let module = file.strip_prefix(&folder).unwrap().with_extension("").display().to_string();
        for (test, cells) in calls(&text) {
            let test = format!("{}::{test}", module.trim_end_matches("/mod").replace('/', "::"));
            for cell in cells {
                claims.entry(cell).or_default().push(test.clone());
            }
        }
    }
    claims
}

/// The calls in a file: the test, and the cells.
fn calls(text: &str) -> Vec<(String, Vec<(Harness, Cell)>)> {
    let mut calls = Vec::new();
    let all = text.match_indices("    proven(").map(|(at, word)| (&text[..at], &text[at + word.len()..]));
    for (before, after) in all.filter(|(_, after)| after.trim_start().starts_with("Harness::")) {
        let (call, rest) = after.split_once(';').expect("a call is a statement");
        assert!(rest.starts_with("\n}\n"), "what is proven is said in the last line: {call}");
        let (_, test) = before.rsplit_once("\n#[test]\n").expect("a call is in a test");
        assert!(!test.contains("\n}\n"), "a call is in a test itself: {call}");
        let (_, name) = test.split_once("fn ").expect("a test has a name");
        let named = |word: &str, name: String| call.contains(&format!("{word}::{name}"));
        let harness = ROWS.into_iter().find(|h| named("Harness", format!("{h:?},"))).expect("a row");
        let cells = COLUMNS.into_iter().map(|(cell, _)| cell);
        let cells: Vec<_> =
            cells.filter(|c| named("Cell", format!("{c:?}"))).map(|cell| (harness, cell)).collect();
        assert_eq!(cells.len(), call.matches("Cell::").count(), "{call}");
        calls.push((name.split('(').next().unwrap().to_owned(), cells));
    }
    calls
}

const BEGIN: &str = "<!-- Written by the tests with the real programs: make test, then make docs. -->\n";
const END: &str = "<!-- until here -->\n";

/// The table, with what works.
fn table(works: impl Fn(Harness, Cell) -> bool) -> String {
    let mut text = "| harness | version |".to_owned();
    for (_, title) in COLUMNS {
        write!(text, " {title} |").unwrap();
    }
    write!(text, "\n|---|---|{}\n", "---|".repeat(COLUMNS.len())).unwrap();
    for harness in ROWS {
        let version = harness.version().unwrap_or_else(|| "–".to_owned());
        write!(text, "| {} | {version} |", harness.name()).unwrap();
        for (cell, _) in COLUMNS {
            let reason = REASONS.iter().find(|(h, c, _)| (*h, *c) == (harness, cell));
            match reason {
                Some((_, _, why)) => write!(text, " no ({why}) |"),
                None if works(harness, cell) => write!(text, " works |"),
                None => write!(text, " not tried |"),
            }
            .unwrap();
        }
        text.push('\n');
    }
    text
}

#[test]
fn the_generated_table_of_harnesses_claims_what_tests_show() {
    let claims = claims();
    for (harness, cell, why) in REASONS {
        let tests = claims.get(&(harness, cell));
        assert_eq!(tests, None, "{harness:?} {cell:?} cannot be: {why}");
    }
    let file = root().join("docs/harnesses.md");
    let page = std::fs::read_to_string(&file).unwrap();
    let (head, rest) = page.split_once(BEGIN).expect("the page has a place for it");
    let (shown, tail) = rest.split_once(END).expect("and the place has an end");
    if std::env::var_os("UPDATE_EXPECT").is_some_and(|wish| wish == "1") {
        let noted = |harness: Harness, cell| {
            let version = std::fs::read_to_string(note(harness, cell)).ok();
            version.is_some() && version == harness.version()
        };
        let table = table(|harness, cell| claims.contains_key(&(harness, cell)) && noted(harness, cell));
        std::fs::write(file, format!("{head}{BEGIN}{table}{END}{tail}")).unwrap();
        return;
    }
    let expected = table(|harness, cell| claims.contains_key(&(harness, cell)));
    assert_eq!(
        shown, expected,
        "the table is not what these tests show (make test, then make docs): {claims:#?}"
    );
}

#[test]
fn the_calls_of_a_file_are_found_with_their_tests() {
    let text = "use x;\n\n#[test]\nfn one() {\n    f();\n    proven(Harness::Pi, &[Cell::Turn, Cell::Idle]);\n}\n\n\
        #[test]\n#[ignore]\nfn two() {\n}\n";
    let cells = vec![(Harness::Pi, Cell::Turn), (Harness::Pi, Cell::Idle)];
    assert_eq!(calls(text), [("one".to_owned(), cells)]);
}
