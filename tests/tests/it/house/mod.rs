//! Rules about the tree itself, each an invariant of `ARCHITECTURE.md`: what a reviewer would otherwise have to look
//! for in every change.

// Names of files in this tree are compared as they are.
#![allow(clippy::case_sensitive_file_extension_comparisons)]

mod dependencies;
mod first_hour;
mod layers;
mod modules;
mod rust;
mod tree;
mod wire;
mod words;
mod writes;

pub use tree::{program_texts, root};
