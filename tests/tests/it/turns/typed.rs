//! What is typed: `minder turn run` and the rest of its family with a daemon, a shim and the fake harness.

use std::path::PathBuf;

use minder_proto::id::TurnId;
use minder_proto::turn::{Failure, Outcome};
use minder_tests::files;
use minder_tests::process::Process;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::scene::{left, lines, wait_gone, wait_lines, wait_none_left};
use crate::world::{LIMIT, Ran, Running, World, ran};

/// A script of the fake harness as a command line, and where it says what it does.
struct Script {
    words: Vec<String>,
    record: PathBuf,
}

impl Script {
    fn new(world: &World, name: &str, steps: &str) -> Self {
        let record = world.isolated.root().join(format!("{name}.record"));
        let file = record.with_extension("script");
        std::fs::write(&file, format!("record {}\n{steps}", record.display())).unwrap();
        let program = world.isolated.program("fake").unwrap();
        let words = [program.display().to_string(), "run".to_owned(), file.display().to_string()];
        Self { words: words.to_vec(), record }
    }

    /// `minder turn run` with these options and this script.
    fn typed(&self, world: &World, options: &str) -> std::process::Command {
        let mut command = world.minder(["turn", "run"]);
        command.args(options.split_whitespace()).arg("--").args(&self.words);
        command
    }

    /// Waits for a line of its record.
    fn wait(&self, what: &str) -> Value {
        let found = |lines: &[Value]| lines.iter().find(|line| line["what"] == what).cloned();
        files::wait_for_lines(&self.record, LIMIT, found).unwrap_or_else(|e| panic!("{what}: {e}"))
    }
}

/// The turn of this seat that runs.
fn turn_of(world: &World, seat: &str) -> TurnId {
    let run = world.home().turns().join("run");
    let is_of = |id: &TurnId| {
        let spec = std::fs::read(world.home().turn(*id).join("spec.json")).unwrap_or_default();
        serde_json::from_slice::<Value>(&spec).is_ok_and(|spec| spec["seat"] == seat)
    };
    let one = || {
        let names = std::fs::read_dir(&run).ok()?.filter_map(|e| e.ok()?.file_name().into_string().ok());
        names.filter_map(|name| name.parse().ok()).find(is_of)
    };
    files::wait_for(&run, LIMIT, one).unwrap()
}

/// As `timeout` would exit.
#[test]
fn every_end_has_its_exit() {
    let world = World::with("[turn]\ncancel_grace = \"200ms\"\n");
    let _daemon = world.start();
    let typed = |name: &str, options: &str, steps: &str| {
        ran(&mut Script::new(&world, name, steps).typed(&world, &format!("--seat {name} {options}")), b"")
    };
    let failure = |seat: &str| wait_lines(&world, seat, 1).pop().unwrap().failure;
    for (name, options, steps, code, err, failed) in [
        ("well", "", "print hello\nerror beside", 0, "beside\n", None),
        ("code", "", "print hello\nexit 3", 3, "", Some(Failure::AdapterExit)),
        ("died", "", "print hello\ndie KILL", 137, "", Some(Failure::AdapterExit)),
        (
            "budget",
            "--timeout 1s",
            "print hello\nhang",
            124,
            "turn failed: adapter_timeout\n",
            Some(Failure::AdapterTimeout),
        ),
        (
            "wall",
            "--timeout 1s --backstop 200ms",
            "ignore TERM\nprint hello\nhang",
            124,
            "turn failed: wall_clock (killed)\n",
            Some(Failure::WallClock),
        ),
        (
            "stall",
            "--stall 400ms",
            "ignore TERM\nprint hello\nhang",
            124,
            "turn failed: stall (killed)\n",
            Some(Failure::Stall),
        ),
    ] {
        let ran = typed(name, options, steps);
        assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (code, "hello\n", err), "{name}");
        assert_eq!(failure(name), failed, "{name}");
    }
    let plain = |words: &[&str]| {
        ran(&mut world.minder([&["turn", "run", "--seat", "plain", "--"], words].concat()), b"")
    };
    assert_eq!(
        plain(&["no-such-program"]).failed(127),
        "turn failed: not_found: no-such-program: no such program\n"
    );
    assert!(plain(&["/etc/passwd"]).failed(126).starts_with("turn failed: not_executable: /etc/passwd: "));
    // F11: the directory is named, and is no missing program.
    let gone = world.isolated.project("gone").unwrap();
    let mut shell = world.isolated.command("/bin/sh");
    shell.args(["-c", "cd \"$1\" && rmdir \"$1\" && exec \"$2\" turn run -- true", "sh"]);
    shell.arg(&gone).arg(world.minder([]).get_program());
    let told = ran(&mut shell, b"").failed(125);
    assert_eq!(told, format!("turn failed: cwd_missing: {}: no such directory\n", gone.display()));
}

