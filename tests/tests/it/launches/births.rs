//! A session is born once, and up or said to have failed.

use minder_proto::event::Receipt;
use minder_proto::record::Channel;
use minder_proto::state::State;
use minder_tests::files;

use super::stage::Stage;
use crate::scene::LIMIT;

#[test]
fn a_worker_is_registered_started_and_given_its_first_message() {
    let stage = Stage::new();
    let scene = &stage.scene;
    let lead = scene.minder(&["new", "--label", "lead"]).ok().trim().parse().unwrap();
    let socket = stage.tmux.socket().to_str().unwrap();
    let words = ["launch", "--label", "api", "--tmux", socket, "--parent", "lead", "--stdin"];
    let variables = [
        "ANTHROPIC_BASE_URL=http://127.0.0.1:9",
        "GATEWAY_TOKEN=secret",
        "CLAUDE_CODE_MESSAGING_TOKEN=other's",
    ];
    let ran = stage.minder_with(&variables, &words, "build it\n-- and `test` it\n");
    let api = ran.ok().trim().parse().unwrap();
    let message = scene.wait(api, "its message", || scene.messages(api).first().cloned());
    let line = scene.wait_receipt(api, message.id, Receipt::Answered);
    assert_eq!(line.reason.unwrap().split(' ').next(), Some("turn"));
    let road = scene.road(api, message.id);
    assert!(
        road.starts_with("queued, held(not-ready), ") && road.ends_with("handed, seen, answered"),
        "{road}"
    );

    // Its process is what stands in its window, and was known before its program was.
    let record = scene.record(api);
    assert_eq!((record.channel, record.harness.as_deref()), (Channel::Hook, Some("claude")));
    assert_eq!((record.parent, record.bindings.len(), record.incarnation), (Some(lead), 1, 0));
    assert_eq!(record.bindings[0].id, format!("c-{}", record.process.unwrap().pid));
    assert!(!record.launch.unwrap().pending);
    assert_eq!(stage.windows(), ["api"]);

    // What it was given: its caller's, but for what names somebody else, and who it is.
    let env = stage.env_of_program();
    let value = |name: &str| env.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str());
    assert_eq!(value("ANTHROPIC_BASE_URL"), Some("http://127.0.0.1:9"));
    assert_eq!(value("MINDER_SESSION"), Some(api.to_string().as_str()));
    assert!(value("MINDER_TOKEN").is_some_and(|token| token.len() == 64));
    assert_eq!((value("GATEWAY_TOKEN"), value("CLAUDE_CODE_MESSAGING_TOKEN")), (None, None));
    // Its message was on no command line.
    assert_eq!(stage.calls(), [""]);
    // Whoever launched it is told of its state, as of any child's.
    let path: Vec<State> = scene.path(api).into_iter().map(|(state, _)| state).collect();
    assert_eq!(path, [State::Working, State::Idle]);
    scene.wait(lead, "the notice", || (!scene.notices(lead, api).is_empty()).then_some(()));
}

#[test]
fn d8_what_comes_too_early_waits_and_is_given_once_as_text() {
    let stage = Stage::new();
    let open = stage.gate();
    let scene = &stage.scene;
    let api = stage.launched("api", &["--harness", "claude"]);
    let sent = scene.minder(&["send", "api", "/x"]).ok();
    assert!(sent.contains("held(not-ready)"), "{sent}");
    assert_eq!(scene.record(api).state, State::Queued);
    let id = scene.sent(api, &sent);
    open();
    scene.wait_receipt(api, id, Receipt::Answered);
    let woken = std::fs::read_to_string(stage.folder().join("woken")).unwrap();
    assert!(woken.starts_with("[minder] message "), "{woken}");
    assert_eq!(woken.matches("\n/x\n").count(), 1, "{woken}");
}

#[test]
fn i6_launched_twice_by_one_key_is_one_session_and_one_process() {
    let stage = Stage::new();
    let _gate = stage.gate();
    let words = ["--harness", "claude", "--key", "k1"];
    let first = stage.launched("api", &words);
    // The answer was lost: the caller asks again.
    assert_eq!(stage.launched("api", &words), first);
    assert_eq!((stage.windows().len(), stage.scene.records().len()), (1, 1));
    files::wait_for(&stage.folder(), LIMIT, || (!stage.calls().is_empty()).then_some(())).unwrap();
    assert_eq!(stage.calls().len(), 1);
    let other = stage.launch("api", &["--harness", "claude", "--key", "k1", "more"]);
    assert!(other.code == 75 || other.code == 3, "another launch under its key: {other:?}");
}

