//! The server in this process, on a thread with a runtime like the daemon's, with methods that misbehave on demand.

use std::io::Write;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use minder_daemon::faults;
use minder_daemon::folder::Wide;
use minder_daemon::lock::{self, Claim};
use minder_daemon::server::{self, Limits, Peer, RpcModule, Served, Socket};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::raw::{DEADLINE, Raw};

/// What the methods report to the test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// A handler began to wait for the owner.
    Waiting,
    /// A handler was dropped before it answered.
    Dropped,
    /// The owner finished what it was told.
    Done,
}

/// The state behind the methods: an owner task that does its work when it is let go.
struct Owner {
    commands: mpsc::UnboundedSender<oneshot::Sender<()>>,
    seen: Sender<Seen>,
}

/// A running server.
pub struct Host {
    pub dir: TempDir,
    pub path: PathBuf,
    pub seen: Receiver<Seen>,
    pub release: Arc<Notify>,
    pub stop: CancellationToken,
    ended: Receiver<Duration>,
    thread: Option<JoinHandle<()>>,
}

/// Limits that a test can wait for.
pub fn brief() -> Limits {
    let brief = Duration::from_millis(300);
    Limits { head: brief, body: brief, stall: brief, grace: brief, ..Limits::default() }
}

impl Host {
    pub fn start(limits: Limits) -> Self {
        capture_log();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rt/minder.sock");
        let (tell_seen, seen) = channel();
        let (tell_ended, ended) = channel();
        let (tell_up, up) = channel();
        let release = Arc::new(Notify::new());
        let stop = CancellationToken::new();
        let thread = {
            let (root, path, stop, release) =
                (dir.path().join("store"), path.clone(), stop.clone(), release.clone());
            std::thread::spawn(move || {
                let claim = lock::claim(&root, Duration::ZERO, || false).unwrap();
                let Claim::Won { store: lock, .. } = claim else { panic!("a fresh store is taken") };
                let socket = Socket::bind(&path, Wide::Correct, &root, &lock).unwrap();
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                runtime.block_on(async {
                    let methods = methods(tell_seen, release);
                    let served = Served { store: root.clone(), protocol: 1..=1, version: "0.0.1" };
                    tell_up.send(()).unwrap();
                    let stopping = stop.clone();
                    let mut begun = None;
                    let serving = server::serve(socket, methods, limits, served, stop);
                    tokio::pin!(serving);
                    loop {
                        tokio::select! {
                            biased;
                            () = stopping.cancelled(), if begun.is_none() => begun = Some(Instant::now()),
                            served = &mut serving => break served.unwrap(),
                        }
                    }
                    let _ = tell_ended.send(begun.map_or(Duration::ZERO, |b| b.elapsed()));
                });
            })
        };
        up.recv_timeout(DEADLINE).unwrap();
        Self { dir, path, seen, release, stop, ended, thread: Some(thread) }
    }

    pub fn connect(&self) -> Raw {
        Raw::connect(&self.path)
    }

    /// Waits until a method reports this.
    pub fn sees(&self, what: Seen) {
        assert_eq!(self.seen.recv_timeout(DEADLINE), Ok(what));
    }

    /// Waits until the server has ended after a stop, and says how long that took.
    pub fn ended(&self) -> Duration {
        self.ended.recv_timeout(DEADLINE).expect("the server did not end")
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.stop.cancel();
        self.release.notify_one();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
            && !std::thread::panicking()
        {
            panic!("the server's thread panicked");
        }
    }
}

fn methods(seen: Sender<Seen>, release: Arc<Notify>) -> RpcModule<Owner> {
    let (commands, mut taken) = mpsc::unbounded_channel::<oneshot::Sender<()>>();
    let done = seen.clone();
    tokio::spawn(async move {
        while let Some(answer) = taken.recv().await {
            release.notified().await;
            done.send(Seen::Done).ok();
            answer.send(()).ok();
        }
    });
    let mut module = RpcModule::new(Owner { commands, seen });
    module.register_method("echo", |_, _, _| json!("echo")).unwrap();
    module.register_method("boom.sync", |_, _, _| -> Value { panic!("boom in a plain method") }).unwrap();
    module
        .register_async_method("boom.async", |_, _, _| async {
            tokio::task::yield_now().await;
            boom_deep_inside()
        })
        .unwrap();
    // As many bytes as asked for, and then some: the answer's frame.
    module.register_method("long", |params, _, _| "y".repeat(params.one::<usize>().unwrap())).unwrap();
    module
        .register_method("peer", |_, _, extensions| {
            let peer = extensions.get::<Peer>().unwrap();
            json!({"uid": peer.uid, "pid": peer.pid, "conn": peer.conn})
        })
        .unwrap();
    module
        .register_async_method("owner", |_, owner, _| async move {
            let (answer, answered) = oneshot::channel();
            owner.commands.send(answer).unwrap();
            let mut dropped = ReportDrop(Some(owner.seen.clone()));
            owner.seen.send(Seen::Waiting).ok();
            answered.await.unwrap();
            dropped.0 = None;
            json!("owner")
        })
        .unwrap();
    module
}

#[inline(never)]
fn boom_deep_inside() -> Value {
    panic!("boom in an async method")
}

/// Reports that the handler that holds it was dropped unfinished.
struct ReportDrop(Option<Sender<Seen>>);

impl Drop for ReportDrop {
    fn drop(&mut self) {
        if let Some(seen) = &self.0 {
            seen.send(Seen::Dropped).ok();
        }
    }
}

/// The log of this process, of all servers in it.
static LOG: OnceLock<Log> = OnceLock::new();

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn capture_log() {
    LOG.get_or_init(|| {
        let log = Log::default();
        let writer = log.clone();
        tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).init();
        // As the daemon does, and as tests need it.
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            faults::record(info);
            usual(info);
        }));
        log
    });
}

/// The lines of the log that have a text, and how many there are.
pub fn logged(text: &str) -> Vec<String> {
    let log = LOG.get().expect("a host was started").0.lock().unwrap();
    String::from_utf8_lossy(&log).lines().filter(|l| l.contains(text)).map(str::to_owned).collect()
}

/// The whole log.
pub fn log() -> String {
    String::from_utf8_lossy(&LOG.get().expect("a host was started").0.lock().unwrap()).into_owned()
}
