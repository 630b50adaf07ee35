//! What a service manager gives and wants: a listening socket, a place to send `READY`, a watchdog to pet.
//!
//! All of it comes in environment variables that are meant for this process alone, so they are read once, at the very
//! start, and removed: a harness must neither speak to our manager nor take our socket for its own. Without a manager
//! everything here does nothing.

use std::convert::Infallible;
use std::env;
use std::ffi::{OsStr, OsString};
use std::future::Future;
use std::io;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::time::Duration;

use listenfd::ListenFd;
use tokio::time::MissedTickBehavior;

/// The first descriptor that a manager passes.
const FIRST_PASSED: RawFd = 3;

/// Variables about this process that no child may see.
const OURS_ALONE: &[&str] = &[
    "NOTIFY_SOCKET",
    "WATCHDOG_USEC",
    "WATCHDOG_PID",
    "LISTEN_FDS",
    "LISTEN_FDS_FIRST_FD",
    "LISTEN_PID",
    "LISTEN_PIDFDID",
    "LISTEN_FDNAMES",
    "INVOCATION_ID",
    "JOURNAL_STREAM",
    "SYSTEMD_EXEC_PID",
    "MANAGERPID",
    "MANAGERPIDFDID",
    "MEMORY_PRESSURE_WATCH",
    "MEMORY_PRESSURE_WRITE",
];

/// The variables as found.
#[derive(Debug)]
pub struct Inherited {
    passed: usize,
    notify: Option<OsString>,
    watchdog: Option<Duration>,
    journal: bool,
}

impl Inherited {
    /// Reads the variables.
    pub fn read() -> Self {
        let number = |name| env::var(name).ok().and_then(|v| v.parse::<u64>().ok());
        let own = u64::from(std::process::id());
        // A pid of another process: the variables were inherited through a program that should have removed them.
        let passed = number("LISTEN_FDS").filter(|_| number("LISTEN_PID") == Some(own));
        let pets_us = env::var_os("WATCHDOG_PID").is_none() || number("WATCHDOG_PID") == Some(own);
        Self {
            passed: passed.map_or(0, |n| n.min(64) as usize),
            notify: env::var_os("NOTIFY_SOCKET").filter(|v| !v.is_empty()),
            watchdog: number("WATCHDOG_USEC").filter(|us| pets_us && *us > 0).map(Duration::from_micros),
            journal: env::var_os("JOURNAL_STREAM").is_some(),
        }
    }

    /// The descriptors that were passed to this process.
    pub fn descriptors(&self) -> Vec<RawFd> {
        (FIRST_PASSED..).take(self.passed).collect()
    }

    /// Whether a manager waits to hear from this process.
    pub fn managed(&self) -> bool {
        self.notify.is_some() || self.passed > 0
    }

    /// Whether standard error is the journal, which stamps each line itself.
    pub fn journal(&self) -> bool {
        self.journal
    }

    /// Takes the first passed socket, closes any other, and removes the variables from the environment.
    ///
    /// To be called while the process has one thread.
    pub fn take(self) -> io::Result<(Option<UnixListener>, Notifier)> {
        let listener = if self.passed > 0 {
            let mut passed = ListenFd::from_env();
            let first = passed.take_unix_listener(0)?;
            for fd in self.descriptors().into_iter().skip(1) {
                let _ = nix::unistd::close(fd);
            }
            first
        } else {
            None
        };
        remove_variables();
        Ok((listener, Notifier::new(self.notify.as_deref(), self.watchdog)?))
    }
}

#[allow(unsafe_code)]
fn remove_variables() {
    for name in OURS_ALONE {
        // SAFETY: called at the start of `main`, before the runtime or any thread exists (`Inherited::take`), so that
        // nothing reads the environment meanwhile.
        unsafe { env::remove_var(name) };
    }
}

/// Tells the service manager how the daemon is.
#[derive(Debug)]
pub struct Notifier {
    to: Option<(UnixDatagram, SocketAddr)>,
    watchdog: Option<Duration>,
}

impl Notifier {
    /// Speaks to the socket that `NOTIFY_SOCKET` named: a path, or `@` and an abstract name.
    pub fn new(place: Option<&OsStr>, watchdog: Option<Duration>) -> io::Result<Self> {
        let Some(place) = place else { return Ok(Self { to: None, watchdog: None }) };
        let socket = UnixDatagram::unbound()?;
        // A manager that does not read must not hold the daemon.
        socket.set_write_timeout(Some(Duration::from_secs(1)))?;
        Ok(Self { to: Some((socket, address(place)?)), watchdog })
    }

    /// The daemon serves.
    pub fn ready(&self, status: &str) {
        self.send(&format!("READY=1\nSTATUS={status}\n"));
    }

    /// A line for `systemctl status`.
    pub fn status(&self, status: &str) {
        self.send(&format!("STATUS={status}\n"));
    }

    /// The daemon has begun to stop.
    pub fn stopping(&self) {
        self.send("STOPPING=1\nSTATUS=stopping\n");
    }

