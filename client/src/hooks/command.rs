//! The command text that stands in a harness's settings, and how ours is told from everybody else's.
//!
//! One `sh` at most: where the program is there it takes the shell's place, so that its exit code (2 counts
//! for a harness) is the harness's to see; where it is gone (an upgrade, an uninstalled minder) the shell
//! ends with 0 and says nothing.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::HooksError;

/// What every command of ours ends with: for the shell a comment, for us the proof that it is ours.
pub const MARKER: &str = "# minder-hook";

/// Which command of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Tells an event and prints what waits.
    Event,
    /// The waiter: blocks until something may enter an idle session.
    Wait,
}

/// The command for a harness.
pub fn text(program: &str, harness: &str, form: Form) -> String {
    let program = quote(program);
    let wait = match form {
        Form::Event => "",
        Form::Wait => " --wait",
    };
    format!("[ -x {program} ] && exec {program} hook {harness}{wait} || exit 0 {MARKER}")
}

/// Whether a command text is one of ours, of whatever version and path.
pub fn is_ours(command: &str) -> bool {
    command.trim_end().ends_with(MARKER)
}

/// The program that a command of ours runs, as far as it can be read back.
pub fn program(command: &str) -> Option<String> {
    let mut rest = command.strip_prefix("[ -x '")?;
    let mut program = String::new();
    loop {
        let (part, after) = rest.split_once('\'')?;
        program.push_str(part);
        match after.strip_prefix("\\''") {
            Some(more) => {
                program.push('\'');
                rest = more;
            }
            None => return Some(program),
        }
    }
}

/// Quoted so that every shell takes it for one literal word.
fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// The path under which this program is to be called: the name by which the caller found it, if that leads to
/// this very file, since such a name (a link in `~/.local/bin`) outlives upgrades; else the file itself.
pub fn own_program() -> Result<String, HooksError> {
    let file = env::current_exe().map_err(|source| HooksError::OwnPath(source.to_string()))?;
    let called = env::args_os().next().unwrap_or_default();
    if !file.exists() {
        let gone = format!("{} is not there any more; start the new one", file.display());
        return Err(HooksError::OwnPath(gone));
    }
    let path = stable_name(&file, &called, env::var_os("PATH").as_deref(), env::current_dir().ok());
    path.into_os_string()
        .into_string()
        .map_err(|path| HooksError::OwnPath(format!("{} is not UTF-8", Path::new(&path).display())))
}

fn stable_name(file: &Path, called: &OsString, path: Option<&OsStr>, here: Option<PathBuf>) -> PathBuf {
    let leads_here = |candidate: &PathBuf| {
        candidate.is_absolute()
            && match (candidate.canonicalize(), file.canonicalize()) {
                (Ok(candidate), Ok(file)) => candidate == file,
                _ => false,
            }
    };
    let by_name = Path::new(called);
    let candidate = if by_name.components().count() > 1 {
        here.map(|here| here.join(by_name)).filter(leads_here)
    } else {
        let folders = path.map(|path| env::split_paths(path).collect::<Vec<_>>()).unwrap_or_default();
        folders.into_iter().map(|folder| folder.join(by_name)).find(leads_here)
    };
    candidate.map_or_else(|| file.to_owned(), |candidate| candidate.components().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_read_back_from_the_command() {
        for path in ["/usr/bin/minder", "/a b/it's $HOME/\"q\"/`x`\\/minder", "/'/''/minder", "/ä\n/minder"]
        {
            for form in [Form::Event, Form::Wait] {
                let command = text(path, "claude", form);
                assert!(is_ours(&command));
                assert_eq!(program(&command).as_deref(), Some(path));
            }
        }
        assert_eq!(program("echo # minder-hook"), None);
        assert_eq!(program("[ -x 'open"), None);
    }

    #[test]
    fn only_the_mark_at_the_end_makes_it_ours() {
        assert!(is_ours("anything # minder-hook"));
        assert!(is_ours("anything # minder-hook\n"));
        assert!(!is_ours("minder hook claude"));
        assert!(!is_ours("grep '# minder-hook' file"));
    }

    #[test]
    fn a_link_on_the_path_is_preferred_to_the_file_behind_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let file = root.join("minder-1.0");
        fs_err::write(&file, "x").unwrap();
        let bin = root.join("bin");
        fs_err::create_dir(&bin).unwrap();
        fs_err::os::unix::fs::symlink(&file, bin.join("minder")).unwrap();
        let other = root.join("other");
        fs_err::create_dir(&other).unwrap();
        fs_err::write(other.join("minder"), "not this one").unwrap();

        let path = env::join_paths([&other, &bin]).unwrap();
        let name = |called: &str, here: &Path| {
            stable_name(&file, &OsString::from(called), Some(&path), Some(here.to_owned()))
        };
        assert_eq!(name("minder", &root), bin.join("minder"));
        assert_eq!(name("./bin/minder", &root), bin.join("minder"));
        assert_eq!(name("other/minder", &root), file);
        assert_eq!(name("nowhere", &root), file);
        assert_eq!(name("", &root), file);
    }
}
