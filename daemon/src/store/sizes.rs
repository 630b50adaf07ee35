//! How long the store's files may become before something is done about them. A crash test must see that often: with
//! the feature `kill-points` and `MINDER_SIZES=small` in the environment all of them are small.

use std::time::Duration;

/// Bytes allocated for a segment of the journal.
pub fn journal_segment() -> u64 {
    if small() { 16 << 10 } else { 16 << 20 }
}

/// A checkpoint is begun when the journal is this long, in bytes.
pub fn checkpoint() -> u64 {
    if small() { 32 << 10 } else { 64 << 20 }
}

/// A checkpoint is begun after this long without a commit.
pub fn checkpoint_idle() -> Duration {
    if small() { Duration::from_millis(50) } else { Duration::from_secs(30) }
}

/// A ledger is rewritten at a checkpoint when it is longer than this, in bytes.
pub fn ledger() -> u64 {
    if small() { 16 << 10 } else { 1 << 20 }
}

/// A timeline is sealed, and a new segment begun, when it is this long, in bytes.
pub fn timeline_segment() -> u64 {
    if small() { 8 << 10 } else { 4 << 20 }
}

/// A feed longer than this is moved aside and begun anew, in bytes.
pub fn feed() -> u64 {
    if small() { 8 << 10 } else { 8 << 20 }
}

#[cfg(feature = "kill-points")]
fn small() -> bool {
    static SMALL: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *SMALL.get_or_init(|| std::env::var_os(minder_proto::trial::SIZES).is_some_and(|v| v == "small"))
}

#[cfg(not(feature = "kill-points"))]
const fn small() -> bool {
    false
}
