//! Hooks as a harness calls them, without the harness: a stand-in runs the installed commands with payloads that the
//! real program was seen to send. What is too rare, too fast or too broken to bring about with the real one.

mod answers;
pub mod bench;
mod cuts;
mod dialects;
mod evidence;
mod foreign;
mod inner;
mod late;
mod replaced;
mod rig;
mod status;
mod stop;
mod storms;
mod waiters;
