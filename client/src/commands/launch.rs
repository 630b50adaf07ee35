//! `session launch`: registers a session, starts its harness, and prints the id.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use minder_proto::error::exit;
use minder_proto::event::BODY_MAX;
use minder_proto::label;
use minder_proto::record::Channel;
use minder_proto::rpc::{Call, Launch, LaunchAnswer, Place};
use minder_proto::text::one_line;
use uuid::Uuid;

use super::new::folder;
use crate::channel::Kind;
use crate::cli::Outcome;
use crate::context::Context;
use crate::environment;
use crate::fault::CommandError;
use crate::input::TextOptions;
use crate::link::as_caller;

/// Options of `launch`.
#[derive(Args, Debug, Default)]
#[command(after_help = "\
The text is the session's first message, and waits in its queue until the
harness is up. Called by a session, that session becomes the parent and is
told of every state but working.

The harness is the caller's own, else the only one that is installed. It runs
in a new window of the tmux server that the caller is in, else headless, where
each message is a supervised turn. A program that ends at once three times is
an error of the session, and its window goes.

Exit 4: it is registered and could not be started.

Examples:
  minder launch --label api --dir ../api - <<'EOF'
  Add pagination to /items. Tests first.
  EOF
  minder launch --label docs --harness codex --in headless --body-file task.md
  minder launch --label logs -- tail -f /var/log/syslog")]
pub struct LaunchArgs {
    /// Its first message; - reads standard input
    #[arg(value_name = "TEXT|-")]
    literal: Option<String>,
    #[command(flatten)]
    text: TextOptions,
    /// The name to type for it [default: the folder's name]
    #[arg(long, value_name = "L")]
    label: Option<String>,
    /// The name to read
    #[arg(long, value_name = "T")]
    title: Option<String>,
    /// The harness: claude, codex, opencode, pi, gemini, cursor
    #[arg(long, value_name = "H")]
    harness: Option<String>,
    /// Its working directory [default: here]
    #[arg(long, value_name = "D")]
    dir: Option<PathBuf>,
    /// How messages get in [default: what suits the harness]
    #[arg(long, value_name = "C")]
    channel: Option<Kind>,
    #[command(flatten)]
    place: PlaceOptions,
    /// The session that is told of all its states
    #[arg(long, value_name = "SEL")]
    parent: Option<String>,
    /// A person talks to it
    #[arg(long)]
    primary: bool,
    /// The same key gives the same session again, and starts nothing twice
    #[arg(long, value_name = "K")]
    key: Option<String>,
    /// Further arguments of the harness; without --harness a program and its arguments
    #[arg(last = true, value_name = "ARG")]
    argv: Vec<String>,
}

/// Where a harness is started.
#[derive(Args, Clone, Debug, Default)]
pub struct PlaceOptions {
    /// tmux or headless [default: the tmux that the caller is in, else headless]
    #[arg(long = "in", value_name = "WHERE")]
    place: Option<Where>,
    /// The tmux server at this socket
    #[arg(long, value_name = "SOCKET", conflicts_with = "place")]
    tmux: Option<PathBuf>,
}

/// The word of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Where {
    /// A new window of the tmux server that the caller is in.
    Tmux,
    /// No terminal: each message is a supervised turn.
    Headless,
}

impl PlaceOptions {
    /// The place, where one is named or the caller is in a tmux.
    pub fn read(&self) -> Result<Option<Place>, CommandError> {
        if let Some(socket) = &self.tmux {
            let absolute = std::path::absolute(socket).map_err(|e| CommandError::io("--tmux", &e))?;
            let text = absolute.to_str().ok_or_else(|| CommandError::usage("--tmux: not UTF-8"))?;
            return Ok(Some(Place::Tmux { socket: text.to_owned(), beside: None }));
        }
        let var = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let own = around(var("TMUX").as_deref(), var("TMUX_PANE"));
        match self.place {
            None => Ok(own),
            Some(Where::Headless) => Ok(Some(Place::Headless)),
            Some(Where::Tmux) => own.map(Some).ok_or_else(|| {
                CommandError::usage("--in tmux: this shell is in none").hint("--tmux SOCKET names one")
            }),
        }
    }
}

/// The server that `$TMUX` names: its socket stands before the first of two commas from the end.
fn around(tmux: Option<&str>, pane: Option<String>) -> Option<Place> {
    let (socket, _) = tmux?.rsplit_once(',')?.0.rsplit_once(',')?;
    Some(Place::Tmux { socket: socket.to_owned(), beside: pane })
}

/// Launches.
pub fn run(args: LaunchArgs, context: &mut Context) -> Outcome {
    if let Some(label) = &args.label {
        label::check(label).map_err(|e| CommandError::usage(e.to_string()))?;
    }
    let body = args.text.read(args.literal.as_deref(), "the text", BODY_MAX)?;
    if body.as_ref().is_some_and(String::is_empty) {
        return Err(CommandError::usage("the text is empty"));
    }
    let place = args.place.read()?.unwrap_or(Place::Headless);
    let channel = match (args.channel, &place) {
        (None, _) | (Some(Kind::Headless), Place::Headless) => None,
        (Some(Kind::Tmux), Place::Tmux { socket, .. }) => {
            Some(Channel::Tmux { socket: socket.clone(), pane: String::new() })
        }
        (Some(kind), Place::Tmux { .. }) if kind.plain().is_some() => kind.plain(),
        (Some(_), _) => {
            return Err(CommandError::usage("--channel does not fit where it is launched: see --in"));
        }
    };
    let launch = Launch {
        caller: as_caller(&context.caller),
        label: args.label,
        title: args.title,
        harness: args.harness,
        dir: args.dir.as_deref().map(folder).transpose()?,
        channel,
        parent: args.parent,
        primary: args.primary,
        place,
        argv: args.argv,
        body,
        env: environment::own(),
        // A key even where none was asked for: a daemon that ends in the middle starts nothing twice.
        key: Some(args.key.unwrap_or_else(|| Uuid::now_v7().to_string())),
    };
    let answer = context.daemon()?.call_keyed(&launch)?.map_err(|absent| absent.error)?;
    show(&answer, Launch::METHOD, context)
}

/// The id, and what there is to say beside it.
pub fn show(answer: &LaunchAnswer, method: &str, context: &mut Context) -> Outcome {
    if let Some(why) = &answer.failed {
        let verb = method.rsplit('.').next().unwrap_or(method);
        let (label, id) = (&answer.label, answer.id.short());
        let what = format!("{verb} {label} ({id}): it could not be started: {}", one_line(why));
        return Err(CommandError::new("failed", exit::FAILED, what).detail(answer));
    }
    if context.printer.is_json() {
        context.printer.object(answer)?;
    } else {
        context.printer.line(answer.id.to_string())?;
        if let Some(note) = &answer.note {
            context.printer.tell(one_line(note));
        }
    }
    Ok(exit::OK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_is_the_one_that_the_shell_is_in() {
        let at =
            |socket: &str| Some(Place::Tmux { socket: socket.to_owned(), beside: Some("%3".to_owned()) });
        let pane = || Some("%3".to_owned());
        assert_eq!(around(Some("/tmp/tmux-0/default,123,0"), pane()), at("/tmp/tmux-0/default"));
        assert_eq!(around(Some("/tmp/a,b/s,123,0"), pane()), at("/tmp/a,b/s"));
        assert_eq!(around(Some("strange"), pane()), None);
        assert_eq!(around(None, pane()), None);
    }
}
