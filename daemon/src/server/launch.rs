//! `session.launch`, `session.relaunch`: registered first, in one commit with the first message, and started then.

use std::collections::BTreeMap;
use std::sync::Arc;

use jsonrpsee::RpcModule;
use minder_proto::error::{Fault, Kind};
use minder_proto::event::{Author, Class, Message, cut};
use minder_proto::id::{MessageId, Party, SessionId};
use minder_proto::limits;
use minder_proto::record::{self, Channel, SessionRecord};
use minder_proto::rpc::{Launch, LaunchAnswer, Place, Relaunch};
use minder_proto::state::State;

use super::context::{Context, Origin, once};
use super::message::check_body;
use super::method;
use super::session::kept_for_turns;
use crate::delivery::tmux;
use crate::identity::Who;
use crate::launch::programs::{self, Program};
use crate::launch::{Goes, Start, goes_on_with};
use crate::session::{self, Born, Declaration, declare};
use crate::store::Txn;
use crate::turn::{adapter, env};

/// Registers both.
pub fn register(module: &mut RpcModule<Context>) {
    method::register(module, |call: Launch, ctx: Arc<Context>, peer| async move {
        launch(&ctx, call, Origin::peer(peer)).await
    });
    method::register(module, |call: Relaunch, ctx: Arc<Context>, peer| async move {
        relaunch(&ctx, call, Origin::peer(peer)).await
    });
}

async fn launch(ctx: &Context, call: Launch, origin: Origin) -> Result<LaunchAnswer, Fault> {
    if let Some(body) = &call.body {
        check_body(body, ctx.store.config().message.max_bytes)?;
    }
    limits::text("a program with its arguments", Some(&call.argv.join(" ")), limits::PROGRAM_MAX)?;
    let home = ctx.store.home().clone();
    let (place, environment) = (call.place.clone(), call.env.clone());
    let installed = installed(&call).await?;
    let (answer, argv, dir) = ctx
        .store
        .write(move |txn| {
            let who = origin.who(call.caller.as_ref(), txn.state(), &home)?;
            who.party()?;
            let parent = match &call.parent {
                Some(text) => Some(session::selected_one(txn.state(), &home, text, who.session())?),
                None => who.session(),
            };
            let dir =
                call.dir.clone().or_else(|| call.caller.as_ref()?.dir.clone()).unwrap_or_else(|| "/".into());
            let harness = harness_of(&call, &who, txn, &installed)?;
            let argv = match &harness {
                Some(name) => terminal(name)?.argv(None, &call.argv),
                None => call.argv.clone(),
            };
            let scope = who.session().map_or_else(|| "operator".to_owned(), |id| id.to_string());
            let content = (
                (call.label.clone(), call.title.clone(), harness.clone(), parent, call.primary),
                (dir.clone(), call.channel.clone(), call.argv.clone(), call.body.clone()),
            );
            let key = call.key.clone();
            let born_in = dir.clone();
            let run = |txn: &mut Txn<'_>| register_it(txn, call, (who, parent, harness, born_in));
            let (answer, duplicate) =
                once(txn, &format!("{scope}/session.launch"), key.as_deref(), &content, run)?;
            if duplicate && txn.state().session(answer.id).is_none() {
                let text = format!(
                    "key {:?} made session {}, which is not open any more",
                    key.unwrap_or_default(),
                    answer.id.short()
                );
                return Err(Fault::new(Kind::Gone, text).about(answer.id));
            }
            Ok((LaunchAnswer { duplicate, ..answer }, argv, dir))
        })
        .await?;
    ctx.delivery.try_now(answer.id);
    let Place::Tmux { socket, beside } = place else { return Ok(answer) };
    if answer.duplicate {
        // The answer was lost, or the daemon: what became of that start is looked at now.
        let failed = ctx.launcher.begun(answer.id).await;
        return Ok(LaunchAnswer { failed, ..answer });
    }
    begin(ctx, answer, Where { socket, beside }, argv, dir, &environment).await
}

