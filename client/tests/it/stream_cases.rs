//! `watch stream`: what it shows, from where, and what it leaves behind.

use minder_proto::id::SessionId;
use minder_proto::stamp::Stamp;
use rustix::process::Signal;

use crate::scene::{MINDER, Running, Scene, Who};

fn start(scene: &Scene, args: &str) -> Running {
    let running = scene.start(Who::Person, &format!("watch stream {args}"));
    running.wait_until_it_sleeps();
    running
}

/// The next line without its time.
fn line(running: &mut Running) -> String {
    running.line().split_once("  ").unwrap().1.to_owned()
}

/// Stamps have milliseconds, and what is to stand in the order of time needs different ones.
fn another_millisecond() {
    let now = Stamp::now();
    while Stamp::now() == now {
        std::thread::yield_now();
    }
}

#[test]
fn every_event_is_one_line_as_it_happens() {
    let mut scene = Scene::new();
    let api = scene.store.session("api");
    scene.store.state(api, "working");
    let mut running = start(&scene, "");
    scene.store.noted(api, "review", "PR 12 is up\nsecond line");
    assert_eq!(line(&mut running), "api worker (api)  working → review  PR 12 is up\\nsecond line");
    scene.store.message(api, "operator", "merge it\nplease");
    assert_eq!(line(&mut running), "api worker (api)  message from operator: merge it");
    let late = scene.store.session("late");
    assert_eq!(line(&mut running), "late worker (late)  new → idle");
    scene.store.state(late, "asking");
    assert_eq!(line(&mut running), "late worker (late)  idle → asking");
    scene.store.line(api, serde_json::json!({"kind": "hologram"}));
    let strange = format!("api worker (api, {}): a line of kind \"hologram\" was passed over", api.short());
    assert_eq!(line(&mut running), strange);
    scene.store.close(late, "bye");
    assert_eq!(line(&mut running), "late worker (late)  closed by operator  bye");
    running.signal(Signal::INT);
    let ran = running.end();
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (130, "", ""));
    assert!(!scene.store.home().followers().exists(), "no position without a name");
}

#[test]
fn since_tells_what_was_in_the_order_of_time() {
    let mut scene = Scene::new();
    let (api, web) = (scene.store.session("api"), scene.store.session("web"));
    for (id, to) in [(api, "working"), (web, "working"), (api, "review"), (web, "asking"), (api, "done")] {
        scene.store.state(id, to);
        another_millisecond();
    }
    for since in ["0", "1h"] {
        let mut running = start(&scene, &format!("--since {since}"));
        let seen: Vec<String> = (0..5).map(|_| line(&mut running)).collect();
        assert_eq!(
            seen,
            [
                "api worker (api)  idle → working",
                "web worker (web)  idle → working",
                "api worker (api)  working → review",
                "web worker (web)  working → asking",
                "api worker (api)  review → done"
            ],
            "{since}"
        );
        running.signal(Signal::TERM);
        assert_eq!(running.end().code, 143);
    }
    let mut running = start(&scene, "api,web --since 3 --no-announce");
    assert_eq!(line(&mut running), "api worker (api)  review → done");
    let mut running = start(&scene, "--since 0 --states asking");
    assert_eq!(line(&mut running), "web worker (web)  working → asking");
    // A long time ago is before the first line; no time ago is now.
    let mut running = start(&scene, "--since 1ms");
    scene.store.state(api, "parked");
    assert_eq!(line(&mut running), "api worker (api)  done → parked");
}

#[test]
fn a_name_keeps_the_position_and_what_appears_between_is_new() {
    let mut scene = Scene::new();
    let api = scene.store.session("api");
    let mut running = start(&scene, "--name desk");
    scene.store.state(api, "working");
    assert_eq!(line(&mut running), "api worker (api)  idle → working");
    running.wait_until_it_sleeps();
    running.signal(Signal::INT);
    running.end();
    scene.store.state(api, "review");
    let late = scene.store.session("late");
    scene.store.state(late, "asking");
    let mut running = start(&scene, "--name desk");
    let mut seen: Vec<String> = (0..3).map(|_| line(&mut running)).collect();
    seen.sort();
    assert_eq!(
        seen,
        [
            "api worker (api)  working → review",
            "late worker (late)  idle → asking",
            "late worker (late)  new → idle"
        ]
    );
    running.wait_until_it_sleeps();
    running.signal(Signal::KILL);
    running.end();
    let mut running = start(&scene, "--name desk");
    scene.store.state(api, "done");
    assert_eq!(line(&mut running), "api worker (api)  review → done", "nothing is shown twice");
}

#[test]
fn a_broad_selection_takes_in_what_comes_to_match() {
    let mut scene = Scene::new();
    scene.store.session("web");
    let mut running = start(&scene, "api-* --no-announce");
    let other = scene.store.session("other");
    scene.store.state(other, "working");
    let api = scene.store.session("api-1");
    scene.store.state(api, "working");
    assert_eq!(line(&mut running), "api-1 worker (api-1)  new → idle");
    assert_eq!(line(&mut running), "api-1 worker (api-1)  idle → working");
}

