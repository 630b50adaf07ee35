//! The options that say how messages get into a session.

use std::collections::BTreeMap;

use clap::{Args, ValueEnum};
use minder_proto::limits;
use minder_proto::record::Channel;

use crate::environment;
use crate::fault::CommandError;

/// `--channel C`, and the program of `exec` after `--`.
#[derive(Args, Clone, Debug, Default)]
pub struct ChannelOptions {
    /// How messages get in; exec and headless run the program after --, tmux types
    #[arg(long, value_name = "C")]
    channel: Option<Kind>,
    /// The server's control socket, for --channel codex [default: where Codex has it]
    #[arg(long, value_name = "PATH")]
    socket: Option<String>,
    /// The server's address, for --channel opencode: http://127.0.0.1:PORT
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// The pane of --channel tmux, where it is not that of its process
    #[arg(long, value_name = "[SOCKET:]%N")]
    pane: Option<String>,
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
    /// OpenCode's own server, which holds the conversation.
    Opencode,
    /// It is typed into the pane of tmux in which its harness runs; the last resort.
    Tmux,
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
        if self.url.is_some() && self.channel != Some(Kind::Opencode) {
            return Err(CommandError::usage("--url is for --channel opencode"));
        }
        if self.channel == Some(Kind::Opencode) && self.program.is_empty() {
            let Some(url) = self.url else {
                let why = "--channel opencode needs its server's address";
                return Err(CommandError::usage(why).hint("--url http://127.0.0.1:PORT"));
            };
            return checked(Channel::Opencode { url }).map(Some);
        }
        if self.pane.is_some() && self.channel != Some(Kind::Tmux) {
            return Err(CommandError::usage("--pane is for --channel tmux"));
        }
        match (self.channel, self.program.is_empty()) {
            (Some(Kind::Tmux), true) => tmux(self.pane.as_deref()).map(Some),
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
            Self::Exec | Self::Headless | Self::Opencode | Self::Tmux => None,
        }
    }
}

/// The channel of a pane; without one, that of the session's process, which the daemon finds.
fn tmux(pane: Option<&str>) -> Result<Channel, CommandError> {
    let Some(text) = pane else { return Ok(Channel::Tmux { socket: String::new(), pane: String::new() }) };
    let (socket, pane) = match text.rsplit_once(':') {
        Some((socket, pane)) => (socket.to_owned(), pane),
        None => {
            let (own, usual) = tmux_sockets();
            (own.unwrap_or(usual), text)
        }
    };
    checked(Channel::Tmux { socket, pane: pane.to_owned() })
}

fn checked(channel: Channel) -> Result<Channel, CommandError> {
    limits::channel(&channel).map_err(|fault| CommandError::usage(fault.to_string()))?;
    Ok(channel)
}

/// The socket of the tmux server that this runs in, and that of the one that tmux takes where it is told none.
pub fn tmux_sockets() -> (Option<String>, String) {
    // The server's pid and a session's number are at the end.
    let own = std::env::var("TMUX").ok().and_then(|tmux| tmux.rsplitn(3, ',').nth(2).map(str::to_owned));
    let folder = std::env::var("TMUX_TMPDIR").ok().filter(|folder| folder.starts_with('/'));
    let user = rustix::process::getuid().as_raw();
    (own, format!("{}/tmux-{user}/default", folder.as_deref().unwrap_or("/tmp")))
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
            ChannelOptions { channel, program, ..ChannelOptions::default() }.read()
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
        assert_eq!(read(Some(Kind::Tmux), &["mail"]).unwrap_err().exit, 64);
    }

    #[test]
    fn a_pane_belongs_to_tmux_and_is_one() {
        let read = |channel, pane: Option<&str>| {
            let pane = pane.map(str::to_owned);
            ChannelOptions { channel, pane, ..ChannelOptions::default() }.read()
        };
        let tmux =
            |socket: &str, pane: &str| Ok(Some(Channel::Tmux { socket: socket.into(), pane: pane.into() }));
        assert_eq!(read(Some(Kind::Tmux), Some("/a:b:%3")), tmux("/a:b", "%3"));
        assert_eq!(read(Some(Kind::Tmux), None), tmux("", ""));
        assert!(matches!(read(Some(Kind::Tmux), Some("%3")), Ok(Some(Channel::Tmux { .. }))));
        for pane in ["3", "x:%3", "/a:", "%3;x"] {
            assert_eq!(read(Some(Kind::Tmux), Some(pane)).unwrap_err().exit, 64, "{pane}");
        }
        assert_eq!(read(Some(Kind::Hook), Some("%3")).unwrap_err().exit, 64);
        assert_eq!(read(None, Some("%3")).unwrap_err().exit, 64);
    }

    #[test]
    fn an_address_belongs_to_opencode_and_is_on_this_machine() {
        let read = |channel, url: Option<&str>| {
            ChannelOptions { channel, url: url.map(str::to_owned), ..ChannelOptions::default() }.read()
        };
        let url = "http://127.0.0.1:4096";
        let opencode = Channel::Opencode { url: url.to_owned() };
        assert_eq!(read(Some(Kind::Opencode), Some(url)), Ok(Some(opencode)));
        assert_eq!(read(Some(Kind::Opencode), None).unwrap_err().exit, 64);
        assert_eq!(read(Some(Kind::Opencode), Some("http://10.0.0.1:80")).unwrap_err().exit, 64);
        assert_eq!(read(Some(Kind::Hook), Some(url)).unwrap_err().exit, 64);
    }
}
