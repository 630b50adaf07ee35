//! What the program says of itself while it lives: `sessions/<pid>.json` in Claude Code's configuration folder,
//! rewritten in place, removed at a normal end.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::{Value, json};

#[derive(Debug)]
pub struct Status {
    path: PathBuf,
    pub on: bool,
    state: Value,
}

impl Status {
    pub fn new(config: &Path, folder: &str) -> Self {
        let pid = std::process::id();
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
        let started = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(19).map(str::to_owned));
        let now = Timestamp::now().as_millisecond();
        let state = json!({ "pid": pid, "sessionId": "", "cwd": folder, "startedAt": now, "procStart": started,
            "version": "2.1.332", "kind": "interactive", "entrypoint": "cli", "status": "idle",
            "updatedAt": now, "statusUpdatedAt": now });
        Self { path: config.join("sessions").join(format!("{pid}.json")), on: true, state }
    }

    /// Writes what it is now, if that is something else.
    pub fn say(&mut self, conversation: &str, status: &str, waiting_for: Option<&str>) {
        let before = self.state.clone();
        self.state["sessionId"] = conversation.into();
        self.state["status"] = status.into();
        match waiting_for {
            Some(what) => self.state["waitingFor"] = what.into(),
            None => drop(self.state.as_object_mut().and_then(|state| state.remove("waitingFor"))),
        }
        if self.state == before || !self.on {
            return;
        }
        let now = Timestamp::now().as_millisecond();
        self.state["updatedAt"] = now.into();
        self.state["statusUpdatedAt"] = now.into();
        let folder = self.path.parent().expect("it lies in a folder");
        // A home that is gone has no reader either.
        let _ =
            std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&self.path, self.state.to_string()));
    }

    pub fn remove(&self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
