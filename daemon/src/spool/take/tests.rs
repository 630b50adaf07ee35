//! The taker against a real folder, with something that applies what a test says.

use std::collections::HashMap;
use std::future::{Ready, ready};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use tokio::runtime::Runtime;
use tokio::sync::Notify;
use uuid::Uuid;

use super::*;

const DEADLINE: Duration = Duration::from_secs(20);

/// What was applied, and what is answered to the next attempts on a method.
#[derive(Default)]
struct Script {
    applied: Mutex<Vec<(String, String)>>,
    answers: Mutex<HashMap<String, Vec<Kind>>>,
    bell: Notify,
}

impl Script {
    fn answer(&self, method: &str, kinds: &[Kind]) {
        self.answers.lock().unwrap().insert(method.to_owned(), kinds.iter().rev().copied().collect());
    }

    /// Methods in the order in which they were applied.
    fn applied(&self) -> Vec<String> {
        self.applied.lock().unwrap().iter().map(|(method, _)| method.clone()).collect()
    }
}

type Applying = Pin<Box<dyn Future<Output = Result<(), Fault>> + Send>>;
type ByScript = Box<dyn Fn(Spooled, String) -> Applying + Send + Sync>;

type ByName = fn(Spooled) -> Ready<Option<String>>;

struct Rig {
    dir: tempfile::TempDir,
    script: Arc<Script>,
}

impl Rig {
    fn new() -> Self {
        let rig = Self { dir: tempfile::tempdir().unwrap(), script: Arc::default() };
        Spool::new(&rig.home()).make().unwrap();
        rig
    }

    fn home(&self) -> Home {
        Home::at(self.dir.path())
    }

    async fn taker(&self) -> Taker<ByScript, ByName> {
        let script = Arc::clone(&self.script);
        let apply: ByScript = Box::new(move |spooled: Spooled, key: String| {
            let script = Arc::clone(&script);
            Box::pin(async move {
                assert_ne!(spooled.method, "panic", "as it was told");
                let next = script.answers.lock().unwrap().get_mut(&spooled.method).and_then(Vec::pop);
                if let Some(kind) = next {
                    return Err(Fault::new(kind, "not so"));
                }
                script.applied.lock().unwrap().push((spooled.method, key));
                script.bell.notify_one();
                Ok(())
            })
        });
        let line: ByName = |spooled| ready(spooled.params["line"].as_str().map(str::to_owned));
        Taker::start(&self.home(), apply, line).await
    }

    /// Leaves a request as a client does: whole, by a rename.
    fn leave(&self, method: &str, at: Stamp) -> PathBuf {
        let spooled = Spooled { method: method.to_owned(), params: json!({}), at };
        self.leave_bytes(&serde_json::to_vec(&spooled).unwrap())
    }

    /// Leaves a request that stands in a line.
    fn leave_in(&self, line: &str, method: &str) {
        let spooled =
            Spooled { method: method.to_owned(), params: json!({ "line": line }), at: Stamp::now() };
        self.leave_bytes(&serde_json::to_vec(&spooled).unwrap());
    }

    fn leave_bytes(&self, bytes: &[u8]) -> PathBuf {
        let name = Uuid::now_v7();
        let (temp, path) = (
            self.home().spool().join(format!(".{name}.new")),
            self.home().spool().join(format!("{name}.json")),
        );
        std::fs::write(&temp, bytes).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&temp, mode).unwrap();
        std::fs::rename(&temp, &path).unwrap();
        path
    }

    fn left(&self) -> usize {
        std::fs::read_dir(self.home().spool()).unwrap().count()
    }

    /// The reasons in the quarantine.
    fn reasons(&self) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.home().quarantine()) else { return Vec::new() };
        let files = entries.map(|e| e.unwrap().path()).filter(|p| p.extension().is_some_and(|e| e == "why"));
        files.map(|p| std::fs::read_to_string(p).unwrap().trim().to_owned()).collect()
    }
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// Where no time passes but what is waited for.
fn paused() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap()
}

