//! A process and its ancestors as the kernel lists them: from a caller to the harness it runs under, if it does.

use std::sync::OnceLock;
use std::time::Duration;

use minder_proto::id::SessionId;
use minder_proto::record::Process;

use super::harness::Runs;

/// Most ancestors that are looked at.
const DEPTH: usize = 64;
/// How often a walk is begun anew because a process ended under it.
const ATTEMPTS: usize = 3;

/// A process on the way from a caller to the first process of the system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ancestor {
    /// The process.
    pub process: Process,
    /// Its parent; 0 for none.
    pub ppid: i32,
    /// The kernel's name for it.
    pub comm: String,
    /// Its first argument.
    pub argv0: String,
    /// The harness that it is, if it is one.
    pub harness: Option<&'static str>,
    /// How it runs as one.
    pub runs: Runs,
    /// The session whose turn it minds, if it is the shim of one.
    pub minds: Option<SessionId>,
}

/// A caller's process and its ancestors, nearest first, up to the nearest that is known as a harness, or to the first
/// process of the system. Empty where nothing can be known of it: it has ended, it lives in a process namespace that
/// is not ours, or the system tells no ancestors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ancestry {
    chain: Vec<Ancestor>,
    turn: Option<SessionId>,
}

impl Ancestry {
    /// That of a peer. A few small reads of `/proc` per ancestor, which never wait for a disk.
    pub fn of(pid: Option<i32>) -> Self {
        let Some(pid) = pid.filter(|pid| *pid > 0) else { return Self::default() };
        // A caller comes once, what is above it again and again.
        let read = |one| if one == pid { system::read_once(one) } else { system::read(one) };
        let chain = steadily(|| walk(pid, read, |a| a.harness.is_some()));
        // A shim stands above the harness that it started.
        let last = chain.last().filter(|a| a.harness.is_some() && a.ppid > 1);
        let above = last.map(|a| steadily(|| walk(a.ppid, system::read, |a| a.minds.is_some())));
        let turn = chain.iter().chain(above.iter().flatten()).find_map(|a| a.minds);
        Self { chain, turn }
    }

    /// One that is known, nearest first.
    pub fn known(chain: Vec<Ancestor>) -> Self {
        let turn = chain.iter().find_map(|a| a.minds);
        Self { chain, turn }
    }

    /// The session whose turn the caller is part of.
    pub fn turn(&self) -> Option<SessionId> {
        self.turn
    }

    /// The caller itself, its parent, and so on.
    pub fn iter(&self) -> impl Iterator<Item = &Ancestor> {
        self.chain.iter()
    }

    /// The nearest harness.
    pub fn harness(&self) -> Option<&Ancestor> {
        self.chain.iter().find(|a| a.harness.is_some())
    }
}

/// True if this very process is the one with this pid, or above it.
pub fn runs_under(pid: i32, process: &Process) -> bool {
    let found = |one: &Link| one.process.is(process);
    let chain = steadily(|| walk(pid, system::link, found));
    chain.last().is_some_and(found)
}

/// What a walk needs of a process.
trait Step {
    /// When it was started.
    fn start(&self) -> u64;
    /// Its parent.
    fn parent(&self) -> i32;
}

/// A process and its parent, and nothing more of it.
#[derive(Debug)]
struct Link {
    process: Process,
    ppid: i32,
}

impl Step for Link {
    fn start(&self) -> u64 {
        self.process.start
    }
    fn parent(&self) -> i32 {
        self.ppid
    }
}

impl Step for Ancestor {
    fn start(&self) -> u64 {
        self.process.start
    }
    fn parent(&self) -> i32 {
        self.ppid
    }
}

/// How far a walk came.
#[derive(Debug)]
struct Walked<S> {
    chain: Vec<S>,
    /// It came to its end, and every parent is one.
    whole: bool,
}

/// Walks again where a process ended under the walk: whoever lost its parent has another one by then.
fn steadily<S>(mut walk: impl FnMut() -> Walked<S>) -> Vec<S> {
    let mut walked = walk();
    for _ in 1..ATTEMPTS {
        if walked.whole {
            break;
        }
        walked = walk();
    }
    walked.chain
}

