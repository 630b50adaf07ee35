//! The inlets of the contract: each function takes bytes as others may have left them, reads them as the programs do,
//! and panics if what comes of it is wrong. The fuzz targets call the same functions.

use std::cell::OnceCell;
use std::ops::ControlFlow;
use std::path::Path;

use minder_proto::event::{Event, Line};
use minder_proto::host::episode::Episode;
use minder_proto::host::ledger::Line as HostLine;
use minder_proto::host::record::HostRecord;
use minder_proto::host::row;
use minder_proto::host::upkeep::Producers;
use minder_proto::id::{MessageId, SessionId};
use minder_proto::record::{ClosedLine, Cursor, FeedLine, KeyLine, SessionRecord, Watcher};
use minder_proto::selector::Selector;
use minder_proto::stamp::{Stamp, parse_duration, short_age};
use minder_proto::state::{State, StateSet};
use minder_proto::{config, label, queue, text, timeline};

type Inlet = (&'static str, fn(&[u8]));

/// All of them.
pub const ALL: &[Inlet] = &[
    ("timeline", timeline),
    ("segments", segments),
    ("event", event),
    ("ledger", ledger),
    ("record", record),
    ("host", host),
    ("lists", lists),
    ("config", config),
    ("selector", selector),
    ("words", words),
];

thread_local! {
    static SCRATCH: OnceCell<tempfile::TempDir> = const { OnceCell::new() };
}

/// Runs `work` in a folder of this thread that holds these files and no others.
fn with_files(files: &[(&str, &[u8])], work: impl FnOnce(&Path)) {
    SCRATCH.with(|scratch| {
        let dir = scratch.get_or_init(|| tempfile::tempdir().unwrap()).path();
        for entry in std::fs::read_dir(dir).unwrap() {
            std::fs::remove_file(entry.unwrap().path()).unwrap();
        }
        for (name, bytes) in files {
            std::fs::write(dir.join(name), bytes).unwrap();
        }
        work(dir);
    });
}

/// Reads a timeline in every way that there is. Good lines are the same forwards and backwards, and a reader that
/// goes on from any place of them is given what comes behind it.
fn read(dir: &Path) {
    let mut forwards = Vec::new();
    let keep = |into: &mut Vec<(u64, Cursor)>, item: timeline::Item| {
        into.extend(item.line.seq().map(|seq| (seq, item.after)));
        ControlFlow::Continue(())
    };
    let end = timeline::read_after(dir, None, |item| keep(&mut forwards, item)).unwrap();
    assert_eq!(end.gap, None, "who has no position loses none");
    let mut backwards = Vec::new();
    timeline::read_back(dir, |item| keep(&mut backwards, item)).unwrap();
    let newest = timeline::tail(dir).unwrap().seq;
    assert_eq!(newest, forwards.last().map_or(0, |(seq, _)| *seq));
    backwards.reverse();
    let seqs = |list: &[(u64, Cursor)]| list.iter().map(|(seq, _)| *seq).collect::<Vec<_>>();
    assert_eq!(seqs(&backwards), seqs(&forwards));
    // Where numbers rise as they should, each place is found again.
    let rises = forwards.windows(2).all(|w| w[0].0 < w[1].0);
    for (i, (seq, after)) in forwards.iter().enumerate().take(8) {
        let mut rest = Vec::new();
        let end = timeline::read_after(dir, Some(*after), |item| keep(&mut rest, item)).unwrap();
        if rises && *seq > 0 {
            assert_eq!((end.gap, seqs(&rest)), (None, seqs(&forwards[i + 1..])));
        }
        let found = timeline::find(dir, *seq).unwrap();
        assert!(found.is_none_or(|event| event.seq == *seq));
        timeline::at(dir, after.segment, after.offset).unwrap();
    }
    for wild in [u64::MAX, 7] {
        let place = Cursor { seq: wild, offset: wild, segment: wild };
        timeline::read_after(dir, Some(place), |_| ControlFlow::Continue(())).unwrap();
        timeline::at(dir, wild, wild).unwrap();
        timeline::find(dir, wild).unwrap();
    }
}

/// The active file of a timeline.
pub fn timeline(bytes: &[u8]) {
    with_files(&[(timeline::ACTIVE, bytes)], read);
}

/// A sealed segment, and an active file that goes on.
pub fn segments(bytes: &[u8]) {
    let (sealed, active) = bytes.split_at(bytes.len() / 2);
    let name = timeline::sealed_name(1);
    with_files(&[(&name, sealed), (timeline::ACTIVE, active)], |dir| {
        timeline::read_after(dir, None, |_| ControlFlow::Continue(())).unwrap();
        timeline::read_back(dir, |_| ControlFlow::Continue(())).unwrap();
        timeline::tail(dir).unwrap();
        for wild in [0, 1, 2, 1 << 40, u64::MAX] {
            let place = Cursor { seq: wild, offset: wild, segment: 1 };
            timeline::read_after(dir, Some(place), |_| ControlFlow::Continue(())).unwrap();
            timeline::find(dir, wild).unwrap();
        }
    });
}

/// One line of a timeline: what is read of it is what it says when it is written again.
pub fn event(bytes: &[u8]) {
    if let Line::Event(event) = Line::parse(bytes) {
        let text = serde_json::to_vec(&event).unwrap();
        assert!(!text.contains(&b'\n'));
        assert_eq!(serde_json::from_slice::<Event>(&text).unwrap(), *event);
    }
}

/// `queue.jsonl`: the messages that wait are found by their ids, and a rewrite says the same.
pub fn ledger(bytes: &[u8]) {
    let (queue, _) = queue::fold(bytes);
    assert_eq!(queue.iter().count(), queue.len());
    let mut ids = Vec::new();
    for entry in queue.iter() {
        assert_eq!(queue.get(entry.id), Some(entry), "each waits once");
        ids.push(entry.id);
    }
    let mut again = queue::Queue::default();
    queue.to_lines().iter().for_each(|line| assert!(again.apply(line)));
    assert_eq!(again, queue);
    for id in ids.iter().take(3) {
        assert!(!queue::history(bytes, *id).is_empty());
    }
}

/// `session.json`: a record that can be read is the same once it was written again.
pub fn record(bytes: &[u8]) {
    let Ok(record) = serde_json::from_slice::<SessionRecord>(bytes) else { return };
    let text = serde_json::to_vec(&record).unwrap();
    assert_eq!(serde_json::from_slice::<SessionRecord>(&text).unwrap(), record);
}

/// The files of a host: what can be read is the same once it was written again, and a row that cannot be hides no other.
pub fn host(bytes: &[u8]) {
    if let Ok(queue) = row::read(bytes) {
        let text = serde_json::to_vec(&queue).unwrap();
        assert_eq!(row::read(&text).unwrap(), queue);
    }
    if let Ok(record) = serde_json::from_slice::<HostRecord>(bytes) {
        let text = serde_json::to_vec(&record).unwrap();
        assert_eq!(serde_json::from_slice::<HostRecord>(&text).unwrap(), record);
    }
    if let Ok(episode) = serde_json::from_slice::<Episode>(bytes) {
        let text = serde_json::to_vec(&episode).unwrap();
        assert_eq!(serde_json::from_slice::<Episode>(&text).unwrap(), episode);
    }
    if let Ok(producers) = serde_json::from_slice::<Producers>(bytes) {
        let text = serde_json::to_vec(&producers).unwrap();
        assert_eq!(serde_json::from_slice::<Producers>(&text).unwrap(), producers);
    }
    let _ = serde_json::from_slice::<HostLine>(bytes);
}

/// `watchers.json`, and a line of each of the store's own lists.
pub fn lists(bytes: &[u8]) {
    if let Ok(watchers) = serde_json::from_slice::<Vec<Watcher>>(bytes) {
        let text = serde_json::to_vec(&watchers).unwrap();
        assert_eq!(serde_json::from_slice::<Vec<Watcher>>(&text).unwrap(), watchers);
    }
    for line in bytes.split(|b| *b == b'\n') {
        let _ = serde_json::from_slice::<FeedLine>(line);
        let _ = serde_json::from_slice::<ClosedLine>(line);
        let _ = serde_json::from_slice::<KeyLine>(line);
    }
}

/// `config.toml`: what cannot be used is said in one line that names the file.
pub fn config(bytes: &[u8]) {
    with_files(&[("config.toml", bytes)], |dir| {
        let path = dir.join("config.toml");
        if let Err(error) = config::load(&path, |_| None) {
            let text = error.to_string();
            assert_eq!(text.lines().count(), 1, "{text}");
            assert!(text.contains("config.toml") && text.len() < 4_096, "{text}");
        }
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
        if let Ok(value) = std::str::from_utf8(bytes) {
            for key in config::KEYS {
                let name = config::variable(key);
                if let Err(error) = config::load(&dir.join("none"), |n| (n == name).then(|| value.to_owned()))
                {
                    assert!(error.to_string().starts_with(&name), "{error}");
                }
            }
        }
    });
}

fn some_records() -> Vec<SessionRecord> {
    let record = |n: u8, label: &str| -> SessionRecord {
        serde_json::from_value(serde_json::json!({
            "id": SessionId::from_bytes([n; 16]), "label": label, "title": label, "dir": "/w/x",
            "channel": {"kind": "mailbox"}, "created": "2026-11-30T12:00:00Z", "state": "review",
            "state_at": "2026-11-30T12:00:00Z", "state_by": "agent", "last_seq": 1,
        }))
        .unwrap()
    };
    vec![record(1, "api-1"), record(2, &"a".repeat(64)), record(3, "web")]
}

/// The names of sessions on a command line. What is a selector finds the same ones when it is written again.
pub fn selector(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let records = some_records();
    match Selector::parse(&text) {
        Ok(selector) => {
            let caller = Some(records[0].id);
            let found = selector.resolve(records.iter(), caller);
            let again = Selector::parse(&selector.to_string()).unwrap();
            assert_eq!(again.resolve(records.iter(), caller), found);
            let _ = selector.resolve_one(records.iter(), caller);
            let _ = selector.words().map(Iterator::count);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// The words of a command line: durations, times, states, labels, ids; and what is shown of any text.
pub fn words(bytes: &[u8]) {
    let whole = String::from_utf8_lossy(bytes);
    let shown = text::one_line(&whole);
    assert_eq!(shown.lines().count().max(1), 1);
    assert_eq!(text::one_line(&shown), shown, "what can be shown is shown as it is");
    text::block(&whole);
    assert!(text::width(&text::fit(&whole, 20)) <= 20);
    text::first_line(&whole);
    assert!(label::check(&label::from_text(&whole)).is_ok() || label::from_text(&whole).is_empty());
    if let Ok(span) = parse_duration(&whole) {
        short_age(span);
        let now = Stamp::now();
        assert!(now.plus(span) >= now && now.minus(span) <= now);
    }
    if let Ok(stamp) = whole.parse::<Stamp>() {
        assert_eq!(stamp.to_string().parse::<Stamp>().unwrap(), stamp);
    }
    if let Ok(state) = whole.parse::<State>() {
        assert_eq!(state.to_string(), *whole);
    }
    let _ = whole.parse::<StateSet>();
    if let Ok(id) = whole.parse::<SessionId>() {
        assert_eq!(id.to_string().parse::<SessionId>(), Ok(id));
    }
    let _ = whole.parse::<MessageId>();
}
