//! Replaying the journal over the files: what a start does before anything else. Replaying twice equals
//! replaying once, and a replay may itself be cut off anywhere.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;

use minder_proto::event::Line;
use minder_proto::id::SessionId;
use minder_proto::record::SessionRecord;

use super::disk::{self, DiskError, at};
use super::files::Files;
use super::kill_point::reach;
use super::op::Op;

/// What a replay did.
#[derive(Debug, Default)]
pub struct Replayed {
    /// Commits replayed.
    pub commits: u64,
    /// Timeline lines of open sessions, in order: the feed repeats them.
    pub lines: Vec<(SessionId, u64)>,
    /// Sessions moved to `quarantine/`, with why.
    pub quarantined: Vec<(SessionId, String)>,
    /// Files that are shorter than they were when they were written to, and belong to no session; one line each.
    pub notes: Vec<String>,
    /// Files that held bytes past their last commit, which were cut.
    pub cut: Vec<String>,
    /// Beside a hole in the journal: files that what was committed to them does not fit, and that were left as they are.
    pub unfit: BTreeSet<String>,
}

/// What a replay changes: the store's files, or a picture of them.
pub trait Target {
    /// Applies one operation that may have been applied already, wholly or in part. Gives why the session it
    /// belongs to cannot be trusted any more, if so.
    fn redo(&mut self, op: &Op) -> Result<Option<String>, DiskError>;
    /// Cuts a file to the length its last operation left it with; says if it was longer.
    fn cut(&mut self, file: &str, segment: u64, len: u64) -> Result<bool, DiskError>;
    /// Moves the folder of a session that cannot be trusted aside.
    fn set_aside(&mut self, session: SessionId, why: &str) -> Result<(), DiskError>;
    /// Whether these bytes can be appended there and nothing else is harmed: they stand there, wholly or in part, or
    /// the file ends right before them.
    fn bears(&mut self, file: &str, segment: u64, offset: u64, bytes: &[u8]) -> Result<bool, DiskError>;
    /// What a file holds; nothing, where it cannot be read.
    fn whole(&self, file: &str) -> Option<Vec<u8>>;
}

impl Target for Files {
    fn redo(&mut self, op: &Op) -> Result<Option<String>, DiskError> {
        self.redo(op)
    }

    fn cut(&mut self, file: &str, segment: u64, len: u64) -> Result<bool, DiskError> {
        self.cut(file, segment, len)
    }

    fn set_aside(&mut self, session: SessionId, why: &str) -> Result<(), DiskError> {
        quarantine(self.root(), session, why)
    }

    fn bears(&mut self, file: &str, segment: u64, offset: u64, bytes: &[u8]) -> Result<bool, DiskError> {
        Files::bears(self, file, segment, offset, bytes)
    }

    fn whole(&self, file: &str) -> Option<Vec<u8>> {
        minder_proto::whole::read(&self.lies(file).ok()?).ok()
    }
}

/// True if what stands in the place of these bytes is the beginning of them, or was never written.
pub fn is_beginning(there: &[u8], of: &[u8]) -> bool {
    // A file system may have grown the file before its data.
    let written = there.iter().rposition(|b| *b != 0).map_or(0, |i| i + 1);
    of.starts_with(&there[..written])
}

