//! The store as it will be once its journal is replayed, without a byte of it changed: what was committed and not
//! applied yet counts as applied. A replay runs over this picture as it would over the files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use minder_proto::id::SessionId;
use minder_proto::timeline;

use super::finding::Trouble;
use crate::store::{DiskError, FILLED, Op, Target, is_beginning, is_list, is_odd};

/// The picture.
#[derive(Debug)]
pub struct Overlay {
    root: PathBuf,
    /// Files that differ from the disk, or may; `None` for those that are gone.
    files: BTreeMap<String, Option<Content>>,
    /// Sessions in the trash whose folder still lies in `sessions/` on the disk.
    retired: BTreeSet<SessionId>,
    /// Sessions that a start would move to `quarantine/`.
    aside: BTreeSet<SessionId>,
    /// Sessions whose folders leave the trash for good.
    erased: BTreeSet<SessionId>,
}

/// A file: the beginning of one on the disk, and what comes after that.
#[derive(Debug)]
struct Content {
    disk: Option<PathBuf>,
    base: u64,
    tail: Vec<u8>,
}

impl Content {
    fn len(&self) -> u64 {
        self.base + self.tail.len() as u64
    }

    fn truncate(&mut self, len: u64) {
        self.tail.truncate(len.saturating_sub(self.base) as usize);
        self.base = self.base.min(len);
    }

    /// What stands in so many bytes from the offset on, as far as there is anything.
    fn slice(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let end = self.len().min(offset + len as u64);
        let mut there = vec![0; end.saturating_sub(offset) as usize];
        let on_disk = self.base.saturating_sub(offset).min(there.len() as u64) as usize;
        if let Some(disk) = self.disk.as_deref().filter(|_| on_disk > 0) {
            File::open(disk)?.read_exact_at(&mut there[..on_disk], offset)?;
        }
        let begin = offset.saturating_sub(self.base) as usize;
        let rest = there.len() - on_disk;
        there[on_disk..].copy_from_slice(&self.tail[begin..begin + rest]);
        Ok(there)
    }

    /// True if exactly these bytes stand at the offset.
    fn says(&self, offset: u64, bytes: &[u8]) -> io::Result<bool> {
        if self.len() < offset + bytes.len() as u64 {
            return Ok(false);
        }
        let on_disk = self.base.saturating_sub(offset).min(bytes.len() as u64) as usize;
        let (first, second) = bytes.split_at(on_disk);
        if let Some(disk) = self.disk.as_deref().filter(|_| !first.is_empty()) {
            let mut there = vec![0; first.len()];
            match File::open(disk).and_then(|f| f.read_exact_at(&mut there, offset)) {
                Ok(()) if there == first => {}
                Ok(()) => return Ok(false),
                Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
                Err(e) => return Err(e),
            }
        }
        let begin = offset.saturating_sub(self.base) as usize;
        Ok(&self.tail[begin..begin + second.len()] == second)
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn session_in(file: &str, folder: &str) -> Option<SessionId> {
    file.strip_prefix(folder)?.strip_prefix('/')?.split('/').next()?.parse().ok()
}

impl Overlay {
    /// The store in `root` as it is on the disk.
    pub fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            files: BTreeMap::new(),
            retired: BTreeSet::new(),
            aside: BTreeSet::new(),
            erased: BTreeSet::new(),
        }
    }

    /// Where a file or folder that the picture does not hold itself lies on the disk.
    fn place(&self, file: &str) -> Option<PathBuf> {
        let trashed = session_in(file, "trash");
        if trashed.or(session_in(file, "sessions")).is_some_and(|s| self.erased.contains(&s)) {
            return None;
        }
        if let Some(session) = session_in(file, "sessions") {
            let left = self.retired.contains(&session) || self.aside.contains(&session);
            return (!left).then(|| self.root.join(file));
        }
        match session_in(file, "trash").filter(|s| self.retired.contains(s)) {
            Some(_) => Some(self.root.join(file.replacen("trash/", "sessions/", 1))),
            None => Some(self.root.join(file)),
        }
    }

