//! From the bytes of a hook's input to the object that is sent on: also where they are not quite JSON, and never
//! larger than a request may be.

use serde_json::{Map, Value};

/// Above this many bytes parts of it are cut.
const LARGE: usize = 256 * 1024;
/// Bytes of one text in those parts that are kept.
const KEPT: usize = 2_000;
/// What a tool gave: it may be of any size, and nobody reads it.
const GIVEN: &str = "tool_response";
/// What a tool was given. A call is known again by it, in events that hold more beside it and less: how it is sent depends
/// on itself only.
const TOLD: &str = "tool_input";

/// The input as an object with the name of an event; `None` for everything else.
pub fn parse(bytes: &[u8]) -> Option<Map<String, Value>> {
    let value = match serde_json::from_slice(bytes) {
        Ok(value) => value,
        // Half of a surrogate pair, or bytes that are no UTF-8: the rest of the event counts all the same.
        Err(_) => serde_json::from_str(&mended(bytes)).ok()?,
    };
    let Value::Object(mut payload) = value else { return None };
    payload.get("hook_event_name")?.as_str()?;
    if bytes.len() > LARGE {
        payload.get_mut(GIVEN).map(cut);
        if let Some(told) = payload.get_mut(TOLD).filter(|told| told.to_string().len() > LARGE) {
            cut(told);
        }
    }
    Some(payload)
}

/// The text with what no JSON text may hold replaced: bytes that are no UTF-8, and halves of surrogate pairs.
fn mended(bytes: &[u8]) -> String {
    const PLACEHOLDER: &str = "\\ufffd";
    let text = String::from_utf8_lossy(bytes);
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_ref();
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let taken = match surrogate(rest) {
            Some(high) if (0xd800..0xdc00).contains(&high) => {
                let pair =
                    rest.get(6..).and_then(surrogate).is_some_and(|low| (0xdc00..0xe000).contains(&low));
                out.push_str(if pair { &rest[..12] } else { PLACEHOLDER });
                if pair { 12 } else { 6 }
            }
            Some(_) => {
                out.push_str(PLACEHOLDER);
                6
            }
            // An escape of another kind; its second character may be a backslash and begins nothing then.
            None => {
                let len = 1 + rest[1..].chars().next().map_or(0, char::len_utf8);
                out.push_str(&rest[..len]);
                len
            }
        };
        rest = &rest[taken..];
    }
    out.push_str(rest);
    out
}

/// The surrogate that a text begins with as an escape, `\ud83d`.
fn surrogate(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    let code = u32::from_str_radix(digits, 16).ok()?;
    (0xd800..0xe000).contains(&code).then_some(code)
}

/// Keeps the beginning of every text.
fn cut(value: &mut Value) {
    match value {
        Value::String(text) if text.len() > KEPT => {
            let kept = minder_proto::event::cut(text, KEPT).len();
            text.truncate(kept);
            text.push('…');
        }
        Value::Array(items) => items.iter_mut().for_each(cut),
        Value::Object(fields) => fields.values_mut().for_each(cut),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_object_with_an_event_is_one() {
        assert!(parse(br#"{"hook_event_name":"Stop","x":1}"#).is_some());
        for other in
            ["{}", r#"{"hook_event_name":7}"#, "{\"hook_event_name\":\"Stop\"", "{\"a\":}", "{'a':1}"]
        {
            assert_eq!(parse(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn broken_characters_cost_themselves_only() {
        let text = |json: &[u8]| parse(json).unwrap()["p"].as_str().unwrap().to_owned();
        let event = r#"{"hook_event_name":"Stop","p":"#;
        let with = |p: &str| format!("{event}\"{p}\"}}").into_bytes();
        assert_eq!(text(&with(r"a\ud83d b")), "a\u{fffd} b");
        assert_eq!(text(&with(r"\udc00\ud83d\ude00\ud83d")), "\u{fffd}😀\u{fffd}");
        assert_eq!(
            text(&with(r"\\ud83d \ud83d")),
            "\\ud83d \u{fffd}",
            "an escaped backslash begins no escape"
        );
        let mut bytes = with("x");
        let at = bytes.len() - 3;
        bytes[at] = 0xff;
        assert_eq!(text(&bytes), "\u{fffd}");
    }

    #[test]
    fn what_tools_gave_is_cut_where_it_is_large_and_nothing_else_is() {
        let big = "é".repeat(LARGE);
        let value = serde_json::json!({"hook_event_name": "PostToolUse", "prompt": big, "tool_name": "Bash",
            "tool_response": {"stdout": [big], "ok": true}});
        let payload = parse(value.to_string().as_bytes()).unwrap();
        assert_eq!(payload["prompt"].as_str().unwrap().len(), big.len());
        let kept = payload["tool_response"]["stdout"][0].as_str().unwrap();
        assert_eq!((kept.len(), kept.ends_with('…')), (KEPT + 3, true));
        assert_eq!(payload["tool_response"]["ok"], true);
    }

    /// A dialog and the end of the call that it is about are told to be of one call by its input.
    #[test]
    fn what_a_tool_was_given_is_the_same_whatever_stands_beside_it() {
        for many in [10, 3_000, LARGE - 1_000, LARGE * 2] {
            let event = |name: &str, given: usize| {
                let value = serde_json::json!({"hook_event_name": name, "tool_name": "Edit",
                    "tool_input": {"new_string": "x".repeat(many)}, "tool_response": "y".repeat(given)});
                parse(value.to_string().as_bytes()).unwrap()
            };
            let (asked, done) = (event("PermissionRequest", 0), event("PostToolUse", LARGE * 2));
            assert_eq!(asked["tool_input"], done["tool_input"], "{many}");
            assert!(done["tool_response"].as_str().unwrap().len() < 3_000);
            assert!(asked["tool_input"]["new_string"].as_str().unwrap().len() <= LARGE);
        }
    }
}
