//! A store of one test, its daemon, and sessions in it that speak as agents do: through the program with a harness's
//! variable, or over the socket with what the program would send.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, PipeReader, pipe};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use minder_client::rpc::{CallError, Client, Endpoint, Start};
use minder_proto::caller::Caller;
use minder_proto::event::Event;
use minder_proto::id::{Party, SessionId};
use minder_proto::layout::Home;
use minder_proto::queue::Queue;
use minder_proto::record::Channel;
use minder_proto::rpc::{self, Call};
use minder_proto::state::State;
use minder_proto::{snapshot, timeline};
use minder_tests::isolate::Isolated;
use minder_tests::process::{self, Process};
use rustix::process::Signal;
use serde_json::Value;

/// How long anything may take before the test gives up.
pub const LIMIT: Duration = Duration::from_secs(60);

/// A commit does not wait for the device: for tests of anything but what survives a power cut.
const THROW_AWAY: &str = "[store]\ndurability = \"none\"\n";

/// A store with nothing in it, and nobody who serves it yet.
pub struct World {
    pub isolated: Arc<Isolated>,
}

impl World {
    pub fn new() -> Self {
        Self::with("")
    }

    /// With this in its configuration.
    pub fn with(config: &str) -> Self {
        Self::configured(&format!("{THROW_AWAY}{config}"))
    }

    /// As a user has it: each commit is flushed.
    pub fn durable() -> Self {
        Self::configured("")
    }

    /// Where no disk has to be waited for.
    pub fn in_memory() -> Self {
        Self::within(Isolated::in_memory().unwrap(), THROW_AWAY)
    }

    fn configured(config: &str) -> Self {
        Self::within(Isolated::new().unwrap(), config)
    }

    fn within(isolated: Arc<Isolated>, config: &str) -> Self {
        let world = Self { isolated };
        std::fs::create_dir_all(world.config_file().parent().unwrap()).unwrap();
        std::fs::write(world.config_file(), config).unwrap();
        world
    }

    pub fn config_file(&self) -> PathBuf {
        self.isolated.config_home().join("minder/config.toml")
    }

    pub fn home(&self) -> Home {
        Home::at(self.isolated.minder_home())
    }

    /// A daemon that is this test's child and serves.
    pub fn start(&self) -> Minderd {
        self.launch(&[]).serving()
    }

    /// A daemon with more in its environment, that may or may not come to serve.
    pub fn launch(&self, variables: &[(&str, &str)]) -> Launched {
        let mut command = self.isolated.minderd().unwrap();
        command.envs(variables.iter().copied());
        Launched::new(command, &self.home())
    }

    /// A command for `minder`, in a person's shell.
    pub fn minder<'a>(&self, words: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = self.isolated.minder().unwrap();
        command.args(words);
        command
    }

    /// Runs `minder` in a person's shell; the words are separated by blanks.
    pub fn run(&self, line: &str) -> Ran {
        ran(&mut self.minder(line.split_whitespace()), b"")
    }

    /// The way to the daemon that serves now; none is started.
    pub fn client(&self) -> Client {
        let socket = std::fs::read_link(self.home().socket_link()).expect("a daemon served here once");
        Client::new(Endpoint::at(self.home(), socket), Start::Never("this is a test"))
    }

    /// A session with a mailbox, known by its label.
    pub fn session(&self, label: &str) -> Agent {
        self.session_by(label, Channel::Mailbox)
    }

    /// A session that is reached so. It is bound to a conversation of its own.
    pub fn session_by(&self, label: &str, channel: Channel) -> Agent {
        let mut client = self.client();
        let create = rpc::Create {
            label: Some(label.to_owned()),
            channel: Some(channel),
            dir: Some("/".to_owned()),
            ..rpc::Create::default()
        };
        let id = client.call(&create).unwrap_or_else(|e| panic!("{label}: {e}")).id;
        let conversation = format!("conversation-of-{label}");
        let bind = rpc::Set {
            session: id.to_string(),
            harness: Some("claude".to_owned()),
            harness_id: Some(conversation.clone()),
            ..rpc::Set::default()
        };
        client.call(&bind).unwrap_or_else(|e| panic!("{label}: {e}"));
        Agent { id, label: label.to_owned(), conversation, home: self.home() }
    }

    /// A session that was there before, by its label.
    pub fn known(&self, label: &str) -> Option<Agent> {
        let (records, _) = snapshot::records(&self.home()).unwrap();
        let id = records.into_iter().find(|r| r.label == label)?.id;
        let (label, conversation) = (label.to_owned(), format!("conversation-of-{label}"));
        Some(Agent { id, label, conversation, home: self.home() })
    }

    /// Runs `minder` in a session's shell.
    pub fn run_as(&self, agent: &Agent, line: &str) -> Ran {
        ran(&mut self.minder_as(agent, line), b"")
    }

    pub fn minder_as(&self, agent: &Agent, line: &str) -> Command {
        let mut command = self.minder(line.split_whitespace());
        command.env("CLAUDE_CODE_SESSION_ID", &agent.conversation);
        command
    }
}

