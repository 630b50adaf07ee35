//! Where a probe is made: a folder with a store, a configuration and a working directory of its own, and the commands
//! that run there.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use minder_proto::caller::HARNESS_VARS;
use minder_proto::layout::{self, Home};
use minder_proto::text::first_line;
use tempfile::TempDir;

use crate::fault::CommandError;
use crate::process::Process;

/// How long one command beside the turn may take.
const LIMIT: Duration = Duration::from_secs(20);
/// The longest folder below which a socket's address surely fits into what the system allows.
const LONGEST: usize = 40;
/// Most bytes of what a command said.
const SAID_MAX: usize = 64 * 1024;

/// The folder.
#[derive(Debug)]
pub struct Scratch {
    folder: TempDir,
    program: PathBuf,
}

/// A command that runs.
#[derive(Debug)]
pub struct Running {
    child: Child,
    process: Option<Process>,
    said: PathBuf,
}

/// A command that ended.
#[derive(Clone, Debug)]
pub struct Said {
    /// Its exit code, as a shell tells it.
    pub code: i32,
    /// What it printed on standard output.
    pub out: String,
    /// What it printed on standard error.
    pub err: String,
}

impl Scratch {
    /// Makes it. Its configuration is the user's, but that every conversation becomes a session.
    pub fn make() -> Result<Self, CommandError> {
        let failed = |what: &Path, e: &io::Error| CommandError::io(what.display(), e);
        let configuration = configuration()?;
        let temp = Some(std::env::temp_dir()).filter(|t| t.as_os_str().len() <= LONGEST);
        let temp = temp.unwrap_or_else(|| PathBuf::from("/tmp"));
        let folder = tempfile::Builder::new().prefix("minder-probe.").tempdir_in(&temp);
        let folder = folder.map_err(|e| failed(&temp, &e))?;
        for name in ["work", "run"] {
            let place = folder.path().join(name);
            std::fs::create_dir(&place).map_err(|e| failed(&place, &e))?;
            std::fs::set_permissions(&place, std::fs::Permissions::from_mode(0o700))
                .map_err(|e| failed(&place, &e))?;
        }
        let file = folder.path().join("config.toml");
        std::fs::write(&file, configuration).map_err(|e| failed(&file, &e))?;
        let program = std::env::current_exe().map_err(|e| failed(Path::new("minder"), &e))?;
        Ok(Self { folder, program })
    }

    /// The store.
    pub fn home(&self) -> Home {
        Home::at(self.folder.path().join("store"))
    }

    /// The working directory of the harness.
    pub fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// From now on hooks note that they ran.
    pub fn watch_hooks(&self) -> Result<(), String> {
        let folder = self.home().probe();
        std::fs::create_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))
    }

    /// Runs this program on the store of this place, to its end; what it printed, or why it failed.
    pub fn minder(&self, words: &[&str], input: &str) -> Result<String, String> {
        let said = self.start(words, input, false)?.end(LIMIT)?;
        match said.code {
            0 => Ok(said.out),
            code => Err(format!("minder {}: exit {code}: {}", words.join(" "), first_line(&said.err))),
        }
    }

    /// Starts this program there. With `theirs` it has the caller's own runtime folder, for what it starts in turn.
    pub fn start(&self, words: &[&str], input: &str, theirs: bool) -> Result<Running, String> {
        let failed = |e: io::Error| format!("minder {}: {e}", words.join(" "));
        // Files, not pipes: what is left running may hold them open without holding us.
        let said = self.folder.path().join(format!("{}-{}", words[0], words.get(1).unwrap_or(&"")));
        let given = said.with_extension("in");
        std::fs::write(&given, input).map_err(failed)?;
        let file = |end| File::create(said.with_extension(end)).map_err(failed);
        let mut command = Command::new(&self.program);
        command.args(words).current_dir(self.work()).env_clear().envs(self.environment(theirs));
        command.stdin(Stdio::from(File::open(&given).map_err(failed)?)).stdout(file("out")?);
        let child = command.stderr(file("err")?).spawn().map_err(failed)?;
        Ok(Running { process: Process::open(child.id()), child, said })
    }

    /// The caller's environment, without what says who calls and which store is meant.
    fn environment(&self, theirs: bool) -> Vec<(OsString, OsString)> {
        let others = |name: &str| {
            name.starts_with("MINDER_") && name != "MINDER_DAEMON"
                || HARNESS_VARS.iter().any(|(_, own)| *own == name)
        };
        let mut environment: Vec<(OsString, OsString)> =
            std::env::vars_os().filter(|(name, _)| !name.to_str().is_some_and(others)).collect();
        if !theirs {
            environment.retain(|(name, _)| name != "XDG_RUNTIME_DIR");
            environment.push(("XDG_RUNTIME_DIR".into(), self.folder.path().join("run").into()));
        }
        environment.push(("MINDER_HOME".into(), self.home().root().into()));
        environment.push(("MINDER_CONFIG".into(), self.folder.path().join("config.toml").into()));
        environment
    }

    /// Removes what the harness wrote of the conversation: a file that has its id in its name, and the folder that is
    /// named after this place, or that held nothing else.
    pub fn forget(&self, transcript: &Path, conversation: &str) {
        let name =
            |path: &Path| path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        let own = conversation.len() >= 8 && name(transcript).contains(conversation);
        // Where it is gone already, or stays, nothing is wrong with the hooks.
        if own
            && std::fs::remove_file(transcript).is_ok()
            && let Some(folder) = transcript.parent()
        {
            let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
            let here: String = name(self.folder.path()).chars().map(plain).collect();
            let _ = if name(folder).contains(&here) {
                std::fs::remove_dir_all(folder)
            } else {
                std::fs::remove_dir(folder)
            };
        }
    }

    /// Ends the daemon, and what runs under it, and removes the folder.
    pub fn clear(&self) -> Result<(), String> {
        self.stop_daemon()?;
        std::fs::remove_dir_all(self.folder.path())
            .map_err(|e| format!("{}: {e}", self.folder.path().display()))
    }

    /// Ends the daemon, if one runs, and the turns that it minds.
    pub fn stop_daemon(&self) -> Result<(), String> {
        if self.home().root().exists() {
            self.minder(&["daemon", "stop", "--now"], "").map(drop)
        } else {
            Ok(())
        }
    }
}

