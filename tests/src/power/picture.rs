//! A file system as recorded calls leave it, and what a loss of power may leave of it. Every change is kept with the
//! lines at which it began, ended and became durable. From that the folder is built that may be found after a loss at
//! any line:
//!
//! * what was durable is there;
//! * of the rest, bytes may be there or not, in any order, by sectors or cut off anywhere, and a file may have grown
//!   before its bytes came;
//! * names may be there or not, in any order of those that do not build on each other; a rename is whole or not at all;
//! * what a failed sync was for may be lost for good.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{File, Permissions};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::dice::Dice;
use super::trace::{Act, Step};

mod content;

use content::{Content, Style};

type Node = usize;
type Name = (Node, String);

/// What a node is.
#[derive(Clone, Debug)]
enum Kind {
    Folder,
    File,
    Link(PathBuf),
}

/// One change of one node.
#[derive(Clone, Debug)]
enum What {
    Bytes { file: Node, offset: u64, bytes: Vec<u8> },
    Size { file: Node, len: u64 },
    Grow { file: Node, len: u64 },
    Put { name: Name, node: Node },
    Take { name: Name },
    Move { from: Name, to: Name, node: Node },
}

impl What {
    fn names(&self) -> Vec<&Name> {
        match self {
            Self::Put { name, .. } | Self::Take { name } => vec![name],
            Self::Move { from, to, .. } => vec![from, to],
            Self::Bytes { .. } | Self::Size { .. } | Self::Grow { .. } => Vec::new(),
        }
    }

    /// Whose sync makes it durable: the file, or any of the folders.
    fn nodes(&self) -> Vec<Node> {
        match self {
            Self::Bytes { file, .. } | Self::Size { file, .. } | Self::Grow { file, .. } => vec![*file],
            names => names.names().into_iter().map(|(folder, _)| *folder).collect(),
        }
    }
}

#[derive(Clone, Debug)]
struct Change {
    enter: usize,
    exit: usize,
    /// The line at which it became durable.
    durable: usize,
    /// The line at which a sync of it failed.
    failed: usize,
    what: What,
}

const NEVER: usize = usize::MAX;

/// The file system below one folder.
#[derive(Clone)]
pub struct Picture {
    root: PathBuf,
    kinds: Vec<Kind>,
    changes: Vec<Change>,
    /// What is there now, in memory.
    names: BTreeMap<Name, Node>,
    lengths: HashMap<Node, u64>,
    descriptors: HashMap<i64, Node>,
    pending: HashMap<Node, Vec<usize>>,
}

const ROOT: Node = 0;