fn walk<S: Step>(pid: i32, read: impl Fn(i32) -> Option<S>, last: impl Fn(&S) -> bool) -> Walked<S> {
    let mut chain: Vec<S> = Vec::new();
    let mut next = pid;
    while next > 0 && chain.len() < DEPTH {
        // A parent is never younger than its child: that is another process, with the pid of one that ended.
        let fits = |parent: &S| chain.last().is_none_or(|child| parent.start() <= child.start());
        let Some(step) = read(next).filter(fits) else {
            // A caller that is gone itself stays so.
            return Walked { whole: chain.is_empty(), chain };
        };
        next = if last(&step) { 0 } else { step.parent() };
        chain.push(step);
    }
    Walked { chain, whole: true }
}

/// The process with this pid, as a record keeps it; none if there is none or the system does not tell.
pub fn process_of(pid: i32) -> Option<Process> {
    system::process(pid)
}

/// The harness that a process is, if it is one.
pub fn harness_of(pid: i32) -> Option<&'static str> {
    system::read(pid)?.harness
}

/// How long a process has run, by the clock that its start is noted in.
pub fn ran_for(process: &Process) -> Option<Duration> {
    system::uptime()?.checked_sub(Duration::from_millis(process.start.checked_mul(1_000)? / system::ticks()))
}

/// True if there is no such process any more, or only what is left of one until its parent has noticed its end.
pub fn has_ended(pid: i32) -> bool {
    system::has_ended(pid)
}

/// The kernel's name for this boot, where it has one.
pub fn boot_id() -> Option<&'static str> {
    static BOOT: OnceLock<Option<String>> = OnceLock::new();
    BOOT.get_or_init(system::boot).as_deref()
}

/// Linux: `/proc`. The process's folder is held open meanwhile, so that all that is read is of one process.
#[cfg(target_os = "linux")]
mod system {
    use std::collections::HashMap;
    use std::os::fd::OwnedFd;
    use std::path::PathBuf;
    use std::sync::{Mutex, PoisonError};
    use std::time::Duration;

    use minder_proto::id::SessionId;
    use minder_proto::record::Process;
    use minder_proto::turn::folder::SPEC;
    use procfs::FromRead;
    use procfs::process::Stat;
    use rustix::fs::{Mode, OFlags, open, openat, readlinkat};

    use super::super::harness;
    use super::{Ancestor, Link, boot_id};

    /// Longest `stat`: 52 numbers and a name.
    const STAT_MAX: usize = 2048;
    /// As much of the arguments as is looked at.
    const ARGUMENTS_MAX: usize = 4096;

    /// The kernel's name for the client, which is no harness.
    const CLIENT: &str = "minder";

    /// Most processes of which a look is kept.
    const KEPT_MAX: usize = 32;

    /// What was seen of a process that has not become another program since.
    struct Kept {
        /// Its `stat`, open: whatever has its pid later is not read by it.
        stat: OwnedFd,
        image: Image,
        seen: Ancestor,
    }

    /// What is another once a process has become another program, or has given itself another name.
    #[derive(PartialEq, Eq)]
    struct Image {
        comm: String,
        stack: u64,
        arguments: (u64, u64),
        environment: (u64, u64),
    }

    impl Image {
        /// None where the system does not tell. It tells nobody of the first process, which is above every caller: that is
        /// another program where it has another name.
        fn of(stat: &Stat) -> Option<Self> {
            let arguments = (stat.arg_start?, stat.arg_end?);
            let environment = (stat.env_start?, stat.env_end?);
            let told = stat.startstack != 0 && arguments.0 != 0 || stat.pid == 1;
            let comm = stat.comm.clone();
            told.then_some(Self { comm, stack: stat.startstack, arguments, environment })
        }
    }

    static KEPT: Mutex<Option<HashMap<i32, Kept>>> = Mutex::new(None);

