//! The write-ahead journal: the commit point of everything. A commit has happened when its record is flushed.
//!
//! Segments `journal/<n>.wal` are allocated in advance (16 MiB), so that a flush has no size to write. Each begins
//! with a header that names the end of the segment before it: what lies beyond that end was refused and never
//! happens. A record is length, sequence, CRC-32C, payload; the highest bit of the length is set in all but the first
//! record of a group that is written at once. A group is written when the one before it is flushed. So what ends the
//! last segment - zeros, its end, a checksum that does not fit - is torn, and nobody was told of it, unless a later
//! group stands behind it: that is damage.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use minder_proto::{trial, whole};

use super::disk::{self, DiskError, at};
use super::kill_point::reach;
use super::op::{self, Op};
use super::sizes::journal_segment;

/// Most bytes of one record's payload; a larger commit is refused.
pub const RECORD_MAX: usize = 64 * 1024 * 1024;
const MAGIC: &[u8; 8] = b"MINDERJ1";
/// Magic, segment number, end of the segment before, first record's sequence, checksum.
const HEADER: u64 = 8 + 8 + 8 + 8 + 4;
const RECORD_HEADER: usize = 4 + 8 + 4;
/// In a record's length: it was written together with the one before it.
const TOGETHER: u32 = 1 << 31;
/// No journal has as many records between two checkpoints.
const FAR: u64 = 1 << 24;
/// A number that no record of any journal has.
const NEVER: u64 = 1 << 40;

/// The journal as its writer holds it.
pub struct Journal {
    dir: PathBuf,
    file: File,
    segment: u64,
    /// Where the next record goes.
    end: u64,
    /// The next record's sequence.
    sequence: u64,
    /// Bytes in segments that a checkpoint has not removed.
    bytes: u64,
    flushes: u64,
    flush: bool,
    /// A fresh segment could not be made durable, and may come back all the same: its header names where this one
    /// ends, and nothing that is written behind that would count.
    at_its_end: bool,
}

/// What a start found.
pub struct Recovered {
    /// Every commit since the last checkpoint that can be read, in order.
    pub commits: Vec<Vec<Op>>,
    /// Segments that could not be read to their named end, with why.
    pub damage: Vec<Damage>,
    /// The number of each commit.
    numbers: Vec<u64>,
    /// How many of the commits stand before the first that is missing.
    hole: Option<usize>,
    last_segment: u64,
    last_end: u64,
    sequence: u64,
    bytes: u64,
}

/// A segment whose records cannot be trusted to their end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The segment's file.
    pub file: PathBuf,
    /// What is wrong with it.
    pub what: String,
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.file.display(), self.what)
    }
}

impl Recovered {
    /// Where there is no journal.
    pub fn none() -> Self {
        Self {
            commits: Vec::new(),
            damage: Vec::new(),
            numbers: Vec::new(),
            hole: None,
            last_segment: 0,
            last_end: u64::MAX,
            sequence: 1,
            bytes: 0,
        }
    }

    /// The sequence of the first of the commits, or of the next one if there are none.
    pub fn first(&self) -> u64 {
        self.numbers.first().copied().unwrap_or(self.sequence)
    }

    /// The sequence of the next commit.
    pub fn next(&self) -> u64 {
        self.sequence
    }

    /// The commits from this sequence on.
    pub fn since(&self, sequence: u64) -> &[Vec<Op>] {
        &self.commits[self.numbers.partition_point(|n| *n < sequence)..]
    }

    /// Where commits are missing that somebody was told of: how many of those that can be read stand before the first
    /// of them.
    pub fn hole(&self) -> Option<usize> {
        self.hole
    }

    fn damaged(&mut self, file: PathBuf, what: String) {
        self.damage.push(Damage { file, what });
        self.hole.get_or_insert(self.commits.len());
    }

    /// Takes in what stands behind damage.
    fn take(&mut self, records: Vec<Record>) {
        for record in records {
            self.sequence = record.number + 1;
            if let Some(ops) = record.ops {
                self.commits.push(ops);
                self.numbers.push(record.number);
            }
        }
    }

