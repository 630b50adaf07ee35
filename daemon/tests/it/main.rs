//! The daemon's integration tests: its server in this process, and the real program in private surroundings.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod activation;
mod adapters;
mod adopt;
mod callers;
mod check;
mod client;
mod ends;
mod garbage;
mod host;
mod inlets;
mod limits;
mod model;
mod peers;
mod prototype;
mod quiet_day;
mod raw;
mod rules;
mod shims;
mod socket;
mod spool;
mod start;
mod stored;
mod surroundings;
mod units;
