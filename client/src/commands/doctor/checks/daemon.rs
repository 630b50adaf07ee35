//! The daemon: whether one runs and answers, its version, its socket, its lock.

use minder_proto::stamp::short_age;
use minder_proto::{PROTOCOL, VERSION};

use super::super::facts::{Daemon, Facts};
use super::super::finding::Finding;

/// The command after which the daemon is of this version and in this place.
pub const RESTART: [&str; 3] = ["minder", "daemon", "restart"];

/// Whether it runs, and how it is.
pub fn daemon(facts: &Facts) -> Vec<Finding> {
    const CHECK: &str = "daemon";
    match &facts.daemon {
        Daemon::Absent => vec![match &facts.can_start {
            Ok(_) => Finding::ok(CHECK, "does not run; the first command or hook starts it"),
            Err(why) => Finding::wrong(CHECK, format!("does not run, and none is started: {why}")),
        }],
        Daemon::Foreign => vec![
            Finding::wrong(CHECK, format!("answers in words that are not of this version ({VERSION})"))
                .fixed_by(&RESTART),
        ],
        Daemon::Mute(why) => {
            vec![Finding::wrong(CHECK, format!("listens and does not answer: {why}")).fixed_by(&RESTART)]
        }
        Daemon::Runs(status) => {
            let mut found = Vec::new();
            if status.version != VERSION || status.protocol != PROTOCOL {
                let text = format!(
                    "is version {} (protocol {}), this is {VERSION} (protocol {PROTOCOL})",
                    status.version, status.protocol
                );
                found.push(Finding::wrong(CHECK, text).fixed_by(&RESTART));
            } else if facts.process.as_ref().is_some_and(|process| process.replaced) {
                let text = "its program was replaced since it was started";
                found.push(Finding::wrong(CHECK, text).fixed_by(&RESTART));
            }
            if let Some(why) = &status.read_only {
                let told = "make room, or mend the disk: it takes up its work by itself";
                found.push(Finding::wrong(CHECK, format!("takes nothing new: {why}")).told(told));
            }
            for why in &status.corrupt {
                found.push(damaged(CHECK, why));
            }
            if found.is_empty() {
                let age = short_age(status.started.age(facts.now));
                found.push(Finding::ok(
                    CHECK,
                    format!("minderd {} (pid {}), up {age}", status.version, status.pid),
                ));
            }
            found
        }
    }
}

/// A file that cannot be read.
pub fn damaged(check: &'static str, what: &str) -> Finding {
    Finding::wrong(check, what).told("minder daemon stop && minder store repair")
}

/// Whether the way to it is there, and only for its user.
pub fn socket(facts: &Facts) -> Vec<Finding> {
    const CHECK: &str = "socket";
    let socket = &facts.socket;
    let path = socket.path.display();
    let mut found = Vec::new();
    if socket.too_long {
        let told = "set MINDER_SOCKET to a shorter one";
        found.push(Finding::wrong(CHECK, format!("its path is too long for this system: {path}")).told(told));
    }
    if let (Some(mode), Some(folder)) = (socket.open, socket.path.parent()) {
        let folder = folder.display().to_string();
        let text = format!("{folder} is open to others (mode {mode:o})");
        found.push(Finding::wrong(CHECK, text).fixed_by(&["chmod", "go=", &folder]));
    }
    if matches!(facts.daemon, Daemon::Runs(_)) && !socket.linked {
        let text = "the store's link run/socket does not lead to it: hooks may not find the daemon";
        found.push(Finding::wrong(CHECK, text).fixed_by(&RESTART));
    }
    if found.is_empty() {
        found.push(Finding::ok(CHECK, path.to_string()));
    }
    found
}

