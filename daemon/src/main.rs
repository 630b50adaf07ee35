//! `minderd`: from nothing to a daemon that serves, in the order in which it happens.

use std::convert::Infallible;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use std::sync::{Arc, OnceLock};

use minder_daemon::args::{self, Wish};
use minder_daemon::check;
use minder_daemon::delivery::{Changes, Delivery, Watching};
use minder_daemon::descriptors::{self, Limit};
use minder_daemon::exit::Failure;
use minder_daemon::faults;
use minder_daemon::folder::{FolderError, Wide};
use minder_daemon::hook::{Hooks, StatusFiles};
use minder_daemon::host::signals::Signals;
use minder_daemon::host::{Hosts, Listening};
use minder_daemon::launch::{self, Launcher};
use minder_daemon::lock::{self, Claim, LockError, StartLock, StoreLock};
use minder_daemon::log::{self, Sink};
use minder_daemon::oversize;
use minder_daemon::process::Ends;
use minder_daemon::readiness::Readiness;
use minder_daemon::repair;
use minder_daemon::server::Context;
use minder_daemon::server::context::Started;
use minder_daemon::server::listen::{Reached, reach};
use minder_daemon::server::{self, Limits, RpcModule, Served, Socket, daemon, spooled};
use minder_daemon::service::{self, Inherited, Notifier};
use minder_daemon::session::lifetime;
use minder_daemon::shim;
use minder_daemon::spool::Taker;
use minder_daemon::store::{Contributor, Observer, Store};
use minder_daemon::turn::Turns;
use minder_daemon::watch::FanOut;
use minder_proto::config;
use minder_proto::error::exit;
use minder_proto::layout::{Home, config_file};
use minder_proto::stamp::Stamp;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

fn main() -> ExitCode {
    let (foreground, ready_fd) = match args::parse(std::env::args_os().skip(1)) {
        Ok(Wish::Run { foreground, ready_fd }) => (foreground, ready_fd),
        Ok(Wish::Check { path, json }) => return check_store(path, json),
        Ok(Wish::Repair { path, json }) => return repair_store(path, json),
        Ok(Wish::Shim(folder)) => return shim::main(folder.as_deref()),
        Ok(Wish::Shims) => return shim::server::serve(),
        Ok(Wish::Start(door)) => return complain(&launch::main(&door)),
        Ok(Wish::Help) => return print(args::HELP, exit::OK),
        Ok(Wish::Version) => return print(&format!("minderd {}\n", minder_proto::VERSION), exit::OK),
        Err(error) => return complain(&Failure::new(exit::USAGE, error)),
    };

    // Whoever started it may have held signals back, and a daemon that hears none cannot be ended politely.
    let _ = nix::sys::signal::SigSet::empty().thread_set_mask();
    // What this process was born with, before anything else is opened or started.
    let inherited = Inherited::read();
    let mut keep = inherited.descriptors();
    keep.extend(ready_fd);
    descriptors::close_inherited(&keep);
    let readiness = match Readiness::take(ready_fd) {
        Ok(readiness) => readiness,
        Err(error) => return complain(&Failure::new(exit::USAGE, format_args!("--ready-fd: {error}"))),
    };

    match start(foreground, inherited) {
        Ok(Start::Serve(daemon)) => match daemon.run(readiness) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => {
                tracing::error!("{failure}");
                complain(&failure)
            }
        },
        // What the starter wanted is there: it need not know whose it is.
        Ok(Start::Another(failure)) => {
            readiness.ready();
            complain(&failure)
        }
        Err(failure) => {
            tracing::error!("{failure}");
            readiness.failed(&failure);
            complain(&failure)
        }
    }
}

