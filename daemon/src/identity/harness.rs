//! How the process of a harness is told from others: by what the kernel knows of it. One entry a harness; another one
//! is one more entry.

use std::ffi::OsStr;
use std::path::Path;

/// What a harness's process looks like.
#[derive(Debug, PartialEq, Eq)]
pub struct Harness {
    /// Its name in records, bindings and on the command line.
    pub name: &'static str,
    /// Names of its executable.
    programs: &'static [&'static str],
    /// Ends of the path of its script, where an interpreter runs it.
    scripts: &'static [&'static str],
    /// Names by which its own executable is called to be something else: a sandbox around a tool, a search.
    helpers: &'static [&'static str],
    /// Its options that have a value, behind which the word that says what it shall do may stand.
    valued: &'static [&'static str],
    /// Words and options with which nobody sits at it.
    unattended: &'static [&'static str],
    /// Words with which it serves several conversations.
    shared: &'static [&'static str],
    /// Several even without such a word.
    always_shared: bool,
}

/// How a harness runs, by its arguments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Runs {
    /// One conversation, and a person at it, for all that is known.
    #[default]
    Attended,
    /// Nobody sits at it.
    Unattended,
    /// It serves several conversations at a time.
    Shared,
}

impl Harness {
    /// How a process of it runs.
    pub fn runs(&self, arguments: &[String]) -> Runs {
        let mut words = arguments
            .iter()
            .skip(1)
            .map(String::as_str)
            .skip_while(|a| !a.starts_with('-') && self.is_script(a));
        let mut first = None;
        let mut options = Vec::new();
        while let Some(word) = words.next() {
            if word == "--" {
                break;
            }
            if word.starts_with('-') {
                options.push(word.split('=').next().unwrap_or(word));
                if self.valued.contains(&word) {
                    words.next();
                }
            } else {
                first = first.or(Some(word));
            }
        }
        let said = |those: &[&str]| those.iter().any(|w| first == Some(*w) || options.contains(w));
        if said(self.unattended) {
            Runs::Unattended
        } else if self.always_shared || said(self.shared) {
            Runs::Shared
        } else {
            Runs::Attended
        }
    }

    /// The path of its script, or of one that an interpreter is about to run.
    fn is_script(&self, word: &str) -> bool {
        self.scripts.iter().any(|end| ends(word, end))
    }
}

/// Programs that run scripts.
const INTERPRETERS: [&str; 3] = ["node", "nodejs", "bun"];

/// Options of theirs without a value that a harness starts itself with.
const INTERPRETED: [&str; 2] = ["--no-warnings", "--expose-gc"];

/// The harnesses whose processes are known. One that no adapter serves yet is known all the same, lest what runs
/// under it be taken for the harness around it.
const HARNESSES: [Harness; 6] = [
    Harness {
        name: "claude",
        programs: &["claude", "claude.exe"],
        scripts: &["claude", "claude-code/cli.js"],
        helpers: &["rg", "ugrep", "bfs"],
        // Its hooks' environment says it.
        valued: &[],
        unattended: &[],
        shared: &[],
        always_shared: false,
    },
    Harness {
        name: "codex",
        programs: &["codex"],
        scripts: &[],
        helpers: &["codex-linux-sandbox", "codex-execve-wrapper", "apply_patch", "applypatch"],
        valued: &[
            "-c",
            "--config",
            "-m",
            "--model",
            "-p",
            "--profile",
            "-C",
            "--cd",
            "-s",
            "--sandbox",
            "-a",
            "--ask-for-approval",
            "--enable",
            "--disable",
            "-i",
            "--image",
            "--add-dir",
            "--local-provider",
        ],
        unattended: &["exec", "e", "review", "mcp-server"],
        shared: &["app-server"],
        always_shared: false,
    },
    Harness {
        name: "opencode",
        programs: &["opencode", "opencode.exe"],
        scripts: &["opencode", "opencode-ai/bin/opencode"],
        helpers: &["rg"],
        valued: &[],
        unattended: &["run"],
        shared: &[],
        always_shared: true,
    },
    Harness {
        name: "pi",
        programs: &["pi"],
        scripts: &["pi", "pi-coding-agent/dist/cli.js"],
        helpers: &[],
        valued: &[
            "--provider",
            "--model",
            "--session",
            "--api-key",
            "--system-prompt",
            "--append-system-prompt",
        ],
        unattended: &["-p", "--print", "--mode"],
        shared: &[],
        always_shared: false,
    },
    Harness {
        name: "gemini",
        programs: &["gemini"],
        scripts: &["gemini", "gemini-cli/dist/index.js", "gemini-cli/bundle/gemini.js"],
        helpers: &[],
        valued: &[],
        unattended: &["-p", "--prompt", "--acp", "--experimental-acp"],
        shared: &[],
        always_shared: false,
    },
    // Its editor is none: a shell in that is a person's.
    Harness {
        name: "cursor",
        programs: &["cursor-agent"],
        scripts: &["cursor-agent"],
        helpers: &[],
        valued: &[],
        unattended: &["-p", "--print"],
        shared: &[],
        always_shared: false,
    },
];

