//! The shim's clocks: the one that stands still in suspend, against the turn's start, and what the other one says more.

use nix::time::{ClockId, clock_gettime};

/// The turn's clock, from its start.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: u64,
    apart: u64,
}

impl Clock {
    /// It is 0 now.
    pub fn start() -> Self {
        let start = running();
        Self { start, apart: since_boot().saturating_sub(start) }
    }

    /// Milliseconds since the start, those of a suspend left out.
    pub fn now(&self) -> u64 {
        running().saturating_sub(self.start)
    }

    /// The boot's running clock at the start, in milliseconds.
    pub fn start_mono_ms(&self) -> u64 {
        self.start
    }

    /// Milliseconds since the start in which the machine was suspended.
    pub fn suspended(&self) -> u64 {
        // The two are read one after the other: what is less than a moment is none.
        let running = running();
        let more = since_boot().saturating_sub(running).saturating_sub(self.apart);
        if more < 10 { 0 } else { more }
    }
}

fn running() -> u64 {
    millis(ClockId::CLOCK_MONOTONIC)
}

#[cfg(target_os = "linux")]
fn since_boot() -> u64 {
    millis(ClockId::CLOCK_BOOTTIME)
}

/// Elsewhere a suspend is not measured.
#[cfg(not(target_os = "linux"))]
fn since_boot() -> u64 {
    running()
}

fn millis(clock: ClockId) -> u64 {
    let time = clock_gettime(clock).expect("a clock that every system has");
    u64::try_from(time.tv_sec()).unwrap_or(0) * 1000 + u64::try_from(time.tv_nsec()).unwrap_or(0) / 1_000_000
}
