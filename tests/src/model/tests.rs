//! The scripted model over its socket, as a harness meets it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Model, Outcome};

const LIMIT: Duration = Duration::from_secs(10);

/// Sends a request on a connection of its own.
fn send(model: &Model, method: &str, path: &str, body: &Value) -> TcpStream {
    let body = body.to_string();
    let mut stream = TcpStream::connect(("127.0.0.1", model.port())).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let head =
        format!("{method} {path} HTTP/1.1\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
    stream.write_all((head + &body).as_bytes()).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    stream
}

/// The same, keeping our side open: a client that waits.
fn ask(model: &Model, body: &Value) -> TcpStream {
    let body = body.to_string();
    let mut stream = TcpStream::connect(("127.0.0.1", model.port())).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let head = format!("POST /v1/messages?beta=true HTTP/1.1\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all((head + &body).as_bytes()).unwrap();
    stream
}

fn prompt(text: &str, stream: bool) -> Value {
    json!({"model": "m-1", "stream": stream, "tools": [{"name": "Bash"}],
        "messages": [{"role": "user", "content": text}]})
}

/// Reads an event stream to its end: the data of each event.
fn events(mut stream: TcpStream) -> Vec<Value> {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).unwrap()).collect()
}

/// Reads one answer that tells its length: status and body.
fn whole(mut stream: TcpStream) -> (String, Value) {
    let mut text = Vec::new();
    let mut byte = [0];
    while !text.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        text.push(byte[0]);
    }
    let head = String::from_utf8(text).unwrap();
    let length = head.lines().find_map(|l| l.strip_prefix("content-length: ")).unwrap().parse().unwrap();
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap();
    let status = head.split(' ').nth(1).unwrap().to_owned();
    (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
}

#[test]
fn a_streamed_tool_call_and_a_plain_answer() {
    let model = Model::start().unwrap();
    let events = events(ask(&model, &prompt("[[sh echo hi]]", true)));
    let kinds: Vec<_> = events.iter().map(|e| e["type"].as_str().unwrap()).collect();
    let expected = "message_start content_block_start content_block_delta content_block_stop message_delta \
        message_stop";
    assert_eq!(kinds.join(" "), expected);
    assert_eq!(events[1]["content_block"]["name"], "Bash");
    let input: Value = serde_json::from_str(events[2]["delta"]["partial_json"].as_str().unwrap()).unwrap();
    assert_eq!(input["command"], "echo hi");
    assert_eq!(events[4]["delta"]["stop_reason"], "tool_use");

    let (status, message) = whole(ask(&model, &prompt("[[say yes]]", false)));
    assert_eq!((status.as_str(), &message["content"][0]["text"]), ("200", &json!("yes")));
}

