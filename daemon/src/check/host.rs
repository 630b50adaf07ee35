//! The files of a host: each is what it should be, a row's number is given once, and the next one is behind them all.

use std::collections::HashSet;

use minder_proto::host::episode::Episode;
use minder_proto::host::ledger::Line;
use minder_proto::host::record::HostRecord;
use minder_proto::host::row;
use minder_proto::host::upkeep::Producers;
use serde::de::DeserializeOwned;

use super::finding::{Sheet, unparsable};
use super::lines;

/// The files of a host.
pub const FILES: [&str; 5] = ["host.json", "queue.json", "episode.json", "producers.json", "log.jsonl"];

/// Reads one of [`FILES`].
pub fn read(name: &str, bytes: &[u8], sheet: &mut Sheet) {
    match name {
        "host.json" => drop(whole::<HostRecord>(bytes, sheet)),
        "episode.json" => drop(whole::<Episode>(bytes, sheet)),
        "producers.json" => drop(whole::<Producers>(bytes, sheet)),
        "queue.json" => queue(bytes, sheet),
        _ => lines::each(bytes, sheet, |_, _, _: Line| {}),
    }
}

fn whole<T: DeserializeOwned>(bytes: &[u8], sheet: &mut Sheet) -> Option<T> {
    serde_json::from_slice(bytes).map_err(|e| sheet.damage(unparsable(&e, false))).ok()
}

fn queue(bytes: &[u8], sheet: &mut Sheet) {
    let queue = match row::read(bytes) {
        Ok(queue) => queue,
        Err(e) => return sheet.damage(unparsable(&e, false)),
    };
    let mut seen = HashSet::new();
    for row in queue.rows.iter().filter(|row| !seen.insert(row.seq)) {
        sheet.damage(format!("row {} stands there more than once", row.seq));
    }
    if !queue.broken.is_empty() {
        sheet.note(format!("{} rows cannot be read; the next drain shows them", queue.broken.len()));
    }
}

/// The numbers of a host: one that was given is not given again.
pub fn numbers(record: &[u8], queue: &[u8], sheet: &mut Sheet) {
    let (Ok(record), Ok(queue)) = (serde_json::from_slice::<HostRecord>(record), row::read(queue)) else {
        return; // said where it stands
    };
    let newest = queue.rows.iter().map(|row| row.seq).max().unwrap_or_default();
    if record.next.row <= newest {
        sheet.damage(format!("the next row is {}, where {newest} is given", record.next.row));
    }
}
