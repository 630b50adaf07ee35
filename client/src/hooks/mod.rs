//! Hooks of harnesses: the commands that a harness runs at its events, put into its settings and taken out
//! again without a trace.
//!
//! `pack` is what is known of a harness, `packs` holds one for each, `command` their command texts. `plan` says what a
//! settings text becomes (`ours` finds what is there, `json_text` changes it byte by byte, `memory` is what has to be
//! kept to take it back); `script` does for a file
//! of our own, `sandbox` for Codex's configuration. `place` says whose file it is; only
//! `replace` and `receipt` write. `change` puts it together: a change that is shown first and then made. `hindrance`
//! knows what keeps hooks from running that are there. `probe` and `service` look at the machine for `setup`.

pub mod change;
pub mod command;
mod diff;
mod error;
pub mod hindrance;
pub mod json_text;
pub mod memory;
pub mod ours;
pub mod pack;
pub mod packs;
pub mod place;
pub mod plan;
pub mod probe;
pub mod receipt;
mod replace;
pub mod sandbox;
pub mod script;
pub mod service;

pub use change::{Change, Settings};
pub use error::HooksError;
pub use pack::Pack;
pub use place::{Scope, Surroundings};
