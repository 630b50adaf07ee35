//! Whatever others leave in the files or send: no inlet of the daemon fails on it, and the real program goes on.

use std::sync::atomic::{AtomicU64, Ordering};

use minder_tests::{garbage, heap};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use crate::inlets;
use crate::raw::Raw;
use crate::surroundings::{Surroundings, who};

#[global_allocator]
static COUNTED: heap::Counting = heap::Counting;

#[test]
fn every_inlet_has_its_fuzz_target() {
    garbage::check("daemon", inlets::ALL);
}

#[test]
fn no_bytes_bring_an_inlet_down() {
    for inlet in inlets::ALL {
        garbage::throw("daemon", *inlet, 200);
    }
}

/// Bytes of memory that the daemon may have more after all that than before. One body has 4 MiB at most, and what was
/// given back to the allocator is not all given back to the system.
const GROWTH: u64 = 96 << 20;

#[test]
fn no_body_brings_the_daemon_down() {
    let around = Surroundings::new();
    let daemon = around.started();
    let resident = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.pid())).unwrap();
        let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
    };
    let before = resident();
    let sample =
        br#"{"jsonrpc":"2.0","id":1,"method":"session.state","params":{"state":"review","note":"n"}}"#
            .to_vec();
    let answered = AtomicU64::new(0);
    let post = |what: &str, body: &[u8]| {
        let mut caller = Raw::connect(&around.socket());
        let head = format!(
            "POST / HTTP/1.1\r\nhost: m\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        // A body that is too long may be refused before it was taken.
        let sent = std::io::Write::write_all(&mut caller.stream, head.as_bytes())
            .and_then(|()| std::io::Write::write_all(&mut caller.stream, body));
        let answer = caller.answer();
        assert!(sent.is_err() || answer.is_some(), "{what} has no answer");
        let Some(answer) = answer else { return };
        match answer.status {
            200 => {
                let text = &answer.body;
                let value: serde_json::Value =
                    serde_json::from_str(text).unwrap_or_else(|e| panic!("{what}: {e}"));
                assert!(
                    text == "null"
                        || value["error"].is_object()
                        || value.is_array()
                        || value["result"].is_object(),
                    "{what}: {text}"
                );
                answered.fetch_add(1, Ordering::Relaxed);
            }
            400 | 413 => {}
            other => panic!("{what}: status {other}"),
        }
    };
    for (what, bomb) in garbage::bombs(&sample) {
        post(what, &bomb);
        let within = [
            br#"{"jsonrpc":"2.0","id":1,"method":"session.state","params":{"state":"review","note":"#,
            &bomb[..],
            b"}}",
        ]
        .concat();
        post(&format!("{what}, as a note"), &within);
    }
    let mut runner = TestRunner::deterministic();
    let bodies = garbage::garbage(&[sample]);
    for _ in 0..300 {
        let body = bodies.new_tree(&mut runner).unwrap().current();
        post(&String::from_utf8_lossy(&body), &body);
    }
    assert!(answered.load(Ordering::Relaxed) > 100);
    assert_eq!(who(&mut around.client()).pid, daemon.pid());
    let after = resident();
    assert!(after < before + GROWTH, "{} KiB, and {} KiB before", after >> 10, before >> 10);
    let log = daemon.log();
    assert!(!log.contains("panicked"), "{log}");
}