/// A session of a test.
#[derive(Clone)]
pub struct Agent {
    pub id: SessionId,
    pub label: String,
    pub conversation: String,
    home: Home,
}

impl Agent {
    /// What the program sends along in this session's shell.
    #[allow(clippy::unnecessary_wraps, reason = "it is a call's field as it is")]
    pub fn caller(&self) -> Option<Caller> {
        let vars = BTreeMap::from([("CLAUDE_CODE_SESSION_ID".to_owned(), self.conversation.clone())]);
        Some(Caller { vars, ..Caller::default() })
    }

    pub fn dir(&self) -> PathBuf {
        snapshot::timeline_dir(&self.home, self.id).expect("it is open, or in the trash")
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.dir().join(name)
    }

    /// Every line of its timeline.
    pub fn events(&self) -> Vec<Event> {
        timeline::last(&self.dir(), usize::MAX).unwrap()
    }

    /// Its state lines.
    pub fn moves(&self) -> Vec<(u64, minder_proto::event::Transition)> {
        let moves = self.events().into_iter().filter_map(|e| match e.body {
            minder_proto::event::Body::State(line) => Some((e.seq, line)),
            _ => None,
        });
        moves.collect()
    }

    /// The messages in its timeline, oldest first, with their lines.
    pub fn messages(&self) -> Vec<(u64, minder_proto::event::Message)> {
        let messages = self.events().into_iter().filter_map(|e| match e.body {
            minder_proto::event::Body::Message(message) => Some((e.seq, *message)),
            _ => None,
        });
        messages.collect()
    }

    /// The state notices in its timeline about another session: the lines that they are about.
    pub fn told_of(&self, other: SessionId) -> Vec<u64> {
        let about = self.messages().into_iter().filter_map(|(_, m)| m.about);
        let notices = about.filter(|a| a.notice == minder_proto::event::NoticeKind::State);
        notices.filter(|a| a.session == other).map(|a| a.seq).collect()
    }

    pub fn queue(&self) -> Queue {
        snapshot::queue(&self.dir()).unwrap()
    }

    pub fn party(&self) -> Party {
        Party::Session(self.id)
    }

    /// Declares a state over this connection.
    pub fn declare(&self, client: &mut Client, state: State, note: Option<&str>) -> rpc::DeclareAnswer {
        client.call(&self.declaration(state, note)).unwrap_or_else(|e| panic!("{}: {e}", self.label))
    }

    pub fn declaration(&self, state: State, note: Option<&str>) -> rpc::Declare {
        rpc::Declare {
            caller: self.caller(),
            session: None,
            state,
            note: note.map(str::to_owned),
            only_if: None,
            key: None,
        }
    }

    /// A message from this session.
    pub fn letter(&self, to: &Self, body: impl Into<String>) -> rpc::Send {
        let to = Some(to.id.to_string());
        rpc::Send { caller: self.caller(), to, body: body.into(), ..rpc::Send::default() }
    }

    /// Takes and acknowledges everything that waits; the bodies, or the texts of notices.
    pub fn take_all(&self, client: &mut Client) -> Vec<rpc::Taken> {
        let mut all = Vec::new();
        loop {
            let take = rpc::Take { caller: self.caller(), key: None };
            let Some(taken) = must(client, &take).message else { return all };
            let ack = rpc::Ack { caller: self.caller(), id: taken.id.to_string(), key: None };
            must(client, &ack);
            all.push(taken);
        }
    }

    /// Tells minder what a hook of Claude Code would tell, in a turn of this name; gives what the hook prints.
    pub fn hook(&self, client: &mut Client, event: &str, turn: &str, more: Value) -> rpc::HookAnswer {
        let mut payload = serde_json::json!({
            "session_id": self.conversation, "hook_event_name": event, "prompt_id": turn,
        });
        payload.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
        let key = uuid::Uuid::new_v4().to_string();
        let env = rpc::HookEnv::default();
        must(client, &rpc::HookEvent { harness: "claude".to_owned(), payload, env, key })
    }

    /// Watches another session.
    pub fn watch(&self, client: &mut Client, other: &Self) {
        must(client, &self.watching(other));
    }

