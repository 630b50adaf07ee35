//! `host enable` and `host disable`.

use minder_proto::error::exit;
use minder_proto::rpc::HostSwitch;

use crate::cli::Outcome;
use crate::context::Context;
use crate::link::as_caller;

/// Turns a host on or off.
pub fn run(session: Option<String>, enabled: bool, context: &mut Context) -> Outcome {
    let switch = HostSwitch { caller: as_caller(&context.caller), session, enabled };
    let answer = context.daemon()?.call(&switch)?;
    if context.printer.is_json() {
        context.printer.object(&answer)?;
    } else {
        let state = match (answer.enabled, answer.already) {
            (true, false) => "on: it is woken for what its sessions come to; minder host drain shows it",
            (true, true) => "on already",
            (false, false) => "off: news comes as ordinary messages",
            (false, true) => "off already",
        };
        context.printer.line(format!("host of {} ({}): {state}", answer.label, answer.session.short()))?;
    }
    Ok(exit::OK)
}
