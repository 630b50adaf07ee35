//! `minderd shim`: one small process for one turn, in the turn's folder. It starts the harness, keeps what it says, owns
//! the windows, the ladder and the kill, and writes down what it saw. It never waits for the daemon, which may die, be
//! replaced or be stopped meanwhile.
//!
//! [`machine`] decides, `run` is the loop around it; `start` and `limits` make the harness's process, [`tree`] ends
//! it with everything below it; [`stream`] tells what lines mean; `spool` and `report` write the files; `links` is
//! who listens; `clock` and `signals` are the system's; `place` is all of these before there is a turn, and `rehearsal` what is done once
//! for nothing then; [`server`] is the
//! process that becomes shims. No runtime, one thread.
//!
//! Uses: `descriptors`. Used by: the start of the program, before anything else; [`tree`] also by who settles the turn of
//! a shim that is gone.

mod clock;
mod limits;
mod links;
pub mod machine;
mod place;
mod rehearsal;
mod report;
mod run;
pub mod server;
mod signals;
mod spool;
mod start;
pub mod stream;
pub mod tree;

pub use run::main;
pub use start::MARKER;
