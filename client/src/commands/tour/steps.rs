//! The steps of the tour: what is shown, and what must come of it.

use minder_proto::event::Body;
use minder_proto::id::SessionId;
use minder_proto::snapshot;
use minder_proto::state::State;
use minder_proto::timeline;
use serde_json::Value;

use super::play::{Met, Play, Step, quoted, same, unmet};

/// All of them, in their order.
pub const ALL: [Step; 8] = [
    ("Two sessions. In life each is a Claude conversation; here they are names.", two_sessions),
    ("Somebody waits, the worker moves. Its hooks do this by themselves; here we speak for it.", a_wait),
    ("The same news as a message, in the same commit.", a_notice),
    ("A message, and how far it got.", a_message),
    ("Nobody may pretend to be you.", a_stranger),
    ("A turn that hangs and hides a child.", a_turn),
    ("The daemon is killed in the middle.", a_crash),
    ("What a person sees.", a_stream),
];

/// What `turn run` ends with after a stall, as `timeout` does.
const TIMED_OUT: i32 = 124;
const REVIEW: &str = "PR 12 is up";

fn two_sessions(play: &mut Play) -> Met {
    let lock = play.stage.home().lock();
    if lock.exists() {
        return Err(unmet("a store without a daemon", lock.display().to_string()));
    }
    let lead = id(&play.run("minder new --label lead")?.text)?;
    let api = id(&play.run("minder new --label api --parent lead")?.text)?;
    let shown = play.ask("minder show api --json")?;
    same("the parent of api", lead.to_string(), text(&shown["record"]["parent"]))?;
    play.known.lead = lead.short();
    play.known.api = api.short();
    play.known.pid = daemon(play)?["pid"].as_i64().unwrap_or_default();
    let pid = play.known.pid;
    play.means(format!(
        "No daemon ran, so the first command started one (pid {pid}). api has a parent: what it declares is told to lead."
    ))
}

fn a_wait(play: &mut Play) -> Met {
    let api = play.known.api.clone();
    let declared = play.run("minder --as api state working --note 'reading the code'")?;
    same("what was printed", "idle → working", declared.text.trim_end())?;
    let seen = format!("api ({api}) idle → working: reading the code\n");
    let wait = play.start("minder --as lead wait api", " &", |text| text.ends_with(&seen))?;
    let declared = play.run(&format!("minder --as api state review --note '{REVIEW}'"))?;
    same("what was printed", "working → review", declared.text.trim_end())?;
    let waited = play.end(wait)?;
    let expected = format!("api ({api}) idle → working → review\nnote: {REVIEW}");
    same("what wait printed", expected.as_str(), waited.text.trim_end())?;
    let (at, _) = moved(play, State::Review)?;
    let late = at.age(waited.at).as_millis();
    play.means(format!(
        "wait was gone {late} ms after the commit. It opened no socket and polled nothing: it reads files."
    ))
}

fn a_notice(play: &mut Play) -> Met {
    let listed = play.run("minder --as lead inbox")?;
    let expected = notice(play, "working → review", REVIEW);
    let (message, said) = listed.text.trim_end().split_once("  ").unwrap_or_default();
    same("the message", expected.as_str(), said)?;
    if message.len() != play.known.api.len() {
        return Err(unmet("a message's short id", quoted(message)));
    }
    let waiting = play.ask("minder --as lead inbox --json")?;
    let (at, _) = moved(play, State::Review)?;
    same("the time of the message", at.to_string(), text(&waiting["messages"][0]["at"]))?;
    play.means("A real lead is shown this at its next tool call, or is woken for it when idle.".to_owned())
}

fn a_message(play: &mut Play) -> Met {
    let sent = play.run(r"printf 'merge it\n' | minder --as lead send api -")?;
    let (message, receipt) = sent.text.trim_end().split_once(' ').unwrap_or_default();
    same("the receipt", "queued", receipt)?;
    let taken = play.run("minder --as api inbox take")?;
    let lead = &play.known.lead;
    let head = format!(
        "[minder] message {message} from session \"lead\" ({lead}), not from your user. Reply: minder send --reply-to {message} - <<'EOF'"
    );
    same("what was given", format!("{head}\n\nmerge it"), taken.text.trim_end().to_owned())?;
    let queue = format!("minder queue {message}");
    play.run(&queue)?;
    let tracked = play.ask(&format!("{queue} --json"))?;
    let path: Vec<String> =
        tracked["history"].as_array().into_iter().flatten().map(|line| text(&line["r"])).collect();
    same("its receipts", "queued, handed, seen", &path.join(", "))?;
    let again = play.look("minder --as api inbox take", 1)?;
    same("what is left", "minder: nothing waits", again.text.trim_end())?;
    play.means(
        "\"seen\" needs evidence, here that take had written it out. Without it the text would be given again; after it, never."
            .to_owned(),
    )
}

