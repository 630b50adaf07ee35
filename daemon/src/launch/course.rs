//! One start, from a window to the sign that what runs in it is up. A program that ends at once is started again, three
//! times in all, if it is a harness and did not end well; then its last words are the session's error, and its window goes.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use minder_proto::event::Author;
use minder_proto::id::SessionId;
use minder_proto::record::{self, Process, SessionRecord};
use minder_proto::state::State;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until, timeout};

use super::door::{Door, Order, tell};
use super::window::{LastWords, Server};
use super::{Shared, Start};
use crate::identity::token;
use crate::process::ended;
use crate::session::{self, Declaration, declare};
use crate::store::kill_point::reach;

/// How often a program that ends at once is started.
const TIMES: u32 = 3;
/// A program that ends within this time has ended at once.
const AT_ONCE: Duration = Duration::from_secs(3);
/// How long the process of a new window may take to ask what it is to become.
const KNOCKS: Duration = Duration::from_secs(20);
/// How long it takes at most until it is known whether there is a process.
pub const LONGEST: Duration = Duration::from_secs(60);
/// Where a harness that shows no sign of life is told to be.
const SILENT: &str = "not up: a trust, login or update screen?";

/// Who asked is told why it could not be started, or that it runs.
type Tell = oneshot::Sender<Option<String>>;

/// Starts it and stays with it until it is up.
pub async fn run(shared: Arc<Shared>, start: Start, tell: Tell) {
    let mut tell = Some(tell);
    let outcome = attempts(&shared, &start, &mut tell).await;
    if let Err(why) = &outcome {
        shared.not_up(start.session, why.clone()).await;
    }
    if let Some(tell) = tell {
        let _ = tell.send(outcome.err());
    }
}

async fn attempts(shared: &Arc<Shared>, start: &Start, tell_caller: &mut Option<Tell>) -> Result<(), String> {
    let server = Server::at(&start.socket, &start.env)?;
    let door = Door::open(shared.store.home()).map_err(|e| format!("a start has no way in: {e}"))?;
    let path = |path: &Path| path.to_str().map(str::to_owned).ok_or("the store's path is not UTF-8");
    let command = [path(&shared.program)?, "start".to_owned(), path(door.path())?];
    let mut pane: Option<String> = None;
    let mut time = 1;
    reach("launch.registered");
    loop {
        let place = match &pane {
            None => server.open(start.beside.as_deref(), &start.label, &start.dir, &command).await?,
            Some(pane) => {
                server.again(pane, &start.dir, &command).await?;
                pane.clone()
            }
        };
        pane = Some(place.clone());
        reach("launch.window");
        let process = match enter(shared, start, &server, &door, &place).await {
            Ok(process) => process,
            Err(why) => {
                server.close(&place).await;
                return Err(why);
            }
        };
        let begun = Instant::now();
        if let Some(tell) = tell_caller.take() {
            let _ = tell.send(None);
        }
        let end = follow(shared, start, &process, begun).await;
        let (name, pid) = (start.argv.first().map_or("", |p| p.rsplit('/').next().unwrap_or(p)), process.pid);
        if end == End::Up {
            server.release(&place).await;
            return Ok(());
        }
        let words = server.last_words(&place).await;
        let well = words.status == "exit 0";
        // What is no harness may have done its work in no time, and to do it again is not for us.
        if end == End::AtOnce && time < TIMES && start.harness && !well {
            time += 1;
            continue;
        }
        server.close(&place).await;
        if well && !start.harness {
            shared.done(start.session, format!("{name} ended (exit 0)")).await;
            return Ok(());
        }
        let how = told_of(&words);
        return Err(if time == TIMES {
            format!("{name} ended at once, {TIMES} times{how}")
        } else {
            format!("{name} (pid {pid}) ended before it was up{how}")
        });
    }
}

/// How it ended and what stood on its screen.
fn told_of(words: &LastWords) -> String {
    let how = if words.status.is_empty() { String::new() } else { format!(" ({})", words.status) };
    let said = if words.text.is_empty() { String::new() } else { format!(": {}", words.text) };
    how + &said
}

/// The process of the window becomes the program. It is the session's before that.
async fn enter(
    shared: &Shared,
    start: &Start,
    server: &Server,
    door: &Door,
    pane: &str,
) -> Result<Process, String> {
    let window = server.process_in(pane).await?;
    let came = timeout(KNOCKS, door.knock(window)).await;
    let (process, stream) = came
        .map_err(|_| "the process of its window did not come".to_owned())?
        .map_err(|e| format!("its window has no way in: {e}"))?;
    server.keep(pane, true).await;
    let token = token::fresh();
    let (session, bound, sum, at) = (start.session, process.clone(), token::sum(&token), pane.to_owned());
    let noted = shared.store.write(move |txn| session::process_for(txn, session, bound, sum, at)).await;
    noted.map_err(|fault| fault.message)?;
    reach("launch.process");
    let mut env = start.env.clone();
    env.insert(token::SESSION.to_owned(), session.to_string());
    env.insert(token::TOKEN.to_owned(), token);
    let order = Order { argv: start.argv.clone(), dir: start.dir.clone(), env };
    tell(stream, &order).await?;
    reach("launch.told");
    Ok(process)
}