/// Applies every commit in order. `hole` says how many of them stand before the first that is missing, if any is.
///
/// Beside a hole nobody knows what the files should hold, only what they do hold, which as a rule is all of it, for what
/// was told was applied. So there nothing is cut, a record is not set back, and a line goes where it fits and nowhere
/// else. A session that misses what went before is left with what it has: nothing behind the hole is done to it.
pub fn replay(
    files: &mut impl Target,
    commits: &[Vec<Op>],
    hole: Option<usize>,
) -> Result<Replayed, DiskError> {
    let mut done = Replayed { commits: commits.len() as u64, ..Replayed::default() };
    let (skip, retired) = superseded(commits);
    let cut_later = overlapped(commits);
    let mut ends: HashMap<(String, u64), u64> = HashMap::new();
    let mut distrusted: HashSet<SessionId> = HashSet::new();
    let mut behind: HashSet<SessionId> = HashSet::new();
    let all = commits.iter().enumerate().flat_map(|(n, ops)| ops.iter().map(move |op| (n, op)));
    for (index, (commit, op)) in all.enumerate() {
        if skip[index] || op.session().is_some_and(|s| distrusted.contains(&s)) {
            continue;
        }
        reach("recover.before-op");
        let shortened = cut_later.get(&index).map(|len| shorten(op, *len));
        let op = shortened.as_ref().unwrap_or(op);
        if let Some(hole) = hole {
            let left = op.session().filter(|s| behind.contains(s) && !matches!(op, Op::Retire { .. }));
            let fit = if left.is_some() { Fit::Not } else { fit(files, op)? };
            if fit == Fit::Not {
                done.unfit.insert(op.path());
                behind.extend(op.session().filter(|_| commit >= hole && matches!(op, Op::Append { .. })));
            }
            if fit != Fit::Open {
                continue;
            }
        }
        match (files.redo(op)?, op.session()) {
            // Its folder may have left the trash long ago.
            (Some(_), Some(session)) if retired.contains(&session) => {}
            (Some(why), Some(session)) => {
                files.set_aside(session, &why)?;
                distrusted.insert(session);
                done.quarantined.push((session, why));
            }
            (Some(why), None) => done.notes.push(why),
            (None, session) => {
                if let Op::Append { file, segment, offset, bytes } = op {
                    ends.insert((file.clone(), *segment), offset + bytes.len() as u64);
                    if let Some(session) = session.filter(|_| *segment > 0) {
                        let seqs = bytes.split(|b| *b == b'\n').filter_map(|l| Line::parse(l).seq());
                        done.lines.extend(seqs.map(|seq| (session, seq)));
                    }
                }
            }
        }
        reach("recover.after-op");
    }
    for ((file, segment), end) in ends {
        let session = Op::Remove { file: file.clone() }.session();
        if hole.is_some() || session.is_some_and(|s| distrusted.contains(&s)) {
            continue;
        }
        reach("recover.before-cut");
        if files.cut(&file, segment, end)? {
            done.cut.push(file);
        }
    }
    reach("recover.done");
    Ok(done)
}

/// How an operation beside a hole stands to what is there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fit {
    /// It can be done, and nothing else is harmed.
    Open,
    /// It was done, and others after it.
    Passed,
    /// It does not fit.
    Not,
}

fn fit(files: &mut impl Target, op: &Op) -> Result<Fit, DiskError> {
    Ok(match op {
        Op::Append { file, segment, offset, bytes } => {
            if files.bears(file, *segment, *offset, bytes)? {
                Fit::Open
            } else {
                Fit::Not
            }
        }
        Op::Replace { file, bytes } => {
            let seq = |bytes: &[u8]| serde_json::from_slice(bytes).ok().map(|r: SessionRecord| r.last_seq);
            let there = files.whole(file).unwrap_or_default();
            // A ledger that was rewritten and has grown since, a record that has moved on.
            let passed = there.len() > bytes.len() && there.starts_with(bytes);
            let newer = file.ends_with("/session.json") && seq(&there) > seq(bytes);
            if passed || newer { Fit::Passed } else { Fit::Open }
        }
        _ => Fit::Open,
    })
}

/// For every operation, whether a later one makes it void because the file is replaced or removed as a whole; and
/// the sessions that are retired on the way. What a retired session was told is redone too: a follower reads it to
/// its end in the trash.
fn superseded(commits: &[Vec<Op>]) -> (Vec<bool>, HashSet<SessionId>) {
    let ops: Vec<&Op> = commits.iter().flatten().collect();
    let mut skip = vec![false; ops.len()];
    let mut whole: HashSet<String> = HashSet::new();
    let mut retired: HashSet<SessionId> = HashSet::new();
    for (i, op) in ops.iter().enumerate().rev() {
        let sealed_name = match op {
            Op::Append { file, segment, .. } if *segment > 0 => file
                .rsplit_once('/')
                .map(|(dir, _)| format!("{dir}/{}", minder_proto::timeline::sealed_name(*segment))),
            Op::Seal { dir, first } => Some(format!("{dir}/{}", minder_proto::timeline::sealed_name(*first))),
            _ => None,
        };
        skip[i] = sealed_name.is_some_and(|name| whole.contains(&name))
            || match op {
                Op::Append { file, .. } | Op::Replace { file, .. } | Op::Remove { file } => {
                    whole.contains(file)
                }
                Op::Seal { .. } | Op::Retire { .. } => false,
            };
        match op {
            Op::Replace { file, .. } | Op::Remove { file } => {
                whole.insert(file.clone());
            }
            Op::Retire { session } => {
                retired.insert(*session);
            }
            Op::Append { .. } | Op::Seal { .. } => {}
        }
    }
    (skip, retired)
}

