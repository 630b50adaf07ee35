//! What is printed at the end: a row for each method, or for each fault.

use std::time::Duration;

/// One method.
#[derive(Debug)]
pub struct Row {
    /// What was done.
    pub method: &'static str,
    /// How often.
    pub times: usize,
    /// How much was found wrong.
    pub violations: usize,
    /// How long it took.
    pub took: Duration,
}

/// The rows as a table.
pub fn methods(rows: &[Row]) -> String {
    let mut out = format!("{:<44} {:>8} {:>11} {:>9}\n", "method", "times", "violations", "seconds");
    for row in rows {
        let seconds = row.took.as_secs_f64();
        out.push_str(&format!("{:<44} {:>8} {:>11} {seconds:>9.1}\n", row.method, row.times, row.violations));
    }
    out
}

/// How one seeded fault was found.
#[derive(Debug)]
pub struct Caught {
    /// Its name.
    pub fault: &'static str,
    /// By what; nothing if it was not.
    pub by: Option<&'static str>,
    /// After how many rounds or points.
    pub after: usize,
    /// How long it took.
    pub took: Duration,
    /// The first finding.
    pub first: String,
}

/// The faults as a table.
pub fn faults(rows: &[Caught]) -> String {
    let mut out =
        format!("{:<24} {:<20} {:>6} {:>9}  {}\n", "fault", "found by", "after", "seconds", "first finding");
    for row in rows {
        let (by, seconds) = (row.by.unwrap_or("NOTHING"), row.took.as_secs_f64());
        let first: String = row.first.chars().take(110).collect();
        out.push_str(&format!("{:<24} {by:<20} {:>6} {seconds:>9.1}  {first}\n", row.fault, row.after));
    }
    out
}
