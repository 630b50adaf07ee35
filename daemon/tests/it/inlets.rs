//! The inlets of the daemon: each function takes bytes as others may have left or sent them, reads them as the daemon
//! does, and panics if what comes of it is wrong. The fuzz targets call the same functions.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use minder_daemon::check;
use minder_daemon::delivery::evidence::Transcript;
use minder_daemon::hook::{payload, status};
use minder_daemon::store::files::Files;
use minder_daemon::store::op::{self, Op};
use minder_daemon::store::recover::replay;
use minder_daemon::store::spool::{Content, Spool};
use minder_daemon::store::{journal, load};
use minder_daemon::turn::adapter::{self, Output, ZonedDateTime};
use minder_proto::id::{MessageId, SessionId};
use minder_proto::layout::Home;
use minder_proto::rpc::{self, Call};
use minder_proto::turn::folder::{Found, Spec};
use minder_proto::turn::names::Class;
use serde_json::Value;

type Inlet = (&'static str, fn(&[u8]));

/// All of them.
pub const ALL: &[Inlet] = &[
    ("operations", operations),
    ("journal", journal),
    ("loaded", loaded),
    ("hook", hook),
    ("status", status),
    ("transcript", transcript),
    ("spool", spool),
    ("call", call),
    ("request", request),
    ("output", output),
];

thread_local! {
    static SCRATCH: OnceCell<tempfile::TempDir> = const { OnceCell::new() };
}

/// Runs `work` in an empty folder of this thread.
fn with_folder(work: impl FnOnce(&Path)) {
    SCRATCH.with(|scratch| {
        let dir = scratch.get_or_init(|| tempfile::tempdir().unwrap()).path();
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                std::fs::remove_dir_all(path).unwrap();
            } else {
                std::fs::remove_file(path).unwrap();
            }
        }
        work(dir);
    });
}

/// Every file under a folder, with its content.
fn tree(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut todo = vec![root.to_owned()];
    while let Some(dir) = todo.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                todo.push(path);
            } else {
                let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
                found.insert(name, std::fs::read(&path).unwrap());
            }
        }
    }
    found
}

