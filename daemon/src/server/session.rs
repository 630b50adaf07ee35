//! `session.*`: parse, one call, map.

use std::collections::BTreeMap;
use std::sync::Arc;

use jsonrpsee::RpcModule;
use minder_proto::config;
use minder_proto::error::{Fault, Kind};
use minder_proto::event::{Author, Body, NOTE_MAX, PERSON_AS_SESSION};
use minder_proto::id::{Party, SessionId};
use minder_proto::limits;
use minder_proto::record::{Channel, SessionRecord};
use minder_proto::rpc::{
    Close, CloseAnswer, Create, CreateAnswer, Declare, DeclareAnswer, Get, GetAnswer, List, ListAnswer, Set,
    SetAnswer,
};

use super::context::{Context, Origin, once};
use super::method;
use crate::delivery::tmux;
use crate::identity::{Ancestry, Who};
use crate::session::{self, Born, Changes, Declaration};
use crate::store::{Session, Txn};
use crate::turn::{adapter, env};

/// Most bytes of records in one answer; there is more to ask for.
const LIST_MAX: usize = 1024 * 1024;

/// Registers the family.
pub fn register(module: &mut RpcModule<Context>) {
    method::register(module, |call: Create, ctx: Arc<Context>, peer| async move {
        create(&ctx, call, Ancestry::of(peer.pid)).await
    });
    method::register(module, |call: Get, ctx: Arc<Context>, peer| async move {
        get(&ctx, call, Origin::peer(peer)).await
    });
    method::register(module, |call: List, ctx: Arc<Context>, peer| async move {
        list(&ctx, call, Origin::peer(peer)).await
    });
    method::register(module, |call: Declare, ctx: Arc<Context>, peer| async move {
        declare(&ctx, call, Origin::peer(peer)).await
    });
    method::register(module, |call: Set, ctx: Arc<Context>, peer| async move {
        set(&ctx, call, Origin::peer(peer)).await
    });
    method::register(module, |call: Close, ctx: Arc<Context>, peer| async move {
        close(&ctx, call, Origin::peer(peer)).await
    });
}

/// A conversation that is not registered may register itself; everybody else registers others.
async fn create(ctx: &Context, call: Create, ancestry: Ancestry) -> Result<CreateAnswer, Fault> {
    let home = ctx.store.home().clone();
    ctx.store
        .write(move |txn| {
            let origin = Origin::Peer { ancestry: ancestry.clone(), conn: 0 };
            let who = origin.who(call.caller.as_ref(), txn.state(), &home)?;
            let itself = match &who.identity {
                minder_proto::caller::Identity::Unregistered { harness, harness_id } => {
                    Some((harness.clone(), harness_id.clone()))
                }
                _ => None,
            };
            let scope = match (&itself, who.session()) {
                (Some((harness, id)), _) => format!("{harness}:{id}/session.create"),
                (None, Some(id)) => format!("{id}/session.create"),
                (None, None) => "operator/session.create".to_owned(),
            };
            let parent = match &call.parent {
                Some(text) => Some(session::selected_one(txn.state(), &home, text, who.session())?),
                None => who.session(),
            };
            let dir = call
                .dir
                .clone()
                .or_else(|| call.caller.as_ref()?.dir.clone())
                .unwrap_or_else(|| "/".to_owned());
            let content = (
                (call.label.clone(), call.title.clone(), call.harness.clone(), parent),
                (dir.clone(), call.channel.clone(), call.primary),
            );
            let key = call.key.clone();
            let kept = {
                let harness =
                    call.harness.as_deref().or(itself.as_ref().map(|(harness, _)| harness.as_str()));
                kept_for_turns(call.channel.as_ref(), harness, &call.env, &txn.config().turn)?
            };
            let run = |txn: &mut Txn<'_>| {
                let (harness, conversation, process) = match itself {
                    Some((harness, id)) => {
                        if call.harness.as_ref().is_some_and(|h| *h != harness) {
                            return Err(Fault::new(
                                Kind::Refused,
                                format!(
                                    "this is a {harness} conversation, not {}",
                                    call.harness.unwrap_or_default()
                                ),
                            ));
                        }
                        let process = ancestry.harness().map(|a| a.process.clone());
                        // A conversation whose variable was inherited has no id of its own to be known by.
                        let conversation = (!id.is_empty()).then(|| (id, "new".to_owned(), None));
                        (Some(harness), conversation, process)
                    }
                    None => (call.harness, None, None),
                };
                // That a conversation has hooks is known when one of them is heard.
                let until_hook = call.channel.is_none();
                let channel = tmux::settle(call.channel, harness.as_deref(), process.as_ref())?;
                let id = session::create(
                    txn,
                    Born {
                        label: call.label,
                        title: call.title,
                        harness,
                        conversation,
                        dir,
                        parent,
                        primary: call.primary,
                        channel: channel.unwrap_or(Channel::Mailbox),
                        process,
                        adopted: false,
                        said: None,
                        launch: None,
                    },
                )?;
                let (env, env_names) = kept;
                txn.edit(id, |r| {
                    r.until_hook = until_hook;
                    r.env = env;
                    r.env_names = env_names;
                })?;
                let record = &txn.session(id)?.record;
                let (label, title) = (record.label.clone(), record.title.clone());
                let seq = txn
                    .appended()
                    .iter()
                    .filter(|l| l.party == Party::Session(id))
                    .map(|l| l.event.seq)
                    .max();
                Ok(CreateAnswer { id, label, title, seq: seq.unwrap_or(1), duplicate: false })
            };
            let (answer, duplicate) = once(txn, &scope, key.as_deref(), &content, run)?;
            if duplicate && txn.state().session(answer.id).is_none() {
                let key = key.unwrap_or_default();
                let text =
                    format!("key {key:?} made session {}, which is not open any more", answer.id.short());
                return Err(Fault::new(Kind::Gone, text).about(answer.id).hint("minder new --key ANOTHER"));
            }
            Ok(CreateAnswer { duplicate, ..answer })
        })
        .await
}

