//! `session wait`: what cli.md says beyond the cases.

use rustix::process::Signal;

use crate::scene::{Scene, Who};

#[test]
fn an_error_that_was_not_asked_for_is_exit_4() {
    let (mut scene, _) = Scene::with_supervisor();
    let w = scene.store.session("w");
    assert_eq!(scene.s("wait w --states done --timeout 0").code, 1);
    scene.store.state(w, "review");
    scene.store.noted(w, "error", "claude (pid 4121) is gone");
    let ran = scene.s("wait w --states done");
    assert_eq!(ran.code, 4, "{ran:?}");
    assert!(ran.out.contains("review → error\nnote: claude (pid 4121) is gone"), "{ran:?}");
    scene.store.state(w, "working");
    scene.store.state(w, "done");
    assert_eq!(scene.s("wait w --states done").code, 0);
    scene.store.state(w, "working");
    scene.store.state(w, "error");
    assert_eq!(scene.s("wait w").code, 0, "error is news like any other");
}

#[test]
fn a_turn_that_ends_is_news_and_brings_its_answer() {
    let (mut scene, _) = Scene::with_supervisor();
    let w = scene.store.session("w");
    assert_eq!(scene.s("wait w --timeout 0").code, 1);
    scene.store.state(w, "working");
    scene.store.turn_end(w, "Both charts render the same.\nNothing else changed.");
    let ran = scene.s("wait w");
    assert_eq!(
        ran.out,
        format!(
            "w worker (w, {}) idle → working → idle\nnote: Both charts render the same.\nanswer: Both charts render the same.\nanswer: Nothing else changed.\n",
            w.short()
        )
    );
    scene.store.state(w, "review");
    assert_eq!(scene.s("wait w --timeout 0").code, 0, "declared after the turn's end");
}

#[test]
fn a_child_is_read_from_the_newest_line_that_a_notice_has_shown() {
    let (mut scene, s) = Scene::with_supervisor();
    let never = scene.store.child("never", Some(s));
    scene.store.state(never, "asking");
    let shown = scene.store.child("shown", Some(s));
    scene.store.state(shown, "working");
    let first = scene.store.state(shown, "review");
    let notice = scene.store.notice(s, shown, first);
    let notice_seq = scene.store.seq(s);
    scene.store.settle(s, notice, notice_seq, "seen");
    assert_eq!(scene.s("wait shown --timeout 0").code, 1, "that review was shown");
    scene.store.state(shown, "working");
    scene.store.state(shown, "done");
    assert_eq!(scene.s("wait shown --json --timeout 0").json()["to"], "done");
    assert_eq!(scene.s("wait never --json --timeout 0").json()["to"], "asking");
    // A waiting notice has shown nothing.
    let other = scene.store.child("other", Some(s));
    let seq = scene.store.state(other, "review");
    scene.store.notice(s, other, seq);
    assert_eq!(scene.s("wait other --json --timeout 0").json()["seq"], seq);
}

#[test]
fn a_session_that_was_sent_to_is_read_from_that_message() {
    let (mut scene, s) = Scene::with_supervisor();
    let w = scene.store.session("w");
    scene.store.state(w, "working");
    scene.store.state(w, "review");
    let (_, seq) = scene.store.message(w, &s.to_string(), "and now?");
    let identity = minder_proto::caller::Identity::Session { id: s };
    minder_client::follow::note_sent(scene.store.home(), &identity, None, w, seq).unwrap();
    scene.store.state(w, "working");
    scene.store.state(w, "done");
    // A later message does not move it.
    let (_, later) = scene.store.message(w, &s.to_string(), "well?");
    minder_client::follow::note_sent(scene.store.home(), &identity, None, w, later).unwrap();
    let ran = scene.s("wait w --json --timeout 0").json();
    assert_eq!((ran["to"].as_str(), ran["states"].as_array().unwrap().len()), (Some("done"), 3));
    assert_eq!(scene.s("wait w --timeout 0").code, 1);
}