#[test]
fn a_stream_of_named_sessions_ends_with_the_last() {
    let mut scene = Scene::new();
    let api = scene.store.session("api");
    let mut running = start(&scene, "api --no-announce");
    scene.store.close(api, "bye");
    assert_eq!(line(&mut running), "api worker (api)  closed by operator  bye");
    assert_eq!(running.end().code, 2);
    assert_eq!(scene.run(Who::Person, "watch stream nobody").code, 2);
}

#[test]
fn a_reader_that_goes_ends_it_quietly() {
    let mut scene = Scene::new();
    let api = scene.store.session("api");
    scene.store.burst(api, 2_000);
    let mut shell = scene.command(Who::Person, "sh");
    shell.args(["-c", "\"$0\" watch stream --since 0 | head -n 1; echo $?", MINDER]);
    let ran = Running::spawn(shell).end();
    assert_eq!((ran.out.lines().count(), ran.err.as_str()), (2, ""), "{ran:?}");
}

#[test]
fn k5_hostile_text_reaches_no_terminal() {
    let mut scene = Scene::new();
    let api = scene.store.session("api");
    let mut running = start(&scene, "");
    let evil = "a\u{1b}]52;c;aGk=\u{7}\r\u{9b}2J\u{2028}\u{202e}b";
    scene.store.noted(api, "review", evil);
    scene.store.message(api, "operator", evil);
    for _ in 0..2 {
        let line = running.line();
        assert!(line.chars().all(|c| !c.is_control() && c != '\u{202e}' && c != '\u{2028}'), "{line:?}");
        assert!(line.contains("\\x1b]52"), "{line}");
    }
    let ran = scene.run(Who::Person, "wait api --since 0 --timeout 0");
    assert_eq!(ran.out.lines().count(), 2, "{ran:?}");
    assert!(ran.out.chars().all(|c| c == '\n' || !c.is_control()), "{ran:?}");
    let json = scene.run(Who::Person, "wait api --since 0 --timeout 0 --json").json();
    assert_eq!(json["note"], evil);
}

/// The messages in the spool: whom each is for, its class and its text.
fn spooled(scene: &Scene) -> Vec<(String, String, String)> {
    let Ok(entries) = std::fs::read_dir(scene.store.home().spool()) else { return Vec::new() };
    let texts = entries.map(|e| std::fs::read_to_string(e.unwrap().path()).unwrap());
    let text = |v: &serde_json::Value| v.as_str().unwrap().to_owned();
    texts
        .map(|t| serde_json::from_str::<serde_json::Value>(&t).unwrap())
        .map(|v| (text(&v["params"]["to"]), text(&v["params"]["class"]), text(&v["params"]["body"])))
        .collect()
}

#[test]
fn a_named_session_is_told_who_follows_it_once() {
    let mut scene = Scene::new();
    let (api, web) = (scene.store.session("api"), scene.store.session("web"));
    let _ = web;
    let mut running = start(&scene, "api,api,w*");
    scene.store.state(api, "working");
    line(&mut running);
    let told = spooled(&scene);
    assert_eq!(told.len(), 1, "{told:?}");
    let (to, class, body) = &told[0];
    assert_eq!((to.parse::<SessionId>().unwrap(), class.as_str()), (api, "with-next"));
    assert!(body.contains("your user follows") && body.contains("minder send @operator - <<'EOF'"), "{body}");
    running.signal(Signal::KILL);
    running.end();
    let running = start(&scene, "--no-announce api");
    assert_eq!(spooled(&scene).len(), 1);
    drop(running);
}

#[test]
fn nobody_is_told_while_an_earlier_word_is_unread() {
    let mut scene = Scene::new();
    let api = scene.store.session("api");
    scene.store.keyed_message(api, "operator", "your user follows you", "follower:operator:1:x");
    let unread = start(&scene, "api");
    assert_eq!(spooled(&scene).len(), 0);
    drop(unread);
    // Somebody else's is another matter.
    let lead = scene.store.session("lead");
    scene.store.bind(lead, "lead");
    let running = scene.start(Who::Session("lead"), "watch stream api");
    running.wait_until_it_sleeps();
    let told = spooled(&scene);
    assert_eq!(told.len(), 1);
    assert!(
        told[0].2.contains("session \"lead worker\"")
            && told[0].2.contains(&format!("minder send {}", lead.short()))
    );
    drop(running);
}

#[test]
fn a_word_that_cannot_be_sent_is_one_line() {
    let mut scene = Scene::new();
    let api = scene.store.session("api");
    // A file stands in the place of the folder.
    std::fs::write(scene.store.home().spool(), "").unwrap();
    let mut running = start(&scene, "api");
    scene.store.state(api, "working");
    assert_eq!(line(&mut running), "api worker (api)  idle → working");
    running.signal(Signal::INT);
    let ran = running.end();
    assert_eq!((ran.code, ran.err.lines().count()), (130, 1), "{ran:?}");
    assert!(ran.err.contains("was not told that you follow it"), "{ran:?}");
}
