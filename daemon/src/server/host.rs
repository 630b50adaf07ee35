//! `host.*`.

use std::sync::Arc;

use jsonrpsee::RpcModule;
use minder_proto::caller::Caller;
use minder_proto::error::{Fault, Kind};
use minder_proto::id::SessionId;
use minder_proto::layout::Home;
use minder_proto::rpc::{
    HostAck, HostDrain, HostDrained, HostDrainedAnswer, HostStatus, HostSwitch, HostSwitchAnswer,
};

use super::context::{Context, Origin};
use super::method;
use crate::host;
use crate::session;
use crate::store::State;

/// Registers the family.
pub fn register(module: &mut RpcModule<Context>) {
    method::register(module, |call: HostSwitch, ctx: Arc<Context>, peer| async move {
        switch(&ctx, call, Origin::peer(peer)).await
    });
    method::register(module, |call: HostStatus, ctx: Arc<Context>, peer| async move {
        let (origin, this) = (Origin::peer(peer), Arc::clone(&ctx));
        ctx.store
            .read(move |state| {
                let home = this.store.home();
                let who = origin.who(call.caller.as_ref(), state, home)?;
                let id = named(state, home, call.session.as_deref(), who.session())?;
                host::status::status(&this.store, state, id, this.delivery.has_waiter(id))
            })
            .await?
    });
    method::register(module, |call: HostDrain, ctx: Arc<Context>, peer| async move {
        let (origin, home) = (Origin::peer(peer), ctx.store.home().clone());
        ctx.store
            .write(move |txn| {
                let id = own(txn.state(), &home, &origin, call.caller.as_ref(), call.session.as_deref())?;
                host::drain::drain(txn, id)
            })
            .await
    });
    method::register(module, |call: HostDrained, ctx: Arc<Context>, peer| async move {
        let (origin, home) = (Origin::peer(peer), ctx.store.home().clone());
        ctx.store
            .write(move |txn| {
                let id = own(txn.state(), &home, &origin, call.caller.as_ref(), call.session.as_deref())?;
                host::drain::drained(txn, id, &call)?;
                Ok(HostDrainedAnswer {})
            })
            .await
    });
    method::register(module, |call: HostAck, ctx: Arc<Context>, peer| async move {
        let (origin, home) = (Origin::peer(peer), ctx.store.home().clone());
        ctx.store
            .write(move |txn| {
                let id = own(txn.state(), &home, &origin, call.caller.as_ref(), call.session.as_deref())?;
                host::drain::ack(txn, id, call.through, call.generation)
            })
            .await
    });
}

async fn switch(ctx: &Arc<Context>, call: HostSwitch, origin: Origin) -> Result<HostSwitchAnswer, Fault> {
    let (home, this) = (ctx.store.home().clone(), Arc::clone(ctx));
    ctx.store
        .write(move |txn| {
            let who = origin.who(call.caller.as_ref(), txn.state(), &home)?;
            who.party()?;
            let id = match (&call.session, who.session()) {
                // A host that is not there yet is nobody's only one.
                (None, None) if call.enabled => {
                    return Err(
                        Fault::new(Kind::InvalidParams, "which session?").hint("minder host enable SEL")
                    );
                }
                (None, Some(me)) => me,
                (text, me) => named(txn.state(), &home, text.as_deref(), me)?,
            };
            may(&who, id)?;
            this.hosts.switched(id, call.enabled);
            let changed =
                if call.enabled { host::switch::enable(txn, id) } else { host::switch::disable(txn, id) }?;
            let label = txn.session(id)?.record.label.clone();
            Ok(HostSwitchAnswer { session: id, label, enabled: call.enabled, already: !changed })
        })
        .await
}

/// A host is its primary's, and the person's.
fn may(who: &crate::identity::Who, id: SessionId) -> Result<(), Fault> {
    who.party()?;
    if who.by_operator || who.session() == Some(id) {
        return Ok(());
    }
    Err(Fault::new(Kind::Refused, format!("the host of {} is its primary's and your user's", id.short())))
}

/// The host that a caller means and that is its own.
fn own(
    state: &State,
    home: &Home,
    origin: &Origin,
    caller: Option<&Caller>,
    text: Option<&str>,
) -> Result<SessionId, Fault> {
    let who = origin.who(caller, state, home)?;
    let id = named(state, home, text, who.session())?;
    may(&who, id)?;
    if state.host(id).is_none() {
        return Err(
            Fault::new(Kind::NotFound, format!("{} has no host", id.short())).hint("minder host enable")
        );
    }
    Ok(id)
}

/// The session that is named, else the caller where it is a primary, else the only one there is.
fn named(state: &State, home: &Home, text: Option<&str>, me: Option<SessionId>) -> Result<SessionId, Fault> {
    if let Some(text) = text {
        return session::selected_one(state, home, text, me);
    }
    if let Some(me) = me {
        return Ok(me);
    }
    let on: Vec<SessionId> =
        state.hosts().filter(|(_, host)| host.record.enabled).map(|(id, _)| id).collect();
    match on.as_slice() {
        [one] => Ok(*one),
        [] => Err(Fault::new(Kind::NotFound, "no session has a host").hint("minder host enable SEL")),
        many => {
            let labels: Vec<&str> =
                many.iter().filter_map(|id| state.session(*id)).map(|s| s.record.label.as_str()).collect();
            Err(Fault::new(Kind::InvalidParams, format!("which one? there are {}", labels.join(", "))))
        }
    }
}
