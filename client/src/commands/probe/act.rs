//! What is done in a probe: a daemon of its own, one supervised turn of the harness, one message to the conversation as
//! soon as a hook has made it a session, and what became of both.

use std::time::{Duration, Instant};

use minder_proto::caller;
use minder_proto::id::SessionId;
use minder_proto::layout::Home;
use minder_proto::text::first_line;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::scratch::{Running, Scratch};
use crate::apart::Wanted;
use crate::commands::hook::trace::{self, Call};
use crate::folder_watch::FolderWatch;
use crate::hooks::Pack;

/// The whole prompt.
const PROMPT: &str =
    "Run this command with your shell tool, once: touch ran\nThen answer with one word: done\n";
/// What it leaves in the working directory.
const RAN: &str = "ran";
/// The message.
const MESSAGE: &str = "A test of the way by which messages come. It asks for nothing: leave it unanswered.";
/// What the turn may take.
const TIMEOUT: &str = "3m";
/// The same, and what its end may take beside that.
const PATIENCE: Duration = Duration::from_secs(5 * 60);
/// How long evidence that the message was seen may come after the turn.
const EVIDENCE: Duration = Duration::from_secs(3);
/// How often is looked whether this is still wanted.
const LOOK: Duration = Duration::from_millis(500);

/// What was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// Every call of a hook, in order.
    pub calls: Vec<Call>,
    /// Whether the model had the command run.
    pub ran_tool: bool,
    /// How the turn ended.
    pub turn: Option<Turn>,
    /// How far the message came, in the words of a receipt.
    pub message: Option<String>,
    /// Why the message could not be sent.
    pub unsent: Option<String>,
    /// What kept the probe from being made.
    pub trouble: Option<String>,
}

/// The end of the turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// The exit code of `turn run`.
    pub code: i32,
    /// Its line about what failed.
    pub said: String,
}

/// Further arguments of the harness: they let it run the one command, and run where no version control is.
fn arguments(harness: &str) -> &'static [&'static str] {
    match harness {
        "claude" => &["--allowedTools", "Bash(touch ran)"],
        "codex" => &["--skip-git-repo-check", "--sandbox", "workspace-write"],
        _ => &[],
    }
}

/// Does it all. What it started has ended when it returns.
pub fn perform(scratch: &Scratch, pack: &Pack, wanted: &Wanted) -> Seen {
    let mut seen = Seen::default();
    if let Err(why) = act(scratch, pack, wanted, &mut seen) {
        seen.trouble = Some(why);
    }
    if let Err(why) = scratch.stop_daemon() {
        seen.trouble.get_or_insert(why);
    }
    seen.calls = trace::read(&scratch.home());
    for call in &seen.calls {
        if let Some(transcript) = &call.transcript {
            scratch.forget(transcript, &call.conversation);
        }
    }
    seen
}

fn act(scratch: &Scratch, pack: &Pack, wanted: &Wanted, seen: &mut Seen) -> Result<(), String> {
    scratch.minder(&["daemon", "start"], "")?;
    scratch.watch_hooks()?;
    let home = scratch.home();
    let watch = FolderWatch::new(&[&home.probe()]);
    let watch = watch.ok_or_else(|| format!("{}: cannot be watched", home.probe().display()))?;
    let mut words = vec!["turn", "run", "--adapter", pack.name, "--seat", "probe"];
    words.extend(["--timeout", TIMEOUT, "--grace", "5s", "-", "--"]);
    words.extend(arguments(pack.name));
    let mut turn = scratch.start(&words, PROMPT, true)?;
    let sent = follow(scratch, pack, wanted, &mut turn, &watch);
    let ended = turn.end(Duration::from_secs(30))?;
    let said = ended.err.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    seen.turn = Some(Turn { code: ended.code, said: first_line(said).to_owned() });
    seen.ran_tool = scratch.work().join(RAN).exists();
    match sent {
        Some(Ok(id)) => seen.message = Some(receipt(scratch, &id)?),
        Some(Err(why)) => seen.unsent = Some(why),
        None => {}
    }
    Ok(())
}

/// Waits for the end of the turn, and sends the message at the first call of a hook that made a session.
fn follow(
    scratch: &Scratch,
    pack: &Pack,
    wanted: &Wanted,
    turn: &mut Running,
    watch: &FolderWatch,
) -> Option<Result<String, String>> {
    let mut sent = None;
    let deadline = Instant::now() + PATIENCE;
    while !turn.has_ended() {
        if sent.is_none() {
            sent = session(&scratch.home(), pack).map(|id| send(scratch, &id.to_string()));
        }
        if !wanted.still() || Instant::now() > deadline {
            turn.stop();
            break;
        }
        let end = turn.process().and_then(crate::process::Process::descriptor);
        watch.wait(end, Some(LOOK));
    }
    sent
}

/// The session that a hook's conversation became, once it has.
fn session(home: &Home, pack: &Pack) -> Option<SessionId> {
    trace::read(home).iter().find_map(|call| caller::read_id(&home.binding(pack.name, &call.conversation)))
}

/// Sends the message by the way that hooks are: no other is to be asked.
fn send(scratch: &Scratch, session: &str) -> Result<String, String> {
    scratch.minder(&["set", session, "--channel", "hook"], "")?;
    let answer = scratch.minder(&["send", session, "-", "--json"], MESSAGE)?;
    let answer: Value = serde_json::from_str(&answer).map_err(|e| format!("minder send: {e}"))?;
    answer["id"].as_str().map(str::to_owned).ok_or_else(|| "minder send named no message".to_owned())
}

/// How far the message came. Evidence may be a moment behind the turn.
fn receipt(scratch: &Scratch, id: &str) -> Result<String, String> {
    let home = scratch.home();
    let watch = FolderWatch::new(&[home.root()]);
    let deadline = Instant::now() + EVIDENCE;
    loop {
        let shown = scratch.minder(&["queue", id, "--json"], "")?;
        let shown: Value = serde_json::from_str(&shown).map_err(|e| format!("minder queue: {e}"))?;
        let receipt = shown["receipt"].as_str().unwrap_or("queued").to_owned();
        let left = deadline.saturating_duration_since(Instant::now());
        // The bell of followers rings at every commit.
        let more = receipt == "handed" && watch.as_ref().is_some_and(|w| w.wait(None, Some(left)));
        if !more || left.is_zero() {
            return Ok(receipt);
        }
    }
}