#[test]
fn what_was_left_is_taken_in_order_before_anything_else_and_once() {
    let rig = Rig::new();
    let methods: Vec<String> = (0..20).map(|n| format!("m{n}")).collect();
    let files: Vec<PathBuf> = methods.iter().map(|m| rig.leave(m, Stamp::now())).collect();
    let runtime = runtime();
    let again = runtime.block_on(rig.taker()).again;
    assert_eq!((rig.script.applied(), rig.left(), again), (methods, 0, None));
    let keys: Vec<String> = rig.script.applied.lock().unwrap().iter().map(|(_, key)| key.clone()).collect();
    let names: Vec<String> =
        files.iter().map(|f| f.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    assert_eq!(keys, names);

    // Killed after it was applied and before the file went: the same key says so.
    let spooled = Spooled { method: "m19".into(), params: json!({}), at: Stamp::now() };
    std::fs::write(&files[19], serde_json::to_vec(&spooled).unwrap()).unwrap();
    runtime.block_on(rig.taker());
    assert_eq!(rig.script.applied.lock().unwrap().last(), Some(&("m19".to_owned(), names[19].clone())));
    assert_eq!((rig.left(), rig.reasons().len()), (0, 0));
}

#[test]
fn what_can_never_be_applied_is_set_aside_and_keeps_nothing_back() {
    let rig = Rig::new();
    rig.leave("first", Stamp::now());
    rig.leave_bytes(b"{\"method\":");
    rig.leave("panic", Stamp::now());
    rig.leave("refused", Stamp::now());
    rig.script.answer("refused", &[Kind::Refused]);
    rig.leave("last", Stamp::now());
    let taker = runtime().block_on(rig.taker());
    assert_eq!((rig.script.applied(), rig.left()), (vec!["first".to_owned(), "last".to_owned()], 0));
    let mut reasons = rig.reasons();
    reasons.sort();
    assert_eq!(reasons.len(), 3, "{reasons:?}");
    assert!(reasons[0].starts_with("a fault in minder"));
    assert!(reasons[1].starts_with("it cannot be read"));
    assert_eq!(reasons[2], "not so");
    assert!(taker.again.is_none());
}

#[test]
fn a_disk_that_refuses_keeps_everything_in_order_until_it_does_not() {
    let rig = Rig::new();
    rig.script.answer("a", &[Kind::ReadOnly; 3]);
    rig.leave("a", Stamp::now());
    rig.leave("b", Stamp::now());
    paused().block_on(async {
        let mut taker = rig.taker().await;
        let begun = Instant::now();
        assert_eq!((rig.left(), taker.blocked), (2, true), "the start does not wait for it");
        while taker.again.is_some() {
            // What comes meanwhile waits its turn.
            if rig.left() == 2 {
                rig.leave("c", Stamp::now());
            }
            taker.wait().await;
            taker.look().await;
        }
        assert_eq!(rig.script.applied(), ["a", "b", "c"]);
        assert_eq!(begun.elapsed().as_secs(), 1 + 2 + 4);
        assert_eq!((rig.left(), taker.blocked), (0, false));
        assert_eq!(taker.pauses.take(), Pauses::new().take(), "the next time begins with the shortest pause");
    });
}

#[test]
fn a_full_queue_keeps_back_only_its_own_and_not_forever() {
    let rig = Rig::new();
    rig.script.answer("full", &[Kind::Full, Kind::Full]);
    rig.leave("full", Stamp::now());
    rig.script.answer("old", &[Kind::Full]);
    rig.leave("old", Stamp::now().minus(Duration::from_secs(8 * 24 * 60 * 60)));
    rig.leave("b", Stamp::now());
    paused().block_on(async {
        let mut taker = rig.taker().await;
        assert_eq!(
            (rig.script.applied(), rig.left(), rig.reasons()),
            (vec!["b".to_owned()], 1, vec!["not so".to_owned()])
        );
        while taker.again.is_some() {
            taker.wait().await;
            taker.look().await;
        }
        assert_eq!((rig.script.applied(), rig.left()), (vec!["b".to_owned(), "full".to_owned()], 0));
    });
}

#[test]
fn what_is_kept_keeps_back_what_is_behind_it_in_its_line() {
    let rig = Rig::new();
    rig.script.answer("1", &[Kind::Full]);
    for (line, method) in
        [("a to x", "1"), ("a to x", "2"), ("a to y", "other"), ("b to x", "another"), ("a to x", "3")]
    {
        rig.leave_in(line, method);
    }
    rig.leave("alone", Stamp::now());
    paused().block_on(async {
        let mut taker = rig.taker().await;
        assert_eq!(
            (rig.script.applied(), rig.left()),
            (["other", "another", "alone"].map(str::to_owned).to_vec(), 3)
        );
        while taker.again.is_some() {
            taker.wait().await;
            taker.look().await;
        }
        assert_eq!(rig.script.applied()[3..], ["1", "2", "3"]);
    });
}

#[test]
fn what_comes_later_is_taken_when_it_comes_even_into_a_new_folder() {
    let rig = Rig::new();
    runtime().block_on(async {
        let running = tokio::spawn(rig.taker().await.run());
        let taken = async || {
            tokio::time::timeout(DEADLINE, rig.script.bell.notified()).await.expect("it is taken in time");
        };
        rig.leave("a", Stamp::now());
        taken().await;
        // By a simpler hand: written in its place.
        let spooled = Spooled { method: "b".into(), params: json!({}), at: Stamp::now() };
        let path = rig.home().spool().join(format!("{}.json", Uuid::now_v7()));
        std::fs::write(path, serde_json::to_vec(&spooled).unwrap()).unwrap();
        taken().await;
        // Taken away, and made anew by a client that has something to leave.
        std::fs::rename(rig.home().spool(), rig.dir.path().join("away")).unwrap();
        std::fs::create_dir_all(rig.home().spool()).unwrap();
        rig.leave("c", Stamp::now());
        taken().await;
        rig.leave("d", Stamp::now());
        taken().await;
        assert_eq!(rig.script.applied(), ["a", "b", "c", "d"]);
        running.abort();
    });
}
