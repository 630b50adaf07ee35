//! `turn run` beside a daemon by script: what it asks for, what it hands over and says of it, how it exits, and that it
//! waits through signals and restarts.

use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use minder_proto::error::{Fault, Kind, exit};
use minder_tests::process::Process;
use serde_json::{Value, json};

use crate::world::daemon::{Asked, Daemon, Reply};
use crate::world::turns::answer;
use crate::world::{LIMIT, Ran, World, finish, terminal};

/// A daemon whose turns end as `change` says, with this output.
fn ending(world: &World, stdout: &[u8], stderr: &[u8], change: Value) -> Daemon {
    let (out, err) = (world.root().join("out"), world.root().join("err"));
    fs_err::write(&out, stdout).unwrap();
    fs_err::write(&err, stderr).unwrap();
    let length = stdout.len();
    world.daemon(move |method, params| {
        let mut settled = json!({"stdout": out, "stderr": err, "stdout_bytes": length});
        settled.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        Reply::With(match method {
            "turn.run" => answer(&params["turn"], &settled),
            "turn.get" => answer(&params["id"], &settled),
            "turn.finish" => json!({"turn": params["id"], "outcome": params["outcome"], "counted": true}),
            _ => json!({"turn": params["id"], "counted": true}),
        })
    })
}

fn run(world: &World, words: &[&str]) -> Ran {
    world.run(&[&["turn", "run"], words].concat())
}

#[test]
fn what_is_asked_for_is_what_was_typed() {
    let world = World::new();
    let daemon = ending(&world, b"", b"", json!({}));
    let mut command = world.command(&[
        "turn",
        "run",
        "--seat",
        "s",
        "--session",
        "api",
        "--adapter",
        "claude",
        "--timeout",
        "10m",
        "--stall",
        "0",
        "--grace",
        "250ms",
        "--backstop",
        "999d",
        "--event-type",
        "agent.ask",
        "-",
        "--",
        "--model",
        "x",
    ]);
    command
        .env("ANTHROPIC_API_KEY", "k")
        .env("NOT_TEXT", <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(b"\xff"));
    let ran = finish(&mut command, "What é?\n".as_bytes());
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "", ""));
    let asked = daemon.next();
    assert_eq!(asked.method, "turn.run");
    let p = &asked.params;
    assert_eq!(
        p["policy"],
        json!({"timeout_ms": 600_000, "stall_ms": 0, "grace_ms": 250, "backstop_ms": 2_147_483_647_u32})
    );
    assert_eq!((&p["seat"], &p["session"], &p["adapter"]), (&json!("s"), &json!("api"), &json!("claude")));
    assert_eq!((&p["prompt"], &p["argv"]), (&json!("What é?\n"), &json!(["--model", "x"])));
    assert_eq!((&p["event_type"], &p["hold"]), (&json!("agent.ask"), &json!("connection")));
    assert_eq!(&p["dir"], &p["caller"]["dir"]);
    assert_eq!((&p["env"]["ANTHROPIC_API_KEY"], p["env"].get("NOT_TEXT")), (&json!("k"), None));
    let id = p["turn"].as_str().unwrap();
    assert_eq!(uuid::Uuid::parse_str(id).unwrap().get_version_num(), 7);
    let said = daemon.next();
    assert_eq!((said.method.as_str(), &said.params["outcome"]), ("turn.finish", &json!("silent")));
    assert_eq!((said.connection, &said.params["id"]), (asked.connection, &json!(id)));
    // Nothing that can be left out is said.
    run(&world, &["--", "true", "--", "-x"]).ok();
    let p = daemon.next().params;
    assert_eq!(
        (&p["argv"], &p["prompt"], &p["seat"]),
        (&json!(["true", "--", "-x"]), &json!(null), &json!(null))
    );
}

