//! The options that say how messages get into a session.

use std::collections::BTreeMap;

use clap::{Args, ValueEnum};
use minder_proto::record::Channel;

use crate::environment;
use crate::fault::CommandError;

/// `--channel C`, and the program of `exec` after `--`.
#[derive(Args, Clone, Debug, Default)]
pub struct ChannelOptions {
    /// How messages get in; exec and headless run the program after --
    #[arg(long, value_name = "C")]
    channel: Option<Kind>,
    /// The server's control socket, for --channel codex [default: where Codex has it]
    #[arg(long, value_name = "PATH")]
    socket: Option<String>,
    /// The program of --channel exec or headless, and its arguments
    #[arg(last = true, value_name = "CMD")]
    program: Vec<String>,
}

/// The word of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// The session asks: minder inbox take.
    Mailbox,
    /// The harness asks at its own boundaries.
    Hook,
    /// A program of yours is run, with the message on its standard input.
    Exec,
    /// A turn of its harness, or of a program, is run for what waits; its answer goes back.
    Headless,
    /// Codex's own server, which holds the conversation of its terminal.
    Codex,
}

impl ChannelOptions {
    /// The channel, if one was given.
    pub fn read(self) -> Result<Option<Channel>, CommandError> {
        if self.socket.is_some() && self.channel != Some(Kind::Codex) {
            return Err(CommandError::usage("--socket is for --channel codex"));
        }
        if self.channel == Some(Kind::Codex) && self.program.is_empty() {
            return Ok(Some(Channel::Codex { socket: self.socket }));
        }
        match (self.channel, self.program.is_empty()) {
            (Some(Kind::Exec), true) => {
                Err(CommandError::usage("--channel exec needs the program: --channel exec -- CMD ARG"))
            }
            (Some(Kind::Exec), false) => Ok(Some(Channel::Exec { argv: self.program })),
            (Some(Kind::Headless), _) => Ok(Some(Channel::Headless { argv: self.program })),
            (_, false) => Err(CommandError::usage("a program after -- is for --channel exec or headless")),
            (kind, true) => Ok(kind.and_then(Kind::plain)),
        }
    }
}

impl Kind {
    /// The channel, where it needs no more than its word.
    pub fn plain(self) -> Option<Channel> {
        match self {
            Self::Mailbox => Some(Channel::Mailbox),
            Self::Hook => Some(Channel::Hook),
            Self::Codex => Some(Channel::Codex { socket: None }),
            Self::Exec | Self::Headless => None,
        }
    }
}

/// What a call brings of this environment for a channel whose turns no caller starts.
pub fn environment(channel: Option<&Channel>) -> BTreeMap<String, String> {
    if matches!(channel, Some(Channel::Headless { .. })) { environment::own() } else { BTreeMap::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_belongs_to_exec_and_exec_to_a_program() {
        let read = |channel, program: &[&str]| {
            let program = program.iter().map(|s| (*s).to_owned()).collect();
            ChannelOptions { channel, program, socket: None }.read()
        };
        assert_eq!(read(None, &[]), Ok(None));
        assert_eq!(read(Some(Kind::Hook), &[]), Ok(Some(Channel::Hook)));
        let exec = Channel::Exec { argv: vec!["mail".into(), "-s".into()] };
        assert_eq!(read(Some(Kind::Exec), &["mail", "-s"]), Ok(Some(exec)));
        let headless = Channel::Headless { argv: vec!["sort".into()] };
        assert_eq!(read(Some(Kind::Headless), &["sort"]), Ok(Some(headless)));
        assert_eq!(read(Some(Kind::Headless), &[]), Ok(Some(Channel::Headless { argv: Vec::new() })));
        assert_eq!(read(Some(Kind::Codex), &[]), Ok(Some(Channel::Codex { socket: None })));
        assert_eq!(read(Some(Kind::Codex), &["x"]).unwrap_err().exit, 64);
        let options = ChannelOptions { socket: Some("/s".into()), ..ChannelOptions::default() };
        assert_eq!(options.read().unwrap_err().exit, 64);
        assert_eq!(read(Some(Kind::Exec), &[]).unwrap_err().exit, 64);
        assert_eq!(read(None, &["mail"]).unwrap_err().exit, 64);
        assert_eq!(read(Some(Kind::Mailbox), &["mail"]).unwrap_err().exit, 64);
    }
}
