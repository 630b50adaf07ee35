//! Requests that were left in the spool, by method: the same functions that serve the socket, with another origin.

use minder_proto::error::{Fault, Kind};
use minder_proto::id::Party;
use minder_proto::rpc::{self, Call, Spooled};
use serde::de::DeserializeOwned;

use super::context::{Context, Origin};
use super::{message, session};
use crate::hook;

fn parse<C: DeserializeOwned>(params: serde_json::Value) -> Result<C, Fault> {
    serde_json::from_value(params).map_err(|e| Fault::new(Kind::InvalidParams, e.to_string()))
}

/// The line that a request stands in: a sender's messages to one recipient are given in the order in which they were
/// sent. Only a message can find a queue full; one of which sender or recipient are not known will be refused.
pub async fn line(ctx: &Context, spooled: Spooled) -> Option<String> {
    if spooled.method != rpc::Send::METHOD {
        return None;
    }
    let call: rpc::Send = parse(spooled.params).ok()?;
    let replies_to = match &call.reply_to {
        Some(end) => Some(ctx.delivery.receipt(ctx.find_message(end).await.ok()?).await.ok()?.from),
        None => None,
    };
    let origin = Origin::Spooled { at: spooled.at, ready: ctx.started.ready.get().copied() };
    let home = ctx.store.home().clone();
    let parties = ctx.store.read(move |state| {
        let who = origin.who(call.caller.as_ref(), state, &home).ok()?;
        let to = match call.to.as_deref() {
            Some("@operator") => Party::Operator,
            Some(text) => {
                Party::Session(crate::session::selected_one(state, &home, text, who.session()).ok()?)
            }
            None => replies_to?,
        };
        Some(format!("{} {to}", who.party().ok()?))
    });
    parties.await.ok()?
}

/// Applies one, so that a second try repeats nothing: by its own key where it has one, by its file's name elsewhere. Its
/// own key guards against what its sender does again by another way, too.
pub async fn apply(ctx: &Context, spooled: Spooled, key: String) -> Result<(), Fault> {
    let origin = Origin::Spooled { at: spooled.at, ready: ctx.started.ready.get().copied() };
    match spooled.method.as_str() {
        rpc::Declare::METHOD => {
            let mut call: rpc::Declare = parse(spooled.params)?;
            call.key.get_or_insert(key);
            session::declare(ctx, call, origin).await.map(|_| ())
        }
        rpc::Send::METHOD => {
            let mut call: rpc::Send = parse(spooled.params)?;
            call.key.get_or_insert(key);
            message::send(ctx, call, origin).await.map(|_| ())
        }
        rpc::Ack::METHOD => message::ack(ctx, parse(spooled.params)?, origin).await.map(|_| ()),
        rpc::HookEvent::METHOD => {
            let mut call: rpc::HookEvent = parse(spooled.params)?;
            if call.key.is_empty() {
                call.key = key;
            }
            super::hook::event(ctx, call, hook::Origin::Spooled(spooled.at)).await.map(|_| ())
        }
        other => Err(Fault::new(Kind::InvalidParams, format!("{other:?} is not taken from the spool"))),
    }
}
