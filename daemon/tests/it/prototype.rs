//! `rpc.md`, "What the prototype taught": one test for each of its points that the server answers for.

use std::time::Duration;

use serde_json::{Value, json};

use crate::host::{Host, Seen, brief, log, logged};
use crate::raw::{Raw, call};
use minder_daemon::server::Limits;

#[test]
fn p1_a_handler_goes_with_its_caller_and_the_owner_finishes() {
    let host = Host::start(Limits::default());
    let mut caller = host.connect();
    caller.post(&call(1, "owner"));
    host.sees(Seen::Waiting);
    drop(caller);
    host.sees(Seen::Dropped);
    host.release.notify_one();
    host.sees(Seen::Done);
    // And the next caller is served as ever.
    let mut caller = host.connect();
    caller.post(&call(2, "owner"));
    host.sees(Seen::Waiting);
    host.release.notify_one();
    host.sees(Seen::Done);
    assert_eq!(caller.answer().unwrap().json()["result"], "owner");
}

#[test]
fn p2_a_panic_is_answered_with_the_right_id_and_logged_with_its_backtrace() {
    let host = Host::start(Limits::default());
    let mut caller = host.connect();
    for (id, method) in [(41, "boom.sync"), (42, "boom.async")] {
        let answer = caller.call(&call(id, method)).json();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(id), &json!(-32_603)), "{answer}");
        assert_eq!(answer["error"]["data"]["kind"], "internal");
    }
    // The same connection goes on.
    assert_eq!(caller.call(&call(43, "echo")).json()["result"], "echo");
    assert!(!logged("a method panicked: boom in an async method").is_empty());
    assert!(log().contains("boom_deep_inside"), "the backtrace names where it happened");
}

#[test]
fn p2_a_panic_in_a_batch_spoils_its_own_answer_only() {
    let host = Host::start(Limits::default());
    let batch = format!("[{},{},{},7]", call(1, "echo"), call(2, "boom.async"), call(3, "echo"));
    let answer = host.connect().call(&batch).json();
    let ids: Vec<_> = answer.as_array().unwrap().iter().map(|a| a["id"].clone()).collect();
    assert_eq!(ids, [json!(1), json!(2), json!(3), Value::Null]);
    assert_eq!(answer[0]["result"], "echo");
    assert_eq!(answer[1]["error"]["code"], -32_603);
    assert_eq!(answer[2]["result"], "echo");
    assert_eq!(answer[3]["error"]["code"], -32_600);
}

#[test]
fn p2_a_notification_is_acknowledged_and_a_batch_of_them_too() {
    let host = Host::start(Limits::default());
    let mut caller = host.connect();
    let notification = r#"{"jsonrpc":"2.0","method":"boom.sync"}"#;
    for body in [notification.to_owned(), format!("[{notification},{notification}]")] {
        let answer = caller.call(&body);
        assert_eq!((answer.status, &*answer.body), (200, "null"));
    }
    assert_eq!(caller.call("[]").json()["error"]["code"], -32_600);
    assert_eq!(caller.call(&call(1, "echo")).json()["result"], "echo");
}

#[test]
fn p3_e11_a_reader_that_stops_delays_nobody_and_is_dropped_with_a_reason() {
    // Half a line is given up after the time for a head; a reader that stops in one of the two hosts only.
    let patient = Limits { head: Duration::from_secs(5), ..Limits::default() };
    let host = Host::start(Limits { stall: Duration::from_secs(600), ..patient.clone() });
    let impatient = Host::start(Limits { stall: Duration::from_secs(2), ..patient });
    let long = |bytes: usize| format!(r#"{{"jsonrpc":"2.0","id":1,"method":"long","params":[{bytes}]}}"#);

    // More than the kernel buffers, and not a byte of it is read.
    let mut frozen = impatient.connect();
    frozen.post(&long(8 << 20));
    let mut still = host.connect();
    still.post(&long(8 << 20));
    // Half a line, and then nothing.
    let mut half = host.connect();
    half.send("POST / HT");

    let readers: Vec<_> = (0..9)
        .map(|_| {
            let (mut reader, bytes) = (host.connect(), 256 << 10);
            let request = long(bytes);
            std::thread::spawn(move || {
                for _ in 0..20 {
                    let answer = reader.call(&request);
                    assert_eq!(answer.body.len(), bytes + r#"{"jsonrpc":"2.0","id":1,"result":""}"#.len());
                }
            })
        })
        .collect();
    for reader in readers {
        reader.join().unwrap();
    }

    half.ended();
    frozen.hung_up();
    // The frozen one finds what had been sent before it was given up, and no whole answer.
    let mut rest = Vec::new();
    let _ = std::io::Read::read_to_end(&mut frozen.stream, &mut rest);
    assert!(rest.len() < 8 << 20, "{} bytes", rest.len());
    assert!(!logged("the peer took nothing for 2s").is_empty());
}

#[test]
fn p3_a_reader_that_stops_does_not_hold_a_stop() {
    let host = Host::start(Limits { stall: Duration::from_secs(600), ..brief() });
    let mut frozen = host.connect();
    frozen.post(r#"{"jsonrpc":"2.0","id":1,"method":"long","params":[8388608]}"#);
    // It has begun to answer, so that the stop finds it in the middle of writing.
    assert_eq!(
        nix::sys::socket::recv(
            std::os::fd::AsRawFd::as_raw_fd(&frozen.stream),
            &mut [0; 1],
            nix::sys::socket::MsgFlags::MSG_PEEK
        ),
        Ok(1)
    );
    host.stop.cancel();
    assert!(host.ended() >= Duration::from_millis(300));
}

#[test]
fn p5_a_stop_answers_what_runs_and_takes_no_more() {
    let host = Host::start(Limits { grace: Duration::from_secs(600), ..Limits::default() });
    let mut running = host.connect();
    running.post(&call(1, "owner"));
    host.sees(Seen::Waiting);
    let idle = host.connect();
    let mut kept = host.connect();
    kept.call(&call(1, "echo"));

    host.stop.cancel();
    // A connection on which nothing was asked ends at once, and the path is gone.
    kept.ended();
    idle.ended();
    Raw::connect_until_gone(&host.path);
    assert!(host.path.symlink_metadata().is_err());

    host.release.notify_one();
    assert_eq!(running.answer().unwrap().json()["result"], "owner");
    running.ended();
    // Without waiting for the whole grace.
    host.ended();
}

#[test]
fn p5_a_call_that_does_not_end_is_cut_off_after_the_grace() {
    let host = Host::start(brief());
    let mut running = host.connect();
    running.post(&call(1, "owner"));
    host.sees(Seen::Waiting);
    host.stop.cancel();
    assert!(running.answer().is_none());
    host.sees(Seen::Dropped);
    assert!(host.ended() >= Duration::from_millis(300));
}

#[test]
fn p5_whoever_connected_before_the_stop_is_answered() {
    // One place, held: the others stand in the kernel's queue.
    let host = Host::start(Limits { sockets: 1, ..Limits::default() });
    let mut holder = host.connect();
    holder.post(&call(1, "owner"));
    host.sees(Seen::Waiting);
    let mut queued = host.connect();
    queued.post(&call(5, "echo"));
    host.release.notify_one();
    assert_eq!(holder.answer().unwrap().json()["result"], "owner");
    host.stop.cancel();
    holder.ended();
    let answer = queued.answer().unwrap();
    assert_eq!(answer.json()["result"], "echo");
    assert!(answer.head.contains("connection: close"), "{}", answer.head);
    queued.ended();
    host.ended();
}
