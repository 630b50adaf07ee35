//! What `turn run` exits with: as `timeout` would.

use minder_proto::error::exit;
use minder_proto::rpc::Settled;
use minder_proto::turn::{Failure, Outcome};

use crate::follow::Signal;

/// A window was over.
const TIMED_OUT: u8 = 124;
/// A fault of minder's.
pub const FAULT: u8 = 125;
/// The program cannot be executed.
pub const NOT_EXECUTABLE: u8 = 126;
/// There is no such program.
pub const NOT_FOUND: u8 = 127;
/// What the number of a signal is added to.
const SIGNALLED: i32 = 128;
/// The number that ends a program which writes to nobody.
const SIGPIPE: i32 = 13;
/// The number that asks a program to end.
const SIGTERM: i32 = 15;

/// The exit of a turn that is settled; `said` is the signal that ended it by way of this process.
pub fn of(settled: &Settled, said: Option<Signal>) -> u8 {
    match settled.failure {
        Some(Failure::Cancelled) => said.map_or(signalled(SIGTERM), Signal::exit),
        Some(Failure::Stall | Failure::WallClock | Failure::AdapterTimeout) => TIMED_OUT,
        Some(Failure::SpawnFailed | Failure::CwdMissing | Failure::SupervisorLost) => FAULT,
        Some(Failure::NotExecutable) => NOT_EXECUTABLE,
        Some(Failure::NotFound) => NOT_FOUND,
        Some(_) => own(settled).unwrap_or(exit::NO),
        None if settled.outcome == Some(Outcome::UpstreamRefused) => own(settled).unwrap_or(exit::NO),
        // It succeeded, and its output is gone before it was written.
        None if settled.outcome == Some(Outcome::ReplyLost) => FAULT,
        None => own(settled).unwrap_or(exit::OK),
    }
}

/// The exit where nobody reads the output: what such a program dies of.
pub fn unread() -> u8 {
    signalled(SIGPIPE)
}

/// The program's own, where it is not 0.
fn own(settled: &Settled) -> Option<u8> {
    match (settled.signal_number, settled.exit_code) {
        (Some(number), _) => Some(signalled(number)),
        (None, Some(code)) => u8::try_from(code & 0xff).ok().filter(|code| *code != 0),
        (None, None) => None,
    }
}

fn signalled(number: i32) -> u8 {
    u8::try_from(SIGNALLED + number).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_exits() {
        use Failure as F;
        let of = |failure, code, signal: Option<i32>, said| {
            let settled = serde_json::json!({"failure": failure, "exit_code": code, "signal_number": signal,
                "killed": false, "late": false, "duration_ms": 1});
            of(&serde_json::from_value(settled).unwrap(), said)
        };
        let none: Option<Failure> = None;
        for (failure, code, signal, said, expected) in [
            (none, Some(0), None, None, 0),
            (none, None, None, None, 0),
            // What ended well before it was told to end has ended well.
            (none, Some(0), None, Some(Signal::Interrupt), 0),
            (Some(F::AdapterExit), Some(3), None, None, 3),
            (Some(F::AdapterExit), Some(0), None, None, 1),
            (Some(F::AdapterExit), Some(255), None, None, 255),
            (Some(F::AdapterExit), None, Some(9), None, 137),
            (Some(F::AdapterExit), None, Some(15), None, 143),
            (Some(F::AdapterResult), Some(0), None, None, 1),
            (Some(F::AdapterError), Some(0), None, None, 1),
            (Some(F::UpstreamRefused), Some(0), None, None, 1),
            (Some(F::UpstreamRefused), Some(7), None, None, 7),
            (Some(F::Stall), None, Some(9), None, 124),
            (Some(F::Stall), Some(0), None, None, 124),
            (Some(F::WallClock), None, Some(9), None, 124),
            (Some(F::AdapterTimeout), None, Some(15), None, 124),
            (Some(F::Cancelled), None, Some(9), None, 143),
            (Some(F::Cancelled), Some(0), None, None, 143),
            (Some(F::Cancelled), None, Some(9), Some(Signal::Interrupt), 130),
            (Some(F::Cancelled), None, Some(9), Some(Signal::Terminate), 143),
            (Some(F::Cancelled), None, Some(9), Some(Signal::Hangup), 129),
            (Some(F::SpawnFailed), None, None, None, 125),
            (Some(F::CwdMissing), None, None, None, 125),
            (Some(F::SupervisorLost), None, None, None, 125),
            (Some(F::NotExecutable), None, None, None, 126),
            (Some(F::NotFound), None, None, None, 127),
            (Some(F::OutputOverflow), None, Some(9), None, 137),
            (Some(F::OutputOverflow), Some(0), None, None, 1),
        ] {
            assert_eq!(of(failure, code, signal, said), expected, "{failure:?} {code:?} {signal:?} {said:?}");
        }
        for failure in F::ALL {
            assert_ne!(of(Some(*failure), Some(0), None, None), 0, "{failure} is no success");
        }
        assert_eq!(unread(), 141);
    }

    #[test]
    fn a_refusal_is_no_success() {
        let settled = serde_json::json!({"outcome": "upstream_refused", "exit_code": 0, "killed": false,
            "late": false, "duration_ms": 1});
        assert_eq!(of(&serde_json::from_value(settled).unwrap(), None), 1);
    }

    #[test]
    fn an_output_that_was_lost_is_no_success() {
        let settled = serde_json::json!({"outcome": "reply_lost", "exit_code": 0, "killed": false,
            "late": false, "duration_ms": 1});
        assert_eq!(of(&serde_json::from_value(settled).unwrap(), None), 125);
    }
}
