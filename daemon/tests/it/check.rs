//! `minderd --check` as a program: what it prints, how it ends, and that it changes nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::Arc;
use std::time::SystemTime;

use minder_daemon::session::{self, Born};
use minder_daemon::store::Store;
use minder_proto::config::Config;
use minder_proto::record::Channel;

use crate::surroundings::Surroundings;

fn check(around: &Surroundings, args: &[&str]) -> Output {
    let mut command = around.minderd();
    command.arg("--check").args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.output().unwrap()
}

fn said(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// A store with one session, and the handle of its writer.
fn filled(around: &Surroundings) -> Store {
    std::fs::create_dir_all(around.path("state")).unwrap();
    let store = Store::open(&around.home(), Arc::new(Config::default()), Vec::new(), Vec::new()).unwrap().0;
    let born = Born {
        label: Some("api".into()),
        title: None,
        harness: None,
        conversation: None,
        dir: "/".into(),
        parent: None,
        primary: false,
        channel: Channel::Mailbox,
        process: None,
        adopted: false,
        said: None,
        launch: None,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(store.write(move |txn| session::create(txn, born))).unwrap();
    store
}

/// Every file and folder, with its content and the time of its last change.
fn tree(root: &Path) -> BTreeMap<PathBuf, (Option<Vec<u8>>, SystemTime)> {
    let mut found = BTreeMap::new();
    let mut todo = vec![root.to_owned()];
    while let Some(path) = todo.pop() {
        let meta = std::fs::symlink_metadata(&path).unwrap();
        if meta.is_dir() {
            todo.extend(std::fs::read_dir(&path).unwrap().map(|e| e.unwrap().path()));
        }
        let content = meta.is_file().then(|| std::fs::read(&path).unwrap());
        found.insert(path, (content, meta.modified().unwrap()));
    }
    found
}

#[test]
fn a_store_is_checked_beside_its_writer_and_after_it() {
    let around = Surroundings::new();
    let store = filled(&around);
    for _ in 0..2 {
        let before = tree(&around.path("state"));
        let clean = format!("{}: 1 session, 1 line; nothing is damaged\n", around.home().root().display());
        assert_eq!(said(&check(&around, &[])), (Some(0), clean, String::new()));
        assert_eq!(tree(&around.path("state")), before);
        store.stop();
    }
    std::fs::write(around.home().label("api"), "\x1b[2J\n").unwrap();
    let path = around.home().root().display().to_string();
    let damaged = "labels/api: it names no session\n".to_owned();
    assert_eq!(said(&check(&around, &[&path])), (Some(65), damaged, String::new()));
    let (code, out, err) = said(&check(&around, &["--json"]));
    assert_eq!((code, err.as_str()), (Some(65), ""));
    let object: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(object["clean"], false);
    assert_eq!(object["damage"][0]["path"], "labels/api");
}

#[test]
fn where_there_is_nothing_to_check_the_exit_code_says_why() {
    let around = Surroundings::new();
    let (code, out, err) = said(&check(&around, &[]));
    assert_eq!((code, out.as_str()), (Some(2), ""));
    assert_eq!(err, format!("minderd: {}: no store there\n", around.home().root().display()));
    assert!(!around.path("state").exists(), "nothing was made");

    filled(&around).stop();
    std::fs::write(around.home().format(), "minder-store 99\n").unwrap();
    let (code, out, err) = said(&check(&around, &["--json"]));
    assert_eq!((code, out.as_str()), (Some(76), ""));
    let object: serde_json::Value = serde_json::from_str(&err).unwrap();
    assert_eq!((object["kind"].as_str(), object["exit"].as_u64()), (Some("version"), Some(76)));

    assert_eq!(check(&around, &["/a", "/b"]).status.code(), Some(64));
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let around = Surroundings::new();
    filled(&around).stop();
    let mut command = around.minderd();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = command.arg("--check").stdout(writer).stderr(Stdio::piped()).output().unwrap();
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
}