    /// What is known of a process. The ancestors of callers are the same ones again and again, and one read says whether
    /// what was seen of one is what there is.
    pub fn read(pid: i32) -> Option<Ancestor> {
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = kept.get_or_insert_default();
        if let Some(known) = kept.get(&pid) {
            let mut buffer = [0; STAT_MAX];
            let read = rustix::io::pread(&known.stat, &mut buffer[..], 0).unwrap_or(0);
            if let Ok(stat) = Stat::from_read(&buffer[..read])
                && Image::of(&stat).is_some_and(|image| image == known.image)
            {
                return Some(Ancestor { ppid: stat.ppid, ..known.seen.clone() });
            }
            kept.remove(&pid);
        }
        let (seen, stat, image) = look(pid)?;
        if let Some(image) = image {
            if kept.len() >= KEPT_MAX {
                kept.clear();
            }
            kept.insert(pid, Kept { stat, image, seen: seen.clone() });
        }
        Some(seen)
    }

    /// The same, of a process that is not expected again.
    pub fn read_once(pid: i32) -> Option<Ancestor> {
        look(pid).map(|(seen, ..)| seen)
    }

    fn look(pid: i32) -> Option<(Ancestor, OwnedFd, Option<Image>)> {
        let folder = folder(pid)?;
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = openat(&folder, "stat", flags, Mode::empty()).ok()?;
        let mut buffer = [0; STAT_MAX];
        let read = rustix::io::pread(&file, &mut buffer[..], 0).ok()?;
        let stat = Stat::from_read(&buffer[..read]).ok()?;
        let image = Image::of(&stat);
        // What is not readable (another user's) is merely not known. Of the client, which calls all the time, it is not asked.
        let (mut said, mut executable) = (Vec::new(), None);
        if stat.comm != CLIENT {
            said = arguments(&bytes::<ARGUMENTS_MAX>(&folder, "cmdline").unwrap_or_default());
            let path = readlinkat(&folder, "exe", Vec::new()).ok();
            executable = path.map(|path| PathBuf::from(path.to_string_lossy().into_owned()));
        }
        let arguments = said;
        let harness = harness::recognise(&stat.comm, &arguments, executable.as_deref());
        let runs = harness.map(|h| h.runs(&arguments)).unwrap_or_default();
        let shim =
            matches!(arguments.as_slice(), [program, mode, ..] if program == "minderd" && mode == "shim");
        let minds = if shim { session_of_turn(pid) } else { None };
        let argv0 = arguments.into_iter().next().unwrap_or_default();
        let seen = Ancestor {
            process: noted(pid, &stat)?,
            ppid: stat.ppid,
            comm: stat.comm,
            argv0,
            harness: harness.map(|h| h.name),
            runs,
            minds,
        };
        Some((seen, file, image))
    }

    /// A shim works in the folder of its turn, which says whose turn it is.
    fn session_of_turn(pid: i32) -> Option<SessionId> {
        let spec = std::fs::read_link(format!("/proc/{pid}/cwd")).ok()?.join(SPEC);
        let spec: Whose = serde_json::from_slice(&minder_proto::whole::read(&spec).ok()?).ok()?;
        spec.session
    }

    /// Of a turn's `spec.json`, whose turn it is.
    #[derive(serde::Deserialize)]
    struct Whose {
        session: Option<SessionId>,
    }

    pub fn link(pid: i32) -> Option<Link> {
        let stat = stat(&folder(pid)?)?;
        Some(Link { process: noted(pid, &stat)?, ppid: stat.ppid })
    }

    pub fn process(pid: i32) -> Option<Process> {
        noted(pid, &stat(&folder(pid)?)?)
    }

    pub fn has_ended(pid: i32) -> bool {
        let Some(folder) = folder(pid) else { return true };
        // One that cannot be read is not known to have ended.
        stat(&folder).is_some_and(|stat| matches!(stat.state, 'Z' | 'X'))
    }

    pub fn uptime() -> Option<Duration> {
        let text = std::fs::read_to_string("/proc/uptime").ok()?;
        text.split(' ').next()?.parse().ok().map(Duration::from_secs_f64)
    }

    /// In which a start is noted, of each second.
    pub fn ticks() -> u64 {
        procfs::ticks_per_second()
    }

    pub fn boot() -> Option<String> {
        let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        Some(text.trim().to_owned()).filter(|t| !t.is_empty())
    }

