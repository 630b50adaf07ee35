//! `spool/`: requests that wait for a daemon, each a whole one in a file that its key names.

use minder_proto::rpc::Spooled;
use uuid::Uuid;

use super::finding::{Sheet, unparsable};

/// True for the name of a request.
pub fn is_request(name: &str) -> bool {
    let uuid = name.strip_suffix(".json").and_then(|n| Uuid::try_parse(n).ok());
    uuid.is_some_and(|u| u.get_version_num() == 7)
}

/// True for the name of a request that is being written.
pub fn is_unfinished(name: &str) -> bool {
    name.strip_prefix('.').and_then(|n| n.strip_suffix(".new")).is_some()
}

/// Reads a request.
pub fn read(bytes: &[u8], sheet: &mut Sheet) {
    if let Err(e) = serde_json::from_slice::<Spooled>(bytes) {
        sheet.damage(unparsable(&e, false));
    }
}
