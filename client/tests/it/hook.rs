//! `hook`: H3, H4 and H5 as far as they are the client's.

use std::io::Write;
use std::process::{Command, Stdio};

use minder_proto::error::{Fault, Kind};
use minder_tests::files::wait_for;
use serde_json::{Value, json};

use crate::world::daemon::Reply;
use crate::world::{LIMIT, Ran, World, finish};

const EVENT: &str = r#"{"hook_event_name":"Stop","session_id":"conv","last_assistant_message":"\"}{ done"}"#;

fn hook(world: &World, input: &str) -> Ran {
    finish(&mut world.command(&["hook", "claude"]), input.as_bytes())
}

/// Nothing for the harness to see.
#[track_caller]
fn silent(ran: &Ran) {
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "", ""), "{ran:?}");
}

#[test]
fn one_call_and_its_answer() {
    let world = World::new();
    let daemon = world.daemon(|_, _| {
        Reply::With(json!({"stdout": "{\"decision\":\"block\"}", "stderr": "why", "exit": 2}))
    });
    let mut command = world.command(&["hook", "claude"]);
    command.env("CLAUDE_PID", "4121").env("CLAUDE_CODE_SESSION_ATTENDED", "0");
    command
        .env("CLAUDE_CODE_ENTRYPOINT", "sdk-cli")
        .env("MINDER_TURN", "t1")
        .env("ANTHROPIC_API_KEY", "secret");
    let ran = finish(&mut command, EVENT.as_bytes());
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (2, "{\"decision\":\"block\"}", "why"));
    let asked = daemon.next();
    assert_eq!((asked.method.as_str(), &asked.params["harness"]), ("hook.event", &json!("claude")));
    assert_eq!(asked.params["payload"], serde_json::from_str::<Value>(EVENT).unwrap());
    let env = json!({"pid": 4121, "attended": false, "entrypoint": "sdk-cli", "turn": "t1"});
    assert_eq!(asked.params["env"], env);
    assert!(!asked.params.to_string().contains("secret"));
    assert_eq!((daemon.calls(), world.spooled()), (vec![], vec![]));
    // The same by the parsed command line.
    let ran = finish(&mut world.command(&["--json", "hook", "claude"]), EVENT.as_bytes());
    assert_eq!((ran.code, daemon.next().method.as_str()), (2, "hook.event"));
}

#[test]
fn h3_what_is_no_event_of_a_known_harness_is_nothing() {
    let world = World::new();
    let daemon = world.daemon(|_, _| Reply::Silence);
    let before = world.tree();
    for input in
        ["", "x", "{", "[1]", "null", "{}", "{\"hook_event_name\":7}", "{\"type\":\"agent-turn-complete\"}"]
    {
        silent(&hook(&world, input));
    }
    silent(&finish(&mut world.command(&["hook", "grok"]), EVENT.as_bytes()));
    silent(&finish(&mut world.command(&["hook", "no-harness", "--wait"]), EVENT.as_bytes()));
    assert_eq!(daemon.calls(), []);
    assert_eq!(world.tree(), before);
}

