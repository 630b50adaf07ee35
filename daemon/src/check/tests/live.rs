//! A check beside a daemon that writes all the time.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

#[test]
fn what_is_in_flight_is_never_reported() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("store");
    let mut writer = Writer::open(&root);
    let sessions: Vec<SessionId> = (0..6).map(|n| writer.create(&format!("s{n}"), None, None)).collect();
    let done = AtomicBool::new(false);
    let checks = std::thread::scope(|scope| {
        let checking = scope.spawn(|| {
            let mut checks = 0;
            while !done.load(Ordering::Relaxed) {
                let report = check(&Home::at(&root)).unwrap();
                assert!(report.findings.is_empty(), "{}", report.to_lines());
                checks += 1;
            }
            checks
        });
        let body = "x".repeat(60 * 1024);
        for round in 0..40u32 {
            let id = sessions[round as usize % sessions.len()];
            let message = writer.post(Party::Session(id), &body);
            writer.receipt(Party::Session(id), message, Receipt::Handed);
            writer.receipt(Party::Session(id), message, Receipt::Seen);
            writer.declare(id, State::Working, &round.to_string());
            let changes = Changes { label: Some(format!("renamed-{round}")), ..Changes::default() };
            writer.write(move |txn| session::set(txn, id, changes));
            let passing = writer.create(&format!("passing-{round}"), None, Some(&format!("c{round}")));
            writer.post(Party::Session(passing), "hello");
            writer.close(passing);
            if round % 20 == 19 {
                // Nothing of the journal is left but what comes now.
                writer.store.stop();
                writer = Writer::open(&root);
            }
            if checking.is_finished() {
                break;
            }
        }
        done.store(true, Ordering::Relaxed);
        checking.join().unwrap()
    });
    assert!(checks > 0);
}
