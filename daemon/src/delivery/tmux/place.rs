//! The pane that a session's harness runs in, as its own environment names it, and what a channel given by hand has to be.

use minder_proto::error::{Fault, Kind};
use minder_proto::record::{Channel, Process};

use super::sight::{MANNERS, Manner};

/// Most bytes of an environment that are looked at.
const ENVIRONMENT_MAX: u64 = 1024 * 1024;

/// A channel with its pane: the one that was named, else that of the session's process. Other channels stay as they are.
pub fn settle(
    channel: Option<Channel>,
    harness: Option<&str>,
    process: Option<&Process>,
) -> Result<Option<Channel>, Fault> {
    let Some(Channel::Tmux { socket, pane }) = channel else { return Ok(channel) };
    known(harness)?;
    if !pane.is_empty() {
        return Ok(Some(Channel::Tmux { socket, pane }));
    }
    let found = process.and_then(|process| {
        let is_it = || crate::identity::process_of(process.pid).is_some_and(|now| now.is(process));
        // Looked at before and after: what was read between is of this very process.
        let environment = is_it().then(|| environment(process.pid)).flatten()?;
        is_it().then(|| named_in(&environment)).flatten()
    });
    let (socket, pane) = found.ok_or_else(|| {
        Fault::new(Kind::InvalidParams, "no pane is known for this session")
            .hint("name it: --pane %3, as tmux display-message -p '#{pane_id}' shows it in that pane")
    })?;
    Ok(Some(Channel::Tmux { socket, pane }))
}

/// Refuses a harness whose screens are not known.
pub fn known(harness: Option<&str>) -> Result<(), Fault> {
    if harness.and_then(Manner::of).is_some() {
        return Ok(());
    }
    let known = MANNERS.iter().map(|manner| format!("{} ({})", manner.harness, manner.version));
    let known: Vec<String> = known.collect();
    let why = format!("channel tmux knows the screens of {} only", known.join(" and "));
    Err(Fault::new(Kind::InvalidParams, why))
}

fn environment(pid: i32) -> Option<Vec<u8>> {
    minder_proto::whole::at_most(format!("/proc/{pid}/environ").as_ref(), ENVIRONMENT_MAX).ok()
}

/// `TMUX` begins with the server's socket, `TMUX_PANE` is the pane.
fn named_in(environment: &[u8]) -> Option<(String, String)> {
    let value = |name: &str| {
        let of = |pair: &[u8]| {
            let value = pair.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
            String::from_utf8(value.to_vec()).ok()
        };
        environment.split(|byte| *byte == 0).find_map(of)
    };
    let tmux = value("TMUX")?;
    let socket = tmux.rsplitn(3, ',').nth(2)?.to_owned();
    let pane = value("TMUX_PANE")?;
    (!socket.is_empty() && minder_proto::limits::is_pane(&pane)).then_some((socket, pane))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pane_is_what_the_environment_names() {
        let found = |text: &str| named_in(text.replace(' ', "\0").as_bytes());
        let pane = Some(("/tmp/tmux-0/a,b".to_owned(), "%12".to_owned()));
        assert_eq!(found("A=1 TMUX=/tmp/tmux-0/a,b,77,3 TMUX_PANE=%12 "), pane);
        for text in [
            "TMUX=/t,1,2",
            "TMUX_PANE=%1",
            "TMUX= TMUX_PANE=%1",
            "TMUX=/t,1,2 TMUX_PANE=;x",
            "XTMUX=/t,1,2 TMUX_PANE=%1",
        ] {
            assert_eq!(found(text), None, "{text}");
        }
    }

    #[test]
    fn a_pane_that_was_named_is_taken_for_a_harness_whose_screens_are_known() {
        let channel = Some(Channel::Tmux { socket: "/s".into(), pane: "%1".into() });
        assert_eq!(settle(channel.clone(), Some("claude"), None), Ok(channel.clone()));
        assert!(settle(channel.clone(), Some("pi"), None).is_err() && settle(channel, None, None).is_err());
        let unnamed = Some(Channel::Tmux { socket: String::new(), pane: String::new() });
        let fault = settle(unnamed, Some("codex"), None).unwrap_err();
        assert!(fault.to_string().contains("no pane is known"), "{fault}");
        assert_eq!(settle(Some(Channel::Hook), None, None), Ok(Some(Channel::Hook)));
    }
}