    /// Forgets commits from this sequence on: they were refused, and their numbers given again.
    fn forget_from(&mut self, sequence: u64) {
        let keep = self.numbers.partition_point(|n| *n < sequence);
        self.numbers.truncate(keep);
        self.commits.truncate(keep);
        self.hole = self.hole.map(|h| h.min(keep));
    }
}

fn path(dir: &Path, segment: u64) -> PathBuf {
    dir.join(format!("{segment:010}.wal"))
}

/// The segments there are, oldest first.
pub fn segments(dir: &Path) -> Result<Vec<u64>, DiskError> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(at(dir))? {
        let name = entry.map_err(at(dir))?.file_name();
        let number: Option<u64> =
            name.to_str().and_then(|n| n.strip_suffix(".wal")).and_then(|n| n.parse().ok());
        // A number that is spelt otherwise, or has none after it, is no name that a journal gave.
        found.extend(number.filter(|n| n >> 62 == 0 && path(dir, *n).file_name() == Some(&name)));
    }
    found.sort_unstable();
    Ok(found)
}

struct Header {
    previous_end: u64,
    first_sequence: u64,
}

fn header_bytes(segment: u64, header: &Header) -> [u8; HEADER as usize] {
    let mut out = [0; HEADER as usize];
    out[..8].copy_from_slice(MAGIC);
    out[8..16].copy_from_slice(&segment.to_le_bytes());
    out[16..24].copy_from_slice(&header.previous_end.to_le_bytes());
    out[24..32].copy_from_slice(&header.first_sequence.to_le_bytes());
    let sum = crc32c::crc32c(&out[..32]);
    out[32..].copy_from_slice(&sum.to_le_bytes());
    out
}

fn read_header(bytes: &[u8], segment: u64) -> Option<Header> {
    let head = bytes.get(..HEADER as usize)?;
    let number = |i: usize| u64::from_le_bytes(head[i..i + 8].try_into().expect("eight bytes"));
    let sum = u32::from_le_bytes(head[32..36].try_into().expect("four bytes"));
    (head[..8] == MAGIC[..] && number(8) == segment && crc32c::crc32c(&head[..32]) == sum)
        .then(|| Header { previous_end: number(16), first_sequence: number(24) })
}

/// Makes durable what [`recover`] found: a daemon that was killed between a write and its flush left records that are
/// only in memory. From now on they count, are shown, and are named in the next segment's header.
pub fn settle(dir: &Path, found: &Recovered) -> Result<(), DiskError> {
    if found.last_segment == 0 {
        return Ok(());
    }
    let p = path(dir, found.last_segment);
    let flush = || {
        let file = File::options().read(true).write(true).open(&p)?;
        // Written once more: after a flush that failed, another has nothing to do and says that all is well.
        let mut bytes = vec![0; found.last_end.min(file.metadata()?.len()) as usize];
        file.read_exact_at(&mut bytes, 0)?;
        file.write_all_at(&bytes, 0)?;
        file.sync_all()
    };
    flush().map_err(at(&p))?;
    disk::sync_dir(dir)
}

fn record_bytes(sequence: u64, together: bool, payload: &[u8], out: &mut Vec<u8>) {
    let len = u32::try_from(payload.len()).expect("a record is bounded");
    let len = if together { len | TOGETHER } else { len };
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(&sequence.to_le_bytes());
    out.extend_from_slice(&checksum(sequence, together, payload).to_le_bytes());
    out.extend_from_slice(payload);
}

fn checksum(sequence: u64, together: bool, payload: &[u8]) -> u32 {
    let sum = crc32c::crc32c_append(crc32c::crc32c(&sequence.to_le_bytes()), payload);
    if together { crc32c::crc32c_append(sum, &[1]) } else { sum }
}

