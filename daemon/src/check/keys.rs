//! `keys.jsonl`: every line parses.

use minder_proto::record::KeyLine;

use super::finding::Sheet;
use super::lines;

/// Reads the idempotency keys.
pub fn read(bytes: &[u8], sheet: &mut Sheet) {
    lines::each(bytes, sheet, |_, _, _: KeyLine| {});
}
