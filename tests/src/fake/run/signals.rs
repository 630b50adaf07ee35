//! Signals to `fake run`: blocked everywhere and taken by one thread, which writes each down and then ignores it, runs
//! what the script says, or lets it have its default effect.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use nix::sys::signal::{SigSet, Signal, raise};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use serde_json::json;

use super::Context;
use super::script::Step;

/// What the script wants of them; none: the default effect.
#[derive(Debug, Default)]
pub struct Wanted(Mutex<HashMap<Signal, Vec<Step>>>);

impl Wanted {
    pub fn set(&self, signal: Signal, steps: Vec<Step>) {
        self.0.lock().expect("nobody panics with it").insert(signal, steps);
    }
}

const TAKEN: [Signal; 8] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGALRM,
    Signal::SIGCHLD,
];

/// To be called before there is a second thread.
pub fn take(context: &Arc<Context>) {
    let set: SigSet = TAKEN.into_iter().collect();
    set.thread_block().expect("a set of signals that may be blocked");
    let context = Arc::clone(context);
    std::thread::spawn(move || {
        while let Ok(signal) = set.wait() {
            if signal == Signal::SIGCHLD {
                reap(&context);
                continue;
            }
            let name = signal.as_str().trim_start_matches("SIG");
            context.record.note("signal", json!({ "signal": name }));
            let steps = context.wanted.0.lock().expect("nobody panics with it").get(&signal).cloned();
            match steps {
                Some(steps) => super::run_steps(&context, &steps),
                None => {
                    let this: SigSet = [signal].into_iter().collect();
                    let _ = this.thread_unblock();
                    let _ = raise(signal);
                }
            }
        }
    });
}

/// The status of every child that has ended is written down.
fn reap(context: &Context) {
    loop {
        let (child, code, signal) = match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(pid, code)) => (pid, Some(code), None),
            Ok(WaitStatus::Signaled(pid, signal, _)) => (pid, None, Some(signal.as_str())),
            Ok(WaitStatus::StillAlive) | Err(_) => return,
            Ok(_) => continue,
        };
        context.children.ended(child.as_raw().cast_unsigned(), code);
        context
            .record
            .note("child-ended", json!({ "child": child.as_raw(), "code": code, "signal": signal }));
    }
}