#[test]
fn the_output_is_copied_to_the_byte_and_only_then_delivered() {
    let world = World::new();
    let bytes: Vec<u8> = (0..300_000_u32).map(|i| (i * 7 % 256) as u8).collect();
    let daemon = ending(&world, &bytes, b"warn\xff", json!({}));
    let output =
        minder_tests::process::run(&mut world.command(&["turn", "run", "--", "x"]), b"", LIMIT).unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b"warn\xff"[..]));
    assert!(output.stdout == bytes);
    drop(daemon);
    for (stdout, change, word) in [
        ("ok\n", json!({}), "delivered"),
        ("NO_REPLY\n", json!({}), "silent"),
        ("  \n", json!({}), "silent"),
        ("{\"type\":\"result\"}\n", json!({"text": "the answer"}), "delivered"),
        ("{\"type\":\"result\"}\n", json!({"text": "NO_REPLY"}), "silent"),
    ] {
        let daemon = ending(&world, stdout.as_bytes(), b"", change.clone());
        let ran = run(&world, &["--", "x"]);
        let text = change["text"].as_str().map_or(stdout.to_owned(), |text| format!("{text}\n"));
        assert_eq!(ran.ok(), text);
        daemon.next();
        assert_eq!(daemon.next().params["outcome"], word);
    }
    // What was not kept is said.
    let daemon = ending(&world, b"begin", b"", json!({"stdout_bytes": 2048}));
    let ran = run(&world, &["--", "x"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "begin"));
    assert_eq!(ran.err, "standard output was 2 KiB; the first 5 bytes were kept (turn.output_max)\n");
    drop(daemon);
    // Nobody reads: as a program that writes to nobody, and the reply is lost.
    let daemon = ending(&world, &bytes, b"", json!({}));
    let ran = world.shell("{ minder turn run -- x; echo $? >&2; } | head -c 1 >/dev/null");
    assert_eq!(ran.err, "141\n");
    daemon.next();
    assert_eq!(daemon.next().params["outcome"], "reply_lost");
    // Where it cannot be written, that is a fault, and the same.
    let full = world.shell("minder turn run -- x >/dev/full");
    assert_eq!(full.code, 125, "{full:?}");
    daemon.next();
    assert_eq!(daemon.next().params["outcome"], "reply_lost");
}

#[test]
fn a_failure_has_its_code_and_what_is_not_the_programs_own_one_line() {
    let world = World::new();
    for (change, code, err) in [
        (json!({"failure": "adapter_exit", "exit_code": 3}), 3, ""),
        (
            json!({"failure": "adapter_exit", "exit_code": null, "signal": "SIGKILL", "signal_number": 9}),
            137,
            "",
        ),
        (
            json!({"failure": "stall", "killed": true, "exit_code": null, "why": "no progress for 15 m"}),
            124,
            "turn failed: stall (killed)\n",
        ),
        (json!({"failure": "cancelled"}), 143, "turn failed: cancelled\n"),
        (
            json!({"failure": "not_found", "why": "no program \u{1b}x"}),
            127,
            "turn failed: not_found: no program \\x1bx\n",
        ),
        (
            json!({"failure": "upstream_refused", "why": "limit reached"}),
            1,
            "turn failed: upstream_refused: limit reached\n",
        ),
        (
            json!({"failure": "wall_clock", "killed": true, "survivors": [{"pid": 7, "start": 1, "command": "x"}]}),
            124,
            "turn failed: wall_clock (killed)\n",
        ),
    ] {
        let mut change = change;
        change["outcome"] = json!("failed");
        let daemon = ending(&world, b"partly\n", b"", change.clone());
        let ran = run(&world, &["--", "x"]);
        assert_eq!((ran.code, ran.out.as_str()), (code, "partly\n"), "{change}");
        assert!(ran.err.starts_with(err) && (err.is_empty() == ran.err.is_empty()), "{change}: {ran:?}");
        assert_eq!(ran.err.contains("could not kill: 7 (x)"), change["survivors"].is_array(), "{ran:?}");
        let json = run(&world, &["--json", "--", "x"]);
        assert_eq!((json.code, json.json()["exit"].as_i64()), (code, Some(i64::from(code))));
        assert_eq!(json.json()["reply"], "partly\n");
        if !err.is_empty() {
            let error: Value = serde_json::from_str(json.err.lines().next().unwrap()).unwrap();
            assert_eq!((&error["exit"], &error["kind"]), (&json!(code), &json!("turn_failed")));
        }
        // A turn that failed has its outcome.
        assert!(daemon.calls().iter().all(|c| c.method == "turn.run"));
    }
}

