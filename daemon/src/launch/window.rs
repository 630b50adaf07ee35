//! The tmux server of the user's: a window is made there for what a session was launched for, and taken away again if that
//! never came up. Nothing else of it is touched.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use minder_proto::text::one_line;
use tokio::process::Command;

use super::door::NAME as DOOR;
use super::programs::{find, path_of};

/// How long one command may take.
const COMMAND: Duration = Duration::from_secs(10);
/// How often it is looked for windows that were left, where one is about to end.
const LEFT: u32 = 50;
/// How often tmux is asked how a program ended.
const REAPED: u32 = 40;
/// What tmux is given of an environment: a server that starts keeps it for all that is ever started there.
const SERVER: [&str; 8] = ["PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TERM", "SHELL", "USER"];
/// How tmux says that there is no server, or no session to have a window.
const NOBODY: [&str; 5] =
    ["no current target", "no server running", "error connecting to", "no sessions", "no current session"];
/// Lines of a screen that are told.
const LINES: usize = 8;
/// Size of a terminal that nobody looks at.
const SIZE: [&str; 4] = ["-x", "150", "-y", "45"];

/// A server.
#[derive(Debug)]
pub struct Server {
    program: PathBuf,
    socket: String,
    env: BTreeMap<String, String>,
}

/// What a program left behind.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct LastWords {
    /// How it ended.
    pub status: String,
    /// The end of what stood on its screen, on one line.
    pub text: String,
}

impl Server {
    /// The server at a socket, with the tmux that the caller has.
    pub fn at(socket: &str, env: &BTreeMap<String, String>) -> Result<Self, String> {
        let program = find("tmux", path_of(env)).ok_or("tmux: no such program")?;
        let env = env.iter().filter(|(name, _)| SERVER.contains(&name.as_str()));
        let env = env.map(|(name, value)| (name.clone(), value.clone())).collect();
        Ok(Self { program, socket: socket.to_owned(), env })
    }

    /// A new window for a program; gives its pane. It goes to the session that has the pane `beside`, else to the one that
    /// tmux chooses; where the server has no session, or there is no server yet, to a new one.
    pub async fn open(
        &self,
        beside: Option<&str>,
        name: &str,
        dir: &str,
        command: &[String],
    ) -> Result<String, String> {
        let target = match beside {
            Some(pane) => {
                let id = self.run(&["display-message", "-p", "-t", pane, "#{session_id}"]).await?;
                Some(format!("{}:", id.trim()))
            }
            None => None,
        };
        let dir = verbatim(dir);
        let about = ["-d", "-P", "-F", "#{pane_id}", "-n", name, "-c", &dir];
        let target: Vec<&str> = target.iter().flat_map(|t| ["-t", t.as_str()]).collect();
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        let words = [&["new-window"], &about[..], &target, &["--"], &command].concat();
        let made = match self.run(&words).await {
            // It may be that there is no session to have the window.
            Err(why) if target.is_empty() && NOBODY.iter().any(|word| why.contains(word)) => {
                let words = [&["new-session"], &SIZE[..], &about, &["--"], &command].concat();
                self.run(&words).await.map_err(|_| why)?
            }
            made => made?,
        };
        Ok(made.trim().to_owned())
    }

    /// The program again, in the pane where it has ended.
    pub async fn again(&self, pane: &str, dir: &str, command: &[String]) -> Result<(), String> {
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        let dir = verbatim(dir);
        let words = [&["respawn-pane", "-k", "-t", pane, "-c", &dir, "--"], &command[..]].concat();
        self.run(&words).await.map(drop)
    }

    /// Whether a pane stays when its program ends, so that what it said can be read; else as the user has it.
    pub async fn keep(&self, pane: &str, stays: bool) {
        let words: &[&str] = if stays {
            &["-p", "-t", pane, "remain-on-exit", "on"]
        } else {
            &["-p", "-u", "-t", pane, "remain-on-exit"]
        };
        let words = [&["set-option"], words].concat();
        // An old tmux has no such option of a pane: then its last words are not known.
        if let Err(why) = self.run(&words).await {
            tracing::debug!(pane, why, "remain-on-exit");
        }
    }

    /// The first process of a pane.
    pub async fn process_in(&self, pane: &str) -> Result<i32, String> {
        let shown = self.run(&["display-message", "-p", "-t", pane, "#{pane_pid}"]).await?;
        shown.trim().parse().map_err(|_| "tmux: the new window is gone".to_owned())
    }

    /// True if a pane is the one of this process: a later server counts its panes from the first again.
    pub async fn has(&self, pane: &str, pid: i32) -> bool {
        self.process_in(pane).await == Ok(pid)
    }

    /// True if what ran in a pane has ended, and the pane has stayed.
    pub async fn is_dead(&self, pane: &str) -> bool {
        let shown = self.run(&["display-message", "-p", "-t", pane, "#{pane_dead}"]).await;
        shown.is_ok_and(|shown| shown.trim() == "1")
    }

