//! Applying operations to the store's files: appends at known offsets through a bounded set of open files,
//! replacements by rename, seals and retirements by rename.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use minder_proto::{timeline, trial, whole};

use super::disk::{self, DiskError, at};
use super::durable::Touched;
use super::kept;
use super::kill_point::reach;
use super::op::Op;
use super::recover::is_beginning;

/// Most files kept open between commits; at most a quarter of what the process may open.
const KEPT_OPEN: usize = 4_096;

/// The store's files as the owner writes them.
pub struct Files {
    root: PathBuf,
    open: HashMap<String, (File, u64)>,
    tick: u64,
    most: usize,
    /// How long files will be once the group under way is applied.
    ahead: HashMap<String, u64>,
    /// Files and folders changed since the last checkpoint began.
    touched: Touched,
    /// What is redone is written again even where it stands: after a failed flush what is read may be in memory alone.
    anew: bool,
}

/// Most bytes that are missing in a list and written as empty lines, so that what comes after them has its place.
pub const FILLED: u64 = 16 * 1024 * 1024;

/// Whether a file is a list of lines of which none builds on another.
pub fn is_list(file: &str) -> bool {
    let of_host = || file.strip_prefix("hosts/").is_some_and(|rest| rest.ends_with("/log.jsonl"));
    matches!(file, "keys.jsonl" | "closed.jsonl") || of_host()
}

/// What a file looks like right now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// It has this many bytes.
    Len(u64),
    /// It is not there, but its folder is.
    Absent,
    /// Its folder is gone.
    NoFolder,
}

