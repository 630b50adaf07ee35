//! The opencode channel: OpenCode's own HTTP server, which holds the conversation, on this machine. A message joins what runs or
//! starts a turn, for the agent and the model that the person's last one was for; its ids are made of the message's own, so that
//! the server knows it again, and what the conversation has under them is the evidence.
//!
//! `http` is the wire, `owner` tells whose server it is, `server` what is asked of it; the loop around it is
//! [`served`](super::served)'s.

mod http;
mod owner;
mod server;

pub(super) use server::Server;