/// True while it is not known whether there is a process of it.
pub fn is_on_its_way(launch: &record::Launch) -> bool {
    launch.pending && launch.pane.is_none()
}

/// Why what was started is not up, where that was said.
pub fn failure_of(record: &SessionRecord) -> Option<String> {
    let launch = record.launch.as_ref()?;
    let failed = record.state == State::Error && record.state_by == Author::Minder;
    if launch.pending || launch.heard || !failed {
        return None;
    }
    Some(record.note.clone().unwrap_or_else(|| "it is not up".to_owned()))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Up,
    AtOnce,
    Later,
}

/// Until something shows that it is up, or its process has ended.
async fn follow(shared: &Arc<Shared>, start: &Start, process: &Process, begun: Instant) -> End {
    let session = start.session;
    let soon = begun + AT_ONCE;
    // Whoever has hooks says so; of the others it is enough that they run.
    tokio::select! {
        () = ended(process) => return End::AtOnce,
        () = heard(shared, session) => return End::Up,
        () = sleep_until(soon) => {}
    }
    if !start.says_so {
        let up = shared.store.write_patiently(move |txn| session::came_up(txn, session)).await;
        if let Err(fault) = up {
            tracing::debug!(%session, %fault, "that it is up is not written");
        }
        return End::Up;
    }
    tokio::select! {
        () = ended(process) => return End::Later,
        () = heard(shared, session) => return End::Up,
        () = sleep_until(begun + shared.store.config().launch.ready.0) => {}
    }
    silent(shared, session).await;
    tokio::select! {
        () = ended(process) => End::Later,
        () = heard(shared, session) => End::Up,
    }
}

/// The first that is heard of it.
async fn heard(shared: &Shared, session: SessionId) {
    let bell = shared.delivery.changes_of(session);
    while shared.is_pending(session).await.unwrap_or(false) {
        bell.notified().await;
    }
}

/// The one state that is read from silence, and says so.
async fn silent(shared: &Shared, session: SessionId) {
    let said = shared.store.write_patiently(move |txn| {
        if txn.session(session)?.record.launch.as_ref().is_some_and(|launch| launch.pending) {
            declare(txn, session, Declaration::new(State::Asking, Some(SILENT.to_owned()), Author::Minder))?;
        }
        Ok(())
    });
    if let Err(fault) = said.await {
        tracing::debug!(%session, %fault, "that nothing is heard of it is not written");
    }
}

/// A start that an earlier daemon did not bring to its end.
pub async fn take_up(shared: Arc<Shared>, session: SessionId) {
    let record = shared.store.read(move |state| state.session(session).map(|s| s.record.clone())).await;
    let Ok(Some(record)) = record else { return };
    let window = window_of(&record).await;
    let Some((process, start)) = running(&record) else {
        if let Some((server, pane)) = window {
            server.close(&pane).await;
        } else if let Some(server) =
            record.launch.as_ref().and_then(|launch| own_server(launch.tmux.as_ref()?))
        {
            server.close_left(&shared.store.home().run()).await;
        }
        return shared.not_up(session, "the daemon ended before it was started".to_owned()).await;
    };
    let end = follow(&shared, &start, &process, Instant::now()).await;
    let mut how = String::new();
    if let Some((server, pane)) = window {
        if end == End::Up {
            server.release(&pane).await;
        } else {
            how = told_of(&server.last_words(&pane).await);
            server.close(&pane).await;
        }
    }
    if end != End::Up {
        let why = format!("{} (pid {}) ended before it was up{how}", start.label, process.pid);
        shared.not_up(session, why).await;
    }
}

/// The window of a start, where it still is the one of its process. Its server runs, so that the daemon's own tmux will do.
async fn window_of(record: &SessionRecord) -> Option<(Server, String)> {
    let (launch, process) = (record.launch.as_ref()?, record.process.as_ref()?);
    let (socket, pane) = (launch.tmux.as_ref()?, launch.pane.clone()?);
    let server = own_server(socket)?;
    server.has(&pane, process.pid).await.then_some((server, pane))
}

/// A server that runs, by the daemon's own tmux.
fn own_server(socket: &str) -> Option<Server> {
    let own = std::env::vars_os().filter_map(|(n, v)| Some((n.into_string().ok()?, v.into_string().ok()?)));
    Server::at(socket, &own.collect()).ok()
}

/// What is known of a start whose process there is.
fn running(record: &SessionRecord) -> Option<(Process, Start)> {
    let process = record.process.clone().filter(|p| p.ended.is_none())?;
    let launch = record.launch.clone()?;
    let says_so = record.harness.as_deref().and_then(super::programs::by_name).is_some_and(|p| p.says_so);
    let start = Start {
        session: record.id,
        label: record.harness.clone().unwrap_or_else(|| "its program".to_owned()),
        socket: launch.tmux?,
        beside: None,
        argv: Vec::new(),
        dir: record.dir.clone(),
        env: std::collections::BTreeMap::new(),
        says_so,
        harness: record.harness.is_some(),
    };
    Some((process, start))
}
