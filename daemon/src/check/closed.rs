//! `closed.jsonl` and `trash/`: a line for each session that was closed, and none of them is open.

use std::collections::BTreeSet;

use minder_proto::id::SessionId;
use minder_proto::record::ClosedLine;

use super::finding::Sheet;
use super::lines;

/// Reads the tombstones.
pub fn read(bytes: &[u8], open: impl Fn(SessionId) -> bool, sheet: &mut Sheet) -> BTreeSet<SessionId> {
    let mut closed = BTreeSet::new();
    lines::each(bytes, sheet, |sheet, n, line: ClosedLine| {
        if open(line.id) {
            sheet.damage_with(format!("line {n}: session {} is open", line.id), &[line.id]);
        }
        closed.insert(line.id);
    });
    closed
}

/// Judges a folder in the trash by its name.
pub fn trashed(id: SessionId, closed: &BTreeSet<SessionId>, open: bool, sheet: &mut Sheet) {
    if open {
        sheet.damage_with("the session is open, too", &[id]);
    } else if !closed.contains(&id) {
        sheet.damage("closed.jsonl has no line for it");
    }
}
