//! `rpc.md`, points 4 and 5: what is bounded, and what becomes of a caller that goes over it.

use std::time::Duration;

use minder_daemon::server::Limits;
use serde_json::json;

use crate::host::{Host, Seen, brief, logged};
use crate::raw::{call, flood, request};

#[test]
fn the_defaults_are_those_of_the_contract() {
    let limits = Limits::default();
    assert_eq!((limits.sockets, limits.in_flight), (512, 64));
    assert_eq!((limits.request, limits.answer), (4 << 20, 16 << 20));
    assert_eq!((limits.stall.as_secs(), limits.grace.as_secs()), (10, 5));
    assert_eq!(limits.refresh.as_secs(), 3_600);
}

#[test]
fn p4_half_a_head_and_half_a_body_are_not_waited_for() {
    let host = Host::start(brief());
    let mut half_head = host.connect();
    half_head.send("POST / HTTP/1.1\r\nhost: min");
    let mut half_body = host.connect();
    half_body.send(&request(&call(1, "echo"), "")[..120]);
    let silent = host.connect();

    let answer = half_body.answer().unwrap();
    assert_eq!(answer.status, 408, "{answer:?}");
    half_body.ended();
    half_head.ended();
    silent.ended();
    assert!(!logged("half a request").is_empty());
}

#[test]
fn p4_a_request_over_the_limit_is_refused_however_it_comes() {
    let host = Host::start(Limits::default());
    let limit = 4 << 20;
    let padded = |bytes: usize| format!("{}{}", call(1, "echo"), " ".repeat(bytes - call(1, "echo").len()));

    let answer = host.connect().call(&padded(limit));
    assert_eq!(answer.json()["result"], "echo", "exactly at the limit");

    // By its length alone, before it is read.
    let mut caller = host.connect();
    caller.send(format!(
        "POST / HTTP/1.1\r\nhost: m\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        limit + 1
    ));
    let answer = caller.answer().unwrap();
    assert_eq!((answer.status, &answer.json()["error"]["code"]), (413, &json!(-32_007)));
    caller.ended();

    // Without a length, when there is too much of it.
    let mut caller = host.connect();
    caller.send(
        "POST / HTTP/1.1\r\nhost: m\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n",
    );
    let chunk = format!("10000\r\n{}\r\n", "[".repeat(0x10000));
    for _ in 0..=limit / 0x10000 {
        if std::io::Write::write_all(&mut caller.stream, chunk.as_bytes()).is_err() {
            break;
        }
    }
    let answer = caller.answer().unwrap();
    assert_eq!((answer.status, &answer.json()["error"]["code"]), (413, &json!(-32_007)));
    caller.ended();
}

#[test]
fn e11_a_line_of_100_mb_is_not_read() {
    let host = Host::start(Limits::default());
    for begin in ["", "POST / HTTP/1.1\r\nhost: ", "POST / HTTP/1.1\r\ncontent-length: 100000000\r\n\r\n"] {
        let mut caller = host.connect();
        caller.send(begin);
        let taken = flood(&mut caller.stream, 100_000_000).unwrap();
        assert!(taken < 8 << 20, "{begin:?}: {taken} bytes were taken");
    }
    assert_eq!(host.connect().call(&call(1, "echo")).json()["result"], "echo");
}

#[test]
fn p4_an_answer_over_the_limit_is_an_error_with_the_right_id() {
    let host = Host::start(Limits::default());
    let mut caller = host.connect();
    let long = |id: u64, bytes: usize| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"long","params":[{bytes}]}}"#)
    };
    let answer = caller.call(&long(1, 15 << 20));
    assert!(answer.body.len() > 15 << 20, "more than the library's own default of 10 MiB");
    let answer = caller.call(&long(2, 16 << 20)).json();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(2), &json!(-32_008)), "{answer}");
    // In a batch the answers count together.
    let answer =
        caller.call(&format!("[{},{},{}]", long(1, 7 << 20), long(2, 7 << 20), long(3, 7 << 20))).json();
    assert_eq!(answer["error"]["code"], -32_011, "{answer}");
    let many = vec![call(1, "echo"); 65].join(",");
    assert_eq!(caller.call(&format!("[{many}]")).json()["error"]["code"], -32_010);
}

#[test]
fn p5_more_connections_than_places_wait_their_turn() {
    let host = Host::start(Limits { sockets: 2, ..Limits::default() });
    let mut first = host.connect();
    first.post(&call(1, "owner"));
    host.sees(Seen::Waiting);
    let mut second = host.connect();
    second.call(&call(2, "echo"));
    let mut third = host.connect();
    third.post(&call(3, "echo"));
    third.stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let early = std::io::Read::read(&mut third.stream, &mut [0; 1]);
    assert_eq!(early.unwrap_err().kind(), std::io::ErrorKind::WouldBlock, "there is no place for it");
    third.stream.set_read_timeout(Some(crate::raw::DEADLINE)).unwrap();
    drop(second);
    assert_eq!(third.answer().unwrap().json()["result"], "echo");
    host.release.notify_one();
    assert_eq!(first.answer().unwrap().json()["result"], "owner");
}

#[test]
fn what_is_no_call_is_refused_and_harms_nothing() {
    let host = Host::start(Limits::default());
    for (body, code) in
        [("{", -32_700), ("nonsense", -32_700), ("{}", -32_700), (r#"{"jsonrpc":"1.0","id":1}"#, -32_600)]
    {
        assert_eq!(host.connect().call(body).json()["error"]["code"], code, "{body}");
    }
    assert_eq!(host.connect().call(&call(4, "no.such")).json()["error"]["code"], -32_601);
    let mut other = host.connect();
    other.send("GET / HTTP/1.1\r\nhost: m\r\n\r\n");
    assert_eq!(other.answer().unwrap().status, 405);
    let mut upgrade = host.connect();
    upgrade.send("GET / HTTP/1.1\r\nhost: m\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
    assert_eq!(upgrade.answer().unwrap().status, 403, "until there are subscriptions");
    let mut noise = host.connect();
    noise.send([0xff, 0, 0x80, b'\r', b'\n', b'\r', b'\n']);
    noise.ended();
    assert_eq!(host.connect().call(&call(5, "echo")).json()["result"], "echo");
}

#[test]
fn a_caller_that_does_not_fit_is_refused_before_the_method_runs() {
    let host = Host::start(Limits::default());
    let mut caller = host.connect();
    for headers in ["minder-protocol: 2\r\n", "minder-store: /somewhere/else\r\n"] {
        caller.send(request(&call(1, "owner"), headers));
        let answer = caller.answer().unwrap().json();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(1), &json!(-32_060)), "{answer}");
        assert_eq!(answer["error"]["data"]["kind"], "version");
        // In a batch each call is refused.
        caller.send(request(&format!("[{},{}]", call(2, "owner"), call(3, "owner")), headers));
        let answer = caller.answer().unwrap().json();
        assert_eq!((&answer[0]["error"]["code"], &answer[1]["id"]), (&json!(-32_060), &json!(3)), "{answer}");
    }
    assert!(host.seen.try_recv().is_err(), "no method ran");
    let store = host.dir.path().join("store");
    caller.send(request(
        &call(4, "echo"),
        &format!("minder-protocol: 1\r\nminder-store: {}\r\n", store.display()),
    ));
    assert_eq!(caller.answer().unwrap().json()["result"], "echo");
}