    fn under<'a>(&'a self, dir: &str) -> impl Iterator<Item = (&'a str, bool)> + use<'a> {
        let prefix = if dir.is_empty() { String::new() } else { format!("{dir}/") };
        let from = self.files.range(prefix.clone()..);
        from.map_while(move |(file, content)| Some((file.strip_prefix(&*prefix)?, content.is_some())))
    }

    /// True for a folder that is there.
    pub fn is_dir(&self, dir: &str) -> bool {
        self.under(dir).any(|(_, there)| there) || self.place(dir).is_some_and(|p| p.is_dir())
    }

    fn exists(&self, file: &str) -> bool {
        match self.files.get(file) {
            Some(content) => content.is_some(),
            None => self.place(file).is_some_and(|p| p.exists()),
        }
    }

    /// A file of the picture, to be changed.
    fn content(&mut self, file: &str) -> io::Result<Option<&mut Content>> {
        if !self.files.contains_key(file) {
            let Some(path) = self.place(file) else { return Ok(None) };
            let base = match path.symlink_metadata() {
                Ok(meta) if meta.is_file() => meta.len(),
                Ok(_) => return Err(io::Error::new(io::ErrorKind::InvalidData, "not a plain file")),
                Err(e) if is_absent(&e) => return Ok(None),
                Err(e) => return Err(e),
            };
            let content = Content { disk: Some(path), base, tail: Vec::new() };
            self.files.insert(file.to_owned(), Some(content));
        }
        Ok(self.files.get_mut(file).and_then(Option::as_mut))
    }

    /// A session that was retired already lies in the trash.
    fn lies(&self, file: &str) -> String {
        match file.strip_prefix("sessions/").and_then(|rest| rest.split_once('/')) {
            Some((id, name))
                if self.is_dir(&format!("trash/{id}")) && !self.is_dir(&format!("sessions/{id}")) =>
            {
                format!("trash/{id}/{name}")
            }
            _ => file.to_owned(),
        }
    }

    /// The file of a segment, sealed by now or still the active one.
    fn segment_of(&self, file: &str, segment: u64) -> String {
        let file = self.lies(file);
        let Some((dir, _)) = file.rsplit_once('/').filter(|_| segment > 0) else { return file };
        let sealed = format!("{dir}/{}", timeline::sealed_name(segment));
        if self.exists(&sealed) { sealed } else { file }
    }

    fn put(&mut self, file: String, bytes: &[u8]) {
        self.files.insert(file, Some(Content { disk: None, base: 0, tail: bytes.to_vec() }));
    }

    fn append(&mut self, file: &str, offset: u64, bytes: &[u8]) -> io::Result<Option<String>> {
        let folder = file.rsplit_once('/').is_none_or(|(dir, _)| self.is_dir(dir));
        if offset > 0 && !folder {
            return Ok(Some(format!("{file}: its folder is gone")));
        }
        if self.content(file)?.is_none() {
            self.put(file.to_owned(), &[]);
        }
        let content = self.content(file)?.expect("put above");
        let len = content.len();
        if is_list(file) && (len..len.saturating_add(FILLED)).contains(&offset) {
            content.tail.resize((offset - content.base) as usize, b'\n');
        } else if len < offset {
            return Ok(Some(format!("{file}: {len} bytes, where {offset} were written")));
        }
        if !content.says(offset, bytes)? {
            content.truncate(offset);
            content.tail.extend_from_slice(bytes);
        }
        Ok(None)
    }

    fn seal(&mut self, dir: &str, first: u64) -> io::Result<()> {
        let active = self.lies(&format!("{dir}/{}", timeline::ACTIVE));
        let sealed = active.replace(timeline::ACTIVE, &timeline::sealed_name(first));
        if !self.exists(&sealed) && self.content(&active)?.is_some() {
            let content = self.files.insert(active, None).flatten();
            self.files.insert(sealed, content);
        }
        Ok(())
    }

    fn retire(&mut self, session: SessionId) {
        let (from, to) = (format!("sessions/{session}"), format!("trash/{session}"));
        let on_disk = self.place(&from).is_some_and(|p| p.is_dir());
        let moved: Vec<String> = self.under(&from).map(|(name, _)| name.to_owned()).collect();
        for name in moved {
            let content = self.files.remove(&format!("{from}/{name}")).flatten();
            self.files.insert(format!("{to}/{name}"), content);
        }
        if on_disk {
            self.retired.insert(session);
        }
    }

    /// A session's folder leaves the trash for good.
    fn erase(&mut self, session: SessionId) {
        let dir = format!("trash/{session}");
        let names: Vec<String> = self.under(&dir).map(|(name, _)| name.to_owned()).collect();
        for name in names {
            self.files.remove(&format!("{dir}/{name}"));
        }
        self.retired.remove(&session);
        self.erased.insert(session);
    }

    /// Names in a folder, and whether each is a folder itself, in order. A folder that is not there is empty.
    pub fn names(&self, dir: &str) -> Result<BTreeMap<String, bool>, Trouble> {
        let mut names = BTreeMap::new();
        match self.place(dir).map(std::fs::read_dir) {
            Some(Ok(entries)) => {
                for entry in entries {
                    let entry = entry?;
                    let folder = entry.file_type()?.is_dir();
                    names.insert(entry.file_name().to_string_lossy().into_owned(), folder);
                }
            }
            Some(Err(e)) if e.kind() == io::ErrorKind::NotADirectory => {
                return Err(Trouble::Kind("not a folder"));
            }
            Some(Err(e)) if e.kind() != io::ErrorKind::NotFound => return Err(e.into()),
            Some(Err(_)) | None => {}
        }
        for session in self.retired.iter().chain(&self.aside).filter(|_| dir == "sessions") {
            names.remove(&session.to_string());
        }
        for session in self.erased.iter().filter(|_| dir == "sessions" || dir == "trash") {
            names.remove(&session.to_string());
        }
        names.extend(self.retired.iter().filter(|_| dir == "trash").map(|s| (s.to_string(), true)));
        for (name, there) in self.under(dir) {
            match (name.split_once('/'), there) {
                (Some((folder, _)), true) => names.insert(folder.to_owned(), true),
                (None, true) => names.insert(name.to_owned(), false),
                (None, false) => names.remove(name),
                (Some(_), false) => None,
            };
        }
        Ok(names)
    }

    /// Opens a file to be read once; `None` if there is none.
    pub fn open(&self, file: &str) -> Result<Option<BufReader<Box<dyn Read + '_>>>, Trouble> {
        let reader: Box<dyn Read> = match self.files.get(file) {
            Some(None) => return Ok(None),
            Some(Some(content)) => match &content.disk {
                Some(path) => {
                    let Some(disk) = open(path)? else { return Ok(None) };
                    Box::new(disk.take(content.base).chain(&content.tail[..]))
                }
                None => Box::new(&content.tail[..]),
            },
            None => match self.place(file).map(|p| open(&p)).transpose()?.flatten() {
                Some(disk) => Box::new(disk),
                None => return Ok(None),
            },
        };
        Ok(Some(BufReader::with_capacity(64 * 1024, reader)))
    }

    /// A whole file; `None` if there is none.
    pub fn read(&self, file: &str) -> Result<Option<Vec<u8>>, Trouble> {
        let Some(mut reader) = self.open(file)? else { return Ok(None) };
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    }

    /// Sessions that a start would move to `quarantine/`.
    pub fn aside(&self) -> &BTreeSet<SessionId> {
        &self.aside
    }
}

