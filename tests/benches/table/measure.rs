//! Times, counts and what the kernel knows of a process.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The middle one.
pub fn median(times: &mut [Duration]) -> Duration {
    percentile(times, 50)
}

/// The smallest that `share` percent are not above.
pub fn percentile(times: &mut [Duration], share: usize) -> Duration {
    times.sort_unstable();
    times[(times.len() * share / 100).min(times.len() - 1)]
}

/// Between two measurements: what one of them leaves to be done is not charged to the next.
const REST: Duration = Duration::from_millis(5);

/// How often `ours` takes `base`, by their medians; the two take turns, so that what slows the machine slows both.
pub fn ratio(rounds: usize, mut base: impl FnMut(), mut ours: impl FnMut()) -> f64 {
    let (mut of_base, mut of_ours) = (Vec::new(), Vec::new());
    let rested = |work: &mut dyn FnMut()| {
        std::thread::sleep(REST);
        timed(work)
    };
    for round in 0..=rounds {
        let (a, b) = (rested(&mut base), rested(&mut ours));
        // The first one warms up.
        if round > 0 {
            of_base.push(a);
            of_ours.push(b);
        }
    }
    median(&mut of_ours).as_secs_f64() / median(&mut of_base).as_secs_f64()
}

/// How long it takes.
pub fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

/// Runs a program to its end; its output goes nowhere. The code it ended with must be one of `codes`.
pub fn run(command: &mut Command, codes: &[i32]) {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    assert!(status.code().is_some_and(|code| codes.contains(&code)), "{command:?}: {status}");
}

/// A plain log: the floor of what a durable line costs here.
pub struct Log(File);

impl Log {
    pub fn new(path: &Path) -> Self {
        Self(File::options().create(true).append(true).open(path).unwrap())
    }

    /// Appends a line and waits for the device.
    pub fn append(&mut self) {
        self.0.write_all(&[b'x'; 200]).unwrap();
        self.0.sync_data().unwrap();
    }
}

/// What the kernel says of a process.
pub struct Kernel(pub u32);

impl Kernel {
    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(format!("/proc/{}/{name}", self.0)).unwrap_or_default()
    }

    /// A line of `status`, in kB.
    pub fn kilobytes(&self, key: &str) -> f64 {
        let status = self.read("status");
        let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
        line.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(f64::NAN)
    }

    /// Memory that is its alone, in kB.
    pub fn private(&self) -> f64 {
        let rollup = self.read("smaps_rollup");
        let lines = rollup.lines().filter(|line| line.starts_with("Private_"));
        lines.filter_map(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok()).sum()
    }

    /// Times that its threads went to sleep, which is how often they were awake.
    pub fn switches(&self) -> f64 {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.0)).unwrap().flatten();
        let of_task = |task: std::fs::DirEntry| {
            let status = std::fs::read_to_string(task.path().join("status")).unwrap_or_default();
            let lines = status.lines().filter_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            lines.filter_map(|n| n.trim().parse::<f64>().ok()).sum::<f64>()
        };
        tasks.map(of_task).sum()
    }

    /// Processor time so far, in ticks of 10 ms.
    pub fn ticks(&self) -> f64 {
        let stat = self.read("stat");
        let after = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        after.split_whitespace().skip(11).take(2).filter_map(|n| n.parse::<f64>().ok()).sum()
    }

    /// Waits until it sleeps in `poll`: a follower that is ready.
    pub fn wait_for_poll(&self) {
        let deadline = Instant::now() + Duration::from_secs(60);
        // The numbers of `poll` and `ppoll` on x86_64 and on aarch64.
        let polls = ["7 ", "271 ", "73 "];
        while !polls.iter().any(|number| self.read("syscall").starts_with(number)) {
            assert!(Instant::now() < deadline, "process {} does not come to rest", self.0);
            std::thread::yield_now();
        }
    }
}

/// Lets time pass for something to be counted in it.
pub fn let_pass(time: Duration) {
    let (_keep, never) = std::sync::mpsc::channel::<()>();
    let _ = never.recv_timeout(time);
}
