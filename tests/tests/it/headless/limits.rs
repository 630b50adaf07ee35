//! What holds a session or its account until a time or a person's word: it is tried no sooner, and never counts as a crash.

use minder_proto::event::Receipt;
use minder_proto::rpc;
use minder_proto::stamp::Stamp;
use minder_proto::state::State;

use super::{folder, lines, session, until, written};
use crate::world::{Agent, LIMIT, World, must};

/// What each message of a session waits for.
fn reasons(agent: &Agent) -> Vec<String> {
    agent.queue().iter().map(|e| e.reason.clone().unwrap_or_default()).collect()
}

/// How often a session's program was started.
fn runs(world: &World, label: &str) -> usize {
    std::fs::read_to_string(folder(world, label).join("runs")).map_or(0, |text| text.lines().count())
}

fn all_held(agent: &Agent, many: usize, word: &str) {
    until(agent, |queue| {
        let held = |(r, why): &(Receipt, Option<String>)| {
            *r == Receipt::Held && why.as_deref().is_some_and(|why| why.starts_with(word))
        };
        queue.len() == many && queue.iter().all(held)
    });
}

#[test]
fn c16_a_limit_holds_until_the_time_that_was_told_in_the_zone_of_the_place() {
    let world = World::new();
    // Nine hours before UTC, all the year round.
    let seoul = [("TZ", "Asia/Seoul")];
    let daemon = world.launch(&seoul).settle().unwrap();
    let mut client = world.client();
    let asker = world.session("asker");
    let script = "cat >> prompts; echo x >> runs; [ -e more ] && { echo here; exit 0; }; \
        echo \"You've hit your session limit \u{b7} resets 3:10am\" >&2; exit 1";
    let w = session(&world, "w", script);
    for n in 0..3 {
        must(&mut client, &asker.letter(&w, format!("number {n}")));
    }
    all_held(&w, 3, "usage-limit(");
    let reason = reasons(&w).remove(0);
    let until_then = reason.trim_start_matches("usage-limit(").trim_end_matches(')');
    assert!(until_then.ends_with("T18:10:00.000Z"), "ten past three there: {reason}");
    let at: Stamp = until_then.parse().unwrap();
    let away = Stamp::now().age(at);
    assert!(away.as_secs() <= 86_400 && at > Stamp::now(), "{reason}");
    // Others of the account are not tried, nor is it after a restart; nothing of the queue is lost.
    let v = session(&world, "v", script);
    must(&mut client, &asker.letter(&v, "hello"));
    all_held(&v, 1, "usage-limit(");
    daemon.kill();
    let _daemon = world.launch(&seoul).settle().unwrap();
    let mut client = world.client();
    must(&mut client, &asker.letter(&w, "number 3"));
    all_held(&w, 4, "usage-limit(");
    assert_eq!((runs(&world, "w"), runs(&world, "v")), (1, 0));
    assert_eq!(world.run("account list").ok().lines().count(), 1, "it is no crash, and opens no circuit");
    // A person knows better.
    for label in ["w", "v"] {
        std::fs::write(folder(&world, label).join("more"), "").unwrap();
    }
    world.run("account release command").ok();
    [&w, &v].into_iter().for_each(|agent| until(agent, <[_]>::is_empty));
    let prompts = written(&world, "w", "prompts", |_| true);
    let places: Vec<_> = (0..4).map(|n| prompts.rfind(&format!("number {n}")).unwrap()).collect();
    assert!(places.is_sorted(), "{prompts}");
}