/// Opens a plain file; anything else of its name, which might never come to an end, is not opened.
fn open(path: &Path) -> Result<Option<File>, Trouble> {
    match path.symlink_metadata() {
        Ok(meta) if meta.is_file() => {}
        Ok(meta) if meta.is_dir() => return Err(Trouble::Kind("a folder, where a file should be")),
        Ok(_) => return Err(Trouble::Kind("not a plain file")),
        Err(e) if is_absent(&e) => return Ok(None),
        Err(e) => return Err(e.into()),
    }
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(e) if is_absent(&e) => Ok(None),
        Err(e) => Err(e.into()),
    }
}

impl Target for Overlay {
    fn redo(&mut self, op: &Op) -> Result<Option<String>, DiskError> {
        let done = match op {
            Op::Append { file, segment, offset, bytes } => {
                let file = self.segment_of(file, *segment);
                self.append(&file, *offset, bytes)
            }
            Op::Replace { file, bytes } => {
                let file = self.lies(file);
                let folder = |p: PathBuf| p.symlink_metadata().is_ok_and(|m| m.is_dir());
                if !self.files.contains_key(&file) && self.place(&file).is_some_and(folder) {
                    Err(io::ErrorKind::IsADirectory.into())
                } else {
                    self.put(file, bytes);
                    Ok(None)
                }
            }
            Op::Remove { file } => {
                match op.trashed() {
                    Some(session) => self.erase(session),
                    None => drop(self.files.insert(self.lies(file), None)),
                }
                Ok(None)
            }
            Op::Seal { dir, first } => self.seal(dir, *first).map(|()| None),
            Op::Retire { session } => {
                self.retire(*session);
                Ok(None)
            }
        };
        match done {
            Err(error) if is_odd(&error) => Ok(Some(format!("{}: {error}", op.path()))),
            done => done.map_err(|error| DiskError { path: self.root.join(op.path()), error }),
        }
    }

    fn cut(&mut self, file: &str, segment: u64, len: u64) -> Result<bool, DiskError> {
        let file = self.segment_of(file, segment);
        match self.content(&file) {
            Ok(Some(content)) if content.len() > len => {
                content.truncate(len);
                Ok(true)
            }
            Ok(_) => Ok(false),
            Err(error) => Err(DiskError { path: self.root.join(file), error }),
        }
    }

