//! Everything that is tested of minder as a whole, in one binary. The programs must have been built
//! (`make test` does it).

// In a test a panic is the report, in their shared parts too.
#![allow(clippy::unwrap_used)]

mod actors;
mod app_server;
mod claude;
mod codex_hooks;
mod compact;
mod crash;
mod cuts;
mod disks;
mod docs;
mod following;
mod gone;
mod headless;
mod hooks;
mod hosts;
mod house;
mod j;
mod j_damage;
mod j_restart;
mod j_text;
mod launches;
mod matrix;
mod open_server;
mod plugins;
mod probe;
mod queues;
mod queues_crash;
mod records;
mod scale;
mod scene;
mod shims;
mod spool_keys;
mod stores;
mod strace;
mod tour;
mod transcripts;
mod turns;
mod typing;
mod volume;
mod watches;
mod world;
