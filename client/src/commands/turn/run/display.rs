//! What a terminal shows while a turn runs: one line that is drawn again each second, from the files of the turn.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use minder_proto::id::TurnId;
use minder_proto::layout::Home;
use minder_proto::turn::folder::{PROGRESS, Progress, SPEC, Spec};
use minder_proto::turn::policy::Policy;
use minder_proto::whole;

use crate::commands::turn::words::{exact, plural, rough};
use crate::printer::Printer;

/// How often it is drawn.
const EVERY: Duration = Duration::from_secs(1);

/// The line.
pub struct Display {
    folder: PathBuf,
    short: String,
    /// The windows, once the folder is there.
    policy: Option<Policy>,
    next: Instant,
    drawn: bool,
}

impl Display {
    /// For a turn; none where standard error is no terminal.
    pub fn new(home: &Home, id: TurnId, printer: &Printer) -> Option<Self> {
        let next = Instant::now() + EVERY;
        let (folder, short) = (home.turn(id), id.short());
        printer.can_draw().then_some(Self { folder, short, policy: None, next, drawn: false })
    }

    /// How long until it is to be drawn.
    pub fn due(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    /// Draws it, if it is time.
    pub fn draw(&mut self, printer: &Printer) {
        if !self.due().is_zero() {
            return;
        }
        self.next = Instant::now() + EVERY;
        if self.policy.is_none() {
            self.policy = self.read::<Spec>(SPEC).map(|spec| spec.policy);
        }
        let line = match (self.read::<Progress>(PROGRESS), running_clock()) {
            (Some(progress), Some(now)) => line(&self.short, &progress, self.policy.as_ref(), now),
            _ => format!("turn {}", self.short),
        };
        printer.draw(&line);
        self.drawn = true;
    }

    /// Takes it off the terminal.
    pub fn wipe(&mut self, printer: &Printer) {
        if std::mem::take(&mut self.drawn) {
            printer.draw("");
        }
    }

    fn read<T: serde::de::DeserializeOwned>(&self, name: &str) -> Option<T> {
        serde_json::from_slice(whole::read(&self.folder.join(name)).ok()?.trim_ascii()).ok()
    }
}

/// `turn 7be21c09  1m 2s of 45m, silent 3s of 15m, 2 tools open`
fn line(short: &str, progress: &Progress, policy: Option<&Policy>, now: u64) -> String {
    let elapsed = now.saturating_sub(progress.start_mono_ms);
    let of = |window: Option<u64>| match window {
        Some(ms) if ms > 0 => format!(" of {}", exact(ms)),
        _ => String::new(),
    };
    let seconds = |ms: u64| rough(ms / 1_000 * 1_000);
    let mut line = format!(
        "turn {short}  {}{}, silent {}{}",
        seconds(elapsed),
        of(policy.map(|p| p.budget_ms)),
        seconds(elapsed.saturating_sub(progress.progress_ms)),
        of(policy.map(|p| if progress.tools > 0 { p.stall_in_tool_ms } else { p.stall_ms }))
    );
    if progress.tools > 0 {
        line.push_str(&format!(", {} open", plural(u64::from(progress.tools), "tool", "tools")));
    }
    if let Some(trigger) = progress.trigger {
        line.push_str(&format!(", ending: {trigger}"));
    }
    line
}

/// The boot's running clock in milliseconds, as the shim reads it.
fn running_clock() -> Option<u64> {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).ok()?;
    u64::try_from(now.tv_sec())
        .ok()?
        .checked_mul(1_000)?
        .checked_add(u64::try_from(now.tv_nsec()).ok()? / 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_long_and_how_silent_against_what() {
        let progress = Progress { progress_ms: 59_400, start_mono_ms: 1_000, ..Progress::default() };
        let policy = Policy {
            budget_ms: 2_700_000,
            stall_ms: 900_000,
            stall_in_tool_ms: 0,
            grace_ms: 15_000,
            backstop_ms: 60_000,
            exit_wait_ms: 3_000,
            output_max: 1,
            overflow_fails: false,
        };
        let now = 63_500;
        assert_eq!(
            line("7be21c09", &progress, Some(&policy), now),
            "turn 7be21c09  1m 2s of 45m, silent 3.0s of 15m"
        );
        let in_tool = Progress { tools: 2, ..progress.clone() };
        assert_eq!(
            line("7be21c09", &in_tool, Some(&policy), now),
            "turn 7be21c09  1m 2s of 45m, silent 3.0s, 2 tools open"
        );
        let ending = Progress { trigger: Some(minder_proto::turn::names::Trigger::Cancel), ..progress };
        assert_eq!(line("7be21c09", &ending, None, now), "turn 7be21c09  1m 2s, silent 3.0s, ending: cancel");
    }
}