/// F12, the client's part: what goes in ends, and what comes out is whole, or it is said that it is not.
#[test]
fn f12_input_ends_and_output_is_whole_or_said_to_be_cut() {
    let world = World::with("[turn]\noutput_max = 100000\n");
    let _daemon = world.start();
    let echo = Script::new(&world, "echo", "read stdin\necho");
    let prompt = "tell me\n  `$(all)` \"of\" 'it' é\n\n";
    let mut command = world.minder(["turn", "run", "-", "--"]);
    assert_eq!(ran(command.args(&echo.words), prompt.as_bytes()).ok(), prompt);
    assert_eq!(echo.wait("read")["bytes"], prompt.len());
    let none = Script::new(&world, "none", "read stdin");
    assert_eq!(ran(&mut none.typed(&world, ""), b"not for it").ok(), "");
    assert_eq!(none.wait("read")["bytes"], 0);
    let flood = Script::new(&world, "flood", "flood 300000").typed(&world, "").output().unwrap();
    assert_eq!((flood.status.code(), flood.stdout.len()), (Some(0), 100_000));
    let said = String::from_utf8(flood.stderr).unwrap();
    assert_eq!(
        said,
        "standard output was 300000 bytes; the first 100000 bytes were kept (turn.output_max)\n"
    );
}

/// F10: the caller is told to stop.
#[test]
fn f10_a_caller_that_is_told_to_stop_leaves_nothing_behind() {
    let world = World::with("[turn]\ncancel_grace = \"300ms\"\n");
    let _daemon = world.start();
    for (signal, code, name) in [(Signal::TERM, 143, "term"), (Signal::INT, 130, "int")] {
        let steps = "ignore TERM INT\nchild : setsid; ignore TERM INT; hang\nprint begun\nhang";
        let script = Script::new(&world, name, steps);
        let running = Running::new(&mut script.typed(&world, &format!("--seat {name}")));
        script.wait("stays");
        let turn = turn_of(&world, name);
        assert!(running.process.signal(signal));
        let ran = running.end();
        assert_eq!((ran.code, ran.err.as_str()), (code, "turn failed: cancelled (killed)\n"), "{ran:?}");
        wait_none_left(turn);
        let line = wait_lines(&world, name, 1).pop().unwrap();
        assert!(line.cancelled && line.killed_processes >= 2 && line.survivors == 0, "{line:?}");
    }
    // The second signal does not wait for the grace.
    let script = Script::new(&world, "twice", "ignore TERM INT\nhang");
    let running = Running::new(&mut script.typed(&world, "--seat twice --grace 1h"));
    script.wait("stays");
    let turn = turn_of(&world, "twice");
    assert!(running.process.signal(Signal::INT));
    script.wait("signal");
    assert!(running.process.signal(Signal::INT));
    let ran = running.end();
    assert_eq!((ran.code, ran.err.as_str()), (130, "turn failed: cancelled (killed)\n"), "{ran:?}");
    wait_none_left(turn);
}

/// Whoever cancels it otherwise is somebody else.
#[test]
fn a_turn_is_listed_shown_followed_and_cancelled() {
    let world = World::new();
    let _daemon = world.start();
    let steps = format!(
        "control {}\nprint one\nwait more\nprint two\nhang",
        world.isolated.root().join("c").display()
    );
    let script = Script::new(&world, "long", &steps);
    let running = Running::new(&mut script.typed(&world, "--seat long"));
    let pid = script.wait("started")["pid"].clone();
    let turn = turn_of(&world, "long");
    let short = turn.short();
    let list = world.run("turn ls --running --json").json();
    assert_eq!((&list["turns"][0]["turn"], &list["turns"][0]["pid"]), (&json!(turn), &pid));
    assert!(world.run("turn ls").ok().lines().nth(1).unwrap().starts_with(&format!("{short}  running")));
    let shown = world.run(&format!("turn show {short}")).ok();
    for field in ["state      running", "process    ", "silent     ", "left       "] {
        assert!(shown.contains(field), "{shown}");
    }
    let follow = Running::new(&mut world.minder(["turn", "logs", "-f", &short]));
    assert_eq!(follow.line(), "one");
    std::os::unix::net::UnixStream::connect(world.isolated.root().join("c"))
        .and_then(|mut stream| std::io::Write::write_all(&mut stream, b"go more\n"))
        .unwrap();
    assert_eq!(follow.line(), "two");
    assert_eq!(world.run(&format!("turn cancel {short}")).ok(), format!("{short} is told to end\n"));
    let ended = running.end();
    assert_eq!((ended.code, ended.out.as_str()), (143, "one\ntwo\n"), "{ended:?}");
    assert!(ended.err.starts_with("turn failed: cancelled"), "{ended:?}");
    assert_eq!(follow.end().code, 0);
    assert_eq!(
        world.run(&format!("turn cancel {short}")).failed(1),
        format!("minder: {short} has ended: failed\n")
    );
    wait_lines(&world, "long", 1);
    assert!(world.run(&format!("turn show {turn}")).ok().contains("failed: cancelled (supervisor, runtime)"));
    assert_eq!(world.run(&format!("turn logs {short}")).ok(), "one\ntwo\n");
    assert_eq!(left(turn), [] as [u32; 0]);
}