/// Everything up to the moment at which a first call could be answered.
fn start(foreground: bool, inherited: Inherited) -> Result<Start, Failure> {
    let (managed, journal) = (inherited.managed(), inherited.journal());
    let (passed, notifier) = inherited.take().map_err(|e| Failure::new(exit::CONFIG, e))?;
    let files = Limit::raise().map_err(|e| Failure::io("the limit on open files", &e.into()))?;
    oversize::is_an_error().map_err(|e| Failure::io("the limit on the size of files", &e.into()))?;

    // Configuration: where the store and the socket are.
    let home = Home::from_env().map_err(|e| Failure::new(exit::CONFIG, e))?;
    let socket_path = home.socket().map_err(|e| Failure::new(exit::CONFIG, e))?;

    let config = config_file().map_err(|e| Failure::new(exit::CONFIG, e))?;
    let config =
        config::load(&config, |name| std::env::var(name).ok()).map_err(|e| Failure::new(exit::CONFIG, e))?;

    // The lock: from here on this process is the daemon of this store, or there is one already.
    let listening = || {
        let linked = std::fs::read_link(home.socket_link()).ok();
        let places = linked.iter().chain([&socket_path]);
        places.into_iter().any(|p| matches!(reach(p), Reached::Somebody(_)))
    };
    let store = home.root().display();
    let (store_lock, start_lock) =
        match lock::claim(home.root(), lock::PATIENCE, listening).map_err(locking)? {
            Claim::Won { store, start } => (store, start),
            Claim::Serving(holder) => {
                let line = format!("a daemon ({}) serves the store {store} already", holder.pid);
                return Ok(Start::Another(Failure::new(exit::HELD, line)));
            }
            Claim::Silent(holder) => {
                let line = format!("{} holds the store {store} and does not listen", holder.pid);
                return Err(Failure::new(exit::HELD, line));
            }
        };

    let log_file = home.log();
    let sink = if foreground || managed { Sink::Stderr { stamped: !journal } } else { Sink::File(&log_file) };
    log::start(sink).map_err(|e| folder_failure(&e))?;
    faults::log_panics();
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }

    // The socket: nobody is answered before the store is open, but whoever connects now waits and is not refused.
    let store = home.real();
    let mut socket = match passed {
        Some(listener) => Socket::passed(listener)?,
        None => Socket::bind(&socket_path, folder_of(&socket_path, &home), &store, &store_lock)?,
    };
    socket.publish(&home.socket_link()).map_err(|e| Failure::io(home.socket_link().display(), &e))?;

    // Recovery: the journal is replayed, the records are loaded.
    let begun = Stamp::now();
    let config = Arc::new(config);
    let open = || {
        let changes = Arc::new(Changes::default());
        let listening = Listening::default();
        let (bindings, ends) = Ends::new();
        let observers: Vec<Box<dyn Observer>> =
            vec![Box::new(Watching(Arc::clone(&changes))), Box::new(listening.clone()), Box::new(bindings)];
        // A row of a host is for a notice that the fan-out has posted before it.
        let contributors: Vec<Box<dyn Contributor>> = vec![Box::new(FanOut), Box::new(Signals)];
        let (database, opened) = Store::open(&home, Arc::clone(&config), contributors, observers)
            .map_err(|e| Failure::new(e.exit(), e))?;
        for note in &opened.notes {
            tracing::warn!("{note}");
        }
        Ok::<_, Failure>((changes, listening, ends, database, opened))
    };
    let mend = || {
        let report = repair::repair(&home, begun).map_err(|e| Failure::new(e.exit(), e))?;
        for done in report.done {
            tracing::warn!("{}: {}", done.path, done.what);
        }
        Ok::<_, Failure>(())
    };
    if repair::is_needed(&home) {
        tracing::warn!("a start before this one met a hole in the journal and did not come to the repair");
        mend()?;
    }
    let (mut changes, mut listening, mut ends, mut database, mut opened) = open()?;
    if opened.hole {
        // Commits are missing, so that a file may know of something that another does not.
        database.stop();
        mend()?;
        (changes, listening, ends, database, opened) = open()?;
    }
    let started = Started {
        at: begun,
        ready: OnceLock::new(),
        took_ms: u64::try_from(opened.took.as_millis()).unwrap_or(u64::MAX),
        replayed: opened.replayed,
        socket: socket.place().clone(),
    };

    let domain = Domain { database, changes, listening, ends, started };
    let daemon = Daemon { store, domain, socket, notifier, files, start_lock, _store_lock: store_lock };
    Ok(Start::Serve(Box::new(daemon)))
}

/// What a start leads to.
enum Start {
    /// This process serves.
    Serve(Box<Daemon>),
    /// Another one does.
    Another(Failure),
}

/// What the daemon is for: the store, and who is told of its changes.
struct Domain {
    database: Store,
    changes: Arc<Changes>,
    listening: Listening,
    ends: Ends,
    started: Started,
}

/// A daemon that can answer. Fields are dropped in this order: the socket goes before the lock does.
struct Daemon {
    store: PathBuf,
    domain: Domain,
    notifier: Notifier,
    files: Limit,
    start_lock: StartLock,
    socket: Socket,
    _store_lock: StoreLock,
}

impl Daemon {
    /// Serves until somebody ends it.
    fn run(self, readiness: Readiness) -> Result<(), Failure> {
        let fault = |e: std::io::Error| Failure::io("the runtime", &e);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(fault)?;
        runtime.block_on(self.serve(readiness)).map_err(fault)
    }

