//! The real program in private surroundings: its own home, runtime folder and environment, and nobody left behind.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{PipeReader, Read, pipe};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Instant;

use minder_client::autostart::Starter;
use minder_client::rpc::{Client, Endpoint, Start};
use minder_proto::layout::Home;
use minder_proto::rpc::{Hello, HelloAnswer};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::raw::DEADLINE;

/// The program under test.
pub const MINDERD: &str = env!("CARGO_BIN_EXE_minderd");

/// Folders of one store.
pub struct Surroundings {
    dir: TempDir,
}

impl Surroundings {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let this = Self { dir };
        std::fs::create_dir(this.runtime()).unwrap();
        this
    }

    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn runtime(&self) -> PathBuf {
        self.path("rt")
    }

    pub fn home(&self) -> Home {
        Home::at(self.path("state/minder"))
    }

    /// Where the daemon of this store listens.
    pub fn socket(&self) -> PathBuf {
        self.runtime().join("minder/minder.sock")
    }

    fn variables(&self) -> Vec<(&'static str, PathBuf)> {
        vec![
            ("HOME", self.path("home")),
            ("XDG_STATE_HOME", self.path("state")),
            ("XDG_CONFIG_HOME", self.path("config")),
            ("XDG_RUNTIME_DIR", self.runtime()),
            ("PATH", "/usr/bin:/bin".into()),
        ]
    }

    /// The daemon, with nothing in its environment but these folders.
    pub fn minderd(&self) -> Command {
        self.command(MINDERD)
    }

    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear().envs(self.variables()).current_dir(self.path(""));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // A group of its own, so that a signal to the tests' group is not one to it.
        command.process_group(0);
        command
    }

    /// A daemon that serves.
    pub fn started(&self) -> Minderd {
        self.start(self.minderd())
    }

    pub fn start(&self, command: Command) -> Minderd {
        let mut daemon = self.launch(command);
        assert_eq!(daemon.said(), "ready\n", "{}", daemon.log());
        daemon
    }

    /// A daemon that may or may not come to serve.
    pub fn launch(&self, mut command: Command) -> Minderd {
        let (ready, writer) = pipe().unwrap();
        let errors = self.path(format!("stderr-{}", self.dir.path().read_dir().unwrap().count()));
        command.args(["--foreground", "--ready-fd", "1"]);
        command.stdout(writer).stderr(File::create(&errors).unwrap());
        let child = command.spawn().unwrap();
        Minderd { child, ready: Some(ready), errors }
    }

    pub fn endpoint(&self) -> Endpoint {
        Endpoint::at(self.home(), self.socket())
    }

    /// A client that starts nothing.
    pub fn client(&self) -> Client {
        Client::new(self.endpoint(), Start::Never("this is a test"))
    }

    /// A client that starts the daemon where none listens.
    pub fn starting_client(&self) -> Client {
        Client::new(self.endpoint(), Start::This(self.starter(PathBuf::from(MINDERD))))
    }

    pub fn starter(&self, program: PathBuf) -> Starter {
        let environment = self.variables().into_iter().map(|(n, v)| (n.into(), v.into_os_string())).collect();
        Starter { program, environment, patience: minder_client::autostart::PATIENCE }
    }
}

impl Drop for Surroundings {
    /// Ends the daemon that a client may have started here, which is nobody's child.
    fn drop(&mut self) {
        let mut client = self.client();
        if let Ok(hello) = client.call(&hello()) {
            let _ = kill(Pid::from_raw(i32::try_from(hello.pid).unwrap()), Signal::SIGKILL);
        }
    }
}

/// The first call.
pub fn hello() -> Hello {
    Hello { client: "it".to_owned(), protocol: [1, 1] }
}

/// Who answers.
pub fn who(client: &mut Client) -> HelloAnswer {
    client.call(&hello()).unwrap_or_else(|e| panic!("{e}"))
}

/// A daemon that is this process's child.
pub struct Minderd {
    child: Child,
    ready: Option<PipeReader>,
    errors: PathBuf,
}

impl Minderd {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Everything it tells its starter.
    pub fn said(&mut self) -> String {
        let pipe = self.ready.take().expect("asked once");
        within(move || {
            let mut said = String::new();
            let mut pipe = pipe;
            pipe.read_to_string(&mut said).unwrap();
            said
        })
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(i32::try_from(self.pid()).unwrap()), signal).unwrap();
    }

    pub fn exit(&mut self) -> ExitStatus {
        // Waiting on the handle itself, so that a pid that is reused is never signalled.
        let begun = Instant::now();
        let pidfd = rustix::process::pidfd_open(
            rustix::process::Pid::from_raw(i32::try_from(self.pid()).unwrap()).unwrap(),
            rustix::process::PidfdFlags::empty(),
        );
        if let Ok(pidfd) = pidfd {
            let mut fds = [rustix::event::PollFd::new(&pidfd, rustix::event::PollFlags::IN)];
            let deadline =
                rustix::event::Timespec { tv_sec: DEADLINE.as_secs().try_into().unwrap(), tv_nsec: 0 };
            assert_eq!(
                rustix::event::poll(&mut fds, Some(&deadline)),
                Ok(1),
                "still runs after {:?}",
                begun.elapsed()
            );
        }
        self.child.wait().unwrap()
    }

    pub fn code(&mut self) -> Option<i32> {
        self.exit().code()
    }

    /// What it wrote to standard error.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.errors).unwrap()
    }
}

impl Drop for Minderd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs something that may block, for at most the deadline.
pub fn within<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (give, take) = mpsc::channel();
    std::thread::spawn(move || give.send(work()));
    take.recv_timeout(DEADLINE).expect("it did not come to its end in time")
}

/// Waits until nobody holds the lock of this store.
pub fn until_unlocked(home: &Home) {
    let lock = File::open(home.lock()).unwrap();
    within(move || lock.lock().unwrap());
}

/// Whether this runs as root, as some tests need; says which does not run otherwise.
pub fn root_or_skip(test: &str) -> bool {
    let root = nix::unistd::geteuid().is_root();
    if !root {
        let _ = std::io::Write::write_all(
            &mut std::io::stderr(),
            format!("SKIPPED {test}: it needs a second user id, and so root\n").as_bytes(),
        );
    }
    root
}
