//! The `daemon` methods that need nothing but the process: `hello`, `daemon.status`, `daemon.stop`.

use std::time::Instant;

use jsonrpsee::RpcModule;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::Identity;

/// What these methods know.
#[derive(Clone, Debug)]
pub struct Process {
    /// What this daemon is.
    pub identity: Identity,
    /// When it began to serve.
    pub since: Instant,
    /// Cancelled to end it.
    pub stop: CancellationToken,
}

/// The methods.
pub fn methods(process: Process) -> RpcModule<Process> {
    let mut module = RpcModule::new(process);
    let twice = "each name is registered once";
    module.register_method("hello", |_, process, _| hello(process)).expect(twice);
    module.register_method("daemon.status", |_, process, _| status(process)).expect(twice);
    module
        .register_method("daemon.stop", |_, process, _| {
            process.stop.cancel();
            json!({"pid": std::process::id()})
        })
        .expect(twice);
    module
}

fn hello(process: &Process) -> serde_json::Value {
    let identity = &process.identity;
    json!({
        "daemon": identity.version,
        "protocol": [identity.protocol.start(), identity.protocol.end()],
        "pid": std::process::id(),
        "store": identity.store,
    })
}

fn status(process: &Process) -> serde_json::Value {
    json!({
        "version": process.identity.version,
        "pid": std::process::id(),
        "store": process.identity.store,
        "uptime_s": process.since.elapsed().as_secs(),
    })
}
