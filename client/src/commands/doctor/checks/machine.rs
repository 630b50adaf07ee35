//! The machine: who looks after the daemon, what its `PATH` leads to, tmux, disk, clock.

use super::super::facts::{Facts, Hooks, There};
use super::super::finding::Finding;
use super::daemon::RESTART;
use crate::hooks::service::Service;

/// The oldest tmux whose panes are typed into and in which sessions are started.
const TMUX_OLDEST: [u32; 2] = [3, 0];
/// Below this the disk is as good as full.
const FULL: u64 = 64 << 20;
/// Below this it soon is.
const NEARLY: u64 = 1 << 30;
/// The same of files that can be made.
const FEW: u64 = 1_000;
/// A clock may be this far behind the newest line: two clocks of one machine differ.
const SLACK_S: u64 = 5;

/// Whether the daemon outlives the last login.
pub fn service(facts: &Facts) -> Vec<Finding> {
    const CHECK: &str = "service";
    let line = facts.service.line();
    if !facts.service.ends_with_login() {
        return vec![Finding::ok(CHECK, line)];
    }
    let text = "lingering is off: the daemon, and what it runs, ends with your last login";
    let lingering = match &facts.service {
        Service::Systemd { units: Some(_), .. } => Finding::wrong("lingering", text),
        _ => Finding::note("lingering", text),
    };
    vec![Finding::ok(CHECK, line), lingering.fixed_by(&["loginctl", "enable-linger"])]
}

/// What the daemon finds where this shell finds something.
pub fn path(facts: &Facts) -> Vec<Finding> {
    const CHECK: &str = "path";
    let mut found = Vec::new();
    for one in &facts.harnesses {
        let used = !matches!(one.hooks, Hooks::Absent);
        match (&one.here, &one.there) {
            (Some(here), There::Nowhere) => {
                let text = format!(
                    "the daemon's PATH does not lead to {} ({} is it here)",
                    one.name,
                    here.display()
                );
                let finding = if used { Finding::wrong(CHECK, text) } else { Finding::note(CHECK, text) };
                found.push(if facts.in_charge {
                    finding.told("systemctl --user import-environment PATH && minder daemon restart")
                } else {
                    finding.fixed_by(&RESTART)
                });
            }
            (Some(here), There::At(there)) if here != there => found.push(Finding::note(
                CHECK,
                format!("{} is {} here and {} for the daemon", one.name, here.display(), there.display()),
            )),
            _ => {}
        }
    }
    if found.is_empty() && facts.process.is_some() {
        found.push(Finding::ok(CHECK, "the daemon finds what this shell finds"));
    }
    found
}

/// Whether tmux is of use.
pub fn tmux(facts: &Facts) -> Vec<Finding> {
    const CHECK: &str = "tmux";
    let Some(said) = &facts.tmux else {
        return vec![Finding::note(
            CHECK,
            "there is none: sessions are started headless, and none is typed into",
        )];
    };
    let number = said.trim().trim_start_matches(|c: char| !c.is_ascii_digit());
    let parts: Vec<u32> = number
        .split('.')
        .map_while(|part| part.trim_end_matches(|c: char| !c.is_ascii_digit()).parse().ok())
        .collect();
    let [major, minor] = TMUX_OLDEST;
    // What names no number is built from its sources, and new.
    vec![if !parts.is_empty() && parts.as_slice() < &TMUX_OLDEST[..] {
        let text = format!("{said} is older than {major}.{minor}: nothing is typed into its panes");
        Finding::wrong(CHECK, text).told("update tmux")
    } else {
        Finding::ok(CHECK, said)
    }]
}

/// Whether there is room.
pub fn disk(facts: &Facts) -> Vec<Finding> {
    const CHECK: &str = "disk";
    let Some(disk) = &facts.disk else { return Vec::new() };
    let store = facts.store.display();
    let mut found = Vec::new();
    if let Some(kind) = disk.shared {
        let text = format!("{store} is on {kind}: neither locks nor flushes can be trusted there");
        found.push(Finding::wrong(CHECK, text).told("set MINDER_HOME to a folder on a disk of this machine"));
    }
    let mib = disk.free >> 20;
    if disk.free < FULL || disk.inodes.is_some_and(|inodes| inodes < FEW) {
        let what = if disk.free < FULL { format!("{mib} MiB") } else { "hardly a file more".to_owned() };
        found.push(Finding::wrong(CHECK, format!("there is room for {what}")).told("make room"));
    } else if disk.free < NEARLY {
        found.push(Finding::note(CHECK, format!("there is room for {mib} MiB")));
    }
    if found.is_empty() {
        found.push(Finding::ok(CHECK, format!("{} GiB free", disk.free >> 30)));
    }
    found
}

