//! A day on which nothing happens, at the speed of the machine: the clock of the runtime jumps to the next thing that is
//! due. The same tasks run as in a daemon that serves.

use std::io::Write;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use minder_daemon::delivery::{Changes, Delivery, Watching};
use minder_daemon::hook::StatusFiles;
use minder_daemon::process::Ends;
use minder_daemon::session::{Changes as Set, lifetime, set};
use minder_daemon::store::{Observer, Store};
use minder_daemon::watch::FanOut;
use minder_proto::config::Config;
use minder_proto::event::Author;
use minder_proto::layout::Home;
use minder_proto::record::Channel;
use minder_proto::state::State;

use crate::stored::{self, Wanted};

/// Sessions at rest.
const SESSIONS: usize = 200;
const DAY: Duration = Duration::from_secs(86_400);
/// Most bytes that a day may leave in the log.
const LOG_MAX: usize = 1024 * 1024;

/// A log in memory.
#[derive(Clone, Default)]
struct Logged(Arc<Mutex<Vec<u8>>>);

impl Write for Logged {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn j6_a_day_at_rest_leaves_nothing_in_the_store_and_next_to_nothing_in_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::at(dir.path().join("store"));
    std::fs::create_dir(home.root()).unwrap();
    let labels: Vec<String> = (0..SESSIONS).map(|n| format!("rests-{n}")).collect();
    let at_rest =
        |label| Wanted { label, conversation: None, process: None, state: State::Parked, by: Author::Agent };
    let wanted: Vec<Wanted<'_>> = labels.iter().map(|label| at_rest(label)).collect();
    let ids = stored::put(&home, &wanted);
    let before: Vec<_> = ids.iter().map(|id| stored::lines(&home, *id)).collect();

    let logged = Logged::default();
    let writer = logged.clone();
    let log =
        tracing_subscriber::fmt().with_max_level(tracing::Level::INFO).with_writer(move || writer.clone());
    let counted = tracing::subscriber::set_default(log.finish());
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let elapsed = runtime.block_on(async {
        let changes = Arc::new(Changes::default());
        let (bindings, ends) = Ends::new();
        let observers: Vec<Box<dyn Observer>> =
            vec![Box::new(Watching(Arc::clone(&changes))), Box::new(bindings)];
        let config = Arc::new(Config::default());
        let (store, _) = Store::open(&home, config, vec![Box::new(FanOut)], observers).unwrap();
        let delivery = Delivery::new(store.clone(), changes);
        delivery.start().await;
        tokio::spawn(delivery.run());
        tokio::spawn(StatusFiles::new(store.clone()).run());
        tokio::spawn(lifetime::run(store.clone()));
        tokio::spawn(ends.start(store.clone()).await.unwrap().run());
        let begun = tokio::time::Instant::now();
        let never = std::future::pending::<()>();
        assert!(tokio::time::timeout(DAY, never).await.is_err());
        store.stop();
        begun.elapsed()
    });
    drop(counted);
    assert!(elapsed >= DAY);
    let log = logged.0.lock().unwrap();
    assert!(
        log.len() < LOG_MAX,
        "{} bytes, beginning: {}",
        log.len(),
        String::from_utf8_lossy(&log[..2_000])
    );
    let after: Vec<_> = ids.iter().map(|id| stored::lines(&home, *id)).collect();
    assert_eq!(after, before);
}

/// A task whose wake-ups are counted.
struct Counted {
    task: Pin<Box<dyn Future<Output = ()> + Send>>,
    woken: Arc<AtomicU64>,
}

impl Future for Counted {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.woken.fetch_add(1, Ordering::Relaxed);
        self.task.as_mut().poll(context)
    }
}

/// How often what a daemon does hourly, with nothing to do, is woken for it in an hour: by its clock, and for each answer.
const AN_HOUR: u64 = 16;

#[test]
fn m8_a_day_with_nothing_to_do_starts_nothing_and_wakes_nobody_but_for_the_hourly_look() {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::at(dir.path().join("store"));
    std::fs::create_dir(home.root()).unwrap();
    let started = dir.path().join("started");
    let argv = vec!["/bin/sh".to_owned(), "-c".to_owned(), format!("touch '{}'", started.display())];
    let ways = [
        Channel::Headless { argv: argv.clone() },
        Channel::Exec { argv },
        Channel::Hook,
        Channel::Codex { socket: Some(dir.path().join("no.sock").display().to_string()) },
        Channel::Mailbox,
    ];
    let labels: Vec<String> = (0..2 * ways.len()).map(|n| format!("rests-{n}")).collect();
    let at_rest = |label| Wanted {
        label,
        conversation: Some(label),
        process: Some(stored::process(std::process::id())),
        state: State::Idle,
        by: Author::Hook,
    };
    let wanted: Vec<Wanted<'_>> = labels.iter().map(|label| at_rest(label)).collect();
    let ids = stored::put(&home, &wanted);
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let (woken, before) = runtime.block_on(async {
        let changes = Arc::new(Changes::default());
        let (bindings, ends) = Ends::new();
        let observers: Vec<Box<dyn Observer>> =
            vec![Box::new(Watching(Arc::clone(&changes))), Box::new(bindings)];
        let config = Arc::new(Config::default());
        let (store, _) = Store::open(&home, config, vec![Box::new(FanOut)], observers).unwrap();
        for (n, id) in ids.iter().copied().enumerate() {
            let channel = Some(ways[n % ways.len()].clone());
            store.write(move |txn| set(txn, id, Set { channel, ..Set::default() })).await.unwrap();
        }
        // While something blocks, the clock goes on only when it is told to: what a task asks of the store's thread takes no
        // time of the day.
        let (over, blocks) = std::sync::mpsc::channel::<()>();
        let blocked = tokio::task::spawn_blocking(move || blocks.recv());
        let delivery = Delivery::new(store.clone(), changes);
        delivery.start().await;
        let woken = Arc::new(AtomicU64::new(0));
        let counted = |task: Pin<Box<dyn Future<Output = ()> + Send>>| {
            tokio::spawn(Counted { task, woken: Arc::clone(&woken) })
        };
        counted(Box::pin(delivery.run()));
        counted(Box::pin(StatusFiles::new(store.clone()).run()));
        counted(Box::pin(lifetime::run(store.clone())));
        counted(Box::pin(ends.start(store.clone()).await.unwrap().run()));
        settled(&store).await;
        let before: Vec<_> = ids.iter().map(|id| stored::lines(&home, *id)).collect();
        woken.store(0, Ordering::Relaxed);
        for _ in 0..24 * 60 {
            tokio::time::advance(Duration::from_secs(60)).await;
            settled(&store).await;
        }
        let woken = woken.load(Ordering::Relaxed);
        drop(over);
        let _ = blocked.await;
        store.stop();
        (woken, before)
    });
    assert!(woken >= 23, "it counts: {woken}");
    assert!(woken <= 24 * AN_HOUR, "{woken} wake-ups in a day");
    assert!(!started.exists(), "something was started");
    assert!(std::fs::read_dir(home.turns().join("run")).into_iter().flatten().next().is_none());
    let after: Vec<_> = ids.iter().map(|id| stored::lines(&home, *id)).collect();
    assert_eq!(after, before);
}

/// Comes back when what the tasks asked is answered and they have nothing left to do.
async fn settled(store: &Store) {
    for _ in 0..8 {
        store.read(|_| ()).await.unwrap();
        tokio::task::yield_now().await;
    }
}
