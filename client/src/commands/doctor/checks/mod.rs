//! The checks: each is a function of the facts alone. [`all`] is their order.

use super::facts::Facts;
use super::finding::Finding;

mod daemon;
mod harnesses;
mod machine;
mod sessions;
mod store;

/// Every check, in the order in which they are shown.
const CHECKS: [fn(&Facts) -> Vec<Finding>; 15] = [
    daemon::daemon,
    daemon::socket,
    daemon::lock,
    machine::service,
    machine::path,
    harnesses::hooks,
    harnesses::sandbox,
    machine::tmux,
    machine::disk,
    machine::clock,
    store::permissions,
    store::config,
    store::files,
    store::quarantine,
    sessions::stranded,
];

/// What all of them find.
pub fn all(facts: &Facts) -> Vec<Finding> {
    CHECKS.iter().flat_map(|check| check(facts)).collect()
}