/// The harnesses that are installed, where it may depend on them what is launched. Their folders may be on a disk that is slow: the
/// thread of the store is not to wait for it.
async fn installed(call: &Launch) -> Result<Vec<&'static Program>, Fault> {
    if call.harness.is_some() || !call.argv.is_empty() {
        return Ok(Vec::new());
    }
    let path = programs::path_of(&call.env).to_owned();
    let found = tokio::task::spawn_blocking(move || programs::installed(&path)).await;
    found.map_err(|e| Fault::new(Kind::Internal, e.to_string()))
}

/// Registers what is to be started, with its first message.
fn register_it(
    txn: &mut Txn<'_>,
    call: Launch,
    (who, parent, harness, dir): (Who, Option<SessionId>, Option<String>, String),
) -> Result<LaunchAnswer, Fault> {
    refuse_what_is_lost(&call, harness.as_deref())?;
    let (channel, until_hook) = channel_of(&call, harness.as_deref());
    let kept = kept_for_turns(Some(&channel), harness.as_deref(), &call.env, &txn.config().turn)?;
    let started = match &call.place {
        Place::Tmux { socket, .. } => Some(record::Launch {
            at: txn.now(),
            token: String::new(),
            argv: call.argv,
            tmux: Some(socket.clone()),
            pane: None,
            pending: true,
            heard: false,
        }),
        Place::Headless => None,
    };
    let born = Born {
        label: call.label,
        title: call.title,
        harness,
        conversation: None,
        dir,
        parent,
        primary: call.primary,
        channel,
        process: None,
        adopted: false,
        said: None,
        launch: started,
    };
    let id = session::create(txn, born)?;
    let (env, env_names) = kept;
    txn.edit(id, |r| {
        r.until_hook = until_hook;
        r.env = env;
        r.env_names = env_names;
    })?;
    let message = match call.body {
        Some(body) => Some(txn.post(Party::Session(id), first_message(who.party()?, body))?.0),
        None => None,
    };
    Ok(LaunchAnswer { message, ..answer_of(&txn.session(id)?.record) })
}

/// Refuses, for a harness in a terminal, work among its arguments, which each further process would be given again, and a
/// first message that nothing would bring in.
fn refuse_what_is_lost(call: &Launch, harness: Option<&str>) -> Result<(), Fault> {
    let Place::Tmux { .. } = call.place else { return Ok(()) };
    if let Some(Channel::Tmux { .. }) = call.channel {
        tmux::known(harness)?;
    }
    let Some(program) = harness.and_then(programs::by_name) else { return Ok(()) };
    let name = program.name;
    if let Some(word) = program.work_in(&call.argv) {
        let word = cut(word, 80);
        let why = format!("{word:?} is no option of {name}: each further process would be given it again");
        return Err(Fault::new(Kind::InvalidParams, why).hint("work is the text of the launch, before --"));
    }
    let typed = matches!(channel_of(call, harness).0, Channel::Tmux { .. });
    if call.body.is_some() && call.channel.is_none() && !call.primary && !program.wakes && !typed {
        let why = format!(
            "{name} in a terminal gets no message before somebody has typed: nothing would bring in its text"
        );
        return Err(Fault::new(Kind::Refused, why).hint("--in headless gives it as a turn"));
    }
    Ok(())
}

fn answer_of(record: &SessionRecord) -> LaunchAnswer {
    LaunchAnswer {
        id: record.id,
        label: record.label.clone(),
        title: record.title.clone(),
        harness: record.harness.clone(),
        message: None,
        resumed: None,
        note: None,
        failed: None,
        duplicate: false,
    }
}

fn first_message(from: Party, body: String) -> Message {
    Message {
        id: MessageId::now(),
        from,
        about: None,
        body,
        class: Class::Now,
        key: None,
        reply_to: None,
        thread: None,
        cause: None,
        hops: 0,
        expires: None,
    }
}

