//! Taking in a conversation that runs already, as a harness lists it.

use std::process::Child;

use minder_client::rpc::CallError;
use minder_proto::error::Kind;
use minder_proto::rpc::{Adopt, Get};

use crate::surroundings::Surroundings;

/// A program that the kernel calls `claude`.
fn claude(place: &Surroundings) -> Child {
    let program = place.path("claude");
    std::fs::copy("/bin/sleep", &program).unwrap();
    place.command(program).arg("1000").spawn().unwrap()
}

fn adopt(pid: u32, id: &str) -> Adopt {
    let harness = "claude".to_owned();
    let pid = i32::try_from(pid).unwrap();
    let dir = Some("/w/web".to_owned());
    Adopt { harness, harness_id: id.to_owned(), pid, dir, attended: Some(true), ..Adopt::default() }
}

#[test]
fn what_a_harness_lists_is_taken_in_by_the_rules_of_a_hook() {
    let place = Surroundings::new();
    let mut harness = claude(&place);
    let _daemon = place.started();
    let mut client = place.client();
    let taken = client.call(&adopt(harness.id(), "conv")).unwrap();
    assert_eq!((taken.label.as_str(), taken.known), ("web", false));
    let again = client.call(&adopt(harness.id(), "conv")).unwrap();
    assert_eq!((again.session, again.known), (taken.session, true));
    let record = client.call(&Get { session: Some("web".into()), ..Get::default() }).unwrap().record;
    assert_eq!(record.process.unwrap().pid.unsigned_abs(), harness.id());
    assert!(record.adopted && record.bindings[0].id == "conv");

    let refused = |client: &mut minder_client::rpc::Client, call: Adopt| match client.call(&call) {
        Err(CallError::Refused(fault)) => fault.kind,
        other => panic!("{other:?}"),
    };
    // A process that is no harness, and a run that nobody sits at.
    assert_eq!(refused(&mut client, adopt(std::process::id(), "other")), Kind::Refused);
    let unattended = Adopt { attended: Some(false), ..adopt(harness.id(), "other") };
    assert_eq!(refused(&mut client, unattended), Kind::Refused);
    let no_id = Adopt { harness_id: String::new(), ..adopt(harness.id(), "") };
    assert_eq!(refused(&mut client, no_id), Kind::InvalidParams);
    harness.kill().unwrap();
    harness.wait().unwrap();
}
