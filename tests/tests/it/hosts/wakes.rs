//! When a primary is woken, by what, and when it is not.

use minder_proto::event::Receipt;
use minder_proto::host::episode::Stage;
use minder_proto::record::TurnOrigin;
use minder_proto::rpc;
use minder_proto::state::State;
use rustix::process::Signal;

use super::Fleet;
use crate::hooks::bench::{Bench, is_silent};
use crate::scene::LIMIT;
use crate::world::{World, must, refused};

#[test]
fn host23_without_an_engine_a_batch_is_one_plain_handback() {
    let mut fleet = Fleet::new();
    let (api, web) = (fleet.child("api"), fleet.child("web"));
    fleet.state("api", "working", "");
    fleet.state("api", "review", "PR 12 ready for review");
    fleet.state("web", "working", "");
    fleet.state("web", "error", "the build is red");
    let text = fleet.wake();
    let expected = format!(
        "signal: api ({}) working → review | PR 12 ready for review\nsignal: web ({}) working → error | the build is \
         red\nnext: minder host drain\n",
        api.short(),
        web.short()
    );
    assert_eq!(text, expected);
    let episode = fleet.episode();
    assert_eq!((episode.generation, episode.stage), (1, Stage::Handed));
    // The notices are with the primary, and are not given by another road.
    let notices = fleet.bench.scene.notices(fleet.primary, api);
    let review = notices.iter().find(|n| n.about.as_ref().unwrap().to.is_some_and(State::is_actionable));
    let road = fleet.bench.scene.road(fleet.primary, review.unwrap().id);
    assert_eq!(road, "queued, held(posture), handed");

    fleet.turn(&text, "t2");
    let record = fleet.bench.scene.record(fleet.primary);
    assert_eq!(record.turn.unwrap().by, TurnOrigin::Notice, "and it is no prompt of the person's");
    assert_eq!(record.title, "p");
    fleet.until("it is read", |f| f.episode().stage == Stage::Seen);
    let log = fleet.minder(&["host", "log", "p"]).ok();
    assert!(log.contains(" passed rows=1,2"), "{log}");
    assert!(log.contains(" handback ") && log.contains("generation=1"), "{log}");
    assert!(!log.contains("PR 12") && !log.contains("red"), "no text of anybody's: {log}");
}

#[test]
fn host25_without_a_host_there_is_nothing_of_one() {
    let mut bench = Bench::new("");
    let id = bench.begin();
    bench.scene.minder(&["new", "--label", "api", "--parent", "p"]).ok();
    let api = bench.scene.session("api");
    let waiter = bench.wait("SessionStart");
    bench.scene.minder(&["--as", "api", "state", "review"]).ok();
    let woken = waiter.wait(LIMIT).unwrap();
    assert!(woken.code == Some(2) && woken.stderr.starts_with("[minder]"), "{woken:?}");
    assert!(!bench.scene.home.hosts().exists());
    let notices = bench.scene.notices(id, api);
    assert!(!notices.is_empty());
    for notice in notices {
        assert!(!bench.scene.road(id, notice.id).contains("posture"));
    }
    let refused = bench.scene.minder(&["host", "drain", "p"]);
    assert_eq!(refused.code, 2, "{refused:?}");
}

#[test]
fn what_comes_while_a_hook_waits_wakes_at_once_and_what_nobody_has_to_act_on_wakes_nobody() {
    let mut fleet = Fleet::new();
    fleet.child("api");
    let waiter = fleet.bench.wait("Stop");
    for state in ["working", "parked", "queued"] {
        fleet.state("api", state, "");
    }
    fleet.state("api", "asking", "which database?");
    let text = Fleet::woken(waiter);
    assert!(text.starts_with("signal: api ("), "{text}");
    assert!(text.contains("→ asking | which database?"), "{text}");
    assert_eq!(text.lines().count(), 2, "{text}");
}

