//! Numbers of the host that are no configuration: bytes, counts and repetitions that nobody tunes, in one place.

use std::time::Duration;

/// The text of a row, in bytes.
pub const ROW_TEXT_MAX: usize = 512;
/// What a check printed, as its row keeps it, in bytes.
pub const CHECK_TEXT_MAX: usize = 4_096;
/// States of the path that a row keeps: the last ones.
pub const PATH_MAX: usize = 8;
/// Wake lines of a hand-back; what is beyond is a count.
pub const WAKE_LINES_MAX: usize = 8;
/// A hand-back's text, in bytes.
pub const HANDBACK_MAX: usize = 8 * 1024;
/// The cause in a host line, in bytes, on one line.
pub const CAUSE_MAX: usize = 240;
/// An item of the open questions and of the backstop, in bytes.
pub const ITEM_MAX: usize = 220;
/// The open questions, and the backstop, each in bytes.
pub const ITEMS_MAX: usize = 4_000;
/// Rows that a queue holds before the oldest routine ones fold into one.
pub const ROWS_MAX: usize = 1_000;
/// From a seen hand-back to its repetition; doubled each time.
pub const REPEAT_FIRST: Duration = Duration::from_secs(15 * 60);
/// The longest such pause.
pub const REPEAT_MAX: Duration = Duration::from_secs(2 * 3_600);
/// How often a seen hand-back is repeated.
pub const REPEATS: u32 = 4;
/// How long an idle primary may show no evidence of a hand-back that its park printed.
pub const EVIDENCE: Duration = Duration::from_secs(120);
/// How often a hand-back without evidence is given.
pub const GIVEN_MAX: u32 = 3;
/// Lines of the ledger at which it is rewritten.
pub const LEDGER_MAX: usize = 600;
/// Lines that are kept then: the newest.
pub const LEDGER_KEEP: usize = 400;