#[test]
fn since_starts_there_and_does_not_move_what_is_kept() {
    let (mut scene, _) = Scene::with_supervisor();
    let w = scene.store.session("w");
    let review = (scene.store.state(w, "working"), scene.store.state(w, "review")).1;
    scene.store.state(w, "working");
    let done = scene.store.state(w, "done");
    assert_eq!(scene.s("wait w --timeout 0").code, 1);
    for _ in 0..2 {
        assert_eq!(scene.s("wait w --since 0 --json --timeout 0").json()["seq"], review);
        let since = format!("wait w --since {review} --json --timeout 0");
        assert_eq!(scene.s(&since).json()["seq"], done);
    }
    assert_eq!(scene.s("wait w --timeout 0").code, 1);
    let ran = scene.s("wait w --since 999 --timeout 0");
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("has only 5 lines"), "{ran:?}");
}

#[test]
fn each_returns_when_every_target_has_had_its_event() {
    let (mut scene, _) = Scene::with_supervisor();
    let targets: Vec<_> = (0..3).map(|n| scene.store.session(&format!("w{n}"))).collect();
    assert_eq!(scene.s("wait w0,w1,w2 --timeout 0").code, 1);
    scene.store.state(targets[0], "review");
    scene.store.state(targets[0], "working");
    scene.store.state(targets[0], "done");
    let mut running = scene.start(Who::Session("s"), "wait w0,w1,w2 --each --json --timeout 30");
    assert!(running.line().contains(&targets[0].to_string()));
    scene.store.state(targets[1], "review");
    assert!(running.line().contains(&targets[1].to_string()));
    assert!(!running.has_ended());
    scene.store.state(targets[2], "asking");
    let ran = running.end();
    assert_eq!((ran.code, ran.out.lines().count()), (0, 1), "{ran:?}");
    assert_eq!(scene.s("wait w0 --json --timeout 0").json()["to"], "done", "the second event is still there");
}

#[test]
fn a_person_has_a_position_for_as_long_as_the_shell_lives_and_a_name_keeps_one() {
    let mut scene = Scene::new();
    let w = scene.store.session("w");
    let person = |scene: &Scene, args: &str| scene.run(Who::Person, args);
    assert_eq!(person(&scene, "wait w --timeout 0").code, 1);
    assert_eq!(person(&scene, "wait w --name deploy --timeout 0").code, 1);
    scene.store.state(w, "review");
    let ran = person(&scene, "wait w --timeout 0");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "a person is told nothing of harnesses");
    assert_eq!(person(&scene, "wait w --timeout 0").code, 1);
    // Another shell is another caller: its parent is another process.
    let mut other = scene.command(Who::Person, "sh");
    other.args(["-c", "\"$0\" wait w --timeout 0; echo $?", crate::scene::MINDER]);
    let out = crate::scene::Running::spawn(other).end().out;
    assert_eq!(out, "1\n", "it begins at the log's end");
    let runtime = scene.isolated.runtime_dir().join("minder");
    let folder = std::fs::read_dir(runtime).unwrap().next().unwrap().unwrap().path();
    let files = || {
        std::fs::read_dir(&folder)
            .unwrap()
            .filter(|e| e.as_ref().unwrap().path().extension().is_some_and(|x| x == "json"))
            .count()
    };
    assert_eq!(files(), 2);
    scene.store.state(w, "working");
    assert_eq!(person(&scene, "wait w --timeout 0").code, 1);
    assert_eq!(files(), 1, "the dead shell's file is gone");
    let named = scene.store.home().followers().join("deploy.json");
    assert!(named.is_file());
    let ran = person(&scene, "wait w --name deploy --json --timeout 0");
    assert_eq!((ran.code, ran.json()["to"].as_str()), (0, Some("review")));
}

