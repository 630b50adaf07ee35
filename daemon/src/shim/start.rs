//! Starts the harness: as the leader of a process group of its own, in its directory, with the environment that the shim
//! was given and the turn's own variables, nothing else of the shim's. Without limits there is no step between fork and
//! exec that is ours, so that the quick way to start a process is taken.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, ChildStdout, Command, Stdio};

use minder_proto::stamp::Stamp;
use minder_proto::turn::Failure;
use minder_proto::turn::folder::{PROMPT, Spec, Unspawned};
use nix::libc::{EACCES, EINVAL, ENOENT, ENOEXEC, ENOTDIR};
use nix::unistd::{AccessFlags, access};

use super::limits;

/// The variable that marks every process of a turn with its id.
pub const MARKER: &str = "MINDER_TURN";
/// When the budget is over, by the calendar.
const DEADLINE: &str = "MINDER_TURN_DEADLINE";
/// The stall window in milliseconds; absent where there is none.
const STALL: &str = "MINDER_TURN_STALL_MS";

/// What runs a script that names nobody to run it.
const SHELL: &str = "/bin/sh";

/// A harness that runs.
#[derive(Debug)]
pub struct Started {
    /// Its pid, and its group's.
    pub pid: i32,
    /// What it says.
    pub stdout: ChildStdout,
    /// What it says beside that.
    pub stderr: ChildStderr,
}

/// Without a step of ours between fork and exec the standard library takes the quick way, if the C library can change the
/// directory on it. In a program that is linked statically it can only if something in the program names the call.
#[cfg(all(target_os = "linux", any(target_env = "gnu", target_env = "musl")))]
#[used]
static CHANGES_DIRECTORY: unsafe extern "C" fn(
    *mut nix::libc::posix_spawn_file_actions_t,
    *const nix::libc::c_char,
) -> nix::libc::c_int = nix::libc::posix_spawn_file_actions_addchdir_np;

/// Starts `argv`. The turn's budget is over at `deadline`.
pub fn start(spec: &Spec, argv: &[String], deadline: Stamp) -> Result<Started, Unspawned> {
    let dir = Path::new(&spec.dir);
    reachable(dir)?;
    let Some((program, arguments)) = argv.split_first() else {
        return Err(Unspawned { failure: Failure::SpawnFailed, errno: Some(EINVAL) });
    };
    let spawned = command(spec, program.as_ref(), deadline)
        .and_then(|mut command| command.args(arguments).spawn())
        .or_else(|error| match script(program, dir).filter(|_| error.raw_os_error() == Some(ENOEXEC)) {
            Some(path) => {
                let mut shell = command(spec, SHELL.as_ref(), deadline)?;
                shell.arg(path).args(arguments).spawn()
            }
            None => Err(error),
        });
    let mut child = spawned.map_err(|error| {
        // The directory may have gone since.
        let errno = error.raw_os_error();
        reachable(dir).err().unwrap_or(Unspawned { failure: named(errno), errno })
    })?;
    Ok(Started {
        pid: i32::try_from(child.id()).expect("a pid is an i32"),
        stdout: child.stdout.take().expect("it was asked for"),
        stderr: child.stderr.take().expect("it was asked for"),
    })
}

fn command(spec: &Spec, program: &OsStr, deadline: Stamp) -> io::Result<Command> {
    let stdin = if spec.prompt { Stdio::from(File::open(PROMPT)?) } else { Stdio::null() };
    let mut command = Command::new(program);
    command
        // In the child: this process works in the folder of its turn, which tells who it is.
        .current_dir(&spec.dir)
        .env(MARKER, spec.turn.to_string())
        .env(DEADLINE, deadline.to_string())
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    if spec.policy.stall_ms > 0 {
        command.env(STALL, spec.policy.stall_ms.to_string());
    } else {
        command.env_remove(STALL);
    }
    limits::set(&mut command, &spec.limits);
    Ok(command)
}

/// The file that a program's name stands for. A shell runs one that does not say what runs it, as `execvp` has it.
fn script(program: &str, dir: &Path) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(PathBuf::from(program));
    }
    let path = std::env::var_os("PATH")?;
    let mut found = std::env::split_paths(&path).map(|folder| dir.join(folder).join(program));
    found.find(|file| file.is_file() && access(file, AccessFlags::X_OK).is_ok())
}

/// Whether a process can be in this directory.
fn reachable(dir: &Path) -> Result<(), Unspawned> {
    let missing = |errno| Unspawned { failure: Failure::CwdMissing, errno: Some(errno) };
    match std::fs::metadata(dir) {
        Ok(found) if found.is_dir() => access(dir, AccessFlags::X_OK).map_err(|errno| missing(errno as i32)),
        Ok(_) => Err(missing(ENOTDIR)),
        Err(error) => Err(missing(error.raw_os_error().unwrap_or(ENOENT))),
    }
}

fn named(errno: Option<i32>) -> Failure {
    match errno {
        Some(ENOENT | ENOTDIR) => Failure::NotFound,
        Some(EACCES | ENOEXEC) => Failure::NotExecutable,
        _ => Failure::SpawnFailed,
    }
}
