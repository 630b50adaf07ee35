//! Named places at which the crash tests end the daemon. Without the feature `kill-points` they are nothing.

/// Every place, in the order a commit, a checkpoint and a start pass them.
pub const ALL: [&str; 14] = [
    "journal.before-write",
    "journal.after-write",
    "journal.after-flush",
    "apply.before-op",
    "apply.after-op",
    "feed.before-append",
    "feed.after-append",
    "answer.before",
    "checkpoint.switched",
    "checkpoint.synced",
    "checkpoint.unlinked",
    "recover.before-op",
    "recover.after-op",
    "recover.done",
];

/// Dies by SIGKILL if `MINDER_KILL_POINT` is `name:n` and this is the n-th passing of that name.
#[cfg(feature = "kill-points")]
pub fn reach(name: &'static str) {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    static WANTED: OnceLock<Option<(String, u64)>> = OnceLock::new();
    static PASSED: AtomicU64 = AtomicU64::new(0);
    debug_assert!(ALL.contains(&name), "{name} is not in the list of kill points");
    let wanted = WANTED.get_or_init(|| {
        let text = std::env::var("MINDER_KILL_POINT").ok()?;
        let (name, n) = text.rsplit_once(':')?;
        Some((name.to_owned(), n.parse().ok()?))
    });
    if let Some((wanted, n)) = wanted
        && wanted == name
        && PASSED.fetch_add(1, Ordering::Relaxed) + 1 == *n
    {
        // No destructor, no flush: what a crash is.
        let _ = nix::sys::signal::kill(nix::unistd::Pid::this(), nix::sys::signal::Signal::SIGKILL);
    }
}

/// Nothing.
#[cfg(not(feature = "kill-points"))]
#[inline]
pub fn reach(name: &'static str) {
    debug_assert!(ALL.contains(&name), "{name} is not in the list of kill points");
}
