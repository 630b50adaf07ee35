//! What a shim that stands ready does beforehand with a turn that is none: a copy of the server begins without the program's
//! code, and the kernel maps that where it is run first, which would be in the time of the turn.

use minder_proto::id::TurnId;
use minder_proto::stamp::Stamp;
use minder_proto::turn::folder::{Found, Limits, News, Purpose, Spec};
use minder_proto::turn::policy::Policy;
use nix::libc::SIGTERM;

use super::machine::{Event, Machine, Rules};
use super::server::Wanted;
use super::start;

/// A path below a file: there is never a program.
const NO_PROGRAM: &str = "/dev/null/none";

/// Goes the way from the order to the start of a program that is not there. What comes of it is nobody's.
pub fn rehearse() {
    let spec = Box::new(spec());
    let wanted = Wanted::Turn { folder: "/".into(), environment: Vec::new(), spec: Some(spec) };
    let said = serde_json::to_vec(&wanted).expect("plain data");
    let Ok(Wanted::Turn { spec: Some(spec), .. }) = serde_json::from_slice(&said) else { return };
    let begun = Stamp::now();
    drop(start::start(&spec, &spec.argv, begun));
    let mut machine = Machine::new(Rules::of(&spec, true));
    for event in [Event::Spawned(1), Event::RootExited { code: Some(0), signal: None }] {
        drop(machine.on(event, 0));
    }
    let found = Found { started: Some(begun), ..machine.found().clone() };
    drop(serde_json::to_vec(&News::Settled { found: Some(Box::new(found)) }));
}

fn spec() -> Spec {
    Spec {
        turn: TurnId::now(),
        seat: String::new(),
        adapter: String::new(),
        session: None,
        by: None,
        event_type: None,
        purpose: Purpose::Caller,
        empty_is_silent: false,
        asked: Stamp::now(),
        boot: String::new(),
        argv: vec![NO_PROGRAM.to_owned()],
        heal: None,
        dir: "/".to_owned(),
        prompt: false,
        policy: Policy {
            budget_ms: 1,
            stall_ms: 0,
            stall_in_tool_ms: 0,
            grace_ms: 0,
            backstop_ms: 1,
            exit_wait_ms: 0,
            output_max: 0,
            overflow_fails: false,
        },
        rules: None,
        stderr_is_progress: false,
        cancel_signal: None,
        budget_signal: SIGTERM,
        limits: Limits::default(),
    }
}