/// The harness: the one that is named, else the caller's, else the only one that the caller's search path leads to. Words
/// after `--` without a name are a program.
fn harness_of(
    call: &Launch,
    who: &Who,
    txn: &Txn<'_>,
    installed: &[&'static Program],
) -> Result<Option<String>, Fault> {
    if let Some(name) = &call.harness {
        terminal(name)?;
        return Ok(Some(name.clone()));
    }
    if !call.argv.is_empty() {
        return Ok(None);
    }
    let own = who.session().and_then(|id| txn.state().session(id)?.record.harness.clone());
    if let Some(own) = own.filter(|name| programs::by_name(name).is_some()) {
        return Ok(Some(own));
    }
    match installed {
        [one] => Ok(Some(one.name.to_owned())),
        [] => Err(Fault::new(
            Kind::InvalidParams,
            "no harness is installed: give --harness, or a program after --",
        )),
        many => {
            let names: Vec<&str> = many.iter().map(|h| h.name).collect();
            Err(Fault::new(Kind::InvalidParams, format!("which harness? {} are installed", names.join(", ")))
                .hint(format!("--harness {}", names[0])))
        }
    }
}

fn terminal(name: &str) -> Result<&'static Program, Fault> {
    programs::by_name(name).ok_or_else(|| {
        let names: Vec<&str> = programs::ALL.iter().map(|h| h.name).collect();
        Fault::new(Kind::InvalidParams, format!("no harness {name:?}: there are {}", names.join(", ")))
    })
}

/// How messages get in, and whether the first hook that is heard changes that.
fn channel_of(call: &Launch, harness: Option<&str>) -> (Channel, bool) {
    match (&call.channel, &call.place, harness) {
        (Some(channel), _, _) => (channel.clone(), false),
        (None, Place::Headless, _) => (Channel::Headless { argv: call.argv.clone() }, false),
        // Its hooks tell of its start, and can wake it from then on.
        (None, Place::Tmux { .. }, Some(name)) if programs::by_name(name).is_some_and(|p| p.says_so) => {
            (Channel::Hook, false)
        }
        // Nothing is heard of it before it was given a prompt.
        (None, Place::Tmux { socket, .. }, Some(name))
            if programs::by_name(name).is_some_and(|p| !p.wakes) && tmux::known(harness).is_ok() =>
        {
            (Channel::Tmux { socket: socket.clone(), pane: String::new() }, true)
        }
        (None, Place::Tmux { .. }, _) => (Channel::Mailbox, true),
    }
}

struct Where {
    socket: String,
    beside: Option<String>,
}

async fn begin(
    ctx: &Context,
    answer: LaunchAnswer,
    place: Where,
    argv: Vec<String>,
    dir: String,
    environment: &BTreeMap<String, String>,
) -> Result<LaunchAnswer, Fault> {
    let harness = answer.harness.as_deref();
    let needed = harness.and_then(adapter::by_name).map_or(&[][..], |adapter| adapter.env);
    let (home, config) = (ctx.store.home(), ctx.store.config());
    let socket = std::env::var("MINDER_SOCKET").ok();
    let env = env::for_terminal(environment, needed, &config.turn.env_pass, home, socket.as_deref());
    let start = Start {
        session: answer.id,
        label: answer.label.clone(),
        socket: place.socket,
        beside: place.beside,
        argv,
        dir,
        env: match env {
            Ok(env) => env,
            Err(fault) => {
                let (id, why) = (answer.id, fault.message.clone());
                ctx.store.write(move |txn| session::not_up(txn, id, &why)).await?;
                return Err(fault);
            }
        },
        says_so: harness.and_then(programs::by_name).is_some_and(|program| program.says_so),
        harness: harness.is_some(),
    };
    let failed = ctx.launcher.begin(start).await;
    Ok(LaunchAnswer { failed, ..answer })
}

