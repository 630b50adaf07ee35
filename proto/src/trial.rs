//! What a test may ask of programs that were built for it: places at which the daemon dies, and faults that a harness
//! must find. A release has neither: without the features `minderd/kill-points` and `minderd/seeded-faults` what is
//! asked here is compiled to nothing.
//!
//! Both are listed here, and not where they are, since both programs have faults and a harness walks all of them.

#[cfg(all(feature = "seeded-faults", not(debug_assertions)))]
compile_error!("seeded faults are for tests: a build without debug assertions is a release");

/// Names the fault to be made.
pub const FAULT: &str = "MINDER_FAULT";

/// Names the place to die at, and at which passing of it: `name:n`.
pub const KILL_POINT: &str = "MINDER_KILL_POINT";

/// How many milliseconds the other threads go on while one has come to the place to die at.
pub const KILL_LINGER: &str = "MINDER_KILL_LINGER";

/// `small`: the store's files are sealed, rewritten and removed when they are short.
pub const SIZES: &str = "MINDER_SIZES";

/// Every place at which the daemon can be killed: before and after each step that changes a file.
pub const KILL_POINTS: [&str; 27] = [
    // A commit.
    "journal.before-write",
    "journal.after-write",
    "journal.after-flush",
    "apply.before-op",
    "replace.written",
    "seal.before-rename",
    "retire.before-rename",
    "apply.after-op",
    "feed.before-append",
    "feed.rotated",
    "feed.after-append",
    "answer.before",
    // A new segment of the journal, of a commit or a checkpoint.
    "segment.before-create",
    "segment.written",
    "segment.created",
    // A checkpoint.
    "checkpoint.switched",
    "checkpoint.synced",
    "checkpoint.unlinked",
    "checkpoint.done",
    // A start.
    "recover.before-op",
    "recover.after-op",
    "recover.before-cut",
    "recover.done",
    "recover.opened",
    // What was left in the spool.
    "spool.before-commit",
    "spool.committed",
    "spool.unlinked",
];

/// The places of what is done only to a store that was damaged or is compacted. The tests of those walk them.
pub const MEND_POINTS: [&str; 7] = [
    // A start beside a damaged journal.
    "recover.synced",
    "recover.marked",
    "recover.aside",
    // A repair.
    "repair.kept",
    "repair.aside",
    "repair.committed",
    "repair.finished",
];

/// The places of a launch's course beside the store. The tests of launches walk them.
pub const LAUNCH_POINTS: [&str; 4] = ["launch.registered", "launch.window", "launch.process", "launch.told"];

/// The places of the typing of a message into a terminal: it is this attempt's, its text is in, its Enter is. The tests of typing
/// walk them.
pub const TYPE_POINTS: [&str; 3] = ["type.claimed", "type.pasted", "type.entered"];

/// The places of a turn's course beside the store. The tests of turns walk them.
pub const TURN_POINTS: [&str; 7] = [
    "turn.before-folder",
    "turn.made",
    "turn.spawned",
    "turn.settled",
    "turn.line-written",
    "turn.told",
    "turn.cleared",
];

/// What makes a fault visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// The daemon is killed, and starts again.
    ByKill,
    /// The machine loses its power: what was not synced is gone.
    ByPowerLoss,
}

/// One fault.
#[derive(Clone, Copy, Debug)]
pub struct Seeded {
    /// Its name.
    pub name: &'static str,
    /// What is wrong with it.
    pub what: &'static str,
    /// What makes it visible.
    pub shown: Shown,
    /// Words of the findings that it leads to: a finding with none of them is another fault's.
    pub found_as: &'static [&'static str],
}

/// Every fault there is.
pub const FAULTS: [Seeded; 12] = [
    by_kill(
        "ack-before-flush",
        "callers are answered before their commit is in the journal",
        &["is lost or out of order"],
    ),
    by_kill("fanout-two-commits", "the notices of a declaration are a second commit", &["and not told ["]),
    by_kill(
        "key-left-out",
        "an idempotency key is kept in memory and is no part of its commit",
        &["and was told as", "stands there", "was called a duplicate"],
    ),
    by_kill(
        "cut-of-tail-skipped",
        "a start leaves bytes past the last operation on a file",
        &["/timeline.jsonl: "],
    ),
    by_kill("replayed-twice", "a start appends what stands in the file already", &["says that it is"]),
    by_kill("feed-silent-at-start", "a start does not ring for what it replayed", &["a stream told"]),
    by_kill(
        "checkpoint-too-far",
        "a checkpoint removes the segment that commits go to",
        &["store check: ", "receipts and waits as", "is lost or out of order", "its timeline has not"],
    ),
    by_kill("retired-in-place", "a start does not finish closing a session", &["by its folder"]),
    by_kill("spool-unlinked-first", "a request leaves the spool before it is committed", &["spooler-"]),
    by_kill(
        "cursor-not-merged",
        "a follower writes its positions over those of another",
        &["two waits told"],
    ),
    by_power_loss(
        "checkpoint-without-sync",
        "a checkpoint removes the journal of files that are not durable",
    ),
    by_power_loss("flush-skipped", "callers are answered without a flush"),
];

const fn by_kill(name: &'static str, what: &'static str, found_as: &'static [&'static str]) -> Seeded {
    Seeded { name, what, shown: Shown::ByKill, found_as }
}

const fn by_power_loss(name: &'static str, what: &'static str) -> Seeded {
    Seeded { name, what, shown: Shown::ByPowerLoss, found_as: &[""] }
}

/// True if this fault is to be made.
#[cfg(feature = "seeded-faults")]
pub fn fault(name: &str) -> bool {
    use std::sync::OnceLock;

    static WANTED: OnceLock<Option<String>> = OnceLock::new();
    debug_assert!(FAULTS.iter().any(|f| f.name == name), "{name} is not in the list of faults");
    WANTED.get_or_init(|| std::env::var(FAULT).ok()).as_deref() == Some(name)
}

/// False.
#[cfg(not(feature = "seeded-faults"))]
#[inline]
pub const fn fault(_name: &str) -> bool {
    false
}
