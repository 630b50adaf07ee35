//! Requests that were left while no daemon could be reached. Those that are there at the start are taken before the
//! first call is, later ones as they come. Each is applied once: under its file's name as its key, and away only when
//! that is durable. One that can never be applied goes to the quarantine; one that the disk, or a full queue, refuses
//! stays, and is tried again: before those behind it from the same sender to the same recipient.
//!
//! Who left a request is known from its text alone (`identity::who_left`). What a request does is not known here.
//!
//! Uses: `store`, `readable`. Used by: the daemon's start.

mod bell;
mod judge;
mod take;

pub use take::Taker;