/// Reads every record that counts, without changing anything. What can be read behind damage counts too: somebody was
/// told of it.
pub fn recover(dir: &Path) -> Result<Recovered, DiskError> {
    let list = segments(dir)?;
    let mut files = Vec::new();
    for n in &list {
        let p = path(dir, *n);
        let mut bytes = Vec::new();
        whole::open(&p).and_then(|mut f| f.read_to_end(&mut bytes)).map_err(at(&p))?;
        files.push((*n, bytes));
    }
    // A last segment without a header was being made when the daemon died, if nothing is in it: a header is durable
    // before anything is written behind it.
    while files.last().is_some_and(|(n, bytes)| {
        read_header(bytes, *n).is_none() && bytes.get(HEADER as usize..).is_none_or(|b| written(b) == 0)
    }) {
        files.pop();
    }
    // The next segment takes the place of one without a header.
    let last_segment = files.last().map_or(0, |(n, _)| *n);
    let mut found = Recovered { last_segment, ..Recovered::none() };
    for (i, (n, bytes)) in files.iter().enumerate() {
        let file = path(dir, *n);
        let header = read_header(bytes, *n);
        let next = files.get(i + 1).filter(|(m, _)| *m == n + 1);
        let named_end = next.and_then(|(m, b)| read_header(b, *m)).map(|h| h.previous_end);
        let first = header.as_ref().map_or_else(
            || {
                // Its first record may have the number of one before it that was refused.
                let record = record_at(bytes, HEADER as usize, bytes.len());
                let far = if i == 0 { NEVER } else { found.sequence.saturating_add(FAR) };
                let next = || next_record(bytes, HEADER as usize, bytes.len(), found.sequence..far);
                record.or_else(next).map_or(found.sequence, |r| r.number)
            },
            |header| header.first_sequence,
        );
        if header.is_none() {
            found.damaged(file.clone(), "no header".to_owned());
        } else if i > 0 && first > found.sequence {
            found.damaged(file.clone(), "a segment is missing before it".to_owned());
        }
        found.forget_from(first);
        found.sequence = first;
        let mut end = read_records(bytes, named_end, &mut found);
        let limit = named_end.unwrap_or(u64::MAX).min(bytes.len() as u64) as usize;
        let limit = if named_end.is_some() { limit } else { written(bytes) };
        match named_end {
            Some(named) if end == named => {}
            Some(named) => {
                found.damaged(file, format!("readable to byte {end} of {named}"));
                // Where the segment ends is known, so all of it was told.
                found.take(behind(bytes, end as usize, limit, found.sequence));
            }
            // Where the next segment cannot be read, or there is none, nobody says where this one ended.
            None => {
                let told = told(behind(bytes, end as usize, limit, found.sequence));
                if let Some(last) = told.last().map(|r| r.end) {
                    if header.is_some() {
                        found.damaged(
                            file,
                            format!("not readable from byte {end} on, and whole again behind it"),
                        );
                    }
                    found.take(told);
                    end = last as u64;
                }
            }
        }
        found.bytes += end;
        if *n == last_segment {
            found.last_end = end;
        }
    }
    Ok(found)
}

/// A whole record.
struct Record {
    number: u64,
    /// It was written together with the one before it.
    together: bool,
    /// Nothing, if its checksum fits and its content is not known.
    ops: Option<Vec<Op>>,
    begin: usize,
    end: usize,
}

fn record_at(bytes: &[u8], at: usize, limit: usize) -> Option<Record> {
    let start = at + RECORD_HEADER;
    let head = bytes.get(at..start).filter(|_| start <= limit)?;
    let len = u32::from_le_bytes(head[..4].try_into().expect("four bytes"));
    let (len, together) = ((len & !TOGETHER) as usize, len & TOGETHER != 0);
    let number = u64::from_le_bytes(head[4..12].try_into().expect("eight bytes"));
    let sum = u32::from_le_bytes(head[12..16].try_into().expect("four bytes"));
    if len == 0 || len > RECORD_MAX || start + len > limit {
        return None;
    }
    let payload = &bytes[start..start + len];
    (checksum(number, together, payload) == sum).then(|| Record {
        number,
        together,
        ops: op::decode(payload).ok(),
        begin: at,
        end: start + len,
    })
}

