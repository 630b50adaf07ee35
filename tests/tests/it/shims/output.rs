//! What is kept of a harness's output, and what that costs.

use minder_proto::turn::folder::{STDERR, STDOUT_TAIL, TAIL_MAX};
use minder_proto::turn::names::Trigger;
use minder_tests::isolate::Isolated;
use minder_tests::shim::{Shim, fake};

use super::{LIMIT, TERM, typed};

/// The most memory that a shim had, in KiB.
fn most_memory(shim: &Shim) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", shim.process().pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// What a plain turn costs: memory that is the shim's own, in KiB. Pages of the program that the disk does not have yet are
/// not, though they are called dirty.
#[test]
fn a_plain_turn_costs_little_memory() {
    let isolated = Isolated::new().unwrap();
    let mut shim = Shim::start(&isolated, fake(&isolated, "print up\nnote up\nhang").unwrap(), None).unwrap();
    shim.wait_record(LIMIT, "note").unwrap();
    let rollup = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", shim.process().pid())).unwrap();
    let line = rollup.lines().find_map(|line| line.strip_prefix("Anonymous:")).unwrap();
    let own: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
    assert!((1..=1_500).contains(&own), "{rollup}");
    shim.order(Trigger::Cancel).unwrap();
    shim.result(LIMIT).unwrap();
}

/// Gigabytes that nobody reads are counted and not kept: 2 GB without lines, and a line of 100 MB that is looked into.
#[test]
fn f12_output_without_end_costs_no_memory() {
    let isolated = Isolated::in_memory().unwrap();
    let gigabytes = 2_000_000_000_u64;
    let script = format!("flood {gigabytes}\nprint the end\nnote flooded\nhang");
    let mut spec = fake(&isolated, &script).unwrap();
    spec.policy.output_max = 1_000_000;
    let mut shim = Shim::start(&isolated, spec, None).unwrap();
    shim.wait_record(LIMIT, "note").unwrap();
    let memory = most_memory(&shim);
    assert!(memory < 50_000, "{memory} KiB");
    shim.order(Trigger::Cancel).unwrap();
    let found = shim.result(LIMIT).unwrap();
    assert_eq!(found.stdout_bytes, gigabytes + 8);
    assert_eq!(shim.stdout().unwrap().len(), 1_000_000);
    let tail = std::fs::read(shim.folder().join(STDOUT_TAIL)).unwrap();
    assert!(tail.len() == TAIL_MAX && tail.ends_with(b"xthe end\n"));

    let script = "write {\"type\":\"text\",\"x\":\"\nflood 100000000\nprint \"}\nnote flooded\nhang";
    let mut spec = fake(&isolated, script).unwrap();
    spec.rules = Some(typed());
    let mut shim = Shim::start(&isolated, spec, None).unwrap();
    shim.wait_record(LIMIT, "note").unwrap();
    let memory = most_memory(&shim);
    assert!(memory < 50_000, "{memory} KiB");
    shim.order(Trigger::Cancel).unwrap();
    let found = shim.result(LIMIT).unwrap();
    assert_eq!((found.events, found.stdout_bytes), (1, 100_000_023));
}

#[test]
fn of_standard_error_the_end_is_kept() {
    let isolated = Isolated::new().unwrap();
    let spec = fake(&isolated, "flood 3000000 stderr\nerror the end\nwrite \\xff\\xfe\nexit 1").unwrap();
    let mut shim = Shim::start(&isolated, spec, None).unwrap();
    let found = shim.result(LIMIT).unwrap();
    assert_eq!((found.stderr_bytes, found.stdout_bytes, found.exit_code), (3_000_008, 2, Some(1)));
    let kept = std::fs::read(shim.folder().join(STDERR)).unwrap();
    assert!(kept.len() == TAIL_MAX && kept.ends_with(b"xthe end\n"));
    assert_eq!(shim.stdout().unwrap(), b"\xff\xfe");
}

#[test]
fn too_much_output_is_a_failure_only_where_it_is_to_be_one() {
    let isolated = Isolated::new().unwrap();
    let mut spec = fake(&isolated, "flood endless").unwrap();
    (spec.policy.output_max, spec.policy.overflow_fails, spec.cancel_signal) = (100_000, true, TERM);
    let mut shim = Shim::start(&isolated, spec, None).unwrap();
    let found = shim.result(LIMIT).unwrap();
    assert_eq!((found.trigger, found.signal, found.killed), (Some(Trigger::Overflow), Some(15), false));
    assert_eq!(shim.stdout().unwrap().len(), 100_000);
}
