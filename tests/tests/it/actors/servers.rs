//! The app-server that several clients share: what it does on time, and what it is made to do wrong.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use minder_tests::fake::stage::Server;
use minder_tests::files;
use minder_tests::isolate::Isolated;
use serde_json::{Value, json};

const LIMIT: Duration = Duration::from_secs(60);

/// A client: messages both ways, a frame each.
struct Client {
    stream: UnixStream,
    reader: BufReader<UnixStream>,
    last: u64,
    told: Vec<Value>,
}

impl Client {
    fn new(server: &Server) -> Self {
        let mut stream = UnixStream::connect(server.socket()).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==";
        write!(stream, "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n{key}\r\n\r\n").unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut greeting = String::new();
        while !greeting.ends_with("\r\n\r\n") {
            assert!(reader.read_line(&mut greeting).unwrap() > 0);
        }
        // The pair that stands in the protocol's own description.
        assert!(greeting.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{greeting}");
        let mut client = Self { stream, reader, last: 0, told: Vec::new() };
        client.call("initialize", json!({})).unwrap();
        client
    }

    fn send(&mut self, message: &Value) {
        let body = message.to_string().into_bytes();
        let len = u16::try_from(body.len()).unwrap();
        let mask = [7, 1, 9, 3];
        let mut frame = vec![0x81, 0x80 + 126];
        frame.extend(len.to_be_bytes());
        frame.extend(mask);
        frame.extend(body.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
        self.stream.write_all(&frame).unwrap();
    }

    fn next(&mut self) -> Value {
        let mut head = [0; 2];
        self.reader.read_exact(&mut head).unwrap();
        let mut len = usize::from(head[1]);
        if len == 126 {
            let mut long = [0; 2];
            self.reader.read_exact(&mut long).unwrap();
            len = usize::from(u16::from_be_bytes(long));
        }
        let mut body = vec![0; len];
        self.reader.read_exact(&mut body).unwrap();
        serde_json::from_slice(&body).unwrap()
    }

    fn ask(&mut self, method: &str, params: Value) -> u64 {
        self.last += 1;
        self.send(&json!({ "id": self.last, "method": method, "params": params }));
        self.last
    }

    /// The answer to a request; what it is told meanwhile is kept.
    fn answer(&mut self, id: u64) -> Result<Value, String> {
        loop {
            let message = self.next();
            if message["id"] == id {
                return match message.get("result") {
                    Some(result) => Ok(result.clone()),
                    None => Err(message["error"]["message"].as_str().unwrap().to_owned()),
                };
            }
            self.told.push(message);
        }
    }

    fn call(&mut self, method: &str, params: Value) -> Result<Value, String> {
        let id = self.ask(method, params);
        self.answer(id)
    }

    /// What it is told by this method, the oldest first.
    fn told(&mut self, method: &str) -> Value {
        loop {
            if let Some(n) = self.told.iter().position(|message| message["method"] == method) {
                return self.told.remove(n)["params"].clone();
            }
            let message = self.next();
            self.told.push(message);
        }
    }

    fn start(&mut self, thread: &str, text: &str, id: &str) -> String {
        let input = json!([{ "type": "text", "text": text }]);
        let params = json!({ "threadId": thread, "input": input, "clientUserMessageId": id });
        self.call("turn/start", params).unwrap()["turn"]["id"].as_str().unwrap().to_owned()
    }

    fn steer(&mut self, thread: &str, turn: &str, id: &str) -> Result<Value, String> {
        let input = json!([{ "type": "text", "text": "also" }]);
        let params =
            json!({ "threadId": thread, "expectedTurnId": turn, "input": input, "clientUserMessageId": id });
        self.call("turn/steer", params)
    }

    /// The client's ids of the texts that a turn took, as its thread shows it.
    fn taken(&mut self, thread: &str) -> Vec<Vec<String>> {
        let read = self.call("thread/read", json!({ "threadId": thread, "includeTurns": true })).unwrap();
        let ids = |turn: &Value| {
            let items = turn["items"].as_array().unwrap().iter();
            items.filter_map(|item| item["clientId"].as_str().map(str::to_owned)).collect()
        };
        read["thread"]["turns"].as_array().unwrap().iter().map(ids).collect()
    }
}

fn server(script: &str) -> (Server, Arc<Isolated>) {
    let isolated = Isolated::new().unwrap();
    let script = format!("server thread one\nserver thread two\n{script}");
    (Server::start(&isolated, "codex", &script, None).unwrap(), isolated)
}

#[test]
fn turns_are_started_steered_and_interrupted_before_all_clients() {
    let (server, _isolated) = server("server turn held fine");
    let (mut client, mut other) = (Client::new(&server), Client::new(&server));
    let turn = client.start("one", "begin", "m1");
    assert_eq!(other.told("turn/started")["turn"]["id"], turn.as_str());
    assert_eq!(other.told("item/completed")["item"]["clientId"], "m1");
    assert_eq!(
        client.steer("one", "another", "m2").unwrap_err(),
        format!("expected active turn id `another` but found `{turn}`")
    );
    client.steer("one", &turn, "m3").unwrap();
    assert_eq!(client.taken("one"), [["m1"]]);
    server.say("server tool one true").unwrap();
    assert_eq!(other.told("item/started")["item"]["clientId"], "m1");
    assert_eq!(client.taken("one"), [["m1", "m3"]]);
    // A turn that is started while one runs joins it.
    assert_eq!(client.start("one", "join", "m4"), turn);
    server.say("server approval one on").unwrap();
    let active: Vec<Value> = (0..2).map(|_| other.told("thread/status/changed")["status"].clone()).collect();
    assert_eq!(active[1], json!({ "type": "active", "activeFlags": ["waitingOnApproval"] }));
    server.say("server answer one all fine").unwrap();
    let completed = other.told("turn/completed");
    assert_eq!((&completed["threadId"], &completed["turn"]["status"]), (&"one".into(), &"completed".into()));
    assert_eq!(completed["turn"]["items"].as_array().unwrap().last().unwrap()["text"], "all fine");
    assert_eq!(client.steer("one", &turn, "m5").unwrap_err(), "no active turn to steer");
    let second = client.start("two", "more", "m6");
    client.call("turn/interrupt", json!({ "threadId": "two", "turnId": second })).unwrap();
    assert_eq!(other.told("turn/completed")["turn"]["status"], "interrupted");
    assert_eq!(client.taken("one"), [["m1", "m3", "m4"]]);
    assert_eq!(
        client.call("turn/start", json!({ "threadId": "none" })).unwrap_err(),
        "thread not found: none"
    );
}

#[test]
fn it_answers_late_or_never_and_loses_what_steers() {
    let (server, _isolated) = server("server turn held");
    let mut client = Client::new(&server);
    server.say("server answers turn/start 100ms").unwrap();
    let turn = client.start("one", "begin", "m1");
    let told: Vec<&str> = client.told.iter().filter_map(|message| message["method"].as_str()).collect();
    assert!(told.contains(&"turn/started"), "it has begun before it was answered for: {told:?}");
    server.say("server steers lost").unwrap();
    client.steer("one", &turn, "m2").unwrap();
    server.say("server steers late").unwrap();
    assert_eq!(client.steer("one", &turn, "m3").unwrap_err(), "no active turn to steer");
    assert_eq!(client.taken("one"), [["m1"]]);
    server.say("server turn dies").unwrap();
    let params = json!({ "threadId": "one", "input": [], "clientUserMessageId": "m4" });
    server.say("server answers turn/start at-once").unwrap();
    client.told.clear();
    client.call("turn/start", params).unwrap();
    assert_eq!(client.told("turn/completed")["turn"]["status"], "failed");
    assert_eq!(client.taken("one"), [vec!["m1".to_owned()], Vec::new()]);
    server.say("server answers thread/list never").unwrap();
    let unanswered = client.ask("thread/list", json!({}));
    // The one behind it is answered.
    client.call("thread/loaded/list", json!({})).unwrap();
    assert!(client.told.iter().all(|message| message["id"] != unanswered));
    assert_eq!(server.noted("unanswered").len(), 1);
}

#[test]
fn it_forks_leaks_and_cannot_be_reached_any_more() {
    let (server, isolated) = server("");
    let mut client = Client::new(&server);
    server.say("server fork one three").unwrap();
    let forked = client.told("thread/started")["thread"].clone();
    assert_eq!((&forked["id"], &forked["forkedFromId"]), (&"three".into(), &"one".into()));
    client.start("one", "still there?", "m1");
    client.told("turn/completed");
    assert_eq!(client.taken("one"), [["m1"]], "the old one accepts still");
    let told = |thread: &str| {
        let file = isolated.root().join(thread);
        server.say(&format!("server tool {thread} echo $CODEX_THREAD_ID >'{}'", file.display())).unwrap();
        files::wait_for_text(&file, LIMIT, |text| text.ends_with('\n').then(|| text.trim().to_owned()))
            .unwrap()
    };
    assert_eq!(told("two"), "two");
    server.say("server leak on").unwrap();
    assert_eq!(told("three"), "one");
    server.say("server unlink").unwrap();
    assert!(UnixStream::connect(server.socket()).is_err());
    client.call("thread/list", json!({})).unwrap();
}
