//! What a harness says about itself: where its program is, its version, the sessions that run already. Asked
//! once each, with a time limit; a harness that hangs costs seconds and no more.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use super::pack::{self, Pack};
use super::place::{Scope, Surroundings};

/// How long a harness may take to answer.
pub const TIME_LIMIT: Duration = Duration::from_secs(5);

/// More output than this is no answer.
const OUTPUT_LIMIT: u64 = 4 * 1024 * 1024;

/// A session that runs, as `claude agents --json` lists it. Its own names of the fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunningAgent {
    /// The harness process.
    pub pid: u32,
    /// The harness's id of the conversation.
    pub session_id: String,
    /// Its working directory.
    pub cwd: Option<String>,
    /// `idle`, `busy`, `waiting`.
    pub status: Option<String>,
    /// With `waiting`: for what.
    pub waiting_for: Option<String>,
    /// The name that the person or the harness gave it.
    pub name: Option<String>,
    /// Interactive or not, in the harness's words.
    pub kind: Option<String>,
}

/// The program of a harness: from `PATH`, else from where its own installers put it.
pub fn find(pack: &Pack, surroundings: &Surroundings) -> Option<PathBuf> {
    let known = &pack.program;
    find_program(known.name, surroundings.path.as_deref()).or_else(|| {
        let settings = pack.file(surroundings, Scope::User);
        let beside = known.below_settings.iter().map(|below| settings.with_file_name(below));
        let home = known.below_home.iter().map(|below| surroundings.home.join(below));
        home.chain(beside).find(|file| is_program(file))
    })
}

/// A program on `PATH`.
pub fn find_program(name: &str, path: Option<&OsStr>) -> Option<PathBuf> {
    env::split_paths(path?)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|file| is_program(file))
}

fn is_program(file: &Path) -> bool {
    file.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

/// The version that a program names first on its `--version` line.
pub fn version(program: &Path, limit: Duration) -> Result<String, String> {
    let said = ask(program, &["--version"], limit)?;
    let first = |text: &str| {
        let is_version = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit());
        text.split_whitespace().find(is_version).map(str::to_owned)
    };
    // Pi 0.73.1 says it on standard error.
    first(&said.out).or_else(|| first(&said.err)).ok_or_else(|| "names no version".to_owned())
}

/// What a program prints on standard output.
pub fn said(program: &Path, arguments: &[&str], limit: Duration) -> Result<String, String> {
    Ok(ask(program, arguments, limit)?.out)
}

/// The sessions that run now.
pub fn running_agents(program: &Path, limit: Duration) -> Result<Vec<RunningAgent>, String> {
    parse_agents(&ask(program, &["agents", "--json"], limit)?.out)
}

/// Reads the list; an entry without process or id is passed over, it cannot be taken in.
fn parse_agents(output: &str) -> Result<Vec<RunningAgent>, String> {
    let entries: Vec<serde_json::Value> = serde_json::from_str(output.trim())
        .map_err(|error| format!("its list of sessions cannot be read ({error})"))?;
    Ok(entries.into_iter().filter_map(|entry| serde_json::from_value(entry).ok()).collect())
}

/// What a program printed.
struct Said {
    out: String,
    err: String,
}

/// Runs a program and gives what it printed.
fn ask(program: &Path, arguments: &[&str], limit: Duration) -> Result<Said, String> {
    let failed = |error: io::Error| format!("cannot be run ({})", error.kind());
    // Files, not pipes: what the program leaves running may hold them open without holding us.
    let [out, err] = [tempfile::tempfile().map_err(failed)?, tempfile::tempfile().map_err(failed)?];
    let [into_out, into_err] = [out.try_clone().map_err(failed)?, err.try_clone().map_err(failed)?];
    let mut child = Command::new(program)
        .args(arguments)
        .env_clear()
        .envs(environment())
        .stdin(Stdio::null())
        .stdout(into_out)
        .stderr(into_err)
        .process_group(0)
        .spawn()
        .map_err(failed)?;
    let status = wait(&mut child, limit).map_err(failed)?;
    let Some(status) = status else { return Err(format!("did not answer in {} s", limit.as_secs_f64())) };
    if !status.success() {
        return Err(format!("{} failed ({status})", arguments.join(" ")));
    }
    let text = |mut file: File| {
        let mut text = String::new();
        file.rewind()?;
        file.take(OUTPUT_LIMIT).read_to_string(&mut text).map(|_| text)
    };
    // What is no text there is no answer, and no reason to have none.
    Ok(Said { out: text(out).map_err(failed)?, err: text(err).unwrap_or_default() })
}