/// The harness that a process is. Any of its three names may tell: the one the kernel keeps may be cut or changed by
/// the program, the first argument is whatever its starter chose, and the executable of an installation may be named
/// after its version.
pub fn recognise(comm: &str, arguments: &[String], executable: Option<&Path>) -> Option<&'static Harness> {
    let called = arguments.first().map(|first| base(first));
    let executable = executable.and_then(Path::file_name).and_then(OsStr::to_str);
    // An executable that was replaced while it runs is shown so.
    let executable = executable.map(|name| name.strip_suffix(" (deleted)").unwrap_or(name));
    // Options of the interpreter itself stand before the script.
    let option = |a: &&String| a.starts_with("--") && (a.contains('=') || INTERPRETED.contains(&a.as_str()));
    let script = arguments.iter().skip(1).find(|a| !option(a)).filter(|_| {
        let by = |name: Option<&str>| name.is_some_and(|n| INTERPRETERS.contains(&n));
        by(called) || by(executable)
    });
    HARNESSES.iter().find(|harness| {
        let named = |name: &str| harness.programs.contains(&name);
        let helper = called.is_some_and(|name| harness.helpers.contains(&name));
        let program = named(comm) || called.is_some_and(named) || executable.is_some_and(named);
        let scripted = script.is_some_and(|path| harness.scripts.iter().any(|end| ends(path, end)));
        (program && !helper) || scripted
    })
}

/// True if the processes of a harness of this name are known.
pub fn is_harness(name: &str) -> bool {
    HARNESSES.iter().any(|harness| harness.name == name)
}

fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// True if `path` is `end` or ends in it at a whole name.
fn ends(path: &str, end: &str) -> bool {
    path.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_harness_is_known_by_any_of_its_names() {
        for (comm, arguments, executable, expected) in [
            // As npm, a native installer, and a package manager leave it.
            ("claude", "claude -p hi", "/n/claude-code/bin/claude.exe", Some("claude")),
            ("claude.exe", "/n/claude-code/bin/claude.exe", "/n/claude-code/bin/claude.exe", Some("claude")),
            ("claude", "claude", "/home/u/.local/share/claude/versions/2.1.332", Some("claude")),
            ("2.1.332", "/usr/bin/claude", "/opt/claude/versions/2.1.332", Some("claude")),
            // It has renamed itself, and its file was replaced.
            ("worker", "busy", "/usr/bin/claude (deleted)", Some("claude")),
            // Older ones are scripts.
            ("node", "node /n/@anthropic-ai/claude-code/cli.js --continue", "/usr/bin/node", Some("claude")),
            ("MainThread", "/usr/bin/node /n/.bin/claude", "/usr/bin/node", Some("claude")),
            ("node", "node /n/not-claude-code/cli.js", "/usr/bin/node", None),
            ("node", "node --version claude", "/usr/bin/node", None),
            ("codex", "codex exec", "/opt/codex", Some("codex")),
            // The same executable under another name is no harness but its helper.
            ("rg", "rg claude", "/usr/bin/claude", None),
            ("codex-linux-san", "codex-linux-sandbox -- sh", "/opt/codex", None),
            ("opencode", "/n/opencode-linux-x64/bin/opencode run", "/n/opencode", Some("opencode")),
            ("node", "node /n/.bin/opencode", "/usr/bin/node", Some("opencode")),
            ("pi", "pi", "/usr/bin/node", Some("pi")),
            ("node", "node /n/@mariozechner/pi-coding-agent/dist/cli.js", "/usr/bin/node", Some("pi")),
            (
                "node",
                "/usr/bin/node --no-warnings --max-old-space-size=8000 /n/.bin/gemini",
                "/usr/bin/node",
                Some("gemini"),
            ),
            ("node", "/h/.local/bin/cursor-agent --use-system-ca /v/index.js", "/v/node", Some("cursor")),
            ("cursor", "/opt/cursor/cursor", "/opt/cursor/cursor", None),
            // What only speaks of it.
            ("bash", "bash -c claude", "/usr/bin/bash", None),
            ("claude-watch", "claude-watch", "/usr/bin/claude-watch", None),
            ("vim", "vim claude", "/usr/bin/vim", None),
            ("", "", "", None),
        ] {
            let arguments: Vec<String> = arguments.split(' ').map(str::to_owned).collect();
            let found = recognise(comm, &arguments, Some(Path::new(executable))).map(|h| h.name);
            assert_eq!(found, expected, "{comm} {arguments:?} {executable}");
        }
        assert_eq!(
            recognise("claude", &[], None).map(|h| h.name),
            Some("claude"),
            "what can be read may be little"
        );
    }

    #[test]
    fn how_it_runs_is_told_by_its_arguments() {
        for (line, expected) in [
            ("codex", Runs::Attended),
            ("codex fix exec", Runs::Attended),
            ("codex resume 01a2", Runs::Attended),
            ("codex exec --json hi", Runs::Unattended),
            ("codex -c model=x -m exec e hi", Runs::Unattended),
            ("codex --search -C /tmp exec hi", Runs::Unattended),
            ("codex -m exec", Runs::Attended),
            ("codex -- exec", Runs::Attended),
            ("codex app-server --listen unix://", Runs::Shared),
            ("opencode", Runs::Shared),
            ("opencode serve", Runs::Shared),
            ("node /n/.bin/opencode run hi", Runs::Unattended),
            ("pi", Runs::Attended),
            ("node /n/pi-coding-agent/dist/cli.js -p hi", Runs::Unattended),
            ("pi --mode rpc", Runs::Unattended),
            ("node --no-warnings /n/.bin/gemini", Runs::Attended),
            ("node /n/.bin/gemini --prompt=hi", Runs::Unattended),
            ("claude -p hi", Runs::Attended),
        ] {
            let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let harness = recognise("", &arguments, Some(Path::new("/usr/bin/node"))).unwrap();
            assert_eq!(harness.runs(&arguments), expected, "{line}");
        }
    }

    #[test]
    fn each_that_names_its_conversation_is_known() {
        let named = minder_proto::caller::HARNESS_VARS.into_iter().map(|(name, _)| name);
        for name in named.chain(minder_proto::caller::NAMED_BY_PLUGIN) {
            assert!(HARNESSES.iter().any(|h| h.name == name), "{name}");
        }
    }
}
