//! What the end-to-end tests stand on: real programs in private surroundings, and a model that says what a
//! test wants.
//!
//! `model` is the scripted model server. None of these modules knows anything of minder's insides; they see the
//! programs as their users do.

pub mod claude;
pub mod files;
pub mod isolate;
pub mod model;
pub mod process;
pub mod tmux;
