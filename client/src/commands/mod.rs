//! The commands, a file for each: options in, lines and an exit code out.

pub mod hooks;
pub mod setup;
