//! Watches: the durable relation watcher → target, kept only in the target's `watchers.json`, and the fan-out that
//! adds one notice a watcher to the very commit that moves the target.
//!
//! Uses: `store`, `session`. Used by: `server`.

mod fanout;
mod relation;

pub use fanout::FanOut;
pub use relation::{add, cancel};