#[test]
fn a_held_turn_is_handed_over_and_left_to_its_finish() {
    let world = World::new();
    let daemon = ending(&world, b"reply\n", b"", json!({}));
    let ran = run(&world, &["--hold", "--", "x"]);
    let asked = daemon.next();
    let id = asked.params["turn"].as_str().unwrap();
    let short = &id[id.len() - 8..];
    assert_eq!((ran.code, ran.out.as_str()), (0, "reply\n"));
    assert_eq!(ran.err, format!("turn {short} is held: minder turn finish {short} OUTCOME\n"));
    assert_eq!(asked.params["hold"], "id");
    let json = run(&world, &["--hold", "--json", "--", "x"]);
    json.ok();
    let asked = daemon.next();
    assert_eq!((&json.json()["turn"], &json.json()["reply"]), (&asked.params["turn"], &json!("reply\n")));
    assert!(json.json()["settled"].get("outcome").is_none());
    assert_eq!(daemon.calls(), []);
    // What nobody could take is not held for anybody.
    let full = world.shell("minder turn run --hold -- x >/dev/full");
    assert_eq!(full.code, 125);
    daemon.next();
    assert_eq!(daemon.next().params["outcome"], "reply_lost");
}

#[test]
fn what_stands_between_is_minders_fault_and_wrong_usage_is_not() {
    let world = World::new();
    let line = run(&world, &["--", "true"]).failed(125).to_owned();
    assert_eq!(line, "minder: no daemon is running, and MINDER_NO_AUTOSTART is set: minder daemon start");
    assert_eq!(run(&world, &["--json", "--", "true"]).error()["exit"], 125);
    // A daemon that says that it goes is waited for.
    for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::Unavailable) {
        let _daemon = world.daemon(move |_, _| Reply::Fault(Fault::new(kind, "no")));
        let kept = [exit::USAGE, exit::DATA, exit::CONFIG].contains(&kind.exit());
        let code = if kept { kind.exit() } else { 125 };
        run(&world, &["--", "true"]).failed(i32::from(code));
    }
    let daemon = ending(&world, b"", b"", json!({}));
    let file = world.root().join("body");
    fs_err::write(&file, "text").unwrap();
    let file = file.to_str().unwrap();
    for words in [
        &[][..],
        &["true"],
        &["make", "test"],
        &["-"],
        &["--adapter", "vim", "-"],
        &["--adapter", "claude", "a prompt in words"],
        &["--seat", "", "--", "true"],
        &["--event-type", "in words", "--", "true"],
        &["--timeout", "0", "--", "true"],
        &["--timeout", " 5", "--", "true"],
        &["--stall", "-1", "--", "true"],
        &["--adapter", "claude", "-", "--body-file", file],
        &["--no-supervise"],
        &["--no-supervise", "--timeout", "5s", "--", "true"],
        &["--no-supervise", "--hold", "--", "true"],
        &["--no-supervise", "--body-file", file, "-", "--", "true"],
        &["--frobnicate", "--", "true"],
    ] {
        run(&world, words).failed(64);
        assert_eq!(run(&world, &[&["--json"], words].concat()).error()["exit"], 64, "{words:?}");
    }
    let ran = world.run_with(&["turn", "run", "--adapter", "claude", "-"], b"a\0b");
    assert!(ran.failed(65).contains("the prompt holds a NUL byte"), "{ran:?}");
    assert_eq!(daemon.calls(), []);
}

#[test]
fn a_turn_is_found_again_after_the_daemon_went() {
    let world = World::new();
    let gone = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&gone);
    let out = world.root().join("out");
    fs_err::write(&out, "reply\n").unwrap();
    let daemon = world.daemon(move |method, params| match method {
        "turn.run" => Reply::Die,
        "turn.get" => match count.fetch_add(1, Ordering::SeqCst) {
            0 => Reply::Die,
            1 => Reply::Fault(Fault::new(Kind::Unavailable, "the daemon is going down")),
            _ => Reply::With(answer(&params["id"], &json!({"stdout": out, "stdout_bytes": 6}))),
        },
        _ => Reply::With(json!({"turn": params["id"], "outcome": params["outcome"], "counted": true})),
    });
    assert_eq!(run(&world, &["--", "x"]).ok(), "reply\n");
    let calls: Vec<Asked> = daemon.calls();
    let methods: Vec<&str> = calls.iter().map(|c| c.method.as_str()).collect();
    assert_eq!(methods, ["turn.run", "turn.get", "turn.get", "turn.get", "turn.finish"]);
    assert_eq!((&calls[1].params["id"], &calls[1].params["wait"]), (&calls[0].params["turn"], &json!(true)));
    // The connection that it is held for is the one on which it was found.
    assert_eq!(calls[4].connection, calls[3].connection);
    drop(daemon);
    let _daemon = world.daemon(|method, _| match method {
        "turn.run" => Reply::Die,
        _ => Reply::Fault(Fault::new(Kind::NotFound, "no such turn")),
    });
    assert!(run(&world, &["--", "x"]).failed(125).contains("before it took the turn"));
}

