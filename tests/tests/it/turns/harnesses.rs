//! Turns of the real Claude Code and the real Codex, with a scripted model: an answer, a model that never answers, one
//! that goes away, a plan that is used up, and a tool that is silent for longer than the window.

use std::ffi::OsString;
use std::path::Path;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use minder_proto::id::TurnId;
use minder_proto::record::Channel;
use minder_proto::rpc::{self, Settled, TurnRun};
use minder_proto::turn::names::{Class, Failure, Outcome, Trigger};
use minder_proto::turn::policy::Asked;
use minder_tests::claude::Claude;
use minder_tests::codex::Codex;
use minder_tests::model::{Model, Outcome as Answered, Request};

use super::scene::{SEAT, line_of, start_held};
use crate::world::{LIMIT, Minderd, World, must};

/// A window far longer than a harness needs to start on a busy machine, and shorter than what is awaited here.
const WINDOW_MS: u64 = 8_000;

/// So many of these run at a time: each has a large program.
const SEATS: usize = 2;

static TAKEN: Mutex<usize> = Mutex::new(0);
static FREED: Condvar = Condvar::new();

/// A harness with its model, and a daemon that runs turns of it.
struct Bench {
    adapter: &'static str,
    environment: Vec<(OsString, OsString)>,
    further: Vec<String>,
    _daemon: Minderd,
    model: Option<Model>,
    world: World,
}

impl Bench {
    fn claude() -> Self {
        Self::new("claude", |world, model, _| {
            let claude = Claude::new(&world.isolated, model).unwrap();
            let mut environment: Vec<(OsString, OsString)> =
                claude.environment().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            let mut path = claude.program().parent().unwrap().as_os_str().to_owned();
            path.push(":/usr/local/bin:/usr/bin:/bin");
            environment.push(("PATH".into(), path));
            environment.push(("CLAUDE_CODE_MAX_RETRIES".into(), "1".into()));
            environment
        })
        .with(&["--allowedTools", "Bash"])
    }

    fn codex() -> Self {
        Self::new("codex", |world, model, folder| {
            Codex::new(&world.isolated, model, &[folder]).unwrap().environment().collect()
        })
        .with(&["--skip-git-repo-check"])
    }

    fn new(
        adapter: &'static str,
        environment: impl FnOnce(&World, &Model, &Path) -> Vec<(OsString, OsString)>,
    ) -> Self {
        let taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        *FREED.wait_while(taken, |n| *n >= SEATS).unwrap_or_else(PoisonError::into_inner) += 1;
        let world = World::new();
        let model = Model::start().unwrap();
        let folder = world.isolated.project("work").unwrap();
        let environment = environment(&world, &model, &folder);
        let daemon = world.start();
        Self { adapter, environment, further: Vec::new(), _daemon: daemon, model: Some(model), world }
    }

    fn with(mut self, further: &[&str]) -> Self {
        self.further = further.iter().map(|word| (*word).to_owned()).collect();
        self
    }

    fn set(&mut self, name: &str, value: &str) {
        self.environment.push((name.into(), value.into()));
    }

    fn model(&self) -> &Model {
        self.model.as_ref().expect("it is there until a test ends it")
    }

    fn call(&self, prompt: &str) -> TurnRun {
        let text = |s: OsString| s.into_string().expect("a test's own variables");
        let variables = self.world.isolated.environment().into_iter().chain(self.environment.clone());
        TurnRun {
            turn: Some(TurnId::now()),
            seat: Some(SEAT.to_owned()),
            adapter: Some(self.adapter.to_owned()),
            argv: self.further.clone(),
            prompt: Some(prompt.to_owned()),
            dir: Some(self.world.isolated.project("work").unwrap().display().to_string()),
            policy: Asked { stall_ms: Some(WINDOW_MS), grace_ms: Some(10_000), ..Asked::default() },
            env: variables.map(|(name, value)| (text(name), text(value))).collect(),
            ..TurnRun::default()
        }
    }

    /// Runs a turn to its end.
    fn run(&self, prompt: &str) -> (TurnId, Settled) {
        let call = self.call(prompt);
        let answer = must(&mut self.world.client(), &call);
        (answer.turn, answer.settled.expect("it was waited for"))
    }

