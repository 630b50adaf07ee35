//! `labels/` and `bindings/`: one file for each label and each live conversation, and the record that it names says
//! the same; both ways.

use std::collections::BTreeMap;

use minder_proto::id::SessionId;
use minder_proto::layout::file_name;
use minder_proto::record::SessionRecord;

use super::finding::{Finding, Sheet};

/// Which pointers.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// What a session has.
    pub word: &'static str,
    /// Where the files lie that a record calls for, each with the text it is for.
    pub of: fn(&SessionRecord) -> Vec<(String, String)>,
}

/// Labels.
pub const LABELS: Kind = Kind {
    word: "label",
    of: |record| vec![(format!("labels/{}", file_name(&record.label)), record.label.clone())],
};

/// Live conversations.
pub const BINDINGS: Kind = Kind {
    word: "conversation",
    of: |record| {
        let live = record.bindings.iter().filter(|b| b.until.is_none());
        let place = |h: &str, id: &str| format!("bindings/{}/{}", file_name(h), file_name(id));
        live.map(|b| (place(&b.harness, &b.id), b.id.clone())).collect()
    },
};

/// Compares the files there are with the records. `open` tells for every folder in `sessions/` its record, where that
/// can be read.
pub fn compare(
    kind: Kind,
    files: &BTreeMap<String, Vec<u8>>,
    open: &BTreeMap<SessionId, Option<&SessionRecord>>,
) -> Vec<Finding> {
    let mut wanted: BTreeMap<String, (String, Vec<SessionId>)> = BTreeMap::new();
    for (id, record) in open {
        for (path, text) in record.map(kind.of).unwrap_or_default() {
            wanted.entry(path).or_insert_with(|| (text, Vec::new())).1.push(*id);
        }
    }
    let mut found = Vec::new();
    for (path, bytes) in files {
        let mut sheet = Sheet::new(path.as_str());
        let named: Option<SessionId> =
            std::str::from_utf8(bytes).ok().and_then(|t| t.trim_end().parse().ok());
        match named {
            None => sheet.damage("it names no session"),
            Some(id) => match open.get(&id) {
                None => sheet.damage_with(format!("it names session {id}, which is not open"), &[id]),
                Some(Some(_)) if !wanted.get(path).is_some_and(|(_, ids)| ids.contains(&id)) => {
                    sheet.damage_with(
                        format!("it names session {id}, which has no such {}", kind.word),
                        &[id],
                    );
                }
                // Its record cannot be read, which is said elsewhere.
                Some(_) => {}
            },
        }
        found.extend(sheet.finish());
    }
    for (path, (text, ids)) in wanted {
        let mut sheet = Sheet::new(path.as_str());
        if ids.len() > 1 {
            let ids_text: Vec<String> = ids.iter().map(SessionId::to_string).collect();
            let what = format!("more than one session has this {}: {}", kind.word, ids_text.join(", "));
            sheet.damage_with(what, &ids);
        } else if !files.contains_key(&path) {
            let (id, word) = (ids[0], kind.word);
            sheet.damage_with(format!("not there, and session {id} has the {word} {text:?}"), &ids);
        }
        found.extend(sheet.finish());
    }
    found
}
