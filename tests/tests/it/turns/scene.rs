//! Turns of a test: programs and scripts that are run as one, over the socket, and what was left of them.

use std::path::PathBuf;
use std::time::Duration;

use minder_client::rpc::Client;
use minder_proto::id::TurnId;
use minder_proto::rpc::{self, Hold, TurnAnswer, TurnRow, TurnRun, TurnStart};
use minder_proto::turn::line::{Line, seat};
use minder_tests::files;
use minder_tests::process::{self, Process};
use serde_json::Value;

use crate::world::{LIMIT, World, must};

/// The seat of every turn here that needs no other.
pub const SEAT: &str = "bench";

/// A program to be run as a turn, in a folder of its own.
pub fn command(world: &World, argv: &[&str]) -> TurnRun {
    let turn = TurnId::now();
    let env = world.isolated.environment().into_iter();
    let text = |s: std::ffi::OsString| s.into_string().expect("a test's own variables");
    TurnRun {
        turn: Some(turn),
        seat: Some(SEAT.to_owned()),
        argv: argv.iter().map(|word| (*word).to_owned()).collect(),
        dir: Some(world.isolated.project(&turn.to_string()).unwrap().display().to_string()),
        env: env.map(|(name, value)| (text(name), text(value))).collect(),
        ..TurnRun::default()
    }
}

/// A script of the fake harness to be run as a turn.
pub fn fake(world: &World, script: &str) -> TurnRun {
    let mut call = command(world, &[]);
    let record = record(world, id(&call));
    let file = record.with_extension("script");
    std::fs::write(&file, format!("record {}\n{script}", record.display())).unwrap();
    let program = world.isolated.program("fake").unwrap().display().to_string();
    call.argv = vec![program, "run".to_owned(), file.display().to_string()];
    call
}

/// What a fake harness did and saw is written there.
fn record(world: &World, turn: TurnId) -> PathBuf {
    world.isolated.root().join(format!("{turn}.record"))
}

/// Its lines so far.
pub fn recorded(world: &World, turn: TurnId) -> Vec<Value> {
    files::json_lines(&record(world, turn))
}

/// Waits for a line of its record.
pub fn wait_recorded(world: &World, turn: TurnId, what: &str) -> Value {
    let found = |lines: &[Value]| lines.iter().find(|line| line["what"] == what).cloned();
    files::wait_for_lines(&record(world, turn), LIMIT, found).unwrap_or_else(|e| panic!("{what}: {e}"))
}

/// The id that a call was given.
pub fn id(call: &TurnRun) -> TurnId {
    call.turn.expect("every call here has one")
}

/// Starts it, and gives its id once its process runs.
pub fn start(client: &mut Client, call: &TurnRun) -> TurnId {
    must(client, &TurnStart(call.clone())).turn
}

/// The same, held by its id.
pub fn start_held(client: &mut Client, call: TurnRun) -> TurnId {
    start(client, &TurnRun { hold: Hold::Id, ..call })
}

pub fn get(client: &mut Client, turn: TurnId) -> TurnAnswer {
    must(client, &rpc::TurnGet { id: turn.to_string(), ..rpc::TurnGet::default() })
}

/// The answer once it is settled.
pub fn settled(client: &mut Client, turn: TurnId) -> rpc::Settled {
    let get = rpc::TurnGet { id: turn.to_string(), wait: true, ..rpc::TurnGet::default() };
    must(client, &get).settled.expect("it waited for that")
}

pub fn cancel(client: &mut Client, turn: TurnId) -> rpc::TurnDone {
    must(client, &rpc::TurnCancel { caller: None, id: turn.to_string() })
}

pub fn finishing(turn: TurnId, outcome: &str) -> rpc::TurnFinish {
    rpc::TurnFinish { caller: None, id: turn.to_string(), outcome: outcome.to_owned() }
}

pub fn rows(client: &mut Client) -> Vec<TurnRow> {
    must(client, &rpc::TurnList::default()).turns
}

pub fn log_file(world: &World, of: &str) -> PathBuf {
    world.home().turns().join(format!("{}.jsonl", seat(of)))
}

fn parsed(lines: &[Value]) -> Vec<Line> {
    lines.iter().map(|line| serde_json::from_value(line.clone()).expect("a line of the log")).collect()
}

/// The lines of a seat.
pub fn lines(world: &World, of: &str) -> Vec<Line> {
    parsed(&files::json_lines(&log_file(world, of)))
}

/// Waits until a seat has so many lines, and gives them.
pub fn wait_lines(world: &World, of: &str, many: usize) -> Vec<Line> {
    let file = log_file(world, of);
    files::wait_for_lines(&file, LIMIT, |lines| (lines.len() >= many).then(|| parsed(lines)))
        .unwrap_or_else(|e| panic!("{many} lines: {e}"))
}

/// The only line of a turn; waits for it.
pub fn line_of(world: &World, turn: TurnId) -> Line {
    let file = log_file(world, SEAT);
    let of = |line: &Value| line["turn"] == turn.to_string();
    let lines = files::wait_for_lines(&file, LIMIT, |lines| {
        let own: Vec<Value> = lines.iter().filter(|line| of(line)).cloned().collect();
        (!own.is_empty()).then_some(own)
    });
    let lines = parsed(&lines.unwrap_or_else(|e| panic!("the line of {turn}: {e}")));
    assert_eq!(lines.len(), 1, "{lines:#?}");
    lines.into_iter().next().expect("there is one")
}

/// The folders of turns. What stands ready for one is none.
pub fn folders(world: &World) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(world.home().turns().join("run")).unwrap();
    let is_turn =
        |path: &PathBuf| path.file_name().is_some_and(|n| n.to_string_lossy().parse::<TurnId>().is_ok());
    entries.map(|entry| entry.unwrap().path()).filter(is_turn).collect()
}

/// Waits until the folder of a turn is gone.
pub fn wait_gone(world: &World, turn: TurnId) {
    let folder = world.home().turn(turn);
    let gone = || (!folder.exists()).then_some(());
    files::wait_for(&folder, LIMIT, gone).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
}

/// The process with this pid, which must be there.
pub fn process_of(pid: &Value) -> Process {
    let pid = u32::try_from(pid.as_u64().expect("a pid")).expect("a pid");
    Process::open(pid).unwrap().expect("it is there")
}

/// The pid of a process's parent; none once it is gone.
pub fn parent_of(process: &Process) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.pid())).ok()?;
    let (_, after) = stat.rsplit_once(')').expect("a name in brackets");
    Some(after.split_ascii_whitespace().nth(1).expect("a parent").parse().expect("a pid"))
}

/// The shim above a root.
pub fn shim_of(root: &Process) -> Process {
    Process::open(parent_of(root).expect("it lives")).unwrap().expect("it is there")
}

/// Processes that still carry the mark of a turn.
pub fn left(turn: TurnId) -> Vec<u32> {
    let id = turn.to_string();
    let marked = process::find(|p| p.has_variable("MINDER_TURN", id.as_ref()));
    marked.iter().map(Process::pid).collect()
}

/// Waits until nothing carries the mark of a turn.
pub fn wait_none_left(turn: TurnId) {
    let id = turn.to_string();
    for process in process::find(|p| p.has_variable("MINDER_TURN", id.as_ref())) {
        assert!(
            process.wait(Duration::from_secs(30)),
            "process {} of turn {turn} is still there",
            process.pid()
        );
    }
    assert_eq!(left(turn), [] as [u32; 0]);
}