    /// Runs a turn of a session that is bound to this conversation.
    fn run_in(&self, conversation: &str, prompt: &str) -> (TurnId, Settled) {
        let mut client = self.world.client();
        let create =
            rpc::Create { channel: Some(Channel::Mailbox), dir: self.call("").dir, ..rpc::Create::default() };
        let session = must(&mut client, &create).id.to_string();
        let bind = rpc::Set {
            session: session.clone(),
            harness: Some(self.adapter.to_owned()),
            harness_id: Some(conversation.to_owned()),
            ..rpc::Set::default()
        };
        must(&mut client, &bind);
        let answer = must(&mut client, &TurnRun { session: Some(session), ..self.call(prompt) });
        (answer.turn, answer.settled.expect("it was waited for"))
    }

    /// Runs a turn beside the test.
    fn beside(&self, prompt: &str) -> TurnId {
        start_held(&mut self.world.client(), self.call(prompt))
    }

    fn settled(&self, turn: TurnId) -> Settled {
        super::scene::settled(&mut self.world.client(), turn)
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        *TAKEN.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        FREED.notify_one();
    }
}

/// What failed and of which kind.
fn failed(settled: &Settled) -> (Option<Failure>, Option<Class>) {
    (settled.failure, settled.class)
}

fn answers(bench: &Bench) {
    let (turn, settled) = bench.run("please [[sh echo from-the-tool]] and [[say the answer]]");
    assert_eq!(failed(&settled), (None, None), "{settled:#?}");
    assert_eq!((settled.outcome, settled.text.as_deref()), (Some(Outcome::Delivered), Some("the answer")));
    assert!(settled.conversation.is_some(), "{settled:#?}");
    let line = line_of(&bench.world, turn);
    assert_eq!(
        (line.tool_calls, line.exit_code, line.stalled, line.attempts),
        (1, Some(0), false, 1),
        "{line:#?}"
    );
    assert!(line.usage.input_tokens > Some(0) && line.usage.output_tokens > Some(0), "{line:#?}");
    let (_, silent) = bench.run("[[say NO_REPLY]]");
    assert_eq!((failed(&silent), silent.outcome), ((None, None), Some(Outcome::Silent)), "{silent:#?}");
}

/// A conversation is gone on with; one that the harness does not know is begun anew, within the turn and once.
fn goes_on_and_heals(bench: &Bench) {
    let (_, first) = bench.run("[[say one]]");
    let known = first.conversation.expect("it said which");
    let (turn, second) = bench.run_in(&known, "[[say two]]");
    assert_eq!((failed(&second), second.text.as_deref()), ((None, None), Some("two")), "{second:#?}");
    assert_eq!(
        (second.conversation.as_deref(), line_of(&bench.world, turn).attempts),
        (Some(known.as_str()), 1)
    );
    // Its model has seen both.
    let both = |all: &[Request]| {
        let has = |r: &Request, text: &str| r.conversation.texts.iter().any(|t| t.text.contains(text));
        all.iter().any(|r| has(r, "[[say one]]") && has(r, "[[say two]]")).then_some(())
    };
    bench.model().wait_for(LIMIT, both).unwrap();

    let stale = "11111111-1111-4111-8111-111111111111";
    let (turn, healed) = bench.run_in(stale, "[[say three]]");
    assert_eq!((failed(&healed), healed.text.as_deref()), ((None, None), Some("three")), "{healed:#?}");
    assert!(healed.conversation.is_some_and(|id| id != stale && id != known));
    let line = line_of(&bench.world, turn);
    assert_eq!((line.attempts, line.exit_code), (2, Some(0)), "{line:#?}");
    assert!(line.usage.output_tokens > Some(0), "{line:#?}");
}

fn stalls(bench: &Bench) {
    let turn = bench.beside("wait [[hang]]");
    bench.model().wait_for_text(LIMIT, "[[hang]]").unwrap();
    let settled = bench.settled(turn);
    assert_eq!(
        (settled.failure, settled.trigger),
        (Some(Failure::Stall), Some(Trigger::Stall)),
        "{settled:#?}"
    );
    assert_eq!(settled.survivors, []);
    // Nothing of it asks the model any more.
    let left = |all: &[Request]| all.iter().all(|request| request.outcome != Answered::Open).then_some(());
    bench.model().wait_for(LIMIT, left).unwrap();
    let line = line_of(&bench.world, turn);
    assert!(line.stalled && line.longest_silence_ms >= WINDOW_MS, "{line:#?}");
}