#[test]
fn h5_the_daemon_does_not_answer_and_stdin_does_not_end() {
    let world = World::new();
    let daemon = world.daemon(|_, _| Reply::Silence);
    let mut child = world.command(&["hook", "claude"]);
    child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = child.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(EVENT.as_bytes()).unwrap();
    let asked = daemon.next();
    // Waited for with its input still open.
    let status = child.wait().unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert!(status.success() && output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
    let [last] = &world.spooled()[..] else { panic!("nothing is lost") };
    // Beside what was asked: who ran it, which no connection tells later.
    let mut left = asked.params.clone();
    left["env"]["pid"] = json!(std::process::id());
    assert_eq!((&last["method"], &last["params"]), (&json!("hook.event"), &left));
    let key = asked.params["key"].as_str().unwrap();
    assert!(world.home().spool().join(format!("{key}.json")).exists(), "one key for both");
}

#[test]
fn h5_every_wait_of_a_hook_is_within_its_bound() {
    let world = World::new();
    let _daemon = world.daemon(|_, _| Reply::Silence);
    let trace = world.root().join("trace");
    let hook = world.command(&["hook", "claude"]);
    let mut strace = Command::new("strace");
    strace.env_clear().envs(hook.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let waits = "trace=poll,ppoll,select,pselect6,epoll_wait,epoll_pwait,futex,nanosleep,clock_nanosleep,setsockopt,recvfrom";
    strace.args(["-f", "-qq", "-xx", "-e", waits, "-o"]).arg(&trace).arg("--");
    strace.arg(hook.get_program()).args(hook.get_args()).stdin(Stdio::piped());
    let mut child = strace.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(EVENT.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    drop(stdin);
    // What it asked the kernel to wait at most, each time: the machine may hold it up, its design may not.
    let calls = std::fs::read_to_string(&trace).unwrap();
    let calls: Vec<&str> = calls.lines().filter_map(|l| Some(l.split_once(' ')?.1.trim_start())).collect();
    let (mut polls, mut socket, mut waited) = (0, None, 0);
    for call in &calls {
        let ms = if call.starts_with("poll(") || call.starts_with("ppoll(") {
            polls += 1;
            poll_ms(call)
        } else if call.contains("TIMEO") {
            socket = Some(timeval_ms(call));
            timeval_ms(call)
        } else {
            assert!(call.starts_with("recvfrom(") || call.starts_with("setsockopt("), "{call} in {calls:#?}");
            assert!(call.starts_with("setsockopt(") || socket.is_some_and(|ms| ms > 0), "{calls:#?}");
            0
        };
        assert!(ms <= 300, "{ms} ms in {call}");
        waited += match socket {
            _ if call.contains("(Timeout)") => ms,
            Some(most) if call.contains("EAGAIN") => most,
            _ => 0,
        };
    }
    assert!(waited < 400, "all that ran out: {waited} ms of {calls:#?}");
    assert!(polls > 0 && socket.is_some(), "{calls:#?}");
    let ran_out = calls.iter().filter(|c| c.contains("EAGAIN") || c.contains("(Timeout)")).count();
    assert!(ran_out <= 2, "the look at the standard streams, and the call: {calls:#?}");
}

/// The bound of a `poll` or `ppoll`, as strace writes it.
fn poll_ms(call: &str) -> u64 {
    let number =
        |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap();
    match call.split_once("tv_sec=") {
        Some((_, rest)) => {
            let nanos: u64 = rest.split_once("tv_nsec=").map_or(0, |(_, n)| number(n));
            number(rest) * 1_000 + nanos / 1_000_000
        }
        None => number(call.split_once("], ").unwrap().1.split_once(", ").unwrap().1),
    }
}

/// The bound that a socket is given, as strace writes its bytes.
fn timeval_ms(call: &str) -> u64 {
    let bytes = call.split('"').nth(1).unwrap();
    let bytes: Vec<u8> = bytes.split("\\x").skip(1).map(|b| u8::from_str_radix(b, 16).unwrap()).collect();
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    number(0) * 1_000 + number(8) / 1_000
}

#[test]
fn an_input_that_never_comes_ends_too() {
    let world = World::new();
    let mut child = world.command(&["hook", "claude"]);
    let mut child = child.stdin(Stdio::piped()).spawn().unwrap();
    let stdin = child.stdin.take().unwrap();
    assert!(child.wait().unwrap().success());
    drop(stdin);
    assert_eq!(world.spooled(), [] as [Value; 0]);
}

#[test]
fn without_a_daemon_the_event_is_left_and_one_is_started() {
    let world = World::new();
    let mark = world.root().join("started");
    let starter = world.root().join("minderd");
    crate::place::script(&starter, &format!("echo >>{}", mark.display()));
    let mut command = world.command(&["hook", "claude"]);
    command.env_remove("MINDER_NO_AUTOSTART").env("MINDER_DAEMON", &starter);
    // Not in a turn, whose end would be the daemon's. Told at the end, when one that was started has long left its mark.
    silent(&finish(command.env("MINDER_TURN", "t"), EVENT.as_bytes()));
    assert_eq!(world.spooled().len(), 1);
    silent(&finish(command.env_remove("MINDER_TURN"), EVENT.as_bytes()));
    assert_eq!(world.spooled().len(), 2);
    wait_for(&mark, LIMIT, || mark.exists().then_some(())).unwrap();
    // Nor is one started where that is not wanted, nor is its absence a failure.
    let mut command = world.command(&["hook", "claude"]);
    command.env("MINDER_DAEMON", "/nonexistent/minderd");
    silent(&finish(&mut command, EVENT.as_bytes()));
    command.env_remove("MINDER_NO_AUTOSTART");
    silent(&finish(&mut command, EVENT.as_bytes()));
    assert_eq!(world.spooled().len(), 4);
    // A store that cannot be written costs the event, not the harness's time.
    let mut command = world.command(&["hook", "claude"]);
    silent(&finish(command.env("MINDER_HOME", "/proc/nonexistent"), EVENT.as_bytes()));
    silent(&finish(command.env("MINDER_HOME", "relative"), EVENT.as_bytes()));
    assert_eq!(std::fs::read(&mark).unwrap(), b"\n", "one was started");
}

#[test]
fn a_refusal_is_not_the_harnesss_trouble() {
    let world = World::new();
    for (kind, kept) in [(Kind::Version, 1), (Kind::Busy, 2), (Kind::InvalidParams, 2), (Kind::Refused, 2)] {
        let _daemon = world.daemon(move |_, _| Reply::Fault(Fault::new(kind, "no")));
        silent(&hook(&world, EVENT));
        assert_eq!(world.spooled().len(), kept, "{kind:?}");
    }
    let daemon = world.daemon(|_, _| Reply::With(json!("no answer of ours")));
    silent(&hook(&world, EVENT));
    drop(daemon);
    let _daemon = world.daemon(|_, _| Reply::With(json!({"stdout": "x", "exit": 2})));
    // Half of an answer is none.
    let ran = world.shell("echo '{\"hook_event_name\":\"Stop\"}' | minder hook claude >/dev/full; echo $?");
    assert_eq!(ran.out, "0\n");
}

#[test]
fn odd_characters_cost_themselves_only() {
    let world = World::new();
    let daemon = world.daemon(|_, _| Reply::With(json!({})));
    let input = b"{\"hook_event_name\":\"Stop\",\"prompt\":\"a\\ud800b\xffc\\u0000\"}";
    silent(&finish(&mut world.command(&["hook", "claude"]), input));
    assert_eq!(daemon.next().params["payload"]["prompt"], "a\u{fffd}b\u{fffd}c\0");
}

fn waiter(world: &World) -> Command {
    let mut command = world.command(&["hook", "claude", "--wait"]);
    command.env("CLAUDE_CODE_ENTRYPOINT", "cli").env("CLAUDE_CODE_SESSION_ATTENDED", "1");
    command
}

#[test]
fn a_waiter_wakes_with_the_text() {
    let world = World::new();
    let daemon = world.daemon(|_, _| Reply::With(json!({"stderr": "[minder] message", "exit": 2})));
    let ran = finish(&mut waiter(&world), EVENT.as_bytes());
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (2, "", "[minder] message"));
    assert_eq!(daemon.next().method, "hook.wait");
    // In a run that nobody sits at, or under the turn runner, it is gone before it reads.
    for (name, value) in
        [("CLAUDE_CODE_ENTRYPOINT", "sdk-cli"), ("CLAUDE_CODE_SESSION_ATTENDED", "0"), ("MINDER_TURN", "t")]
    {
        let mut command = waiter(&world);
        let mut child = command.env(name, value).stdin(Stdio::piped()).spawn().unwrap();
        assert!(child.wait().unwrap().success(), "{name}");
    }
    assert_eq!(daemon.calls(), []);
}

#[test]
fn a_waiter_outlives_the_daemon_and_ends_with_its_harness() {
    let world = World::new();
    let mut harness = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let daemon = world.daemon(|_, _| Reply::Die);
    let mut command = waiter(&world);
    command.env("CLAUDE_PID", harness.id().to_string());
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(EVENT.as_bytes()).unwrap();
    let first = daemon.next();
    drop(daemon);
    let daemon = world.daemon(|_, _| Reply::Die);
    let second = loop {
        let asked = daemon.next();
        if asked.params["resume"] == first.params["resume"] {
            break asked;
        }
    };
    assert_eq!(second.params, first.params, "the same waiter");
    drop(daemon);
    // Nobody listens, and the harness ends.
    drop(harness.stdin.take());
    harness.wait().unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
}
