//! The inlets of the client: each function takes bytes as others may have left or sent them, reads them as the program
//! does, and panics if what comes of it is wrong. The fuzz targets call the same functions.

use std::cell::OnceCell;
use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use minder_client::commands::hook::payload;
use minder_client::follow::book::Book;
use minder_client::follow::feed::Feed;
use minder_client::hooks::json_text::parse;
use minder_client::hooks::memory::Memory;
use minder_client::hooks::packs::claude::PACK;
use minder_client::hooks::plan::{install, uninstall};
use minder_client::hooks::receipt::Receipts;
use minder_client::rpc::{Client, Endpoint, Start};
use minder_proto::layout::Home;
use minder_proto::stamp::Stamp;
use serde_json::Value;

type Inlet = (&'static str, fn(&[u8]));

/// All of them.
pub const ALL: &[Inlet] = &[
    ("feed", feed),
    ("positions", positions),
    ("hook", hook),
    ("settings", settings),
    ("receipt", receipt),
    ("answer", answer),
];

thread_local! {
    static SCRATCH: OnceCell<tempfile::TempDir> = const { OnceCell::new() };
    static DAEMON: OnceCell<(PathBuf, Said)> = const { OnceCell::new() };
}

type Said = Arc<Mutex<Vec<u8>>>;

fn with_folder(work: impl FnOnce(&Path)) {
    SCRATCH.with(|scratch| work(scratch.get_or_init(|| tempfile::tempdir().unwrap()).path()));
}

/// The feed, of which half is there at the start and half comes later. Nothing is looked at that nobody named, and
/// when nothing is new nothing is said.
pub fn feed(bytes: &[u8]) {
    with_folder(|dir| {
        let path = dir.join("feed.jsonl");
        let (first, second) = bytes.split_at(bytes.len() / 2);
        std::fs::write(&path, first).unwrap();
        let mut feed = Feed::at_end(&path);
        let mut file = std::fs::File::options().append(true).open(&path).unwrap();
        file.write_all(second).unwrap();
        let grown = feed.written(|_| ());
        assert!(grown.sessions.len() <= bytes.len() / 36);
        let again = feed.catch_up(|_| ());
        assert!(again.sessions.is_empty(), "told twice");
    });
}

/// A follower's positions: what is kept reads back as it was, and damage is said to be lost and never a position.
pub fn positions(bytes: &[u8]) {
    let now = Stamp::now();
    let book = Book::parse(Some(bytes), now);
    let again = Book::parse(Some(&book.to_bytes()), now);
    if !book.foreign {
        assert_eq!(again, book);
    }
    if serde_json::from_slice::<Value>(bytes).is_ok_and(|v| v.is_object()) {
        return;
    }
    assert_eq!((book.lost, book.follows.len()), (Some(now), 0));
}

/// What a harness gives a hook: an object that is sent on, never larger by much, or nothing.
pub fn hook(bytes: &[u8]) {
    if let Some(payload) = payload::parse(bytes) {
        assert!(payload["hook_event_name"].is_string());
        let text = serde_json::to_vec(&payload).unwrap();
        // A byte that is no UTF-8 becomes a character of three, and a control character an escape of six.
        assert!(text.len() <= bytes.len() * 6 + 64, "{} of {}", text.len(), bytes.len());
    }
}

/// A settings file of a harness: what does not parse is refused with its place and stays; what was put in comes out to
/// the byte.
pub fn settings(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let pack = PACK.groups("/usr/bin/minder");
    let document = match parse(text) {
        Ok(document) => document,
        Err(error) => {
            assert!(error.line > 0 && error.column > 0);
            assert_eq!(error.to_string().lines().count(), 1, "{error}");
            assert!(install(Some(text), &pack, None).is_err() && uninstall(text, None).is_err());
            return;
        }
    };
    assert!(document.root.is_none_or(|root| root.span.end <= text.len()));
    let Ok(Some(installed)) = install(Some(text), &pack, None) else { return };
    assert!(parse(&installed.text).is_ok());
    let taken = uninstall(&installed.text, installed.memory.as_ref()).unwrap();
    if text.contains("minder-hook") {
        return; // something of ours was there before, and goes with the rest
    }
    assert_eq!(taken, Some(Some(text.to_owned())));
}

/// What is remembered of an installation: a receipt or a line that says why not; and whatever it says, nothing of the
/// settings is lost by it.
pub fn receipt(bytes: &[u8]) {
    with_folder(|dir| {
        let receipts = Receipts::new(dir, "claude");
        let file = dir.join("settings.json");
        let path = receipts.path(&file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        match receipts.load(&file) {
            Ok(receipt) => {
                let memory = receipt.expect("it is there").memory;
                harmless(&memory);
            }
            Err(why) => assert!(why.lines().count() == 1 && why.len() < 2_000, "{why}"),
        }
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
    });
    if let Ok(memory) = serde_json::from_slice::<Memory>(bytes) {
        harmless(&memory);
    }
}

fn harmless(memory: &Memory) {
    let text = "{\"model\": \"opus\"}\n";
    let pack = PACK.groups("/usr/bin/minder");
    assert_eq!(uninstall(text, Some(memory)).unwrap(), None, "there is nothing of ours in it");
    let installed = install(Some(text), &pack, Some(memory)).unwrap().unwrap();
    let taken = uninstall(&installed.text, Some(memory)).unwrap().unwrap();
    let left = taken.expect("it was not made by us alone");
    assert!(left.contains("\"model\": \"opus\""), "{left}");
}

/// A daemon that says these bytes to whoever calls.
fn daemon() -> (PathBuf, Said) {
    DAEMON.with(|daemon| {
        let made = || {
            let dir = tempfile::tempdir().unwrap().keep();
            let path = dir.join("socket");
            let listener = UnixListener::bind(&path).unwrap();
            let said = Said::default();
            let says = Arc::clone(&said);
            std::thread::spawn(move || {
                for stream in listener.incoming().map_while(Result::ok) {
                    let mut stream = stream;
                    let _ = stream.read(&mut [0; 16 << 10]);
                    let bytes = says.lock().unwrap().clone();
                    let _ = stream.write_all(&bytes);
                }
            });
            (path, said)
        };
        daemon.get_or_init(made).clone()
    })
}

/// What a daemon answers: an answer, or a reason in a line.
pub fn answer(bytes: &[u8]) {
    let (path, said) = daemon();
    bytes.clone_into(&mut said.lock().unwrap());
    let endpoint = Endpoint::at(Home::at("/nowhere"), path);
    let mut client = Client::new(endpoint, Start::Never("this is a test"));
    let patience = Some(Duration::from_secs(600));
    if let Err(error) = client.call_method::<Value>("m", &(), patience) {
        let text = error.to_string();
        assert!(!text.is_empty() && text.len() < 2_000 + bytes.len());
        assert!(error.exit_code() != 0);
    }
}