    /// The call for it.
    pub fn watching(&self, other: &Self) -> rpc::WatchAdd {
        rpc::WatchAdd { caller: self.caller(), sessions: other.id.to_string(), states: None }
    }
}

/// A call that must be answered well.
pub fn must<C: Call>(client: &mut Client, call: &C) -> C::Answer {
    client.call(call).unwrap_or_else(|e| panic!("{}: {e}", C::METHOD))
}

/// What a call was refused with: the exit code that `minder` would give, and the line.
pub fn refused<C: Call>(client: &mut Client, call: &C) -> (u8, String)
where
    C::Answer: std::fmt::Debug,
{
    match client.call(call) {
        Ok(answer) => panic!("{} was done: {answer:?}", C::METHOD),
        Err(error) => (error.exit_code(), error.to_string()),
    }
}

/// True if nobody can say whether the call was done: the daemon went away.
pub fn is_lost(error: &CallError) -> bool {
    matches!(error, CallError::Unreachable(_)) || error.exit_code() == 69
}

/// A `minder` that ran.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Ran {
    /// What it printed; it must have ended well.
    pub fn ok(self) -> String {
        assert_eq!(self.code, 0, "{self:?}");
        self.out
    }

    /// The object that it printed; it must have ended well.
    pub fn json(self) -> Value {
        let out = self.ok();
        serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}"))
    }

    /// What it said on standard error; it must have ended with this code and printed nothing.
    pub fn failed(self, code: i32) -> String {
        assert_eq!((self.code, self.out.as_str()), (code, ""), "{self:?}");
        self.err
    }
}

/// Runs a program to its end.
pub fn ran(command: &mut Command, input: &[u8]) -> Ran {
    let out = process::run(command, input, LIMIT).unwrap_or_else(|e| panic!("{e}"));
    let text = |bytes| String::from_utf8(bytes).expect("minder prints UTF-8");
    let code = out.status.code().unwrap_or_else(|| panic!("{command:?}: {}", out.status));
    Ran { code, out: text(out.stdout), err: text(out.stderr) }
}

/// Runs a program that may die by SIGKILL; says if it did.
pub fn ran_to_any_end(command: &mut Command) -> bool {
    use std::os::unix::process::ExitStatusExt;
    let out = process::run(command, b"", LIMIT).unwrap_or_else(|e| panic!("{e}"));
    out.status.signal() == Some(9)
}

/// A program that runs beside the test. Its output is read to its end by threads of its own.
pub struct Running {
    child: Child,
    pub process: Process,
    out: mpsc::Receiver<String>,
    err: mpsc::Receiver<String>,
}

impl Running {
    pub fn new(command: &mut Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}"));
        let process = Process::open(child.id()).unwrap().expect("a child that was not waited for has a pid");
        let (out, err) = (lines(child.stdout.take().unwrap()), lines(child.stderr.take().unwrap()));
        Self { child, process, out, err }
    }

    /// Started, and asleep in a wait for files: what happens from now on wakes it.
    pub fn asleep(command: &mut Command) -> Self {
        let running = Self::new(command);
        let deadline = Instant::now() + LIMIT;
        while !polls(running.process.pid()) {
            let ended = running.process.wait(Duration::from_millis(2));
            assert!(!ended, "it has ended: {:?}", running.end());
            assert!(Instant::now() < deadline, "it never came to wait");
        }
        running
    }

    /// Its next line on standard output.
    pub fn line(&self) -> String {
        self.out.recv_timeout(LIMIT).expect("a line in time")
    }

    /// Its next line on standard error.
    pub fn said(&self) -> String {
        self.err.recv_timeout(LIMIT).expect("a line on standard error in time")
    }

    /// Its exit, with what was not read of its output.
    pub fn end(mut self) -> Ran {
        assert!(self.process.wait(LIMIT), "it did not end in time");
        let code = self.child.wait().unwrap().code().unwrap_or(-1);
        let rest = |lines: &mpsc::Receiver<String>| lines.iter().map(|l| l + "\n").collect();
        Ran { code, out: rest(&self.out), err: rest(&self.err) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.process.signal(Signal::KILL);
        let _ = self.child.wait();
    }
}

fn lines(from: impl std::io::Read + Send + 'static) -> mpsc::Receiver<String> {
    let (give, take) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            if give.send(line).is_err() {
                break;
            }
        }
    });
    take
}

