//! `hook.*`: one round trip for each call of a harness's hook.

use serde::{Deserialize, Serialize};

use super::Call;

/// What the hook's environment says beside its input. Of what could be a secret there is only the token that the daemon made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HookEnv {
    /// The harness's process, as it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<i32>,
    /// Whether a person sits at it, where the harness says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attended: Option<bool>,
    /// How it was started: `cli` is a terminal, `sdk-cli` is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entrypoint: Option<String>,
    /// Set under a supervised turn: minder's own run is no session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
    /// The session that minder started this process for, as the process was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// What proves it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
}

/// `hook.event`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HookEvent {
    /// Which harness runs the hook.
    pub harness: String,
    /// Its input, as it came.
    pub payload: serde_json::Value,
    /// What its environment says.
    #[serde(default)]
    pub env: HookEnv,
    /// One for the request and its spool file, so that it is applied once.
    pub key: String,
}

/// What the hook prints and its exit code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookAnswer {
    /// For standard output; empty for nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stdout: String,
    /// For standard error; empty for nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stderr: String,
    /// The exit code.
    #[serde(default)]
    pub exit: u8,
}

impl Call for HookEvent {
    const METHOD: &'static str = "hook.event";
    type Answer = HookAnswer;
}

/// `hook.wait`: answers when something may enter an idle session, or when this waiter is not wanted any more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HookWait {
    /// Which harness runs the hook.
    pub harness: String,
    /// Its input, as it came.
    pub payload: serde_json::Value,
    /// What its environment says.
    #[serde(default)]
    pub env: HookEnv,
    /// The same for every connection of one waiter, so that a restart of the daemon does not end it.
    pub resume: String,
}

impl Call for HookWait {
    const METHOD: &'static str = "hook.wait";
    const LONG: bool = true;
    type Answer = HookAnswer;
}
