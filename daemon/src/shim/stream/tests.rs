//! Lines against rules: cases by hand, and any JSON against what a parser that keeps everything finds.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn shape(pairs: &[(&str, &str)]) -> Shape {
    Shape(pairs.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect())
}

fn rules() -> Rules {
    let call = |kind: &str, item: &str, id: &str| Tool {
        line: shape(&[("type", kind)]),
        each: Some("message.content".to_owned()),
        item: shape(&[("type", item)]),
        id: id.to_owned(),
        task: false,
    };
    let whole = |kind: &str| Tool {
        line: shape(&[("type", kind)]),
        each: None,
        item: shape(&[("item.type", "command")]),
        id: "item.id".to_owned(),
        task: kind == "task.started",
    };
    Rules {
        progress: vec![
            shape(&[("type", "assistant")]),
            shape(&[("type", "user")]),
            shape(&[("a.b", "c"), ("d", "e")]),
        ],
        tool_start: vec![call("assistant", "tool_use", "id"), whole("item.started"), whole("task.started")],
        tool_end: vec![call("user", "tool_result", "tool_use_id"), whole("item.completed")],
        result: vec![shape(&[("type", "result")])],
        failed: vec![shape(&[("type", "result"), ("e", "true")]), shape(&[("d", "e")])],
    }
}

/// The lines of a stream that comes in pieces of this size.
fn lines(text: &[u8], piece: usize) -> Vec<Line> {
    let mut told = Vec::new();
    let mut lines = Lines::new(&rules());
    text.chunks(piece.max(1)).for_each(|bytes| lines.push(bytes, |line| told.push(line)));
    lines.finish(|line| told.push(line));
    told
}

fn one(text: &str) -> Line {
    let told = lines(text.as_bytes(), 3);
    assert_eq!(told.len(), 1, "{text}");
    told[0].clone()
}

