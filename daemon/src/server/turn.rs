//! `turn.*`.

use std::sync::Arc;

use jsonrpsee::RpcModule;
use minder_proto::caller::Caller as Said;
use minder_proto::error::{Fault, Kind};
use minder_proto::id::{Party, SessionId, TurnId};
use minder_proto::record::SessionRecord;
use minder_proto::rpc::{
    Hold, TurnAnswer, TurnCancel, TurnDone, TurnFinish, TurnGet, TurnList, TurnListAnswer, TurnRun, TurnStart,
};
use minder_proto::turn::Outcome;
use minder_proto::turn::folder::{Purpose, Spec};
use minder_proto::turn::names::Trigger;
use uuid::Uuid;

use super::context::{Context, Origin};
use super::{Peer, method};
use crate::identity::Who;
use crate::session;
use crate::turn::{Caller, Input, Known, Request, Started};

/// Registers the family.
pub fn register(module: &mut RpcModule<Context>) {
    method::register(module, |call: TurnRun, ctx: Arc<Context>, peer| async move {
        let conn = peer.conn;
        run(&ctx, call, Origin::peer(peer), conn).await
    });
    method::register(module, |call: TurnStart, ctx: Arc<Context>, peer| async move {
        let conn = peer.conn;
        start(&ctx, call.0, Origin::peer(peer), conn).await
    });
    method::register(
        module,
        |call: TurnGet, ctx: Arc<Context>, peer| async move { get(&ctx, call, peer).await },
    );
    method::register(module, |_: TurnList, ctx: Arc<Context>, _| async move {
        Ok(TurnListAnswer { turns: ctx.turns.list().await })
    });
    method::register(module, |call: TurnCancel, ctx: Arc<Context>, peer| async move {
        let known = theirs(&ctx, call.caller, peer, &call.id).await?;
        ctx.turns.cancel(&known, Trigger::Cancel).await
    });
    method::register(module, |call: TurnFinish, ctx: Arc<Context>, peer| async move {
        finish(&ctx, call, peer).await
    });
}

async fn run(ctx: &Context, call: TurnRun, origin: Origin, conn: u64) -> Result<TurnAnswer, Fault> {
    let caller = if call.hold == Hold::Id { Caller::Elsewhere } else { Caller::On(conn) };
    let request = request(ctx, call, origin, caller).await?;
    match ctx.turns.start(request).await? {
        Started::Live(turn) => unless_stopped(ctx, ctx.turns.answer(&turn)).await,
        Started::Over(answer) => Ok(*answer),
    }
}

async fn start(ctx: &Context, call: TurnRun, origin: Origin, conn: u64) -> Result<TurnAnswer, Fault> {
    let caller = if call.hold == Hold::Connection { Caller::On(conn) } else { Caller::Elsewhere };
    let request = request(ctx, call, origin, caller).await?;
    match ctx.turns.start(request).await? {
        Started::Live(turn) => unless_stopped(ctx, ctx.turns.begun(&turn)).await,
        Started::Over(answer) => Ok(*answer),
    }
}

async fn get(ctx: &Context, call: TurnGet, peer: Peer) -> Result<TurnAnswer, Fault> {
    match ctx.turns.find(&call.id).await? {
        Known::Over { answer, .. } => Ok(*answer),
        Known::Live(turn) if call.wait => {
            // Anybody may wait; it is held for who may name its outcome.
            let conn = peer.conn;
            if judge(ctx, call.caller, peer, &turn.spec).await.is_ok() {
                ctx.turns.attach(&turn, conn);
            }
            unless_stopped(ctx, ctx.turns.answer(&turn)).await
        }
        Known::Live(turn) => Ok(turn.answer()),
    }
}

async fn finish(ctx: &Context, call: TurnFinish, peer: Peer) -> Result<TurnDone, Fault> {
    let known = theirs(ctx, call.caller, peer, &call.id).await?;
    if matches!(known.spec().purpose, Purpose::Queue { .. }) {
        let why = "a turn of a session's queue ends with the delivery of its reply";
        return Err(Fault::new(Kind::InvalidState, why));
    }
    ctx.turns.finish(&known, call.outcome.parse().unwrap_or(Outcome::Unknown)).await
}

/// A stop must not wait for this call; the client asks the next daemon.
async fn unless_stopped(
    ctx: &Context,
    answer: impl Future<Output = Result<TurnAnswer, Fault>>,
) -> Result<TurnAnswer, Fault> {
    tokio::select! {
        answer = answer => answer,
        () = ctx.process.stop.cancelled() => Err(Fault::new(Kind::Unavailable, "the daemon is going down")),
    }
}

/// A turn that its caller may act on: the person's, its session's, that of who asked for it, and of a parent of either.
async fn theirs(ctx: &Context, caller: Option<Said>, peer: Peer, end: &str) -> Result<Known, Fault> {
    let known = ctx.turns.find(end).await?;
    // Whose connection it is held for was judged when it was: nothing is asked of the kernel again.
    let own = matches!(&known, Known::Live(turn) if turn.caller() == Caller::On(peer.conn));
    if !own {
        judge(ctx, caller, peer, known.spec()).await?;
    }
    Ok(known)
}

