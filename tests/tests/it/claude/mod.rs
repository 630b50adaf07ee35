//! End to end with the real Claude Code: two sessions and what minder does between them, each of its boundaries, its
//! ends. Its model is scripted, so each test knows what is asked of the model and when.

mod ends;
mod installation;
mod interrupts;
mod messages;
mod stage;
mod talking;
mod turns;
mod typed;
mod watching;