fn a_stranger(play: &mut Play) -> Met {
    let refused = play.run_to("CLAUDE_CODE_SESSION_ID=unknown minder send api 'I am your user'", 3)?;
    if !refused.text.contains("not registered") {
        return Err(unmet("a refusal that says why", quoted(&refused.text)));
    }
    let queue = play.ask("minder queue api --json")?;
    same("the messages that wait for api", "[]", &queue["messages"].to_string())?;
    play.means(
        "An agent that is not registered may look and wait. It is never taken for the person.".to_owned(),
    )
}

fn a_turn(play: &mut Play) -> Met {
    let hangs = r#"sh -c 'trap "" TERM; setsid sleep 600 & sleep 600'"#;
    let ran = play.run_to(&format!("minder turn run --stall 1s --grace 1s -- {hangs}"), TIMED_OUT)?;
    same("what was said", "turn failed: stall (killed)", ran.text.trim_end())?;
    let listed = play.ask("minder turn ls --json")?;
    let line = &listed["ended"][0];
    let number = |name: &str| line[name].as_u64().ok_or_else(|| unmet(format!("{name} of the turn"), "none"));
    let (killed, survivors) = (number("killedProcesses")?, number("survivors")?);
    same("its survivors", "0", &survivors.to_string())?;
    if killed < 3 {
        return Err(unmet("3 processes to be killed", killed.to_string()));
    }
    let seconds = |ms: u64| format!("{}.{}", ms / 1_000, ms % 1_000 / 100);
    let (silent, lived) = (seconds(number("longestSilenceMs")?), seconds(number("durationMs")?));
    play.means(format!(
        "Silent for {silent} s, over after {lived} s: {killed} processes killed, {survivors} survivors. One line about it, numbers only: minder turn report"
    ))
}

fn a_crash(play: &mut Play) -> Met {
    let before = play.known.pid;
    play.run(&format!("kill -9 {before}"))?;
    let declared = play.run("minder --as api state done --note merged")?;
    same("what was printed", "review → done", declared.text.trim_end())?;
    let now = daemon(play)?;
    let (pid, replayed, took) = (&now["pid"], &now["replayed"], &now["start_ms"]);
    if pid.as_i64().is_none_or(|pid| pid == before || pid <= 0) {
        return Err(unmet(format!("another daemon than {before}"), pid.to_string()));
    }
    if replayed.as_i64().is_none_or(|commits| commits <= 0) {
        return Err(unmet("a journal to be replayed", format!("{replayed} commits")));
    }
    let waiting = play.ask("minder --as lead inbox --json")?;
    let waiting = waiting["messages"].as_array().cloned().unwrap_or_default();
    let notices: Vec<String> = waiting.iter().map(|m| first_line(&text(&m["text"]))).collect();
    let expected = [notice(play, "working → review", REVIEW), notice(play, "review → done", "merged")];
    let both = notices.len() == 2 && notices.iter().zip(&expected).all(|(n, e)| n.starts_with(e.as_str()));
    if !both {
        return Err(unmet(format!("lead to have {expected:?}"), format!("{notices:?}")));
    }
    play.means(format!(
        "A new daemon (pid {pid}) replayed {replayed} commits from the journal and served after {took} ms. lead has both notices, once each."
    ))
}

fn a_stream(play: &mut Play) -> Met {
    let lines = |text: &str| text.matches('\n').count();
    let expected = [
        "api  idle → working  reading the code",
        "api  working → review  PR 12 is up",
        "api  message from lead: merge it",
        "api  review → done  merged",
    ];
    let command = "minder watch stream api --since 1h --no-announce";
    let stream = play.start(command, "", |text| lines(text) >= expected.len())?;
    let shown = stream.stop();
    let said: Vec<&str> = shown.lines().filter_map(|line| Some(line.split_once("  ")?.1)).collect();
    same("what is shown", expected.join("\n"), said.join("\n"))?;
    play.means(
        "It goes on for ever; the tour ended it. Without --no-announce api would be told who looks on."
            .to_owned(),
    )
}

/// A notice as lead reads it.
fn notice(play: &Play, moved: &str, note: &str) -> String {
    format!("[minder] watch: \"api\" ({}) {moved} — {note}", play.known.api)
}

/// What the daemon says of itself.
fn daemon(play: &Play) -> Met<Value> {
    let status = play.ask("minder daemon status --json")?;
    same("the store that is served", play.stage.home().real().display().to_string(), text(&status["store"]))?;
    Ok(status)
}

/// When api moved to this state, by its own timeline; and its line.
fn moved(play: &Play, to: State) -> Met<(minder_proto::stamp::Stamp, u64)> {
    let home = play.stage.home();
    let found = || {
        let id = minder_proto::caller::read_id(&home.label("api"))?;
        let events = timeline::last(&snapshot::timeline_dir(&home, id)?, 100).ok()?;
        let move_to = |body: &Body| matches!(body, Body::State(transition) if transition.to == to);
        events.iter().rev().find(|event| move_to(&event.body)).map(|event| (event.at, event.seq))
    };
    found().ok_or_else(|| unmet(format!("a line in api's timeline that says {to}"), "none"))
}

/// The id that a command printed.
fn id(printed: &str) -> Met<SessionId> {
    printed.trim_end().parse().map_err(|_| unmet("a session's id", quoted(printed)))
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}
