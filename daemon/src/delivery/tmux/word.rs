//! What Claude Code says of itself in `sessions/<pid>.json` of its configuration folder: whether it works, or waits for
//! somebody. Its screen may be a moment behind.

use std::path::Path;

use minder_proto::hold::Hold;
use minder_proto::record::SessionRecord;
use minder_proto::whole;
use serde::Deserialize;

/// Most bytes of such a file; a larger one is another program's.
const FILE_MAX: u64 = 1024 * 1024;

#[derive(Deserialize)]
struct File {
    status: String,
}

/// Why nothing may be typed, by the harness's own word; nothing where it says nothing.
pub fn hold(record: &SessionRecord) -> Option<Hold> {
    if record.harness.as_deref() != Some("claude") {
        return None;
    }
    let transcript = Path::new(record.live_binding()?.transcript.as_deref()?);
    let projects = transcript.ancestors().find(|a| a.file_name().is_some_and(|name| name == "projects"))?;
    let pid = record.process.as_ref()?.pid;
    let file = projects.parent()?.join("sessions").join(format!("{pid}.json"));
    said(&whole::at_most(&file, FILE_MAX).ok()?)
}

fn said(bytes: &[u8]) -> Option<Hold> {
    let file: File = serde_json::from_slice(bytes).ok()?;
    match file.status.as_str() {
        "busy" => Some(Hold::Busy),
        "waiting" => Some(Hold::Dialog),
        "idle" | "shell" => None,
        // It says something, and what that is nobody knows.
        _ => Some(Hold::Unknown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_own_word_is_taken_where_it_is_understood() {
        for (text, hold) in [
            (r#"{"status":"idle"}"#, None),
            (r#"{"status":"shell"}"#, None),
            (r#"{"status":"busy","pid":4}"#, Some(Hold::Busy)),
            (r#"{"status":"waiting","waitingFor":"permission prompt"}"#, Some(Hold::Dialog)),
            (r#"{"status":"dreaming"}"#, Some(Hold::Unknown)),
            (r#"{"status":7}"#, None),
            ("{}", None),
            ("", None),
        ] {
            assert_eq!(said(text.as_bytes()), hold, "{text}");
        }
    }
}