impl Files {
    /// The files of the store in `root`.
    pub fn new(root: &Path) -> Self {
        let limit = nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE);
        let quarter = limit.map_or(64, |(soft, _)| soft / 4);
        Self {
            root: root.to_owned(),
            open: HashMap::new(),
            tick: 0,
            most: KEPT_OPEN.min(usize::try_from(quarter).unwrap_or(KEPT_OPEN)),
            ahead: HashMap::new(),
            touched: Touched::default(),
            anew: false,
        }
    }

    /// Notes what a mutation of the group under way will write: those behind it build on that.
    pub fn expect(&mut self, ops: &[Op]) {
        for op in ops {
            match op {
                Op::Append { file, offset, bytes, .. } => {
                    self.ahead.insert(file.clone(), offset + bytes.len() as u64);
                }
                Op::Seal { dir, .. } => {
                    self.ahead.insert(format!("{dir}/{}", timeline::ACTIVE), 0);
                }
                Op::Replace { file, bytes } if is_list(file) => {
                    self.ahead.insert(file.clone(), bytes.len() as u64);
                }
                Op::Replace { .. } | Op::Remove { .. } | Op::Retire { .. } => {}
            }
        }
    }

    /// The group is over: what stands in the files counts again.
    pub fn expect_nothing(&mut self) {
        self.ahead.clear();
    }

    /// From now on what is redone is written again even where it stands.
    pub fn trust_nothing(&mut self, anew: bool) {
        self.anew = anew;
    }

    /// The store's folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The absolute path of a file of the store.
    pub fn path(&self, file: &str) -> PathBuf {
        self.root.join(file)
    }

    /// What has been changed since the last call: what a checkpoint must make durable.
    pub fn take_touched(&mut self) -> Vec<PathBuf> {
        self.touched.take()
    }

    /// Puts back what a failed checkpoint did not make durable.
    pub fn touch_again(&mut self, paths: Vec<PathBuf>) {
        self.touched.again(paths);
    }

    /// Looks at a file with `fstat`, through the open descriptor where there is one. What the group under way will
    /// write to it counts as written.
    pub fn look(&mut self, file: &str) -> Result<Found, DiskError> {
        if let Some(len) = self.ahead.get(file) {
            return Ok(Found::Len(*len));
        }
        if let Some((open, _)) = self.open.get(file) {
            let meta = open.metadata().map_err(at(&self.root.join(file)))?;
            if meta.nlink() > 0 {
                return Ok(Found::Len(meta.len()));
            }
            self.open.remove(file); // replaced or removed by a foreign hand
        }
        let path = self.path(file);
        match std::fs::metadata(&path) {
            Ok(meta) => Ok(Found::Len(meta.len())),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                let folder = path.parent().map_or(Ok(false), disk::is_there)?;
                Ok(if folder { Found::Absent } else { Found::NoFolder })
            }
            Err(e) => Err(at(&path)(e)),
        }
    }

    /// Makes durable what a foreign hand may have written: what is committed from now on lies behind it.
    pub fn settle(&mut self, file: &str) -> Result<(), DiskError> {
        let path = self.path(file);
        match whole::open(&path).and_then(|open| open.sync_data()) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(at(&path)(e)),
            _ => Ok(()),
        }
    }

    /// Applies one operation for the first time: what it says is not there yet.
    pub fn apply(&mut self, op: &Op) -> Result<(), DiskError> {
        match op {
            Op::Append { file, offset, bytes, .. } => self.append(file, *offset, bytes),
            Op::Replace { file, bytes } => {
                let path = self.path(file);
                self.open.remove(file);
                self.folder_of(&path)?;
                disk::replace(&path, bytes)?;
                self.touched.file(&path);
                Ok(())
            }
            Op::Remove { file } => {
                let path = self.path(file);
                self.open.remove(file);
                if op.is_tree() {
                    disk::remove_tree(&path)?;
                } else {
                    disk::remove(&path)?;
                }
                self.touched.parent(&path);
                Ok(())
            }
            Op::Seal { dir, first } => {
                let active = self.path(dir).join(timeline::ACTIVE);
                let sealed = self.path(dir).join(timeline::sealed_name(*first));
                self.open.remove(&format!("{dir}/{}", timeline::ACTIVE));
                if !disk::is_there(&sealed)? {
                    reach("seal.before-rename");
                    std::fs::rename(&active, &sealed).map_err(at(&active))?;
                }
                self.touched.file(&sealed);
                Ok(())
            }
            Op::Retire { session } => {
                let dir = format!("sessions/{session}");
                self.open.retain(|file, _| !file.starts_with(&dir));
                let (from, to) = (self.path(&dir), self.root.join("trash").join(session.to_string()));
                reach("retire.before-rename");
                match std::fs::rename(&from, &to) {
                    Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                    Err(e) => return Err(at(&from)(e)),
                    Ok(()) => {}
                }
                self.touched.moved(&from, &to);
                Ok(())
            }
        }
    }

    /// Makes the folder of a file where it is missing.
    fn folder_of(&mut self, path: &Path) -> Result<(), DiskError> {
        let Some(folder) = path.parent() else { return Ok(()) };
        let mut missing = Vec::new();
        for above in folder.ancestors() {
            if disk::is_there(above)? {
                break;
            }
            missing.push(above.to_owned());
        }
        if !missing.is_empty() {
            disk::make_dir(folder)?;
        }
        // Each that was made has to stay, and one that a killed daemon made may be there in memory alone.
        let anew =
            folder.ancestors().take_while(|above| above.starts_with(&self.root) && *above != self.root);
        let anew: Vec<PathBuf> = if self.anew { anew.map(Path::to_owned).collect() } else { missing };
        for made in anew {
            self.touched.parent(&made);
        }
        Ok(())
    }

    fn append(&mut self, file: &str, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        let path = self.path(file);
        self.tick += 1;
        let tick = self.tick;
        if !self.open.contains_key(file) {
            if self.open.len() >= self.most {
                self.evict();
            }
            if offset == 0 {
                self.folder_of(&path)?;
            }
            let opened = disk::open_rw(&path).map_err(at(&path))?;
            self.open.insert(file.to_owned(), (opened, tick));
            self.touched.file(&path);
        }
        let (open, used) = self.open.get_mut(file).expect("inserted above");
        *used = tick;
        let before = open.metadata().map_err(at(&path))?.len();
        if before != offset {
            let what = format!("{before} bytes, where {offset} were written");
            return Err(at(&path)(io::Error::other(what)));
        }
        open.write_all_at(bytes, offset).map_err(|e| {
            // A short write is taken back before anything else is written.
            let _ = open.set_len(offset);
            at(&path)(e)
        })?;
        self.touched.file(&path);
        Ok(())
    }

    fn evict(&mut self) {
        let mut ticks: Vec<u64> = self.open.values().map(|(_, tick)| *tick).collect();
        ticks.sort_unstable();
        let limit = ticks[ticks.len() / 4];
        self.open.retain(|_, (_, tick)| *tick > limit);
    }

    /// Where a file lies at a replay: a session that was retired already lies in the trash.
    pub fn lies(&self, file: &str) -> Result<PathBuf, DiskError> {
        let path = self.path(file);
        let Some(rest) = file.strip_prefix("sessions/") else { return Ok(path) };
        let Some((id, name)) = rest.split_once('/') else { return Ok(path) };
        let trash = self.root.join("trash").join(id);
        let retired = disk::is_there(&trash)? && !disk::is_there(&self.root.join("sessions").join(id))?;
        Ok(if retired { trash.join(name) } else { path })
    }

    /// Applies one operation that may have been applied already, wholly or in part. Gives why the session it
    /// belongs to cannot be trusted any more, if so.
    pub fn redo(&mut self, op: &Op) -> Result<Option<String>, DiskError> {
        match self.redo_now(op) {
            // One entry of a folder keeps nobody else from being served.
            Err(e) if disk::is_odd(&e.error) => Ok(Some(e.to_string())),
            other => other,
        }
    }

    fn redo_now(&mut self, op: &Op) -> Result<Option<String>, DiskError> {
        match op {
            Op::Append { file, segment, offset, bytes } => self.redo_append(file, *segment, *offset, bytes),
            Op::Seal { dir, first } => {
                let dir = self.lies(&format!("{dir}/x"))?.with_file_name("");
                let (active, sealed) = (dir.join(timeline::ACTIVE), dir.join(timeline::sealed_name(*first)));
                if !disk::is_there(&sealed)? && disk::is_there(&active)? {
                    std::fs::rename(&active, &sealed).map_err(at(&active))?;
                }
                self.touched.file(&sealed);
                Ok(None)
            }
            Op::Replace { file, bytes } if self.lies(file)? != self.path(file) => {
                let path = self.lies(file)?;
                disk::replace(&path, bytes)?;
                self.touched.file(&path);
                Ok(None)
            }
            Op::Remove { file } if self.lies(file)? != self.path(file) => {
                disk::remove(&self.lies(file)?).map(|()| None)
            }
            Op::Retire { .. } if trial::fault("retired-in-place") => Ok(None),
            Op::Replace { .. } | Op::Remove { .. } | Op::Retire { .. } => self.apply(op).map(|()| None),
        }
    }

    /// The file of a segment, sealed by now or still the active one.
    fn segment_of(&self, file: &str, segment: u64) -> Result<PathBuf, DiskError> {
        let path = self.lies(file)?;
        let sealed = path.with_file_name(timeline::sealed_name(segment));
        Ok(if segment > 0 && disk::is_there(&sealed)? { sealed } else { path })
    }

    fn redo_append(
        &mut self,
        file: &str,
        segment: u64,
        offset: u64,
        bytes: &[u8],
    ) -> Result<Option<String>, DiskError> {
        let path = self.segment_of(file, segment)?;
        if offset == 0 {
            self.folder_of(&path)?;
        }
        let open = match disk::open_rw(&path) {
            Ok(open) => open,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                return Ok(Some(format!("{}: its folder is gone", path.display())));
            }
            Err(e) => return Err(at(&path)(e)),
        };
        let mut len = open.metadata().map_err(at(&path))?.len();
        if is_list(file) && (len..len.saturating_add(FILLED)).contains(&offset) {
            // The lines stand for themselves, wherever they are; what was lost before them is gone either way.
            let fill = vec![b'\n'; (offset - len) as usize];
            open.write_all_at(&fill, len).map_err(at(&path))?;
            len = offset;
        }
        let foreign = {
            let mut there = vec![0; bytes.len().min(len.saturating_sub(offset) as usize)];
            open.read_exact_at(&mut there, offset).map_err(at(&path))?;
            there != bytes && (len > offset + bytes.len() as u64 || !is_beginning(&there, bytes))
        };
        if foreign && !trial::fault("cut-of-tail-skipped") {
            let why = format!(
                "{}: stood from byte {offset} on, where something else was committed",
                path.display()
            );
            kept::tail(&self.root, &path, offset, &why)?;
        }
        let redo = (|| {
            if len < offset {
                return Ok(Some(format!("{}: {len} bytes, where {offset} were written", path.display())));
            }
            if trial::fault("replayed-twice") {
                return open.write_all_at(bytes, len).map(|()| None);
            }
            let mut there = vec![0; bytes.len().min((len - offset) as usize)];
            open.read_exact_at(&mut there, offset)?;
            if there != bytes {
                if !trial::fault("cut-of-tail-skipped") {
                    open.set_len(offset)?;
                }
                open.write_all_at(bytes, offset)?;
            } else if self.anew {
                open.write_all_at(bytes, offset)?;
            }
            Ok(None)
        })();
        self.touched.file(&path);
        redo.map_err(at(&path))
    }

    /// Whether these bytes can be appended there and nothing else is harmed.
    pub fn bears(&self, file: &str, segment: u64, offset: u64, bytes: &[u8]) -> Result<bool, DiskError> {
        let path = self.segment_of(file, segment)?;
        let look = || -> io::Result<bool> {
            let open = whole::open(&path)?;
            let len = open.metadata()?.len();
            if len < offset {
                return Ok(false);
            }
            let mut there = vec![0; bytes.len().min((len - offset) as usize)];
            open.read_exact_at(&mut there, offset)?;
            Ok(is_beginning(&there, bytes))
        };
        match look() {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(offset == 0),
            Err(e) if disk::is_odd(&e) => Ok(false),
            other => other.map_err(at(&path)),
        }
    }

    /// Cuts a file to the length its last operation left it with.
    pub fn cut(&mut self, file: &str, segment: u64, len: u64) -> Result<bool, DiskError> {
        if trial::fault("cut-of-tail-skipped") || trial::fault("replayed-twice") {
            return Ok(false);
        }
        let path = self.segment_of(file, segment)?;
        let open = match File::options().write(true).open(&path) {
            Ok(open) => open,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(e) => return Err(at(&path)(e)),
        };
        if open.metadata().map_err(at(&path))?.len() <= len {
            return Ok(false);
        }
        let why = format!("{}: stood from byte {len} on, behind its last commit", path.display());
        kept::tail(&self.root, &path, len, &why)?;
        open.set_len(len).map_err(at(&path))?;
        self.touched.file(&path);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use minder_proto::id::SessionId;

    use super::*;

    /// A killed daemon made the folder and never flushed the one it is in: nobody else would.
    #[test]
    fn a_replay_flushes_the_names_of_what_it_finds_there() {
        let dir = tempfile::tempdir().unwrap();
        let sessions = dir.path().join("sessions");
        let folder = sessions.join(SessionId::random().to_string());
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(timeline::ACTIVE), "{}\n").unwrap();
        let file = folder.strip_prefix(dir.path()).unwrap().join(timeline::ACTIVE);
        let file = file.to_str().unwrap().to_owned();
        let op = Op::Append { file, segment: 1, offset: 0, bytes: b"{}\n".to_vec() };
        let mut files = Files::new(dir.path());
        files.trust_nothing(true);
        files.redo(&op).unwrap();
        let touched = files.take_touched();
        for path in [folder.join(timeline::ACTIVE), folder, sessions] {
            assert!(touched.contains(&path), "{} is not among {touched:?}", path.display());
        }
    }

    /// Folders in folders: the name of each has to stay, from the store's own on.
    #[test]
    fn each_folder_that_is_made_for_a_file_is_flushed_into_its_parent() {
        for replayed in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let file = format!("hosts/{}/host.json", SessionId::random());
            let mut files = Files::new(dir.path());
            files.trust_nothing(replayed);
            files.redo(&Op::Replace { file: file.clone(), bytes: b"{}".to_vec() }).unwrap();
            let touched = files.take_touched();
            for path in [dir.path().to_owned(), dir.path().join("hosts"), dir.path().join(file)] {
                assert!(touched.contains(&path), "{} is not among {touched:?}", path.display());
            }
        }
    }
}
