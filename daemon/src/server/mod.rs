//! JSON-RPC 2.0 over HTTP/1.1 on a Unix socket, one module per concern. This folder is the only one that names
//! jsonrpsee; everything behind it gets parsed parameters and a [`Peer`].
//!
//! A request goes through: [`listen`] (the socket itself) → [`accept`] (bounded, peer checked before a byte is read) →
//! [`stall`] (a reader that stopped ends its own stream) → [`connection`] (HTTP, limits, the caller's headers) →
//! [`guard`] (panics, requests in flight) → [`method`]. Methods own no work: a handler is dropped when its caller goes
//! away, so it parses, sends one command to the task that owns the state, and awaits the answer.

pub mod accept;
pub mod account;
pub mod connection;
pub mod context;
pub mod daemon;
pub mod guard;
pub mod hook;
pub mod host;
pub mod launch;
pub mod limits;
pub mod listen;
pub mod message;
pub mod method;
pub mod peer;
pub mod session;
pub mod spooled;
pub mod stall;
pub mod store;
pub mod turn;
pub mod version;
pub mod watch;

pub use accept::{Ended, serve, serve_and_tell};
pub use context::Context;
pub use jsonrpsee::{Methods, RpcModule};
pub use limits::Limits;
pub use listen::{ListenError, Socket};
pub use peer::Peer;
pub use version::Served;
