//! `labels/` and `bindings/` at a start: what no record calls for any more goes, and what one calls for and is not there
//! comes back. A session that a replay set aside, or whose folder a foreign hand took away, leaves its own behind.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use minder_proto::id::SessionId;
use minder_proto::layout::{Home, file_name};
use minder_proto::whole;

use super::disk::{DiskError, at};
use super::op::Op;
use super::state::State;

/// What makes the files say what the records say, by their names; a file of the right name is not opened.
pub fn mend(home: &Home, state: &State) -> Result<Vec<Op>, DiskError> {
    let mut wanted: BTreeMap<String, SessionId> = BTreeMap::new();
    wanted.extend(state.labels.iter().map(|(label, id)| (format!("labels/{}", file_name(label)), *id)));
    wanted.extend(state.bindings.iter().map(|((harness, conversation), id)| {
        (format!("bindings/{}/{}", file_name(harness), file_name(conversation)), *id)
    }));
    let mut there: BTreeSet<String> = files(home.root(), "labels")?;
    for harness in folders(home.root(), "bindings")? {
        there.extend(files(home.root(), &harness)?);
    }
    let mut ops = Vec::new();
    for file in there.iter().filter(|file| !wanted.contains_key(*file)) {
        let named = whole::at_most(&home.root().join(file), 4096).ok();
        let named = named.and_then(|bytes| String::from_utf8(bytes).ok());
        let named: Option<SessionId> = named.and_then(|text| text.trim_end().parse().ok());
        // Of a session whose record cannot be read nobody knows what it calls for.
        if !named.is_some_and(|id| state.corrupt.contains_key(&id)) {
            ops.push(Op::Remove { file: file.clone() });
        }
    }
    for (file, id) in wanted.into_iter().filter(|(file, _)| !there.contains(file)) {
        ops.push(Op::Replace { file, bytes: format!("{id}\n").into_bytes() });
    }
    Ok(ops)
}

fn names(root: &Path, folder: &str, folders: bool) -> Result<BTreeSet<String>, DiskError> {
    let path = root.join(folder);
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(&path).map_err(at(&path))? {
        let entry = entry.map_err(at(&path))?;
        if entry.file_type().is_ok_and(|t| t.is_dir()) == folders
            && let Some(name) = entry.file_name().to_str().filter(|n| !n.starts_with('.'))
        {
            found.insert(format!("{folder}/{name}"));
        }
    }
    Ok(found)
}

fn files(root: &Path, folder: &str) -> Result<BTreeSet<String>, DiskError> {
    names(root, folder, false)
}

fn folders(root: &Path, folder: &str) -> Result<BTreeSet<String>, DiskError> {
    names(root, folder, true)
}