#[test]
fn lines_are_what_the_rules_say() {
    assert_eq!(one(r#"{"type":"heartbeat"}"#), Line::default());
    assert!(one(r#"{ "type" : "assistant" }"#).progress);
    assert!(one(r#"{"type":"heartbeat","type":"assistant"}"#).progress, "the last of a name counts");
    assert!(!one(r#"{"type":"assistant","type":7}"#).progress);
    assert!(!one(r#"{"inner":{"type":"assistant"},"list":["assistant",{"type":"assistant"}]}"#).progress);
    assert!(one(r#"{"a":{"x":[1,2,{"b":"no"}],"b":"c"},"d":"e"}"#).progress);
    assert!(!one(r#"{"a.b":"c","d":"e"}"#).progress, "a point within a name is none between names");
    assert!(one(r#"{"\u0074ype":"\u0061ssistant"}"#).progress);
    assert!(one(r#"{"type":"result","result":"\ud83d\ude00 \"quoted\" {[\\"}"#).result);
    let failed = |text: &str| (one(text).result, one(text).failed);
    assert_eq!(failed(r#"{"type":"result","e":true}"#), (true, true));
    assert_eq!(failed(r#"{"e": true ,"type":"result"}"#), (true, true));
    assert_eq!(failed(r#"{"type":"result","e":false,"x":true}"#), (true, false));
    assert_eq!(failed(r#"{"type":"result","e":true,"e":7}"#), (true, false));
    assert_eq!(failed(r#"{"type":"other","d":"e"}"#), (false, false), "no answer at all");
    let calls = r#"{"message":{"content":[{"type":"text","text":"x"},{"id":"t1","type":"tool_use","input":{"id":"no",
        "type":"text"}},{"type":"tool_use","id":"t2"}]},"type":"assistant"}"#;
    let line = one(&calls.replace('\n', " "));
    assert_eq!((line.progress, line.starts, line.ends), (true, vec!["t1".into(), "t2".into()], vec![]));
    // The same calls in a line of another type are none.
    assert_eq!(one(&calls.replace('\n', " ").replace("\"assistant\"", "\"partial\"")), Line::default());
    let line = one(r#"{"type":"item.completed","item":{"id":"i","type":"command"}}"#);
    assert_eq!((line.starts, line.ends), (vec![], vec!["i".to_owned()]));
    let line = one(r#"{"type":"task.started","item":{"id":"i","type":"command"}}"#);
    assert_eq!((line.starts, line.tasks, line.ends), (vec![], vec!["i".to_owned()], vec![]));
}

#[test]
fn what_is_no_object_is_no_line() {
    for text in [
        "",
        "assistant",
        "[]",
        "7",
        r#"{"type":"assistant""#,
        r#"{"type":"assistant"}}"#,
        r#"{"type" "assistant"}"#,
        r#"{"type":"assistant",}x"#,
        r#"{"type":"assistant"} x"#,
        r#"{"type":"\q"}"#,
        r#"{"a":[1}"#,
        "\u{0}{}",
    ] {
        assert_eq!(lines(text.as_bytes(), 2), [], "{text}");
    }
    let deep = format!("{{\"type\":\"assistant\",\"x\":{}{}}}", "[".repeat(500), "]".repeat(500));
    assert_eq!(lines(deep.as_bytes(), 100), []);
    // A bad line ends with its newline.
    assert!(lines(b"{\"type\":\n{\"type\":\"result\"}\r\n", 5)[0].result);
    assert_eq!(lines(b"{}\n{}\n\n{}", 4).len(), 3);
}

#[test]
fn f12_a_line_of_any_length_is_scanned_in_the_memory_of_a_short_one() {
    let mut stream = Lines::new(&rules());
    let mut told = Vec::new();
    stream.push(b"{\"text\":\"", |line| told.push(line));
    let piece = vec![b'x'; 64 * 1024];
    for _ in 0..1_600 {
        stream.push(&piece, |line| told.push(line));
    }
    stream.push(b"\",\"type\":\"assistant\"}\n", |line| told.push(line));
    assert!(told.len() == 1 && told[0].progress);
    // Names and wanted strings without end neither.
    let long = "n".repeat(10_000);
    let line = format!("{{\"{long}\":{{\"type\":\"{long}\"}},\"type\":\"{long}\",\"type\":\"result\"}}");
    assert!(one(&line).result);
    assert!(stream.scanner.kept() < 4096, "{}", stream.scanner.kept());
}

/// What the rules make of a line that is kept as a whole.
fn reference(value: &Value) -> Line {
    fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
        path.split('.').try_fold(value, |value, name| value.as_object()?.get(name))
    }
    let word = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(word) => Some(word.to_string()),
        _ => None,
    };
    let fits = |value: &Value, shape: &Shape| {
        shape.0.iter().all(|(path, text)| at(value, path).and_then(word).as_ref() == Some(text))
    };
    let ids = |tools: &[Tool], task: bool| {
        let mut ids = Vec::new();
        for tool in tools.iter().filter(|tool| tool.task == task && fits(value, &tool.line)) {
            let items = match &tool.each {
                None => vec![value],
                Some(each) => at(value, each).and_then(Value::as_array).into_iter().flatten().collect(),
            };
            let found = items.into_iter().filter(|item| fits(item, &tool.item));
            ids.extend(found.filter_map(|item| word(at(item, &tool.id)?)));
        }
        ids
    };
    let rules = rules();
    let result = rules.result.iter().any(|shape| fits(value, shape));
    Line {
        progress: rules.progress.iter().any(|shape| fits(value, shape)),
        starts: ids(&rules.tool_start, false),
        tasks: ids(&rules.tool_start, true),
        ends: ids(&rules.tool_end, false),
        result,
        failed: result && rules.failed.iter().any(|shape| fits(value, shape)),
    }
}

/// JSON made of the words that the rules ask for, so that it often nearly fits.
fn nearly() -> impl Strategy<Value = Value> {
    let words = [
        "type",
        "assistant",
        "user",
        "result",
        "message",
        "content",
        "tool_use",
        "tool_result",
        "id",
        "tool_use_id",
        "item",
        "command",
        "item.started",
        "item.completed",
        "a",
        "b",
        "c",
        "d",
        "e",
        "a.b",
        "\u{1F600}\"\\\n",
        "",
    ];
    let word = proptest::sample::select(words.to_vec());
    let leaf = prop_oneof![
        6 => word.clone().prop_map(|w| json!(w)),
        1 => any::<i64>().prop_map(|n| json!(n)),
        1 => any::<f64>().prop_filter_map("a number", |n| n.is_finite().then(|| json!(n))),
        1 => prop_oneof![Just(json!(null)), Just(json!(true)), Just(json!(false))],
        1 => "\\PC*".prop_map(|s| json!(s)),
    ];
    let value = leaf.prop_recursive(4, 60, 6, move |inner| {
        let key = proptest::sample::select(words.to_vec());
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::vec((key, inner), 0..6)
                .prop_map(|pairs| pairs.into_iter().map(|(k, v)| (k.to_owned(), v)).collect::<Value>()),
        ]
    });
    // A frame in which calls stand where they are looked for.
    (value.clone(), value, word).prop_map(|(outer, inner, kind)| match outer {
        Value::Object(mut map) => {
            map.entry("type").or_insert(json!(kind));
            map.entry("message").or_insert(json!({ "content": [inner] }));
            Value::Object(map)
        }
        other => json!({ "type": kind, "message": { "content": [other, inner] } }),
    })
}

proptest! {
    #[test]
    fn any_line_is_what_a_parser_makes_of_it(values in proptest::collection::vec(nearly(), 1..4), piece in 1_usize..40) {
        let text: String = values.iter().flat_map(|value| [value.to_string(), "\n".to_owned()]).collect();
        let expected: Vec<Line> = values.iter().map(reference).collect();
        prop_assert_eq!(lines(text.as_bytes(), piece), expected, "{}", text);
    }

    #[test]
    fn any_bytes_are_scanned(bytes in proptest::collection::vec(any::<u8>(), 0..400), piece in 1_usize..40) {
        let told = lines(&bytes, piece);
        prop_assert!(told.len() <= bytes.len());
        prop_assert_eq!(told, lines(&bytes, bytes.len()));
    }
}
