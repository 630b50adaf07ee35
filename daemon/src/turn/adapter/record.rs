//! The lines of a typed stream as records, and paths into them.

use serde_json::Value;

use super::Output;
use super::plan::Fields;

/// The records that were kept, in order: lines that are JSON objects. A line that was cut off is none.
pub fn records<'a>(output: &Output<'a>, written: u64) -> impl Iterator<Item = Value> + use<'a> {
    let (head, tail) = (output.head, rest(output, written));
    // Where bytes are missing in between, the last line of the one and the first of the other are parts of lines.
    let (head, tail) = if tail.1 {
        let end = head.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
        let begin = tail.0.iter().position(|b| *b == b'\n').map_or(tail.0.len(), |at| at + 1);
        (vec![&head[..end]], &tail.0[begin..])
    } else if tail.0.is_empty() {
        (vec![head], tail.0)
    } else {
        // The line in which the kept beginning ends goes on in the tail.
        let end = head.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
        let begin = tail.0.iter().position(|b| *b == b'\n').map_or(tail.0.len(), |at| at + 1);
        (vec![&head[..end], &head[end..], &tail.0[..begin]], &tail.0[begin..])
    };
    let mut parts = head.into_iter();
    let whole = parts.next().unwrap_or_default();
    let joined: Vec<u8> = parts.flatten().copied().collect();
    let of = |bytes: &[u8]| -> Vec<Value> {
        let lines = bytes.split(|b| *b == b'\n');
        lines.filter_map(|line| serde_json::from_slice(line).ok()).filter(Value::is_object).collect()
    };
    of(whole).into_iter().chain(of(&joined)).chain(of(tail))
}

/// What of the tail is not in the kept beginning, and whether bytes are missing before it.
fn rest<'a>(output: &Output<'a>, written: u64) -> (&'a [u8], bool) {
    let (head, tail) = (output.head.len() as u64, output.tail.len() as u64);
    let begins = written.saturating_sub(tail);
    let twice = usize::try_from(head.saturating_sub(begins)).unwrap_or(usize::MAX);
    (output.tail.get(twice..).unwrap_or_default(), begins > head)
}

/// Everything that stands at a path: names with dots between them, `*` for every item of an array or an object.
pub fn at<'v>(value: &'v Value, path: &str) -> Vec<&'v Value> {
    let mut found = vec![value];
    for name in path.split('.') {
        found = found
            .into_iter()
            .flat_map(|value| match (name, value) {
                ("*", Value::Array(items)) => items.iter().collect(),
                ("*", Value::Object(fields)) => fields.values().collect(),
                (name, value) => value.get(name).into_iter().collect::<Vec<_>>(),
            })
            .collect();
    }
    found
}

/// The text at a path, of the first place that has one.
pub fn text<'v>(value: &'v Value, path: &str) -> Option<&'v str> {
    at(value, path).into_iter().find_map(Value::as_str)
}

/// True if each of these paths has this text, number or truth value.
pub fn fits(value: &Value, fields: Fields) -> bool {
    fields.iter().all(|(path, wanted)| {
        at(value, path).into_iter().any(|found| match found {
            Value::String(text) => text == wanted,
            Value::Bool(truth) => *wanted == if *truth { "true" } else { "false" },
            Value::Number(number) => wanted.parse().is_ok_and(|n: serde_json::Number| n == *number),
            _ => false,
        })
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn numbers(head: &str, tail: &str, written: usize) -> Vec<i64> {
        let output = Output { head: head.as_bytes(), tail: tail.as_bytes(), stderr: b"" };
        records(&output, written as u64).map(|r| r["n"].as_i64().unwrap()).collect()
    }

    #[test]
    fn beginning_and_end_are_read_as_one_stream() {
        let all = "{\"n\":1}\nwords\n[3]\n{\"n\":2}\n{\"n\":3}\n{\"n\":4}";
        assert_eq!(numbers(all, "", all.len()), [1, 2, 3, 4]);
        for kept in 0..=all.len() {
            // The tail has all that the beginning has not, and some of it twice.
            for tail in [all.len() - kept, (all.len() - kept + 5).min(all.len())] {
                let tail = &all[all.len() - tail..];
                let tail = if kept == all.len() { "" } else { tail };
                assert_eq!(numbers(&all[..kept], tail, all.len()), [1, 2, 3, 4], "{kept}");
            }
        }
    }

    #[test]
    fn a_line_of_which_a_part_is_missing_is_none() {
        assert_eq!(numbers("{\"n\":1}\n{\"n\":2", "}\n{\"n\":4}", 100), [1, 4]);
        assert_eq!(numbers("", "\"n\":3}\n{\"n\":4}\n", 100), [4]);
    }

    #[test]
    fn paths_lead_into_lists_and_maps() {
        let value = json!({"a": {"x": {"n": 1}, "y": {"n": 2}}, "l": [{"t": "one"}, {"u": 0}, {"t": "two"}], "b": true});
        assert_eq!(at(&value, "a.*.n"), [&json!(1), &json!(2)]);
        assert_eq!(at(&value, "l.*.t"), [&json!("one"), &json!("two")]);
        assert_eq!(text(&value, "l.*.t"), Some("one"));
        assert!(fits(&value, &[("b", "true"), ("a.x.n", "1"), ("l.*.t", "two")]));
        assert!(!fits(&value, &[("b", "false")]) && !fits(&value, &[("c", "")]));
    }
}
