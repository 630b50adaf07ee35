//! Sessions whose process minder starts, in a tmux server of the test's own.

mod births;
mod cuts;
mod resumes;
mod stage;
mod ways;
