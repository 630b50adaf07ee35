//! The client of minder: synchronous, without an asynchronous runtime, standing on `minder-proto` alone.
//!
//! [`run()`] is the program. `cli` is the command line, `commands/` has one file per command, `printer` is the one
//! place that writes to the standard streams, `rpc` and `link` are the way to the daemon, `spool` is where a
//! request goes when there is none.

mod ancestors;
mod apart;
pub mod autostart;
pub mod channel;
pub mod cli;
pub mod commands;
pub mod context;
pub mod environment;
pub mod event_line;
pub mod fault;
pub mod fleet;
pub mod folder_watch;
pub mod follow;
pub mod holds;
pub mod hooks;
pub mod input;
pub mod link;
pub mod look;
pub mod output;
pub mod printer;
pub mod process;
pub mod receipts;
pub mod rpc;
pub mod run;
pub mod service;
pub mod spool;
pub mod table;
pub mod turn_log;
pub mod usage;

pub use run::run;
