//! Signals that this process was told to ignore. `nohup` and a shell's `&` hand that down to every program that a test
//! starts, and such a program is right not to end by them.
#![allow(unsafe_code)]

use nix::sys::signal::{SigHandler, Signal, signal};

/// Gives the signals of a terminal their default effect, here and in what is started from now on.
pub fn reset() {
    for number in [Signal::SIGINT, Signal::SIGQUIT, Signal::SIGHUP] {
        // SAFETY: no handler is installed or removed that code of ours relies on: the default effect runs no code.
        unsafe { signal(number, SigHandler::SigDfl) }.expect("a signal that may be handled");
    }
}