/// True if this process sleeps in `poll` now.
pub fn polls(pid: u32) -> bool {
    let Ok(text) = std::fs::read_to_string(format!("/proc/{pid}/syscall")) else { return false };
    let number = text.split(' ').next().and_then(|n| n.parse::<i64>().ok());
    let poll = [
        libc::SYS_ppoll,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_poll,
    ];
    number.is_some_and(|n| poll.contains(&n))
}

/// A daemon that was started and has not said yet how it went.
pub struct Launched {
    child: Child,
    ready: PipeReader,
    home: Home,
    log: Log,
}

/// What a daemon writes to standard error: a file, in which a line is from the moment it was written.
struct Log {
    file: File,
    looked_at: u64,
}

impl Log {
    fn new() -> Self {
        Self { file: tempfile::tempfile().unwrap(), looked_at: 0 }
    }

    fn end(&self) -> File {
        self.file.try_clone().unwrap()
    }

    /// What came since the last look.
    fn next(&mut self) -> String {
        let mut new = vec![0; (self.file.metadata().unwrap().len() - self.looked_at) as usize];
        // The place at which the daemon writes is its own, and stays.
        self.file.read_exact_at(&mut new, self.looked_at).unwrap();
        self.looked_at += new.len() as u64;
        String::from_utf8_lossy(&new).into_owned()
    }
}

impl Launched {
    pub fn new(mut command: Command, home: &Home) -> Self {
        let (ready, writer) = pipe().unwrap();
        command.args(["--foreground", "--ready-fd", "1"]);
        let log = Log::new();
        command.stdin(Stdio::null()).stdout(writer).stderr(log.end());
        let child = command.spawn().unwrap();
        Self { child, ready, home: home.clone(), log }
    }

    /// Waits until it serves or has ended; true if it serves.
    pub fn settle(self) -> Result<Minderd, String> {
        let Self { child, ready, home, log } = self;
        let (give, take) = mpsc::channel();
        std::thread::spawn(move || {
            let mut said = String::new();
            let _ = BufReader::new(ready).read_line(&mut said);
            let _ = give.send(said);
        });
        let said = take.recv_timeout(LIMIT).expect("it says in time how it went");
        let process = Process::open(child.id()).unwrap().expect("it was not waited for");
        let mut daemon = Minderd { child, process, home, log };
        if said == "ready\n" {
            return Ok(daemon);
        }
        daemon.process.wait(LIMIT);
        let status = daemon.child.wait().unwrap();
        Err(format!("{said:?}, {status}: {}", daemon.log()))
    }

    fn serving(self) -> Minderd {
        self.settle().unwrap_or_else(|e| panic!("it does not serve: {e}"))
    }
}

/// A daemon that is this test's child.
pub struct Minderd {
    child: Child,
    pub process: Process,
    home: Home,
    log: Log,
}

impl Minderd {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it as a crash does.
    pub fn kill(mut self) {
        self.process.signal(Signal::KILL);
        self.child.wait().unwrap();
    }

    /// Ends it as a service manager does, and gives what it had logged.
    pub fn stop(mut self) -> String {
        self.process.signal(Signal::TERM);
        assert!(self.process.wait(LIMIT), "it did not end in time");
        let status = self.child.wait().unwrap();
        let log = self.log();
        assert!(status.success(), "{status}: {log}");
        log
    }

    /// Waits for an end that was caused elsewhere.
    pub fn ended(&mut self) -> std::process::ExitStatus {
        assert!(self.process.wait(LIMIT), "it did not end in time");
        self.child.wait().unwrap()
    }

    /// What it logged since the last look.
    pub fn log(&mut self) -> String {
        self.log.next()
    }

    /// Its counters.
    pub fn status(&self) -> rpc::StatusAnswer {
        let socket = std::fs::read_link(self.home.socket_link()).unwrap();
        let mut client = Client::new(Endpoint::at(self.home.clone(), socket), Start::Never("a test"));
        must(&mut client, &rpc::Status::default())
    }
}

impl Drop for Minderd {
    fn drop(&mut self) {
        self.process.signal(Signal::KILL);
        let _ = self.child.wait();
    }
}

/// Everything below a folder, as `path → bytes`; folders end in `/`, links hold their target.
pub fn tree(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(dir) = open.pop() {
        let Ok(entries) = std::fs::read_dir(&dir) else { continue };
        for entry in entries.flatten() {
            let path = entry.path();
            let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                found.insert(format!("{name}/"), Vec::new());
                open.push(path);
            } else if kind.is_symlink() {
                let target = std::fs::read_link(&path).unwrap_or_default();
                found.insert(name, target.into_os_string().into_encoded_bytes());
            } else {
                found.insert(name, std::fs::read(&path).unwrap_or_default());
            }
        }
    }
    found
}
