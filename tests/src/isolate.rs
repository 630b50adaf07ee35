//! Private surroundings for the programs under test: a folder that holds every home they know, an environment
//! with nothing inherited, and the certainty that what they started is gone at the end.
//!
//! Every process that is started through it carries the folder's path in the variable [`MARK`], and so do that
//! process's descendants, unless they empty their environment. At drop those are ended, and the daemon, which
//! does empty it, by what its lock file says and by the files it holds open below the folder.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;

use crate::dispositions;
use crate::process::{self, Process};

/// The variable that marks what belongs to one [`Isolated`].
pub const MARK: &str = "RIG_ROOT";

static INHERITED: std::sync::Once = std::sync::Once::new();

/// Programs that were found to be as built last: once for a test program, and not in the time that a measurement takes.
static BUILT: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// A temporary folder and the environment that keeps programs inside it.
pub struct Isolated {
    root: TempDir,
    bin: PathBuf,
}

impl Isolated {
    /// Makes the folder and all homes in it. Needs no program to be built.
    ///
    /// It is shared, since what runs in it must end before the folder goes: whoever has something running
    /// there keeps it.
    pub fn new() -> Result<Arc<Self>> {
        // What is started here has the dispositions of a program that was started from a terminal.
        INHERITED.call_once(dispositions::reset);
        // Not below TMPDIR, which can be long: a socket's address ends at 107 bytes.
        Self::new_in(Path::new("/tmp"))
    }

    /// The same where no disk has to be waited for, if there is such a place.
    pub fn in_memory() -> Result<Arc<Self>> {
        let memory = Path::new("/dev/shm");
        Self::new_in(if memory.is_dir() { memory } else { Path::new("/tmp") })
    }

    fn new_in(folder: &Path) -> Result<Arc<Self>> {
        let root = tempfile::Builder::new().prefix("mt-").tempdir_in(folder)?;
        let isolated = Self { root, bin: program_folder()? };
        for folder in [isolated.home(), isolated.runtime_dir(), isolated.tmp()] {
            std::fs::create_dir(&folder)?;
            private(&folder)?;
        }
        for folder in
            [isolated.config_home(), isolated.state_home(), isolated.data_home(), isolated.cache_home()]
        {
            std::fs::create_dir_all(&folder)?;
        }
        Ok(Arc::new(isolated))
    }

    /// The folder that holds everything.
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    pub fn home(&self) -> PathBuf {
        self.root().join("home")
    }

    /// `TMPDIR` of what runs here.
    pub fn tmp(&self) -> PathBuf {
        self.root().join("tmp")
    }

    pub fn runtime_dir(&self) -> PathBuf {
        self.root().join("run")
    }

    pub fn config_home(&self) -> PathBuf {
        self.home().join(".config")
    }

    pub fn state_home(&self) -> PathBuf {
        self.home().join(".local/state")
    }

    fn data_home(&self) -> PathBuf {
        self.home().join(".local/share")
    }

    fn cache_home(&self) -> PathBuf {
        self.home().join(".cache")
    }

    /// The store. Not made here: the daemon makes it.
    pub fn minder_home(&self) -> PathBuf {
        self.root().join("store")
    }

    /// A folder to run a session in, made if it is not there.
    pub fn project(&self, name: &str) -> Result<PathBuf> {
        let folder = self.root().join("projects").join(name);
        std::fs::create_dir_all(&folder)?;
        Ok(folder)
    }

    /// The whole environment of a program here. `minder` is found in its `PATH`.
    pub fn environment(&self) -> Vec<(OsString, OsString)> {
        let mut path = self.bin.clone().into_os_string();
        path.push(":/usr/local/bin:/usr/bin:/bin");
        let variables: [(&str, OsString); 13] = [
            (MARK, self.root().into()),
            ("HOME", self.home().into()),
            ("MINDER_HOME", self.minder_home().into()),
            ("XDG_CONFIG_HOME", self.config_home().into()),
            ("XDG_STATE_HOME", self.state_home().into()),
            ("XDG_DATA_HOME", self.data_home().into()),
            ("XDG_CACHE_HOME", self.cache_home().into()),
            ("XDG_RUNTIME_DIR", self.runtime_dir().into()),
            ("TMPDIR", self.tmp().into()),
            ("PATH", path),
            ("SHELL", "/bin/sh".into()),
            ("TERM", "xterm-256color".into()),
            ("LANG", "C.UTF-8".into()),
        ];
        variables.into_iter().map(|(name, value)| (name.into(), value)).collect()
    }