async fn relaunch(ctx: &Context, call: Relaunch, origin: Origin) -> Result<LaunchAnswer, Fault> {
    let home = ctx.store.home().clone();
    let (caller, word) = (call.caller.clone(), call.session.clone());
    let record = ctx
        .store
        .read(move |state| {
            let who = origin.who(caller.as_ref(), state, &home)?;
            who.party()?;
            let id = session::selected_one(state, &home, &word, who.session())?;
            let found = state.session(id).map(|s| s.record.clone());
            found.ok_or_else(|| Fault::new(Kind::Gone, "it is gone").about(id))
        })
        .await??;
    let place = place_of(&record, call.place)?;
    let (fresh, looked) = (call.fresh, record.clone());
    let goes = tokio::task::spawn_blocking(move || goes_on_with(&looked, fresh)).await;
    let goes = goes.map_err(|e| Fault::new(Kind::Internal, e.to_string()))??;
    let further = record.launch.as_ref().map(|launch| launch.argv.clone()).unwrap_or_default();
    let argv = match goes.harness {
        Some(harness) => harness.argv(goes.conversation.as_deref(), &further),
        None => further.clone(),
    };
    let (before, dir) = (record.clone(), record.dir.clone());
    let (id, socket, resumed, note) =
        (record.id, place.socket.clone(), goes.conversation.clone(), goes.note.clone());
    let answer = ctx
        .store
        .write(move |txn| {
            // Meanwhile its file was read: somebody else may have done the same.
            let now = &txn.session(id)?.record;
            may_start(now)?;
            let seen = |r: &SessionRecord| (r.process.clone(), r.incarnation, r.channel.clone());
            if seen(now) != seen(&before) || now.live_binding() != before.live_binding() {
                return Err(Fault::new(Kind::Refused, "its process changed meanwhile").about(id));
            }
            anew(txn, id, &goes, socket, further)?;
            Ok(LaunchAnswer { resumed, note, ..answer_of(&txn.session(id)?.record) })
        })
        .await?;
    begin(ctx, answer, place, argv, dir, &call.env).await
}

/// Whether a further process may be started now.
fn may_start(record: &SessionRecord) -> Result<(), Fault> {
    let refuse = |why: &str| Err(Fault::new(Kind::Refused, why.to_owned()).about(record.id));
    if record.launch.as_ref().is_some_and(|launch| launch.pending) {
        return refuse("it is being started");
    }
    if let Channel::Headless { .. } = record.channel {
        return refuse("each message of a headless session is a process of its own: send it one");
    }
    Ok(())
}

/// The tmux server that a further process goes to.
fn place_of(record: &SessionRecord, asked: Option<Place>) -> Result<Where, Fault> {
    may_start(record)?;
    let refuse = |why: &str| Err(Fault::new(Kind::Refused, why.to_owned()).about(record.id));
    let before = record.launch.as_ref().and_then(|launch| launch.tmux.clone());
    match (asked, before) {
        (Some(Place::Tmux { socket, beside }), _) => Ok(Where { socket, beside }),
        (Some(Place::Headless), _) => refuse("a headless session has no process to start"),
        (None, Some(socket)) => Ok(Where { socket, beside: None }),
        (None, None) => {
            Err(Fault::new(Kind::InvalidParams, "in which tmux? none is known").hint("--tmux SOCKET"))
        }
    }
}

/// What its record says of the new process before there is one.
fn anew(
    txn: &mut Txn<'_>,
    id: SessionId,
    goes: &Goes,
    socket: String,
    argv: Vec<String>,
) -> Result<(), Fault> {
    let now = txn.now();
    let resumed = goes.conversation.is_some();
    txn.edit(id, |r| {
        r.incarnation += 1;
        r.turn = None;
        r.compacting = false;
        for binding in r.bindings.iter_mut().filter(|b| !resumed && b.until.is_none()) {
            binding.until = Some(now);
        }
        // It is typed to where it runs, which is known as soon as there is a process.
        if let Channel::Tmux { socket: at, pane } = &mut r.channel {
            at.clone_from(&socket);
            pane.clear();
        }
        r.launch = Some(record::Launch {
            at: now,
            token: String::new(),
            argv,
            tmux: Some(socket),
            pane: None,
            pending: true,
            heard: false,
        });
    })?;
    declare(txn, id, Declaration::new(State::Queued, None, Author::Minder)).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hook::dialect;
    use crate::identity::harness::is_harness;

    #[test]
    fn each_has_one_name_everywhere() {
        for program in &programs::ALL {
            let name = program.name;
            assert!(dialect::of(name).is_some(), "no dialect: {name}");
            assert!(adapter::by_name(name).is_some(), "no adapter: {name}");
            assert!(is_harness(name), "no process: {name}");
        }
    }
}
