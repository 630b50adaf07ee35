//! `watchers.json`: one entry a watcher, and nobody watches himself.

use std::collections::HashSet;

use minder_proto::id::SessionId;
use minder_proto::record::Watcher;

use super::finding::{Sheet, unparsable};

/// Reads who watches a session.
pub fn read(bytes: &[u8], id: SessionId, sheet: &mut Sheet) -> Vec<SessionId> {
    let watchers: Vec<Watcher> = match serde_json::from_slice(bytes) {
        Ok(watchers) => watchers,
        Err(e) => {
            sheet.damage(unparsable(&e, false));
            return Vec::new();
        }
    };
    let mut seen = HashSet::new();
    for watcher in &watchers {
        if !seen.insert(watcher.watcher) {
            sheet.damage(format!("session {} has more than one entry", watcher.watcher));
        }
        if watcher.watcher == id {
            sheet.damage("the session watches itself");
        }
    }
    watchers.into_iter().map(|w| w.watcher).collect()
}
