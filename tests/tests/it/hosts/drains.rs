//! What a drain shows, and what an acknowledgement takes out of the queue.

use minder_proto::event::Receipt;
use minder_proto::host::episode::Stage;
use minder_proto::host::row::Owner;

use super::Fleet;

#[test]
fn what_is_drained_and_acknowledged_is_seen_and_gone() {
    let mut fleet = Fleet::new();
    let api = fleet.child("api");
    fleet.state("api", "working", "");
    fleet.state("api", "review", "PR 12");
    let text = fleet.wake();
    fleet.turn(&text, "t2");
    let (shown, ack) = fleet.drain();
    assert!(shown.starts_with("signal: api (") && shown.contains("working → review | PR 12"), "{shown}");
    assert_eq!(ack, format!("minder host ack --through {} --generation 1", fleet.queue().rows[0].seq));
    assert_eq!(fleet.minder(&["host", "status", "p"]).code, 1, "it is owed");
    assert_eq!(fleet.ack(&ack).ok(), "1 wake acknowledged\n");
    assert_eq!(fleet.queue().rows, []);
    assert_eq!(fleet.episode().stage, Stage::Closed);
    let review = fleet.bench.scene.notices(fleet.primary, api).pop().unwrap();
    let road = fleet.bench.scene.road(fleet.primary, review.id);
    assert_eq!(road, "queued, held(posture), handed, seen");
    assert_eq!(fleet.drain(), ("nothing waits\n".to_owned(), String::new()));
    let status = fleet.minder(&["host", "status", "p"]).ok();
    assert!(status.contains("queue     0 rows") && status.contains("generation 1 closed"), "{status}");
    fleet.minder(&["store", "check"]).ok();
}

#[test]
fn news_that_is_no_wake_is_shown_by_a_drain_once() {
    let fleet = Fleet::new();
    let api = fleet.child("api");
    fleet.state("api", "working", "");
    fleet.state("api", "parked", "until Monday");
    let (shown, ack) = fleet.drain();
    assert!(shown.starts_with("ALSO\n") && shown.contains("parked"), "{shown}");
    assert_eq!(ack, "", "there is no row");
    let parked = fleet.bench.scene.notices(fleet.primary, api).pop().unwrap();
    fleet.bench.reaches(fleet.primary, parked.id, Receipt::Seen);
    assert_eq!(fleet.drain().0, "nothing waits\n");
}

#[test]
fn host34_an_old_acknowledgement_takes_what_it_covered_and_leaves_the_newer_handback() {
    let mut fleet = Fleet::new();
    fleet.child("api");
    fleet.child("web");
    fleet.state("api", "review", "old");
    fleet.wake();
    let (_, old) = fleet.drain();
    fleet.state("web", "error", "new");
    let text = fleet.wake();
    assert!(text.contains("new") && !text.contains("old"), "{text}");
    assert_eq!(fleet.episode().generation, 2);
    let acked = fleet.ack(&old).ok();
    assert_eq!(acked, "1 wake acknowledged\na newer hand-back waits: minder host drain\n");
    assert_eq!(fleet.queue().rows.len(), 1);
    assert_eq!((fleet.episode().generation, fleet.episode().stage), (2, Stage::Handed));
    let (shown, new) = fleet.drain();
    assert!(shown.contains("new"), "{shown}");
    fleet.ack(&new).ok();
    assert_eq!((fleet.queue().rows.len(), fleet.episode().stage), (0, Stage::Closed));
}

#[test]
fn host35_what_came_after_a_drain_survives_its_acknowledgement() {
    let fleet = Fleet::new();
    fleet.child("api");
    fleet.child("web");
    fleet.state("api", "review", "before");
    let (_, ack) = fleet.drain();
    fleet.state("web", "review", "after");
    fleet.state("api", "error", "again");
    fleet.ack(&ack).ok();
    let rows = fleet.queue().rows;
    let texts: Vec<&str> = rows.iter().map(|row| row.text.as_str()).collect();
    assert_eq!(texts, ["after", "again"]);
    assert!(rows.iter().all(|row| row.owner == Owner::Free));
}