#[test]
fn f10_a_signal_becomes_a_cancel_and_the_wait_goes_on() {
    for (signal, code) in [
        (rustix::process::Signal::TERM, 143),
        (rustix::process::Signal::INT, 130),
        (rustix::process::Signal::HUP, 129),
    ] {
        let world = World::new();
        let (tell, told) = channel();
        let told = Mutex::new(told);
        let daemon = world.daemon(move |method, params| match method {
            // Settled by the second cancel.
            "turn.run" => {
                let told = told.lock().unwrap();
                told.recv_timeout(LIMIT).unwrap();
                told.recv_timeout(LIMIT).unwrap();
                Reply::With(answer(&params["turn"], &json!({"failure": "cancelled", "outcome": "failed"})))
            }
            _ => {
                tell.send(()).unwrap();
                Reply::With(json!({"turn": params["id"], "counted": true}))
            }
        });
        let mut command = world.command(&["turn", "run", "--", "sleep", "600"]);
        let child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let process = Process::open(child.id()).unwrap().unwrap();
        let run = daemon.next();
        for _ in 0..2 {
            assert!(process.signal(signal));
            let cancel = daemon.next();
            assert_eq!((cancel.method.as_str(), &cancel.params["id"]), ("turn.cancel", &run.params["turn"]));
            assert_ne!(cancel.connection, run.connection);
        }
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(code));
        assert_eq!(output.stderr, b"turn failed: cancelled\n");
    }
}

#[test]
fn without_supervision_it_is_the_program_itself() {
    let world = World::new();
    let plain = |words: &[&str]| run(&world, &[&["--no-supervise", "--"], words].concat());
    let ran = plain(&["sh", "-c", "echo out; echo err >&2; cat; exit 7"]);
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (7, "out\n", "err\n"));
    assert!(plain(&["no-such-program-anywhere"]).failed(127).contains("no-such-program-anywhere"));
    plain(&["/"]).failed(126);
    let died = world.shell("minder turn run --no-supervise -- sh -c 'kill -9 $$'");
    assert_eq!(died.code, 137);
    let fed = world.run_with(&["turn", "run", "--no-supervise", "-", "--", "cat"], b"prompt");
    assert_eq!(fed.ok(), "prompt");
    let file = world.root().join("body");
    fs_err::write(&file, "text").unwrap();
    let fed = run(&world, &["--no-supervise", "--body-file", file.to_str().unwrap(), "--", "cat"]);
    assert_eq!(fed.ok(), "text");
}

#[test]
fn a_terminal_is_shown_how_it_goes_and_nothing_stays_of_it() {
    let world = World::new();
    let home = world.home();
    let (tell, told) = channel::<()>();
    let told = Mutex::new(told);
    let _daemon = world.daemon(move |method, params| match method {
        "turn.run" => {
            let id = params["turn"].as_str().unwrap().parse().unwrap();
            let folder = home.turn(id);
            fs_err::create_dir_all(&folder).unwrap();
            let progress = json!({"pid": 7, "at_ms": 0, "progress_ms": 0, "stdout": 0, "stderr": 0, "tools": 1,
                "start_mono_ms": 0, "trigger": null});
            fs_err::write(folder.join("progress"), format!("{progress:<319}\n")).unwrap();
            let _ = told.lock().unwrap().recv_timeout(std::time::Duration::from_millis(2_500));
            Reply::With(answer(&params["turn"], &json!({"text": "done"})))
        }
        _ => Reply::With(json!({"turn": params["id"], "outcome": params["outcome"], "counted": true})),
    });
    let (code, bytes) = terminal::run(world.command(&["turn", "run", "--", "x"]).env("TERM", "xterm"), 80);
    drop(tell);
    let text = String::from_utf8(bytes).unwrap();
    assert_eq!(code, 0, "{text}");
    assert!(text.contains(", silent ") && text.contains("1 tool open"), "{text:?}");
    assert!(text.ends_with("\r\u{1b}[Kdone\n"), "{text:?}");
}
