//! The packs, one file for each harness. What is in them was seen with the real program unless it says otherwise.

pub mod claude;
pub mod codex;
