//! The supervision host's files and words, as data: what lies in `hosts/<primary id>/`, the reasons of a hand-back, and
//! the bounds that nobody tunes. What follows from them is decided in the daemon.

pub mod bounds;
pub mod episode;
pub mod ledger;
pub mod reason;
pub mod record;
pub mod row;
pub mod upkeep;
