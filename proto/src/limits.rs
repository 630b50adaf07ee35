//! Most bytes of what callers may put into a record, and the check that refuses more. A note's limit stands with the
//! timeline's lines, a message's in the configuration.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::error::{Fault, Kind};
use crate::record::Channel;

/// A title.
pub const TITLE_MAX: usize = 512;
/// A path: what the system takes.
pub const PATH_MAX: usize = 4_096;
/// The name of a harness.
pub const HARNESS_MAX: usize = 64;
/// A harness's own id of a conversation.
pub const CONVERSATION_MAX: usize = 128;
/// The program of an `exec` or `headless` channel with its arguments.
pub const PROGRAM_MAX: usize = 16 * 1_024;

/// Refuses a text that is longer than `most` bytes (too large), or that holds a NUL byte; `what` names it, with its
/// article.
pub fn text(what: &str, text: Option<&str>, most: usize) -> Result<(), Fault> {
    let Some(text) = text else { return Ok(()) };
    if text.len() > most {
        let message = format!("{what} has at most {most} bytes, this one {}", text.len());
        return Err(Fault::new(Kind::TooLarge, message));
    }
    if text.contains('\0') {
        return Err(Fault::new(Kind::InvalidState, format!("{what} cannot hold a NUL byte")));
    }
    Ok(())
}

/// Refuses a word that names a harness or one of its conversations and is empty, too long, or not one word.
pub fn word(what: &str, word: Option<&str>, most: usize) -> Result<(), Fault> {
    text(what, word, most)?;
    if word.is_some_and(|w| w.is_empty() || w.contains(|c: char| c.is_control() || c.is_whitespace())) {
        return Err(Fault::new(Kind::InvalidParams, format!("{what} is one word")));
    }
    Ok(())
}

/// Refuses a program that is longer in all than [`PROGRAM_MAX`], or none.
pub fn channel(channel: &Channel) -> Result<(), Fault> {
    if let Channel::Codex { socket } = channel {
        return text("a socket's path", socket.as_deref(), PATH_MAX);
    }
    if let Channel::Opencode { url } = channel
        && loopback(url).is_none()
    {
        let why = "channel opencode needs the address of a server on this machine: http://127.0.0.1:PORT, and nothing behind it";
        return Err(Fault::new(Kind::InvalidParams, why));
    }
    if let Channel::Tmux { socket, pane } = channel {
        text("a tmux socket's path", Some(socket), PATH_MAX)?;
        if !socket.starts_with('/') || socket.contains(char::is_control) || !is_pane(pane) {
            let why = "channel tmux needs the path of a server's socket and a pane's id, like %3";
            return Err(Fault::new(Kind::InvalidParams, why));
        }
    }
    let (Channel::Exec { argv } | Channel::Headless { argv }) = channel else { return Ok(()) };
    if matches!(channel, Channel::Exec { .. }) && argv.first().is_none_or(String::is_empty) {
        return Err(Fault::new(Kind::InvalidParams, "channel exec needs a program"));
    }
    text("a program with its arguments", Some(&argv.join(" ")), PROGRAM_MAX)
}

/// Where a server on this very machine listens, by its URL; none for any other, or for more than a place in it: no user, no
/// password, no path.
pub fn loopback(url: &str) -> Option<SocketAddr> {
    let place = url.strip_prefix("http://")?;
    let (host, port) = place.strip_suffix('/').unwrap_or(place).rsplit_once(':')?;
    let host = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(six) => IpAddr::V6(six.parse().ok()?),
        None if host == "localhost" => Ipv4Addr::LOCALHOST.into(),
        None => IpAddr::V4(host.parse().ok()?),
    };
    let digits = port.bytes().all(|byte| byte.is_ascii_digit());
    let port = port.parse().ok().filter(|port| digits && *port != 0)?;
    host.is_loopback().then(|| SocketAddr::new(host, port))
}

/// True for a pane's id, as tmux writes it.
pub fn is_pane(text: &str) -> bool {
    let number = text.strip_prefix('%').unwrap_or_default();
    (1..=9).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pane_is_a_number_and_its_server_a_path() {
        let tmux = |socket: &str, pane: &str| {
            channel(&Channel::Tmux { socket: socket.to_owned(), pane: pane.to_owned() }).is_ok()
        };
        assert!(tmux("/tmp/tmux-0/default", "%3"));
        for (socket, pane) in [
            ("", "%3"),
            ("a", "%3"),
            ("/a\nb", "%3"),
            ("/a", ""),
            ("/a", "%"),
            ("/a", "3"),
            ("/a", "%3;kill-server"),
            ("/a", "%1234567890"),
            ("/a", "main:1"),
        ] {
            assert!(!tmux(socket, pane), "{socket} {pane}");
        }
    }

    #[test]
    fn a_server_that_is_spoken_to_is_on_this_machine() {
        let at = |url: &str| loopback(url).map(|at| at.to_string());
        for (url, place) in [
            ("http://127.0.0.1:4096", "127.0.0.1:4096"),
            ("http://127.0.0.1:4096/", "127.0.0.1:4096"),
            ("http://localhost:1", "127.0.0.1:1"),
            ("http://[::1]:65535", "[::1]:65535"),
        ] {
            assert_eq!(at(url).as_deref(), Some(place));
        }
        for url in [
            "",
            "127.0.0.1:4096",
            "https://127.0.0.1:4096",
            "http://127.0.0.1",
            "http://127.0.0.1:0",
            "http://127.0.0.1:+80",
            "http://127.0.0.1:65536",
            "http://10.0.0.1:4096",
            "http://0.0.0.0:4096",
            "http://[::]:4096",
            "http://example.com:4096",
            "http://localhost.example.com:4096",
            "http://u:p@127.0.0.1:4096",
            "http://127.0.0.1:4096/x",
            "http://127.0.0.1:4096//",
            "http://127.0.0.1:4096?x",
            "http://127.1:4096",
        ] {
            assert_eq!(at(url), None, "{url}");
        }
    }

    #[test]
    fn what_is_at_its_limit_is_taken_and_what_is_over_it_has_the_code_of_broken_data() {
        let long = "x".repeat(TITLE_MAX);
        assert_eq!(text("a title", Some(&long), TITLE_MAX), Ok(()));
        assert_eq!(text("a title", None, TITLE_MAX), Ok(()));
        let fault = text("a title", Some(&(long + "x")), TITLE_MAX).unwrap_err();
        assert_eq!(
            (fault.kind.exit(), fault.message.as_str()),
            (65, "a title has at most 512 bytes, this one 513")
        );
        assert_eq!(text("a title", Some("a\0"), TITLE_MAX).unwrap_err().kind.exit(), 65);
        for bad in ["", "a b", "a\n"] {
            assert_eq!(word("a harness", Some(bad), HARNESS_MAX).unwrap_err().kind.exit(), 64, "{bad:?}");
        }
        assert_eq!(word("a harness", Some("claude"), HARNESS_MAX), Ok(()));
        let exec =
            |argv: &[&str]| channel(&Channel::Exec { argv: argv.iter().map(ToString::to_string).collect() });
        assert_eq!(exec(&["mail", "-s"]), Ok(()));
        assert_eq!(exec(&["mail", &"x".repeat(PROGRAM_MAX)]).unwrap_err().kind.exit(), 65);
        assert_eq!(exec(&[]).unwrap_err().kind.exit(), 64);
        assert_eq!(exec(&[""]).unwrap_err().kind.exit(), 64);
    }
}
