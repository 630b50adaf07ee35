//! Everything that is tested of the client from outside its modules, in one binary.

// In a test a panic is the report, in their shared parts too.
#![allow(clippy::unwrap_used)]

mod cost_cases;
mod damage_cases;
mod grown;
mod hooks;
mod hooks_command;
mod hooks_property;
mod place;
mod scene;
mod setup;
mod store_writer;
mod stream_cases;
mod wait_cases;
