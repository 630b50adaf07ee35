//! A pack: all that is known of one harness for its hooks, as data. Where its settings are, what stands in them,
//! where its program is found, and what a person has to know.

use std::path::PathBuf;

use serde::Serialize;

use super::command::{self, Form};
use super::json_text::Piece;
use super::packs;
use super::place::{Scope, Surroundings};

/// The pack of one harness.
#[derive(Debug)]
pub struct Pack {
    /// The word after `minder hook`.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// Where its program is.
    pub program: Program,
    /// Where the settings of a person are.
    pub user: UserPlace,
    /// Where those of a project are, below its folder.
    pub project: &'static str,
    /// What stands there.
    pub body: Body,
    /// The name that each hook is given, where the harness shows its user one, and its whole command without it.
    pub hook_name: Option<&'static str>,
    /// What keeps hooks from running although they are there.
    pub reader: Reader,
    /// Its configuration beside a person's settings, where its sandbox keeps tools from the daemon and the store.
    pub sandbox: Option<&'static str>,
    /// Whether it lists the sessions that run, so that they can be taken in at once.
    pub lists_sessions: bool,
    /// What a person has to do after an installation.
    pub then: &'static str,
    /// What becomes of messages.
    pub works: Works,
}

/// What works with a harness through what stands in its settings, in few words.
#[derive(Debug, Serialize)]
pub struct Works {
    /// The versions that it was seen with.
    pub tried: &'static [&'static str],
    /// What becomes of a message to a session that is idle.
    pub idle: &'static str,
    /// Where one enters a turn that runs.
    pub busy: &'static str,
    /// When one enters while a dialog is open.
    pub dialog: &'static str,
    /// The channels by which a session of it can be reached, beside those of every session.
    pub channels: &'static [&'static str],
}

/// How a harness's program is found, and which versions of it are known.
#[derive(Debug)]
pub struct Program {
    /// Its name on `PATH`.
    pub name: &'static str,
    /// Where else its own installers put it, below the home folder.
    pub below_home: &'static [&'static str],
    /// The same, below the folder of its settings.
    pub below_settings: &'static [&'static str],
    /// The oldest version whose hooks work as this pack has them; an older one is refused.
    pub oldest: Option<[u64; 3]>,
}

/// Where a person's settings of a harness are.
#[derive(Debug)]
pub struct UserPlace {
    /// The variable that names a folder, and the file below that.
    pub variable: Option<(&'static str, &'static str)>,
    /// The file below the home folder.
    pub home: &'static str,
}

/// What stands in a harness's settings.
#[derive(Debug)]
pub enum Body {
    /// A JSON object with `hooks`, in it a list of groups for each event.
    Groups(&'static [Event]),
    /// The same with a list of commands for each event, under a `version`.
    Commands(&'static [Event]),
    /// A file of minder's own, which the harness runs: what it is called, and the parts of its text.
    Script(&'static str, &'static [&'static str]),
}

/// One event of a pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// As the harness spells it.
    pub name: &'static str,
    /// For events about a tool: every tool.
    pub matcher: Option<&'static str>,
    /// After so long the harness gives the hook up, in its own unit. The client itself gives up long before.
    pub timeout: u64,
    /// Whether a waiter is armed at it, by a second, `asyncRewake` command.
    pub waiter: bool,
}

/// How a harness reads the file in which its hooks are.
#[derive(Debug)]
pub struct Reader {
    /// Whether it bears comments.
    pub comments: bool,
    /// Whether it bears a comma behind the last item.
    pub trailing_commas: bool,
    /// The names at the top of the file, where it bears no others.
    pub root_keys: &'static [&'static str],
    /// The switch that turns all hooks off, where there is one: the names that lead to it, and the value that does.
    pub switch: Option<(&'static [&'static str], bool)>,
    /// The file beside a person's settings that says which hooks were reviewed, where it runs no others.
    pub reviews: Option<&'static str>,
}

/// Longer than any session: without a timeout of its own Claude Code ends a waiter after ten minutes.
pub const WAITER_TIMEOUT: u64 = 2_000_000;

/// Every pack, in the order in which they are shown.
pub const ALL: &[&Pack] = &[
    &packs::claude::PACK,
    &packs::codex::PACK,
    &packs::opencode::PACK,
    &packs::pi::PACK,
    &packs::gemini::PACK,
    &packs::cursor::PACK,
];

/// The pack of a harness.
pub fn of(harness: &str) -> Option<&'static Pack> {
    ALL.iter().find(|pack| pack.name == harness).copied()
}

/// The names of all harnesses that have a pack, for a text.
pub fn names() -> String {
    ALL.iter().map(|pack| pack.name).collect::<Vec<_>>().join(", ")
}

impl Pack {
    /// The file of a scope.
    pub fn file(&self, surroundings: &Surroundings, scope: Scope) -> PathBuf {
        match scope {
            Scope::User => self.user.file(surroundings),
            Scope::Project => surroundings.here.join(self.project),
        }
    }

