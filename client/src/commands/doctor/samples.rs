//! Facts of a machine on which all is well, for the tables of the checks.

use minder_proto::PROTOCOL;
use minder_proto::caller::Identity;
use minder_proto::rpc::StatusAnswer;
use minder_proto::stamp::Stamp;

use super::facts::{
    Config, Daemon, DaemonProcess, Disk, Facts, Files, Harness, Hooks, Lock, Modes, Socket, There,
};
use super::finding::{Finding, Level};
use crate::hooks::pack;
use crate::hooks::service::Service;

pub fn status() -> StatusAnswer {
    StatusAnswer {
        version: minder_proto::VERSION.into(),
        protocol: PROTOCOL,
        pid: 41_211,
        started: Stamp::from_millis(1_796_040_000_000),
        store: "/s".into(),
        socket: "/run/user/1000/minder/minder.sock".into(),
        sessions: 4,
        corrupt: vec![],
        waiting: 0,
        held: 0,
        operator: 0,
        dead: 0,
        read_only: None,
        commits: 1,
        flushes: 1,
        journal_bytes: 1,
        start_ms: 1,
        replayed: 0,
        second_writers: vec![],
        you: Identity::Operator,
    }
}

pub fn facts() -> Facts {
    Facts {
        now: Stamp::from_millis(1_796_040_000_000 + 3 * 86_400_000),
        store: "/s".into(),
        daemon: Daemon::Runs(Box::new(status())),
        process: Some(DaemonProcess { path: Some("/usr/bin".into()), replaced: false }),
        in_charge: false,
        can_start: Ok("/usr/bin/minderd".into()),
        socket: Socket {
            path: "/run/user/1000/minder/minder.sock".into(),
            linked: true,
            ..Socket::default()
        },
        lock: Lock { named: Some(41_211), held: Some(true), elsewhere: false },
        modes: Modes::default(),
        service: Service::NoSystemd,
        harnesses: vec![Harness { hooks: there(), ..harness("codex") }],
        tmux: Some("tmux 3.3a".into()),
        disk: Some(Disk { free: 50 << 30, ..Disk::default() }),
        files: Files { exists: true, ..Files::default() },
        config: Config { file: "/c/config.toml".into(), ..Config::default() },
        stranded: vec![],
        unreadable: vec![],
    }
}

pub fn harness(name: &str) -> Harness {
    let pack = pack::of(name).unwrap();
    Harness {
        name: pack.name,
        title: pack.title,
        then: pack.then,
        here: Some(format!("/usr/bin/{name}").into()),
        there: There::At(format!("/usr/bin/{name}").into()),
        file: "/h/hooks.json".into(),
        ..Harness::default()
    }
}

pub fn there() -> Hooks {
    Hooks::There {
        missing: vec![],
        outdated: vec![],
        surplus: vec![],
        gone: vec![],
        unreviewed: vec![],
        hindrances: vec![],
    }
}

/// Each is of this level, has this in its text, and this in what mends it.
pub fn check(found: &[Finding], expected: &[(Level, &str, Option<&str>)]) {
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, (level, text, mend)) in found.iter().zip(expected) {
        assert_eq!(found.level, *level, "{found:?}");
        assert!(found.text.contains(text), "{text:?} in {found:?}");
        match (&found.mend, mend) {
            (None, None) => {}
            (Some(found), Some(mend)) => assert!(found.text.contains(mend), "{mend:?} in {found:?}"),
            _ => panic!("{mend:?} for {found:?}"),
        }
    }
}