/// Whether time runs forward.
pub fn clock(facts: &Facts) -> Vec<Finding> {
    const CHECK: &str = "clock";
    let ahead = facts.files.ahead_s;
    vec![if ahead > SLACK_S {
        let text = format!("is {ahead} s behind the newest line of the store: it was set back");
        Finding::wrong(CHECK, text).by_hand(&["sudo", "timedatectl", "set-ntp", "true"])
    } else {
        Finding::ok(CHECK, "is not behind the store")
    }]
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Level::{Note, Ok, Wrong};
    use super::super::super::samples::{check, facts, harness, there};
    use super::*;

    #[test]
    fn l3_lingering_is_wrong_where_the_daemon_is_a_service() {
        let with = |units: bool, lingers: bool| {
            let units = units.then(|| "/usr/lib/systemd/user".into());
            service(&Facts { service: Service::Systemd { units, lingers }, ..facts() })
        };
        check(&with(true, true), &[(Ok, "has the daemon's units", None)]);
        let mend = Some("loginctl enable-linger");
        check(&with(true, false), &[(Ok, "has the daemon's units", None), (Wrong, "last login", mend)]);
        check(&with(false, false), &[(Ok, "does not have", None), (Note, "last login", mend)]);
        check(&service(&facts()), &[(Ok, "no systemd here", None)]);
    }

    #[test]
    fn l1_both_places_are_shown_where_they_differ() {
        let mut one = facts();
        check(&path(&one), &[(Ok, "finds what this shell finds", None)]);
        one.harnesses = vec![harness("claude")];
        one.harnesses[0].hooks = there();
        one.harnesses[0].here = Some("/opt/claude".into());
        one.harnesses[0].there = There::Nowhere;
        check(&path(&one), &[(Wrong, "to claude (/opt/claude is it here)", Some("minder daemon restart"))]);
        one.in_charge = true;
        check(&path(&one), &[(Wrong, "to claude", Some("import-environment PATH"))]);
        one.harnesses[0].hooks = Hooks::Absent;
        check(&path(&one), &[(Note, "to claude", Some("import-environment PATH"))]);
        one.harnesses[0].there = There::At("/usr/bin/claude".into());
        check(&path(&one), &[(Note, "is /opt/claude here and /usr/bin/claude for the daemon", None)]);
        one.harnesses[0].there = There::Unknown;
        check(&path(&one), &[(Ok, "", None)]);
    }

    #[test]
    fn versions_of_tmux() {
        let of = |said: &str| tmux(&Facts { tmux: Some(said.into()), ..facts() });
        for well in ["tmux 3.3a", "tmux 3.0", "tmux 10.1", "tmux next-3.6", "tmux master"] {
            check(&of(well), &[(Ok, well, None)]);
        }
        for old in ["tmux 2.9a", "tmux 1.8"] {
            check(&of(old), &[(Wrong, "older than 3.0", Some("update tmux"))]);
        }
        check(&tmux(&Facts { tmux: None, ..facts() }), &[(Note, "there is none", None)]);
    }

    #[test]
    fn disks_are_full_or_elsewhere_or_well() {
        let of = |free, inodes, shared| {
            let disk = super::super::super::facts::Disk { free, inodes, shared };
            super::disk(&Facts { disk: Some(disk), ..facts() })
        };
        check(&of(5 << 30, None, None), &[(Ok, "5 GiB free", None)]);
        check(&of(500 << 20, None, None), &[(Note, "500 MiB", None)]);
        check(&of(10 << 20, None, None), &[(Wrong, "10 MiB", Some("make room"))]);
        check(&of(5 << 30, Some(3), None), &[(Wrong, "hardly a file", Some("make room"))]);
        check(&of(5 << 30, None, Some("NFS")), &[(Wrong, "is on NFS", Some("MINDER_HOME"))]);
    }

    #[test]
    fn a_clock_that_was_set_back_is_seen() {
        let mut one = facts();
        check(&clock(&one), &[(Ok, "", None)]);
        one.files.ahead_s = 90;
        check(&clock(&one), &[(Wrong, "90 s behind", Some("timedatectl"))]);
    }
}