#[test]
fn host48_a_primary_at_work_is_not_told_and_its_own_drain_leaves_nothing_to_wake_it_for() {
    let mut fleet = Fleet::new();
    fleet.child("api");
    fleet.bench.quietly("UserPromptSubmit");
    let waiter = fleet.bench.wait("UserPromptSubmit");
    fleet.state("api", "done", "finished");
    let queue = fleet.queue();
    assert_eq!((queue.rows.len(), queue.rows[0].raised), (1, false), "nothing is judged while it works");
    let (shown, ack) = fleet.drain();
    assert!(shown.contains("→ done | finished"), "{shown}");
    fleet.bench.quietly("Stop");
    assert_eq!(fleet.ack(&ack).code, 0);
    // Had it been woken for that, this would not be what its hook brings.
    fleet.bench.scene.minder(&["send", "p", "hello there"]).ok();
    let text = Fleet::woken(waiter);
    assert!(text.contains("hello there") && !text.contains("signal:"), "{text}");
}

#[test]
fn host29_a_hook_that_is_gone_took_nothing_and_the_next_one_is_given_it() {
    let mut fleet = Fleet::new();
    fleet.child("api");
    let waiter = fleet.bench.wait("Stop");
    assert!(waiter.process(LIMIT).unwrap().signal(Signal::KILL));
    waiter.wait(LIMIT).unwrap();
    fleet.state("api", "review", "first");
    let text = fleet.wake();
    assert!(text.contains("first"), "{text}");
    // Killed as it is given: what was given without evidence is known as that, under one generation.
    assert_eq!(fleet.episode().generation, 1);
    assert_eq!(fleet.queue().rows.len(), 1);
}

#[test]
fn host30_of_many_hooks_one_is_given_it() {
    let mut fleet = Fleet::new();
    fleet.child("api");
    let waiters: Vec<_> = (0..10).map(|_| fleet.bench.wait("Stop")).collect();
    let (ended, end) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        for waiter in waiters {
            let ended = ended.clone();
            scope.spawn(move || ended.send(waiter.wait(LIMIT).unwrap()));
        }
        for _ in 0..9 {
            assert!(is_silent(&end.recv_timeout(LIMIT).unwrap()), "an older one ends without a word");
        }
        fleet.state("api", "review", "once");
        let woken = end.recv_timeout(LIMIT).unwrap();
        assert!(woken.code == Some(2) && woken.stderr.contains("once"), "{woken:?}");
    });
    assert_eq!((fleet.episode().generation, fleet.episode().given), (1, 1));
}

#[test]
fn host33_a_restart_over_an_old_handback_with_nothing_to_present_wakes_nobody() {
    let mut fleet = Fleet::new();
    fleet.child("api");
    fleet.state("api", "review", "once");
    let text = fleet.wake();
    fleet.turn(&text, "t2");
    let (_, ack) = fleet.drain();
    fleet.ack(&ack);
    fleet.stop("t2");
    let waiter = fleet.bench.wait("Stop");
    for _ in 0..3 {
        fleet.minder(&["daemon", "restart"]).ok();
    }
    assert_eq!((fleet.episode().generation, fleet.episode().stage), (1, Stage::Closed));
    fleet.bench.scene.minder(&["send", "p", "you there"]).ok();
    let text = Fleet::woken(waiter);
    assert!(text.contains("you there") && !text.contains("signal:"), "{text}");
}

#[test]
fn a_daemon_that_dies_before_a_handback_is_given_gives_it_afterwards() {
    let mut fleet = Fleet::new();
    fleet.child("api");
    fleet.state("api", "review", "before");
    assert!(fleet.bench.scene.isolated.daemon().unwrap().signal(Signal::KILL));
    fleet.minder(&["daemon", "start"]).ok();
    let text = fleet.wake();
    assert!(text.contains("before"), "{text}");
    assert_eq!(fleet.queue().rows.len(), 1);
    fleet.minder(&["store", "check"]).ok();
}