/// What turns that no caller starts get of the environment in which their session was made.
pub(super) fn kept_for_turns(
    channel: Option<&Channel>,
    harness: Option<&str>,
    environment: &BTreeMap<String, String>,
    config: &config::Turn,
) -> Result<(BTreeMap<String, String>, Vec<String>), Fault> {
    let Some(Channel::Headless { argv }) = channel else { return Ok(Default::default()) };
    let name = harness.unwrap_or("command");
    let adapter = adapter::by_name(name)
        .ok_or_else(|| Fault::new(Kind::InvalidParams, format!("no turn of {name:?} can be run")))?;
    if adapter.stdout_is_reply() && argv.is_empty() {
        let why = "channel headless needs a harness, or the program that is run for what comes";
        return Err(Fault::new(Kind::InvalidParams, why));
    }
    Ok(env::keep(environment, adapter.env, &config.env_pass))
}

fn shown(session: &Session) -> GetAnswer {
    GetAnswer {
        record: session.record.clone(),
        waiting: session.inbox.queue.len(),
        held: session.inbox.queue.held(),
        watchers: session.watchers.len(),
    }
}

async fn get(ctx: &Context, call: Get, origin: Origin) -> Result<GetAnswer, Fault> {
    let home = ctx.store.home().clone();
    ctx.store
        .read(move |state| {
            let who = origin.who(call.caller.as_ref(), state, &home)?;
            let id = match &call.session {
                Some(text) => session::selected_one(state, &home, text, who.session())?,
                None => itself(&who)?,
            };
            state.session(id).map(shown).ok_or_else(|| Fault::new(Kind::Gone, "it is gone").about(id))
        })
        .await?
}

async fn list(ctx: &Context, call: List, origin: Origin) -> Result<ListAnswer, Fault> {
    let home = ctx.store.home().clone();
    ctx.store
        .read(move |state| {
            let who = origin.who(call.caller.as_ref(), state, &home)?;
            let text = call.sessions.as_deref().unwrap_or("@all");
            let mut ids = session::selected(state, &home, text, who.session())?;
            let age = |id: &SessionId| state.session(*id).map(|s| (s.record.created, s.record.id));
            ids.sort_by_key(age);
            let after = call.after.and_then(|id| age(&id));
            let mut answer = ListAnswer { sessions: Vec::new(), more: false };
            let mut size = 0;
            for id in ids.iter().filter(|id| after.is_none() || age(id) > after) {
                let Some(session) = state.session(*id) else { continue };
                size += serde_json::to_vec(&session.record).map_or(0, |b| b.len()) + 64;
                if size > LIST_MAX && !answer.sessions.is_empty() {
                    answer.more = true;
                    break;
                }
                answer.sessions.push(shown(session));
            }
            Ok(answer)
        })
        .await?
}

/// The calling session, where a call is about itself by default.
fn itself(who: &Who) -> Result<SessionId, Fault> {
    who.party()?;
    who.session().ok_or_else(|| {
        Fault::new(Kind::InvalidParams, "a person's shell is no session: name one").hint("minder ls")
    })
}

fn check_note(note: Option<&str>) -> Result<(), Fault> {
    limits::text("a note", note, NOTE_MAX).map_err(|fault| match fault.kind {
        Kind::TooLarge => fault.hint("send the whole text as a message: minder send @parent - <<'EOF'"),
        _ => fault,
    })
}

