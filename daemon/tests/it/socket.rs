//! The socket's life (E3, E5, E6 and `rpc.md`, point 6).

use std::fs::Permissions;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::{Duration, SystemTime};

use minder_daemon::server::Limits;
use nix::sys::signal::Signal;

use crate::host::{Host, brief};
use crate::raw::{DEADLINE, call};
use crate::surroundings::{MINDERD, Surroundings, root_or_skip, who};

fn mode(path: &Path) -> u32 {
    path.symlink_metadata().unwrap().permissions().mode() & 0o777
}

#[test]
fn e6_all_is_private_whatever_the_umask() {
    let around = Surroundings::new();
    let mut command = around.command("/bin/sh");
    command.args(["-c", "umask 000; exec \"$0\" \"$@\"", MINDERD]);
    let _daemon = around.start(command);
    assert_eq!(mode(&around.socket()), 0o700 & 0o777 & !0o077, "no bit for others");
    assert_eq!(mode(around.socket().parent().unwrap()), 0o700);
    assert_eq!(mode(around.home().root()), 0o700);
    assert_eq!(mode(&around.home().run()), 0o700);
    assert_eq!(mode(&around.home().lock()), 0o600);
}

#[test]
fn e6_what_is_too_wide_is_corrected_and_said() {
    let around = Surroundings::new();
    let folder = around.socket().parent().unwrap().to_owned();
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::set_permissions(&folder, Permissions::from_mode(0o777)).unwrap();
    let daemon = around.started();
    assert_eq!(mode(&folder), 0o700);
    assert!(daemon.log().contains("was open to others (0777)"), "{}", daemon.log());
}

#[test]
fn e6_a_link_or_a_strangers_folder_in_the_way_is_refused() {
    let refused = |around: &Surroundings, line: &str| {
        let mut daemon = around.launch(around.minderd());
        let said = daemon.said();
        assert!(said.starts_with("error 77 ") && said.contains(line), "{said}");
        assert_eq!(daemon.code(), Some(77));
    };
    let around = Surroundings::new();
    std::fs::create_dir(around.path("elsewhere")).unwrap();
    symlink(around.path("elsewhere"), around.runtime().join("minder")).unwrap();
    refused(&around, "is a link or no folder");

    let around = Surroundings::new();
    std::fs::create_dir(around.runtime().join("minder")).unwrap();
    symlink(around.path("elsewhere.sock"), around.socket()).unwrap();
    refused(&around, "is a symbolic link");
    assert!(around.socket().is_symlink(), "and left as it was");

    if root_or_skip("e6_a_link_or_a_strangers_folder_in_the_way_is_refused (its last part)") {
        let around = Surroundings::new();
        std::fs::create_dir(around.runtime().join("minder")).unwrap();
        std::os::unix::fs::chown(around.runtime().join("minder"), Some(65_534), None).unwrap();
        refused(&around, "belongs to uid 65534");
        let around = Surroundings::new();
        std::fs::create_dir_all(around.home().root()).unwrap();
        std::os::unix::fs::chown(around.home().root(), Some(65_534), None).unwrap();
        refused(&around, "belongs to uid 65534");
    }
}

#[test]
fn e3_a_socket_that_took_its_place_is_left_alone() {
    let around = Surroundings::new();
    let mut daemon = around.started();
    std::fs::remove_file(around.socket()).unwrap();
    let successor = UnixListener::bind(around.socket()).unwrap();
    daemon.signal(Signal::SIGTERM);
    assert_eq!(daemon.code(), Some(0));
    assert!(daemon.log().contains("is not this daemon's any more: left alone"), "{}", daemon.log());
    let _reached = UnixStream::connect(around.socket()).unwrap();
    successor.accept().unwrap();
}

#[test]
fn its_own_is_removed_with_the_link_to_it() {
    let around = Surroundings::new();
    let mut daemon = around.started();
    assert_eq!(std::fs::read_link(around.home().socket_link()).unwrap(), around.socket());
    daemon.signal(Signal::SIGTERM);
    assert_eq!(daemon.code(), Some(0));
    assert!(around.socket().symlink_metadata().is_err());
    assert!(around.home().socket_link().symlink_metadata().is_err());
}

#[test]
fn what_a_killed_daemon_left_is_cleared_away() {
    let around = Surroundings::new();
    let mut first = around.started();
    first.signal(Signal::SIGKILL);
    first.exit();
    assert!(around.socket().symlink_metadata().unwrap().file_type().is_socket());
    let second = around.started();
    assert_eq!(who(&mut around.client()).pid, second.pid());
}