/// The user's configuration, changed for a probe.
fn configuration() -> Result<String, CommandError> {
    let file = layout::config_file()?;
    let text = match std::fs::read_to_string(&file) {
        Ok(text) => text,
        Err(e) if e.kind() == io::ErrorKind::NotFound => String::new(),
        Err(e) => return Err(CommandError::io(file.display(), &e)),
    };
    with_all_taken_in(&text).ok_or_else(|| {
        CommandError::new(
            "config",
            minder_proto::error::exit::CONFIG,
            format!("{}: it is no TOML", file.display()),
        )
    })
}

fn with_all_taken_in(text: &str) -> Option<String> {
    let mut table: toml::Table = text.parse().ok()?;
    let adopt = table.entry("adopt").or_insert_with(|| toml::Table::new().into()).as_table_mut()?;
    adopt.insert("mode".to_owned(), "all".into());
    adopt.remove("ignore");
    Some(table.to_string())
}

impl Running {
    /// Its process.
    pub fn process(&self) -> Option<&Process> {
        self.process.as_ref()
    }

    /// True once it has ended.
    pub fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)) | Err(_))
    }

    /// Asks it to end.
    pub fn stop(&self) {
        if let Ok(pid) = i32::try_from(self.child.id()) {
            // It is this process's child and was not waited for, so that the number is its own.
            let _ =
                nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGTERM);
        }
    }

    /// Waits for its end; it is killed where that does not come in time.
    pub fn end(mut self, limit: Duration) -> Result<Said, String> {
        if self.process.as_ref().is_some_and(|p| !p.wait(limit)) {
            let _ = self.child.kill();
        }
        let status = self.child.wait().map_err(|e| e.to_string())?;
        let text = |end| {
            let bytes = std::fs::read(self.said.with_extension(end)).unwrap_or_default();
            String::from_utf8_lossy(&bytes[..bytes.len().min(SAID_MAX)]).into_owned()
        };
        let code = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(-1);
        Ok(Said { code, out: text("out"), err: text("err") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_configuration_is_kept_but_for_who_is_taken_in() {
        let changed = |text: &str| with_all_taken_in(text).map(|text| text.parse::<toml::Table>().unwrap());
        let all = changed("").unwrap();
        assert_eq!(all["adopt"]["mode"].as_str(), Some("all"));
        let own = changed(
            "[adopt]\nmode = \"off\"\nignore = [\"/tmp\"]\ntext = false\n[turn]\nenv_pass = [\"X\"]\n",
        );
        let own = own.unwrap();
        assert_eq!(own["adopt"].as_table().unwrap().len(), 2);
        assert_eq!(own["adopt"]["text"].as_bool(), Some(false));
        assert_eq!(own["turn"]["env_pass"][0].as_str(), Some("X"));
        assert_eq!(changed("no toml ["), None);
    }

    #[test]
    fn only_the_conversations_own_file_is_forgotten() {
        let scratch = Scratch::make().unwrap();
        let here = scratch.folder.path().file_name().unwrap().to_str().unwrap().replace('.', "-");
        let dir = tempfile::tempdir().unwrap();
        let named = dir.path().join(format!("-tmp-{here}-work"));
        std::fs::create_dir_all(named.join("memory")).unwrap();
        for folder in ["p", "q"] {
            std::fs::create_dir(dir.path().join(folder)).unwrap();
        }
        let files = [named.join("0199c2d4-x.jsonl"), dir.path().join("p/rollout-0199c2d4-x.jsonl")];
        let other = dir.path().join("q/log.jsonl");
        for file in files.iter().chain([&other]) {
            std::fs::write(file, "").unwrap();
            scratch.forget(file, "0199c2d4-x");
        }
        assert!(!named.exists() && !dir.path().join("p").exists());
        assert!(other.exists());
    }
}