impl Picture {
    /// Below this folder, which is empty and durable.
    pub fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            kinds: vec![Kind::Folder],
            changes: Vec::new(),
            names: BTreeMap::new(),
            lengths: HashMap::new(),
            descriptors: HashMap::new(),
            pending: HashMap::new(),
        }
    }

    /// A process ended: its descriptors are closed.
    pub fn process_ended(&mut self) {
        self.descriptors.clear();
    }

    /// Takes in one call.
    pub fn apply(&mut self, step: &Step) -> Result<()> {
        let (enter, exit) = (step.enter, step.exit.unwrap_or(step.enter));
        match &step.act {
            Act::Open { fd, path, create, truncate } => {
                let Some((folder, name)) = self.place(path) else { return Ok(()) };
                let node = match name {
                    None => folder,
                    Some(name) => match self.names.get(&(folder, name.clone())) {
                        Some(node) => *node,
                        None if *create => self.make(Kind::File, (folder, name), enter, exit),
                        None => return Ok(()), // what is not ours, as the file of the lock of another
                    },
                };
                if *truncate && self.lengths.get(&node).is_some_and(|len| *len > 0) {
                    self.lengths.insert(node, 0);
                    self.change(enter, exit, What::Size { file: node, len: 0 });
                }
                self.descriptors.insert(*fd, node);
            }
            Act::Close { fd } => {
                self.descriptors.remove(fd);
            }
            Act::Copy { from, to } => {
                if let Some(node) = self.descriptors.get(from).copied() {
                    self.descriptors.insert(*to, node);
                }
            }
            Act::Write { fd, offset, bytes } => {
                let Some(file) = self.file(*fd) else { return Ok(()) };
                let len = self.lengths.entry(file).or_default();
                let offset = offset.unwrap_or(*len);
                *len = (*len).max(offset + bytes.len() as u64);
                self.change(enter, exit, What::Bytes { file, offset, bytes: bytes.clone() });
            }
            Act::Resize { fd, len } => {
                let Some(file) = self.file(*fd) else { return Ok(()) };
                self.lengths.insert(file, *len);
                self.change(enter, exit, What::Size { file, len: *len });
            }
            Act::Allocate { fd, end } => {
                let Some(file) = self.file(*fd) else { return Ok(()) };
                let len = self.lengths.entry(file).or_default();
                *len = (*len).max(*end);
                self.change(enter, exit, What::Grow { file, len: *end });
            }
            Act::Sync { fd, done } => {
                let Some(node) = self.descriptors.get(fd).copied() else { return Ok(()) };
                // One that is under way when the process ends promised nothing.
                if step.exit.is_some() {
                    let pending = self.pending.remove(&node).unwrap_or_default();
                    let left = self.synced(pending, enter, exit, *done);
                    self.pending.insert(node, left);
                }
            }
            Act::SyncAll { done } => {
                if step.exit.is_some() {
                    for (node, pending) in std::mem::take(&mut self.pending) {
                        let left = self.synced(pending, enter, exit, *done);
                        self.pending.insert(node, left);
                    }
                }
            }
            Act::Rename { from, to } => {
                let (Some(from), Some(to)) = (self.name(from), self.name(to)) else { return Ok(()) };
                let node = self.names.remove(&from).with_context(|| format!("{from:?} is not there"))?;
                self.names.insert(to.clone(), node);
                self.change(enter, exit, What::Move { from, to, node });
            }
            Act::Unlink { path } => {
                let Some(name) = self.name(path) else { return Ok(()) };
                self.names.remove(&name);
                self.change(enter, exit, What::Take { name });
            }
            Act::MakeDir { path } => {
                if let Some(name) = self.name(path) {
                    self.make(Kind::Folder, name, enter, exit);
                }
            }
            Act::Symlink { path, target } => {
                if let Some(name) = self.name(path) {
                    self.make(Kind::Link(target.clone()), name, enter, exit);
                }
            }
            Act::Answer { .. } => {}
        }
        Ok(())
    }

    /// What is left of these for another sync after this one: those that did not end before it began. Of names the
    /// system's own log keeps account; bytes that could not be written it may forget.
    fn synced(&mut self, pending: Vec<usize>, enter: usize, exit: usize, done: bool) -> Vec<usize> {
        let (before, left): (Vec<usize>, Vec<usize>) = pending.into_iter().partition(|i| {
            let change = &self.changes[*i];
            change.exit < enter && (done || change.what.names().is_empty())
        });
        for i in before {
            let change = &mut self.changes[i];
            let line = if done { &mut change.durable } else { &mut change.failed };
            *line = (*line).min(exit);
        }
        left
    }

    fn change(&mut self, enter: usize, exit: usize, what: What) {
        for node in what.nodes() {
            self.pending.entry(node).or_default().push(self.changes.len());
        }
        self.changes.push(Change { enter, exit, durable: NEVER, failed: NEVER, what });
    }

    fn make(&mut self, kind: Kind, name: Name, enter: usize, exit: usize) -> Node {
        let node = self.kinds.len();
        self.kinds.push(kind);
        self.names.insert(name.clone(), node);
        self.change(enter, exit, What::Put { name, node });
        node
    }

    fn file(&self, fd: i64) -> Option<Node> {
        self.descriptors.get(&fd).copied().filter(|n| matches!(self.kinds[*n], Kind::File))
    }

    fn name(&self, path: &Path) -> Option<Name> {
        self.place(path).and_then(|(folder, name)| Some((folder, name?)))
    }

    /// The folder that a path leads to, and the name in it; none where it leads elsewhere.
    fn place(&self, path: &Path) -> Option<(Node, Option<String>)> {
        let inside = path.strip_prefix(&self.root).ok()?;
        let mut parts: Vec<String> = inside
            .components()
            .filter_map(|c| match c {
                Component::Normal(part) => Some(part.to_str()?.to_owned()),
                _ => None,
            })
            .collect();
        let last = parts.pop();
        let mut folder = ROOT;
        for part in parts {
            folder = *self.names.get(&(folder, part))?;
        }
        Some((folder, last))
    }

    /// Writes what a power loss at this line may leave into an empty folder.
    pub fn after_loss(&self, line: usize, dice: &mut Dice, into: &Path) -> Result<()> {
        let begun = self.changes.partition_point(|c| c.enter < line);
        let changes = &self.changes[..begun];
        let chosen = choose_names(changes, line, dice);
        let mut names: BTreeMap<Name, Node> = BTreeMap::new();
        for change in changes.iter().enumerate().filter(|(i, _)| chosen.contains(i)).map(|(_, c)| c) {
            match &change.what {
                What::Put { name, node } => {
                    names.insert(name.clone(), *node);
                }
                What::Take { name } => {
                    names.remove(name);
                }
                What::Move { from, to, node } => {
                    names.remove(from);
                    names.insert(to.clone(), *node);
                }
                What::Bytes { .. } | What::Size { .. } | What::Grow { .. } => {}
            }
        }
        let mut files: HashMap<Node, Content> = HashMap::new();
        let style = Style::any(dice);
        let mut styles: HashMap<Node, Style> = HashMap::new();
        let forgets = dice.percent(50);
        for change in changes {
            let (What::Bytes { file, .. } | What::Size { file, .. } | What::Grow { file, .. }) = &change.what
            else {
                continue;
            };
            let content = files.entry(*file).or_default();
            if change.durable < line {
                content.apply(&change.what);
            } else if change.failed >= line || !forgets {
                let own = styles.entry(*file).or_insert_with(|| style.or_another(dice));
                content.apply_in_part(&change.what, *own, dice);
            }
        }
        self.build(&names, &files, into)
    }

    fn build(&self, names: &BTreeMap<Name, Node>, files: &HashMap<Node, Content>, into: &Path) -> Result<()> {
        let mut open = vec![(ROOT, into.to_owned())];
        while let Some((folder, path)) = open.pop() {
            for ((_, name), node) in names.range((folder, String::new())..(folder + 1, String::new())) {
                let path = path.join(name);
                match &self.kinds[*node] {
                    Kind::Folder => {
                        std::fs::create_dir(&path)?;
                        std::fs::set_permissions(&path, Permissions::from_mode(0o700))?;
                        open.push((*node, path));
                    }
                    Kind::Link(target) => std::os::unix::fs::symlink(target, &path)?,
                    Kind::File => {
                        let file = File::create(&path)?;
                        file.set_permissions(Permissions::from_mode(0o600))?;
                        if let Some(content) = files.get(node) {
                            let written = content.0.iter().rposition(|b| *b != 0).map_or(0, |last| last + 1);
                            file.write_all_at(&content.0[..written], 0)?;
                            file.set_len(content.0.len() as u64)?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Checks that the picture is what is in the folder now: a recorder that misses a call proves nothing.
    pub fn is_true(&self) -> Result<()> {
        let scratch = tempfile::tempdir_in(self.root.parent().context("the folder is in another")?)?;
        let mut files: HashMap<Node, Content> = HashMap::new();
        for change in &self.changes {
            if let What::Bytes { file, .. } | What::Size { file, .. } | What::Grow { file, .. } = &change.what
            {
                files.entry(*file).or_default().apply(&change.what);
            }
        }
        self.build(&self.names, &files, scratch.path())?;
        let (mine, theirs) = (tree(scratch.path())?, tree(&self.root)?);
        for (name, bytes) in &mine {
            ensure!(theirs.contains_key(name), "{name} is not there, and was not recorded to go");
            let differ = theirs[name].iter().zip(bytes).position(|(a, b)| a != b);
            let lengths = (theirs[name].len(), bytes.len());
            ensure!(
                differ.is_none() && lengths.0 == lengths.1,
                "{name} has {} bytes, {} were recorded; they differ at {differ:?}",
                lengths.0,
                lengths.1
            );
        }
        let more: Vec<_> = theirs.keys().filter(|name| !mine.contains_key(*name)).collect();
        ensure!(more.is_empty(), "not recorded to come: {more:?}");
        Ok(())
    }
}

/// Which changes of names a loss leaves.
fn choose_names(changes: &[Change], line: usize, dice: &mut Dice) -> BTreeSet<usize> {
    let open: Vec<usize> = (0..changes.len()).filter(|i| !changes[*i].what.names().is_empty()).collect();
    let durable = |i: &usize| changes[*i].durable < line;
    let mut chosen: BTreeSet<usize> = open.iter().copied().filter(durable).collect();
    let pending: Vec<usize> = open.iter().copied().filter(|i| !durable(i)).collect();
    match dice.below(5) {
        0 => chosen.extend(pending),
        1 => {}
        // In the order in which they were made, as file systems with a log of their own do it.
        2 => {
            let last = chosen.last().copied().unwrap_or(0);
            let end = pending.get(dice.below(pending.len() + 1)).copied().unwrap_or(NEVER);
            chosen.extend(pending.into_iter().filter(|i| *i < last.max(end)));
        }
        // Each folder for itself.
        3 => {
            let mut ends: HashMap<Node, usize> = HashMap::new();
            for i in pending {
                let folder = changes[i].what.nodes()[0];
                let end = *ends.entry(folder).or_insert_with(|| changes.len() * dice.below(101) / 100);
                if i < end {
                    chosen.insert(i);
                }
            }
        }
        _ => {
            let chance = *dice.one_of(&[10, 50, 90]);
            chosen.extend(pending.into_iter().filter(|_| dice.percent(chance)));
        }
    }
    // What builds on another change of the same name is not there without it.
    let mut needed: BTreeSet<&Name> = BTreeSet::new();
    for i in open.into_iter().rev() {
        let names = changes[i].what.names();
        if chosen.contains(&i) || names.iter().any(|n| needed.contains(n)) {
            chosen.insert(i);
            needed.extend(names);
        }
    }
    chosen
}

/// Every file and link below a folder, with its bytes or its target.
fn tree(root: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            let name = path.strip_prefix(root)?.to_string_lossy().into_owned();
            let kind = path.symlink_metadata()?.file_type();
            if kind.is_dir() {
                found.insert(name + "/", Vec::new());
                open.push(path);
            } else if kind.is_symlink() {
                found.insert(name, std::fs::read_link(&path)?.into_os_string().into_encoded_bytes());
            } else {
                found.insert(name, std::fs::read(&path)?);
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