async fn judge(ctx: &Context, caller: Option<Said>, peer: Peer, spec: &Spec) -> Result<(), Fault> {
    let (home, spec, origin) = (ctx.store.home().clone(), spec.clone(), Origin::peer(peer));
    ctx.store
        .glance(move |state| {
            let who = origin.who(caller.as_ref(), state, &home)?;
            let parent = |id| state.session(id).and_then(|s| s.record.parent);
            may(&who, &spec, parent)
        })
        .await?
}

fn may(who: &Who, spec: &Spec, parent: impl Fn(SessionId) -> Option<SessionId>) -> Result<(), Fault> {
    let Party::Session(me) = who.party()? else { return Ok(()) };
    let mut theirs = [spec.session, spec.by].into_iter().flatten();
    if theirs.any(|id| id == me || parent(id) == Some(me)) {
        return Ok(());
    }
    Err(Fault::new(Kind::NotOwner, format!("turn {} is not yours", spec.turn.short())))
}

/// What the runner is asked, from what was said and from what the store knows of the caller and the session.
async fn request(ctx: &Context, call: TurnRun, origin: Origin, caller: Caller) -> Result<Request, Fault> {
    let home = ctx.store.home().clone();
    let (said, selector) = (call.caller.clone(), call.session.clone());
    let (by, record) = ctx
        .store
        .glance(move |state| {
            let who = origin.who(said.as_ref(), state, &home)?;
            let me = who.party()?.session();
            let Some(selector) = selector else { return Ok::<_, Fault>((me, None)) };
            let id = session::selected_one(state, &home, &selector, who.session())?;
            let found = state.session(id);
            let record = found
                .map(|s| s.record.clone())
                .ok_or_else(|| Fault::new(Kind::Gone, format!("session {} is gone", id.short())).about(id))?;
            if let Some(me) = me
                && me != id
                && record.parent != Some(me)
            {
                let why = "a turn of a session is run by itself, its parent, or its person";
                return Err(Fault::new(Kind::NotOwner, why).about(id));
            }
            Ok((me, Some(record)))
        })
        .await??;
    from_call(call, by, record.as_ref(), caller)
}

fn from_call(
    call: TurnRun,
    by: Option<SessionId>,
    record: Option<&SessionRecord>,
    caller: Caller,
) -> Result<Request, Fault> {
    let bad = |why: &str| Fault::new(Kind::InvalidParams, why);
    let adapter = match (call.adapter, call.argv.is_empty()) {
        (Some(adapter), _) => adapter,
        (None, false) => "command".to_owned(),
        (None, true) => record
            .and_then(|r| r.harness.clone())
            .ok_or_else(|| bad("which adapter, or which program, is to run?"))?,
    };
    let program = (adapter == "command").then(|| call.argv.first()).flatten();
    let program = program.map(|program| program.rsplit('/').next().unwrap_or(program).to_owned());
    let seat = call.seat.or_else(|| record.map(|r| r.label.clone())).or(program);
    let dir = call.dir.or_else(|| record.map(|r| r.dir.clone()));
    let dir = dir.or_else(|| call.caller.and_then(|c| c.dir)).ok_or_else(|| bad("in which directory?"))?;
    // A conversation of this very harness is gone on with.
    let conversation = record.and_then(|r| r.live_binding()).filter(|b| b.harness == adapter);
    Ok(Request {
        turn: call.turn.unwrap_or_else(TurnId::now),
        seat: seat.unwrap_or_else(|| adapter.clone()),
        session: record.map(|r| r.id),
        by,
        event_type: call.event_type,
        purpose: match call.hold {
            Hold::No => Purpose::Caller,
            Hold::Connection => Purpose::Connection,
            Hold::Id => Purpose::Held,
        },
        caller,
        empty_is_silent: call.empty_is_silent,
        policy: call.policy,
        budget_ms: None,
        input: call.prompt.map_or(Input::None, Input::Text),
        argv: call.argv,
        conversation: conversation.map(|b| b.id.clone()),
        fresh: Uuid::new_v4(),
        dir,
        env: call.env,
        adapter,
    })
}

#[cfg(test)]
mod tests {
    use minder_proto::caller::Identity;

    use super::*;

    #[test]
    fn the_person_the_session_who_asked_and_a_parent_may_act() {
        let [session, asker, parent, stranger] = [(); 4].map(|()| SessionId::random());
        let spec = Spec { session: Some(session), by: Some(asker), ..crate::turn::samples::spec("api") };
        let above = |id| (id == session).then_some(parent);
        let as_session =
            |id| may(&Who { identity: Identity::Session { id }, by_operator: false }, &spec, above);
        for id in [session, asker, parent] {
            as_session(id).unwrap();
        }
        assert_eq!(as_session(stranger).unwrap_err().kind, Kind::NotOwner);
        may(&Who { identity: Identity::Operator, by_operator: true }, &spec, above).unwrap();
        let nobody = Identity::Unregistered { harness: "claude".into(), harness_id: "x".into() };
        let refused = may(&Who { identity: nobody, by_operator: false }, &spec, above).unwrap_err();
        assert_eq!(refused.kind, Kind::Refused);
    }
}