#[test]
fn host43_where_nobody_waits_it_goes_by_the_ordinary_channel_once() {
    let mut fleet = Fleet::with("[host]\ncoalesce = 0\n[host.park]\nabsent_after = \"100ms\"\n");
    fleet.child("api");
    fleet.state("api", "review", "by the other road");
    fleet.until("it is given", |f| f.episode().stage == Stage::Handed);
    // Nothing waits beside it: its next boundary brings the message.
    let messages = fleet.bench.scene.messages(fleet.primary);
    let sent = messages.iter().filter(|m| m.body.contains("by the other road")).collect::<Vec<_>>();
    assert_eq!(sent.len(), 1, "{messages:?}");
    let text = fleet.wake();
    assert!(text.contains("by the other road"), "{text}");
    fleet.bench.reaches(fleet.primary, sent[0].id, Receipt::Handed);
    assert_eq!(fleet.episode().generation, 1);
    // Once it is drained it is no message any more that somebody has to see.
    let (_, ack) = fleet.drain();
    fleet.ack(&ack).ok();
    fleet.bench.reaches(fleet.primary, sent[0].id, Receipt::Seen);
    let messages = fleet.bench.scene.messages(fleet.primary);
    assert_eq!(messages.iter().filter(|m| m.body.contains("by the other road")).count(), 1);
}

#[test]
fn host74_switched_off_its_news_is_ordinary_messages_and_its_rows_are_nobodys() {
    let mut fleet = Fleet::new();
    let api = fleet.child("api");
    fleet.state("api", "review", "kept");
    fleet.drain();
    fleet.minder(&["host", "disable", "p"]).ok();
    let notices = fleet.bench.scene.notices(fleet.primary, api);
    let road = |id| fleet.bench.scene.road(fleet.primary, id);
    let review = notices.last().unwrap().id;
    assert!(road(review).starts_with("queued, held(posture), queued"), "{}", road(review));
    let woken = fleet.wake();
    assert!(woken.starts_with("[minder]") && woken.contains("kept"), "{woken}");
    assert!(fleet.queue().rows.iter().all(|row| row.shown_gen == 0));
    assert_eq!(fleet.minder(&["host", "status", "p"]).code, 1);
    fleet.state("api", "done", "after");
    assert_eq!(fleet.queue().rows.len(), 1, "nothing is added while it is off");
    fleet.minder(&["host", "enable", "p"]).ok();
    let (shown, _) = fleet.drain();
    assert!(shown.contains("kept") && shown.contains("UNSEEN") && shown.contains("after"), "{shown}");
}

#[test]
fn only_what_something_can_wait_beside_can_have_a_host() {
    let fleet = Fleet::new();
    fleet.child("api");
    let refused = fleet.minder(&["host", "enable", "api"]);
    assert!(refused.code == 3 && refused.stderr.contains("harness pi"), "{refused:?}");
    let status = fleet.minder(&["host", "status"]).ok();
    assert!(status.starts_with("p (") && status.contains("claude  on  owned by binding 1"), "{status}");
}

#[test]
fn host44_the_queue_of_a_primary_is_its_own_and_the_persons() {
    let world = World::new();
    let _daemon = world.start();
    let [lead, other] = ["lead", "other"].map(|label| world.session(label));
    let client = &mut world.client();
    let session = Some(lead.id.to_string());
    must(client, &rpc::HostSwitch { caller: None, session: session.clone(), enabled: true });
    lead.watch(client, &other);
    other.declare(client, State::Review, Some("mine"));
    let caller = other.caller();
    let drain = rpc::HostDrain { caller: caller.clone(), session: session.clone() };
    assert_eq!(refused(client, &drain).0, 3);
    let (through, generation) = (9, 0);
    let ack = rpc::HostAck { caller: caller.clone(), session: session.clone(), through, generation };
    assert_eq!(refused(client, &ack).0, 3);
    let drained = rpc::HostDrained { caller: caller.clone(), session: session.clone(), ..Default::default() };
    assert_eq!(refused(client, &drained).0, 3);
    let off = rpc::HostSwitch { caller, session: session.clone(), enabled: false };
    assert_eq!(refused(client, &off).0, 3);
    // Its own word, and nobody's: the person's.
    let own = must(client, &rpc::HostDrain { caller: lead.caller(), session: None });
    let persons = must(client, &rpc::HostDrain { caller: None, session });
    assert_eq!((own.wakes.len(), &own.wakes), (1, &persons.wakes));
}

