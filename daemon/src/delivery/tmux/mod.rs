//! The tmux channel: what waits is typed into the pane in which a harness runs. It is the last resort: a screen is no
//! interface. So `screen` and `sight` say what a pane shows (rules for each harness in `claude` and `codex`, held
//! against recorded screens) and are unknown where they are not sure; `machine` decides, purely, what one delivery does
//! next; `place`, `owner` and `word` say whose the pane is and what the harness itself says; `server` runs tmux; `text` is what is
//! typed. `attempt` puts them together for the head of a queue.

mod attempt;
mod claude;
mod codex;
mod machine;
mod owner;
mod panes;
mod place;
mod screen;
#[cfg(test)]
mod screens;
mod server;
mod sight;
mod text;
mod word;

pub use attempt::Typing;
pub use panes::Panes;
pub use place::{known, settle};