/// The payload of a journal's record: what decodes encodes to itself; applying it touches nothing outside the store,
/// and a second replay changes nothing more.
pub fn operations(bytes: &[u8]) {
    let Ok(ops) = op::decode(bytes) else { return };
    let encoded = op::encode(&ops);
    assert_eq!(op::decode(&encoded).unwrap(), ops);
    // A place far behind the end of a file is damage; one that would make a sparse file is not tried here.
    let far = |op: &Op| matches!(op, Op::Append { file, .. } if file.len() > 200);
    if ops.len() > 64 || ops.iter().any(far) {
        return;
    }
    with_folder(|dir| {
        let (root, beside) = (dir.join("store"), dir.join("beside"));
        for folder in ["sessions", "trash", "labels", "quarantine"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        std::fs::write(&beside, "untouched").unwrap();
        let commits = [ops];
        // What cannot be done, as with a file where a folder should be, is an error and no damage.
        if replay(&mut Files::new(&root), &commits, None).is_ok() {
            let once = tree(&root);
            if replay(&mut Files::new(&root), &commits, None).is_ok_and(|d| d.quarantined.is_empty()) {
                assert_eq!(tree(&root), once);
            }
        }
        assert_eq!(std::fs::read_dir(dir).unwrap().count(), 2);
        assert_eq!(std::fs::read(&beside).unwrap(), b"untouched");
    });
}

/// A segment of the journal: as it stands, and with a head and a checksum that are right, so that what is in it counts.
/// Reading changes nothing.
pub fn journal(bytes: &[u8]) {
    with_folder(|dir| {
        let name = |n: u64| dir.join(format!("{n:010}.wal"));
        std::fs::write(name(1), bytes).unwrap();
        let found = journal::recover(dir).unwrap();
        assert!(found.commits.len() <= bytes.len());
        let mut whole = b"MINDERJ1".to_vec();
        for field in [1, u64::MAX, 1] {
            whole.extend_from_slice(&u64::to_le_bytes(field));
        }
        whole.extend_from_slice(&crc32c::crc32c(&whole).to_le_bytes());
        whole.extend_from_slice(&u32::try_from(bytes.len()).unwrap().to_le_bytes());
        whole.extend_from_slice(&1u64.to_le_bytes());
        let sum = crc32c::crc32c_append(crc32c::crc32c(&1u64.to_le_bytes()), bytes);
        whole.extend_from_slice(&sum.to_le_bytes());
        whole.extend_from_slice(bytes);
        std::fs::write(name(1), &whole).unwrap();
        // What follows the last record that counts may be anything, and names that are none of the journal's too.
        for other in ["1.wal", "18446744073709551615.wal", "-1.wal", ".wal", "0000000009.wal.new"] {
            std::fs::write(dir.join(other), bytes).unwrap();
        }
        std::fs::write(name(2), bytes).unwrap();
        let found = journal::recover(dir).unwrap();
        let good = !bytes.is_empty() && op::decode(bytes).is_ok();
        // A last segment without a head is one that is being made only if nothing stands behind the place of the head.
        if bytes.get(36..).is_none_or(|b| b.iter().all(|b| *b == 0)) {
            assert_eq!((found.commits.len(), found.damage.len()), (usize::from(good), 0));
        } else {
            assert!(!found.damage.is_empty() && found.hole().is_some());
        }
        assert_eq!(std::fs::read(name(1)).unwrap(), whole);
        assert_eq!(std::fs::read(name(2)).unwrap(), bytes);
    });
}

/// Any of the files that are loaded at a start. None is lost: it is as it was, or it lies in the quarantine; what is
/// wrong is said in a line each; and the check of the files comes to its end.
pub fn loaded(bytes: &[u8]) {
    let id = SessionId::from_bytes([1; 16]);
    let good = serde_json::json!({
        "id": id, "label": "api", "title": "api", "dir": "/w", "channel": {"kind": "mailbox"},
        "created": "2026-11-30T12:00:00Z", "state": "idle", "state_at": "2026-11-30T12:00:00Z",
        "state_by": "agent", "last_seq": 1,
    });
    let good = serde_json::to_vec(&good).unwrap();
    for place in ["record", "watchers", "ledger", "keys", "closed", "format"] {
        with_folder(|dir| {
            let home = Home::at(dir.join("store"));
            let session = home.session(id);
            let folders = [
                session.clone(),
                home.trash(),
                home.operator(),
                home.quarantine(),
                home.journal(),
                home.spool(),
            ];
            for folder in folders {
                std::fs::create_dir_all(folder).unwrap();
            }
            std::fs::write(session.join("session.json"), &good).unwrap();
            std::fs::write(home.format(), "minder-store 1\n").unwrap();
            let file = match place {
                "record" => session.join("session.json"),
                "watchers" => session.join("watchers.json"),
                "ledger" => session.join("queue.jsonl"),
                "keys" => home.keys(),
                "closed" => home.closed(),
                _ => home.format(),
            };
            std::fs::write(&file, bytes).unwrap();
            let mut notes = Vec::new();
            load::load(&home, &mut notes).unwrap();
            assert!(notes.iter().all(|n| n.lines().count() == 1 && n.len() < 2_000), "{notes:?}");
            let there = std::fs::read(&file).is_ok_and(|b| b == bytes);
            let aside = || tree(&home.quarantine()).into_values().any(|b| b == bytes);
            assert!(there || aside(), "{place} is lost");
            assert!(there || !notes.is_empty(), "{place} went aside without a word");
            let _ = check::check(&home);
        });
    }
}

/// What a harness gives its hooks.
pub fn hook(bytes: &[u8]) {
    let Ok(value) = serde_json::from_slice::<Value>(bytes) else { return };
    let known = minder_daemon::hook::dialect::DIALECTS.map(|d| d.harness);
    for harness in known.into_iter().chain(["", "no-harness"]) {
        if let Some((read, heard)) = payload::read(harness, value.clone()) {
            assert!(!read.payload.session_id.is_empty() && read.payload.session_id.len() <= 128);
            let _ = format!("{heard:?}");
        }
    }
}

/// A harness's own word on whether it works.
pub fn status(bytes: &[u8]) {
    let _ = status::StatusFile::parse(bytes);
}

/// What a harness writes of what its model saw: nothing that is damaged is evidence, and it is read once.
pub fn transcript(bytes: &[u8]) {
    with_folder(|dir| {
        let path = dir.join("t.jsonl");
        std::fs::write(&path, bytes).unwrap();
        let wanted: Vec<MessageId> =
            ["0199c2d4-90c3-7f0e-8a17-c2b67be21c09"].map(|i| i.parse().unwrap()).into();
        let mut transcript = Transcript { path, offset: 0 };
        let seen = transcript.look(&wanted);
        assert!(seen.len() <= 1);
        assert!(transcript.offset <= bytes.len() as u64);
        assert!(transcript.look(&wanted).is_empty(), "it was looked through");
    });
}

/// A request that was left in the spool: it is one, or there is a reason why not; the file stays.
pub fn spool(bytes: &[u8]) {
    with_folder(|dir| {
        let home = Home::at(dir);
        let spool = Spool::new(&home);
        spool.make().unwrap();
        let name = "0199c2d4-90c3-7f0e-8a17-c2b67be21c09.json";
        let path = spool.folder().join(name);
        std::fs::write(&path, bytes).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        match spool.read(name).unwrap() {
            Content::Request(_, key) => assert_eq!(format!("{key}.json"), name),
            Content::Unfit(why) => assert!(why.lines().count() == 1 && why.len() < 2_000, "{why}"),
            Content::Gone => panic!("it is there"),
        }
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
    });
}

/// The parameters of every call that there is.
pub fn call(bytes: &[u8]) {
    fn each<C: Call + serde::de::DeserializeOwned>(bytes: &[u8]) {
        if let Err(error) = serde_json::from_slice::<C>(bytes) {
            assert!(!error.to_string().is_empty());
        }
    }
    each::<rpc::Hello>(bytes);
    each::<rpc::Status>(bytes);
    each::<rpc::Stop>(bytes);
    each::<rpc::HookEvent>(bytes);
    each::<rpc::HookWait>(bytes);
    each::<rpc::Send>(bytes);
    each::<rpc::Receipt>(bytes);
    each::<rpc::Take>(bytes);
    each::<rpc::Ack>(bytes);
    each::<rpc::Retry>(bytes);
    each::<rpc::Drop>(bytes);
    each::<rpc::Create>(bytes);
    each::<rpc::Get>(bytes);
    each::<rpc::List>(bytes);
    each::<rpc::Declare>(bytes);
    each::<rpc::Set>(bytes);
    each::<rpc::Close>(bytes);
    each::<rpc::Adopt>(bytes);
    each::<rpc::WatchAdd>(bytes);
    each::<rpc::WatchCancel>(bytes);
    each::<rpc::WatchList>(bytes);
}

/// The body of a request, as the library that serves it reads it.
pub fn request(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut module = jsonrpsee::RpcModule::new(());
    module.register_method("hello", |params, (), _| params.parse::<Value>().is_ok()).unwrap();
    module.register_method("session.state", |params, (), _| params.parse::<rpc::Declare>().is_ok()).unwrap();
    runtime.block_on(async {
        if let Ok((answer, _)) = module.raw_json_request(text, 1).await {
            serde_json::from_str::<Value>(answer.get()).expect("an answer is JSON");
        }
    });
}

/// What a harness wrote, as standard output whole and in two parts and as standard error, read by one adapter or another:
/// there is a class where there is a failure, and what goes to people or into a reply is bounded.
pub fn output(bytes: &[u8]) {
    let mut spec: Spec = serde_json::from_value(serde_json::json!({
        "turn": "01a22d70-0000-7000-8000-00000000000f", "seat": "s", "adapter": "a",
        "purpose": {"for": "queue", "messages": ["01a22d70-0000-7000-8000-000000000001"]},
        "asked": "2026-11-30T17:00:00Z", "boot": "b", "argv": ["a"], "dir": "/", "budget_signal": 15,
        "policy": {"budget_ms": 1, "stall_ms": 0, "stall_in_tool_ms": 0, "grace_ms": 1, "backstop_ms": 1,
            "exit_wait_ms": 1, "output_max": 8},
    }))
    .unwrap();
    let now = ZonedDateTime::now();
    let sum = bytes.iter().fold(0_usize, |sum, byte| sum + usize::from(*byte));
    let adapter = adapter::ALL[sum % adapter::ALL.len()];
    adapter.name.clone_into(&mut spec.adapter);
    for (code, written) in [(Some(0), bytes.len()), (Some(1), bytes.len() + 10), (None, 0)] {
        let found = Found {
            exit_observed: true,
            exit_code: code,
            stdout_bytes: written as u64,
            attempts: 1,
            ..Found::default()
        };
        let (head, tail) = bytes.split_at(if code == Some(0) { bytes.len() } else { bytes.len() / 2 });
        let judged = adapter::judge(adapter, &spec, &found, &Output { head, tail, stderr: bytes }, &now);
        assert_eq!(judged.failure.is_some(), judged.class.is_some());
        assert_eq!(judged.limit.is_some(), judged.class == Some(Class::Quota));
        assert!(!judged.login || judged.class == Some(Class::Configuration));
        assert!(!(judged.silent && judged.failure.is_some()));
        assert!(judged.text.is_none_or(|text| text.len() <= adapter::TEXT_MAX));
        let why = judged.why.unwrap_or_default();
        assert!(why.chars().count() <= 301 && !why.contains(char::is_control), "{why:?}");
    }
}