#[test]
fn host36_a_generation_that_is_not_yet_is_refused_and_nothing_to_take_is_said_with_the_right_command() {
    let fleet = Fleet::new();
    fleet.child("api");
    fleet.state("api", "review", "x");
    let (_, ack) = fleet.drain();
    let row = fleet.queue().rows[0].seq;
    let future = fleet.minder(&["host", "ack", "--through", "99", "--generation", "7", "p"]);
    assert_eq!((future.code, future.stdout.as_str()), (3, ""), "{future:?}");
    // A newer hand-back whose rows were not shown is not closed by it.
    let nothing = fleet.minder(&["host", "ack", "--through", "0", "--generation", "1", "p"]);
    assert_eq!(nothing.code, 1, "{nothing:?}");
    assert!(nothing.stderr.contains("nothing acknowledged") && nothing.stderr.contains(&ack), "{nothing:?}");
    assert_eq!(fleet.queue().rows[0].seq, row);
    fleet.ack(&ack).ok();
    assert_eq!(fleet.ack(&ack).code, 0, "twice is no mistake");
}

#[test]
fn host53_a_row_that_cannot_be_read_is_told_once_and_hides_no_other() {
    let fleet = Fleet::new();
    fleet.child("api");
    fleet.state("api", "review", "good");
    fleet.minder(&["daemon", "stop"]).ok();
    let file = fleet.bench.scene.home.host(fleet.primary).join("queue.json");
    let text = std::fs::read_to_string(&file).unwrap();
    let bad = r#"{"rows":[{"seq":1,"kind":"of-a-newer-build","odd":true},"#;
    std::fs::write(&file, text.replacen("{\"rows\":[", bad, 1)).unwrap();
    let (shown, ack) = fleet.drain();
    assert!(
        shown.contains("good") && shown.contains("UNREADABLE ROWS") && shown.contains("of-a-newer-build"),
        "{shown}"
    );
    let (shown, _) = fleet.drain();
    assert!(!shown.contains("UNREADABLE"), "{shown}");
    fleet.ack(&ack).ok();
    assert_eq!(fleet.drain().0, "nothing waits\n");
}

#[test]
fn a_queue_that_is_lost_is_a_review_of_everything_and_nothing_actionable_is_forgotten() {
    let mut fleet = Fleet::new();
    fleet.child("api");
    fleet.state("api", "review", "not forgotten");
    fleet.minder(&["daemon", "stop"]).ok();
    let file = fleet.bench.scene.home.host(fleet.primary).join("queue.json");
    std::fs::write(&file, "{garbage").unwrap();
    fleet.minder(&["daemon", "start"]).ok();
    let text = fleet.wake();
    assert!(text.starts_with("heartbeat: "), "{text}");
    let (shown, ack) = fleet.drain();
    assert!(shown.contains("UNSEEN") && shown.contains("not forgotten"), "{shown}");
    fleet.ack(&ack).ok();
    let kept = std::fs::read_dir(fleet.bench.scene.home.quarantine()).unwrap().count();
    assert_eq!(kept, 2, "the file, and why");
}

#[test]
fn a_host_whose_record_is_lost_keeps_no_news_back() {
    let mut fleet = Fleet::new();
    fleet.child("api");
    fleet.state("api", "review", "for whom?");
    fleet.minder(&["daemon", "stop"]).ok();
    let file = fleet.bench.scene.home.host(fleet.primary).join("host.json");
    std::fs::write(&file, "{garbage").unwrap();
    assert_eq!(fleet.minder(&["store", "check"]).code, 65);
    fleet.minder(&["store", "repair"]).ok();
    fleet.minder(&["store", "check"]).ok();
    fleet.minder(&["daemon", "start"]).ok();
    let woken = fleet.wake();
    assert!(woken.starts_with("[minder]") && woken.contains("for whom?"), "{woken}");
}

#[test]
fn open_questions_are_shown_until_they_are_answered() {
    let fleet = Fleet::new();
    fleet.child("api");
    fleet.state("api", "asking", "which database?");
    let (shown, ack) = fleet.drain();
    assert!(shown.contains("OPEN QUESTIONS") && shown.contains("asking | which database?"), "{shown}");
    fleet.ack(&ack).ok();
    assert!(fleet.drain().0.starts_with("OPEN QUESTIONS\n"));
    fleet.state("api", "working", "");
    let (_, ack) = fleet.drain();
    assert_eq!(ack, "");
    assert_eq!(fleet.drain().0, "nothing waits\n");
}

#[test]
fn the_files_of_a_host_are_its_users_alone() {
    use std::os::unix::fs::PermissionsExt;
    let fleet = Fleet::new();
    fleet.child("api");
    fleet.state("api", "review", "x");
    fleet.drain();
    let folder = fleet.bench.scene.home.host(fleet.primary);
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    let files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path()).collect();
    assert_eq!(files.len(), 5, "{files:?}");
    assert!(files.iter().all(|file| mode(file) == 0o600), "{files:?}");
}
