//! What a caller may say is heard: a field that nobody reads would be taken and left out in silence.

use super::tree::{files, program_code};

#[test]
fn every_field_that_a_call_may_have_is_read() {
    let daemon: Vec<_> =
        program_code().into_iter().filter(|(path, _)| path.starts_with("daemon/src/")).collect();
    let is_read = |field: &str| {
        let read = format!(".{field}");
        let ends = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        daemon.iter().any(|(_, code)| {
            code.text().match_indices(&read).any(|(at, _)| ends(&code.text()[at + read.len()..]))
        })
    };
    let mut seen = 0;
    let mut unread = Vec::new();
    for file in files().iter().filter(|f| f.path.starts_with("proto/src/rpc/") && f.path.ends_with(".rs")) {
        // What callers say is read strictly; an answer is not.
        for part in file.text.split("#[serde(deny_unknown_fields)]").skip(1) {
            let (_, body) = part.split_once("pub struct ").expect("it stands over a struct");
            let (name, body) = body.split_once(" {").expect("a struct has a body");
            let end = body.find("}\n").unwrap_or(body.len());
            for field in body[..end].lines().filter_map(|l| l.trim().strip_prefix("pub ")?.split_once(':')) {
                seen += 1;
                if !is_read(field.0) {
                    unread.push(format!("{name}.{}", field.0));
                }
            }
        }
    }
    assert!(seen > 50, "{seen}");
    assert!(unread.is_empty(), "taken and never read: {unread:?}");
}
