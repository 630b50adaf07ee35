//! The packs, one file for each harness. What is in them was seen with the real program unless it says otherwise. `plugin/`
//! has the sources of those that a harness runs in itself.

pub mod claude;
pub mod codex;
pub mod cursor;
pub mod gemini;
pub mod opencode;
pub mod pi;