/// The first whole record from here on whose number may come now.
fn next_record(bytes: &[u8], from: usize, limit: usize, numbers: Range<u64>) -> Option<Record> {
    (from..limit.saturating_sub(RECORD_HEADER)).find_map(|at| {
        let number = u64::from_le_bytes(bytes[at + 4..at + 12].try_into().expect("eight bytes"));
        numbers.contains(&number).then(|| record_at(bytes, at, limit))?
    })
}

/// How many bytes there are before the zeros at the end, give or take a block.
fn written(bytes: &[u8]) -> usize {
    const ZEROS: [u8; 4096] = [0; 4096];
    let mut len = bytes.len();
    for block in bytes.rchunks(ZEROS.len()) {
        if *block != ZEROS[..block.len()] {
            return len;
        }
        len -= block.len();
    }
    0
}

/// Reads records one after the other, up to the first that is none; gives where they end.
fn read_records(bytes: &[u8], named_end: Option<u64>, found: &mut Recovered) -> u64 {
    let limit = named_end.unwrap_or(u64::MAX).min(bytes.len() as u64) as usize;
    let mut at = HEADER as usize;
    while let Some(record) = record_at(bytes, at, limit).filter(|r| r.number == found.sequence) {
        let Some(ops) = record.ops else { break };
        found.commits.push(ops);
        found.numbers.push(record.number);
        found.sequence += 1;
        at = record.end;
    }
    at as u64
}

/// Every whole record that stands behind one that is none.
fn behind(bytes: &[u8], from: usize, limit: usize, mut least: u64) -> Vec<Record> {
    let mut found = Vec::new();
    let mut at = from + 1;
    while let Some(record) = next_record(bytes, at, limit, least..least.saturating_add(FAR)) {
        (at, least) = (record.end, record.number + 1);
        found.push(record);
    }
    found
}

/// Of records behind one that is none, those that somebody was told of: all before the last group, for that was begun
/// when they were flushed, and of the last group those up to where it is torn.
fn told(mut records: Vec<Record>) -> Vec<Record> {
    let Some(first) = records.iter().rposition(|r| !r.together) else { return Vec::new() };
    let gap = records[first..].windows(2).position(|pair| pair[0].end != pair[1].begin);
    records.truncate(gap.map_or(records.len(), |n| first + n + 1));
    records
}

impl Journal {
    /// Begins a fresh segment after what [`recover`] found. The old segments stay until a checkpoint.
    pub fn open(dir: &Path, found: &Recovered, flush: bool) -> Result<Self, DiskError> {
        let segment = found.last_segment + 1;
        let file = create(dir, segment, found.last_end, found.sequence, journal_segment(), flush)?;
        Ok(Self {
            dir: dir.to_owned(),
            file,
            segment,
            end: HEADER,
            sequence: found.sequence,
            bytes: found.bytes,
            flushes: 0,
            flush,
            at_its_end: false,
        })
    }

