//! What is typed into terminals, and what is not: with a stand-in for Claude Code that can be in every state and have
//! every habit, and with the real Codex. The real Claude Code is beside its other tests.

mod codex;
mod cuts;
mod many;
mod panes;
mod screens;
mod stage;
mod texts;
mod triggers;
