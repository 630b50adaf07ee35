//! `session.json`: that it is the folder's own, and that it says what the timeline says.

use minder_proto::id::SessionId;
use minder_proto::record::SessionRecord;

use super::finding::{Sheet, unparsable};
use super::timeline::End;

/// Reads a record.
pub fn read(bytes: &[u8], id: SessionId, sheet: &mut Sheet) -> Option<SessionRecord> {
    match serde_json::from_slice::<SessionRecord>(bytes) {
        Ok(record) if record.id == id => return Some(record),
        Ok(record) => sheet.damage(format!("it says it is session {}", record.id)),
        Err(e) => sheet.damage(unparsable(&e, false)),
    }
    None
}

/// Compares a record with the end of its timeline. What stands behind missing lines is not known, and not compared.
pub fn agree(record: &SessionRecord, end: &End, sheet: &mut Sheet) {
    if record.last_seq > end.last {
        sheet.damage(format!("last_seq is {}, and the timeline ends with seq {}", record.last_seq, end.last));
    }
    let Some(standing) = &end.standing else { return };
    if record.state != standing.state {
        sheet.damage(format!("state is {}, and the timeline says {}", record.state, standing.state));
    }
    if record.state_seq != standing.seq {
        sheet.damage(format!(
            "state_seq is {}, and the state is that of seq {}",
            record.state_seq, standing.seq
        ));
    } else if record.note != standing.note {
        sheet.damage(format!("note is not that of seq {}", standing.seq));
    }
}
