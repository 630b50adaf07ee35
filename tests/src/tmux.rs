//! A private tmux server: programs that need a terminal, what they show, and keys for them.
//!
//! Each session has a client in control mode, which is told of every output, so waiting for a screen is
//! waiting for an event.

use std::ffi::OsString;
use std::fmt;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::isolate::Isolated;
use crate::process::{self, Process};

/// How long one tmux command may take.
const COMMAND: Duration = Duration::from_secs(10);

/// A tmux server on a socket of its own. Dropping it ends the server and all that runs in it.
pub struct Tmux {
    client: Client,
    server: Process,
}

impl Tmux {
    pub fn start(isolated: &Arc<Isolated>) -> Result<Self> {
        let client = Client { isolated: Arc::clone(isolated), socket: isolated.root().join("tmux.sock") };
        // Without sessions, so that all sessions are alike. A program's last screen stays readable.
        let script = "start-server ; set-option -s exit-empty off ; set-option -g remain-on-exit on ; \
            display-message -p #{pid}";
        let pid = client.run(script.split(' '), b"")?;
        let pid = pid.trim().parse().with_context(|| format!("the server's pid is {pid:?}"))?;
        let server = Process::open(pid)?.context("the tmux server has ended at once")?;
        Ok(Self { client, server })
    }

    /// The server's socket, as `tmux -S` takes it.
    pub fn socket(&self) -> &Path {
        &self.client.socket
    }

    /// Starts a program, with no shell in between, in a session of this name, 150 by 45 characters. It has
    /// the isolated environment and on top of it `environment`.
    pub fn session(
        &self,
        name: &str,
        folder: &Path,
        environment: &[(OsString, OsString)],
        command: &[OsString],
    ) -> Result<Pane> {
        let words = "new-session -d -x 150 -y 45 -P -F";
        let mut args: Vec<OsString> = words.split(' ').map(OsString::from).collect();
        args.extend(["#{pane_id} #{pane_pid}", "-s", name, "-c"].map(OsString::from));
        args.push(folder.into());
        for (variable, value) in environment {
            let mut pair = variable.clone();
            pair.push("=");
            pair.push(value);
            args.extend(["-e".into(), pair]);
        }
        args.push("--".into());
        if command.len() == 1 {
            // A single word tmux gives to a shell, which need not become what it starts.
            args.push("env".into());
        }
        args.extend_from_slice(command);
        let made = self.client.run(args, b"")?;
        let (id, pid) = made.trim().split_once(' ').with_context(|| format!("a new session is {made:?}"))?;
        let process = Process::open(pid.parse()?)?.with_context(|| format!("{command:?} ended at once"))?;
        let output = Output::follow(&self.client, name)?;
        Ok(Pane { client: self.client.clone(), id: id.to_owned(), process, output })
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        // The server answers SIGTERM as it does `kill-server`.
        self.server.end(Duration::from_secs(2));
    }
}

/// Runs tmux commands on one server.
#[derive(Clone)]
struct Client {
    isolated: Arc<Isolated>,
    socket: PathBuf,
}

impl Client {
    fn command(&self) -> Command {
        let mut command = self.isolated.command("tmux");
        command.arg("-S").arg(&self.socket).args(["-f", "/dev/null"]);
        command
    }

    fn run(&self, args: impl IntoIterator<Item = impl Into<OsString>>, input: &[u8]) -> Result<String> {
        let mut command = self.command();
        command.args(args.into_iter().map(Into::into));
        let out = process::run(&mut command, input, COMMAND).context("tmux")?;
        ensure!(out.status.success(), "{command:?}: {}", String::from_utf8_lossy(&out.stderr).trim());
        Ok(String::from_utf8_lossy(&out.stdout).into_owned())
    }
}

/// A program in a terminal of its own.
pub struct Pane {
    client: Client,
    id: String,
    process: Process,
    output: Output,
}

impl Pane {
    /// The program that was started.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// The pane's id, as tmux commands take it.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Runs a tmux command with `-t` this pane after its name.
    pub fn tmux(&self, command: &str, args: &[&str], input: &[u8]) -> Result<String> {
        let args = [command, "-t", &self.id].into_iter().chain(args.iter().copied());
        self.client.run(args, input)
    }

    /// What the terminal shows: its lines, without blanks at their ends.
    pub fn screen(&self) -> Result<String> {
        self.tmux("capture-pane", &["-p"], b"")
    }

    /// Waits until `found` gives something on the screen, at most `limit`. The error holds the last screen.
    pub fn wait_screen<T>(&self, limit: Duration, mut found: impl FnMut(&str) -> Option<T>) -> Result<T> {
        let deadline = Instant::now() + limit;
        loop {
            // First the count, then the look: an output in between makes the wait return at once.
            let seen = self.output.count();
            let screen = self.screen()?;
            if let Some(result) = found(&screen) {
                return Ok(result);
            }
            if !self.output.wait_beyond(seen, deadline) {
                return Err(Unmet { limit, screen: self.screen()? }.into());
            }
        }
    }

    /// Waits until the screen shows this text.
    pub fn wait_text(&self, limit: Duration, text: &str) -> Result<()> {
        let wanted = |screen: &str| screen.contains(text).then_some(());
        self.wait_screen(limit, wanted).with_context(|| format!("waiting for the screen to show {text:?}"))
    }

