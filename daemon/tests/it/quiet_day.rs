//! A day on which nothing happens, at the speed of the machine: the clock of the runtime jumps to the next thing that is
//! due. The same tasks run as in a daemon that serves.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use minder_daemon::delivery::{Changes, Delivery, Watching};
use minder_daemon::hook::StatusFiles;
use minder_daemon::process::Ends;
use minder_daemon::session::lifetime;
use minder_daemon::store::{Observer, Store};
use minder_daemon::watch::FanOut;
use minder_proto::config::Config;
use minder_proto::event::Author;
use minder_proto::layout::Home;
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
