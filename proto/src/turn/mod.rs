//! Supervised turns: one run of one harness process for one prompt.
//!
//! `names` are the words of outcomes, failures and classes; `policy` the windows and where each came from; `stream`
//! what counts as progress on a typed stream, as data; `folder` the files of a turn while it runs; `line` the one
//! line that is left of it.
//!
//! Uses: `id`, `stamp`, `config`. Used by: `rpc`, both programs.

pub mod folder;
pub mod line;
pub mod names;
pub mod policy;
pub mod stream;

pub use names::{Class, Failure, Outcome, Source};
