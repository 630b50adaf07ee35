//! `hook.*`: one round trip for a hook, and the long call of a waiter.

use std::sync::Arc;

use jsonrpsee::RpcModule;
use minder_proto::error::{Fault, Kind};
use minder_proto::rpc::{Adopt, HookAnswer, HookEvent, HookWait};

use super::context::Context;
use super::method;
use crate::hook;
use crate::identity::{Ancestry, has_ended};

/// Registers the family.
pub fn register(module: &mut RpcModule<Context>) {
    method::register(module, |call: HookEvent, ctx: Arc<Context>, peer| async move {
        // A hook that waited too long has left its event in the spool, and nobody reads what it would be given.
        if peer.pid.is_some_and(has_ended) {
            return Ok(HookAnswer::default());
        }
        event(&ctx, call, hook::Origin::Peer(peer.ancestry())).await
    });
    method::register(module, |call: Adopt, ctx: Arc<Context>, _| async move {
        let ancestry = Ancestry::of(Some(call.pid));
        ctx.hooks.adopt(call, ancestry).await
    });
    method::register(module, |call: HookWait, ctx: Arc<Context>, peer| async move {
        tokio::select! {
            answer = ctx.hooks.wait(call, peer.ancestry()) => answer,
            () = ctx.process.stop.cancelled() => Err(Fault::new(Kind::Unavailable, "the daemon is going down")),
        }
    });
}

/// One event.
pub(super) async fn event(ctx: &Context, call: HookEvent, origin: hook::Origin) -> Result<HookAnswer, Fault> {
    ctx.hooks.event(call, origin).await
}