    /// The text to begin a file with where there is none.
    pub fn beginning(&self) -> Option<&'static str> {
        matches!(self.body, Body::Commands(_)).then_some("{\n  \"version\": 1\n}\n")
    }

    /// What a minder at `program` puts into the lists of events.
    pub fn groups(&self, program: &str) -> Vec<(&'static str, Piece)> {
        match &self.body {
            Body::Groups(events) => {
                events.iter().map(|event| (event.name, self.group(event, program))).collect()
            }
            Body::Commands(events) => {
                let command = Piece::String(command::text(program, self.name, Form::Event));
                let command = Piece::Object(vec![("command", command)]);
                events.iter().map(|event| (event.name, command.clone())).collect()
            }
            Body::Script(..) => Vec::new(),
        }
    }

    fn group(&self, event: &Event, program: &str) -> Piece {
        let mut hooks = vec![self.hook(program, Form::Event, event.timeout)];
        if event.waiter {
            hooks.push(self.hook(program, Form::Wait, WAITER_TIMEOUT));
        }
        let mut members = Vec::new();
        if let Some(matcher) = event.matcher {
            members.push(("matcher", Piece::String(matcher.to_owned())));
        }
        members.push(("hooks", Piece::Array(hooks)));
        Piece::Object(members)
    }

    fn hook(&self, program: &str, form: Form, timeout: u64) -> Piece {
        let mut members = vec![
            ("type", Piece::String("command".to_owned())),
            ("command", Piece::String(command::text(program, self.name, form))),
            ("timeout", Piece::Number(timeout)),
        ];
        if let Some(name) = self.hook_name {
            members.insert(0, ("name", Piece::String(name.to_owned())));
        }
        if form == Form::Wait {
            members.push(("asyncRewake", Piece::Bool(true)));
        }
        Piece::Object(members)
    }

    /// Whether a version is older than any that works; one that cannot be read is not.
    pub fn is_too_old(&self, version: &str) -> bool {
        let Some(oldest) = self.program.oldest else { return false };
        let numbers: Vec<u64> = version.split(['.', '-', '+']).map_while(|part| part.parse().ok()).collect();
        !numbers.is_empty() && numbers.as_slice() < oldest.as_slice()
    }
}

impl UserPlace {
    fn file(&self, surroundings: &Surroundings) -> PathBuf {
        let set = self.variable.and_then(|(name, below)| Some((surroundings.variables.get(name)?, below)));
        match set {
            Some((folder, below)) => surroundings.here.join(folder).join(below),
            None => surroundings.home.join(self.home),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_is_used_twice_and_none_names_a_file_of_another() {
        for (i, pack) in ALL.iter().enumerate() {
            assert!(of(pack.name).is_some_and(|found| std::ptr::eq(found, *pack)));
            for other in &ALL[i + 1..] {
                assert_ne!(pack.name, other.name);
                assert_ne!(pack.user.home, other.user.home);
                assert_ne!(pack.project, other.project);
            }
        }
        assert!(of("clod").is_none());
    }

    #[test]
    fn the_configuration_folder_of_the_harness_wins_over_home() {
        let mut surroundings = Surroundings {
            home: "/home/ana".into(),
            variables: std::collections::BTreeMap::default(),
            here: "/src/web".into(),
            path: None,
            minder_home: "/s".into(),
        };
        let file = |surroundings: &Surroundings, harness: &str, scope| {
            of(harness).expect("has a pack").file(surroundings, scope).display().to_string()
        };
        for (harness, variable, below) in
            [("claude", "CLAUDE_CONFIG_DIR", "settings.json"), ("codex", "CODEX_HOME", "hooks.json")]
        {
            assert_eq!(file(&surroundings, harness, Scope::User), format!("/home/ana/.{harness}/{below}"));
            assert_eq!(file(&surroundings, harness, Scope::Project), format!("/src/web/.{harness}/{below}"));
            surroundings.variables.insert(variable, "/odd $folder".into());
            assert_eq!(file(&surroundings, harness, Scope::User), format!("/odd $folder/{below}"));
            surroundings.variables.insert(variable, "conf".into());
            assert_eq!(file(&surroundings, harness, Scope::User), format!("/src/web/conf/{below}"));
            assert_eq!(file(&surroundings, harness, Scope::Project), format!("/src/web/.{harness}/{below}"));
        }
    }

    #[test]
    fn versions_are_compared_by_number() {
        let claude = of("claude").unwrap();
        for old in ["2.1.196", "2.1.99", "2.0.900", "1.9.0", "2.1", "0.2.1-beta"] {
            assert!(claude.is_too_old(old), "{old}");
        }
        for fits in ["2.1.197", "2.1.332", "2.10.0", "3.0.0-rc.1", "10.0.0", "unknown", ""] {
            assert!(!claude.is_too_old(fits), "{fits}");
        }
        assert!(!of("codex").unwrap().is_too_old("0.1.0"), "what was not tried is not refused");
    }
}
