//! M6: the log is not in the way and tells nothing.

use std::collections::BTreeSet;
use std::path::Path;

use minder_proto::turn::Outcome;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use super::scene::*;
use crate::world::{World, must};

/// Two turns with the log there, and what the daemon said.
fn unaffected(world: &World, place: &Path) -> String {
    let place = place.display().to_string();
    let daemon = world.launch(&[("MINDER_TURN_LOG_DIR", &place)]).settle().unwrap_or_else(|e| panic!("{e}"));
    let mut client = world.client();
    for _ in 0..2 {
        let answer = must(&mut client, &command(world, &["echo", "hello"]));
        let settled = answer.settled.expect("it ran");
        assert_eq!((settled.outcome, settled.text.as_deref()), (Some(Outcome::Delivered), Some("hello\n")));
        wait_gone(world, answer.turn);
    }
    drop(client);
    daemon.stop()
}

#[test]
fn m6_a_log_that_cannot_be_written_is_one_warning_and_no_failure() {
    let world = World::new();
    let at = |name: &str| world.isolated.root().join(name);
    std::fs::create_dir(at("pipe")).unwrap();
    mkfifo(&at("pipe").join(format!("{SEAT}.jsonl")), Mode::S_IRWXU).unwrap();
    std::fs::create_dir(at("full")).unwrap();
    std::os::unix::fs::symlink("/dev/full", at("full").join(format!("{SEAT}.jsonl"))).unwrap();
    std::fs::write(at("file"), "").unwrap();
    let places = [
        (at("pipe"), "EINVAL"),
        (at("full"), "ELOOP"),
        (at("file"), "ENOTDIR"),
        ("/proc/self/x".into(), "ENOENT"),
    ];
    for (place, code) in places {
        let said = unaffected(&world, &place);
        let warnings: Vec<&str> = said.lines().filter(|line| line.contains("turn log")).collect();
        assert_eq!(warnings.len(), 1, "{}: {said}", place.display());
        assert!(warnings[0].contains(&format!("({code})")), "{}", warnings[0]);
        assert!(!warnings[0].contains(&*place.to_string_lossy()), "the code alone: {}", warnings[0]);
    }
}

#[test]
fn m6_fifty_turns_that_end_at_once_are_fifty_whole_lines() {
    let world = World::new();
    let _daemon = world.start();
    let many: Vec<_> = (0..50)
        .map(|_| {
            let (mut client, call) = (world.client(), command(&world, &["echo", "hello"]));
            std::thread::spawn(move || must(&mut client, &call).turn)
        })
        .collect();
    let turns: BTreeSet<_> = many.into_iter().map(|turn| turn.join().unwrap()).collect();
    let lines = wait_lines(&world, SEAT, 50);
    assert_eq!(lines.iter().map(|line| line.turn).collect::<BTreeSet<_>>(), turns);
    assert_eq!(lines.len(), 50);
}

/// What was said, asked, given and failed is nowhere in the log: every value is a number, a boolean, nothing, a time, an
/// id or a word of a fixed list.
#[test]
fn m6_a_line_tells_nothing_of_what_was_said() {
    let world = World::new();
    let _daemon = world.start();
    let mut call = command(
        &world,
        &["sh", "-c", "cat; echo secret-answer; echo secret-error >&2; exit 1", "secret-word"],
    );
    call.prompt = Some("secret-prompt".to_owned());
    call.env.insert("LC_SECRET".to_owned(), "secret-value".to_owned());
    call.event_type = Some("a secret in words".to_owned());
    call.seat = Some("secret seat".to_owned());
    must(&mut world.client(), &call);
    wait_lines(&world, "secret seat", 1);
    let text = std::fs::read_to_string(log_file(&world, "secret seat")).unwrap();
    // The seat is the file's name, cleaned.
    let text = text.replace("secret_seat-", "");
    assert!(!text.contains("secret"), "{text}");
    assert!(text.contains("\"eventType\":null"), "{text}");
}
