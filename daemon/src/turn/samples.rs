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
        empty_is_silent: false,
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

mod property {
    use std::collections::BTreeSet;

    use minder_proto::turn::folder::{Heal, Survivor};
    use minder_proto::turn::line::SignalName;
    use minder_proto::turn::names::{Class, Failure, Source};
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    /// True for a value that can say nothing but what it is for.
    fn is_plain(name: &str, value: &Value) -> bool {
        let Value::String(text) = value else { return !value.is_object() && !value.is_array() };
        let words = || -> BTreeSet<&str> {
            let outcomes = Outcome::ALL.iter().map(|w| w.as_str());
            let failures = Failure::ALL.iter().map(|w| w.as_str());
            let classes = Class::ALL.iter().map(|w| w.as_str());
            let sources = Source::ALL.iter().map(|w| w.as_str());
            outcomes.chain(failures).chain(classes).chain(sources).chain(["supervised"]).collect()
        };
        let cleaned = |most: usize| {
            text.len() <= most && text.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c))
        };
        match name {
            "seat" => cleaned(64),
            "adapter" => cleaned(32),
            "eventType" => cleaned(40),
            "ts" | "turnStart" | "turnEnd" => text.parse::<Stamp>().is_ok(),
            "turn" | "session" => text.parse::<TurnId>().is_ok(),
            "signal" => SignalName::try_from(text.clone()).is_ok(),
            _ => words().contains(text.as_str()),
        }
    }

    proptest! {
        /// M6: whatever was said, asked, given or failed, no byte of it reaches the line.
        #[test]
        fn no_text_reaches_the_line(
            texts in prop::collection::vec("\\PC{1,40}", 9),
            numbers in prop::collection::vec(any::<u32>(), 6),
            outcome in prop::sample::select(Outcome::ALL),
            failure in prop::option::of(prop::sample::select(Failure::ALL)),
        ) {
            // No text of a caller has these by chance, and no word, number or id of a line has them at all.
            let text = |n: usize| format!("\u{1F510}{}\u{1F510}", texts[n]);
            let mut spec = spec(&text(0));
            spec.adapter = text(1);
            spec.event_type = Some(text(2));
            spec.argv = vec![text(3), text(4)];
            spec.heal = Some(Heal { texts: vec![text(5)], argv: vec![text(6)] });
            spec.dir = format!("/{}", text(7));
            spec.boot = text(8);
            let survivor = Survivor { pid: 1, start: 2, command: text(4) };
            let found = Found {
                pid: i32::try_from(numbers[0] / 2).ok(),
                exit_code: Some(7),
                signal: i32::try_from(numbers[1] % 70).ok(),
                stdout_bytes: u64::from(numbers[2]),
                duration_ms: u64::from(numbers[3]),
                survivors: vec![survivor],
                boot: text(8),
                ..Found::default()
            };
            let usage = Usage { cost_usd: Some(f64::from(numbers[4])), ..Usage::default() };
            let verdict = Verdict { outcome, failure, class: Some(Class::Quota), usage };
            let line = Line::of(&spec, &found, &verdict, numbers[5], Stamp::now());
            let Ok(Value::Object(fields)) = serde_json::to_value(&line) else { panic!("a line is an object") };
            for (name, value) in &fields {
                prop_assert!(is_plain(name, value), "{name}: {value}");
            }
            let written = serde_json::to_string(&line).expect("plain data");
            prop_assert!(!written.contains('\u{1F510}') && written.is_ascii(), "{written}");
        }
    }
}
