//! The client as a library, so that tests can drive its parts.

pub mod autostart;
pub mod commands;
pub mod hooks;
pub mod rpc;
