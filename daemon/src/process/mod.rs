//! The end of the processes that sessions are bound to, as the kernel tells it: by pidfd, without a look while nothing
//! happens. What an end means for a session is decided in [`decide`]; [`kernel`] asks the kernel; [`ends`] is the task
//! that keeps one handle for each bound process.
//!
//! Uses: `store`, `session`, `identity`, `readable`. Used by: the daemon's start, `launch`.

pub mod decide;
pub mod ends;
pub mod kernel;

pub use ends::{Bindings, Ends, Waiting};
pub use kernel::{Look, ended, is_alive, look, signal};
