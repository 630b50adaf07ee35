//! `cursors.json` and the files in `followers/`: how far others were read. A cursor beyond the end of what it reads is
//! found again by its number, so it is worth a note and no more.

use minder_proto::record::Cursors;

use super::finding::{Sheet, unparsable};
use super::timeline::End;

/// Reads a file of cursors.
pub fn read(bytes: &[u8], sheet: &mut Sheet) -> Option<Cursors> {
    match serde_json::from_slice(bytes) {
        Ok(cursors) => Some(cursors),
        Err(e) => {
            sheet.damage(unparsable(&e, false));
            None
        }
    }
}

/// What does not fit of one cursor.
pub fn beyond(seq: u64, segment: u64, offset: u64, end: &End) -> Option<String> {
    if seq > end.last {
        return Some(format!("seq {seq}, where {} is the last", end.last));
    }
    let (_, len) = end.segments.iter().find(|(first, _)| *first == segment)?;
    (offset > *len).then(|| format!("byte {offset} of segment {segment}, which has {len}"))
}