    fn set_aside(&mut self, session: SessionId, _why: &str) -> Result<(), DiskError> {
        let dir = format!("sessions/{session}");
        let names: Vec<String> = self.under(&dir).map(|(name, _)| name.to_owned()).collect();
        for name in names {
            self.files.remove(&format!("{dir}/{name}"));
        }
        self.aside.insert(session);
        Ok(())
    }

    fn bears(&mut self, file: &str, segment: u64, offset: u64, bytes: &[u8]) -> Result<bool, DiskError> {
        let file = self.segment_of(file, segment);
        let look = |content: Option<&mut Content>| match content {
            None => Ok(offset == 0),
            Some(content) if content.len() < offset => Ok(false),
            Some(content) => Ok(is_beginning(&content.slice(offset, bytes.len())?, bytes)),
        };
        let looked = match self.content(&file).and_then(look) {
            Err(error) if is_odd(&error) => Ok(false),
            looked => looked,
        };
        looked.map_err(|error| DiskError { path: self.root.join(file), error })
    }

    fn whole(&self, file: &str) -> Option<Vec<u8>> {
        self.read(&self.lies(file)).ok().flatten()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::store::replay;
    use crate::store::replay_tests::{history, ready, tree};
    use crate::store::{Files, Replayed};

    /// Every file of the picture, with its content.
    fn picture(overlay: &Overlay, dir: &str, out: &mut BTreeMap<String, Vec<u8>>) {
        for (name, folder) in overlay.names(dir).unwrap() {
            let path = if dir.is_empty() { name } else { format!("{dir}/{name}") };
            if folder {
                picture(overlay, &path, out);
            } else {
                let bytes = overlay.read(&path).unwrap().expect("it was listed");
                out.insert(path, bytes);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

        /// Whatever part of the operations reached the files, the picture is what a replay would make of them, and
        /// making it changes nothing.
        #[test]
        fn the_picture_is_what_a_replay_makes(
            steps in prop::collection::vec((any::<u8>(), any::<u8>()), 1..40),
            applied in any::<prop::sample::Index>(),
            torn in any::<u8>(),
            damaged in prop::option::of((any::<prop::sample::Index>(), any::<prop::sample::Index>())),
            hole in prop::option::of((any::<prop::sample::Index>(), 1..4usize)),
        ) {
            let mut commits = history(&steps);
            let ops: Vec<Op> = commits.iter().flatten().cloned().collect();
            prop_assume!(!ops.is_empty());
            let dir = tempfile::tempdir().unwrap();
            ready(dir.path());
            let n = applied.index(ops.len() + 1);
            let mut files = Files::new(dir.path());
            for op in &ops[..n] {
                files.apply(op).unwrap();
            }
            if let Some(Op::Append { file, offset, bytes, segment }) = ops.get(n) {
                let bytes = bytes[..torn as usize % bytes.len()].to_vec();
                let part = Op::Append { file: file.clone(), segment: *segment, offset: *offset, bytes };
                files.apply(&part).unwrap();
            }
            // A foreign hand may have cut a file, or lengthened it.
            if let Some((which, len)) = damaged {
                let there: Vec<_> = tree(dir.path()).into_iter().collect();
                if !there.is_empty() {
                    let (name, bytes) = &there[which.index(there.len())];
                    let mut bytes = bytes.clone();
                    bytes.resize(len.index(bytes.len() + 9), b'#');
                    std::fs::write(dir.path().join(name), bytes).unwrap();
                }
            }
            // Some commits in the middle may be unreadable.
            let hole = hole.map(|(at, n)| {
                let at = at.index(commits.len() + 1);
                commits.drain(at..commits.len().min(at + n));
                at
            });
            let before = tree(dir.path());
            let mut overlay = Overlay::new(dir.path());
            let pictured = replay(&mut overlay, &commits, hole).unwrap();
            let mut seen = BTreeMap::new();
            picture(&overlay, "", &mut seen);
            prop_assert_eq!(tree(dir.path()), before);

            let done = replay(&mut Files::new(dir.path()), &commits, hole).unwrap();
            let aside = |r: &Replayed| r.quarantined.iter().map(|(s, _)| *s).collect::<Vec<_>>();
            prop_assert_eq!(aside(&pictured), aside(&done));
            prop_assert_eq!(pictured.notes.len(), done.notes.len());
            prop_assert_eq!(pictured.cut.len(), done.cut.len());
            prop_assert_eq!(pictured.unfit, done.unfit);
            let mut after = tree(dir.path());
            after.retain(|name, _| !name.starts_with("quarantine/"));
            prop_assert_eq!(seen, after);
        }
    }
}