/// Appends of which a foreign hand cut something off before the next one: by their places, how many of their bytes were
/// still there then. To write all of them again would cut what came after.
fn overlapped(commits: &[Vec<Op>]) -> HashMap<usize, usize> {
    let ops: Vec<&Op> = commits.iter().flatten().collect();
    let mut next: HashMap<(&str, u64), u64> = HashMap::new();
    let mut found = HashMap::new();
    for (i, op) in ops.iter().enumerate().rev() {
        match op {
            Op::Append { file, segment, offset, bytes } => {
                let next = next.entry((file, *segment)).or_insert(u64::MAX);
                if offset + bytes.len() as u64 > *next {
                    found.insert(i, next.saturating_sub(*offset) as usize);
                }
                *next = (*next).min(*offset);
            }
            Op::Replace { file, .. } | Op::Remove { file } => {
                next.remove(&(file.as_str(), 0));
            }
            Op::Seal { .. } | Op::Retire { .. } => {}
        }
    }
    found
}

fn shorten(op: &Op, len: usize) -> Op {
    let mut op = op.clone();
    if let Op::Append { bytes, .. } = &mut op {
        bytes.truncate(len);
    }
    op
}

/// Moves a session's folder aside and says why beside it.
pub fn quarantine(root: &Path, session: SessionId, why: &str) -> Result<(), DiskError> {
    let dir = root.join("quarantine");
    disk::make_dir(&dir)?;
    let to = free_name(&dir, &session.to_string());
    let from = root.join("sessions").join(session.to_string());
    match std::fs::rename(&from, &to) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
        Err(e) => return Err(at(&from)(e)),
        Ok(()) => {}
    }
    write_why(&to, why)
}

/// Moves the whole journal aside, in one step, and says why beside it: what it came to was applied. Commits go on in a
/// fresh one, so that the next start reads them without the damage before them.
pub fn set_journal_aside(files: &mut Files, journal: &Path, why: &str) -> Result<(), DiskError> {
    let root = files.root().to_owned();
    let dir = root.join("quarantine");
    disk::make_dir(&dir)?;
    super::durable::everything(&root, &files.take_touched())?;
    reach("recover.synced");
    // From here on the files alone say what there is, and until they are repaired they need not fit together.
    mark(&root, why)?;
    let to = free_name(&dir, "journal");
    write_why(&to, why)?;
    std::fs::rename(journal, &to).map_err(at(journal))?;
    disk::sync_dir(&dir)?;
    disk::sync_dir(&root)?;
    reach("recover.aside");
    disk::make_dir(journal)?;
    disk::sync_dir(&root)
}

const MARK: &str = "repair-needed";

/// Notes, durably, that the files must be repaired before anybody is served.
fn mark(root: &Path, why: &str) -> Result<(), DiskError> {
    disk::replace_synced(&root.join(MARK), format!("{why}\n").as_bytes())?;
    disk::sync_dir(root)?;
    reach("recover.marked");
    Ok(())
}

/// The files are repaired, durably.
pub fn unmark(root: &Path) -> Result<(), DiskError> {
    reach("repair.finished");
    disk::remove(&root.join(MARK))?;
    disk::sync_dir(root)
}

/// Moves one file aside and says why beside it.
pub fn quarantine_file(root: &Path, file: &Path, name: &str, why: &str) -> Result<(), DiskError> {
    let dir = root.join("quarantine");
    disk::make_dir(&dir)?;
    let to = free_name(&dir, name);
    std::fs::rename(file, &to).map_err(at(file))?;
    write_why(&to, why)
}

/// Says why something was set aside, in a file beside it.
pub fn write_why(beside: &Path, why: &str) -> Result<(), DiskError> {
    let mut name = beside.as_os_str().to_owned();
    name.push(".why");
    disk::replace(Path::new(&name), format!("{why}\n").as_bytes())
}