/// What a harness is told of the surroundings: where it is and where its settings are. Not what it would be told of a
/// session that it is in, and no key.
fn environment() -> impl Iterator<Item = (&'static str, OsString)> {
    const PLAIN: [&str; 9] =
        ["PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TMPDIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME"];
    let settings = pack::ALL.iter().filter_map(|pack| Some(pack.user.variable?.0));
    PLAIN.into_iter().chain(settings).filter_map(|name| Some((name, env::var_os(name)?)))
}

/// Waits for a child up to a limit, then ends its process group. Looks in growing steps: a child that is not
/// waited for yet keeps its number, so that the signal cannot reach another.
fn wait(child: &mut Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let deadline = Instant::now() + limit;
    let mut step = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            let group = i32::try_from(child.id()).map_err(io::Error::other)?;
            killpg(Pid::from_raw(group), Signal::SIGKILL)?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(step.min(left));
        step = (step * 2).min(Duration::from_millis(50));
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::io::{BufRead, BufReader};

    use super::*;

    fn script(folder: &Path, body: &str) -> PathBuf {
        let file = folder.join("claude");
        fs_err::write(&file, format!("#!/bin/sh\n{body}\n")).unwrap();
        fs_err::set_permissions(&file, Permissions::from_mode(0o755)).unwrap();
        file
    }

    #[test]
    fn the_version_is_the_first_word_with_a_digit() {
        let folder = tempfile::tempdir().unwrap();
        let said = |body: &str| version(&script(folder.path(), body), TIME_LIMIT);
        assert_eq!(said("echo '2.1.332 (Claude Code)'"), Ok("2.1.332".to_owned()));
        assert_eq!(said("echo claude 3.0-beta"), Ok("3.0-beta".to_owned()));
        assert_eq!(said("echo hello"), Err("names no version".to_owned()));
        assert_eq!(said("echo 0.73.1 >&2"), Ok("0.73.1".to_owned()));
        assert_eq!(said("echo '(node:12) warning 7' >&2; echo 1.2"), Ok("1.2".to_owned()));
        assert!(said("exit 3").unwrap_err().contains("exit status: 3"));
        assert!(version(Path::new("/nowhere/claude"), TIME_LIMIT).unwrap_err().starts_with("cannot be run"));
    }

    #[test]
    fn a_program_that_hangs_is_ended_with_its_children() {
        let mut child = Command::new("/bin/sh")
            .args(["-c", "sleep 600 & echo started; wait"])
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert_eq!(line, "started\n");
        assert!(wait(&mut child, Duration::from_millis(20)).unwrap().is_none());
        // The end of the pipe comes when the last of them is gone.
        assert_eq!(output.read_line(&mut line).unwrap(), 0);
    }

    #[test]
    fn a_program_that_does_not_answer_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let program = script(folder.path(), "exec sleep 600");
        let said = version(&program, Duration::from_millis(20)).unwrap_err();
        assert_eq!(said, "did not answer in 0.02 s");
    }

    #[test]
    fn what_a_program_leaves_running_does_not_hold_us() {
        let folder = tempfile::tempdir().unwrap();
        let program = script(folder.path(), "sleep 60 & echo $! 1.2.3");
        let output = ask(&program, &[], Duration::from_secs(30)).unwrap().out;
        let child: i32 = output.split_whitespace().next().unwrap().parse().unwrap();
        nix::sys::signal::kill(Pid::from_raw(child), Signal::SIGKILL).unwrap();
    }

    #[test]
    fn the_list_of_sessions_is_read_leniently() {
        let list = r#"[
          {"pid": 12, "cwd": "/src/web", "kind": "interactive", "startedAt": 1, "sessionId": "s1", "status": "waiting",
           "waitingFor": "permission prompt", "name": "web"},
          {"pid": 13, "sessionId": "s2"},
          {"pid": 14}, {"sessionId": "s3"}, 7
        ]"#;
        let agents = parse_agents(list).unwrap();
        assert_eq!(agents.len(), 2);
        assert_eq!(agents[0].waiting_for.as_deref(), Some("permission prompt"));
        assert_eq!((agents[1].pid, agents[1].session_id.as_str(), &agents[1].cwd), (13, "s2", &None));
        assert_eq!(parse_agents("[]\n"), Ok(Vec::new()));
        assert!(parse_agents("no agents").unwrap_err().contains("cannot be read"));
    }

    #[test]
    fn only_an_executable_file_on_an_absolute_path_counts() {
        let folder = tempfile::tempdir().unwrap();
        let empty = tempfile::tempdir().unwrap();
        fs_err::create_dir(empty.path().join("claude")).unwrap();
        let program = script(folder.path(), "true");
        let path = env::join_paths([Path::new("."), empty.path(), folder.path()]).unwrap();
        assert_eq!(find_program("claude", Some(&path)), Some(program.clone()));
        fs_err::set_permissions(&program, Permissions::from_mode(0o644)).unwrap();
        assert_eq!(find_program("claude", Some(&path)), None);
        assert_eq!(find_program("claude", None), None);
    }
}