#[test]
fn a_person_is_told_of_messages_too() {
    let mut scene = Scene::new();
    let w = scene.store.session("w");
    let running = scene.start(Who::Person, "wait --timeout 30");
    running.wait_until_it_sleeps();
    let id = scene.store.message_to_operator(w, "the disk is full");
    let ran = running.end();
    assert_eq!(
        (ran.code, ran.out),
        (0, format!("message {} from w worker (w, {})\n", id.short(), w.short()))
    );
    scene.store.message_to_operator(w, "still");
    assert_eq!(
        scene.run(Who::Person, "wait w --timeout 0").code,
        1,
        "a wait for somebody is not ended by mail"
    );
}

#[test]
fn an_unregistered_agent_may_wait() {
    let mut scene = Scene::new();
    let w = scene.store.session("w");
    let run = |scene: &Scene, args: &str| scene.run(Who::Session("unbound"), args);
    assert_eq!(run(&scene, "wait w --timeout 0").code, 1);
    scene.store.state(w, "review");
    assert_eq!(run(&scene, "wait w --timeout 0").code, 0);
    let ran = run(&scene, "wait w --timeout 500ms");
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("wakes nobody in codex"), "{ran:?}");
    assert_eq!(run(&scene, "wait --only inbox --timeout 0").code, 3);
}

#[test]
fn an_interrupted_wait_keeps_how_far_it_read() {
    let (mut scene, s) = Scene::with_supervisor();
    let w = scene.store.session("w");
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let running = scene.start(Who::Session("s"), "wait w --timeout 30");
        running.wait_until_it_sleeps();
        scene.store.state(w, "working");
        let seq = scene.store.state(w, "parked");
        running.signal(signal);
        let ran = running.end();
        assert_eq!((ran.code, ran.out.as_str()), (code, ""));
        assert!(scene.cursors(s)["follows"][w.to_string()]["seq"].as_u64().unwrap() <= seq);
    }
    scene.store.state(w, "review");
    assert_eq!(scene.s("wait w --timeout 0").code, 0);
}

#[test]
fn a_killed_wait_tells_its_event_again() {
    let (mut scene, _) = Scene::with_supervisor();
    let w = scene.store.session("w");
    let running = scene.start(Who::Session("s"), "wait w --timeout 30");
    running.wait_until_it_sleeps();
    running.signal(Signal::KILL);
    assert_eq!(running.end().code, 137);
    scene.store.state(w, "asking");
    assert_eq!(scene.s("wait w --timeout 0").code, 0, "its place was kept before it slept");
}

#[test]
fn a_position_that_cannot_be_kept_changes_no_exit_code() {
    let (mut scene, s) = Scene::with_supervisor();
    let w = scene.store.session("w");
    assert_eq!(scene.s("wait w --timeout 0").code, 1);
    scene.store.state(w, "review");
    // A folder stands in the way of the file: so it is for root, too.
    let new = scene.store.dir(s).join("cursors.new");
    std::fs::create_dir(&new).unwrap();
    for _ in 0..2 {
        let ran = scene.s("wait w --timeout 0");
        assert_eq!(ran.code, 0, "{ran:?}");
        assert_eq!(ran.err.matches("could not be kept").count(), 1, "{ran:?}");
    }
    std::fs::remove_dir(new).unwrap();
    assert_eq!(scene.s("wait w --timeout 0").code, 0);
    assert_eq!(scene.s("wait w --timeout 0").code, 1);
}