/// A declaration. One that comes late from the spool is told and does not move the session back.
pub(super) async fn declare(ctx: &Context, call: Declare, origin: Origin) -> Result<DeclareAnswer, Fault> {
    check_note(call.note.as_deref())?;
    let home = ctx.store.home().clone();
    ctx.store
        .write(move |txn| {
            let who = origin.who(call.caller.as_ref(), txn.state(), &home)?;
            who.party()?;
            let id = match &call.session {
                Some(text) => session::selected_one(txn.state(), &home, text, who.session())?,
                None => itself(&who)?,
            };
            let own = who.session() == Some(id);
            let by = if own { Author::Agent } else { who.author() };
            let scope = who.session().map_or_else(|| "operator".to_owned(), |s| s.to_string());
            let content = (id, call.state, call.note.clone(), call.only_if);
            let run = |txn: &mut Txn<'_>| {
                let record: &SessionRecord = &txn.session(id)?.record;
                let from = record.state;
                if let Some(late) = origin.said().filter(|at| *at < record.state_at) {
                    let note = call.note.map(|n| format!(": {n}")).unwrap_or_default();
                    let text = format!("{} was declared at {late} and came late{note}", call.state);
                    let body = Body::Note { what: "late".to_owned(), text };
                    let seq = txn.append(Party::Session(id), body)?;
                    return Ok(DeclareAnswer { session: id, from, to: from, seq: Some(seq) });
                }
                if let Some(wanted) = call.only_if.filter(|s| *s != from) {
                    return Err(Fault::new(Kind::Conflict, format!("it is {from}, not {wanted}")).about(id));
                }
                let said = origin.said();
                let proof = (own && who.by_operator).then(|| PERSON_AS_SESSION.to_owned());
                let declaration = Declaration { proof, said, ..Declaration::new(call.state, call.note, by) };
                txn.acts(who.session());
                let seq = session::declare(txn, id, declaration)?;
                Ok(DeclareAnswer { session: id, from, to: call.state, seq })
            };
            let scope = format!("{scope}/session.state");
            once(txn, &scope, call.key.as_deref(), &content, run).map(|(answer, _)| answer)
        })
        .await
}

async fn set(ctx: &Context, call: Set, origin: Origin) -> Result<SetAnswer, Fault> {
    let conversation = match (call.harness, call.harness_id) {
        (Some(harness), Some(id)) => Some((harness, id)),
        (None, None) => None,
        _ => return Err(Fault::new(Kind::InvalidParams, "--harness and --harness-id go together")),
    };
    let home = ctx.store.home().clone();
    let answer = ctx
        .store
        .write(move |txn| {
            let who = origin.who(call.caller.as_ref(), txn.state(), &home)?;
            who.party()?;
            let id = session::selected_one(txn.state(), &home, &call.session, who.session())?;
            let parent = match &call.parent {
                Some(text) => Some(session::selected_one(txn.state(), &home, text, who.session())?),
                None => None,
            };
            let record = &txn.session(id)?.record;
            let harness =
                conversation.as_ref().map(|(harness, _)| harness.as_str()).or(record.harness.as_deref());
            let channel = tmux::settle(call.channel, harness, record.process.as_ref())?;
            let env = kept_for_turns(channel.as_ref(), harness, &call.env, &txn.config().turn)?;
            let changes =
                Changes { label: call.label, title: call.title, parent, channel, env, conversation };
            let lines = session::set(txn, id, changes)?;
            Ok(SetAnswer { session: id, changed: lines })
        })
        .await?;
    ctx.delivery.try_now(answer.session);
    Ok(answer)
}

async fn close(ctx: &Context, call: Close, origin: Origin) -> Result<CloseAnswer, Fault> {
    check_note(call.note.as_deref())?;
    let (answer, ours) = ctx
        .store
        .write_on_files(move |txn, files| {
            let who = origin.who(call.caller.as_ref(), txn.state(), files.home())?;
            who.party()?;
            let id = session::selected_one(txn.state(), files.home(), &call.session, who.session())?;
            let by =
                if who.session().is_some() && !who.by_operator { Author::Agent } else { Author::Operator };
            txn.acts(who.session());
            let closed = session::close(txn, files, id, call.note, by, call.recall)?;
            let answer = CloseAnswer {
                session: id,
                label: closed.label,
                dead: closed.dead,
                recalled: closed.recalled,
                left_running: closed.left_running,
            };
            Ok((answer, closed.ours))
        })
        .await?;
    if let Some(process) = ours {
        ctx.launcher.end(process);
    }
    Ok(answer)
}