    /// Presses one key, by tmux's name: `Enter`, `Escape`, `C-c`, `Down`.
    pub fn key(&self, key: &str) -> Result<()> {
        self.tmux("send-keys", &[key], b"").map(drop)
    }

    /// Types text key by key, as a person does. A newline submits in most programs.
    pub fn type_text(&self, text: &str) -> Result<()> {
        self.tmux("send-keys", &["-l", "--", text], b"").map(drop)
    }

    /// Pastes text as a terminal does (bracketed): newlines do not submit.
    pub fn paste(&self, text: &str) -> Result<()> {
        self.client.run(["load-buffer", "-b", "rig", "-"], text.as_bytes())?;
        self.tmux("paste-buffer", &["-d", "-p", "-r", "-b", "rig"], b"").map(drop)
    }
}

/// A screen that did not come.
#[derive(Debug)]
struct Unmet {
    limit: Duration,
    screen: String,
}

impl fmt::Display for Unmet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not on the screen within {:?}; it shows:\n{}", self.limit, self.screen.trim_end())
    }
}

impl std::error::Error for Unmet {}

/// Counts a session's outputs, by a client in control mode.
struct Output {
    client: Child,
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    attached: bool,
    count: u64,
    ended: bool,
}

impl Output {
    fn follow(client: &Client, session: &str) -> Result<Self> {
        let mut command = client.command();
        command.args(["-C", "attach-session", "-f", "ignore-size,read-only", "-t", session]);
        // It ends when its input does, so the input stays open as long as the child is kept.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().context("tmux in control mode")?;
        let lines = BufReader::new(child.stdout.take().expect("piped"));
        let output = Self { client: child, seen: Arc::default() };
        let seen = Arc::clone(&output.seen);
        std::thread::spawn(move || {
            // Outputs are escaped, but other lines can hold any bytes.
            for line in lines.split(b'\n').map_while(Result::ok) {
                let mut state = seen.state.lock().unwrap_or_else(PoisonError::into_inner);
                state.attached |= line.starts_with(b"%session-changed");
                state.count += u64::from(line.starts_with(b"%output"));
                seen.changed.notify_all();
            }
            seen.state.lock().unwrap_or_else(PoisonError::into_inner).ended = true;
            seen.changed.notify_all();
        });
        if output.wait(Instant::now() + COMMAND, |state| state.attached) {
            Ok(output)
        } else {
            bail!("tmux did not attach a control client to {session}")
        }
    }

    fn count(&self) -> u64 {
        self.seen.state.lock().unwrap_or_else(PoisonError::into_inner).count
    }

    /// Waits for an output beyond the counted ones; false at the deadline or when the session is gone.
    fn wait_beyond(&self, count: u64, deadline: Instant) -> bool {
        self.wait(deadline, |state| state.count > count)
    }

    fn wait(&self, deadline: Instant, met: impl Fn(&State) -> bool) -> bool {
        let left = deadline.saturating_duration_since(Instant::now());
        let state = self.seen.state.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = |state: &mut State| !met(state) && !state.ended;
        let woken = self.seen.changed.wait_timeout_while(state, left, waiting);
        met(&woken.unwrap_or_else(PoisonError::into_inner).0)
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        // Both fail only if it has ended.
        let _ = self.client.kill();
        let _ = self.client.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    fn sh(script: &str) -> Vec<OsString> {
        ["sh", "-c", script].map(OsString::from).into()
    }

    #[test]
    fn a_program_shows_what_it_is_typed_and_ends_with_the_server() {
        let isolated = Isolated::new().unwrap();
        let tmux = Tmux::start(&isolated).unwrap();
        let extra = [("EXTRA".into(), "a b".into())];
        let script = r#"read -r line; echo "$HOME/$EXTRA: $line"; exec sleep 1000"#;
        let pane = tmux.session("one", isolated.root(), &extra, &sh(script)).unwrap();
        pane.type_text("-t hello").unwrap();
        pane.key("Enter").unwrap();
        pane.wait_text(LIMIT, &format!("{}/a b: -t hello", isolated.home().display())).unwrap();
        pane.wait_screen(LIMIT, |_| (pane.process().comm()? == "sleep").then_some(())).unwrap();
        drop(tmux);
        assert!(pane.process().wait(LIMIT));
    }

    #[test]
    fn a_paste_is_bracketed_for_a_program_that_asks_for_it() {
        let isolated = Isolated::new().unwrap();
        let tmux = Tmux::start(&isolated).unwrap();
        let script =
            r"stty raw -echo; printf '\033[?2004hready\r\n'; dd bs=1 count=19 2>/dev/null | od -An -c";
        let pane = tmux.session("one", isolated.root(), &[], &sh(script)).unwrap();
        pane.wait_text(LIMIT, "ready").unwrap();
        pane.paste("line 1\nx").unwrap();
        let bytes = r"033   [   2   0   0   ~   l   i   n   e       1  \n   x 033   [";
        pane.wait_text(LIMIT, bytes).unwrap();
    }

    #[test]
    fn an_unmet_wait_shows_the_screen() {
        let isolated = Isolated::new().unwrap();
        let tmux = Tmux::start(&isolated).unwrap();
        let pane = tmux.session("one", isolated.root(), &[], &sh("echo what is there; exec cat")).unwrap();
        pane.wait_text(LIMIT, "what is there").unwrap();
        let error = pane.wait_text(Duration::from_millis(50), "nothing").unwrap_err();
        assert!(format!("{error:?}").contains("what is there"), "{error:?}");
    }
}