/// Whether one daemon, and one only, has the store.
pub fn lock(facts: &Facts) -> Vec<Finding> {
    const CHECK: &str = "lock";
    let lock = &facts.lock;
    if lock.elsewhere {
        let text = "another machine has a daemon on this store: two of them destroy each other's work";
        let told = "stop one of them, and give each machine its own MINDER_HOME";
        return vec![Finding::wrong(CHECK, text).told(told)];
    }
    let named = lock.named.map_or_else(|| "a process".to_owned(), |pid| format!("process {pid}"));
    vec![match (&facts.daemon, lock.held) {
        (Daemon::Runs(status), _) if lock.named.is_some_and(|pid| pid != status.pid) => Finding::wrong(
            CHECK,
            format!("the daemon that answers is process {}, and {named} has the store's lock", status.pid),
        )
        .fixed_by(&RESTART),
        (Daemon::Runs(_), Some(false)) => {
            Finding::wrong(CHECK, "the daemon runs, and its lock file is another one by now")
                .fixed_by(&RESTART)
        }
        (Daemon::Absent, Some(true)) => {
            let found = Finding::wrong(CHECK, format!("{named} holds the store, and listens on no socket"));
            match lock.named {
                Some(pid) => found.by_hand(&["kill", &pid.to_string()]),
                None => found,
            }
        }
        (Daemon::Absent, _) => Finding::ok(CHECK, "free"),
        _ => Finding::ok(CHECK, format!("held by {named}")),
    }]
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Level::{Ok, Wrong};
    use super::super::super::samples::{check, facts, status};
    use super::*;

    #[test]
    fn a_daemon_that_is_another_is_restarted() {
        let well = facts();
        check(&daemon(&well), &[(Ok, "minderd ", None)]);
        let mut other = status();
        other.version = "0.0.1".into();
        let with = |daemon: Daemon| Facts { daemon, ..facts() };
        let restart = Some("minder daemon restart");
        check(&daemon(&with(Daemon::Runs(Box::new(other)))), &[(Wrong, "is version 0.0.1", restart)]);
        check(&daemon(&with(Daemon::Foreign)), &[(Wrong, "not of this version", restart)]);
        check(
            &daemon(&with(Daemon::Mute("timeout".into()))),
            &[(Wrong, "does not answer: timeout", restart)],
        );
        let mut replaced = facts();
        replaced.process.as_mut().unwrap().replaced = true;
        check(&daemon(&replaced), &[(Wrong, "was replaced", restart)]);
        check(&daemon(&with(Daemon::Absent)), &[(Ok, "does not run", None)]);
        let none = Facts { daemon: Daemon::Absent, can_start: Err("no minderd".into()), ..facts() };
        check(&daemon(&none), &[(Wrong, "none is started: no minderd", None)]);
    }

    #[test]
    fn a_full_disk_and_damage_are_named() {
        let mut bad = status();
        bad.read_only = Some("/s/journal: No space left on device".into());
        bad.corrupt = vec!["sessions/x/session.json: bad".into()];
        let found = daemon(&Facts { daemon: Daemon::Runs(Box::new(bad)), ..facts() });
        check(
            &found,
            &[
                (Wrong, "takes nothing new: /s/journal", Some("make room")),
                (Wrong, "session.json", Some("store repair")),
            ],
        );
    }

    #[test]
    fn the_socket_is_its_users_alone() {
        let mut one = facts();
        check(&socket(&one), &[(Ok, "/run/user/1000/minder/minder.sock", None)]);
        one.socket.open = Some(0o755);
        one.socket.linked = false;
        one.socket.too_long = true;
        check(
            &socket(&one),
            &[
                (Wrong, "too long", Some("MINDER_SOCKET")),
                (Wrong, "mode 755", Some("chmod go= /run/user/1000/minder")),
                (Wrong, "run/socket", Some("minder daemon restart")),
            ],
        );
    }

    #[test]
    fn one_daemon_has_the_lock() {
        let mut one = facts();
        check(&lock(&one), &[(Ok, "held by process 41211", None)]);
        one.lock.held = Some(false);
        check(&lock(&one), &[(Wrong, "another one by now", Some("minder daemon restart"))]);
        one.lock.named = Some(7);
        check(&lock(&one), &[(Wrong, "process 7 has", Some("minder daemon restart"))]);
        let silent = Facts { daemon: Daemon::Absent, ..facts() };
        check(&lock(&silent), &[(Wrong, "listens on no socket", Some("kill 41211"))]);
        let mut free = Facts { daemon: Daemon::Absent, ..facts() };
        free.lock.held = Some(false);
        check(&lock(&free), &[(Ok, "free", None)]);
        free.lock.elsewhere = true;
        check(&lock(&free), &[(Wrong, "another machine", Some("MINDER_HOME"))]);
    }
}