    async fn serve(self, readiness: Readiness) -> std::io::Result<()> {
        let Self { _store_lock, store, domain, notifier, files, start_lock, socket } = self;
        let Domain { database, changes, listening, ends, started } = domain;
        let stop = CancellationToken::new();
        let served = Served {
            store,
            protocol: minder_proto::PROTOCOL..=minder_proto::PROTOCOL,
            version: minder_proto::VERSION,
        };

        // Turns of an earlier daemon are taken over before anybody can ask for one, or a queue can begin one.
        let (turns, ended_turns) = Turns::new(database.clone(), files, stop.clone())?;
        turns.adopt().await;
        tokio::spawn(turns.clone().run_keeper());
        tokio::spawn(turns.clone().run_spares());

        // Delivery looks at every queue once, before anybody can ask.
        let delivery = Delivery::new(database.clone(), changes);
        delivery.run_turns(turns.clone(), ended_turns).await;
        let signs = listening.signs();
        let hosts = Hosts::new(database.clone(), Arc::clone(&delivery), listening);
        hosts.start().await;
        delivery.start().await;
        tokio::spawn(Arc::clone(&delivery).run());
        tokio::spawn(Arc::clone(&hosts).run());

        // The methods: each family's file in `server/` registers its own here.
        let process = daemon::Process { served: served.clone(), stop: stop.clone() };
        let status = StatusFiles::new(database.clone());
        tokio::spawn(Arc::clone(&status).run());
        tokio::spawn(lifetime::run(database.clone()));
        let hooks = Hooks::new(database.clone(), Arc::clone(&delivery), status, signs);
        let launcher = Launcher::new(database.clone(), Arc::clone(&delivery))?;
        launcher.take_up().await;
        let context = Context {
            process,
            store: database.clone(),
            delivery: Arc::clone(&delivery),
            turns: turns.clone(),
            hooks,
            hosts,
            launcher,
            started,
        };
        let context = Arc::new(context);
        let mut methods = RpcModule::from_arc(Arc::clone(&context));
        daemon::register(&mut methods);
        daemon::register_status(&mut methods);
        server::session::register(&mut methods);
        server::message::register(&mut methods);
        server::watch::register(&mut methods);
        server::hook::register(&mut methods);
        server::host::register(&mut methods);
        server::store::register(&mut methods);
        server::turn::register(&mut methods);
        server::account::register(&mut methods);
        server::launch::register(&mut methods);

        // What was left in the spool is taken before the first call. Then the processes that ended meanwhile are said:
        // what was left may tell that a turn was over before its process was.
        let (applying, asking) = (Arc::clone(&context), Arc::clone(&context));
        let apply = move |left, key| {
            let context = Arc::clone(&applying);
            async move { spooled::apply(&context, left, key).await }
        };
        let line = move |left| {
            let context = Arc::clone(&asking);
            async move { spooled::line(&context, left).await }
        };
        let taker = Taker::start(database.home(), apply, line);
        tokio::spawn(taker.await.run());
        match ends.start(database.clone()).await {
            Ok(waiting) => drop(tokio::spawn(waiting.run())),
            Err(fault) => tracing::warn!(%fault, "the end of bound processes is not seen"),
        }

        // Signals, before anybody can be told that there is somebody to signal.
        let asked = until_asked(&notifier, stop.clone())?;

        // Ready: whoever connected meanwhile is answered from here on.
        let place = socket.place();
        let name = served.store.display().to_string();
        tracing::info!(socket = %place, files = files.found(), "minderd {} serves {name}", served.version);
        drop(start_lock);
        let _ = context.started.ready.set(Stamp::now());
        notifier.ready(&format!("serving {name} on {place}"));
        readiness.ready();

        // The watchdog is petted only while the store's owner answers.
        let beat = service::heartbeat(&notifier, || async {
            let _ = database.read(|_| ()).await;
        });
        let ended: server::Ended = {
            let (delivery, turns) = (Arc::clone(&delivery), turns.clone());
            Arc::new(move |conn| {
                turns.connection_ended(conn);
                let delivery = Arc::clone(&delivery);
                tokio::spawn(async move { delivery.connection_ended(conn).await });
            })
        };
        let ended = tokio::select! {
            ended = server::serve_and_tell(socket, methods, Limits::default(), served, stop, ended) => ended,
            never = asked => match never {},
            never = beat => match never {},
        };
        // What is over gets its line; what runs is the next daemon's.
        turns.close().await;
        // Everything that was told is in the files; the journal is empty.
        database.stop();
        tracing::info!("minderd ends");
        ended
    }
}