    /// Writes and flushes one group of commits. On an error none of them has happened, now or later.
    pub fn commit(&mut self, group: &[Vec<Op>]) -> Result<(), DiskError> {
        let mut bytes = Vec::new();
        let mut sequence = self.sequence;
        for ops in group {
            let payload = op::encode(ops);
            if payload.len() > RECORD_MAX {
                // No start would read it.
                let error =
                    io::Error::new(io::ErrorKind::InvalidInput, "a commit larger than a record may be");
                return Err(at(&path(&self.dir, self.segment))(error));
            }
            record_bytes(sequence, sequence > self.sequence, &payload, &mut bytes);
            sequence += 1;
        }
        let full = self.end + bytes.len() as u64 > journal_segment() && self.end > HEADER;
        if full || self.at_its_end {
            self.switch(self.end, journal_segment().max(HEADER + bytes.len() as u64))?;
        }
        reach("journal.before-write");
        let written = self.write(&bytes);
        if let Err(error) = written {
            let error = at(&path(&self.dir, self.segment))(error);
            self.abandon(bytes.len());
            return Err(error);
        }
        reach("journal.after-flush");
        self.end += bytes.len() as u64;
        self.bytes += bytes.len() as u64;
        self.sequence = sequence;
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, self.end)?;
        reach("journal.after-write");
        if self.flush && !trial::fault("flush-skipped") {
            self.file.sync_data()?;
        }
        self.flushes += 1;
        Ok(())
    }

    /// After a failed write or flush what reached the disk is unknown. A new segment says where the old one
    /// ended; if even that fails, the refused bytes are wiped as well as can be, and the next commit needs one first.
    fn abandon(&mut self, len: usize) {
        let end = self.end;
        if self.switch(end, journal_segment()).is_err() {
            let _ = self.file.write_all_at(&vec![0; len], end);
            let _ = self.file.sync_data();
        }
    }

    /// Begins a fresh segment; commits from now on go there.
    fn switch(&mut self, end: u64, size: u64) -> Result<(), DiskError> {
        let segment = self.segment + 1;
        self.at_its_end = true;
        self.file = create(&self.dir, segment, end, self.sequence, size, self.flush)?;
        self.at_its_end = false;
        self.segment = segment;
        self.end = HEADER;
        Ok(())
    }

    /// Step 1 of a checkpoint: commits go to a fresh segment from now on; gives the last one before it.
    pub fn begin_checkpoint(&mut self) -> Result<u64, DiskError> {
        let last = self.segment;
        self.switch(self.end, journal_segment())?;
        self.bytes = 0;
        reach("checkpoint.switched");
        Ok(last)
    }

    /// Step 4 of a checkpoint: what segments up to `last` say is in the files, and durable there.
    pub fn end_checkpoint(&mut self, last: u64) -> Result<(), DiskError> {
        reach("checkpoint.synced");
        let too_far = u64::from(trial::fault("checkpoint-too-far"));
        for n in segments(&self.dir)?.into_iter().filter(|n| *n <= last + too_far) {
            disk::remove(&path(&self.dir, n))?;
            reach("checkpoint.unlinked");
            // One by one: a power loss must not take a segment and leave one that is older.
            disk::sync_dir(&self.dir)?;
        }
        reach("checkpoint.done");
        Ok(())
    }

    /// Tries whether the disk takes writes again: a flush of a fresh segment.
    pub fn probe(&mut self) -> Result<(), DiskError> {
        self.switch(self.end, journal_segment())
    }

    /// How many segments there are; 0 if that cannot be told.
    pub fn segments(&self) -> usize {
        segments(&self.dir).map_or(0, |all| all.len())
    }

    /// Bytes since the last checkpoint.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Flushes since the start.
    pub fn flushes(&self) -> u64 {
        self.flushes
    }
}

fn create(
    dir: &Path,
    segment: u64,
    previous_end: u64,
    first: u64,
    size: u64,
    flush: bool,
) -> Result<File, DiskError> {
    let p = path(dir, segment);
    reach("segment.before-create");
    let made = (|| {
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(true).mode(0o600).open(&p)?;
        // A file system without room or without the call still takes the journal, a little slower.
        if size <= journal_segment() {
            let allocated = rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, size);
            if allocated.is_err() {
                // What it took of the last room is needed for the files themselves.
                file.set_len(0)?;
            }
        }
        let header = Header { previous_end, first_sequence: first };
        file.write_all_at(&header_bytes(segment, &header), 0)?;
        reach("segment.written");
        if flush {
            file.sync_all()?;
            File::open(dir)?.sync_all()?;
        }
        reach("segment.created");
        Ok(file)
    })();
    made.map_err(|e| {
        let _ = std::fs::remove_file(&p);
        at(&p)(e)
    })
}

#[cfg(test)]
mod damage;

