//! The client's transport against servers that behave badly (`rpc.md`, point 7).

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use minder_client::rpc::{CallError, Client, Endpoint, Start, Unreachable};
use minder_daemon::server::Limits;
use minder_proto::error::Kind;
use minder_proto::layout::Home;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::host::{Host, Seen};
use crate::raw::DEADLINE;

/// A server of one test's making.
struct Fake {
    _dir: TempDir,
    path: PathBuf,
    /// What the server reports.
    seen: Receiver<String>,
}

impl Fake {
    /// Runs `serve` with a listener, in a thread.
    fn start(serve: impl FnOnce(UnixListener, &dyn Fn(String)) + Send + 'static) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("fake.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let (tell, seen) = channel();
        std::thread::spawn(move || serve(listener, &|what| tell.send(what).unwrap_or(())));
        Self { _dir: dir, path, seen }
    }

    fn client(&self) -> Client {
        client(&self.path)
    }

    fn sees(&self) -> String {
        self.seen.recv_timeout(DEADLINE).unwrap()
    }
}

fn client(path: &Path) -> Client {
    let home = Home::at(path.parent().unwrap().join("store"));
    Client::new(Endpoint::at(home, path.to_owned()), Start::Never("this is a test"))
}

fn call(client: &mut Client) -> Result<Value, CallError> {
    client.call_method("m", &json!({"a": 1}), Some(DEADLINE))
}

/// Reads one whole request; its body.
fn request(stream: &mut UnixStream) -> Option<String> {
    let mut text = Vec::new();
    let mut byte = [0; 1];
    while !text.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).unwrap_or(0) == 0 {
            return None;
        }
        text.push(byte[0]);
    }
    let head = String::from_utf8(text).unwrap();
    let length = head.lines().find_map(|l| l.strip_prefix("content-length: ")).unwrap().parse().unwrap();
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap();
    Some(String::from_utf8(body).unwrap())
}

fn answer(stream: &mut UnixStream, body: &str) {
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .unwrap();
}

fn result(stream: &mut UnixStream) {
    let request: Value = serde_json::from_str(&request(stream).unwrap()).unwrap();
    answer(stream, &json!({"jsonrpc": "2.0", "id": request["id"], "result": request["params"]}).to_string());
}

#[test]
fn p7_a_kept_connection_that_was_closed_is_made_anew() {
    let fake = Fake::start(|listener, tell| {
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().unwrap();
            result(&mut stream);
            drop(stream);
            tell("closed".into());
        }
    });
    let mut client = fake.client();
    assert_eq!(call(&mut client).unwrap(), json!({"a": 1}));
    assert_eq!(fake.sees(), "closed");
    assert_eq!(call(&mut client).unwrap(), json!({"a": 1}));
}

#[test]
fn p7_a_request_that_was_never_read_is_sent_again() {
    let fake = Fake::start(|listener, tell| {
        let (mut stream, _) = listener.accept().unwrap();
        // Some of it is read, so that the rest is known to be lost.
        stream.read_exact(&mut [0; 8]).unwrap();
        drop(stream);
        // And once with an orderly end of the writing side first.
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_exact(&mut [0; 8]).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        drop(stream);
        let (mut stream, _) = listener.accept().unwrap();
        result(&mut stream);
        tell("answered".into());
    });
    assert_eq!(call(&mut fake.client()).unwrap(), json!({"a": 1}));
    assert_eq!(fake.sees(), "answered");
}

#[test]
fn p7_a_request_that_was_read_is_not_sent_again() {
    let fake = Fake::start(|listener, tell| {
        let (mut stream, _) = listener.accept().unwrap();
        request(&mut stream).unwrap();
        drop(stream);
        listener.set_nonblocking(true).unwrap();
        tell("read".into());
        tell(format!("{:?}", listener.accept().map(drop).map_err(|e| e.kind())));
    });
    let error = call(&mut fake.client()).unwrap_err();
    assert!(matches!(error, CallError::Unreachable(Unreachable::Lost)), "{error}");
    assert_eq!(error.exit_code(), 69);
    assert_eq!(fake.sees(), "read");
    assert_eq!(fake.sees(), "Err(WouldBlock)", "it came once");
}

#[test]
fn p7_a_server_that_never_reads_is_given_up() {
    let fake = Fake::start(|listener, _| {
        while let Ok((stream, _)) = listener.accept() {
            drop(stream);
        }
    });
    let error = call(&mut fake.client()).unwrap_err();
    assert!(matches!(error, CallError::Unreachable(Unreachable::Lost)), "{error}");
}

#[test]
fn p7_its_writing_side_stays_open_and_null_is_an_answer() {
    let fake = Fake::start(|listener, tell| {
        let (mut stream, _) = listener.accept().unwrap();
        request(&mut stream).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        tell(format!("{:?}", stream.read(&mut [0; 1]).map_err(|e| e.kind())));
        answer(&mut stream, "null");
    });
    assert_eq!(call(&mut fake.client()).unwrap(), Value::Null);
    assert_eq!(fake.sees(), "Err(WouldBlock)");
}

