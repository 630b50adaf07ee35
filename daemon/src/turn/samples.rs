//! A turn for tests.

use std::path::PathBuf;

use minder_proto::config;
use minder_proto::id::TurnId;
use minder_proto::stamp::Stamp;
use minder_proto::turn::Outcome;
use minder_proto::turn::folder::{Found, Limits, Purpose, Spec};
use minder_proto::turn::line::{Line, Usage, Verdict};
use minder_proto::turn::policy::{Asked, resolve};

/// What a shim is told.
pub fn spec(seat: &str) -> Spec {
    Spec {
        turn: TurnId::now(),
        seat: seat.to_owned(),
        adapter: "command".to_owned(),
        session: None,
        by: None,
        event_type: None,
        purpose: Purpose::Caller,
        asked: Stamp::from_millis(1_796_040_000_000),
        boot: crate::identity::boot_id().unwrap_or_default().to_owned(),
        argv: vec!["true".to_owned()],
        heal: None,
        dir: PathBuf::from("/").display().to_string(),
        prompt: false,
        policy: resolve("command", Asked::default(), None, |_| None, &config::Turn::default()).policy,
        rules: None,
        stderr_is_progress: false,
        cancel_signal: None,
        budget_signal: 15,
        limits: Limits::default(),
    }
}

/// A line of a turn that went well.
pub fn line(seat: &str) -> Line {
    let verdict =
        Verdict { outcome: Outcome::Delivered, failure: None, class: None, usage: Usage::default() };
    let found = Found { exit_code: Some(0), exit_observed: true, ..Found::default() };
    Line::of(&spec(seat), &found, &verdict, 0, Stamp::from_millis(1_796_040_001_000))
}