#[cfg(test)]
mod tests {
    use super::*;

    pub fn op(n: u64) -> Vec<Op> {
        vec![Op::Replace { file: format!("f{n}"), bytes: vec![n as u8 | 0x80; 8] }]
    }

    pub fn open(dir: &Path) -> (Journal, Recovered) {
        let found = recover(dir).unwrap();
        (Journal::open(dir, &found, false).unwrap(), found)
    }

    #[test]
    fn commits_come_back_in_order_over_segments_and_restarts() {
        let dir = tempfile::tempdir().unwrap();
        for n in 0..5 {
            let (mut journal, found) = open(dir.path());
            assert_eq!(found.commits, (0..2 * n).map(op).collect::<Vec<_>>());
            assert!(found.damage.is_empty());
            journal.commit(&[op(2 * n), op(2 * n + 1)]).unwrap();
        }
    }

    #[test]
    fn a_torn_end_is_dropped_at_every_byte() {
        let dir = tempfile::tempdir().unwrap();
        let (mut journal, _) = open(dir.path());
        journal.commit(&[op(1)]).unwrap();
        let keep = journal.end;
        journal.commit(&[op(2)]).unwrap();
        let file = path(dir.path(), journal.segment);
        let whole = std::fs::read(&file).unwrap()[..journal.end as usize].to_vec();
        for cut in keep as usize..whole.len() {
            for filler in [0u8, 0xa5] {
                let mut bytes = whole[..cut].to_vec();
                bytes.resize(whole.len() + 100, filler);
                std::fs::write(&file, &bytes).unwrap();
                let found = recover(dir.path()).unwrap();
                assert_eq!(found.commits, [op(1)], "cut at {cut}");
                assert!(found.damage.is_empty());
            }
        }
    }

    #[test]
    fn what_was_refused_never_happens_later() {
        let dir = tempfile::tempdir().unwrap();
        let (mut journal, _) = open(dir.path());
        journal.commit(&[op(1)]).unwrap();
        // The record reached the disk whole, but its flush failed and the caller was refused.
        let mut bytes = Vec::new();
        record_bytes(journal.sequence, false, &op::encode(&op(666)), &mut bytes);
        journal.file.write_all_at(&bytes, journal.end).unwrap();
        journal.abandon(bytes.len());
        journal.commit(&[op(2)]).unwrap();
        assert_eq!(recover(dir.path()).unwrap().commits, [op(1), op(2)]);
    }

    #[test]
    fn where_no_segment_can_be_begun_nothing_more_is_written_to_the_old_one() {
        let dir = tempfile::tempdir().unwrap();
        let (mut journal, _) = open(dir.path());
        journal.commit(&[op(1)]).unwrap();
        // The next segment's name is taken by a folder: it can be neither made nor removed.
        let taken = path(dir.path(), journal.segment + 1);
        std::fs::create_dir(&taken).unwrap();
        let before = std::fs::read(path(dir.path(), journal.segment)).unwrap();
        journal.begin_checkpoint().unwrap_err();
        journal.commit(&[op(2)]).unwrap_err();
        assert_eq!(std::fs::read(path(dir.path(), journal.segment)).unwrap(), before);
        std::fs::remove_dir(&taken).unwrap();
        journal.commit(&[op(3)]).unwrap();
        assert_eq!(recover(dir.path()).unwrap().commits, [op(1), op(3)]);
    }

