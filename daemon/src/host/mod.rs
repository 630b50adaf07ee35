//! The supervision host of a primary: what happened to the sessions it supervises waits in its wake queue, a headless
//! engine takes what is routine, and the primary is given the rest.
//!
//! Everything that decides is a pure function over what is in the files (`minder_proto::host`) and a time.

pub mod budget;
pub mod episode;
pub mod latch;
pub mod offer;
pub mod queue;
pub mod readiness;
pub mod settle;