#[test]
fn what_a_host_keeps_takes_no_messages_place() {
    let world = World::with("[queue]\nmax_messages = 3\n");
    let _daemon = world.start();
    let [lead, api] = ["lead", "api"].map(|label| world.session(label));
    let client = &mut world.client();
    must(client, &rpc::HostSwitch { caller: None, session: Some(lead.id.to_string()), enabled: true });
    lead.watch(client, &api);
    for n in 0..4 {
        api.declare(client, State::Review, Some(&n.to_string()));
        api.declare(client, State::Error, Some(&n.to_string()));
    }
    assert!(lead.queue().len() > 8);
    for n in 0..3 {
        must(client, &api.letter(&lead, n.to_string()));
    }
    assert_eq!(refused(client, &api.letter(&lead, "one too many")).0, 75);
}

#[test]
fn what_the_primary_watches_no_more_wakes_it_no_more() {
    let mut fleet = Fleet::new();
    fleet.minder(&["new", "--label", "api", "--harness", "pi"]).ok();
    fleet.minder(&["--as", "p", "watch", "api"]).ok();
    fleet.state("api", "review", "of no concern");
    assert_eq!(fleet.queue().rows.len(), 1);
    fleet.minder(&["--as", "p", "watch", "cancel", "api"]).ok();
    let waiter = fleet.bench.wait("Stop");
    fleet.child("web");
    fleet.state("web", "review", "of concern");
    let text = Fleet::woken(waiter);
    assert!(text.contains("of concern") && !text.contains("of no concern"), "{text}");
}

#[test]
fn host50_a_session_that_works_and_shows_no_sign_of_it_is_a_wake_and_no_state() {
    let mut fleet = Fleet::with("[host]\ncoalesce = 0\nstale.silent = \"1s\"\n");
    let api = fleet.child("api");
    fleet.child("web");
    fleet.state("api", "working", "on it");
    fleet.state("web", "parked", "a pause that was declared");
    let text = fleet.wake();
    assert!(
        text.starts_with(&format!("stale: api ({}) | no sign of it for 0 minutes", api.short())),
        "{text}"
    );
    assert!(!text.contains("web"), "{text}");
    assert_eq!(fleet.bench.scene.record(api).state, State::Working);
    assert!(fleet.bench.scene.notices(fleet.primary, api).is_empty(), "it is no move");
}

#[test]
fn a_session_that_closes_is_a_wake_unless_the_primary_closed_it() {
    let mut fleet = Fleet::new();
    fleet.child("api");
    fleet.child("web");
    fleet.minder(&["--as", "p", "close", "web"]).ok();
    fleet.minder(&["close", "api", "--note", "given up"]).ok();
    let text = fleet.wake();
    assert!(text.contains("\"api\" was closed: given up"), "{text}");
    assert!(!text.contains("web"), "{text}");
}

#[test]
fn a_closed_primary_leaves_no_host_behind_once_its_trash_is_emptied() {
    let fleet = Fleet::with("[host]\ncoalesce = 0\n[store]\ntrash_days = 0\n");
    fleet.child("api");
    fleet.state("api", "review", "x");
    let folder = fleet.bench.scene.home.host(fleet.primary);
    assert!(folder.join("queue.json").exists());
    fleet.minder(&["close", "p"]).ok();
    fleet.minder(&["store", "check"]).ok();
    assert_eq!(fleet.minder(&["host", "status", "p"]).code, 2);
    fleet.minder(&["store", "compact"]).ok();
    fleet.minder(&["store", "check"]).ok();
}