/// M5, by hand: the first word counts, for that turn alone.
#[test]
fn m5_the_first_finish_counts_and_names_one_turn() {
    let world = World::new();
    let _daemon = world.start();
    let held = |word: &str| -> TurnId {
        let line = format!("turn run --hold --json --seat hold -- echo {word}");
        let answer = world.run(&line).json();
        assert_eq!(
            (answer["reply"].as_str(), answer["exit"].as_i64()),
            (Some(format!("{word}\n").as_str()), Some(0))
        );
        answer["turn"].as_str().unwrap().parse().unwrap()
    };
    let (first, second) = (held("one"), held("two"));
    assert!(world.run("turn ls").ok().contains("held"));
    let finish = |turn: TurnId, word: &str| world.run(&format!("turn finish {turn} {word}"));
    assert_eq!(finish(first, "claim_lost").ok(), format!("{} claim_lost\n", first.short()));
    let late = finish(first, "delivered").failed(1);
    assert_eq!(late, format!("minder: {} was finished before: claim_lost\n", first.short()));
    // The late word of the first attempt is nothing to the second.
    assert_eq!(finish(second, "delivered").ok(), format!("{} delivered\n", second.short()));
    let lines = wait_lines(&world, "hold", 2);
    let outcome = |turn| lines.iter().find(|l| l.turn == turn).unwrap().outcome;
    assert_eq!((outcome(first), outcome(second)), (Outcome::ClaimLost, Outcome::Delivered));
    wait_gone(&world, second);
    // Its word cannot be another one afterwards, and nobody's is anything.
    assert_eq!(finish(second, "silent").code, 1);
    assert_eq!(finish(TurnId::now(), "silent").code, 2);
    assert_eq!(super::scene::lines(&world, "hold").len(), 2);
}

#[test]
fn a_caller_stays_with_its_turn_over_the_death_of_the_daemon() {
    let world = World::new();
    let daemon = world.start();
    let steps = format!(
        "control {}\nnote it listens\nwait more\nprint the answer",
        world.isolated.root().join("c").display()
    );
    let script = Script::new(&world, "stays", &steps);
    let running = Running::new(&mut script.typed(&world, "--seat stays"));
    script.wait("note");
    let turn = turn_of(&world, "stays");
    daemon.kill();
    let _daemon = world.start();
    std::os::unix::net::UnixStream::connect(world.isolated.root().join("c"))
        .and_then(|mut stream| std::io::Write::write_all(&mut stream, b"go more\n"))
        .unwrap();
    let ran: Ran = running.end();
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "the answer\n", ""));
    let line = wait_lines(&world, "stays", 1).pop().unwrap();
    assert_eq!((line.turn, line.outcome, line.adopted), (turn, Outcome::Delivered, 1));
}

/// Whoever dies before it has handed the reply over has lost it, and the run is none the worse.
#[test]
fn a_caller_that_dies_has_lost_the_reply_and_nothing_else() {
    let world = World::new();
    let _daemon = world.start();
    let steps = format!(
        "control {}\nnote it listens\nwait more\nprint the answer",
        world.isolated.root().join("c").display()
    );
    let script = Script::new(&world, "dies", &steps);
    let running = Running::new(&mut script.typed(&world, "--seat dies"));
    let root = script.wait("note")["pid"].as_u64().unwrap();
    running.process.signal(Signal::KILL);
    running.end();
    let root = Process::open(u32::try_from(root).unwrap()).unwrap().expect("it runs on");
    std::os::unix::net::UnixStream::connect(world.isolated.root().join("c"))
        .and_then(|mut stream| std::io::Write::write_all(&mut stream, b"go more\n"))
        .unwrap();
    assert!(root.wait(LIMIT));
    let line = wait_lines(&world, "dies", 1).pop().unwrap();
    assert_eq!((line.outcome, line.exit_code), (Outcome::ReplyLost, Some(0)));
    assert_eq!(lines(&world, "dies").len(), 1);
}

#[test]
fn a_stop_leaves_turns_alone_and_stop_now_ends_them() {
    let world = World::with("[turn]\ncancel_grace = \"200ms\"\n");
    let _daemon = world.start();
    let script = Script::new(&world, "stop", "ignore TERM\nhang");
    let running = Running::new(script.typed(&world, "--seat stop").env_remove("MINDER_NO_AUTOSTART"));
    script.wait("stays");
    let turn = turn_of(&world, "stop");
    world.run("daemon stop").ok();
    let root = left(turn);
    assert!(!root.is_empty(), "it runs on");
    assert_eq!(world.run("daemon start").code, 0);
    world.run("daemon stop --now").ok();
    wait_none_left(turn);
    let ran = running.end();
    assert_eq!((ran.code, ran.err.as_str()), (143, "turn failed: cancelled (killed)\n"), "{ran:?}");
    world.run("daemon stop").ok();
}
