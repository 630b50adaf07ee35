//! Bytes as they should never come: grown from good samples by flips, cuts, splices and hostile tokens, and a list of
//! bombs. Every crate throws them at each of its inlets, the functions into which bytes of others come.
//!
//! An inlet has a name, a fuzz target `fuzz/fuzz_targets/CRATE_NAME.rs` that calls it, and samples in
//! `fuzz/corpus/CRATE_NAME/`; [`check`] holds that these are the same list.

use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, TestCaseError, TestError, TestRunner};

use crate::heap;

/// A function into which bytes come. It fails by a panic.
pub type Inlet = (&'static str, fn(&[u8]));

/// Memory that an inlet may take whatever it is given, in bytes.
pub const BASE: usize = 1 << 20;
/// Memory that an inlet may take for each byte that it is given. A JSON value in memory has 72 bytes and needs two in
/// a text, and a list that grows is held twice for a moment.
pub const FACTOR: usize = 160;
/// Far longer than any inlet needs for its largest bomb on a busy machine.
const LIMIT: Duration = Duration::from_secs(240);

/// Pieces that mean something to one parser or another.
const TOKENS: &[&[u8]] = &[
    b"\n",
    b"\r\n",
    b"\0",
    b"\xff",
    b"\xed\xa0\x80",
    b"\xef\xbb\xbf",
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b"\\",
    b",",
    b":",
    b"null",
    b"true",
    b"-",
    b"-0",
    b"0",
    b"-1",
    b"1e999",
    b"1e-999",
    b"18446744073709551615",
    b"18446744073709551616",
    b"9223372036854775808",
    b"0.1",
    b"\\ud800",
    b"\\u0000",
    b"\"seq\":0",
    b"\"seq\":1,\"seq\":2",
    b"*",
    b"?",
    b"/",
    b"../",
    b"#",
    b"//",
    b"/*",
    b"=",
    b"[[",
    b"'''",
    b"\"\"\"",
    b"\t",
    b" ",
    b"\xc2\x85",
    b"\xe2\x80\xa8",
];

/// Changes of a sample.
#[derive(Clone, Debug)]
enum Change {
    Flip(Index, u8),
    Cut(Index),
    Drop(Index, Index),
    Twice(Index, Index),
    Token(Index, Index),
    Number(Index, u64),
    Bytes(Index, Vec<u8>),
}

fn change() -> impl Strategy<Value = Change> {
    let at = any::<Index>;
    prop_oneof![
        (at(), any::<u8>()).prop_map(|(i, b)| Change::Flip(i, b)),
        at().prop_map(Change::Cut),
        (at(), at()).prop_map(|(i, j)| Change::Drop(i, j)),
        (at(), at()).prop_map(|(i, j)| Change::Twice(i, j)),
        (at(), at()).prop_map(|(i, j)| Change::Token(i, j)),
        (at(), any::<u64>()).prop_map(|(i, n)| Change::Number(i, n)),
        (at(), vec(any::<u8>(), 0..12)).prop_map(|(i, b)| Change::Bytes(i, b)),
    ]
}

fn changed(sample: &[u8], changes: &[Change]) -> Vec<u8> {
    let mut bytes = sample.to_vec();
    for change in changes {
        let place = |i: &Index, len: usize| i.index(len + 1);
        let range = |i: &Index, j: &Index, len: usize| {
            let (a, b) = (place(i, len), place(j, len));
            a.min(b)..a.max(b)
        };
        let len = bytes.len();
        match change {
            Change::Flip(i, b) if len > 0 => bytes[i.index(len)] ^= b,
            Change::Flip(..) => {}
            Change::Cut(i) => bytes.truncate(place(i, len)),
            Change::Drop(i, j) => drop(bytes.drain(range(i, j, len))),
            Change::Twice(i, j) => {
                let part = bytes[range(i, j, len)].to_vec();
                let at = place(j, len);
                bytes.splice(at..at, part);
            }
            Change::Token(i, j) => {
                let at = place(i, len);
                bytes.splice(at..at, TOKENS[j.index(TOKENS.len())].iter().copied());
            }
            Change::Number(i, n) => {
                // Puts a number in the place of one that stands there.
                let start = place(i, len);
                if let Some(begin) = bytes[start..].iter().position(u8::is_ascii_digit).map(|p| p + start) {
                    let digits = bytes[begin..].iter().take_while(|b| b.is_ascii_digit()).count();
                    bytes.splice(begin..begin + digits, n.to_string().into_bytes());
                }
            }
            Change::Bytes(i, new) => {
                let at = place(i, len);
                bytes.splice(at..at, new.iter().copied());
            }
        }
    }
    bytes
}

/// Bytes made of these samples, or of nothing.
pub fn garbage(samples: &[Vec<u8>]) -> impl Strategy<Value = Vec<u8>> + use<> {
    let samples = samples.to_vec();
    let grown = (any::<Index>(), vec(change(), 0..6)).prop_map(move |(i, changes)| match samples.len() {
        0 => changed(b"", &changes),
        n => changed(&samples[i.index(n)], &changes),
    });
    let tokens = vec(any::<Index>(), 0..24)
        .prop_map(|list| list.iter().flat_map(|i| TOKENS[i.index(TOKENS.len())]).copied().collect());
    prop_oneof![6 => grown, 1 => vec(any::<u8>(), 0..64), 2 => tokens]
}

/// What is too much of something, by name.
pub fn bombs(sample: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let deep = 100_000;
    let line = sample.split(|b| *b == b'\n').next().unwrap_or_default().to_vec();
    let lines = |line: &[u8], n: usize| [line, b"\n"].concat().repeat(n);
    let text = |bytes: usize| [b"{\"seq\":1,\"kind\":\"", &vec![b'x'; bytes][..], b"\"}\n"].concat();
    let many = |n: usize| (0..n).map(|i| format!("\"k{i}\":{i}")).collect::<Vec<_>>().join(",");
    vec![
        ("nothing", Vec::new()),
        ("deep lists", [b"[".repeat(deep), b"]".repeat(deep)].concat()),
        ("deep lists without an end", b"[".repeat(deep)),
        ("deep objects", b"{\"a\":".repeat(deep)),
        ("deep tables", b"[a.b.c]\n".repeat(2_000)),
        ("a deep key", [b"a".as_slice(), &b".a".repeat(deep), b" = 1"].concat()),
        (
            "deep in a sample",
            [&line[..line.len().saturating_sub(1)], b",\"x\":", &b"[".repeat(deep)].concat(),
        ),
        ("a wide list", [b"[".as_slice(), &b"0,".repeat(200_000), b"0]"].concat()),
        ("a list of objects", [b"[".as_slice(), &b"{},".repeat(100_000), b"0]"].concat()),
        ("a wide object", format!("{{{}}}", many(50_000)).into_bytes()),
        ("one key many times", [b"{".as_slice(), &b"\"seq\":1,".repeat(100_000), b"\"seq\":1}"].concat()),
        ("a long number", [b"{\"seq\":".as_slice(), &b"9".repeat(200_000), b"}"].concat()),
        ("a long fraction", [b"{\"seq\":0.".as_slice(), &b"9".repeat(200_000), b"}"].concat()),
        ("a line that is too long", text(3 << 20)),
        ("a line that is too long, and a sample", [text(3 << 20), sample.to_vec()].concat()),
        ("a line without an end", vec![b'x'; 5 << 20]),
        ("zeros", vec![0; 1 << 20]),
        ("zeros behind a sample", [sample, &[0; 70_000]].concat()),
        ("empty lines", b"\n".repeat(300_000)),
        ("many samples", lines(&line, 2_000)),
        ("many bad lines", lines(b"{\"seq\":", 30_000)),
        ("CRLF", line.iter().flat_map(|b| if *b == b'\n' { vec![b'\r', b'\n'] } else { vec![*b] }).collect()),
        ("a byte order mark", [b"\xef\xbb\xbf".as_slice(), sample].concat()),
        ("UTF-16", sample.iter().flat_map(|b| [*b, 0]).collect()),
        ("no UTF-8", [b"\"\xff\xfe\x80\"".as_slice(), sample].concat()),
        ("escapes", [b"\"".as_slice(), &b"\\u0000\\ud83d".repeat(50_000), b"\""].concat()),
        ("stars", [&b"*a".repeat(2_000)[..], b"b"].concat()),
        ("parts", b"a,".repeat(5_000)),
        ("comments", b"/**/".repeat(100_000)),
    ]
}

/// The folder of the fuzz targets.
fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a crate lies in the workspace").join("fuzz")
}

