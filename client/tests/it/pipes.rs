//! K4: output through pipes is whole, and a reader that goes away is no fault.

use serde_json::json;

use crate::world::World;
use crate::world::store::Session;

fn large() -> World {
    let world = World::new();
    let home = world.home();
    for i in 0..600 {
        let note = format!("{i} {}", "x\u{1b}[31m日本".repeat(300));
        Session::new(&home, &format!("s-{i}"), &json!({"note": note, "state": "working"}));
    }
    world
}

#[test]
fn k4_output_through_pipes() {
    let world = large();
    let direct = world.run(&["ls", "--json"]);
    assert!(direct.ok().len() > 2_000_000, "{}", direct.out.len());
    assert_eq!(direct.json()["sessions"].as_array().unwrap().len(), 600);
    let piped = world.shell("minder ls --json | cat");
    assert!(piped.ok() == direct.out || piped.json()["sessions"].as_array().unwrap().len() == 600);
    for script in [
        "{ minder ls; echo $? >&2; } | head -1",
        "{ minder session ls --json; echo $? >&2; } | head -c 1",
        "{ minder; echo $? >&2; } | head -1",
    ] {
        let ran = world.shell(script);
        assert_eq!((ran.code, ran.err.as_str()), (0, "0\n"), "{script}: {ran:?}");
    }
    let full = world.shell("minder ls >/dev/full");
    assert_eq!(full.code, 74);
    assert!(full.err.starts_with("minder: standard output: ") && full.err.lines().count() == 1, "{full:?}");
    // Nobody is there to be told, and nothing falls over.
    assert_eq!(world.shell("minder show nobody 2>&-").code, 2);
    assert_eq!(world.shell("minder ls >&- 2>&-").code, 0);
}
