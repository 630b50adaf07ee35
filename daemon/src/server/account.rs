//! `account.*`.

use std::sync::Arc;

use jsonrpsee::RpcModule;
use minder_proto::rpc::{AccountList, AccountRelease};

use super::context::{Context, Origin};
use super::method;

/// Registers the family.
pub fn register(module: &mut RpcModule<Context>) {
    method::register(
        module,
        |_: AccountList, ctx: Arc<Context>, _| async move { ctx.delivery.accounts().await },
    );
    method::register(module, |call: AccountRelease, ctx: Arc<Context>, peer| async move {
        let (origin, home) = (Origin::peer(peer), ctx.store.home().clone());
        // Whoever may speak may say that a login works again.
        ctx.store.read(move |state| origin.who(call.caller.as_ref(), state, &home)?.party()).await??;
        ctx.delivery.release(&call.account).await
    });
}
