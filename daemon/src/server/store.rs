//! `store.*`.

use std::sync::Arc;

use jsonrpsee::RpcModule;
use minder_proto::error::Fault;
use minder_proto::rpc::{Compact, CompactAnswer};
use minder_proto::stamp::Stamp;

use super::context::Context;
use super::method;
use crate::session::{lifetime, retention};

/// Registers the family.
pub fn register(module: &mut RpcModule<Context>) {
    method::register(module, |_: Compact, ctx: Arc<Context>, _| async move { compact(&ctx).await });
}

/// What a daemon does hourly and at a checkpoint, at once.
async fn compact(ctx: &Context) -> Result<CompactAnswer, Fault> {
    let now = Stamp::now();
    lifetime::close_what_is_over(&ctx.store, now).await?;
    let tidied = retention::tidy(&ctx.store, now).await?;
    let compacted = ctx.store.compact().await?;
    Ok(CompactAnswer {
        rewritten: compacted.rewritten,
        shorter: compacted.shorter,
        journal: compacted.journal,
        trashed: tidied.trashed,
        segments: tidied.segments,
    })
}
