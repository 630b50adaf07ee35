//! Many messages of every size and shape, while dialogs, drafts and panels come and go at random instants. Each reaches its
//! reader once, byte for byte, or its receipt says why not; no dialog is answered, no draft submitted, no command run.
//!
//! `TYPED_MESSAGES` sets how many there are in all (500 take some minutes), `TYPED_SEED` the order of things.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use minder_proto::id::MessageId;

use super::stage::{Stage, named};

/// A person's half line, put there by a step.
const DRAFT: &str = "draft half a line of somebody's";

/// Sessions that are typed to at once.
const STAGES: u64 = 3;

/// A generator that is the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }

    fn body(&mut self) -> String {
        const PIECES: [&str; 22] = [
            "a",
            "word ",
            "\n",
            "`$(touch x)`",
            "-rf ",
            "--",
            "/clear",
            "!ls",
            "@file",
            "#tag",
            "\u{1f389}",
            "\u{4f60}\u{597d}",
            "\u{1f468}\u{200d}\u{1f469}",
            "e\u{301}",
            "\u{1b}[201~",
            "\r",
            "\t",
            "\u{1b}[31m",
            "\u{202e}",
            "'\"",
            "\\",
            "1. Yes ",
        ];
        // Of these only the first can stand in a line as they are.
        let kinds = if self.next(2) == 0 { 12 } else { 22 };
        let size = [1, 8, 64, 512, 4_096, 65_536][usize::try_from(self.next(6)).unwrap()];
        let size = usize::try_from(1 + self.next(size)).unwrap();
        let mut body = String::new();
        while body.len() < size {
            body.push_str(PIECES[usize::try_from(self.next(kinds)).unwrap()]);
        }
        body
    }
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().map_or(otherwise, |text| text.parse().unwrap())
}

/// Brings something in the way, and takes it away again, until it is told to end.
fn disturb(stage: &Stage, over: &Receiver<()>, mut random: Random) {
    loop {
        let ways: [(&[&str], &[&str]); 6] = [
            (&["dialog 1 Delete everything? | Yes | No"], &["composer"]),
            (&["question 1 Which? | This | That"], &["composer"]),
            (&[DRAFT], &["draft"]),
            (&["panel"], &["composer"]),
            (&["when text dialog 1 Really? | Yes | No"], &["composer"]),
            (&["deaf-enter 2", "busy on"], &["busy off"]),
        ];
        let (come, go) = ways[usize::try_from(random.next(6)).unwrap()];
        for (steps, least, clears) in [(come, 500, false), (go, 1_500, true)] {
            stage.say(steps);
            if clears {
                stage.hurry();
            }
            let stands = Duration::from_millis(least + random.next(1_000));
            if over.recv_timeout(stands) != Err(RecvTimeoutError::Timeout) {
                return stage.say(&["composer", "busy off", "draft"]);
            }
        }
    }
}

/// What was submitted, without drafts that no screen had shown. A draft is put into the composer by a step, all of it at
/// once and by no key: an Enter that was pressed before the terminal had the frame with it takes it. The terminal answers to
/// each frame in the same stream in which keys come, so what was pressed before and what after is known exactly; not one
/// Enter may come after.
fn lines_of_ours(stage: &Stage, seed: u64) -> Vec<String> {
    let draft = DRAFT.strip_prefix("draft ").unwrap();
    let number = |line: &serde_json::Value| line["number"].as_u64().unwrap();
    // The first frame of the draft that stands there, and whether the terminal has had it.
    let (mut stands, mut shown) = (None, false);
    let mut lines = Vec::new();
    for line in stage.actor.record() {
        match line["what"].as_str().unwrap() {
            "frame" if line["composer"] == draft => stands = stands.or(Some(number(&line))),
            "frame" => (stands, shown) = (None, false),
            "shown" => shown |= stands.is_some_and(|first| number(&line) >= first),
            "submitted" => {
                let text = line["text"].as_str().unwrap();
                assert!(text != draft || !shown, "seed {seed}: a draft that was on the screen was submitted");
                lines.extend((text != draft).then(|| text.to_owned()));
            }
            _ => {}
        }
    }
    lines
}

fn play(messages: u64, seed: u64) {
    let stage = Stage::configured(
        "turn 20ms done\ndeaf-dialog 400ms\nconfirm on",
        "[delivery]\nevidence_timeout = \"5s\"\n",
    );
    let mut random = Random(seed);
    let bodies: Vec<String> = (0..messages).map(|_| random.body()).collect();
    let (end, over) = channel();
    let sent: Vec<_> = std::thread::scope(|scope| {
        let stage = &stage;
        scope.spawn(move || disturb(stage, &over, Random(seed ^ 0x5eed)));
        let sent: Vec<_> = bodies.iter().map(|body| stage.send(body)).collect();
        for id in &sent {
            stage.arrives(*id);
        }
        drop(end);
        sent
    });
    let names: Vec<String> = sent.iter().map(MessageId::short).collect();
    let submitted = lines_of_ours(&stage, seed);
    let arrived: Vec<String> = submitted.iter().map(|text| named(text)).collect();
    assert_eq!(arrived, names, "seed {seed}: each once, in order");
    let nothing = ["command", "shell", "answered"].map(|what| stage.actor.noted(what));
    assert!(nothing.iter().all(Vec::is_empty), "seed {seed}: {nothing:?}");
    let listed = stage.scene.minder(&["--as", "worker", "inbox", "list", "--json"]).ok();
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    let field = |line: &serde_json::Value, name: &str| line[name].as_str().unwrap().to_owned();
    let kept: HashMap<String, String> = listed["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| (field(line, "id"), field(line, "body")))
        .collect();
    for ((text, body), id) in submitted.iter().zip(&bodies).zip(&sent) {
        assert_eq!(named(text), id.short());
        match kept.get(&id.to_string()) {
            Some(kept) => assert!(kept == body && text.contains("minder inbox ack"), "seed {seed}: {text}"),
            None => assert!(text.ends_with(&format!(" Text: {body}")), "seed {seed}: {text}"),
        }
    }
}

#[test]
fn many_messages_arrive_once_each_whatever_comes_between() {
    let (messages, seed) = (number("TYPED_MESSAGES", 36), number("TYPED_SEED", 7));
    std::thread::scope(|scope| {
        for n in 0..STAGES {
            let share = messages / STAGES + u64::from(n < messages % STAGES);
            scope.spawn(move || play(share, seed * STAGES + n));
        }
    });
}
