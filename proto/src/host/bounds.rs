//! Numbers of the host that are no configuration: bytes, counts and repetitions that nobody tunes, in one place.

use std::time::Duration;

/// The operator's words of an away record, in bytes.
pub const WORDS_MAX: usize = 16 * 1024;
/// The summary of an outcome, in bytes.
pub const SUMMARY_MAX: usize = 4_096;
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
/// A brief, in bytes.
pub const BRIEF_MAX: usize = 16 * 1024;
/// An item of the open questions and of the backstop, in bytes.
pub const ITEM_MAX: usize = 220;
/// The open questions, and the backstop, each in bytes.
pub const ITEMS_MAX: usize = 4_000;
/// An item of the outcomes with its newline, in bytes.
pub const OUTCOME_ITEM_MAX: usize = 600;
/// Operator outcomes of one drain, in bytes.
pub const OPERATOR_BLOCK_MAX: usize = 4_000;
/// Routine outcomes of one drain, in bytes.
pub const ROUTINE_BLOCK_MAX: usize = 2_000;
/// Checks that run at once.
pub const CHECKS_AT_ONCE: usize = 4;
/// Rows that a queue holds before the oldest routine ones fold into one.
pub const ROWS_MAX: usize = 1_000;
/// Failed engine turns after which a row is granted no more.
pub const TRIES_MAX: u32 = 2;
/// At which a hook of a harness is stopped whose hand-back would be lost.
pub const HOOK_LIMIT: Duration = Duration::from_secs(28_800);
/// How much later than its boundary a park's client ends by itself.
pub const PARK_OVERDUE: Duration = Duration::from_secs(60);
/// How long an engine's call looks for a daemon that restarts.
pub const ENGINE_RECONNECT: Duration = Duration::from_secs(60);
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
/// How long what a quiet host holds waits for another reason to be told.
pub const QUIET_HOLD: Duration = Duration::from_secs(2 * 3_600);
/// Hand-backs of an hour after which rows are collected for longer.
pub const HANDBACKS_MAX: usize = 60;
/// For how long they are collected then.
pub const COALESCE_SLOW: Duration = Duration::from_secs(600);
/// Turns of a conversation that its engine goes on with.
pub const ROTATE_TURNS: u32 = 20;
/// Turns whose dearest is reserved for the next.
pub const RESERVE_OF: usize = 20;
/// What is reserved where no turn has a price yet, in micro-dollars.
pub const RESERVE_FIRST: u64 = 250_000;
/// Share of a budget at which it is said that it ends, in percent.
pub const BUDGET_WARN: u64 = 80;
/// Errors in a row that trip the latch.
pub const LATCH_ERRORS: u32 = 2;
/// Its first cool-down.
pub const LATCH_FIRST: Duration = Duration::from_secs(300);
/// Its longest.
pub const LATCH_MAX: Duration = Duration::from_secs(3_600);
/// How long a primary keeps a lease that nothing else ends.
pub const LEASE_TTL: Duration = Duration::from_secs(30 * 60);
/// An entry of the mirror, in characters.
pub const MIRROR_ENTRY: usize = 4_000;
/// What an engine is fed of it at once, in characters.
pub const MIRROR_FEED: usize = 16_000;
/// Entries at which it is rewritten.
pub const MIRROR_MAX: usize = 300;
/// Entries that are kept then: the newest.
pub const MIRROR_KEEP: usize = 200;
/// Lines of the ledger at which it is rewritten.
pub const LEDGER_MAX: usize = 600;
/// Lines that are kept then: the newest.
pub const LEDGER_KEEP: usize = 400;
/// Shortest prompt of an engine that can be one, in bytes.
pub const PROMPT_MIN: usize = 1_024;
