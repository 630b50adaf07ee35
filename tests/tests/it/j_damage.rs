//! Cases J beside damage: what a start does with a store that somebody or something else than minder changed.

use minder_proto::state::State;

use crate::crash::Prepared;
use crate::world::World;

/// Changes one byte of the first record in the journal that says this.
fn damage_the_journal(world: &World, text: &str) {
    let mut segments: Vec<_> =
        std::fs::read_dir(world.home().journal()).unwrap().map(|e| e.unwrap().path()).collect();
    segments.sort();
    for segment in segments {
        let mut bytes = std::fs::read(&segment).unwrap();
        if let Some(at) = bytes.windows(text.len()).position(|w| w == text.as_bytes()) {
            bytes[at] ^= 0x20;
            std::fs::write(segment, bytes).unwrap();
            return;
        }
    }
    panic!("{text} is not in the journal");
}

#[test]
fn j1_killed_in_a_start_beside_a_damaged_journal() {
    let world = World::new();
    let daemon = world.start();
    let w = world.session("w");
    let mut client = world.client();
    for note in ["note 1", "note 2", "note 3"] {
        let state = if note == "note 2" { State::Review } else { State::Asking };
        w.declare(&mut client, state, Some(note));
    }
    daemon.kill();
    let daemon = world.start();
    w.declare(&mut world.client(), State::Review, Some("note 4"));
    daemon.kill();
    damage_the_journal(&world, "note 2");
    let prepared = Prepared::new(world);
    let notes = || w.moves().into_iter().filter_map(|(_, m)| m.note).collect::<Vec<_>>();
    let scenario = |client: &mut minder_client::rpc::Client, _: &minder_tests::process::Process| {
        w.declare(client, State::Asking, Some("note 5"));
        true
    };
    let finish = |_: &crate::world::Minderd, told: bool, at: &str| {
        let count = if told { 5 } else { 4 };
        assert_eq!(notes(), (1..=count).map(|n| format!("note {n}")).collect::<Vec<_>>(), "{at}");
        assert!(prepared.world.home().quarantine().join("journal.why").is_file(), "{at}");
    };
    let reached = prepared.at_every(&minder_proto::trial::MEND_POINTS[..OF_A_START], scenario, finish);
    assert!(reached.iter().all(|(_, n)| *n == 1), "{reached:?}");
}

/// The same where the files themselves were not durable: lines are lost for good, and a repair must follow, though each
/// start is killed before it.
#[test]
fn j1_killed_before_the_repair_that_a_damaged_journal_calls_for() {
    let world = World::new();
    let daemon = world.start();
    let w = world.session("w");
    let mut client = world.client();
    for note in ["note 1", "note 2", "note 3"] {
        w.declare(&mut client, State::Review, Some(note));
    }
    daemon.kill();
    damage_the_journal(&world, "note 2");
    let timeline = std::fs::read_to_string(w.file("timeline.jsonl")).unwrap();
    let lost = timeline.find("note 2").unwrap();
    let kept = &timeline[..=timeline[..lost].rfind('\n').unwrap()];
    std::fs::write(w.file("timeline.jsonl"), kept).unwrap();
    let prepared = Prepared::new(world);
    let scenario = |client: &mut minder_client::rpc::Client, _: &minder_tests::process::Process| {
        w.declare(client, State::Asking, Some("note 5"));
        true
    };
    let finish = |_: &crate::world::Minderd, told: bool, at: &str| {
        let notes: Vec<_> = w.moves().into_iter().filter_map(|(_, m)| m.note).collect();
        let expected: &[&str] = if told { &["note 1", "note 5"] } else { &["note 1"] };
        assert_eq!(notes, expected, "{at}");
        let text = std::fs::read_to_string(w.file("timeline.jsonl")).unwrap();
        assert!(text.contains("\"kind\":\"note\""), "{at}: what is missing is said: {text}");
        assert!(!prepared.world.home().repair_needed().exists(), "{at}");
    };
    let start = ["recover.done", "checkpoint.switched", "checkpoint.synced"];
    let points = [&minder_proto::trial::MEND_POINTS[..], &start].concat();
    let reached = prepared.at_every(&points, scenario, finish);
    let never: Vec<_> = reached.iter().filter(|(_, n)| *n == 0).map(|(point, _)| *point).collect();
    assert_eq!(never, ["repair.aside"], "{reached:?}");
}

