//! Named places at which the crash tests end the daemon. Without the feature `kill-points` they are nothing.

use minder_proto::trial::{KILL_POINTS, LAUNCH_POINTS, MEND_POINTS, TURN_POINTS, TYPE_POINTS};

#[cfg(all(feature = "kill-points", not(debug_assertions)))]
compile_error!("kill points are for tests: a build without debug assertions is a release");

fn is_listed(name: &str) -> bool {
    let lists: [&[&str]; 5] = [&KILL_POINTS, &MEND_POINTS, &TURN_POINTS, &LAUNCH_POINTS, &TYPE_POINTS];
    lists.iter().any(|list| list.contains(&name))
}

/// Dies by SIGKILL if `MINDER_KILL_POINT` is `name:n` and this is the n-th passing of that name; after the time that
/// `MINDER_KILL_LINGER` says.
#[cfg(feature = "kill-points")]
pub fn reach(name: &'static str) {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use minder_proto::trial::{KILL_LINGER, KILL_POINT};

    static WANTED: OnceLock<Option<(String, u64)>> = OnceLock::new();
    static PASSED: AtomicU64 = AtomicU64::new(0);
    debug_assert!(is_listed(name), "{name} is not in the list of kill points");
    let wanted = WANTED.get_or_init(|| {
        let text = std::env::var(KILL_POINT).ok()?;
        let (name, n) = text.rsplit_once(':')?;
        Some((name.to_owned(), n.parse().ok()?))
    });
    if let Some((wanted, n)) = wanted
        && wanted == name
        && PASSED.fetch_add(1, Ordering::Relaxed) + 1 == *n
    {
        // This thread has come no further; how far the others come meanwhile is theirs.
        if let Some(linger) = std::env::var(KILL_LINGER).ok().and_then(|ms| ms.parse().ok()) {
            std::thread::sleep(Duration::from_millis(linger));
        }
        // No destructor, no flush: what a crash is.
        let _ = nix::sys::signal::kill(nix::unistd::Pid::this(), nix::sys::signal::Signal::SIGKILL);
    }
}

/// Nothing.
#[cfg(not(feature = "kill-points"))]
#[inline]
pub fn reach(name: &'static str) {
    debug_assert!(is_listed(name), "{name} is not in the list of kill points");
}
