//! How a harness is called in a terminal, as data: the program, and the words that make it go on with a conversation by its
//! exact id. None is ever told to go on with whichever was last.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};

/// A harness as it is called in a terminal.
#[derive(Debug)]
pub struct Program {
    /// Its name in records.
    pub name: &'static str,
    /// The program.
    calls: &'static str,
    /// The words before the id of a conversation that is gone on with.
    resume: &'static [&'static str],
    /// Its hooks tell of its start, before anybody has typed.
    pub says_so: bool,
    /// Its hooks, where they are installed, give it a message before anybody has typed.
    pub wakes: bool,
    /// Options without a value: a word after one is no option's.
    flags: &'static [&'static str],
}

/// Every harness that has a terminal.
pub static ALL: [Program; 6] = [
    Program {
        name: "claude",
        calls: "claude",
        resume: &["--resume"],
        says_so: true,
        wakes: true,
        flags: &[
            "--allow-dangerously-skip-permissions",
            "--bare",
            "--chrome",
            "--continue",
            "--dangerously-skip-permissions",
            "--disable-slash-commands",
            "--fork-session",
            "--ide",
            "--no-chrome",
            "--strict-mcp-config",
            "--verbose",
            "-c",
        ],
    },
    // Its start is told with the first prompt.
    Program {
        name: "codex",
        calls: "codex",
        resume: &["resume"],
        says_so: false,
        wakes: false,
        flags: &[
            "--dangerously-bypass-approvals-and-sandbox",
            "--full-auto",
            "--no-alt-screen",
            "--oss",
            "--search",
            "--yolo",
        ],
    },
    Program {
        name: "opencode",
        calls: "opencode",
        resume: &["--session"],
        says_so: false,
        wakes: true,
        flags: &["--continue", "--print-logs", "-c"],
    },
    Program {
        name: "pi",
        calls: "pi",
        resume: &["--session"],
        says_so: false,
        wakes: true,
        flags: &["--continue", "--no-extensions", "--no-session", "--no-tools", "--verbose", "-c"],
    },
    Program {
        name: "gemini",
        calls: "gemini",
        resume: &["--resume"],
        says_so: false,
        wakes: false,
        flags: &["--debug", "--sandbox", "--yolo", "-d", "-s", "-y"],
    },
    Program {
        name: "cursor",
        calls: "cursor-agent",
        resume: &["--resume"],
        says_so: false,
        wakes: false,
        flags: &["--approve-mcps", "--browser", "--cloud", "--force", "-c", "-f"],
    },
];

impl Program {
    /// The first of further arguments that is neither an option nor, as far as that is known, the value of one. A harness
    /// takes it for work, and would be given that work again with each further process.
    pub fn work_in<'a>(&self, further: &'a [String]) -> Option<&'a str> {
        let mut takes_value = false;
        for word in further {
            let option = word.len() > 1 && word.starts_with('-') && word != "--";
            if !option && !takes_value {
                return Some(word);
            }
            takes_value = option && !word.contains('=') && !self.flags.contains(&word.as_str());
        }
        None
    }

    /// The program and its arguments: those that go on with a conversation, then the further ones.
    pub fn argv(&self, conversation: Option<&str>, further: &[String]) -> Vec<String> {
        let resume = conversation.map(|id| self.resume.iter().copied().chain([id]));
        let words = std::iter::once(self.calls).chain(resume.into_iter().flatten());
        words.map(str::to_owned).chain(further.iter().cloned()).collect()
    }
}

/// The harness of this name.
pub fn by_name(name: &str) -> Option<&'static Program> {
    ALL.iter().find(|program| program.name == name)
}

/// The harnesses whose programs a search path leads to.
pub fn installed(path: &str) -> Vec<&'static Program> {
    ALL.iter().filter(|harness| find(harness.calls, path).is_some()).collect()
}

/// Where a program is, by its name or path.
pub fn find(program: &str, path: &str) -> Option<PathBuf> {
    let runs = |file: &Path| file.is_file() && access(file, AccessFlags::X_OK).is_ok();
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|file| runs(file));
    }
    std::env::split_paths(path).filter(|dir| dir.is_absolute()).map(|dir| dir.join(program)).find(|f| runs(f))
}

/// Where programs are, as an environment says it.
pub fn path_of(env: &BTreeMap<String, String>) -> &str {
    env.get("PATH").map_or("/usr/local/bin:/usr/bin:/bin", String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_among_the_arguments_is_seen() {
        let of = |name: &str, words: &str| {
            let words: Vec<String> = words.split(' ').filter(|w| !w.is_empty()).map(str::to_owned).collect();
            by_name(name).unwrap().work_in(&words).map(str::to_owned)
        };
        for (name, words, work) in [
            ("claude", "", None),
            ("claude", "--model opus --verbose --add-dir=/x", None),
            ("claude", "fix", Some("fix")),
            ("claude", "--model opus fix", Some("fix")),
            ("claude", "--dangerously-skip-permissions fix", Some("fix")),
            ("claude", "--model=opus fix", Some("fix")),
            ("claude", "--model opus -- fix", Some("--")),
            ("codex", "exec --json", Some("exec")),
            ("codex", "-c model=x --search", None),
        ] {
            assert_eq!(of(name, words).as_deref(), work, "{name} {words}");
        }
    }

    #[test]
    fn i1_a_conversation_is_gone_on_with_by_its_id_and_in_no_other_way() {
        let further = ["--model".to_owned(), "m".to_owned()];
        for harness in &ALL {
            let plain = harness.argv(None, &[]);
            assert_eq!(plain, [harness.calls], "{}", harness.name);
            let words = harness.argv(Some("0f3a"), &further);
            assert_eq!(words[words.len() - 3..], ["0f3a", "--model", "m"], "{}", harness.name);
            assert!(words.len() > 4, "{}: {words:?}", harness.name);
            let vague = ["--continue", "-c", "--last", "latest"];
            assert!(!words.iter().any(|w| vague.contains(&w.as_str())), "{words:?}");
        }
        assert_eq!(by_name("codex").unwrap().argv(Some("x"), &[]), ["codex", "resume", "x"]);
    }
}