/// A name in a folder that nothing has yet.
pub fn free_name(dir: &Path, name: &str) -> std::path::PathBuf {
    let mut path = dir.join(name);
    let mut n = 1;
    while path.exists() {
        n += 1;
        path = dir.join(format!("{name}.{n}"));
    }
    path
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// Every file under a folder, with its content.
    pub fn tree(root: &Path) -> BTreeMap<String, Vec<u8>> {
        let mut found = BTreeMap::new();
        let mut todo = vec![root.to_owned()];
        while let Some(dir) = todo.pop() {
            for entry in std::fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    todo.push(path);
                } else {
                    let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
                    found.insert(name, std::fs::read(&path).unwrap());
                }
            }
        }
        found
    }

    /// The folders that a store has from its first start on.
    pub fn ready(root: &Path) {
        for dir in ["sessions", "trash", "labels"] {
            disk::make_dir(&root.join(dir)).unwrap();
        }
    }

    /// Turns random steps into a legal history of one store with two sessions.
    pub fn history(steps: &[(u8, u8)]) -> Vec<Vec<Op>> {
        let ids = [SessionId::from_bytes([1; 16]), SessionId::from_bytes([2; 16])];
        let mut len = [0u64; 2];
        let mut seq = [0u64; 2];
        let mut segment = [1u64; 2];
        let mut queue = [0u64; 2];
        let mut gone = [false; 2];
        let mut out = Vec::new();
        for (what, which) in steps {
            let s = (*which % 2) as usize;
            if gone[s] {
                continue;
            }
            let dir = format!("sessions/{}", ids[s]);
            let mut ops = Vec::new();
            match what % 6 {
                0..=2 => {
                    seq[s] += 1;
                    let bytes = format!(
                        "{{\"seq\":{},\"kind\":\"note\",\"at\":\"2026-11-30T12:00:00Z\",\"what\":\"n\",\"text\":\"{what}\"}}\n",
                        seq[s]
                    )
                    .into_bytes();
                    let (offset, n) = (len[s], bytes.len() as u64);
                    let file = format!("{dir}/timeline.jsonl");
                    ops.push(Op::Replace { file: format!("{dir}/session.json"), bytes: vec![*what] });
                    ops.push(Op::Append { file, segment: segment[s], offset, bytes });
                    len[s] += n;
                }
                3 => {
                    let bytes = vec![*what; 3];
                    ops.push(Op::Append {
                        file: format!("{dir}/queue.jsonl"),
                        segment: 0,
                        offset: queue[s],
                        bytes,
                    });
                    queue[s] += 3;
                }
                4 if len[s] > 0 => {
                    ops.push(Op::Seal { dir: dir.clone(), first: segment[s] });
                    ops.push(Op::Replace { file: format!("{dir}/queue.jsonl"), bytes: vec![9] });
                    (segment[s], len[s], queue[s]) = (seq[s] + 1, 0, 1);
                }
                5 if *what > 200 => {
                    ops.push(Op::Remove { file: format!("labels/{s}") });
                    ops.push(Op::Retire { session: ids[s] });
                    gone[s] = true;
                    if *what > 240 {
                        out.push(std::mem::take(&mut ops));
                        ops.push(Op::Remove { file: format!("trash/{}", ids[s]) });
                    }
                }
                _ => ops.push(Op::Replace { file: format!("labels/{s}"), bytes: vec![*what] }),
            }
            if !ops.is_empty() {
                out.push(ops);
            }
        }
        out
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

        /// Whatever prefix of the operations reached the files, and however often the replay was cut off and
        /// begun again, the files end as if everything had been applied once.
        #[test]
        fn replaying_any_prefix_any_number_of_times_equals_applying_once(
            steps in prop::collection::vec((any::<u8>(), any::<u8>()), 1..40),
            applied in any::<prop::sample::Index>(),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..3),
            torn in any::<u8>(),
        ) {
            let commits = history(&steps);
            let ops: Vec<Op> = commits.iter().flatten().cloned().collect();
            prop_assume!(!ops.is_empty());

            let good = tempfile::tempdir().unwrap();
            ready(good.path());
            let mut files = Files::new(good.path());
            ops.iter().for_each(|op| files.apply(op).unwrap());

            let other = tempfile::tempdir().unwrap();
            ready(other.path());
            let mut files = Files::new(other.path());
            let n = applied.index(ops.len() + 1);
            ops[..n].iter().for_each(|op| files.apply(op).unwrap());
            // The operation after the prefix may have happened in part.
            if let Some(Op::Append { file, offset, bytes, segment }) = ops.get(n) {
                let part = Op::Append {
                    file: file.clone(),
                    segment: *segment,
                    offset: *offset,
                    bytes: bytes[..torn as usize % bytes.len()].to_vec(),
                };
                files.apply(&part).unwrap();
            }
            // A replay that was itself cut off is a replay of a prefix.
            for cut in cuts {
                let mut files = Files::new(other.path());
                let (skip, _) = superseded(&commits);
                for (i, op) in ops.iter().enumerate().take(cut.index(ops.len() + 1)) {
                    if !skip[i] {
                        prop_assert_eq!(files.redo(op).unwrap(), None);
                    }
                }
            }
            for _ in 0..2 {
                let mut files = Files::new(other.path());
                let done = replay(&mut files, &commits, None).unwrap();
                prop_assert!(done.quarantined.is_empty(), "{:?}", done.quarantined);
                prop_assert_eq!(tree(other.path()), tree(good.path()));
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

        /// Whatever is missing of the journal, nothing that was applied goes: every timeline stays as it was, and a
        /// second replay changes nothing more.
        #[test]
        fn beside_a_hole_nothing_goes_that_was_applied(
            steps in prop::collection::vec((any::<u8>(), any::<u8>()), 1..40),
            at in any::<prop::sample::Index>(),
            missing in 1..5usize,
        ) {
            let mut commits = history(&steps);
            // A folder that is erased is gone for good only once the journal before it is.
            commits.iter_mut().for_each(|ops| ops.retain(|op| op.trashed().is_none()));
            commits.retain(|ops| !ops.is_empty());
            prop_assume!(!commits.is_empty());
            let dir = tempfile::tempdir().unwrap();
            ready(dir.path());
            let mut files = Files::new(dir.path());
            commits.iter().flatten().for_each(|op| files.apply(op).unwrap());
            let logs = |root: &Path| {
                let mut tree = tree(root);
                tree.retain(|name, _| name.contains("timeline"));
                tree
            };
            let before = logs(dir.path());
            let hole = at.index(commits.len());
            commits.drain(hole..commits.len().min(hole + missing));
            let done = replay(&mut Files::new(dir.path()), &commits, Some(hole)).unwrap();
            prop_assert!(done.quarantined.is_empty());
            prop_assert_eq!(logs(dir.path()), before);
            let once = tree(dir.path());
            replay(&mut Files::new(dir.path()), &commits, Some(hole)).unwrap();
            prop_assert_eq!(tree(dir.path()), once);
        }
    }

    #[test]
    fn behind_a_hole_a_session_that_misses_lines_keeps_what_it_has() {
        let dir = tempfile::tempdir().unwrap();
        ready(dir.path());
        let ids = [SessionId::random(), SessionId::random()];
        let line = |s: usize, n: u64| Op::Append {
            file: format!("sessions/{}/timeline.jsonl", ids[s]),
            segment: 1,
            offset: (n - 1) * 10,
            bytes: format!("{{\"seq\":{n}}}\n").into_bytes(),
        };
        // Of one the second line is missing; the other has all of its own.
        let commits = vec![vec![line(0, 1), line(1, 1)], vec![line(0, 3), line(1, 2)], vec![line(1, 3)]];
        let done = replay(&mut Files::new(dir.path()), &commits, Some(1)).unwrap();
        assert!(done.quarantined.is_empty());
        let file = |s: usize| format!("sessions/{}/timeline.jsonl", ids[s]);
        assert_eq!(done.unfit, BTreeSet::from([file(0)]));
        let text = |s: usize| std::fs::read_to_string(dir.path().join(file(s))).unwrap();
        assert_eq!(text(0), "{\"seq\":1}\n");
        assert_eq!(text(1), "{\"seq\":1}\n{\"seq\":2}\n{\"seq\":3}\n");
    }

    #[test]
    fn a_file_shorter_than_its_offset_is_never_padded() {
        let dir = tempfile::tempdir().unwrap();
        ready(dir.path());
        let id = SessionId::random();
        let folder = dir.path().join("sessions").join(id.to_string());
        disk::make_dir(&folder).unwrap();
        std::fs::write(folder.join("timeline.jsonl"), "{}\n").unwrap();
        let commits = vec![vec![Op::Append {
            file: format!("sessions/{id}/timeline.jsonl"),
            segment: 1,
            offset: 50,
            bytes: b"{}\n".to_vec(),
        }]];
        let done = replay(&mut Files::new(dir.path()), &commits, None).unwrap();
        assert_eq!(done.quarantined.len(), 1);
        assert!(!folder.exists());
        let aside = dir.path().join("quarantine").join(id.to_string());
        assert_eq!(std::fs::read(aside.join("timeline.jsonl")).unwrap(), b"{}\n");
        assert!(std::fs::read_to_string(aside.with_extension("why")).unwrap().contains("3 bytes, where 50"));
    }
}
