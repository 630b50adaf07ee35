//! Compares settings by meaning: what was there is there, what came is ours.

use minder_client::hooks::json_text::{Kind, Node, parse};

const MARK: &str = "# minder-hook";

/// Whether `after` is `before` with nothing but hooks of ours added at the ends of its containers.
pub fn grown(before: &str, after: &str) -> bool {
    let after = parse(after).unwrap().root.expect("something was put in");
    match parse(before).unwrap().root {
        Some(before) => node_grown(&before, &after),
        None => ours(&after),
    }
}

fn node_grown(before: &Node, after: &Node) -> bool {
    match (&before.kind, &after.kind) {
        (Kind::Array { items: before, .. }, Kind::Array { items: after, .. }) => {
            before.len() <= after.len()
                && before.iter().zip(after).all(|(before, after)| node_grown(before, after))
                && after[before.len()..].iter().all(ours)
        }
        (Kind::Object { members: before, .. }, Kind::Object { members: after, .. }) => {
            let same =
                before.iter().zip(after).all(|(b, a)| b.key == a.key && node_grown(&b.value, &a.value));
            before.len() <= after.len()
                && same
                && after[before.len()..].iter().all(|member| ours(&member.value))
        }
        (before, after) => before == after,
    }
}

/// A command of ours, or a container that has something in it and nothing foreign.
fn ours(node: &Node) -> bool {
    if let Some(command) = node.member("command").and_then(Node::as_str) {
        return command.ends_with(MARK);
    }
    let members = node.members().iter().filter(|member| member.key != "matcher").map(|member| &member.value);
    let mut parts: Vec<_> = members.collect();
    parts.extend(node.items());
    !parts.is_empty() && parts.into_iter().all(ours)
}

/// The meaning of settings: without spans, and without empty lists in `hooks`, an empty `hooks`, or an object
/// with nothing in it, which all mean what their absence means.
pub fn meaning(text: &str) -> String {
    let Some(root) = parse(text).unwrap().root else { return String::new() };
    let mut parts = Vec::new();
    for member in root.members() {
        let mut value = spelt(&member.value);
        if member.key == "hooks" && member.value.is_object() {
            let events = member.value.members().iter().filter(|event| spelt(&event.value) != "[]");
            let events: Vec<_> =
                events.map(|event| format!("{:?}:{}", event.key, spelt(&event.value))).collect();
            if events.is_empty() {
                continue;
            }
            value = events.join(",");
        }
        parts.push(format!("{:?}:{value}", member.key));
    }
    parts.join(",")
}

fn spelt(node: &Node) -> String {
    match &node.kind {
        Kind::Array { items, .. } => format!("[{}]", items.iter().map(spelt).collect::<Vec<_>>().join(",")),
        Kind::Object { members, .. } => {
            let members = members.iter().map(|member| format!("{:?}:{}", member.key, spelt(&member.value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        }
        scalar => format!("{scalar:?}"),
    }
}

#[test]
fn growth_is_told_from_change() {
    let group = format!("{{\"hooks\": [{{\"command\": \"x {MARK}\"}}]}}");
    let foreign = "{\"hooks\": [{\"command\": \"x\"}]}";
    let with = |list: &str| format!("{{\"hooks\": {{\"Stop\": [{list}]}}}}");
    assert!(grown(&with(""), &with(&group)));
    assert!(grown(&with(foreign), &with(&format!("{foreign}, {group}"))));
    assert!(grown("{}", &with(&group)));
    assert!(grown("", &with(&group)));
    assert!(!grown(&with(foreign), &with(&group)));
    assert!(!grown(&with(""), &with(foreign)));
    assert!(!grown("", &with(&format!("{foreign}, {group}"))));
    assert!(!grown("{\"a\": 1}", &with(&group)));
    assert!(!grown("{\"a\": 1}", "{\"a\": 2}"));
    assert_eq!(meaning("{\"hooks\": {\"Stop\": [ ]}, \"a\": 1}"), meaning("{\"a\": 1, /* */}"));
    assert_ne!(meaning("{\"hooks\": {\"Stop\": [1]}}"), meaning("{}"));
}
