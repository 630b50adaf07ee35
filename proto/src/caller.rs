//! Who is calling: what the client sends along, and what can be known of a caller from files alone.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::id::SessionId;
use crate::layout::Home;

/// Variables in which harnesses name their own conversation: the harness, and the variable.
pub const HARNESS_VARS: [(&str, &str); 3] =
    [("claude", "CLAUDE_CODE_SESSION_ID"), ("codex", "CODEX_THREAD_ID"), ("gemini", "GEMINI_SESSION_ID")];

/// The variable that names a session. Its value is a session's id, where minder started the harness ([`TOKEN_VAR`]
/// proves it), or `HARNESS:ID` with the harness's own id of the conversation, where minder's plugin in the harness set
/// it for a tool.
pub const SESSION_VAR: &str = "MINDER_SESSION";

/// The variable that proves that the daemon gave a process its [`SESSION_VAR`].
pub const TOKEN_VAR: &str = "MINDER_TOKEN";

/// Harnesses that name no conversation to their tools: there the plugin does.
pub const NAMED_BY_PLUGIN: [&str; 2] = ["opencode", "pi"];

/// What the client says about its caller, in every call. The daemon believes the kernel first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Caller {
    /// The harness variables that are set, and [`SESSION_VAR`], by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub vars: BTreeMap<String, String>,
    /// What proves that the session of [`SESSION_VAR`] is the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
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
        let set = |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty());
        let names = HARNESS_VARS.iter().map(|(_, name)| *name).chain([SESSION_VAR]);
        let vars: BTreeMap<_, _> = names.filter_map(|name| Some((name.to_owned(), set(name)?))).collect();
        // It proves nothing but this one.
        let token = vars.contains_key(SESSION_VAR).then(|| set(TOKEN_VAR)).flatten();
        Self {
            vars,
            token,
            dir: std::env::current_dir().ok().and_then(|d| d.to_str().map(str::to_owned)),
            acting_as: None,
        }
    }

    /// The conversations that the variables name: harness and its own id.
    pub fn conversations(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let own = HARNESS_VARS
            .iter()
            .filter_map(|(harness, name)| Some((*harness, self.vars.get(*name)?.as_str())));
        let by_plugin = self.vars.get(SESSION_VAR).and_then(|value| {
            let (harness, id) = value.split_once(':')?;
            Some((NAMED_BY_PLUGIN.into_iter().find(|h| *h == harness)?, id))
        });
        own.chain(by_plugin)
    }

    /// The session that minder started this process for, as the caller says.
    pub fn launched(&self) -> Option<SessionId> {
        self.vars.get(SESSION_VAR)?.parse().ok()
    }

    /// Whether any variable says that this is an agent.
    pub fn is_agent(&self) -> bool {
        !self.vars.is_empty()
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
/// of them is the inner one cannot be told: where they do not agree on one session, they name none. What the daemon gave
/// to a process that it started counts only where no harness names a conversation: it is inherited by whatever the
/// process starts. `issued` is the session, if the caller's proof of it holds.
pub fn by_variables(
    caller: &Caller,
    bound: impl Fn(&str, &str) -> Option<SessionId>,
    issued: impl Fn(SessionId) -> Option<SessionId>,
) -> Identity {
    let named: Vec<_> = caller.conversations().map(|(h, id)| (h, id, bound(h, id))).collect();
    let Some((harness, _, first)) = named.first().copied() else {
        return match caller.launched().and_then(issued) {
            Some(id) => Identity::Session { id },
            None if caller.is_agent() => {
                Identity::Unregistered { harness: "unknown".to_owned(), harness_id: String::new() }
            }
            None => Identity::Operator,
        };
    };
    if let Some(id) = first
        && named.iter().all(|(_, _, session)| *session == Some(id))
    {
        return Identity::Session { id };
    }
    let unbound = named.iter().find(|(_, _, session)| session.is_none());
    let (harness, harness_id) = unbound.map_or((harness, ""), |(harness, id, _)| (*harness, *id));
    Identity::Unregistered { harness: harness.to_owned(), harness_id: harness_id.to_owned() }
}

/// Whom the variables name, from files. This is all there is without a daemon; the daemon asks the kernel first, and
/// for the proof, which files do not hold.
pub fn from_files(home: &Home, caller: &Caller) -> Identity {
    let open = |id: SessionId| home.session(id).is_dir().then_some(id);
    by_variables(caller, |harness, harness_id| read_id(&home.binding(harness, harness_id)), open)
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

    #[test]
    fn what_minder_gave_counts_where_no_harness_names_a_conversation() {
        let (launched, bound) = (SessionId::random(), SessionId::random());
        let shown = |vars: &[(&str, &str)], proven: bool| {
            let vars = vars.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
            let caller = Caller { vars, ..Caller::default() };
            let known =
                |h: &str, id: &str| (h == "codex" && id == "t" || h == "pi" && id == "p").then_some(bound);
            match by_variables(&caller, known, |id| proven.then_some(id)) {
                Identity::Session { id } if id == launched => "launched".to_owned(),
                Identity::Session { .. } => "bound".to_owned(),
                Identity::Unregistered { harness, harness_id } => format!("?{harness}:{harness_id}"),
                Identity::Operator => "operator".to_owned(),
            }
        };
        let id = launched.to_string();
        let given = (SESSION_VAR, id.as_str());
        assert_eq!(shown(&[given], true), "launched");
        assert_eq!(shown(&[given], false), "?unknown:", "never the person");
        assert_eq!(shown(&[(SESSION_VAR, "x")], true), "?unknown:");
        // A thread of a shared server has what the first one was given.
        assert_eq!(shown(&[given, ("CODEX_THREAD_ID", "t")], true), "bound");
        assert_eq!(shown(&[given, ("CODEX_THREAD_ID", "new")], true), "?codex:new");
        // The plugin names a conversation.
        assert_eq!(shown(&[(SESSION_VAR, "pi:p")], false), "bound");
        assert_eq!(shown(&[(SESSION_VAR, "opencode:ses_1")], true), "?opencode:ses_1");
        assert_eq!(shown(&[(SESSION_VAR, "claude:p")], true), "?unknown:");
    }
}
