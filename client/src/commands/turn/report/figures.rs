//! The figures of a report: a pure function of the lines.

use std::collections::{BTreeMap, BTreeSet};

use minder_proto::stamp::Stamp;
use minder_proto::turn::line::Line;
use minder_proto::turn::{Class, Failure, Outcome};
use serde::{Serialize, Serializer};

/// All that is said of a set of turns.
#[derive(Debug, Serialize)]
pub struct Report {
    /// How many.
    pub turns: usize,
    /// Of which seats.
    pub seats: Vec<String>,
    /// When the first and the last of them ended.
    pub from: Option<Stamp>,
    /// See `from`.
    pub to: Option<Stamp>,
    /// Outcomes, most frequent first.
    #[serde(serialize_with = "as_object")]
    pub outcomes: Vec<(Outcome, usize)>,
    /// Failures, most frequent first.
    #[serde(serialize_with = "as_object")]
    pub failures: Vec<(Failure, Failed)>,
    /// Figures by adapter.
    pub adapters: Vec<Adapter>,
    /// What they used.
    pub usage: Usage,
    /// Lines that could not be read.
    pub unreadable: usize,
}

/// The turns of one failure.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Failed {
    /// How many.
    pub turns: usize,
    /// Of which kinds, most frequent first.
    #[serde(serialize_with = "as_object")]
    pub classes: Vec<(Class, usize)>,
}

/// Pairs as the members of an object, in their order.
fn as_object<K: Serialize, V: Serialize, S: Serializer>(pairs: &[(K, V)], to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(pairs.iter().map(|(key, value)| (key, value)))
}

/// The figures of one adapter's turns.
#[derive(Debug, Serialize)]
pub struct Adapter {
    /// Its name.
    #[serde(rename = "adapter")]
    pub name: String,
    /// How many turns.
    pub turns: usize,
    /// Durations in milliseconds, against the wall clock.
    pub duration: Against,
    /// Longest silences in milliseconds, against the stall window.
    pub silence: Against,
}

/// Values and how near they came to a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Against {
    /// Nearest ranks.
    pub p50: u64,
    /// See `p50`.
    pub p90: u64,
    /// See `p50`.
    pub p99: u64,
    /// The largest.
    pub longest: u64,
    /// The window of the newest turn; 0 is off.
    pub window: u64,
    /// Turns that came to their window.
    pub reached: usize,
    /// The least that one of the others had left, where any had a window.
    pub nearest: Option<u64>,
}

/// Tokens and cost, and of how many turns they are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Usage {
    /// Turns that say what they cost.
    pub with_cost: usize,
    /// US dollars of them.
    pub cost_usd: f64,
    /// Turns that count tokens.
    pub with_tokens: usize,
    /// Tokens read by the model, cached ones apart.
    pub input_tokens: u64,
    /// Tokens written by it.
    pub output_tokens: u64,
    /// Tokens read from a cache.
    pub cache_read_tokens: u64,
    /// Tokens written to one.
    pub cache_write_tokens: u64,
}

impl Report {
    /// What the lines say that are not older than `since`.
    pub fn of(lines: &[Line], since: Option<Stamp>, unreadable: usize) -> Self {
        let mut lines: Vec<&Line> = lines.iter().filter(|l| since.is_none_or(|s| l.ts >= s)).collect();
        lines.sort_by_key(|line| (line.ts, line.turn));
        let seats: BTreeSet<&str> = lines.iter().map(|l| l.seat.as_str()).collect();
        let mut by_adapter: BTreeMap<&str, Vec<&Line>> = BTreeMap::new();
        for line in &lines {
            by_adapter.entry(&line.adapter).or_default().push(line);
        }
        let failed = |(failure, turns)| {
            let classes = lines.iter().filter(|l| l.failure == Some(failure)).filter_map(|l| l.failure_class);
            (failure, Failed { turns, classes: counted(classes) })
        };
        let failures = counted(lines.iter().filter_map(|l| l.failure));
        Self {
            turns: lines.len(),
            seats: seats.into_iter().map(str::to_owned).collect(),
            from: lines.first().map(|l| l.ts),
            to: lines.last().map(|l| l.ts),
            outcomes: counted(lines.iter().map(|l| l.outcome)),
            failures: failures.into_iter().map(failed).collect(),
            adapters: by_adapter.into_iter().map(|(name, lines)| Adapter::of(name, &lines)).collect(),
            usage: Usage::of(&lines),
            unreadable,
        }
    }
}

impl Adapter {
    fn of(name: &str, lines: &[&Line]) -> Self {
        let newest = lines.last().expect("an adapter is there by its turns");
        let duration = Against::of(
            lines,
            newest.timeout_ms,
            |l| l.duration_ms,
            // The budget lies before the wall clock, and is what ends a turn that still hears.
            |l| (l.timeout_ms, l.failure == Some(Failure::AdapterTimeout) || l.duration_ms >= l.timeout_ms),
        );
        let silence =
            Against::of(lines, newest.stall_ms, |l| l.longest_silence_ms, |l| (l.stall_ms, l.stalled));
        Self { name: name.to_owned(), turns: lines.len(), duration, silence }
    }
}

impl Against {
    /// Of a value of each line; `window` says how long its window was, and whether it came to it.
    fn of(
        lines: &[&Line],
        newest: u64,
        value: impl Fn(&Line) -> u64,
        window: impl Fn(&Line) -> (u64, bool),
    ) -> Self {
        let mut values: Vec<u64> = lines.iter().map(|l| value(l)).collect();
        values.sort_unstable();
        let others = lines.iter().filter_map(|l| match window(l) {
            (0, _) | (_, true) => None,
            (window, false) => Some(window.saturating_sub(value(l))),
        });
        Self {
            p50: rank(&values, 50),
            p90: rank(&values, 90),
            p99: rank(&values, 99),
            longest: values.last().copied().unwrap_or(0),
            window: newest,
            reached: lines.iter().filter(|l| window(l).1).count(),
            nearest: others.min(),
        }
    }
}

impl Usage {
    fn of(lines: &[&Line]) -> Self {
        let mut sum = Self::default();
        for usage in lines.iter().map(|l| l.usage) {
            let tokens = [
                (&mut sum.input_tokens, usage.input_tokens),
                (&mut sum.output_tokens, usage.output_tokens),
                (&mut sum.cache_read_tokens, usage.cache_read_tokens),
                (&mut sum.cache_write_tokens, usage.cache_write_tokens),
            ];
            let mut any = false;
            for (sum, tokens) in tokens {
                any |= tokens.is_some();
                *sum = sum.saturating_add(tokens.unwrap_or(0));
            }
            sum.with_tokens += usize::from(any);
            if let Some(cost) = usage.cost_usd {
                sum.with_cost += 1;
                sum.cost_usd += cost;
            }
        }
        sum
    }
}

/// The nearest rank: the least of the sorted values that `percent` of a hundred do not exceed.
fn rank(sorted: &[u64], percent: usize) -> u64 {
    let place = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(place - 1).copied().unwrap_or(0)
}

/// How often each is there, the most frequent first.
fn counted<T: Ord + Copy>(all: impl Iterator<Item = T>) -> Vec<(T, usize)> {
    let mut counts: BTreeMap<T, usize> = BTreeMap::new();
    for one in all {
        *counts.entry(one).or_default() += 1;
    }
    let mut counts: Vec<(T, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    counts
}

#[cfg(test)]
mod tests;
