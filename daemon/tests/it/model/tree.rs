//! All files of a store, read into memory: to go on from a copy as after a crash, or from what a power cut leaves of
//! them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// What each file holds, by its path in the store.
pub type Tree = BTreeMap<String, Vec<u8>>;

pub fn read(root: &Path) -> Tree {
    let mut found = Tree::new();
    let mut left = vec![root.to_owned()];
    while let Some(dir) = left.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                left.push(path);
            } else {
                let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
                let bytes =
                    if name.starts_with("journal/") { used(&path) } else { std::fs::read(&path).unwrap() };
                found.insert(name, bytes);
            }
        }
    }
    found
}

/// A journal's segment without most of the room that it has for more, of which there is much.
fn used(path: &Path) -> Vec<u8> {
    const BLOCK: usize = 4096;
    let mut file = std::fs::File::open(path).unwrap();
    let mut bytes = Vec::new();
    let mut block = [0; BLOCK];
    loop {
        let read = file.read(&mut block).unwrap();
        bytes.extend_from_slice(&block[..read]);
        if block[..read].iter().all(|byte| *byte == 0) {
            return bytes;
        }
    }
}

pub fn write(root: &Path, tree: &Tree) {
    for (name, bytes) in tree {
        let path = root.join(name);
        let mut folder = root.to_owned();
        for part in Path::new(name).parent().unwrap() {
            folder.push(part);
            if !folder.is_dir() {
                std::fs::create_dir(&folder).unwrap();
                narrow(&folder);
            }
        }
        std::fs::write(&path, bytes).unwrap();
        narrow(&path);
    }
}

/// As the store makes files and folders: for nobody else.
pub fn narrow(path: &Path) {
    let mode = if path.is_dir() { 0o700 } else { 0o600 };
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// What a power cut leaves: the journal, which was flushed, and of every other file any state between the last
/// checkpoint and now, each folder of a closed session here or there.
pub fn cut(durable: &Tree, now: &Tree, seed: u64) -> Tree {
    let mut dice = Dice(seed);
    // Where the move of a folder was lost, its files are where they were before.
    let trashed: BTreeSet<&str> = now.keys().filter_map(|name| session(name, "trash/")).collect();
    let moved_back: BTreeSet<&str> = trashed
        .into_iter()
        .filter(|id| {
            let was_open = durable.keys().all(|name| session(name, "trash/") != Some(id));
            was_open && dice.roll(2) == 0
        })
        .collect();
    let placed = |name: &String| match session(name, "trash/") {
        Some(id) if moved_back.contains(id) => name.replacen("trash/", "sessions/", 1),
        _ => name.clone(),
    };
    let now: Tree = now.iter().map(|(name, bytes)| (placed(name), bytes.clone())).collect();
    let gone: BTreeSet<&str> = now.keys().filter_map(|name| session(name, "trash/")).collect();
    let before: Tree = durable
        .iter()
        .map(|(name, bytes)| match session(name, "sessions/") {
            Some(id) if gone.contains(id) => (name.replacen("sessions/", "trash/", 1), bytes.clone()),
            _ => (name.clone(), bytes.clone()),
        })
        .collect();

    let names: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    let mut left = Tree::new();
    for name in names {
        let (old, new) = (before.get(name), now.get(name));
        let kept = if name.starts_with("journal/") {
            new.cloned()
        } else {
            match dice.roll(4) {
                0 => old.cloned(),
                // Part of what was appended.
                1 if new.is_some_and(|new| {
                    old.is_none_or(|old| new.starts_with(old))
                        && Path::new(name).extension().is_some_and(|e| e == "jsonl")
                }) =>
                {
                    let (from, to) = (old.map_or(0, Vec::len), new.map_or(0, Vec::len));
                    let len = from + dice.roll(1 + to as u64 - from as u64) as usize;
                    new.map(|new| new[..len].to_vec())
                }
                _ => new.cloned(),
            }
        };
        left.extend(kept.map(|bytes| (name.clone(), bytes)));
    }
    left
}

/// The session that a file in this folder is of.
fn session<'a>(name: &'a str, folder: &str) -> Option<&'a str> {
    name.strip_prefix(folder)?.split('/').next()
}

/// Chance that can be repeated (xorshift).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }
}
