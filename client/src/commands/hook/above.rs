//! The process that runs a hook, for whoever reads of it when the hook is gone.

use std::path::Path;

/// Shells, which run a hook for its harness.
const SHELLS: [&str; 7] = ["sh", "bash", "dash", "zsh", "fish", "ksh", "busybox"];
/// Most shells above each other.
const DEEPEST: usize = 8;

/// The next process above this one that is no shell.
pub fn who_runs_this() -> Option<i32> {
    let parent = rustix::process::getppid()?.as_raw_nonzero().get();
    above(Path::new("/proc"), parent)
}

/// The same, from this process up.
fn above(proc: &Path, mut pid: i32) -> Option<i32> {
    for _ in 0..DEEPEST {
        let stat = std::fs::read_to_string(proc.join(pid.to_string()).join("stat")).ok()?;
        // The name is in brackets, and may hold some itself.
        let (name, rest) = stat.split_once('(')?.1.rsplit_once(')')?;
        if !SHELLS.contains(&name) {
            return Some(pid);
        }
        pid = rest.split_whitespace().nth(1)?.parse().ok()?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shells_are_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        for (pid, name, parent) in [(7, "sh", 6), (6, "a) (b", 5), (4, "sh", 3)] {
            fs_err::create_dir(dir.path().join(pid.to_string())).unwrap();
            let stat = format!("{pid} ({name}) S {parent} 1 1 0");
            fs_err::write(dir.path().join(format!("{pid}/stat")), stat).unwrap();
        }
        assert_eq!(above(dir.path(), 7), Some(6));
        assert_eq!(above(dir.path(), 6), Some(6));
        assert_eq!(above(dir.path(), 4), None, "nothing is known of its parent");
    }
}