    /// A command for any program, with this environment and nothing else, in the home folder.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear().envs(self.environment()).current_dir(self.home());
        command
    }

    /// A command for `minder`.
    pub fn minder(&self) -> Result<Command> {
        Ok(self.command(self.program("minder")?))
    }

    /// A command for `minderd`.
    pub fn minderd(&self) -> Result<Command> {
        Ok(self.command(self.program("minderd")?))
    }

    /// A program of this workspace, as built last. An error says if it is missing, or older than a source
    /// that it was built from: a test of an old program says nothing.
    pub fn program(&self, name: &str) -> Result<PathBuf> {
        let program = self.bin.join(name);
        if BUILT.lock().unwrap_or_else(PoisonError::into_inner).contains(&program) {
            return Ok(program);
        }
        let built = program.metadata().and_then(|m| m.modified());
        let built = built.with_context(|| {
            let program = program.display();
            format!("{program} is not there; these tests run built programs: `cargo build --workspace` first")
        })?;
        // Beside a program stands what it was made from, as a make rule: `program: source source ...`.
        let rule = std::fs::read_to_string(program.with_extension("d")).unwrap_or_default();
        let (_, sources) = rule.split_once(": ").unwrap_or_default();
        // A space within a path is escaped; such a path is not found, and not looked at.
        for source in sources.split_whitespace() {
            let changed = Path::new(source).metadata().and_then(|m| m.modified());
            if changed.is_ok_and(|changed| changed > built) {
                bail!("{} is older than {source}: `cargo build --workspace` first", program.display());
            }
        }
        BUILT.lock().unwrap_or_else(PoisonError::into_inner).insert(program.clone());
        Ok(program)
    }

    /// The daemon of this store, if its lock file names one that is alive and executes our `minderd`.
    pub fn daemon(&self) -> Option<Process> {
        let text = std::fs::read_to_string(self.minder_home().join("daemon.lock")).ok()?;
        let digits = text.split(|c: char| !c.is_ascii_digit()).find(|word| !word.is_empty())?;
        let process = Process::open(digits.parse().ok()?).ok()??;
        self.is_our_daemon(&process).then_some(process)
    }

    fn is_our_daemon(&self, process: &Process) -> bool {
        process.exe().is_some_and(|exe| exe == self.bin.join("minderd"))
    }

    /// Ends every process that belongs here; the error names those that stayed.
    pub fn end_all(&self) -> Result<()> {
        // The daemon lets running calls end; the rest has nothing to finish.
        let (patience, grace) = (Duration::from_secs(10), Duration::from_secs(1));
        if let Some(daemon) = self.daemon() {
            ensure!(daemon.end(patience), "the daemon, process {}, did not end", daemon.pid());
        }
        let root = self.root().as_os_str();
        let ours = |p: &Process| {
            p.has_variable(MARK, root) || self.is_our_daemon(p) && p.holds_file_below(self.root())
        };
        // One that is being ended may start another, so look again; each round has fewer.
        for _ in 0..10 {
            let left = process::find(ours);
            if left.is_empty() {
                return Ok(());
            }
            for process in &left {
                process.signal(rustix::process::Signal::TERM);
            }
            let deadline = std::time::Instant::now() + grace;
            for process in &left {
                if !process.wait(deadline.saturating_duration_since(std::time::Instant::now())) {
                    process.end(Duration::ZERO);
                }
            }
        }
        let left: Vec<_> = process::find(ours).iter().map(|p| (p.pid(), p.arguments())).collect();
        ensure!(left.is_empty(), "still there: {left:?}");
        Ok(())
    }
}

