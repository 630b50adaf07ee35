//! `hello` and `daemon.*`.

use std::sync::Arc;

use jsonrpsee::RpcModule;
use minder_proto::error::{Fault, Kind};
use minder_proto::id::Party;
use minder_proto::queue::Queue;
use minder_proto::rpc::{Hello, HelloAnswer, Status, StatusAnswer, Stop};
use minder_proto::text::{fit, one_line};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::context::Context;
use super::{Peer, Served, method};
use crate::identity::{Ancestry, identify};

/// What these methods know.
#[derive(Clone, Debug)]
pub struct Process {
    /// What this daemon is.
    pub served: Served,
    /// Cancelled to end it.
    pub stop: CancellationToken,
}

/// Registers the methods in a module whose context holds a [`Process`].
pub fn register<X: AsRef<Process> + Send + Sync + 'static>(module: &mut RpcModule<X>) {
    method::register(module, |call: Hello, context: Arc<X>, _: Peer| async move {
        hello(&call, context.as_ref().as_ref())
    });
}

/// Registers the methods that know the store and its turns.
pub fn register_status(module: &mut RpcModule<Context>) {
    method::register(module, |call: Stop, ctx: Arc<Context>, peer: Peer| async move {
        Ok(stop(&ctx, &call, peer))
    });
    method::register(module, |call: Status, ctx: Arc<Context>, peer: Peer| async move {
        status(&ctx, call, Ancestry::of(peer.pid)).await
    });
}

async fn status(ctx: &Context, call: Status, ancestry: Ancestry) -> Result<StatusAnswer, Fault> {
    let (you, sessions, corrupt, waiting, held, operator) = ctx
        .store
        .read(move |state| {
            let you = identify(call.caller.as_ref(), &ancestry, state);
            let queues = || state.sessions().map(|s| &s.inbox.queue);
            let corrupt: Vec<String> = state.all_corrupt().map(|(_, why)| why.clone()).collect();
            let (waiting, held) = (queues().map(Queue::len).sum(), queues().map(Queue::held).sum());
            let operator = state.inbox(Party::Operator).map_or(0, |i| i.queue.len());
            (you, state.sessions().count(), corrupt, waiting, held, operator)
        })
        .await?;
    // After the look, which comes behind every commit that was applied before: what a caller saw is counted.
    let (counters, dead) = (ctx.store.counters(), ctx.delivery.dead());
    let served = &ctx.process.served;
    Ok(StatusAnswer {
        version: served.version.to_owned(),
        protocol: *served.protocol.end(),
        pid: std::process::id(),
        started: ctx.started.at,
        store: served.store.to_string_lossy().into_owned(),
        socket: ctx.started.socket.clone(),
        sessions,
        corrupt,
        waiting,
        held,
        operator,
        dead,
        read_only: counters.read_only,
        commits: counters.commits,
        flushes: counters.flushes,
        journal_bytes: counters.journal_bytes,
        start_ms: ctx.started.took_ms,
        replayed: ctx.started.replayed,
        second_writers: ctx.hooks.second_writers().await?,
        you,
    })
}

impl AsRef<Process> for Process {
    fn as_ref(&self) -> &Process {
        self
    }
}

fn hello(call: &Hello, process: &Process) -> Result<HelloAnswer, Fault> {
    let served = &process.served;
    tracing::debug!(client = fit(&one_line(&call.client), 80), "hello");
    let [min, max] = call.protocol;
    let both = (min.max(*served.protocol.start()), max.min(*served.protocol.end()));
    if both.0 > both.1 {
        return Err(served.misfit(if min > *served.protocol.end() { min } else { max }).unwrap_or_else(
            || Fault::new(Kind::InvalidParams, format!("{min} to {max} is no range of protocols")),
        ));
    }
    Ok(HelloAnswer {
        daemon: "minderd".to_owned(),
        build: served.version.to_owned(),
        protocol: both.1,
        boot_id: boot_id(),
        pid: std::process::id(),
        store: served.store.to_string_lossy().into_owned(),
    })
}

fn stop(ctx: &Context, call: &Stop, peer: Peer) -> Value {
    let stop = ctx.process.stop.clone();
    if call.now {
        tracing::info!(pid = peer.pid, "asked to stop, and to end the turns that run");
        let turns = ctx.turns.clone();
        tokio::spawn(async move {
            turns.end_all().await;
            stop.cancel();
        });
    } else {
        tracing::info!(pid = peer.pid, "asked to stop");
        stop.cancel();
    }
    json!({"pid": std::process::id()})
}

/// The kernel's name for this boot, where it has one.
fn boot_id() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    text.map_or_else(|_| "unknown".to_owned(), |t| t.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_protocol_of_both_is_spoken() {
        let served = Served { store: "/s".into(), protocol: 3..=5, version: "0.1.0" };
        let process = Process { served, stop: CancellationToken::new() };
        let said = |protocol| hello(&Hello { client: "t".into(), protocol }, &process);
        assert_eq!(said([1, 4]).unwrap().protocol, 4);
        assert_eq!(said([4, 9]).unwrap().protocol, 5);
        assert!(said([1, 2]).unwrap_err().message.starts_with("the caller is older"));
        assert!(said([6, 9]).unwrap_err().message.starts_with("the daemon (0.1.0) is older"));
        assert_eq!(said([5, 3]).unwrap_err().kind, Kind::InvalidParams);
    }
}
