//! One file per command: its options, its help, what it does and how it shows it. A command returns its exit
//! code; nothing is on standard output where it fails.

pub mod account;
pub mod attach;
pub mod close;
pub mod daemon;
pub mod doctor;
pub mod drop;
pub mod harness;
pub mod help;
pub mod home;
pub mod hook;
pub mod hooks;
pub mod host;
pub mod inbox;
pub mod launch;
pub mod ls;
pub mod new;
pub mod probe;
pub mod queue;
pub mod relaunch;
pub mod retry;
pub mod send;
pub mod set;
pub mod setup;
pub mod show;
pub mod state;
pub mod store;
pub mod tour;
pub mod turn;
pub mod wait;
pub mod watch;
