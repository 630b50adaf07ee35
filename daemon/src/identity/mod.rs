//! Who is calling: what the kernel says of a peer ([`ancestry`]), which of its ancestors is a harness ([`harness`]),
//! what a process that minder started has to show ([`token`]), and what follows from that and from what the caller says of
//! itself ([`mod@who`]). The kernel is believed first.
//!
//! Uses: `store`, `session`. Used by: `server`, `hook`, `spool`.

pub mod ancestry;
pub mod harness;
pub mod token;
pub mod who;

pub use ancestry::{Ancestor, Ancestry, boot_id, has_ended, process_of, ran_for, runs_under};
pub use who::{Who, has_token, identify, who, who_left};