fn samples(target: &str) -> Vec<Vec<u8>> {
    let folder = fuzz().join("corpus").join(target);
    let mut paths: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap_or_else(|e| panic!("{}: {e}; each target has a sample", folder.display()))
        .map(|entry| entry.expect("the folder can be read").path())
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "{}: each target has a sample", folder.display());
    paths.iter().map(|path| std::fs::read(path).expect("a sample can be read")).collect()
}

/// The text of a fuzz target.
pub fn target_text(of: &str, name: &str) -> String {
    format!(
        "//! Throws bytes at `{of}::{name}`.\n\n#![no_main]\n\nlibfuzzer_sys::fuzz_target!(|bytes: &[u8]| minder_fuzz::{of}::{name}(bytes));\n"
    )
}

/// Fails unless the fuzz targets of a crate are its inlets, each one call.
pub fn check(of: &str, inlets: &[Inlet]) {
    let manifest = std::fs::read_to_string(fuzz().join("Cargo.toml")).expect("the fuzz package is there");
    for (name, _) in inlets {
        let target = format!("{of}_{name}");
        let path = fuzz().join("fuzz_targets").join(format!("{target}.rs"));
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(text, target_text(of, name), "{}", path.display());
        assert!(
            manifest.contains(&format!("name = \"{target}\"\n")),
            "fuzz/Cargo.toml does not name {target}"
        );
    }
    for entry in std::fs::read_dir(fuzz().join("fuzz_targets")).expect("the fuzz package is there") {
        let name = entry.expect("the folder can be read").file_name();
        let name = name.to_string_lossy().into_owned();
        let Some(rest) = name.strip_prefix(&format!("{of}_")) else { continue };
        let known = inlets.iter().any(|(inlet, _)| rest == format!("{inlet}.rs"));
        assert!(known, "{name} calls no inlet of {of}");
    }
}

