//! Everything that is tested of the client from outside its modules, in one binary.

// In a test a panic is the report, in their shared parts too.
#![allow(clippy::unwrap_used)]

mod at_a_terminal;
mod bodies;
mod cost_cases;
mod damage_cases;
mod garbage;
mod grown;
mod help;
mod hook;
mod hooks;
mod hooks_command;
mod hooks_property;
mod hostile;
mod inlets;
mod listings;
mod packs;
mod pipes;
mod place;
mod plugins;
mod reference;
mod refusals;
mod scene;
mod setup;
mod spool;
mod store;
mod store_writer;
mod stream_cases;
mod strict;
mod talking;
mod turn_run;
mod turns;
mod wait_cases;
mod wait_rules;
mod world;
