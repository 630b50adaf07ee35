//! Whether a pane is a session's: the process that has its terminal's keys is that session's harness.

use minder_proto::hold::Hold;
use minder_proto::record::{Process, SessionRecord};

use super::server::Shown;

/// Why nothing may be typed into a pane for a session, by whose it is.
pub fn check(record: &SessionRecord, shown: &Shown) -> Option<Hold> {
    if shown.dead {
        return Some(Hold::Offline);
    }
    match &record.process {
        Some(process) if process.ended.is_some() => Some(Hold::Offline),
        Some(process) => match crate::identity::process_of(process.pid) {
            Some(now) if now.is(process) => {
                (!system::has_keys(process.pid, &shown.tty)).then_some(Hold::WrongProcess)
            }
            _ => Some(Hold::Offline),
        },
        // The process of its conversation is another conversation's by now.
        None if record.live_binding().is_some() => Some(Hold::WrongProcess),
        // Nothing was heard of its process: the one in front has to be such a harness.
        None => (system::in_front(shown.pid) != record.harness.as_deref()).then_some(Hold::WrongProcess),
    }
}

/// True for a process that lives and has the keys of this pane's terminal.
pub fn is_in_front(process: &Process, shown: &Shown) -> bool {
    let lives = || crate::identity::process_of(process.pid).is_some_and(|now| now.is(process));
    system::has_keys(process.pid, &shown.tty) && lives()
}

/// Linux: `/proc`.
#[cfg(target_os = "linux")]
mod system {
    use procfs::FromRead;
    use procfs::process::Stat;

    fn stat(pid: i32) -> Option<Stat> {
        Stat::from_read(std::fs::File::open(format!("/proc/{pid}/stat")).ok()?).ok()
    }

    /// The number of a terminal, as the kernel keeps it.
    fn device(tty: &str) -> Option<i32> {
        use std::os::linux::fs::MetadataExt;
        i32::try_from(std::fs::metadata(tty).ok()?.st_rdev()).ok()
    }

    /// True if a process is of the group that this terminal's keys go to.
    pub fn has_keys(pid: i32, tty: &str) -> bool {
        stat(pid).is_some_and(|stat| stat.pgrp == stat.tpgid && device(tty) == Some(stat.tty_nr))
    }

    /// The harness that leads the group in front on the terminal of a pane's process.
    pub fn in_front(pane: i32) -> Option<&'static str> {
        crate::identity::ancestry::harness_of(stat(pane)?.tpgid)
    }
}

/// Elsewhere the system's own calls are not used yet: it cannot be told, and nothing is typed.
#[cfg(not(target_os = "linux"))]
mod system {
    pub fn has_keys(_: i32, _: &str) -> bool {
        false
    }

    pub fn in_front(_: i32) -> Option<&'static str> {
        None
    }
}
