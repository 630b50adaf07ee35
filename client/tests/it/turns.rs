//! What is known of turns from files: `turn report`, `show`, `logs`, `policy`, and `ls` beside a daemon by script.

use std::time::Duration;

use expect_test::expect;
use minder_proto::stamp::Stamp;
use minder_tests::files;
use serde_json::json;

use crate::world::daemon::Reply;
use crate::world::turns::{self, append, id, log};
use crate::world::{LIMIT, Ran, World, finish, terminal};

/// A month of turns: two seats, three adapters, a rotated file, and lines that are none.
fn month() -> World {
    let world = World::new();
    let home = world.home();
    let day = |n: u16| format!("2026-11-{:02}T12:00:00.000Z", n % 28 + 1);
    for n in 0..60 {
        let ms = 30_000 + u64::from(n) * 9_000;
        let silence = 2_000 + u64::from(n) * 2_500;
        log(
            &home,
            if n < 30 { "api.jsonl.1" } else { "api.jsonl" },
            n,
            &json!({"ts": day(n), "durationMs": ms, "longestSilenceMs": silence}),
        );
    }
    for n in 60..64 {
        log(
            &home,
            "api.jsonl",
            n,
            &json!({"ts": day(n), "outcome": "failed", "ok": false, "failure": "stall",
            "failureSource": "supervisor", "failureClass": "runtime", "stalled": true, "cancelled": true,
            "killed": true, "exitCode": null, "signal": "SIGKILL", "longestSilenceMs": 900_000,
            "durationMs": 1_000_000, "killedProcesses": 9, "leftBehind": 8}),
        );
    }
    log(&home, "api.jsonl", 64, &json!({"ts": day(8), "outcome": "silent"}));
    let no_usage = json!({"inputTokens": null, "outputTokens": null, "cacheReadTokens": null,
        "cacheWriteTokens": null, "costUsd": null});
    for n in 70..73 {
        let mut change = json!({"ts": day(n), "seat": "nightly", "adapter": "command", "stallMs": 0, "events": 0,
            "toolCalls": 0, "outcome": "failed", "ok": false, "failure": "adapter_exit",
            "failureSource": "adapter", "failureClass": if n == 70 { "quota" } else { "runtime" }, "exitCode": 2});
        change.as_object_mut().unwrap().extend(no_usage.as_object().unwrap().clone());
        log(&home, "nightly.jsonl", n, &change);
    }
    append(&home, "nightly.jsonl", "{\"v\":2,\"ts\":\"2026-11-30T12:00:0\nnot a line at all\n{\"v\":3}\n");
    world
}

/// What a program prints on a terminal of 80 columns, without its colours.
fn at_80(world: &World, words: &[&str]) -> String {
    let mut command = world.command(words);
    let (code, bytes) = terminal::run(command.env("NO_COLOR", "1").env("TERM", "xterm"), 80);
    let text = String::from_utf8(bytes).unwrap();
    assert_eq!(code, 0, "{text}");
    let long: Vec<_> = text.lines().filter(|line| line.chars().count() > 80).collect();
    assert!(long.is_empty(), "wrapped: {long:?}");
    text
}