#[test]
fn p7_time_runs_out() {
    for wrong in ["", "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n12"] {
        let fake = Fake::start(move |listener, tell| {
            let (mut stream, _) = listener.accept().unwrap();
            request(&mut stream).unwrap();
            stream.write_all(wrong.as_bytes()).unwrap();
            tell(format!("{:?}", stream.read(&mut [0; 1]).unwrap()));
        });
        let begun = Instant::now();
        let patience = Some(Duration::from_secs(1));
        let error = fake.client().call_method::<Value>("m", &(), patience).unwrap_err();
        assert!(
            matches!(error, CallError::Unreachable(Unreachable::NotAnswering(p)) if p == patience),
            "{error}"
        );
        let took = begun.elapsed();
        assert!(took >= Duration::from_secs(1) && took < DEADLINE, "{took:?}");
        assert_eq!(fake.sees(), "0", "and the connection was dropped, not kept");
    }
}

#[test]
fn p7_a_request_that_is_not_taken_runs_out_of_time_too() {
    let host = Host::start(Limits { sockets: 1, ..Limits::default() });
    let mut holder = host.connect();
    holder.post(&crate::raw::call(1, "owner"));
    host.sees(Seen::Waiting);
    let large = json!({"text": "x".repeat(3 << 20)});
    let error = client(&host.path)
        .call_method::<Value>("echo", &large, Some(Duration::from_millis(300)))
        .unwrap_err();
    assert!(matches!(error, CallError::Unreachable(Unreachable::NotAnswering(_))), "{error}");
}

#[test]
fn answers_that_are_none_are_refused() {
    let long = "x".repeat(20 << 10);
    for wrong in [
        "HTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\n{}",
        "SSH-2.0-OpenSSH_9.2\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 17000000\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999\r\n\r\n",
        "HTTP/1.1 403 Forbidden\r\ncontent-length: 3\r\n\r\nno\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n{]}",
        &long,
    ] {
        let bytes = wrong.to_owned();
        let fake = Fake::start(move |listener, tell| {
            let (mut stream, _) = listener.accept().unwrap();
            request(&mut stream).unwrap();
            stream.write_all(bytes.as_bytes()).unwrap();
            tell("written".into());
            let _ = stream.read(&mut [0; 1]);
        });
        let error = call(&mut fake.client()).unwrap_err();
        assert!(matches!(error, CallError::Broken(_)), "{}: {error}", &wrong[..wrong.len().min(60)]);
        assert_eq!(error.exit_code(), 70);
    }
}

#[test]
fn a_request_that_is_too_large_is_told_so() {
    let host = Host::start(Limits::default());
    let mut client = client(&host.path).unchecked();
    let huge = json!({"text": "x".repeat(6 << 20)});
    for _ in 0..3 {
        let error = client.call_method::<Value>("echo", &huge, Some(DEADLINE)).unwrap_err();
        assert!(matches!(&error, CallError::Refused(f) if f.kind == Kind::TooLarge), "{error}");
    }
    assert_eq!(client.call_method::<Value>("echo", &(), Some(DEADLINE)).unwrap(), "echo");
    // And an answer that is.
    let error = client.call_method::<Value>("long", &[16 << 20], Some(DEADLINE)).unwrap_err();
    assert!(matches!(&error, CallError::Refused(f) if f.kind == Kind::TooLarge), "{error}");
    let long: String = client.call_method("long", &[15 << 20], Some(DEADLINE)).unwrap();
    assert_eq!(long.len(), 15 << 20);
}

#[test]
fn e7_a_daemon_that_does_not_fit_says_which_side_to_restart() {
    let host = Host::start(Limits::default());
    // The store in which the client believes is another one.
    let error = call(&mut client(&host.path)).unwrap_err();
    assert_eq!(error.exit_code(), 76, "{error}");
    assert!(error.to_string().contains("serves the store"), "{error}");
    let error = call(&mut client(&host.path).unchecked()).unwrap_err();
    assert_eq!(error.exit_code(), 76, "a method that it does not know: {error}");
    assert!(
        matches!(&error, CallError::Refused(f) if f.hint.as_deref() == Some("minder daemon restart")),
        "{error:?}"
    );
}

#[test]
fn a_panic_over_there_is_a_fault_of_minders() {
    let host = Host::start(Limits::default());
    let error = client(&host.path).unchecked().call_method::<Value>("boom.async", &(), None).unwrap_err();
    assert_eq!(error.exit_code(), 70, "{error}");
}

#[test]
fn nobody_there_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let error = call(&mut client(&dir.path().join("none.sock"))).unwrap_err();
    assert!(matches!(error, CallError::Unreachable(Unreachable::NotRunning(_))), "{error}");
    assert_eq!(error.exit_code(), 69);
    // A socket that nobody listens on is nobody too.
    drop(UnixListener::bind(dir.path().join("dead.sock")).unwrap());
    let error = call(&mut client(&dir.path().join("dead.sock"))).unwrap_err();
    assert!(matches!(error, CallError::Unreachable(Unreachable::NotRunning(_))), "{error}");
}