    /// The daemon is alive.
    pub fn pet(&self) {
        self.send("WATCHDOG=1\n");
    }

    /// How often to call [`Self::pet`]: half of what the manager grants. `None` where it has no watchdog.
    pub fn watchdog_interval(&self) -> Option<Duration> {
        self.watchdog.map(|granted| granted / 2)
    }

    fn send(&self, text: &str) {
        if let Some((socket, to)) = &self.to
            && let Err(error) = socket.send_to_addr(text.as_bytes(), to)
        {
            tracing::warn!("the service manager was not told {:?}: {error}", text.trim_end());
        }
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn address(place: &OsStr) -> io::Result<SocketAddr> {
    use std::os::linux::net::SocketAddrExt;
    match place.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(place),
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn address(place: &OsStr) -> io::Result<SocketAddr> {
    SocketAddr::from_pathname(place)
}

/// Pets the watchdog as long as `alive` answers. `alive` asks the task that owns the state, so that a loop that hangs
/// is what the manager notices, not a timer that goes on beside it. Never returns; sleeps for ever without a watchdog.
pub async fn heartbeat<A, F>(notifier: &Notifier, mut alive: A) -> Infallible
where
    A: FnMut() -> F,
    F: Future<Output = ()>,
{
    let Some(interval) = notifier.watchdog_interval() else { return std::future::pending().await };
    let mut beat = tokio::time::interval(interval);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        beat.tick().await;
        alive().await;
        notifier.pet();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn hear(socket: &UnixDatagram) -> String {
        let mut text = [0; 256];
        let n = socket.recv(&mut text).unwrap();
        String::from_utf8_lossy(&text[..n]).into_owned()
    }

    #[test]
    fn messages_reach_a_path_and_an_abstract_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let named = UnixDatagram::bind(&path).unwrap();
        let notifier = Notifier::new(Some(path.as_os_str()), None).unwrap();
        notifier.ready("serving");
        assert_eq!(hear(&named), "READY=1\nSTATUS=serving\n");
        notifier.stopping();
        assert_eq!(hear(&named), "STOPPING=1\nSTATUS=stopping\n");

        #[cfg(target_os = "linux")]
        {
            use std::os::linux::net::SocketAddrExt;
            let name = format!("minder-notify-{}", std::process::id());
            let hidden = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
            let notifier = Notifier::new(Some(format!("@{name}").as_ref()), None).unwrap();
            notifier.status("well");
            assert_eq!(hear(&hidden), "STATUS=well\n");
        }
    }

    /// Run in a process of its own by the test below.
    #[test]
    #[ignore = "the process that variables_are_for_this_process_alone starts"]
    fn reads_and_removes() {
        let inherited = Inherited::read();
        assert!(inherited.managed() && inherited.journal());
        let (listener, notifier) = inherited.take().unwrap();
        assert!(listener.is_none(), "it was passed to another process");
        assert_eq!(notifier.watchdog_interval(), Some(Duration::from_secs(3)));
        let left: Vec<_> =
            env::vars_os().map(|(name, _)| name).filter(|n| OURS_ALONE.iter().any(|o| n == o)).collect();
        assert_eq!(left, Vec::<OsString>::new());
        assert_eq!(env::var("MINDER_HOME").as_deref(), Ok("/kept"));
    }

    #[test]
    fn variables_are_for_this_process_alone() {
        let output = std::process::Command::new(env::current_exe().unwrap())
            .args(["--exact", "service::tests::reads_and_removes", "--ignored", "--test-threads=1"])
            .env_clear()
            .envs(OURS_ALONE.iter().map(|name| (name, "1")))
            .envs([("NOTIFY_SOCKET", "/nobody"), ("WATCHDOG_USEC", "6000000"), ("MINDER_HOME", "/kept")])
            .env_remove("WATCHDOG_PID")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
    }

    #[test]
    fn without_a_manager_nothing_is_sent() {
        let notifier = Notifier::new(None, Some(Duration::from_secs(1))).unwrap();
        notifier.ready("");
        assert_eq!(notifier.watchdog_interval(), None);
    }

    #[tokio::test(flavor = "current_thread", start_paused = true)]
    async fn the_watchdog_is_petted_only_while_the_owner_answers() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let manager = UnixDatagram::bind(&path).unwrap();
        manager.set_nonblocking(true).unwrap();
        let notifier = Notifier::new(Some(path.as_os_str()), Some(Duration::from_secs(10))).unwrap();
        let asked = Cell::new(0);
        let beats = heartbeat(&notifier, || {
            asked.set(asked.get() + 1);
            let hangs = asked.get() > 3;
            async move {
                if hangs {
                    std::future::pending::<()>().await;
                }
            }
        });
        assert!(tokio::time::timeout(Duration::from_secs(60), beats).await.is_err());
        assert_eq!(asked.get(), 4);
        for _ in 0..3 {
            assert_eq!(hear(&manager), "WATCHDOG=1\n");
        }
        assert!(manager.recv(&mut [0; 16]).is_err());
    }
}