/// Throws bombs and garbage at one inlet: it may refuse, and neither fails, nor hangs, nor takes more memory than
/// [`BASE`] and [`FACTOR`] bytes for each byte.
pub fn throw(of: &str, (name, inlet): Inlet, cases: u32) {
    let target = format!("{of}_{name}");
    let samples = samples(&target);
    let (tell, hear) = mpsc::channel();
    let work = move || {
        for sample in &samples {
            within_bounds("a sample", sample, inlet);
        }
        for (what, bomb) in bombs(&samples[0]) {
            within_bounds(what, &bomb, inlet);
        }
        let config = Config { cases, failure_persistence: None, ..Config::default() };
        let mut runner = TestRunner::new(config);
        let outcome = runner.run(&garbage(&samples), |bytes| {
            let run = || within_bounds("garbage", &bytes, inlet);
            match std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)) {
                Ok(()) => Ok(()),
                Err(panic) => {
                    let why = panic.downcast_ref::<String>().cloned().unwrap_or_default();
                    Err(TestCaseError::fail(format!("{:?}: {why}", String::from_utf8_lossy(&bytes))))
                }
            }
        });
        tell.send(outcome.map_err(|e| match e {
            TestError::Fail(why, _) | TestError::Abort(why) => why.to_string(),
        }))
        .ok();
    };
    let thread = std::thread::Builder::new().name(target.clone()).spawn(work).expect("a thread can be had");
    match hear.recv_timeout(LIMIT) {
        Ok(outcome) => outcome.unwrap_or_else(|e| panic!("{target}: {e}")),
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("{target} hangs"),
        Err(mpsc::RecvTimeoutError::Disconnected) => {}
    }
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

fn within_bounds(what: &str, bytes: &[u8], inlet: fn(&[u8])) {
    let ((), taken) = heap::taken(|| inlet(bytes));
    let bound = BASE + FACTOR * bytes.len();
    assert!(taken.peak <= bound, "{what}: {} bytes of memory for {} bytes", taken.peak, bytes.len());
}