    fn folder(pid: i32) -> Option<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        open(format!("/proc/{pid}"), flags, Mode::empty()).ok()
    }

    /// The beginning of a file: the kernel gives it in one piece.
    fn bytes<const MAX: usize>(folder: &OwnedFd, name: &str) -> Option<Vec<u8>> {
        let file = openat(folder, name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
        let mut buffer = vec![0; MAX];
        let read = rustix::io::read(&file, &mut buffer[..]).ok()?;
        buffer.truncate(read);
        Some(buffer)
    }

    fn stat(folder: &OwnedFd) -> Option<Stat> {
        Stat::from_read(bytes::<STAT_MAX>(folder, "stat")?.as_slice()).ok()
    }

    fn arguments(raw: &[u8]) -> Vec<String> {
        let raw = raw.strip_suffix(b"\0").unwrap_or(raw);
        raw.split(|b| *b == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
    }

    fn noted(pid: i32, stat: &Stat) -> Option<Process> {
        let boot = boot_id()?.to_owned();
        Some(Process { pid, start: stat.starttime, boot, tty: terminal(stat.tty_nr()), ended: None })
    }

    /// A terminal's name below `/dev`, by its device number.
    fn terminal((major, minor): (i32, i32)) -> Option<String> {
        match (major, minor) {
            (136..=143, _) => Some(format!("pts/{}", (major - 136) * 256 + minor)),
            (4, 0..64) => Some(format!("tty{minor}")),
            (4, _) => Some(format!("ttyS{}", minor - 64)),
            (5, 1) => Some("console".to_owned()),
            _ => None,
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn terminals_have_their_names() {
            for (device, name) in [
                ((136, 3), Some("pts/3")),
                ((137, 1), Some("pts/257")),
                ((4, 2), Some("tty2")),
                ((4, 65), Some("ttyS1")),
                ((5, 1), Some("console")),
                ((0, 0), None),
                ((9, 9), None),
            ] {
                assert_eq!(terminal(device).as_deref(), name, "{device:?}");
            }
        }
    }
}

/// Elsewhere the system's own calls are not used yet: nothing is known, so that a caller's variables decide alone.
#[cfg(not(target_os = "linux"))]
mod system {
    use std::time::Duration;

    use minder_proto::record::Process;

    use super::{Ancestor, Link};

    pub fn read(_pid: i32) -> Option<Ancestor> {
        None
    }

    pub fn read_once(_pid: i32) -> Option<Ancestor> {
        None
    }

    pub fn link(_pid: i32) -> Option<Link> {
        None
    }

    pub fn process(_pid: i32) -> Option<Process> {
        None
    }

    pub fn has_ended(_pid: i32) -> bool {
        false
    }

    pub fn uptime() -> Option<Duration> {
        None
    }

    pub fn ticks() -> u64 {
        1
    }

    pub fn boot() -> Option<String> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Walks a made-up process table (pid, parent, start) up to process 7.
    fn walked(table: &[(i32, i32, u64)]) -> (Vec<i32>, bool) {
        let read = |pid| {
            let &(_, ppid, start) = table.iter().find(|(p, ..)| *p == pid)?;
            Some(Link { process: Process { pid, start, boot: "b".into(), tty: None, ended: None }, ppid })
        };
        let walked = walk(50, read, |step| step.process.pid == 7);
        (walked.chain.iter().map(|step| step.process.pid).collect(), walked.whole)
    }

    #[test]
    fn a_walk_goes_to_what_is_looked_for_or_to_the_first_process() {
        assert_eq!(walked(&[(50, 40, 9), (40, 7, 9), (7, 1, 8), (1, 0, 0)]), (vec![50, 40, 7], true));
        assert_eq!(walked(&[(50, 40, 9), (40, 1, 9), (1, 0, 0)]), (vec![50, 40, 1], true));
    }

    #[test]
    fn a_walk_ends_where_a_process_has_ended() {
        assert_eq!(walked(&[]), (vec![], true), "the caller itself is gone: that is all there is");
        assert_eq!(walked(&[(50, 40, 9)]), (vec![50], false));
        // The parent ended, and its pid is another's already.
        assert_eq!(walked(&[(50, 40, 9), (40, 1, 10), (1, 0, 0)]), (vec![50], false));
    }

    #[test]
    fn a_walk_is_bounded() {
        let (chain, whole) = walked(&[(50, 40, 9), (40, 50, 9)]);
        assert_eq!((chain.len(), whole), (DEPTH, true));
    }

    #[test]
    fn a_walk_that_lost_its_way_is_begun_anew() {
        let mut walks = 0;
        let chain = steadily(|| {
            walks += 1;
            Walked { chain: vec![walks], whole: walks == 2 }
        });
        assert_eq!((chain, walks), (vec![2], 2));
        walks = 0;
        steadily(|| {
            walks += 1;
            Walked { chain: vec![()], whole: false }
        });
        assert_eq!(walks, ATTEMPTS);
    }

    #[cfg(target_os = "linux")]
    mod real {
        use std::io::{BufRead, BufReader};
        use std::process::{Command, Stdio};

        use super::*;

        #[test]
        fn this_process_and_its_parent_are_found() {
            let own = i32::try_from(std::process::id()).unwrap();
            let ancestry = Ancestry::of(Some(own));
            let chain: Vec<&Ancestor> = ancestry.iter().collect();
            assert_eq!(chain[0].process.pid, own);
            assert_eq!(chain[1].process.pid, i32::try_from(std::os::unix::process::parent_id()).unwrap());
            for above in [own, chain[1].process.pid] {
                let process = process_of(above).unwrap();
                assert!(runs_under(own, &process), "{above}");
                let another = Process { start: process.start + 1, ..process };
                assert!(!runs_under(own, &another), "the pid of {above}, started at another time");
            }
            for nobody in [None, Some(0), Some(-1), Some(i32::MAX)] {
                assert_eq!(Ancestry::of(nobody), Ancestry::default(), "{nobody:?}");
            }
        }

        #[test]
        fn a_process_that_becomes_another_program_is_looked_at_again() {
            let dir = tempfile::tempdir().unwrap();
            let program = dir.path().join("claude");
            std::os::unix::fs::symlink("/bin/sh", &program).unwrap();
            let script = format!("echo; read next; exec {} -c 'echo; read end'", program.display());
            let mut child = Command::new("/bin/sh")
                .args(["-c", &script])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let (mut input, pid) = (child.stdin.take().unwrap(), i32::try_from(child.id()).unwrap());
            let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
            for (turn, expected) in [None, Some("claude")].into_iter().enumerate() {
                lines.next().unwrap().unwrap();
                // What is kept of the first look is what the second one gives.
                let seen = [system::read(pid), system::read(pid), system::read_once(pid)].map(Option::unwrap);
                assert_eq!(seen.each_ref().map(|a| a.harness), [expected; 3], "{turn}");
                assert!(seen[0] == seen[2] && seen[1] == seen[2], "{seen:?}");
                std::io::Write::write_all(&mut input, b"\n").unwrap();
            }
            child.wait().unwrap();
            assert_eq!(system::read(pid), None, "it is gone");
        }

        #[test]
        fn the_harness_above_a_process_is_found() {
            let dir = tempfile::tempdir().unwrap();
            let program = dir.path().join("claude");
            std::os::unix::fs::symlink("/bin/sh", &program).unwrap();
            // The harness runs a shell, which runs another one: three processes, of which the first is known.
            let script = "sh -c 'sh -c \"echo \\$\\$; read end\"; true'; true";
            let mut child = Command::new(&program)
                .args(["-c", script])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let mut line = String::new();
            BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
            let ancestry = Ancestry::of(line.trim().parse().ok());
            let harness = ancestry.harness().expect("a process called claude is one");
            assert_eq!(harness.process, process_of(i32::try_from(child.id()).unwrap()).unwrap());
            assert_eq!((harness.harness, harness.comm.as_str()), (Some("claude"), "claude"));
            assert_eq!(harness.argv0, program.to_str().unwrap());
            assert_eq!(ancestry.iter().position(|a| a == harness), Some(2));
            assert_eq!(ancestry.iter().count(), 3, "what is above it is not looked at");
            assert!(runs_under(line.trim().parse().unwrap(), &harness.process));
            drop(child.stdin.take());
            child.wait().unwrap();
        }
    }
}
