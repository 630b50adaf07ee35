//! The inlets of the three crates, from the very files that their tests throw garbage at.

#[path = "../../client/tests/it/inlets.rs"]
pub mod client;
#[path = "../../daemon/tests/it/inlets.rs"]
pub mod daemon;
#[path = "../../proto/tests/it/inlets.rs"]
pub mod proto;