/// What a foreign hand wrote may be in memory alone. A commit that lies behind it would have no place after a power loss.
#[test]
fn foreign_bytes_are_durable_before_what_is_committed_behind_them() {
    let world = World::new();
    let daemon = world.start();
    let w = world.session("w");
    w.declare(&mut world.client(), State::Working, None);
    let log = world.isolated.root().join("strace");
    let pid = daemon.process.pid();
    let mut strace = std::process::Command::new("strace");
    strace.args(["-f", "-y", "-e", "trace=fdatasync,pwrite64", "-o"]).arg(&log);
    strace.args(["-p", &pid.to_string()]);
    let attached = crate::strace::Attached::new(&mut strace, pid);
    let mut timeline = std::fs::File::options().append(true).open(w.file("timeline.jsonl")).unwrap();
    std::io::Write::write_all(&mut timeline, b"half a line").unwrap();
    w.declare(&mut world.client(), State::Review, None);
    attached.detach();
    let log = std::fs::read_to_string(log).unwrap();
    let first = |call: &str, file: &str| {
        let line = log.lines().position(|l| l.contains(call) && l.contains(file));
        line.unwrap_or_else(|| panic!("no {call} of {file}: {log}"))
    };
    assert!(first("fdatasync(", "/timeline.jsonl") < first("pwrite64(", ".wal"), "{log}");
}

/// So many of the places at which a store is mended are those of a start.
const OF_A_START: usize = 3;

/// Damage of many kinds in a store that nobody serves.
fn damage(world: &World, w: &crate::world::Agent, s: &crate::world::Agent) {
    std::fs::write(w.file("session.json"), "{garbage").unwrap();
    let timeline = std::fs::read_to_string(w.file("timeline.jsonl")).unwrap();
    let mut lines: Vec<&str> = timeline.lines().collect();
    lines[3] = "garbage";
    std::fs::write(w.file("timeline.jsonl"), lines.join("\n") + "\n").unwrap();
    std::fs::remove_file(s.file("queue.jsonl")).unwrap();
    std::fs::write(world.home().label("nobody"), "garbage\n").unwrap();
    std::fs::write(world.home().closed(), "garbage\n").unwrap();
    for file in [w.file("session.json"), world.home().label("nobody"), world.home().closed()] {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
}

#[test]
fn j1_killed_in_a_repair() {
    let world = World::new();
    let daemon = world.start();
    let [w, s] = ["w", "s"].map(|l| world.session(l));
    let mut client = world.client();
    for note in ["note 1", "note 2", "note 3"] {
        w.declare(&mut client, State::Review, Some(note));
    }
    crate::world::must(&mut client, &w.letter(&s, "hello"));
    daemon.stop();
    damage(&world, &w, &s);
    let prepared = Prepared::new(world);
    let mut passed = Vec::new();
    for point in &minder_proto::trial::MEND_POINTS[OF_A_START..] {
        for n in 1.. {
            prepared.restore();
            let mut cut_off = prepared.world.minder(["store", "repair"]);
            let cut_off = crate::world::ran_to_any_end(
                cut_off.env(minder_proto::trial::KILL_POINT, format!("{point}:{n}")),
            );
            let whole = prepared.world.run("store repair");
            assert_eq!(whole.code, 0, "{point}:{n}: {whole:?}");
            let checked = prepared.world.run("store check");
            assert_eq!(checked.code, 0, "{point}:{n}: {checked:?}");
            let again = prepared.world.run("store repair").ok();
            assert!(again.ends_with("nothing to repair\n"), "{point}:{n}: {again}");
            let notes: Vec<_> = w.moves().into_iter().filter_map(|(_, m)| m.note).collect();
            assert!(notes.contains(&"note 3".to_owned()), "{point}:{n}: {notes:?}");
            assert_eq!((s.queue().len(), s.messages().len()), (1, 1), "{point}:{n}");
            let kept =
                std::fs::read(prepared.world.home().quarantine().join(format!("{}.session.json", w.id)));
            assert_eq!(kept.unwrap(), b"{garbage", "{point}:{n}");
            if !cut_off {
                passed.push((*point, n - 1));
                break;
            }
        }
    }
    assert!(passed.iter().all(|(point, n)| *n > 0 || *point == "repair.aside"), "{passed:?}");
}

#[test]
fn a_repair_needs_the_store_for_itself() {
    let world = World::new();
    let _daemon = world.start();
    let line = world.run("store repair").failed(73);
    assert!(line.contains("minder daemon stop"), "{line}");
    let copy = world.isolated.root().join("copy");
    assert!(world.run(&format!("store repair {}", copy.display())).failed(2).contains("no store there"));
}