    /// What stands in a pane whose program has ended.
    pub async fn last_words(&self, pane: &str) -> LastWords {
        let format = "#{pane_dead_status}/#{pane_dead_signal}";
        let mut status = String::new();
        // The kernel tells tmux of the end no sooner than others; and tmux at times overlooks that until its next child
        // has ended, which it is given then.
        for time in 0..REAPED {
            if time % 10 == 2 {
                let _ = self.run(&["run-shell", "true"]).await;
            }
            let Ok(ended) = self.run(&["display-message", "-p", "-t", pane, format]).await else { break };
            status = match ended.trim().split_once('/') {
                Some((code, _)) if !code.is_empty() => format!("exit {code}"),
                Some((_, signal)) if !signal.is_empty() => format!("signal {signal}"),
                _ => String::new(),
            };
            if !status.is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        // That it is dead is said on a line of its own, for which the first has moved up.
        let screen =
            self.run(&["capture-pane", "-p", "-J", "-S", "-1", "-t", pane]).await.unwrap_or_default();
        LastWords { status, text: last_lines(&screen) }
    }

    /// What ran in a pane is up: the pane is as the user has it. One that ended meanwhile, which stayed, goes.
    pub async fn release(&self, pane: &str) {
        self.keep(pane, false).await;
        if self.is_dead(pane).await {
            self.close(pane).await;
        }
    }

    /// Takes away what a start has left that nobody knows of: a pane whose process was to ask at a door of this folder which is
    /// gone, and ended. Where the user keeps panes whose program has ended it would stay.
    pub async fn close_left(&self, doors: &Path) {
        for _ in 0..LEFT {
            let format = "#{pane_id} #{pane_dead} #{pane_current_command} #{pane_start_command}";
            let Ok(all) = self.run(&["list-panes", "-a", "-F", format]).await else { return };
            let (mut closed, mut waits) = (Vec::new(), false);
            for line in all.lines() {
                let mut words = line.splitn(4, ' ');
                let (Some(pane), Some(dead), Some(runs), Some(start)) =
                    (words.next(), words.next(), words.next(), words.next())
                else {
                    continue;
                };
                if !asks_at_none(start, doors) {
                    continue;
                }
                if dead == "1" {
                    closed.push(pane);
                }
                // It is about to end; another name is that of a program that was started well.
                waits |= dead == "0" && runs == "minderd";
            }
            for pane in closed {
                self.close(pane).await;
            }
            if !waits {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Takes a pane away that was made here, and with it its window.
    pub async fn close(&self, pane: &str) {
        if let Err(why) = self.run(&["kill-pane", "-t", pane]).await {
            tracing::debug!(pane, why, "a pane is gone already");
        }
    }

    async fn run(&self, words: &[&str]) -> Result<String, String> {
        let mut command = Command::new(&self.program);
        command
            .args(["-S", &self.socket])
            .args(words)
            .env_clear()
            .envs(&self.env)
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let ran = tokio::time::timeout(COMMAND, command.output()).await;
        let out = ran.map_err(|_| "tmux does not answer".to_owned())?.map_err(|e| format!("tmux: {e}"))?;
        if out.status.success() {
            return Ok(String::from_utf8_lossy(&out.stdout).into_owned());
        }
        let why = String::from_utf8_lossy(&out.stderr);
        Err(format!("tmux: {}", one_line(why.trim())))
    }
}

/// True for the command of a window whose door is gone.
fn asks_at_none(start: &str, doors: &Path) -> bool {
    let before = format!("{}/{DOOR}", doors.display());
    let Some((_, rest)) = start.split_once(&before) else { return false };
    let name: String = rest.chars().take_while(char::is_ascii_alphanumeric).collect();
    !name.is_empty() && !doors.join(format!("{DOOR}{name}")).exists()
}

/// A folder's name where tmux would read a format, and run what that names.
fn verbatim(dir: &str) -> String {
    dir.replace('#', "##")
}

/// The last lines of a screen that has ended, on one line. What tmux itself says of the end is no word of the program's.
fn last_lines(screen: &str) -> String {
    let lines =
        screen.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("Pane is dead"));
    let lines: Vec<&str> = lines.collect();
    one_line(&lines[lines.len().saturating_sub(LINES)..].join(" / "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_left_where_its_door_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let run = dir.path();
        std::fs::write(run.join("start-00ff"), "").unwrap();
        let start = |name: &str| format!("\"/usr/bin/minderd start {}/{name}\"", run.display());
        assert!(asks_at_none(&start("start-0123"), run));
        assert!(!asks_at_none(&start("start-00ff"), run));
        assert!(!asks_at_none(&start("start-"), run) && !asks_at_none("bash", run));
        assert!(!asks_at_none("minderd start /other/run/start-0123", run), "another store's");
    }

    #[test]
    fn a_folder_is_no_format() {
        assert_eq!(verbatim("/a/#(touch x)/#S"), "/a/##(touch x)/##S");
    }

    #[test]
    fn what_is_told_of_a_screen_is_its_end_on_one_line() {
        let screen = "\n  error: no such\t\u{1b}[31mmodel \n\n try --help\nPane is dead (status 3, Mon Nov 30 12:00:00 2026)\n";
        let text = last_lines(screen);
        assert!(text.ends_with(" / try --help") && text.starts_with("error: no such"), "{text}");
        assert!(!text.contains('\u{1b}'));
        let long: Vec<String> = (0..20).map(|n| format!("line {n}")).collect();
        assert_eq!(last_lines(&long.join("\n")).split(" / ").count(), LINES);
        assert_eq!(last_lines(""), "");
    }
}
