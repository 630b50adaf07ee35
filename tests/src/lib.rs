//! What the end-to-end tests stand on: real programs in private surroundings, and a model that says what a
//! test wants. None of these modules knows anything of minder's insides; they see programs as users do.
//!
//! | module | what it gives |
//! |---|---|
//! | [`isolate`] | a folder that holds every home, commands with nothing inherited, an end of all that was started |
//! | [`model`] | the scripted model: the prompt says what it answers, the test sees what it was asked |
//! | [`claude`] | Claude Code with its first-run questions answered, headless or in a terminal; recording hooks |
//! | [`codex`] | Codex as a person has it, for runs of it |
//! | [`fake`] | stand-ins for a harness: one that does what a script says, one that runs hooks |
//! | [`tmux`] | a private tmux server: keys, pastes, screens |
//! | [`crash`] | the crash harness: a daemon that is killed, and histories that its store is held against |
//! | [`power`] | what is left after a loss of power, compared with what callers were answered |
//! | [`process`], [`files`] | processes by pidfd; waiting for files by inotify |
//! | [`garbage`], [`heap`] | bytes that no parser should be given; how much memory a piece of work takes |
//! | [`shim`] | a turn's shim without a daemon |
//! | [`fleet`] | a store of any size, written to its files |
//!
//! Nothing sleeps to wait: each wait is woken by an event and has a limit, and its error shows what was there
//! instead. A test with the real program:
//!
//! ```no_run
//! # use std::time::Duration;
//! # use minder_tests::{claude::Claude, isolate::Isolated, model::Model, process, tmux::Tmux};
//! # fn test() -> anyhow::Result<()> {
//! # let limit = Duration::from_secs(60);
//! let model = Model::start()?;
//! let isolated = Isolated::new()?;
//! process::run(isolated.minder()?.args(["hooks", "install", "claude"]), b"", limit)?;
//! let claude = Claude::new(&isolated, &model)?;
//! let folder = claude.project("worker")?; // before any session starts
//! let tmux = Tmux::start(&isolated)?;
//! let worker = claude.tui(&tmux, "worker", &folder, &[])?;
//! worker.prompt("look around [[sh ls]] and [[gate go on]] [[say all done]]")?;
//! worker.wait_status(limit, "busy")?;
//! model.open("go on");
//! worker.wait_status(limit, "idle")?;
//! let request = model.wait_for_text(limit, "[minder] watch:")?; // reached some session's model
//! assert_eq!(request.count("[minder] watch:"), 1);
//! # Ok(())
//! # }
//! ```
//!
//! Text that goes round and comes back to a model (the first words of a prompt in a notice, say) steers it if
//! it holds directives: begin prompts with plain words.

pub mod claude;
pub mod codex;
pub mod crash;
mod dispositions;
pub mod fake;
pub mod files;
pub mod fleet;
pub mod garbage;
pub mod heap;
pub mod isolate;
pub mod model;
pub mod opencode;
pub mod pi;
pub mod power;
pub mod process;
pub mod shim;
pub mod tmux;
