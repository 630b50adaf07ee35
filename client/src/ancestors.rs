//! Which processes are above this one, where the system shows it: enough to know that a caller without any variable of a
//! harness cannot be one of the sessions that the files name.

use minder_proto::record::Process;

/// True if one of these processes is above this one; none where the system does not show what is.
pub fn include<'a>(processes: impl Iterator<Item = &'a Process> + Clone) -> Option<bool> {
    let mut pid = u32::try_from(nix::unistd::getppid().as_raw()).ok()?;
    loop {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (parent, start) = parent_and_start(&stat)?;
        if processes.clone().any(|p| u32::try_from(p.pid) == Ok(pid) && p.start == start) {
            return Some(true);
        }
        // Parents that cannot be seen are outside: 0 is above the first process of a container.
        if parent == 0 {
            return Some(false);
        }
        pid = parent;
    }
}

/// The fourth and the twenty-second field. The second is a name in brackets, and may hold anything.
fn parent_and_start(stat: &str) -> Option<(u32, u64)> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let parent = fields.nth(1)?.parse().ok()?;
    Some((parent, fields.nth(17)?.parse().ok()?))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_its_number_and_its_start() {
        let parent = nix::unistd::getppid().as_raw();
        let stat = std::fs::read_to_string(format!("/proc/{parent}/stat")).unwrap();
        let start = parent_and_start(&stat).unwrap().1;
        let process = |pid, start| Process { pid, start, boot: String::new(), tty: None, ended: None };
        let include = |process| include([&process].into_iter());
        assert_eq!(include(process(parent, start)), Some(true));
        assert_eq!(include(process(parent, start + 1)), Some(false));
        assert_eq!(include(process(std::process::id().cast_signed(), start)), Some(false));
        assert_eq!(parent_and_start("7 (a) b) S 3 7 7 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 99 0"), Some((3, 99)));
    }
}
