//! What a hook notes in the throw-away store of `harness probe`: that it ran, for which conversation, and whether the
//! daemon answered. In every other store there is no folder for it, and that is all it costs.

use std::path::PathBuf;

use minder_proto::layout::Home;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

/// One call of a hook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// The harness whose hook it was.
    pub harness: String,
    /// The event, as the harness calls it.
    pub event: String,
    /// The harness's id of the conversation.
    pub conversation: String,
    /// Where the harness writes the conversation, if it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transcript: Option<PathBuf>,
    /// Whether the daemon answered in time.
    pub answered: bool,
}

/// A call that is to be noted.
#[derive(Debug)]
pub struct Trace {
    folder: PathBuf,
    call: Call,
}

impl Trace {
    /// What is to be noted of a call with this input; nothing where nobody probes.
    pub fn wanted(home: &Home, harness: &str, payload: &Map<String, Value>) -> Option<Self> {
        let folder = home.probe();
        if !folder.is_dir() {
            return None;
        }
        let text = |names: &[&str]| {
            names.iter().find_map(|name| payload.get(*name)?.as_str()).unwrap_or_default().to_owned()
        };
        let transcript = Some(text(&["transcript_path"])).filter(|path| !path.is_empty());
        let call = Call {
            harness: harness.to_owned(),
            event: text(&["hook_event_name"]),
            conversation: text(&["session_id", "conversation_id"]),
            transcript: transcript.map(PathBuf::from),
            answered: false,
        };
        Some(Self { folder, call })
    }

    /// Notes it, whole, under the call's key: their order is that of the calls.
    pub fn note(self, key: Uuid, answered: bool) {
        let Ok(text) = serde_json::to_vec(&Call { answered, ..self.call }) else { return };
        let part = self.folder.join(format!("{key}.part"));
        // Where it fails the probe says that this hook did not run, which is what it is for.
        let _ = std::fs::write(&part, text)
            .and_then(|()| std::fs::rename(&part, self.folder.join(format!("{key}.json"))));
    }
}

/// Every call that was noted, in order.
pub fn read(home: &Home) -> Vec<Call> {
    let entries = std::fs::read_dir(home.probe()).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|end| end == "json"));
    files.sort();
    files.iter().filter_map(|file| serde_json::from_slice(&std::fs::read(file).ok()?).ok()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn calls_are_noted_in_order_where_somebody_probes_and_nowhere_else() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path());
        let payload = |event: &str| {
            let payload = json!({"session_id": "s1", "hook_event_name": event, "transcript_path": "/t"});
            payload.as_object().unwrap().clone()
        };
        assert!(Trace::wanted(&home, "claude", &payload("Stop")).is_none());
        std::fs::create_dir(home.probe()).unwrap();
        for (event, answered) in [("SessionStart", true), ("Stop", false)] {
            Trace::wanted(&home, "claude", &payload(event)).unwrap().note(Uuid::now_v7(), answered);
        }
        std::fs::write(home.probe().join("x.part"), "{").unwrap();
        let calls = read(&home);
        assert_eq!(calls.iter().map(|c| c.event.as_str()).collect::<Vec<_>>(), ["SessionStart", "Stop"]);
        assert_eq!((calls[0].answered, calls[1].answered), (true, false));
        assert_eq!(
            (calls[0].conversation.as_str(), calls[0].transcript.as_deref()),
            ("s1", Some("/t".as_ref()))
        );
    }
}