#[test]
fn e5_a_second_store_on_one_path_is_refused_and_both_are_named() {
    let (first, second) = (Surroundings::new(), Surroundings::new());
    let daemon = first.started();
    let mut command = second.minderd();
    command.env("MINDER_SOCKET", first.socket());
    let mut other = second.launch(command);
    let said = other.said();
    assert!(said.starts_with("error 78 "), "{said}");
    for store in [first.home().real(), second.home().real()] {
        assert!(said.contains(&*store.to_string_lossy()), "{said}");
    }
    assert_eq!(other.code(), Some(78));
    assert_eq!(who(&mut first.client()).pid, daemon.pid(), "the first is undisturbed");

    // Something that never answers is named too, and holds nobody up.
    let third = Surroundings::new();
    let silent = third.path("silent.sock");
    let _listener = UnixListener::bind(&silent).unwrap();
    let mut command = third.minderd();
    command.env("MINDER_SOCKET", &silent);
    let said = third.launch(command).said();
    assert!(said.starts_with("error 78 ") && said.contains("another program"), "{said}");
}

#[test]
fn e5_two_stores_of_one_user_have_two_sockets() {
    let around = Surroundings::new();
    let first = around.started();
    let mut command = around.minderd();
    command.env("MINDER_HOME", around.path("other"));
    let second = around.start(command);
    assert_eq!(who(&mut around.client()).pid, first.pid());
    let link = std::fs::read_link(around.path("other/run/socket")).unwrap();
    assert_ne!(link, around.socket());
    assert_eq!(link.parent(), around.socket().parent());
    assert_eq!(
        crate::raw::Raw::connect(&link)
            .call(r#"{"jsonrpc":"2.0","id":1,"method":"hello","params":{"client":"t","protocol":[1,1]}}"#)
            .json()["result"]["pid"],
        second.pid()
    );
}

#[test]
fn e5_a_path_that_is_too_long_is_named_with_the_limit() {
    let around = Surroundings::new();
    // A store's own path may be long, as long as there is a runtime folder.
    let mut command = around.minderd();
    let long = around.path("l".repeat(150));
    command.env("MINDER_HOME", &long);
    let daemon = around.start(command);
    let mut client = minder_client::rpc::Client::new(
        minder_client::rpc::Endpoint::at(minder_proto::layout::Home::at(&long), around.path("nowhere.sock")),
        minder_client::rpc::Start::Never("this is a test"),
    );
    assert_eq!(who(&mut client).pid, daemon.pid(), "found by the link in the store");

    let around = Surroundings::new();
    let mut command = around.minderd();
    let long = around.path("l".repeat(150));
    command.env("MINDER_HOME", &long).env_remove("XDG_RUNTIME_DIR");
    let mut daemon = around.launch(command);
    let said = daemon.said();
    let path = long.join("run/minder.sock");
    assert!(
        said.starts_with("error 78 ") && said.contains("107") && said.contains(&*path.to_string_lossy()),
        "{said}"
    );
    assert_eq!(daemon.code(), Some(78));
}

#[test]
fn p6_its_age_is_refreshed() {
    let host = Host::start(Limits { refresh: Duration::from_millis(50), ..brief() });
    let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
    let age = || host.path.symlink_metadata().unwrap().mtime();
    set_age(&host.path, old);
    assert_eq!(age(), 1_000_000);
    // Each call goes through the loop that refreshes; it must come to it within the deadline.
    let begun = std::time::Instant::now();
    while age() == 1_000_000 {
        assert!(begun.elapsed() < DEADLINE, "it stayed old");
        host.connect().call(&call(1, "echo"));
    }
    // Not one that took its place.
    std::fs::remove_file(&host.path).unwrap();
    let _other = UnixListener::bind(&host.path).unwrap();
    set_age(&host.path, old);
    host.stop.cancel();
    host.ended();
    assert_eq!(age(), 1_000_000);
}

fn set_age(path: &Path, to: SystemTime) {
    let seconds = i64::try_from(to.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs()).unwrap();
    let time = nix::sys::time::TimeSpec::new(seconds, 0);
    let link = nix::sys::stat::UtimensatFlags::NoFollowSymlink;
    nix::sys::stat::utimensat(nix::fcntl::AT_FDCWD, path, &time, &time, link).unwrap();
}
