//! Every file and folder there is: that only its owner may open it, and that it is one the store knows.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use minder_proto::id::SessionId;
use minder_proto::timeline::{ACTIVE, sealed_first};

use super::finding::{Finding, Sheet, Trouble};
use super::spool;
use crate::store::TEMP_PREFIX;

/// Walks through the store in `root`.
pub fn walk(root: &Path) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut todo = vec![String::new()];
    while let Some(dir) = todo.pop() {
        let path = root.join(&dir);
        let listed = std::fs::read_dir(&path).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let entries = match listed {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            Err(e) => {
                found.extend(one(shown(&dir), |sheet| sheet.trouble(&Trouble::Io(e))));
                continue;
            }
        };
        if dir.is_empty()
            && let Ok(meta) = std::fs::metadata(root)
        {
            found.extend(one(".", |sheet| mode(&meta, sheet)));
        }
        for entry in entries {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let file = if dir.is_empty() { name.into_owned() } else { format!("{dir}/{name}") };
            // What is gone by now was never there.
            let Ok(meta) = entry.metadata() else { continue };
            let mut descend = false;
            found.extend(one(&file, |sheet| descend = judge(&file, &meta, sheet)));
            todo.extend(descend.then_some(file));
        }
    }
    found
}

fn shown(dir: &str) -> &str {
    if dir.is_empty() { "." } else { dir }
}

fn one(path: &str, look: impl FnOnce(&mut Sheet)) -> Vec<Finding> {
    let mut sheet = Sheet::new(path);
    look(&mut sheet);
    sheet.finish()
}

/// Judges one entry; gives whether it is a folder to be walked through.
fn judge(file: &str, meta: &Metadata, sheet: &mut Sheet) -> bool {
    if meta.file_type().is_symlink() {
        if file != "run/socket" {
            sheet.note("a symbolic link");
        }
        return false;
    }
    mode(meta, sheet);
    let known = known(file, meta.is_dir());
    match known {
        Known::Yes if file == "repair-needed" => {
            sheet.damage("commits were missing in the journal, and no repair was finished since");
        }
        Known::Yes => {}
        Known::Unfinished => sheet.note("left half written; nothing reads it"),
        Known::No if is_stray(file, meta.is_dir()) => {
            sheet.damage("not a folder, where a session's should be");
        }
        Known::No => sheet.note("not a file of the store"),
    }
    meta.is_dir() && known == Known::Yes
}

/// Whether this has the name of a session's folder, and is none.
fn is_stray(file: &str, folder: bool) -> bool {
    let name = file.strip_prefix("sessions/").or_else(|| file.strip_prefix("trash/"));
    !folder && name.is_some_and(|name| name.parse::<SessionId>().is_ok())
}

fn mode(meta: &Metadata, sheet: &mut Sheet) {
    let mode = meta.permissions().mode() & 0o777;
    let (what, wanted) = if meta.is_dir() { ("0700", 0o700) } else { ("0600", 0o600) };
    if mode & 0o077 != 0 {
        sheet.damage(format!("open to others: mode {mode:04o}, not {what}"));
    } else if mode & wanted != wanted {
        sheet.damage(format!("closed to its owner: mode {mode:04o}, not {what}"));
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    Yes,
    /// A file that was to be renamed.
    Unfinished,
    No,
}

fn known(file: &str, folder: bool) -> Known {
    let parts: Vec<&str> = file.split('/').collect();
    let name = parts.last().copied().unwrap_or_default();
    let yes = match (parts.as_slice(), folder) {
        (["hosts" | "turns" | "quarantine" | "run" | "log" | "hooks", _, ..], _) => return Known::Yes,
        _ if !folder && name.starts_with(TEMP_PREFIX) => return Known::Unfinished,
        (["spool", name], false) if spool::is_unfinished(name) => return Known::Unfinished,
        (["sessions" | "trash", _, "cursors.new"], false) => return Known::Unfinished,
        (["followers", name], false) if name.strip_suffix(".new").is_some() => return Known::Unfinished,
        ([_], true) => {
            const FOLDERS: [&str; 14] = [
                "journal",
                "sessions",
                "hosts",
                "turns",
                "spool",
                "quarantine",
                "trash",
                "operator",
                "followers",
                "bindings",
                "labels",
                "run",
                "log",
                "hooks",
            ];
            FOLDERS.contains(&name)
        }
        ([_], false) => {
            let files = [
                "daemon.lock",
                "format",
                "repair-needed",
                "feed.jsonl",
                "feed.jsonl.1",
                "keys.jsonl",
                "closed.jsonl",
            ];
            files.contains(&name)
        }
        (["journal", name], false) => {
            name.strip_suffix(".wal").is_some_and(|n| n.len() == 10 && n.bytes().all(|b| b.is_ascii_digit()))
        }
        (["sessions" | "trash", name], true) => name.parse::<SessionId>().is_ok(),
        (["sessions" | "trash", _, name], false) => {
            let files =
                ["session.json", ACTIVE, "queue.jsonl", "watchers.json", "cursors.json", "cursors.lock"];
            files.contains(name) || sealed_first(name).is_some()
        }
        (["operator", name], false) => [ACTIVE, "queue.jsonl"].contains(name) || sealed_first(name).is_some(),
        (["labels", _] | ["bindings", _, _], false) | (["bindings", _], true) => true,
        (["followers", name], false) => [".json", ".lock"].iter().any(|end| name.strip_suffix(end).is_some()),
        (["spool", name], false) => spool::is_request(name),
        _ => false,
    };
    if yes { Known::Yes } else { Known::No }
}
