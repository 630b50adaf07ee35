//! What a run found, as a line of the table at its end.

use std::time::{Duration, Instant};

/// One way of testing, and what it found.
pub struct Outcome {
    /// Which way.
    pub method: String,
    /// What its rounds are called.
    pub unit: &'static str,
    /// Rounds so far.
    pub rounds: usize,
    /// Calls that were answered.
    pub told: usize,
    /// What was wrong: where, and what.
    pub violations: Vec<String>,
    begun: Instant,
    took: Duration,
}

impl Outcome {
    /// Nothing yet.
    pub fn new(method: String, unit: &'static str) -> Self {
        Self {
            method,
            unit,
            rounds: 0,
            told: 0,
            violations: Vec::new(),
            begun: Instant::now(),
            took: Duration::ZERO,
        }
    }

    /// A round is over, and this was wrong with it.
    pub fn round(&mut self, at: &str, wrong: Vec<String>) {
        self.rounds += 1;
        self.took = self.begun.elapsed();
        if !wrong.is_empty() {
            let more = wrong.len().saturating_sub(SHOWN);
            let mut text = format!("{}: {at}:", self.method);
            for line in wrong.iter().take(SHOWN) {
                text.push_str("\n    ");
                text.push_str(line);
            }
            if more > 0 {
                text.push_str(&format!("\n    and {more} more"));
            }
            self.violations.push(text);
        }
    }
}

/// Most lines shown of one round.
const SHOWN: usize = 8;

/// The table.
pub fn table(outcomes: &[Outcome]) -> String {
    let mut text = format!(
        "{:<28}{:>8} {:<8}{:>10}{:>12}{:>10}\n",
        "method", "", "", "answered", "violations", "seconds"
    );
    for o in outcomes {
        let seconds = o.took.as_secs_f64();
        text.push_str(&format!(
            "{:<28}{:>8} {:<8}{:>10}{:>12}{:>10.1}\n",
            o.method,
            o.rounds,
            o.unit,
            o.told,
            o.violations.len(),
            seconds
        ));
    }
    text
}
