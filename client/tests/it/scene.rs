//! A store that a test writes, and the program that follows it, as a session or as a person's shell.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use minder_proto::id::SessionId;
use minder_tests::files;
use minder_tests::isolate::Isolated;
use minder_tests::process::Process;
use rustix::process::Signal;
use serde_json::Value;

use crate::store_writer::StoreWriter;

/// How long anything may take that is to happen.
pub const SOON: Duration = Duration::from_secs(60);

pub const MINDER: &str = env!("CARGO_BIN_EXE_minder");

/// The store, and who follows it.
pub struct Scene {
    pub store: StoreWriter,
    pub runner: Runner,
}

/// Runs the program in one store's surroundings.
#[derive(Clone)]
pub struct Runner {
    pub isolated: Arc<Isolated>,
}

impl std::ops::Deref for Scene {
    type Target = Runner;
    fn deref(&self) -> &Runner {
        &self.runner
    }
}

/// What a run printed and how it ended.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Ran {
    /// The one object on standard output.
    pub fn json(&self) -> Value {
        assert_eq!(self.out.lines().count(), 1, "{self:?}");
        serde_json::from_str(&self.out).unwrap()
    }
}

/// Who runs it.
#[derive(Clone, Copy, Debug)]
pub enum Who<'a> {
    /// A session, by the conversation that was bound to it.
    Session(&'a str),
    /// A person's shell: this process.
    Person,
}

impl Scene {
    pub fn new() -> Self {
        let isolated = Isolated::new().unwrap();
        Self { store: StoreWriter::new(&isolated.minder_home()), runner: Runner { isolated } }
    }

    /// Surroundings without a store.
    pub fn runner() -> Runner {
        Runner { isolated: Isolated::new().unwrap() }
    }

    /// A supervising session, bound to the conversation "s".
    pub fn with_supervisor() -> (Self, SessionId) {
        let mut scene = Self::new();
        let s = scene.store.session("s");
        scene.store.bind(s, "s");
        (scene, s)
    }