#[test]
fn i6_a_program_that_ends_at_once_three_times_is_one_error_with_its_words_and_no_window() {
    let stage = Stage::new();
    let scene = &stage.scene;
    stage.program(
        "pi",
        "#!/bin/sh\necho $$ >> \"$(dirname $0)/../ran\"\necho no model\necho 'try --help'\nexit 3\n",
    );
    let lead = scene.minder(&["new", "--label", "lead"]).ok().trim().parse().unwrap();
    let api = stage.launched("api", &["--harness", "pi", "--parent", "lead", "do it"]);
    let (_, error) = scene.wait_move(api, 0, State::Error);
    let note = "pi ended at once, 3 times (exit 3): no model / try --help";
    assert_eq!(error.note.as_deref(), Some(note));
    assert_eq!(scene.path(api).len(), 1, "one line, and no working");
    let ran = std::fs::read_to_string(stage.folder().join("ran")).unwrap();
    assert_eq!(ran.lines().count(), 3);
    assert_eq!(stage.windows(), [""; 0]);
    let notice = scene.wait(lead, "the notice", || scene.notices(lead, api).pop());
    assert!(notice.about.is_some());
}

#[test]
fn what_cannot_be_started_is_said_to_who_asked() {
    let stage = Stage::new();
    let ran = stage.launch("api", &["--", "no-such-program", "x"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (4, ""));
    assert!(ran.stderr.contains("it could not be started: no-such-program: no such program"), "{ran:?}");
    let record = &stage.scene.records()[0];
    assert_eq!(
        (record.state, record.note.as_deref()),
        (State::Error, Some("no-such-program: no such program"))
    );
    assert_eq!(stage.windows(), [""; 0]);
    // Nor is there anything to choose from.
    let ran = stage.launch("web", &["--harness", "emacs"]);
    assert_eq!(ran.code, 64);
    assert_eq!(stage.scene.records().len(), 1);
}

#[test]
fn a_harness_that_shows_no_sign_of_life_is_told_of_and_heard_when_it_does() {
    let stage = Stage::new();
    let config = stage.scene.isolated.config_home().join("minder/config.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    std::fs::write(config, "[launch]\nready = \"10ms\"\n").unwrap();
    let open = stage.gate();
    let api = stage.launched("api", &["--harness", "claude"]);
    let (seq, asks) = stage.scene.wait_move(api, 0, State::Asking);
    assert_eq!(asks.note.as_deref(), Some("not up: a trust, login or update screen?"));
    open();
    stage.scene.wait_move(api, seq, State::Idle);
    // It is an ordinary session from here on: its end is told as any other's.
    stage.process(api).end(LIMIT);
    stage.scene.wait_record(api, "its end", |r| r.process.as_ref().is_some_and(|p| p.ended.is_some()));
    assert_eq!(stage.scene.record(api).state, State::Idle);
}

#[test]
fn a_start_outlives_the_daemon_that_began_it() {
    let stage = Stage::new();
    let open = stage.gate();
    let (api, web) =
        (stage.launched("api", &["--harness", "claude"]), stage.launched("web", &["--harness", "claude"]));
    let daemon = stage.scene.isolated.daemon().unwrap();
    daemon.signal(rustix::process::Signal::KILL);
    assert!(daemon.wait(LIMIT));
    stage.process(web).end(LIMIT);
    // The next daemon finds one that runs and one that does not.
    stage.scene.minder(&["daemon", "start"]).ok();
    let (_, error) = stage.scene.wait_move(web, 0, State::Error);
    assert!(error.note.unwrap().contains("before it was up"), "one that had ended");
    open();
    stage.scene.wait_move(api, 0, State::Idle);
    stage.scene.wait_record(api, "its hook", |r| r.launch.as_ref().is_some_and(|launch| !launch.pending));
    // The window of the one is as the user has it, that of the other is gone, and so are the ways in.
    let option = || stage.tmux_says(&["show-options", "-pqv", "-t", "=api", "remain-on-exit"]);
    stage.scene.wait(api, "its window", || option().trim().is_empty().then_some(()));
    stage.scene.wait(web, "no window", || (stage.windows() == ["api"]).then_some(()));
    let run = stage.scene.home.run();
    let names = std::fs::read_dir(run).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(names.filter(|name| name.to_str().unwrap().starts_with("start-")).count(), 0);
}

#[test]
fn a_first_hook_that_the_daemon_reads_later_is_of_its_session() {
    let stage = Stage::new();
    let open = stage.gate();
    let api = stage.launched("api", &["--harness", "claude"]);
    let daemon = stage.scene.isolated.daemon().unwrap();
    daemon.signal(rustix::process::Signal::KILL);
    assert!(daemon.wait(LIMIT));
    open();
    let spooled = || stage.scene.spooled().first().cloned();
    stage.scene.wait(api, "a hook in the spool", spooled);
    stage.scene.minder(&["daemon", "start"]).ok();
    stage.scene.wait_record(api, "its conversation", |r| !r.bindings.is_empty());
    assert_eq!(stage.scene.records().len(), 1);
}

#[test]
fn what_was_launched_goes_with_its_session() {
    let stage = Stage::new();
    let api = stage.launched("api", &["--harness", "claude"]);
    stage.scene.wait_move(api, 0, State::Idle);
    let process = stage.process(api);
    let said = stage.scene.minder(&["close", "api"]).ok();
    assert_eq!(said, format!("api ({}) closed\n", api.short()));
    assert!(process.wait(LIMIT));
}

#[test]
fn without_a_tmux_each_message_is_a_turn() {
    let stage = Stage::new();
    let words = ["launch", "--label", "api", "--in", "headless", "the text", "--", "cat"];
    let api = stage.minder_with(&[], &words, "").ok().trim().parse().unwrap();
    let message = stage.scene.messages(api).remove(0);
    stage.scene.wait_receipt(api, message.id, Receipt::Answered);
    assert!(stage.windows().is_empty());
    let (_, idle) = stage.scene.moves(api).pop().unwrap();
    assert!(idle.text.unwrap().contains("the text"));
}

/// A harness that tells of its start with its first prompt, and waits for that at a gate.
const LATE: &str = r#"#!/bin/sh
root=$(dirname "$0")/..
read x < "$root/gate"
jq -nc --arg id "t-$$" --arg cwd "$PWD" \
  '{session_id: $id, hook_event_name: "SessionStart", transcript_path: null, cwd: $cwd, source: "startup"}' |
  minder hook codex >/dev/null
exec sleep 1000
"#;

#[test]
fn i1_a_harness_that_tells_of_itself_long_after_it_is_up_is_its_session() {
    let stage = Stage::new();
    stage.program("codex", LATE);
    let open = stage.gate();
    let api = stage.launched("api", &["--harness", "codex"]);
    stage.scene.wait_record(api, "up", |r| r.launch.as_ref().is_some_and(|l| !l.pending));

    open();
    let bound = |r: &minder_proto::record::SessionRecord| !r.bindings.is_empty();
    let record = stage.scene.wait(api, "its conversation", || stage.scene.records().into_iter().find(bound));
    assert_eq!((record.id, record.incarnation, stage.scene.records().len()), (api, 0, 1));
    assert_eq!(record.bindings[0].id, format!("t-{}", record.process.unwrap().pid));
}

#[test]
fn a_folder_named_like_a_format_of_tmux_runs_nothing() {
    let stage = Stage::new();
    let proof = stage.folder().join("proof");
    let folder = stage.folder().join("#(touch proof)#S");
    std::fs::create_dir_all(&folder).unwrap();
    let words =
        ["--dir", folder.to_str().unwrap(), "--", "sh", "-c", "pwd > \"$0\"", proof.to_str().unwrap()];
    let api = stage.launched("api", &words);
    stage.scene.wait_move(api, 0, State::Done);
    assert_eq!(std::fs::read_to_string(&proof).unwrap().trim_end(), folder.to_str().unwrap());
    let shown = stage.tmux_says(&["show-options", "-gqv", "@none"]);
    assert_eq!(shown, "", "the server still answers");
    for place in [stage.folder(), folder, stage.scene.isolated.home().clone(), "/".into()] {
        assert!(!place.join("proof").exists() || place == stage.folder(), "{}", place.display());
    }
}

#[test]
fn a_program_that_is_done_in_no_time_is_not_run_again() {
    let stage = Stage::new();
    let ran = stage.folder().join("ran");
    for (label, code, state, note) in [
        ("well", "0", State::Done, "sh ended (exit 0)"),
        ("ill", "3", State::Error, "ended before it was up (exit 3): no"),
    ] {
        let script = format!("echo x >> '{}'; echo no; exit {code}", ran.display());
        let id = stage.launched(label, &["--", "sh", "-c", &script]);
        let (_, line) = stage.scene.wait_move(id, 0, state);
        assert!(line.note.as_deref().unwrap().ends_with(note), "{line:?}");
    }
    assert_eq!(std::fs::read_to_string(ran).unwrap(), "x\nx\n");
    assert_eq!(stage.windows(), [""; 0]);
}

#[test]
fn i6_its_key_tells_of_a_start_that_failed() {
    let stage = Stage::new();
    let words = ["--key", "k1", "--", "no-such-program"];
    for _ in 0..2 {
        let ran = stage.launch("api", &words);
        assert_eq!((ran.code, ran.stdout.as_str()), (4, ""), "{ran:?}");
        assert!(ran.stderr.contains("no such program"), "{ran:?}");
    }
    assert_eq!(stage.scene.records().len(), 1);
}

#[test]
fn what_would_be_lost_or_done_twice_is_refused_at_launch() {
    let stage = Stage::new();
    let text = stage.launch("api", &["--harness", "gemini", "do it"]);
    assert_eq!((text.code, text.stdout.as_str()), (3, ""), "{text:?}");
    assert!(text.stderr.contains("--in headless"), "{text:?}");
    let work = stage.launch("api", &["--harness", "claude", "--", "--model", "m", "fix it"]);
    assert_eq!((work.code, work.stdout.as_str()), (64, ""), "{work:?}");
    assert!(work.stderr.contains("\"fix it\" is no option of claude"), "{work:?}");
    assert!(stage.scene.records().is_empty());
}

#[test]
fn c10_what_was_sent_before_its_birth_comes_first() {
    let stage = Stage::new();
    let scene = &stage.scene;
    let dir = stage.folder().display().to_string();
    let new = ["new", "--label", "late", "--harness", "claude", "--channel", "hook", "--dir", &dir];
    stage.minder_with(&[], &new, "").ok();
    let late = scene.session("late");
    let sent = ["the first", "the second"].map(|text| {
        let printed = scene.minder(&["send", "late", text]).ok();
        scene.sent(late, &printed)
    });
    let daemon = scene.isolated.daemon().unwrap();
    daemon.signal(rustix::process::Signal::KILL);
    assert!(daemon.wait(LIMIT));
    scene.minder(&["daemon", "start"]).ok();
    let socket = stage.tmux.socket().to_str().unwrap().to_owned();
    stage.minder_with(&[], &["relaunch", "late", "--tmux", &socket], "").ok();
    for id in sent {
        scene.wait_receipt(late, id, Receipt::Answered);
    }
    let after = scene.minder(&["send", "late", "the third"]).ok();
    scene.wait_receipt(late, scene.sent(late, &after), Receipt::Answered);
    let woken = std::fs::read_to_string(stage.folder().join("woken")).unwrap();
    let places = ["the first", "the second", "the third"].map(|text| woken.find(text).unwrap());
    assert!(places.is_sorted() && woken.starts_with("[minder] message"), "{woken}");
    assert_eq!(woken.matches("the first").count(), 1, "{woken}");
}

/// What a worker is launched with reaches it whole, whatever its size and its beginning.
#[test]
fn d6_the_whole_first_message_reaches_what_is_launched() {
    let stage = Stage::new();
    let scene = &stage.scene;
    let socket = stage.tmux.socket().to_str().unwrap().to_owned();
    let wide = "\u{4f60}\u{597d}\u{1f389}";
    let lines = vec!["\u{597d}\u{1f389}x".repeat(11); 60].join("\n");
    let mut bodies: Vec<String> = ["x", "-rf /", "/clear", "!ls", " blank", wide].map(str::to_owned).into();
    bodies.extend([511, 512, 513].map(|n| "x".repeat(n)));
    bodies.extend([lines, format!("{}{wide}", "y".repeat(65_527))]);
    for (n, body) in bodies.iter().enumerate() {
        let label = format!("w{n}");
        let words = ["launch", "--label", &label, "--harness", "claude", "--tmux", &socket, "--stdin"];
        let id = stage.minder_with(&[], &words, body).ok().trim().parse().unwrap();
        let message = scene.wait(id, "its message", || scene.messages(id).first().cloned());
        assert_eq!(&message.body, body);
        let read = || {
            let last = scene.receipts(id, message.id).pop()?;
            (last.r == Receipt::Answered || last.reason.as_deref() == Some("pointer-seen")).then_some(last.r)
        };
        let whole = scene.wait(id, "that it is read", read) == Receipt::Answered;
        let woken = std::fs::read_to_string(stage.folder().join("woken")).unwrap();
        let at = woken.find(&format!("[minder] message {}", message.id.short())).unwrap();
        let text = woken[at..].split_once("\n\n").unwrap().1;
        if whole {
            assert_eq!(text.strip_suffix('\n'), Some(body.as_str()));
        } else {
            assert!(body.chars().count() > 2_000 && text.contains("minder inbox ack"), "{text}");
            let list = scene.minder(&["--as", &label, "inbox", "list", "--json"]).ok();
            let list: serde_json::Value = serde_json::from_str(&list).unwrap();
            assert_eq!(list["messages"][0]["body"], body.as_str());
        }
        scene.minder(&["close", &label]).ok();
    }
    // Over the limit nothing is started.
    let windows = stage.windows().len();
    let words = ["launch", "--label", "big", "--harness", "claude", "--tmux", &socket, "--stdin"];
    let over = stage.minder_with(&[], &words, &"x".repeat(1024 * 1024));
    assert_eq!((over.code, over.stdout.as_str()), (65, ""), "{over:?}");
    assert_eq!((stage.windows().len(), scene.records().len()), (windows, 0));
}
