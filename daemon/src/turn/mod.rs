//! Supervised turns: one run of one harness process for one prompt, which always ends, once, with a named outcome.
//!
//! Uses: nothing of the daemon yet. Used by: nobody yet.

pub mod adapter;