    #[test]
    fn a_checkpoint_removes_what_is_before_it_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let (mut journal, _) = open(dir.path());
        journal.commit(&[op(1)]).unwrap();
        let last = journal.begin_checkpoint().unwrap();
        journal.commit(&[op(2)]).unwrap();
        journal.end_checkpoint(last).unwrap();
        assert_eq!(recover(dir.path()).unwrap().commits, [op(2)]);
    }

    /// Three segments with the commits 1 to 3, 4 and 5; gives the first segment's file and where commit 2 begins and ends.
    fn three(dir: &Path) -> (PathBuf, usize, usize) {
        let (mut journal, _) = open(dir);
        journal.commit(&[op(1)]).unwrap();
        let begin = journal.end;
        journal.commit(&[op(2)]).unwrap();
        let end = journal.end;
        journal.commit(&[op(3)]).unwrap();
        let first = path(dir, journal.segment);
        for n in [4, 5] {
            // Without the room that was allocated in advance.
            journal.file.set_len(journal.end).unwrap();
            journal.begin_checkpoint().unwrap();
            journal.commit(&[op(n)]).unwrap();
        }
        (first, begin as usize, end as usize)
    }

    #[test]
    fn damage_in_the_middle_is_named_and_hides_nothing_behind_it() {
        let dir = tempfile::tempdir().unwrap();
        let (first, begin, end) = three(dir.path());
        let whole = std::fs::read(&first).unwrap();
        for at in begin..end {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            std::fs::write(&first, bytes).unwrap();
            let found = recover(dir.path()).unwrap();
            assert_eq!(found.commits, [op(1), op(3), op(4), op(5)], "byte {at}");
            assert_eq!((found.hole(), found.damage.len(), found.next()), (Some(1), 1, 6), "byte {at}");
            assert_eq!(found.since(3), [op(3), op(4), op(5)]);
        }
        // Cut off, or gone.
        std::fs::write(&first, &whole[..begin]).unwrap();
        let found = recover(dir.path()).unwrap();
        assert_eq!((found.hole(), &found.commits[..]), (Some(1), &[op(1), op(4), op(5)][..]));
        std::fs::write(&first, &whole).unwrap();
        std::fs::remove_file(path(dir.path(), 2)).unwrap();
        let found = recover(dir.path()).unwrap();
        assert_eq!((found.hole(), &found.commits[..]), (Some(3), &[op(1), op(2), op(3), op(5)][..]));
    }

    #[test]
    fn a_segment_without_its_header_hides_nothing() {
        let dir = tempfile::tempdir().unwrap();
        three(dir.path());
        let second = path(dir.path(), 2);
        let mut bytes = std::fs::read(&second).unwrap();
        bytes[9] ^= 1;
        std::fs::write(&second, bytes).unwrap();
        let found = recover(dir.path()).unwrap();
        assert_eq!(found.commits, (1..=5).map(op).collect::<Vec<_>>());
        assert_eq!((found.hole(), found.damage.len(), found.next()), (Some(3), 1, 6));
    }

    #[test]
    fn what_was_refused_does_not_come_back_by_damage_behind_it() {
        let dir = tempfile::tempdir().unwrap();
        let (mut journal, _) = open(dir.path());
        journal.commit(&[op(1)]).unwrap();
        let mut bytes = Vec::new();
        record_bytes(journal.sequence, false, &op::encode(&op(666)), &mut bytes);
        journal.file.write_all_at(&bytes, journal.end).unwrap();
        journal.abandon(bytes.len());
        journal.commit(&[op(2)]).unwrap();
        journal.begin_checkpoint().unwrap();
        journal.commit(&[op(3)]).unwrap();
        // The header that said where the first segment ended is gone.
        let second = path(dir.path(), 2);
        let mut bytes = std::fs::read(&second).unwrap();
        bytes[20] ^= 1;
        std::fs::write(&second, bytes).unwrap();
        assert_eq!(recover(dir.path()).unwrap().commits, [op(1), op(2), op(3)]);
    }

    #[test]
    fn a_record_larger_than_a_segment_gets_one_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let (mut journal, _) = open(dir.path());
        let big = vec![Op::Replace { file: "big".into(), bytes: vec![7; journal_segment() as usize + 5] }];
        journal.commit(&[op(1)]).unwrap();
        journal.commit(std::slice::from_ref(&big)).unwrap();
        journal.commit(&[op(2)]).unwrap();
        assert_eq!(recover(dir.path()).unwrap().commits, [op(1), big, op(2)]);
    }
}
