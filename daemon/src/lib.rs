//! The daemon as a library, so that its integration tests can drive each part: the socket server and what a
//! process needs around it (lock, descriptors, service manager, readiness, log).

pub mod args;
pub mod check;
pub mod delivery;
pub mod descriptors;
pub mod exit;
pub mod faults;
pub mod folder;
pub mod hook;
pub mod host;
pub mod identity;
pub mod launch;
pub mod lock;
pub mod log;
pub mod logfile;
pub mod oversize;
pub mod process;
pub mod readable;
pub mod readiness;
pub mod repair;
pub mod server;
pub mod service;
pub mod session;
pub mod shim;
pub mod spool;
pub mod store;
pub mod turn;
pub mod watch;