/// Waits for a signal or a call that ends the daemon, and passes it on. The server then ends by itself.
fn until_asked(
    notifier: &Notifier,
    stop: CancellationToken,
) -> std::io::Result<impl Future<Output = Infallible>> {
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    // A terminal that goes away is no reason to go: taken, and nothing done.
    let hangup = signal(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
            _ = term.recv() => tracing::info!("SIGTERM"),
            _ = int.recv() => tracing::info!("SIGINT"),
            () = stop.cancelled() => {}
        }
        notifier.stopping();
        stop.cancel();
        let never = std::future::pending().await;
        drop(hangup);
        never
    })
}

/// A folder that minder chose is corrected where it is too wide; one that the user chose is theirs.
fn folder_of(socket: &Path, home: &Home) -> Wide {
    let folder = socket.parent();
    let chosen = std::env::var_os("MINDER_SOCKET").is_some() && folder != Some(&home.run());
    if chosen { Wide::Tolerate } else { Wide::Correct }
}

fn locking(error: LockError) -> Failure {
    match error {
        LockError::Folder(error) => folder_failure(&error),
        LockError::Io { .. } => Failure::new(exit::IO, error),
    }
}

fn folder_failure(error: &FolderError) -> Failure {
    Failure::new(if error.is_refusal() { exit::NOT_ALLOWED } else { exit::IO }, error)
}

/// `--check`: a program of its own that happens to know the journal.
fn check_store(path: Option<PathBuf>, json: bool) -> ExitCode {
    let home = match path.map_or_else(Home::from_env, |path| Ok(Home::at(path))) {
        Ok(home) => home,
        Err(error) => return refuse(&Failure::new(exit::CONFIG, error), "config", json),
    };
    match check::check(&home) {
        Ok(report) => print(&if json { report.to_json() } else { report.to_lines() }, report.exit()),
        Err(error) => refuse(&Failure::new(error.exit(), &error), error.kind(), json),
    }
}

/// `--repair`: the daemon of this store for as long as it takes, and serving nobody.
fn repair_store(path: Option<PathBuf>, json: bool) -> ExitCode {
    let home = match path.map_or_else(Home::from_env, |path| Ok(Home::at(path))) {
        Ok(home) => home,
        Err(error) => return refuse(&Failure::new(exit::CONFIG, error), "config", json),
    };
    if let Err(error) = check::is_store(&home) {
        return refuse(&Failure::new(error.exit(), &error), error.kind(), json);
    }
    let listening = || {
        std::fs::read_link(home.socket_link())
            .is_ok_and(|place| matches!(reach(&place), Reached::Somebody(_)))
    };
    let _held = match lock::claim(home.root(), lock::PATIENCE, listening) {
        Ok(Claim::Won { store, start }) => (store, start),
        Ok(Claim::Serving(holder) | Claim::Silent(holder)) => {
            let store = home.root().display();
            let line = format!("a daemon ({}) holds the store {store}: minder daemon stop", holder.pid);
            return refuse(&Failure::new(exit::HELD, line), "held", json);
        }
        Err(error) => return refuse(&locking(error), "io", json),
    };
    match repair::repair(&home, Stamp::now()) {
        Ok(report) => print(&if json { report.to_json() } else { report.to_lines() }, report.exit()),
        Err(error) => refuse(&Failure::new(error.exit(), &error), error.kind(), json),
    }
}

/// Why there is no report, in the form that the client gives its own failures.
#[allow(clippy::print_stderr, reason = "the object that says why there is no report")]
fn refuse(failure: &Failure, kind: &str, json: bool) -> ExitCode {
    if !json {
        return complain(failure);
    }
    let (error, exit) = (&failure.line, failure.code);
    eprintln!("{}", serde_json::json!({ "error": error, "kind": kind, "exit": exit, "retryable": false }));
    ExitCode::from(failure.code)
}

/// Writes what was asked for. A reader that has gone away has seen what it wanted.
fn print(text: &str, code: u8) -> ExitCode {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            complain(&Failure::io("standard output", &error))
        }
        _ => ExitCode::from(code),
    }
}

#[allow(clippy::print_stderr, reason = "the one line that says why the daemon ends")]
fn complain(failure: &Failure) -> ExitCode {
    // `minder store` becomes this program, under its own name.
    let name = std::env::args_os().next().is_some_and(|name| name == "minder");
    eprintln!("{}: {failure}", if name { "minder" } else { "minderd" });
    ExitCode::from(failure.code)
}
