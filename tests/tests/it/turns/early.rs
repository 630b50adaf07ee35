//! A signal to `turn run` that comes before the daemon has taken the call which asks for the turn.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};

use minder_proto::error::{Fault, FaultData, Kind};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::world::{Running, World};

/// Reads one request.
fn request(stream: &mut UnixStream) -> Value {
    let mut head = Vec::new();
    let mut byte = [0; 1];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    stream.read_exact(&mut body).unwrap();
    serde_json::from_slice(&body).unwrap()
}

fn refuse(stream: &mut UnixStream, request: &Value, fault: &Fault) {
    let error = json!({"code": -32000, "message": fault.message, "data": FaultData::from(fault)});
    let body = json!({"jsonrpc": "2.0", "id": request["id"], "error": error}).to_string();
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .unwrap();
}

#[test]
fn f10_a_signal_before_the_daemon_has_the_turn_is_said_again() {
    let world = World::new();
    // In place of a daemon, which would have to be slow at the right moment.
    let socket = world.isolated.root().join("slow.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let running = Running::new(world.minder(["turn", "run", "--", "true"]).env("MINDER_SOCKET", &socket));
    let (mut asks, _) = listener.accept().unwrap();
    let run = request(&mut asks);
    assert_eq!(run["method"], "turn.run");
    running.process.signal(Signal::TERM);
    let unknown = Fault::new(Kind::NotFound, "no turn ends so");
    for _ in 0..2 {
        let (mut cancels, _) = listener.accept().unwrap();
        let cancel = request(&mut cancels);
        assert_eq!(
            (&cancel["method"], &cancel["params"]["id"]),
            (&json!("turn.cancel"), &run["params"]["turn"])
        );
        refuse(&mut cancels, &cancel, &unknown);
    }
    let (mut cancels, _) = listener.accept().unwrap();
    let cancel = request(&mut cancels);
    assert_eq!(cancel["method"], "turn.cancel", "it is owed until somebody has taken it");
    refuse(&mut cancels, &cancel, &Fault::new(Kind::InvalidState, "it ends already"));
    refuse(&mut asks, &run, &Fault::new(Kind::Cancelled, "it was cancelled"));
    assert!(running.said().contains("it was cancelled"));
}
