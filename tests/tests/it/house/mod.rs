//! Rules about the tree itself, each an invariant of `ARCHITECTURE.md`: what a reviewer would otherwise have to look
//! for in every change.

mod dependencies;
mod layers;
mod modules;
mod rust;
mod tree;
mod words;
mod writes;
