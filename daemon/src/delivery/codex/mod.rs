//! The codex channel: Codex's own app-server, which holds the conversations of its terminals, by its control socket. A message
//! joins the turn that runs, or starts one. The message's id goes with it, and what the thread has under that id is the
//! evidence. The server knows no id again, so that nothing is sent a second time before the thread was read.
//!
//! `socket` is the wire, `server` what is asked over it; the loop around it is [`served`](super::served)'s.

mod server;
mod socket;

pub(super) use server::{Server, is_without_server};
