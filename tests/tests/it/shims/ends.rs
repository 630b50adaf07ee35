//! How a turn ends by itself: with a code, with a signal, without having begun.

use minder_proto::turn::Failure;
use minder_tests::isolate::Isolated;
use minder_tests::shim::{Shim, fake, spec};

use super::LIMIT;

#[test]
fn a_run_that_ends_is_settled_with_its_code_and_its_output() {
    let isolated = Isolated::new().unwrap();
    let spec = spec(&isolated, &["sh", "-c", "echo out; echo err >&2; exit 3"]).unwrap();
    let mut shim = Shim::start(&isolated, spec, None).unwrap();
    let found = shim.result(LIMIT).unwrap();
    assert_eq!(
        (found.exit_code, found.signal, found.exit_observed, found.attempts),
        (Some(3), None, true, 1)
    );
    assert_eq!((found.stdout_bytes, found.stderr_bytes, found.killed_processes), (4, 4, 0));
    assert_eq!(shim.stdout().unwrap(), b"out\n");
    assert!(shim.process().wait(LIMIT));
}

#[test]
fn f11_why_nothing_could_be_started_is_told_apart() {
    let isolated = Isolated::new().unwrap();
    let outcome = |argv: &[&str], dir: Option<&str>| {
        let mut spec = spec(&isolated, argv).unwrap();
        spec.dir = dir.map_or(spec.dir, str::to_owned);
        let found = Shim::start(&isolated, spec, None).unwrap().result(LIMIT).unwrap();
        assert_eq!((found.attempts, found.pid), (0, None));
        found.unspawned.unwrap().failure
    };
    assert_eq!(outcome(&["true"], Some("/nowhere")), Failure::CwdMissing);
    assert_eq!(outcome(&["true"], Some("/etc/passwd")), Failure::CwdMissing);
    assert_eq!(outcome(&["no-such-program"], None), Failure::NotFound);
    assert_eq!(outcome(&["/etc/passwd"], None), Failure::NotExecutable);
    assert_eq!(outcome(&[], None), Failure::SpawnFailed);
    let long = "x".repeat(256 * 1024);
    assert_eq!(outcome(&["true", &long], None), Failure::SpawnFailed);
}

#[test]
fn f12_the_prompt_is_standard_input_and_ends() {
    let isolated = Isolated::new().unwrap();
    let spec = fake(&isolated, "read stdin\nshow\nprint done").unwrap();
    let mut shim = Shim::start(&isolated, spec, Some(b"do it")).unwrap();
    assert_eq!(shim.result(LIMIT).unwrap().exit_code, Some(0));
    assert_eq!(shim.wait_record(LIMIT, "read").unwrap()["bytes"], 5);
}