impl Drop for Isolated {
    fn drop(&mut self) {
        let ended = self.end_all();
        // A second panic would hide the first.
        if let Err(error) = ended
            && !std::thread::panicking()
        {
            panic!("{error}");
        }
    }
}

/// Where cargo put the workspace's programs: this executable's folder, or the one above `deps`.
fn program_folder() -> Result<PathBuf> {
    let this = std::env::current_exe()?;
    let folder = this.parent().context("an executable is in a folder")?;
    let folder = if folder.ends_with("deps") { folder.parent().unwrap_or(folder) } else { folder };
    Ok(folder.to_owned())
}

fn private(folder: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_sees_only_the_private_environment() {
        let isolated = Isolated::new().unwrap();
        let out = process::run(&mut isolated.command("/usr/bin/env"), b"", Duration::from_secs(10)).unwrap();
        let text = String::from_utf8(out.stdout).unwrap();
        let mut names: Vec<_> = text.lines().map(|line| line.split('=').next().unwrap()).collect();
        names.sort_unstable();
        let expected = "HOME LANG MINDER_HOME PATH RIG_ROOT SHELL TERM TMPDIR XDG_CACHE_HOME XDG_CONFIG_HOME \
            XDG_DATA_HOME XDG_RUNTIME_DIR XDG_STATE_HOME";
        assert_eq!(names.join(" "), expected);
        let root = isolated.root().to_str().unwrap();
        let home = text.lines().find(|line| line.starts_with("HOME=")).unwrap();
        assert_eq!(home, format!("HOME={root}/home"));
    }

    #[test]
    fn what_was_started_is_gone_with_it_and_the_folder_too() {
        let isolated = Isolated::new().unwrap();
        let root = isolated.root().to_owned();
        // A child in a session of its own, left by its parent, and deaf to SIGTERM.
        let script = "setsid sh -c 'trap : TERM; echo up; while :; do sleep 100; done' &";
        let mut command = isolated.command("sh");
        command.args(["-c", script]).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null());
        let mut shell = command.spawn();
        let mut out = std::io::BufReader::new(shell.as_mut().unwrap().stdout.take().unwrap());
        let mut line = String::new();
        std::io::BufRead::read_line(&mut out, &mut line).unwrap();
        assert_eq!(line, "up\n");
        shell.unwrap().wait().unwrap();
        let marked = || process::find(|p| p.has_variable(MARK, root.as_os_str())).len();
        assert!(marked() > 0);
        drop(isolated);
        assert_eq!((marked(), root.exists()), (0, false));
    }

    #[test]
    fn a_program_that_is_not_built_is_an_error_that_says_so() {
        let error = Isolated::new().unwrap().program("no-such-program").unwrap_err();
        assert!(error.to_string().contains("cargo build"), "{error}");
    }

    #[test]
    fn a_program_older_than_its_source_is_an_error_that_names_it() {
        let mut isolated = Isolated::new().unwrap();
        let bin = isolated.root().join("bin");
        Arc::get_mut(&mut isolated).unwrap().bin = bin;
        std::fs::create_dir(&isolated.bin).unwrap();
        let source = isolated.root().join("main.rs");
        let old = std::time::SystemTime::now() - Duration::from_secs(60);
        std::fs::write(&source, "").unwrap();
        std::fs::File::create(isolated.bin.join("p")).unwrap().set_modified(old).unwrap();
        std::fs::write(isolated.bin.join("p.d"), format!("/x/p: {}\n", source.display())).unwrap();
        let error = isolated.program("p").unwrap_err().to_string();
        assert!(error.contains("older than") && error.contains("main.rs"), "{error}");
        std::fs::File::open(&source).unwrap().set_modified(old).unwrap();
        isolated.program("p").unwrap();
    }

    #[test]
    fn a_lock_file_that_names_a_stranger_ends_nobody() {
        let isolated = Isolated::new().unwrap();
        std::fs::create_dir(isolated.minder_home()).unwrap();
        std::fs::write(isolated.minder_home().join("daemon.lock"), format!("{}\n", std::process::id()))
            .unwrap();
        assert!(isolated.daemon().is_none());
    }
}