    /// The supervisor's positions.
    pub fn cursors(&self, s: SessionId) -> Value {
        let text = std::fs::read_to_string(self.store.dir(s).join("cursors.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    }
}

impl Runner {
    pub fn command(&self, who: Who, program: &str) -> Command {
        let mut command = self.isolated.command(program);
        if let Who::Session(thread) = who {
            command.env("CODEX_THREAD_ID", thread);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn run(&self, who: Who, args: &str) -> Ran {
        self.start(who, args).end()
    }

    /// As the supervisor.
    pub fn s(&self, args: &str) -> Ran {
        self.run(Who::Session("s"), args)
    }

    pub fn start(&self, who: Who, args: &str) -> Running {
        let mut command = self.command(who, MINDER);
        command.args(args.split_whitespace());
        Running::spawn(command)
    }

    /// As the supervisor, under strace with these options of it, and with a floor of half a second.
    pub fn traced(&self, options: &[&str], args: &str) -> Traced {
        self.traced_over("500ms", options, args)
    }

    /// The same over another floor.
    pub fn traced_over(&self, floor: &str, options: &[&str], args: &str) -> Traced {
        let file = self.isolated.tmp().join("trace");
        let mut command = self.command(Who::Session("s"), "strace");
        command.env("MINDER_FOLLOW_BACKSTOP", floor);
        command.args(["-f", "-qq", "-o"]).arg(&file).args(options).arg("--").arg(MINDER);
        command.args(args.split_whitespace());
        Traced { running: Running::spawn(command), file }
    }
}

/// Follows the calls of a program that sleeps, from here to its end. What it calls from now on is all there.
pub fn calls_from_now(runner: &Runner, running: Running) -> (Ran, Vec<String>) {
    let file = runner.isolated.tmp().join("trace");
    let mut command = runner.command(Who::Person, "strace");
    command.args(["-f", "-qq", "-o"]).arg(&file).args(["-p", &running.pid().to_string()]);
    let strace = Running::spawn(command);
    let status = format!("/proc/{}/status", running.pid());
    let deadline = Instant::now() + SOON;
    while std::fs::read_to_string(&status).unwrap().contains("TracerPid:\t0\n") {
        assert!(Instant::now() < deadline, "it is not traced");
        std::thread::yield_now();
    }
    let ran = running.end();
    strace.end();
    (ran, calls(&file))
}

/// A program under strace.
pub struct Traced {
    pub running: Running,
    file: PathBuf,
}

impl Traced {
    /// The calls so far, each a line without its process id.
    pub fn calls(&self) -> Vec<String> {
        calls(&self.file)
    }

    /// Waits until it sleeps in its `n`th call that waits for descriptors.
    pub fn wait_until_it_polls(&self, n: usize) {
        let asleep = || (self.calls().iter().filter(|c| is_poll(c)).count() >= n).then_some(());
        files::wait_for(&self.file, SOON, asleep).unwrap();
    }

    /// Waits for its end; what it printed, and all its calls.
    pub fn end(self) -> (Ran, Vec<String>) {
        let ran = self.running.end();
        (ran, calls(&self.file))
    }
}

fn calls(trace: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(trace).unwrap_or_default();
    text.lines().map(|l| l.split_once(' ').map_or(l, |(_, call)| call.trim_start()).to_owned()).collect()
}

/// True for a call that waits for descriptors; a program's start looks at its standard streams, and waits not.
pub fn is_poll(call: &str) -> bool {
    let waits = ["poll(", "ppoll(", "restart_syscall("].iter().any(|name| call.starts_with(name));
    waits && !call.contains("{fd=0, events=0}")
}

/// A program that runs, with its lines as they come.
pub struct Running {
    child: Child,
    out: mpsc::Receiver<String>,
    err: mpsc::Receiver<String>,
    seen: Vec<String>,
}

impl Running {
    pub fn spawn(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let out = lines(child.stdout.take().unwrap());
        let err = lines(child.stderr.take().unwrap());
        Self { child, out, err, seen: Vec::new() }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The next line on standard output.
    pub fn line(&mut self) -> String {
        self.out.recv_timeout(SOON).unwrap_or_else(|_| panic!("no further line; stderr: {:?}", self.errors()))
    }

    /// The next line on standard output, if it comes so soon.
    pub fn line_within(&mut self, limit: Duration) -> Option<String> {
        self.out.recv_timeout(limit).ok()
    }

    /// Waits for a line on standard error that holds `text`.
    pub fn error(&mut self, text: &str) -> String {
        let deadline = Instant::now() + SOON;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let line = self.err.recv_timeout(left);
            let line = line.unwrap_or_else(|_| panic!("no {text:?} in {:?}", self.seen));
            self.seen.push(line.clone());
            if line.contains(text) {
                return line;
            }
        }
    }

    fn errors(&mut self) -> Vec<String> {
        self.seen.extend(self.err.try_iter());
        self.seen.clone()
    }

    pub fn signal(&self, signal: Signal) {
        let process = Process::open(self.pid()).unwrap().expect("it runs");
        assert!(process.signal(signal));
    }

    /// True once it sleeps in a call that waits for descriptors: everything before that is done.
    pub fn sleeps(&self) -> bool {
        let pid = self.pid();
        let syscall = std::fs::read_to_string(format!("/proc/{pid}/syscall")).unwrap_or_default();
        let words: Vec<&str> = syscall.split_whitespace().collect();
        // poll on x86-64, ppoll there and elsewhere; not the one at a program's start, which waits not.
        matches!(words[..], ["7" | "73" | "271", _, _, timeout, ..] if timeout != "0x0")
    }

    pub fn wait_until_it_sleeps(&self) {
        let deadline = Instant::now() + SOON;
        while !self.sleeps() {
            assert!(Instant::now() < deadline, "it does not sleep");
            std::thread::yield_now();
        }
    }

    /// What the kernel counts as resident of its own memory, in KiB: without the program itself, which all share, and
    /// which is several times as large in a build without optimisation.
    pub fn resident_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find_map(|l| l.strip_prefix("RssAnon:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// How long it has run, without what it waited.
    pub fn time_on_a_processor(&self) -> Duration {
        let times = std::fs::read_to_string(format!("/proc/{}/schedstat", self.pid())).unwrap();
        Duration::from_nanos(times.split_whitespace().next().unwrap().parse().unwrap())
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for its end.
    pub fn end(mut self) -> Ran {
        let limit = Duration::from_secs(120);
        let process = Process::open(self.pid()).unwrap();
        let ended = process.is_none_or(|p| p.wait(limit));
        if !ended {
            self.child.kill().unwrap();
        }
        let status = self.child.wait().unwrap();
        let out: Vec<String> = self.out.iter().collect();
        let err: Vec<String> = self.seen.drain(..).chain(self.err.iter()).collect();
        let text = |lines: &[String]| lines.iter().flat_map(|l| [l, "\n"]).collect::<String>();
        let (out, err) = (text(&out), text(&err));
        assert!(ended, "did not end in {limit:?}\n{out}\n{err}");
        let code = status.code().or_else(|| status.signal().map(|s| 128 + s)).unwrap();
        Ran { code, out, err }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lines(from: impl Read + Send + 'static) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}
