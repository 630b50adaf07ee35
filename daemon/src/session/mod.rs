//! What happens to a session's record: it is registered, declares, is changed, is closed. Pure functions over a
//! transaction; who may do it is decided before they are called.
//!
//! Uses: `store`. Used by: `server`, `hook`, `process`, `delivery`.

mod close;
mod create;
mod declare;
mod launched;
pub mod lifetime;
mod resolve;
pub mod retention;
mod set;

pub(crate) use close::from_minder;
pub use close::{Closed, close, tell_senders};
pub use create::{Born, create, free_label};
pub use declare::{Declaration, declare};
pub use launched::{came_up, is_done, not_up, process_for};
pub use resolve::{Lookup, message, message_in_files, only, selected, selected_one};
pub use set::{Changes, bind, hook_heard, set};
