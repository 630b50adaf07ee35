//! Who is calling: what the client sends along, and what can be known of a caller from files alone.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::id::SessionId;
use crate::layout::Home;

/// Variables in which harnesses name their own conversation: the harness, and the variable.
pub const HARNESS_VARS: [(&str, &str); 2] =
    [("claude", "CLAUDE_CODE_SESSION_ID"), ("codex", "CODEX_THREAD_ID")];

/// What the client says about its caller, in every call. The daemon believes the kernel first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Caller {
    /// The harness variables that are set, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub vars: BTreeMap<String, String>,
    /// The working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dir: Option<String>,
    /// `--as SEL`: act as that session. For a person's shell only.
    #[serde(default, rename = "as", skip_serializing_if = "Option::is_none")]
    pub acting_as: Option<String>,
}

impl Caller {
    /// What this process's environment says.
    pub fn from_env() -> Self {
        let vars = HARNESS_VARS
            .iter()
            .filter_map(|(_, name)| {
                let value = std::env::var(name).ok().filter(|v| !v.is_empty())?;
                Some(((*name).to_owned(), value))
            })
            .collect();
        Self {
            vars,
            dir: std::env::current_dir().ok().and_then(|d| d.to_str().map(str::to_owned)),
            acting_as: None,
        }
    }

    /// The conversations that the variables name: harness and its own id.
    pub fn conversations(&self) -> impl Iterator<Item = (&'static str, &str)> {
        HARNESS_VARS.iter().filter_map(|(harness, name)| Some((*harness, self.vars.get(*name)?.as_str())))
    }
}

/// Whom a caller was taken for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Identity {
    /// A governed session.
    Session {
        /// Which.
        id: SessionId,
    },
    /// An agent whose conversation is bound to nothing. It may look and wait.
    Unregistered {
        /// Its harness.
        harness: String,
        /// Its harness's id of the conversation, where it is known.
        harness_id: String,
    },
    /// The person.
    Operator,
}

impl Identity {
    /// The session, where it is one.
    pub fn session(&self) -> Option<SessionId> {
        match self {
            Self::Session { id } => Some(*id),
            Self::Unregistered { .. } | Self::Operator => None,
        }
    }
}

/// Whom the variables alone name, all of them. A harness inside a harness has the outer one's variables too, and which
/// of them is the inner one cannot be told: where they do not agree on one session, they name none.
pub fn by_variables(caller: &Caller, bound: impl Fn(&str, &str) -> Option<SessionId>) -> Identity {
    let named: Vec<_> = caller.conversations().map(|(h, id)| (h, id, bound(h, id))).collect();
    let Some((harness, _, first)) = named.first().copied() else { return Identity::Operator };
    if let Some(id) = first
        && named.iter().all(|(_, _, session)| *session == Some(id))
    {
        return Identity::Session { id };
    }
    let unbound = named.iter().find(|(_, _, session)| session.is_none());
    let (harness, harness_id) = unbound.map_or((harness, ""), |(harness, id, _)| (*harness, *id));
    Identity::Unregistered { harness: harness.to_owned(), harness_id: harness_id.to_owned() }
}

/// Whom the variables name, from files. This is all there is without a daemon; the daemon asks the kernel first.
pub fn from_files(home: &Home, caller: &Caller) -> Identity {
    by_variables(caller, |harness, harness_id| read_id(&home.binding(harness, harness_id)))
}

/// Reads a one-line file that holds a session id.
pub fn read_id(path: &std::path::Path) -> Option<SessionId> {
    std::fs::read_to_string(path).ok()?.trim_end().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unbound_variable_is_never_the_person() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path());
        let mut caller = Caller::default();
        assert_eq!(from_files(&home, &caller), Identity::Operator);
        caller.vars.insert("CLAUDE_CODE_SESSION_ID".into(), "abc".into());
        assert!(matches!(from_files(&home, &caller), Identity::Unregistered { .. }));
        let id = SessionId::random();
        let path = home.binding("claude", "abc");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("{id}\n")).unwrap();
        assert_eq!(from_files(&home, &caller), Identity::Session { id });
        // A harness within it has its variable too.
        caller.vars.insert("CODEX_THREAD_ID".into(), "new".into());
        let inner = Identity::Unregistered { harness: "codex".into(), harness_id: "new".into() };
        assert_eq!(from_files(&home, &caller), inner);
    }
}
