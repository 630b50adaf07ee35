//! `tests/data/stores/<format>/`: a store that a build of that format wrote, and left as a kill does.

use minder_proto::rpc::{self, Spooled};
use minder_proto::stamp::Stamp;
use minder_proto::state::State;

use super::{data, folders, keep, take, writes};
use crate::j::summary;
use crate::world::{World, must};

/// An old store stays old: nothing in it goes by its age while a test looks at it.
const AGELESS: &str = "trash_days = 36500\nkeep_days = 36500\n[delivery]\nmax_age = \"36500d\"\n";

/// Something of everything, written by this build: what a clean stop leaves, and after that a journal that nobody
/// replayed.
fn write() {
    let world = World::new();
    let root = world.home().root().to_owned();
    let key = |k: &str| Some(k.to_owned());

    // Short files, so that there are sealed segments.
    let daemon = world.launch(&[(minder_proto::trial::SIZES, "small")]).settle().unwrap();
    let [lead, api, web, old] = ["lead", "api", "web", "old"].map(|l| world.session(l));
    let mut client = world.client();
    lead.watch(&mut client, &web);
    must(&mut client, &rpc::Set { session: api.id.to_string(), parent: key("lead"), ..rpc::Set::default() });
    must(&mut client, &rpc::Set { session: web.id.to_string(), label: key("site"), ..rpc::Set::default() });
    must(
        &mut client,
        &rpc::Set { session: web.id.to_string(), title: key("The site"), ..rpc::Set::default() },
    );
    for (state, note) in [(State::Working, "reads"), (State::Asking, "which one?"), (State::Review, "PR 12")]
    {
        api.declare(&mut client, state, Some(note));
        web.declare(&mut client, state, Some(note));
    }
    for n in 0..40 {
        must(&mut client, &lead.letter(&api, format!("letter {n}: {}", "text ".repeat(80))));
    }
    api.take_all(&mut client);
    lead.take_all(&mut client);
    must(&mut client, &rpc::Send { key: key("once"), ..web.letter(&lead, "for you") });
    let doomed = must(&mut client, &lead.letter(&web, "dropped"));
    must(&mut client, &rpc::Drop { caller: lead.caller(), id: doomed.id.to_string() });
    let operator = rpc::Send { to: key("@operator"), ..api.letter(&api, "to the person") };
    must(&mut client, &operator);
    must(&mut client, &api.letter(&old, "never read"));
    must(&mut client, &rpc::Close { session: old.id.to_string(), ..rpc::Close::default() });
    world.run("wait api --name ci --timeout 0");
    world.run_as(&lead, "wait --timeout 0");
    daemon.stop();
    let before = world.isolated.root().join("before");
    keep(&root, &before);

    // What the journal holds and no file does.
    let daemon = world.start();
    let mut client = world.client();
    api.declare(&mut client, State::Done, Some("said last"));
    must(&mut client, &lead.letter(&web, "sent last"));
    must(&mut client, &rpc::Create { label: key("born"), dir: key("/"), ..rpc::Create::default() });
    must(&mut client, &rpc::WatchCancel { caller: lead.caller(), sessions: web.id.to_string() });
    daemon.kill();
    let kept = data("stores").join(minder_proto::STORE_FORMAT.replace(' ', "-"));
    keep(&before, &kept.join("store"));
    super::copy(&root.join("journal"), &kept.join("store/journal"), 0o644, 0o755);

    // What was said while no daemon ran.
    let params = serde_json::to_value(web.declaration(State::Idle, Some("said to nobody"))).unwrap();
    let spooled = Spooled { method: "session.state".to_owned(), params, at: Stamp::now() };
    let file = kept.join("store/spool").join(format!("{}.json", uuid::Uuid::now_v7()));
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, serde_json::to_vec(&spooled).unwrap()).unwrap();
}

#[test]
fn a_store_of_every_format_opens_and_goes_on() {
    if writes() {
        write();
    }
    let kept = folders(&data("stores"));
    assert!(kept.iter().any(|k| k.ends_with(minder_proto::STORE_FORMAT.replace(' ', "-"))), "{kept:?}");
    for kept in kept {
        let world = World::with(AGELESS);
        take(&kept.join("store"), world.home().root());
        let checked = world.run("store check");
        assert_eq!(checked.code, 0, "{}: before it is opened: {checked:?}", kept.display());
        let daemon = world.start();
        let text = summary(&world).join("\n") + "\n";
        expect_test::expect_file![kept.join("holds.txt")].assert_eq(&text);
        assert_eq!(std::fs::read_dir(world.home().spool()).unwrap().count(), 0, "what was left is taken");
        world.run("store check").ok();

        // It goes on: every open session declares and is written to, and its history is read to its end.
        let listed = world.run("ls --all --json").json();
        let sessions = listed["sessions"].as_array().unwrap();
        assert!(sessions.len() >= 4, "{listed}");
        for session in sessions {
            let id = session["id"].as_str().unwrap();
            world.run(&format!("state error {id} --note goes-on")).ok();
            world.run(&format!("send {id} goes-on")).ok();
            let shown = world.run(&format!("show {id} --json")).json().to_string();
            assert!(shown.contains("goes-on"), "{shown}");
        }
        world.run("store check").ok();
        world.run("store compact").ok();
        daemon.kill();
        world.run("store check").ok();
        let again = world.run("store repair").ok();
        assert!(again.ends_with("nothing to repair\n"), "{again}");
    }
}
