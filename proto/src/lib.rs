//! The contract of minder as code: identifiers, paths, states, events, records, the timeline reader,
//! selectors, configuration and the RPC types. Both the daemon and the client stand on it.
//!
//! Nothing here is asynchronous, opens a socket or writes a terminal; files are only read.

#![warn(missing_docs)]

pub mod account;
pub mod caller;
pub mod config;
pub mod edge;
pub mod envelope;
pub mod error;
pub mod event;
pub mod hold;
pub mod host;
pub mod id;
pub mod label;
pub mod layout;
pub mod limits;
pub mod queue;
pub mod record;
pub mod rpc;
pub mod selector;
pub mod snapshot;
pub mod stamp;
pub mod state;
pub mod text;
pub mod timeline;
pub mod trial;
pub mod turn;
pub mod whole;

/// The protocol that this build speaks on the socket; a header `minder-protocol` carries it.
pub const PROTOCOL: u32 = 1;

/// The text of the store's `format` file that this build reads and writes.
pub const STORE_FORMAT: &str = "minder-store 1";

/// The version of this build, as `--version` and `daemon.status` print it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
