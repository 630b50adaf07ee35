//! Where a caller's positions are kept: beside its record, under a name it gave, or in the runtime folder.

use std::path::{Path, PathBuf};

use minder_proto::caller::Identity;
use minder_proto::layout::{self, Home, file_name};

/// A file of positions, and the file whose lock guards it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The positions.
    pub file: PathBuf,
    /// Its lock.
    pub lock: PathBuf,
    /// True for a file in the runtime folder, which is for nobody once its process is gone.
    pub passing: bool,
}

impl Place {
    /// The place of a caller. A name is for callers without a record; a session's positions are its own.
    pub fn of(home: &Home, identity: &Identity, name: Option<&str>) -> Self {
        match (identity, name) {
            (Identity::Session { id }, _) => Self::new(home.session(*id).join("cursors.json"), false),
            (_, Some(name)) => Self::named(home, name),
            (Identity::Unregistered { harness, harness_id }, None) => {
                let name = format!("agent-{}-{}", file_name(harness), file_name(harness_id));
                Self::new(passing_folder(home).join(format!("{name}.json")), true)
            }
            (Identity::Operator, None) => {
                let parent = std::os::unix::process::parent_id();
                let start = start_of(parent).unwrap_or(0);
                Self::new(passing_folder(home).join(format!("shell-{parent}-{start}.json")), true)
            }
        }
    }

    /// The place of a name.
    pub fn named(home: &Home, name: &str) -> Self {
        Self::new(home.followers().join(format!("{}.json", file_name(name))), false)
    }

    fn new(file: PathBuf, passing: bool) -> Self {
        Self { lock: file.with_extension("lock"), file, passing }
    }
}

/// The folder of positions that live as long as a shell. Stores do not share it.
fn passing_folder(home: &Home) -> PathBuf {
    let store = home.socket_name();
    let store = store.strip_suffix(".sock").unwrap_or(&store);
    match layout::runtime_dir() {
        Ok(Some(dir)) => dir.join("minder").join(format!("follow-{store}")),
        _ => home.run().join("follow"),
    }
}

/// When a process started, in clock ticks since boot: with its pid it names no later process.
#[cfg(target_os = "linux")]
fn start_of(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may hold anything.
    stat[stat.rfind(')')? + 1..].split_ascii_whitespace().nth(19)?.parse().ok()
}

#[cfg(not(target_os = "linux"))]
fn start_of(_pid: u32) -> Option<u64> {
    None
}

/// The process that a file in the runtime folder is for, by its name.
fn owner(name: &str) -> Option<(u32, u64)> {
    let (pid, start) = name.strip_prefix("shell-")?.split_once('.')?.0.split_once('-')?;
    Some((pid.parse().ok()?, start.parse().ok()?))
}

/// Files beside `place` whose process is gone.
pub fn leftovers(place: &Place) -> Vec<PathBuf> {
    let Some(entries) = place.file.parent().and_then(|dir| std::fs::read_dir(dir).ok()) else {
        return Vec::new();
    };
    let gone = |path: &Path| {
        let owner = path.file_name().and_then(|n| n.to_str()).and_then(owner);
        owner.is_some_and(|(pid, start)| start != 0 && start_of(pid) != Some(start))
    };
    entries.filter_map(|e| Some(e.ok()?.path())).filter(|path| gone(path)).collect()
}

#[cfg(test)]
mod tests {
    use minder_proto::id::SessionId;

    use super::*;

    #[test]
    fn a_session_has_its_own_place_whatever_name_is_given() {
        let home = Home::at("/store");
        let id = SessionId::random();
        let place = Place::of(&home, &Identity::Session { id }, Some("x"));
        assert_eq!(place.file, home.session(id).join("cursors.json"));
        assert_eq!(place.lock, home.session(id).join("cursors.lock"));
        let named = Place::of(&home, &Identity::Operator, Some("../deploy"));
        assert_eq!(named.file.parent(), Some(Path::new("/store/followers")));
    }

    #[test]
    fn files_of_processes_that_are_gone_are_left_over() {
        let dir = tempfile::tempdir().unwrap();
        let me = std::process::id();
        let mine = format!("shell-{me}-{}", start_of(me).unwrap());
        let place = Place::new(dir.path().join(format!("{mine}.json")), true);
        let dead = [format!("shell-{me}-1.json"), format!("shell-{me}-1.lock")];
        for name in dead.iter().map(String::as_str).chain([
            &*format!("{mine}.json"),
            "agent-codex-x.json",
            "shell-x.json",
        ]) {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        let mut left = leftovers(&place);
        left.sort();
        assert_eq!(left, dead.map(|n| dir.path().join(n)));
    }
}
