//! Under a service manager: a passed socket, and what is told (L5).

use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Stdio;

use nix::sys::signal::Signal;

use crate::raw::DEADLINE;
use crate::surroundings::{MINDERD, Surroundings, hello, until_unlocked, who};

/// A service manager's end.
struct Manager(UnixDatagram);

impl Manager {
    fn at(path: &Path) -> Self {
        let socket = UnixDatagram::bind(path).unwrap();
        socket.set_read_timeout(Some(DEADLINE)).unwrap();
        Self(socket)
    }

    fn hears(&self) -> String {
        let mut text = [0; 1024];
        let n = self.0.recv(&mut text).expect("nothing was told");
        String::from_utf8_lossy(&text[..n]).into_owned()
    }
}

#[test]
fn ready_watchdog_and_stopping_are_told() {
    let around = Surroundings::new();
    let manager = Manager::at(&around.path("notify"));
    let mut command = around.minderd();
    command.env("NOTIFY_SOCKET", around.path("notify")).env("WATCHDOG_USEC", "200000");
    let mut daemon = around.launch(command);
    let ready = manager.hears();
    assert!(ready.starts_with("READY=1\nSTATUS=serving /"), "{ready}");
    // The socket answers by the time that is said.
    assert_eq!(who(&mut around.client()).pid, daemon.pid());
    for _ in 0..3 {
        assert_eq!(manager.hears(), "WATCHDOG=1\n");
    }
    daemon.signal(Signal::SIGTERM);
    let mut told = manager.hears();
    while told == "WATCHDOG=1\n" {
        told = manager.hears();
    }
    assert!(told.starts_with("STOPPING=1\n"), "{told}");
    assert_eq!(daemon.code(), Some(0));
}

#[test]
fn a_watchdog_of_another_process_is_not_petted() {
    let around = Surroundings::new();
    let manager = Manager::at(&around.path("notify"));
    let mut command = around.minderd();
    command.env("NOTIFY_SOCKET", around.path("notify")).env("WATCHDOG_USEC", "1000").env("WATCHDOG_PID", "1");
    let daemon = around.launch(command);
    assert!(manager.hears().starts_with("READY=1"));
    who(&mut around.client());
    daemon.signal(Signal::SIGTERM);
    assert!(manager.hears().starts_with("STOPPING=1"), "nothing in between");
}

#[test]
fn a_manager_that_is_gone_is_no_reason_to_fail() {
    let around = Surroundings::new();
    let mut command = around.minderd();
    command.env("NOTIFY_SOCKET", around.path("nobody-here"));
    let daemon = around.start(command);
    assert!(daemon.log().contains("the service manager was not told"), "{}", daemon.log());
}

#[test]
fn l5_a_passed_socket_serves_the_first_call_and_is_never_removed() {
    let around = Surroundings::new();
    let socket = around.path("passed.sock");
    let mut activate = around.command("systemd-socket-activate");
    activate.arg("-l").arg(&socket);
    for (name, value) in [("XDG_STATE_HOME", around.path("state")), ("XDG_RUNTIME_DIR", around.runtime())] {
        activate.arg("-E").arg(format!("{name}={}", value.display()));
    }
    activate.args([MINDERD, "--foreground"]).stderr(Stdio::piped());
    let mut activate = match activate.spawn() {
        Ok(child) => child,
        Err(e) => panic!("systemd-socket-activate (Debian: systemd) is needed: {e}"),
    };
    // It says when it listens.
    let mut errors = std::io::BufReader::new(activate.stderr.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut errors, &mut line).unwrap();
    assert!(line.contains("Listening on"), "{line}");
    let drain = std::thread::spawn(move || {
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut errors, &mut rest).unwrap();
        rest
    });

    let mut client = minder_client::rpc::Client::new(
        minder_client::rpc::Endpoint::at(around.home(), socket.clone()),
        minder_client::rpc::Start::Never("this is a test"),
    );
    let answer = client.call(&hello()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(answer.pid, activate.id(), "it became the daemon");
    assert_eq!(std::fs::read_link(around.home().socket_link()).unwrap(), socket);
    assert!(around.socket().symlink_metadata().is_err(), "no socket of its own");

    client.call(&minder_proto::rpc::Stop::default()).unwrap();
    assert!(activate.wait().unwrap().success());
    until_unlocked(&around.home());
    assert!(socket.symlink_metadata().is_ok(), "the manager's socket stays");
    let log = drain.join().unwrap();
    assert!(log.contains("minderd ends"), "{log}");
}

#[test]
fn l5_variables_of_another_process_are_ignored() {
    let around = Surroundings::new();
    let mut command = around.minderd();
    command.env("LISTEN_PID", "1").env("LISTEN_FDS", "1").env("LISTEN_FDNAMES", "minderd.socket");
    let daemon = around.start(command);
    assert_eq!(who(&mut around.client()).pid, daemon.pid());
}

#[test]
fn a_passed_descriptor_that_is_no_listening_socket_is_refused() {
    let around = Surroundings::new();
    let mut command = around.command("/bin/sh");
    // The shell becomes the daemon, so that its process id is the daemon's.
    command.args(["-c", "exec 3</dev/null; LISTEN_PID=$$ LISTEN_FDS=1 exec \"$0\" \"$@\"", MINDERD]);
    let mut daemon = around.launch(command);
    let said = daemon.said();
    assert!(said.starts_with("error 78 ") && said.contains("socket"), "{said}");
    assert_eq!(daemon.code(), Some(78));
}
