//! Who is connected to a shim, and what it costs when there are many.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::net::UnixStream;

use minder_proto::turn::folder::SOCKET;
use minder_tests::isolate::Isolated;
use minder_tests::shim::{Shim, fake};

use super::LIMIT;

/// A connection by the folder's socket.
fn connect(shim: &Shim) -> UnixStream {
    UnixStream::connect(shim.folder().join(SOCKET)).unwrap()
}

#[test]
fn whose_connection_is_dropped_sees_its_end() {
    let isolated = Isolated::new().unwrap();
    let mut shim = Shim::start(&isolated, fake(&isolated, "note up\nhang").unwrap(), None).unwrap();
    shim.wait_record(LIMIT, "note").unwrap();
    shim.news(LIMIT).unwrap();
    let others: Vec<_> = (0..8).map(|_| connect(&shim)).collect();
    for other in &others {
        other.set_read_timeout(Some(LIMIT)).unwrap();
        let mut line = String::new();
        BufReader::new(other).read_line(&mut line).unwrap();
        assert!(line.contains("spawned"), "{line}");
    }
    // The oldest had to go: the one that the shim was started with.
    assert_eq!(shim.news(LIMIT).unwrap_err().to_string(), "the shim is gone");
}

/// Processor time that a process has used, in hundredths of a second.
fn ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    fields[11..13].iter().map(|field| field.parse::<u64>().unwrap()).sum()
}

#[test]
fn who_cannot_be_taken_for_want_of_descriptors_costs_no_time() {
    let isolated = Isolated::new().unwrap();
    let mut spec = fake(&isolated, "note up\nsleep 3s\nexit 0").unwrap();
    spec.limits.files = Some(18);
    let mut shim = Shim::start(&isolated, spec, None).unwrap();
    shim.wait_record(LIMIT, "note").unwrap();
    let mut others: Vec<_> = (0..12).map(|_| connect(&shim)).collect();
    assert_eq!(shim.result(LIMIT).unwrap().exit_code, Some(0));
    assert!(shim.process().wait(LIMIT));
    // It has not been waited for yet.
    let used = ticks(shim.process().pid());
    assert!(used < 50, "{used} ticks in three seconds");
    let mut told = String::new();
    let _ = others.pop().unwrap().read_to_string(&mut told);
    assert_eq!(told, "", "there were descriptors enough");
    let _ = others.remove(0).read_to_string(&mut told);
    assert!(told.contains("spawned") && told.contains("settled"), "{told}");
}
