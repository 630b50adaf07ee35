//! `watch.*`.

use std::sync::Arc;

use jsonrpsee::RpcModule;
use minder_proto::error::{Fault, Kind};
use minder_proto::id::SessionId;
use minder_proto::rpc::{
    WatchAdd, WatchAddAnswer, WatchCancel, WatchCancelAnswer, WatchList, WatchListAnswer, WatchRow,
};

use super::context::{Context, Origin};
use super::method;
use crate::identity::Who;
use crate::{session, watch};

/// Registers the family.
pub fn register(module: &mut RpcModule<Context>) {
    method::register(module, |call: WatchAdd, ctx: Arc<Context>, peer| async move {
        add(&ctx, call, Origin::peer(peer)).await
    });
    method::register(module, |call: WatchCancel, ctx: Arc<Context>, peer| async move {
        cancel(&ctx, call, Origin::peer(peer)).await
    });
    method::register(module, |call: WatchList, ctx: Arc<Context>, peer| async move {
        list(&ctx, call, Origin::peer(peer)).await
    });
}

/// The caller, who must have an address of their own.
fn governed(who: &Who, instead: &str) -> Result<SessionId, Fault> {
    who.party()?;
    who.session().ok_or_else(|| {
        Fault::new(Kind::Refused, "this shell has no address that a notice could be sent to").hint(instead)
    })
}

async fn add(ctx: &Context, call: WatchAdd, origin: Origin) -> Result<WatchAddAnswer, Fault> {
    let home = ctx.store.home().clone();
    ctx.store
        .write(move |txn| {
            let who = origin.who(call.caller.as_ref(), txn.state(), &home)?;
            let watcher = governed(&who, &format!("minder session wait {}", call.sessions))?;
            let targets = session::selected(txn.state(), &home, &call.sessions, Some(watcher))?;
            Ok(WatchAddAnswer { watched: watch::add(txn, watcher, &targets, call.states)? })
        })
        .await
}

async fn cancel(ctx: &Context, call: WatchCancel, origin: Origin) -> Result<WatchCancelAnswer, Fault> {
    let home = ctx.store.home().clone();
    ctx.store
        .write(move |txn| {
            let who = origin.who(call.caller.as_ref(), txn.state(), &home)?;
            let watcher = governed(&who, "minder --as SEL watch cancel …")?;
            let targets = session::selected(txn.state(), &home, &call.sessions, Some(watcher))?;
            Ok(WatchCancelAnswer { cancelled: watch::cancel(txn, watcher, &targets)? })
        })
        .await
}

async fn list(ctx: &Context, call: WatchList, origin: Origin) -> Result<WatchListAnswer, Fault> {
    let home = ctx.store.home().clone();
    ctx.store
        .read(move |state| {
            let who = origin.who(call.caller.as_ref(), state, &home)?;
            let of = match &call.of {
                Some(text) => Some(session::selected_one(state, &home, text, who.session())?),
                None => None,
            };
            let me = who.session();
            let mut rows: Vec<WatchRow> = state
                .sessions()
                .filter(|s| of.is_none_or(|of| s.record.id == of))
                .flat_map(|s| {
                    s.watchers.iter().filter(move |w| of.is_some() || Some(w.watcher) == me).map(|w| {
                        WatchRow { target: s.record.id, label: s.record.label.clone(), relation: w.clone() }
                    })
                })
                .collect();
            rows.sort_by(|a, b| a.label.cmp(&b.label).then(a.relation.since.cmp(&b.relation.since)));
            Ok(WatchListAnswer { rows })
        })
        .await?
}
