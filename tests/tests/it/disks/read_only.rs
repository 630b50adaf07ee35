//! A disk that the system has made read-only, as ext4 does after an error of its own.

use super::Scene;
use super::place::Place;
use crate::world::World;

#[test]
#[cfg_attr(not(loops), ignore = "needs root and loop devices: run tests/setup.sh")]
fn a_disk_that_becomes_read_only_refuses_and_what_was_told_outlives_it() {
    let world = World::durable();
    let mut place = Place::image(&world, 32 << 20);
    let daemon = world.start();
    let scene = Scene::of(world);
    scene.w.declare(&mut scene.world.client(), minder_proto::state::State::Working, Some("before"));
    place.fail();
    scene.refuses("Read-only file system");
    // Without a daemon a start on it is refused, with the path; reading needs none.
    daemon.stop();
    let path = scene.world.home().root().display().to_string();
    let said = scene.world.run("send w refused").failed(74);
    assert!(said.contains("Read-only file system") && said.contains(&path), "{said}");
    assert!(scene.world.run("ls").ok().contains('w'));

    // Such a disk comes back by being mounted anew; then the next call is all that is needed.
    place.mount_again();
    assert!(scene.world.run("ls").ok().contains('w'));
    scene.world.run("send w again").ok();
    let notes: Vec<_> = scene.w.moves().into_iter().filter_map(|(_, line)| line.note).collect();
    assert_eq!(notes, ["before"]);
    scene.goes_on();
    scene.world.run("daemon stop").ok();
    scene.world.run("store check").ok();
}
