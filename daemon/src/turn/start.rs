//! Beginning a turn: its windows, its adapter's plan, its environment and its place in memory. What is wrong with a request
//! is said here, before anything is made for it.

use std::sync::Arc;

use minder_proto::error::{Fault, Kind};
use minder_proto::id::TurnId;
use minder_proto::rpc::TurnAnswer;
use minder_proto::stamp::Stamp;
use minder_proto::turn::folder::{Limits, Spec};
use minder_proto::turn::policy::{self, Resolved};

use super::adapter::{self, Adapter, Input as Asked, Launch, Plan};
use super::hold::Caller;
use super::live::{Stage, Turn};
use super::request::{Input, Request};
use super::{RUNNING_MAX, Turns, env};

/// What a request for a turn leads to.
#[derive(Clone, Debug)]
pub enum Started {
    /// A turn that was begun now, or was there already.
    Live(Arc<Turn>),
    /// One of this id is over.
    Over(Box<TurnAnswer>),
}

impl Turns {
    /// Begins a turn, or finds the one of this id. It goes its way whatever becomes of the caller.
    pub async fn start(&self, request: Request) -> Result<Started, Fault> {
        if let Some(found) = self.again(&request) {
            return Ok(found);
        }
        if self.may_be_forgotten(request.turn) {
            self.refuse_an_old_one(&request).await?;
        }
        let adapter = adapter::by_name(&request.adapter)
            .ok_or_else(|| Fault::new(Kind::InvalidParams, format!("no adapter {:?}", request.adapter)))?;
        let config = &self.0.store.config().turn;
        let variable = |name: &str| request.env.get(name).cloned();
        let resolved = policy::resolve(adapter.name, request.policy, request.budget_ms, variable, config);
        self.say(adapter, &resolved);
        let launch = plan(adapter, &request)?;
        let spec = self.spec(&request, &resolved, &launch)?;
        let told = env::Told {
            turn: spec.turn,
            session: spec.session,
            home: self.0.store.home(),
            socket: self.0.socket.as_deref(),
        };
        let environment = env::build(&request.env, adapter.env, &config.env_pass, &told)?;
        let folder = self.0.store.home().turn(spec.turn);
        let (turn, orders) = Turn::new(spec, folder, 0, request.caller, Stage::Starting);
        // The last look and the first entry are one: the same id twice is one turn.
        let found = {
            let mut memory = self.memory();
            match memory.live.get(&request.turn) {
                Some(found) => Some(Arc::clone(found)),
                None if self.is_closed() => {
                    return Err(Fault::new(Kind::Unavailable, "the daemon is going down"));
                }
                None if memory.live.values().filter(|t| t.stage().runs()).count() >= RUNNING_MAX => {
                    let why = format!("{RUNNING_MAX} turns run already");
                    return Err(Fault::new(Kind::Busy, why));
                }
                None => {
                    memory.live.insert(request.turn, Arc::clone(&turn));
                    None
                }
            }
        };
        if let Some(found) = found {
            return Ok(Started::Live(found));
        }
        tokio::spawn(self.clone().begin(Arc::clone(&turn), orders, launch.stdin, environment));
        Ok(Started::Live(turn))
    }

    /// A turn of this id that is known. Where who asked for it asks again, its answer goes there.
    fn again(&self, request: &Request) -> Option<Started> {
        let memory = self.memory();
        if let Some(found) = memory.live.get(&request.turn).cloned() {
            drop(memory);
            let same = found.spec.by == request.by && matches!(request.caller, Caller::On(_));
            found.move_caller(|before| if same { request.caller } else { before });
            return Some(Started::Live(found));
        }
        memory.over.get(&request.turn).map(|over| Started::Over(Box::new(over.answer.clone())))
    }

    /// True for an id that was made before everything that is remembered.
    fn may_be_forgotten(&self, turn: TurnId) -> bool {
        let horizon = self.memory().forgotten.unwrap_or(self.0.began);
        turn.made().is_none_or(|made| made < horizon)
    }

    async fn refuse_an_old_one(&self, request: &Request) -> Result<(), Fault> {
        let (this, turn, seat) = (self.clone(), request.turn, request.seat.clone());
        let look =
            move || this.0.store.home().turn(turn).exists() || this.0.log.written(&seat).contains_key(&turn);
        match tokio::task::spawn_blocking(look).await {
            Ok(false) => Ok(()),
            _ => Err(Fault::new(Kind::Gone, format!("turn {} is over", turn.short()))),
        }
    }

    /// The windows of an adapter, at its first turn; and once each what had to be ignored.
    fn say(&self, adapter: &Adapter, resolved: &Resolved) {
        let mut memory = self.memory();
        for warning in &resolved.warnings {
            if memory.said.insert(warning.clone()) {
                tracing::warn!("{warning}");
            }
        }
        if memory.said.insert(adapter.name.to_owned()) {
            let sources = resolved.sources.iter();
            let list: Vec<String> = sources
                .map(|(name, sourced)| format!("{name} {} ({})", sourced.value, sourced.from))
                .collect();
            tracing::info!(adapter = adapter.name, "windows of a turn: {}", list.join(", "));
        }
    }

    fn spec(&self, request: &Request, resolved: &Resolved, launch: &Launch) -> Result<Spec, Fault> {
        let bad = |why: String| Err(Fault::new(Kind::InvalidParams, why));
        if !request.dir.starts_with('/') {
            return bad(format!("not an absolute directory: {:?}", request.dir));
        }
        if launch.argv.iter().any(|word| word.contains('\0')) || request.dir.contains('\0') {
            return bad("an argument has a zero byte in it".to_owned());
        }
        if launch.argv.first().is_none_or(String::is_empty) {
            return bad("no program is given to run".to_owned());
        }
        let config = &self.0.store.config().turn;
        Ok(Spec {
            turn: request.turn,
            seat: request.seat.clone(),
            adapter: request.adapter.clone(),
            session: request.session,
            by: request.by,
            event_type: request.event_type.clone(),
            purpose: request.purpose.clone(),
            empty_is_silent: request.empty_is_silent,
            asked: Stamp::now(),
            boot: crate::identity::boot_id().unwrap_or_default().to_owned(),
            argv: launch.argv.clone(),
            heal: launch.heal.clone(),
            dir: request.dir.clone(),
            prompt: launch.stdin.is_some(),
            policy: resolved.policy,
            rules: launch.rules.clone(),
            stderr_is_progress: launch.stderr_is_progress,
            cancel_signal: launch.cancel_signal,
            budget_signal: launch.budget_signal,
            limits: Limits {
                nice: config.nice,
                oom_score_adj: config.oom_score_adj,
                rlimits: config.limits.clone(),
                files: Some(self.0.files),
            },
        })
    }
}

fn plan(adapter: &Adapter, request: &Request) -> Result<Launch, Fault> {
    let input = match &request.input {
        Input::None => Asked::None,
        Input::Text(text) => Asked::Text(text),
        Input::Messages(messages) => Asked::Messages(messages),
    };
    let conversation = request.conversation.as_deref();
    adapter.plan(&Plan { argv: &request.argv, input, conversation, fresh: request.fresh })
}