#[test]
fn c16_after_a_limit_one_tries_before_the_others() {
    let world = World::new();
    let _daemon = world.start();
    let mut client = world.client();
    let asker = world.session("asker");
    let met = "cat >> prompts; echo x >> runs; [ -e met ] || { touch met; echo 'usage limit reached, try again in 2s' >&2; exit 1; }; \
        read -r go < gate; echo here";
    let all = ["u", "v", "w"].map(|label| session(&world, label, met));
    for label in ["u", "v", "w"] {
        nix::unistd::mkfifo(&folder(&world, label).join("gate"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    }
    must(&mut client, &asker.letter(&all[0], "one"));
    all_held(&all[0], 1, "usage-limit(");
    let limit: Stamp =
        reasons(&all[0])[0].trim_start_matches("usage-limit(").trim_end_matches(')').parse().unwrap();
    // They have met nothing yet, and wait with it.
    for label in ["v", "w"] {
        std::fs::write(folder(&world, label).join("met"), "").unwrap();
    }
    for agent in &all[1..] {
        must(&mut client, &asker.letter(agent, "two"));
        all_held(agent, 1, "usage-limit(");
    }
    let counts = || ["u", "v", "w"].map(|label| runs(&world, label));
    let before = counts();
    assert!(Stamp::now() > limit || before == [1, 0, 0], "not before its time");
    // One of the three is the first.
    let works = |agent: &&Agent| agent.moves().last().is_some_and(|(_, line)| line.to == State::Working);
    let first = || all.iter().find(works);
    let first = minder_tests::files::wait_for(&world.home().feed(), LIMIT, first).unwrap();
    assert!(Stamp::now() >= limit);
    let label = first.label.as_str();
    let again = if label == "u" { "x\nx\n" } else { "x\n" };
    written(&world, label, "runs", |text| text == again);
    let tried = counts();
    assert_eq!(tried.iter().sum::<usize>(), 2, "{tried:?}");
    // While it does the others wait; its success lets them go.
    let others = all.iter().filter(|agent| agent.label != label);
    for agent in others.clone() {
        must(&mut client, &asker.letter(agent, "three"));
        all_held(agent, 2, "usage-limit(");
    }
    assert_eq!(counts(), tried);
    std::fs::write(folder(&world, label).join("gate"), "go\n").unwrap();
    for agent in others {
        std::fs::write(folder(&world, &agent.label).join("gate"), "go\n").unwrap();
        until(agent, <[_]>::is_empty);
    }
}

#[test]
fn c16_a_dead_login_is_met_once_each_time_it_is_released() {
    let world = World::new();
    let daemon = world.start();
    let mut client = world.client();
    let asker = world.session("asker");
    let script = "cat > prompt; echo x >> runs; echo 'Not logged in \u{b7} Please run /login' >&2; exit 1";
    let all = ["w", "v"].map(|label| session(&world, label, script));
    let starts = || runs(&world, "w") + runs(&world, "v");
    for n in 1..=3 {
        for agent in &all {
            must(&mut client, &asker.letter(agent, format!("{n}")));
        }
        if n > 1 {
            world.run("account release command").ok();
            lines_of_both(&world, n);
        }
        all.iter().for_each(|agent| all_held(agent, n, "auth"));
        assert!(starts() <= 2 * n, "{}", starts());
    }
    let after_three = starts();
    daemon.kill();
    let _daemon = world.start();
    let mut client = world.client();
    for agent in &all {
        must(&mut client, &asker.letter(agent, "more"));
        all_held(agent, 4, "auth");
    }
    assert_eq!(starts(), after_three, "none until it is released");
    let listed = world.run("account list").ok();
    assert!(listed.starts_with("command  auth") && listed.lines().count() == 1, "no circuit: {listed}");
}

/// Waits until so many turns of the two have a line.
fn lines_of_both(world: &World, many: usize) {
    let turns = world.home().turns();
    let count = || {
        let of = |label: &str| minder_tests::files::json_lines(&turns.join(format!("{label}.jsonl"))).len();
        (of("w") + of("v") >= many).then_some(())
    };
    minder_tests::files::wait_for(&turns, LIMIT, count).unwrap();
}

#[test]
fn f8_a_conversation_that_another_process_has_is_no_crash() {
    let world = World::new();
    let daemon = world.start();
    let mut client = world.client();
    let asker = world.session("asker");
    let script = "cat > prompt; echo x >> runs; [ -e free ] && { echo here; exit 0; }; \
        echo 'Error: this session is held by another process' >&2; exit 1";
    let (w, v) = (session(&world, "w", script), session(&world, "v", "cat > prompt; echo here"));
    must(&mut client, &asker.letter(&w, "hello"));
    for n in 1..=3 {
        lines(&world, "w", n);
        all_held(&w, 1, "wrong-process(in use)");
        let shown = must(&mut client, &rpc::AccountList::default());
        assert_eq!((shown.holds.len(), shown.circuits.len()), (1, 0), "{shown:?}");
        assert!(shown.holds[0].why.as_deref().is_some_and(|why| why.contains("held by another process")));
        if n < 3 {
            assert!(world.run("account release w").ok().contains("1 session may go on"));
        }
    }
    // It is that session's alone, and stays so.
    must(&mut client, &asker.letter(&v, "hello"));
    until(&v, <[_]>::is_empty);
    daemon.kill();
    let _daemon = world.start();
    let mut client = world.client();
    must(&mut client, &asker.letter(&w, "more"));
    all_held(&w, 2, "wrong-process(in use)");
    assert_eq!(runs(&world, "w"), 3);
    let shown = world.run("account list").ok();
    assert!(shown.starts_with("w  wrong-process(in use), for "), "{shown}");
    std::fs::write(folder(&world, "w").join("free"), "").unwrap();
    world.run("account release w").ok();
    until(&w, <[_]>::is_empty);
    assert_eq!(world.run("account list").ok(), "nothing is held\n");
}

#[test]
fn f8_three_crashes_open_the_circuit_and_a_command_closes_it() {
    let world = World::new();
    let _daemon = world.start();
    let mut client = world.client();
    let asker = world.session("asker");
    let w = session(
        &world,
        "w",
        "cat > prompt; echo x >> runs; [ -e well ] && { echo here; exit 0; }; echo boom >&2; exit 3",
    );
    let sent = must(&mut client, &asker.letter(&w, "one"));
    for n in 1..=3 {
        lines(&world, "w", n);
        // Its pause is not waited for.
        must(&mut client, &rpc::Retry { caller: None, id: sent.id.to_string() });
    }
    all_held(&w, 1, "circuit");
    let shown = world.run("account list").ok();
    assert!(shown.contains("circuit of w: 3 failed (runtime), tried again in "), "{shown}");
    std::fs::write(folder(&world, "w").join("well"), "").unwrap();
    assert!(world.run("account release w").ok().contains("1 session may go on"));
    until(&w, <[_]>::is_empty);
    assert_eq!((runs(&world, "w"), world.run("account list").ok().as_str()), (4, "nothing is held\n"));
}