#[test]
fn m9_a_report_at_eighty_columns() {
    let world = month();
    expect![[r#"
        3 lines cannot be read and count for nothing
        68 turns of 2 seats, 2026-11-01 to 2026-11-28

        OUTCOME             TURNS
        delivered              60   88%
        failed                  7   10%
          stall                 4        runtime 4
          adapter_exit          3        runtime 2, quota 1
        silent                  1    1%

        RAN          TURNS     P50     P90     P99 LONGEST  WALL CLOCK REACHED  NEAREST
        codex           65   5m 9s   9m 3s 16m 40s 16m 40s         46m       0  29m 20s
        command          3      1m      1m      1m      1m         46m       0      45m

        SILENT       TURNS     P50     P90     P99 LONGEST       STALL REACHED  NEAREST
        codex           65  1m 19s  2m 24s     15m     15m         15m       4  12m 30s
        command          3     12s     12s     12s     12s         off

        cost    $2.68 of 65 turns
        tokens  78.0k in, 58.5k out, cache 3.38M read, 201k written, of 65 turns
    "#]]
    .assert_eq(&at_80(&world, &["turn", "report"]));
    let ran = world.run(&["turn", "report", "--json"]);
    assert_eq!(
        (ran.code, ran.err.as_str()),
        (0, "{\"note\":\"3 lines cannot be read and count for nothing\"}\n")
    );
    let report = ran.json();
    assert_eq!((&report["turns"], &report["unreadable"]), (&json!(68), &json!(3)));
    assert_eq!(report["outcomes"], json!({"delivered": 60, "failed": 7, "silent": 1}));
    assert_eq!(report["failures"]["stall"], json!({"turns": 4, "classes": {"runtime": 4}}));
}

#[test]
fn a_report_is_of_a_seat_a_time_and_a_folder() {
    let world = month();
    let turns = |words: &[&str]| {
        let ran = world.run(&[&["turn", "report", "--json"], words].concat());
        assert_eq!(ran.code, 0, "{ran:?}");
        ran.json()["turns"].as_u64().unwrap()
    };
    assert_eq!((turns(&["--seat", "api"]), turns(&["--seat", "nightly"])), (65, 3));
    for words in [&["--seat", "nobody"][..], &["--since", "1s"], &["--since", "0"]] {
        let ran = world.run(&[&["turn", "report"], words].concat());
        assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{ran:?}");
        assert!(ran.err.contains("no turn"), "{ran:?}");
    }
    let now = Stamp::now();
    log(&world.home(), "api.jsonl", 90, &json!({"ts": now}));
    assert_eq!(turns(&["--since", "1h"]), 1);
    // A seat with a name that is no file's name has the file that the daemon gives it.
    log(&world.home(), &format!("{}.jsonl", minder_proto::turn::line::seat("a/b")), 91, &json!({}));
    assert_eq!(turns(&["--seat", "a/b"]), 1);

    let elsewhere = world.root().join("elsewhere");
    let report = |folder: &std::path::Path| {
        let mut command = world.command(&["turn", "report", "--json"]);
        finish(command.env("MINDER_TURN_LOG_DIR", folder), b"")
    };
    assert_eq!(report(&elsewhere).code, 1);
    fs_err::create_dir(&elsewhere).unwrap();
    fs_err::copy(world.home().turns().join("nightly.jsonl"), elsewhere.join("x.jsonl")).unwrap();
    assert_eq!(report(&elsewhere).json()["turns"], 3);
    assert_eq!(report("relative".as_ref()).code, 78);
}

#[test]
fn one_turn_from_its_line() {
    let world = month();
    let home = world.home();
    expect![[r#"
        turn       0199c2d4-90c3-7f0e-8a17-c2b67be20003
        outcome    delivered
        seat       api
        adapter    codex
        ran        57s, since 2026-11-30 11:59:00
        process    4711, exit 0
        output     5120 bytes, first after 800ms, 40 events of progress, 6 tool calls
        silent     9.5s at the longest; stall window 15m
        windows    wall clock 46m, cancel grace 15s
        used       2.4s of CPU, 120 MiB at most
        model      tokens 1.20k in, 900 out, 52.0k read from a cache, 3.10k written to one; $0.0412
    "#]]
    .assert_eq(world.run(&["turn", "show", &id(3).short()]).ok());
    fs_err::create_dir_all(home.turn(id(60))).unwrap();
    let failed = world.run(&["turn", "show", &id(60).to_string()]);
    let root = home.root().display().to_string();
    expect![[r#"
        turn       0199c2d4-90c3-7f0e-8a17-c2b67be2003c
        outcome    failed: stall (supervisor, runtime), cancelled, killed
        seat       api
        adapter    codex
        ran        16m 40s, since 2026-11-30 11:59:00
        process    4711, died of SIGKILL
        output     5120 bytes, first after 800ms, 40 events of progress, 6 tool calls
        silent     15m at the longest; stall window 15m
        windows    wall clock 46m, cancel grace 15s
        tree       9 processes killed, 8 of them after the first had ended; 0 alive
        used       2.4s of CPU, 120 MiB at most
        model      tokens 1.20k in, 900 out, 52.0k read from a cache, 3.10k written to one; $0.0412
        kept       STORE/turns/run/0199c2d4-90c3-7f0e-8a17-c2b67be2003c
    "#]]
    .assert_eq(&failed.ok().replace(&root, "STORE"));
    let object = world.run(&["turn", "show", &id(60).short(), "--json"]).json();
    assert_eq!(
        (&object["line"]["failure"], object["line"]["killed"].as_bool()),
        (&json!("stall"), Some(true))
    );
    assert!(object["kept"].as_str().unwrap().ends_with(&id(60).to_string()));
    assert!(world.run(&["turn", "show", "abcdef"]).failed(2).contains("no turn abcdef"));
    // A word that is the end of two.
    log(&home, "other.jsonl", 7, &json!({"turn": "0299c2d4-90c3-7f0e-8a17-c2b67be20003"}));
    assert!(world.run(&["turn", "show", &id(3).short()]).failed(64).contains("the end of 2 turns"));
    assert!(world.run(&["turn", "show", &id(3).to_string()]).ok().contains("delivered"));
}

#[test]
fn a_turn_without_a_line_is_asked_for() {
    let world = World::new();
    fs_err::create_dir_all(world.home().turn(id(1))).unwrap();
    let asked: Stamp = "2026-11-30T12:00:00.000Z".parse().unwrap();
    let daemon = world.daemon(move |method, _| {
        if method == "turn.list" {
            return Reply::With(json!({"turns": [{"turn": id(1), "seat": "api", "adapter": "codex", "asked": asked,
                "pid": 4711, "age_ms": 62_000, "silence_ms": 3_000, "left_ms": 897_000, "window": "wall_clock",
                "tools": 2, "held": false, "adopted": 0}]}));
        }
        Reply::With(json!({"turn": id(1), "seat": "api", "adapter": "codex", "asked": asked,
            "policy": turns::policy()}))
    });
    let ran = world.run(&["turn", "show", &id(1).short()]);
    assert!(ran.ok().contains("state      running, asked for "), "{ran:?}");
    for line in
        ["process    4711\n", "silent     3.0s, 2 tool calls open\n", "left       14m 57s (wall clock)\n"]
    {
        assert!(ran.out.contains(line), "{ran:?}");
    }
    assert!(ran.out.contains("windows    wall clock 46m, stall off, cancel grace 15s\n"), "{ran:?}");
    let call = daemon.next();
    assert_eq!((call.method.as_str(), &call.params["wait"]), ("turn.get", &json!(false)));
    assert_eq!(daemon.next().method, "turn.list");
    assert_eq!(world.run(&["turn", "show", &id(1).short(), "--json"]).json()["turn"]["seat"], "api");
}

#[test]
fn a_list_has_what_runs_and_what_ended_last() {
    let world = World::new();
    for n in 1..=30 {
        let ts = Stamp::now().minus(Duration::from_secs(60 * u64::from(40 - n) + 30));
        let failure = if n == 28 { json!("adapter_exit") } else { json!(null) };
        let outcome = if n == 28 { "failed" } else { "delivered" };
        log(&world.home(), "api.jsonl", n, &json!({"ts": ts, "outcome": outcome, "failure": failure}));
    }
    let row = |n: u16, more: serde_json::Value| {
        let mut row = json!({"turn": id(n), "seat": "api", "adapter": "codex", "asked": Stamp::now(),
            "age_ms": 62_000, "silence_ms": 3_000, "tools": 0, "held": false, "adopted": 0});
        row.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        row
    };
    let rows = json!({"turns": [
        row(101, json!({"pid": 4711, "left_ms": 897_000, "window": "stall", "tools": 2})),
        // It has a line already: it ended between two looks.
        row(30, json!({"seat": "nightly", "held": true, "left_ms": 540_000, "window": "finish"})),
    ]});
    let daemon = world.daemon(move |_, _| Reply::With(rows.clone()));
    let listed = at_80(&world, &["turn", "ls"]);
    assert_eq!(daemon.next().method, "turn.list");
    expect![[r#"
        TURN      STATE         SEAT     ADAPTER  AGE  SILENCE  LEFT       TOOLS  PID
        7be20065  running       api      codex    1m   3s       14m stall  2      4711
        7be2001e  held          nightly  codex    1m            9m finish
        7be2001d  delivered     api      codex    11m
        7be2001c  adapter_exit  api      codex    12m
        7be2001b  delivered     api      codex    13m
        7be2001a  delivered     api      codex    14m
        7be20019  delivered     api      codex    15m
        7be20018  delivered     api      codex    16m
        7be20017  delivered     api      codex    17m
        7be20016  delivered     api      codex    18m
        7be20015  delivered     api      codex    19m
        2 turns have not ended, 1 held; ended last: 9
    "#]]
    .assert_eq(&listed);
    assert_eq!(world.run(&["turn", "ls", "--running"]).ok().lines().count(), 4);
    let object = world.run(&["turn", "ls", "--json"]).json();
    assert_eq!(
        (object["turns"].as_array().unwrap().len(), object["ended"].as_array().unwrap().len()),
        (2, 9)
    );
    assert!(world.run(&["turn", "ls", "--running", "--json"]).json().get("ended").is_none());
}

#[test]
fn the_policy_at_eighty_columns() {
    let world = World::new();
    let config = world.root().join("config.toml");
    fs_err::write(&config, "[turn]\ncancel_grace = \"20s\"\nstall.codex = \"10m\"\noutput_max = 1000\n")
        .unwrap();
    let policy = |words: &[&str], vars: &[(&str, &str)]| -> Ran {
        let mut command = world.command(&[&["turn", "policy"], words].concat());
        finish(command.env("MINDER_CONFIG", &config).envs(vars.iter().copied()), b"")
    };
    let ran =
        policy(&["codex"], &[("MINDER_TURN_TIMEOUT_MS", "5400000"), ("MINDER_WALL_BACKSTOP_MS", "1e3")]);
    assert_eq!(ran.code, 0, "{ran:?}");
    expect![[r#"
        NAME             VALUE       FROM
        timeout          1h 30m      MINDER_TURN_TIMEOUT_MS
        stall            10m         turn.stall.codex in the file
        stall in a tool  off         default
        cancel grace     20s         turn.cancel_grace in the file
        wall backstop    1m          default
        exit wait        3s          default
        output kept      1000 bytes  turn.output_max in the file
        a turn is asked to end at 1h 30m, and killed at 1h 31m whatever it does
    "#]]
    .assert_eq(&ran.out);
    assert_eq!(ran.err, "MINDER_WALL_BACKSTOP_MS is ignored: a whole number of milliseconds is wanted\n");
    let json = policy(&["claude", "--json"], &[("MINDER_STALL_MS_CLAUDE", "7")]).json();
    assert_eq!((&json["policy"]["stall_ms"], &json["ends_by_ms"]), (&json!(7), &json!(2_760_000)));
    let stall = json["from"].as_array().unwrap().iter().find(|row| row["name"] == "stall").unwrap();
    assert_eq!(stall["from"], json!({"variable": "MINDER_STALL_MS_CLAUDE"}));
    assert!(policy(&["vim"], &[]).failed(64).contains("possible values: command, claude"));
    fs_err::write(&config, "[turn]\ncancel_grace = \"1e3\"\n").unwrap();
    assert!(policy(&["codex"], &[]).failed(78).contains("config.toml:2: "));
}

#[test]
fn the_output_of_a_turn_is_read_from_its_folder() {
    let world = World::new();
    let folder = world.home().turn(id(1));
    fs_err::create_dir_all(&folder).unwrap();
    let logs = |words: &[&str]| world.run(&[&["turn", "logs"], words].concat());
    assert_eq!(logs(&[&id(1).short()]).ok(), "");
    fs_err::write(folder.join("stdout"), "one\ntw\u{f6}\n").unwrap();
    fs_err::write(folder.join("stderr"), "oh\n").unwrap();
    let ran = logs(&[&id(1).to_string()]);
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "one\ntwö\n", "oh\n"));
    let ran = logs(&[&id(1).short(), "--json"]);
    assert_eq!(
        ran.out,
        "{\"stream\":\"stdout\",\"text\":\"one\\ntwö\\n\"}\n{\"stream\":\"stderr\",\"text\":\"oh\\n\"}\n"
    );
    // More than is kept: the beginning, what is missing, the end.
    fs_err::write(folder.join("stdout.tail"), "the end\n").unwrap();
    fs_err::write(folder.join("result.json"), json!({"stdout_bytes": 2_065}).to_string()).unwrap();
    let ran = logs(&[&id(1).short(), "-f"]);
    assert_eq!(
        (ran.out.as_str(), ran.err.as_str()),
        ("one\ntwö\nthe end\n", "2 KiB are not kept here\noh\n")
    );
    // An end that is in the beginning already.
    fs_err::write(folder.join("result.json"), json!({"stdout_bytes": 13}).to_string()).unwrap();
    fs_err::write(folder.join("stdout.tail"), "tw\u{f6}\nmore").unwrap();
    assert_eq!(logs(&[&id(1).short()]).out, "one\ntwö\nmore");

    log(&world.home(), "api.jsonl", 2, &json!({}));
    assert!(logs(&[&id(2).short()]).failed(2).contains("is not kept, it is delivered"));
    logs(&["abcdef"]).failed(2);
    logs(&["xyz"]).failed(64);
    // On a terminal what is printed does nothing to it.
    fs_err::write(folder.join("stdout"), "\u{1b}[2J\n").unwrap();
    let (_, bytes) = terminal::run(&mut world.command(&["turn", "logs", &id(1).short()]), 80);
    assert!(!bytes.contains(&0x1b), "{bytes:?}");
}

#[test]
fn logs_follow_a_turn_to_its_end() {
    let world = World::new();
    let folder = world.home().turn(id(1));
    fs_err::create_dir_all(&folder).unwrap();
    let seen = world.root().join("seen");
    let mut command = world.command(&["turn", "logs", "-f", &id(1).short()]);
    command.stdin(std::process::Stdio::null()).stdout(std::fs::File::create(&seen).unwrap());
    let mut child = command.spawn().unwrap();
    let has = |text: &str| {
        files::wait_for_text(&seen, LIMIT, |shown| (shown == text).then_some(())).unwrap();
    };
    let mut spool = std::fs::File::create(folder.join("stdout")).unwrap();
    std::io::Write::write_all(&mut spool, b"one\n").unwrap();
    has("one\n");
    std::io::Write::write_all(&mut spool, "tw\u{f6}\n".as_bytes()).unwrap();
    has("one\ntwö\n");
    std::io::Write::write_all(&mut spool, b"last").unwrap();
    fs_err::write(folder.join("new"), json!({"stdout_bytes": 13}).to_string()).unwrap();
    fs_err::rename(folder.join("new"), folder.join("result.json")).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(fs_err::read_to_string(&seen).unwrap(), "one\ntwö\nlast");
}

#[test]
fn words_of_the_daemon_are_passed_on() {
    let world = World::new();
    let word = id(9).short();
    let _daemon = world.daemon(|method, params| {
        let counted = params["outcome"] != "silent";
        Reply::With(match method {
            "turn.finish" if !counted => json!({"turn": id(9), "outcome": "delivered", "counted": false}),
            "turn.finish" if params["outcome"] == "dunno" => {
                json!({"turn": id(9), "outcome": "unknown", "counted": true})
            }
            "turn.finish" => json!({"turn": id(9), "outcome": params["outcome"], "counted": true}),
            _ => json!({"turn": id(9), "counted": true}),
        })
    });
    assert_eq!(world.run(&["turn", "cancel", &word]).ok(), "7be20009 is told to end\n");
    assert_eq!(world.run(&["turn", "finish", &word, "claim_lost"]).ok(), "7be20009 claim_lost\n");
    // M5: the first counts, and a later one is told so.
    let late = world.run(&["turn", "finish", &word, "silent"]);
    assert_eq!(late.failed(1), "minder: 7be20009 was finished before: delivered");
    assert_eq!(world.run(&["turn", "finish", &word, "silent", "--json"]).error()["outcome"], "delivered");
    let ran = world.run(&["turn", "finish", &word, "dunno"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "7be20009 unknown\n"));
    assert_eq!(ran.err, "dunno is no outcome; unknown is recorded\n");
    assert!(world.run(&["turn", "finish", &word, "failed"]).failed(64).contains("cannot be failed"));
    world.run(&["turn", "finish", "7be", "silent"]).failed(64);
    world.run(&["turn", "cancel", "7be20009x"]).failed(64);
}
