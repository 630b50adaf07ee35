//! J5: any text survives. Whatever a person or an agent writes, in a note, a title, a body: it reads back equal from the
//! log, from the record, as JSON from the program, after a restart and after a compaction; and every note that was
//! written stays in the log.

use minder_proto::rpc;
use minder_proto::state::State;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::world::{World, must, ran};

/// Texts of the store: everything but NUL, which no text of minder's has.
fn text(most: usize) -> impl Strategy<Value = String> {
    let hostile = prop_oneof![
        Just("\"".to_owned()),
        Just("\\".to_owned()),
        Just("\n".to_owned()),
        Just("\r\n".to_owned()),
        Just("\u{2028}".to_owned()),
        Just("\u{feff}".to_owned()),
        Just("\u{202e}".to_owned()),
        Just("\u{1b}[31m".to_owned()),
        Just("\u{7f}".to_owned()),
        Just("\\u0000".to_owned()),
        Just("{\"seq\":1}".to_owned()),
        Just("</note> — ünïcode 🙂".to_owned()),
        Just("[minder] message 12345678".to_owned()),
        "[^\u{0}]{1,12}",
    ];
    proptest::collection::vec(hostile, 1..most).prop_map(|parts| parts.concat())
}

/// What a text of a person becomes: blanks around it are the shell's.
fn sample(runner: &mut TestRunner, most: usize) -> String {
    loop {
        let text = text(most).new_tree(runner).unwrap().current();
        if !text.trim().is_empty() {
            return text;
        }
    }
}

#[test]
fn j5_any_text_survives() {
    let world = World::new();
    let mut daemon = world.start();
    let mut runner = TestRunner::default();
    let (s, w) = (world.session("s"), world.session("w"));
    let (mut notes, mut bodies) = (Vec::new(), Vec::new());
    for round in 0..3 {
        let mut client = world.client();
        s.declare(&mut client, State::Idle, None);
        for n in 0..16 {
            let state = if n % 2 == 0 { State::Working } else { State::Review };
            let note = sample(&mut runner, 12);
            // Half of them through the program, as agents do it.
            if n % 4 < 2 {
                let line = format!("state {state} --note -");
                ran(&mut world.minder_as(&s, &line), note.as_bytes()).ok();
            } else {
                s.declare(&mut client, state, Some(&note));
            }
            notes.push(note);
            let body = sample(&mut runner, 40);
            if n % 2 == 0 {
                ran(&mut world.minder_as(&w, "send s -"), body.as_bytes()).ok();
            } else {
                must(&mut client, &w.letter(&s, body.clone()));
            }
            bodies.push(body);
        }
        let title = sample(&mut runner, 4);
        let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
        let named = rpc::Set { session: s.id.to_string(), title: Some(title.clone()), ..rpc::Set::default() };
        let titled = client.call(&named).is_ok();

        let check = |what: &str| {
            let equal = |said: &str, wrote: &str| assert_eq!(said.trim_end(), wrote.trim_end(), "{what}");
            let logged: Vec<String> = s.moves().into_iter().filter_map(|(_, m)| m.note).collect();
            assert_eq!(logged.len(), notes.len(), "{what}: every note stays in the log");
            logged.iter().zip(&notes).for_each(|(said, wrote)| equal(said, wrote));
            let written: Vec<String> = s.messages().into_iter().map(|(_, m)| m.body).collect();
            assert_eq!(written.len(), bodies.len(), "{what}");
            written.iter().zip(&bodies).for_each(|(said, wrote)| equal(said, wrote));
            let shown = world.run("show s --json").json();
            equal(shown["record"]["note"].as_str().unwrap(), notes.last().unwrap());
            if titled {
                assert_eq!(shown["record"]["title"], title.as_str(), "{what}");
            }
            let listed = world.run("ls s --json").json();
            equal(listed["sessions"][0]["note"].as_str().unwrap(), notes.last().unwrap());
            let people = world.run("show s").ok() + &world.run("ls").ok();
            let acts = |c: char| c.is_control() && c != '\n';
            assert!(!people.contains(acts), "{what}: what acts on a terminal gets through");
        };
        check("as it was written");
        // Each is taken once, as it was written.
        let taken = s.take_all(&mut client);
        let last = &bodies[bodies.len() - 16..];
        assert_eq!(taken.len(), last.len());
        for (given, wrote) in taken.iter().zip(last) {
            assert_eq!(given.body.trim_end(), wrote.trim_end());
            // One that looks like minder's own words is followed by where it ends.
            let end = format!("[minder] end of {}", given.id.short());
            let text = given.text.strip_suffix(&end).unwrap_or(&given.text);
            assert!(text.trim_end().ends_with(wrote.trim_end()), "{:?} of {wrote:?}", given.text);
        }
        drop(client);
        if round == 1 {
            daemon.kill();
        } else {
            // A stop is a checkpoint, and rewrites the ledger.
            daemon.stop();
        }
        check("without a daemon");
        daemon = world.start();
        check("after a restart");
    }
    let report = world.run("store check").ok();
    assert!(report.contains("nothing is damaged"), "{report}");
}