fn is_used_up(bench: &Bench) {
    let (_, settled) = bench.run("go on [[limit 7200]]");
    assert_eq!(failed(&settled), (Some(Failure::UpstreamRefused), Some(Class::Quota)), "{settled:#?}");
    let why = settled.why.unwrap_or_default();
    assert!(why.contains("limit"), "{why}");
}

fn waits_for_a_tool(bench: &Bench) {
    // Longer than the window, and nothing is printed meanwhile.
    let nap = Duration::from_millis(WINDOW_MS).as_secs() + 3;
    let (turn, settled) = bench.run(&format!("[[sh echo a; sleep {nap}; echo b]] [[say over]]"));
    assert_eq!((failed(&settled), settled.text.as_deref()), ((None, None), Some("over")), "{settled:#?}");
    let line = line_of(&bench.world, turn);
    assert!(!line.stalled && line.duration_ms > WINDOW_MS, "{line:#?}");
    // Claude Code says of a long one that it is a task too; it is one call.
    assert_eq!(line.tool_calls, 1, "{line:#?}");
}

#[test]
#[cfg_attr(not(claude), ignore = "needs Claude Code: run tests/setup.sh")]
fn claude_code_answers() {
    answers(&Bench::claude());
}

#[test]
#[cfg_attr(not(claude), ignore = "needs Claude Code: run tests/setup.sh")]
fn claude_code_whose_model_never_answers_stalls_and_is_ended() {
    stalls(&Bench::claude());
}

#[test]
#[cfg_attr(not(claude), ignore = "needs Claude Code: run tests/setup.sh")]
fn claude_code_whose_model_goes_away_says_so() {
    let mut bench = Bench::claude();
    let turn = bench.beside("wait [[gate never]]");
    bench.model().wait_for_text(LIMIT, "[[gate never]]").unwrap();
    drop(bench.model.take());
    let settled = bench.settled(turn);
    assert_eq!(failed(&settled), (Some(Failure::AdapterResult), Some(Class::Unavailable)), "{settled:#?}");
}

#[test]
#[cfg_attr(not(claude), ignore = "needs Claude Code: run tests/setup.sh")]
fn claude_code_whose_plan_is_used_up_is_refused() {
    let mut bench = Bench::claude();
    // A plan belongs to a login, not to a key.
    bench.environment.retain(|(name, _)| name != "ANTHROPIC_API_KEY");
    bench.set("CLAUDE_CODE_OAUTH_TOKEN", "test-token");
    is_used_up(&bench);
}

#[test]
#[cfg_attr(not(claude), ignore = "needs Claude Code: run tests/setup.sh")]
fn claude_code_may_wait_for_a_tool() {
    waits_for_a_tool(&Bench::claude());
}

#[test]
#[cfg_attr(not(claude), ignore = "needs Claude Code: run tests/setup.sh")]
fn claude_code_goes_on_with_a_conversation_and_heals_one() {
    goes_on_and_heals(&Bench::claude());
}

#[test]
#[cfg_attr(not(codex), ignore = "needs Codex: run tests/setup.sh")]
fn codex_goes_on_with_a_conversation_and_heals_one() {
    goes_on_and_heals(&Bench::codex());
}

#[test]
#[cfg_attr(not(codex), ignore = "needs Codex: run tests/setup.sh")]
fn codex_answers() {
    answers(&Bench::codex());
}

#[test]
#[cfg_attr(not(codex), ignore = "needs Codex: run tests/setup.sh")]
fn codex_whose_model_never_answers_stalls_and_is_ended() {
    stalls(&Bench::codex());
}

/// It waits for a network without end: that is a stall, and its own words say of which kind.
#[test]
#[cfg_attr(not(codex), ignore = "needs Codex: run tests/setup.sh")]
fn codex_whose_model_goes_away_waits_and_stalls() {
    let mut bench = Bench::codex();
    let turn = bench.beside("wait [[gate never]]");
    bench.model().wait_for_text(LIMIT, "[[gate never]]").unwrap();
    drop(bench.model.take());
    let settled = bench.settled(turn);
    assert_eq!(failed(&settled), (Some(Failure::Stall), Some(Class::Unavailable)), "{settled:#?}");
}

#[test]
#[cfg_attr(not(codex), ignore = "needs Codex: run tests/setup.sh")]
fn codex_whose_plan_is_used_up_is_refused() {
    is_used_up(&Bench::codex());
}

#[test]
#[cfg_attr(not(codex), ignore = "needs Codex: run tests/setup.sh")]
fn codex_may_wait_for_a_tool() {
    waits_for_a_tool(&Bench::codex());
}
