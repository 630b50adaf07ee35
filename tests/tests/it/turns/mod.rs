//! Turns, a theme a module: what a shim does with a harness, and what the daemon makes of it; what is left of each,
//! whatever ends it and whatever ends the daemon meanwhile.

mod early;
mod harnesses;
mod kills;
mod lives_on;
mod log;
mod outcomes;
mod places;
pub mod scene;
mod spare;
mod typed;