#[test]
fn an_event_that_could_not_be_printed_was_not_told() {
    let (mut scene, _) = Scene::with_supervisor();
    let w = scene.store.session("w");
    assert_eq!(scene.s("wait w --timeout 0").code, 1);
    scene.store.state(w, "review");
    let mut command = scene.command(Who::Session("s"), crate::scene::MINDER);
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output = command.args(["wait", "w", "--timeout", "0"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(74), "{output:?}");
    assert_eq!(scene.s("wait w --timeout 0").code, 0);
}

#[test]
fn k3_what_cannot_be_used_is_refused() {
    let (mut scene, _) = Scene::with_supervisor();
    scene.store.session("w");
    for (args, code) in [
        ("wait w --states revew", 64),
        ("wait w --timeout 1.5h", 64),
        ("wait w --wait", 64),
        ("wait w --only mail", 64),
        ("wait @operator", 64),
        ("wait state:offline", 64),
        ("wait w --each --only inbox", 64),
        ("wait s", 3),
        ("wait .", 3),
        ("wait w,nobody", 2),
        ("wait @parent", 2),
    ] {
        let ran = scene.s(args);
        assert_eq!((ran.code, ran.out.as_str()), (code, ""), "{args}: {ran:?}");
        assert_eq!(ran.err.lines().count(), 1, "{args}: {ran:?}");
    }
    assert_eq!(scene.run(Who::Person, "wait @children --timeout 0").code, 64);
}

#[test]
fn k3_a_prefix_of_two_sessions_lists_both() {
    let mut scene = Scene::new();
    for (id, label) in [("5f1c2d4a", "api-1"), ("5f1c2d4b", "api-2")] {
        let id = format!("{id}-90c3-4f0e-8a17-c2b6d1e4f700").parse().unwrap();
        scene.store.with_id(id, label, None);
    }
    let ran = scene.run(Who::Person, "wait 5f1c2d4 --timeout 0");
    assert_eq!((ran.code, ran.out.as_str()), (64, ""), "{ran:?}");
    assert!(ran.err.contains("api-1 (5f1c2d4a)") && ran.err.contains("api-2 (5f1c2d4b)"), "{ran:?}");
    assert_eq!(scene.run(Who::Person, "wait 5f1c2d4b --timeout 0").code, 1);
}

#[test]
fn k2_a_record_that_cannot_be_read_is_said_and_hides_nothing_else() {
    let (mut scene, _) = Scene::with_supervisor();
    let (bad, w) = (scene.store.session("bad"), scene.store.session("w"));
    std::fs::write(scene.store.dir(bad).join("session.json"), "{\"id\":").unwrap();
    for named in ["bad".to_owned(), bad.to_string()] {
        let ran = scene.s(&format!("wait {named} --timeout 0 --json"));
        assert_eq!((ran.code, ran.out.as_str()), (65, ""), "{ran:?}");
        let object: serde_json::Value = serde_json::from_str(&ran.err).unwrap();
        assert_eq!(object["exit"], 65);
    }
    assert_eq!(scene.s("wait --timeout 0").code, 1);
    std::fs::write(scene.store.timeline(bad), "garbage\n").unwrap();
    scene.store.state(w, "review");
    assert_eq!(scene.s("wait --json --timeout 0").json()["session"], w.to_string());
}

#[test]
fn a_wait_that_starts_before_there_is_a_store_sees_what_comes() {
    let runner = Scene::runner();
    let running = runner.start(Who::Person, "wait --json --timeout 30");
    running.wait_until_it_sleeps();
    let mut store = crate::store_writer::StoreWriter::new(&runner.isolated.minder_home());
    let w = store.session("w");
    store.state(w, "asking");
    let ran = running.end();
    assert_eq!((ran.code, ran.json()["session"].as_str()), (0, Some(w.to_string().as_str())), "{ran:?}");
    assert_eq!(runner.run(Who::Person, "wait nobody").code, 2);
}

#[test]
fn what_is_waited_for_beside_a_deadline_wait_of_another_filter_is_not_lost() {
    let (mut scene, _) = Scene::with_supervisor();
    let w = scene.store.session("w");
    assert_eq!(scene.s("wait w --timeout 0").code, 1);
    let running = scene.start(Who::Session("s"), "wait w --json --timeout 30");
    running.wait_until_it_sleeps();
    running.signal(Signal::STOP);
    scene.store.state(w, "review");
    // This one passes by what the other waits for, and keeps how far it read.
    assert_eq!(scene.s("wait w --states done --timeout 0").code, 1);
    running.signal(Signal::CONT);
    let ran = running.end();
    assert_eq!((ran.code, ran.json()["to"].as_str()), (0, Some("review")));
}