#[test]
fn a_request_says_whose_it_is() {
    let model = Model::start().unwrap();
    let mut body = prompt("[[say yes]]", false);
    body["metadata"] = json!({"user_id": r#"{"device_id":"d","session_id":"abc"}"#});
    whole(ask(&model, &body));
    let seen = model.requests();
    assert_eq!((seen[0].session.as_deref(), seen[0].model.as_str()), (Some("abc"), "m-1"));
}

#[test]
fn a_connection_serves_one_request_after_the_other() {
    let model = Model::start().unwrap();
    let stream = ask(&model, &prompt("[[say one]]", false));
    let mut second = stream.try_clone().unwrap();
    assert_eq!(whole(stream).1["content"][0]["text"], "one");
    let body = prompt("[[say two]]", false).to_string();
    let head = format!("POST /v1/messages HTTP/1.1\r\ncontent-length: {}\r\n\r\n", body.len());
    second.write_all((head + &body).as_bytes()).unwrap();
    assert_eq!(whole(second).1["content"][0]["text"], "two");
}

#[test]
fn side_requests_use_up_no_script_and_unknown_paths_are_told_apart() {
    let model = Model::start().unwrap();
    let mut side = prompt("[[say script]]", false);
    side.as_object_mut().unwrap().remove("tools");
    assert_eq!(whole(ask(&model, &side)).1["content"][0]["text"], "side");
    assert!(whole(send(&model, "POST", "/v1/messages/count_tokens", &side)).1["input_tokens"].is_number());
    assert_eq!(whole(send(&model, "GET", "/v1/nothing", &Value::Null)).0, "404");
    assert_eq!(whole(send(&model, "HEAD", "/", &Value::Null)).0, "200");
    let seen = model.requests();
    let paths: Vec<_> = seen.iter().map(|r| (r.path.as_str(), r.main)).collect();
    assert_eq!(
        paths,
        [("/v1/messages", false), ("/v1/messages/count_tokens", false), ("/v1/nothing", false), ("/", false)]
    );
}

#[test]
fn errors_have_the_status_of_the_script() {
    let model = Model::start().unwrap();
    let (status, body) = whole(ask(&model, &prompt("[[err 529]]", true)));
    assert_eq!((status.as_str(), &body["error"]["type"]), ("529", &json!("overloaded_error")));
}

#[test]
fn a_cut_answer_begins_and_does_not_end() {
    let model = Model::start().unwrap();
    let events = events(ask(&model, &prompt("[[cut]]", true)));
    assert_eq!(events.last().unwrap()["type"], "content_block_delta");
    let dropped = |r: &super::Request| r.outcome == Outcome::Dropped;
    model.wait_for(LIMIT, |all| all.iter().any(dropped).then_some(())).unwrap();
}

#[test]
fn a_drip_streams_words_before_the_answer() {
    let model = Model::start().unwrap();
    let events = events(ask(&model, &prompt("[[drip 0.1]][[say end]]", true)));
    let texts: Vec<_> = events.iter().filter_map(|e| e["delta"]["text"].as_str()).collect();
    assert_eq!(texts, ["drip ", "end"]);
}

#[test]
fn a_gate_holds_the_answer_until_the_test_opens_it() {
    let model = Model::start().unwrap();
    let waiting = ask(&model, &prompt("[[gate go]][[say through]]", false));
    let request = model.wait_for_text(LIMIT, "[[gate go]]").unwrap();
    assert_eq!(request.outcome, Outcome::Open);
    model.open("go");
    assert_eq!(whole(waiting).1["content"][0]["text"], "through");
    assert_eq!(
        whole(ask(&model, &prompt("[[gate go]][[say again]]", false))).1["content"][0]["text"],
        "again"
    );
}

#[test]
fn a_client_that_leaves_a_hanging_request_is_seen() {
    let model = Model::start().unwrap();
    for script in ["[[hang]]", "[[wait 100]]", "[[gate shut]]"] {
        let client = ask(&model, &prompt(script, true));
        model.wait_for_text(LIMIT, script).unwrap();
        drop(client);
    }
    let left = |all: &[super::Request]| all.iter().all(|r| r.outcome == Outcome::Dropped).then_some(());
    model.wait_for(LIMIT, left).unwrap();
}

#[test]
fn a_wait_that_is_not_met_ends_at_its_limit_and_shows_the_log() {
    let model = Model::start().unwrap();
    whole(ask(&model, &prompt("hello there", false)));
    let unmet = model.wait_for_text(Duration::from_millis(20), "nobody says this").unwrap_err().to_string();
    assert!(unmet.contains("hello there"), "{unmet}");
}

#[test]
fn the_end_of_the_model_ends_what_waits() {
    let model = Model::start().unwrap();
    let clients = ["[[hang]]", "[[gate never]]", "[[wait 1000]]"].map(|s| ask(&model, &prompt(s, false)));
    model.wait_for(LIMIT, |all| (all.len() == 3).then_some(())).unwrap();
    drop(model);
    for mut client in clients {
        let mut rest = Vec::new();
        client.read_to_end(&mut rest).unwrap();
        assert!(rest.is_empty(), "{rest:?}");
    }
}

#[test]
fn responses_are_streamed_and_a_plan_that_is_used_up_says_until_when() {
    let model = Model::start().unwrap();
    let body = |text: &str| {
        json!({"model": "m-1", "stream": true, "tools": [{"type": "function", "name": "exec_command"}],
            "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}]})
    };
    let kinds = |text: &str| {
        let events = events(send(&model, "POST", "/v1/responses", &body(text)));
        let last = events.last().unwrap()["response"]["output"][0].clone();
        (events.iter().map(|e| e["type"].as_str().unwrap().to_owned()).collect::<Vec<_>>().join(" "), last)
    };
    let (told, item) = kinds("[[sh echo hi]]");
    assert_eq!(
        told,
        "response.created response.output_item.added response.output_item.done response.completed"
    );
    assert_eq!((&item["name"], &item["arguments"]), (&json!("exec_command"), &json!(r#"{"cmd":"echo hi"}"#)));
    assert_eq!(kinds("[[say yes]]").1["content"][0]["text"], "yes");
    let (status, refused) = whole(send(&model, "POST", "/v1/responses", &body("[[limit 60]]")));
    assert_eq!((status.as_str(), &refused["error"]["type"]), ("429", &json!("usage_limit_reached")));
    assert!(refused["error"]["resets_at"].as_u64() > Some(1_700_000_000));
    assert_eq!(whole(ask(&model, &prompt("[[limit 60]]", true))).0, "429");
}
