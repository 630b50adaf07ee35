//! Who is let in: this user alone, before a byte is read (E6). The kernel keeps user ids for each thread on Linux only.

#![cfg(target_os = "linux")]
#![allow(unsafe_code)]

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use minder_daemon::server::Limits;
use nix::libc;
use serde_json::json;

use crate::host::{Host, logged};
use crate::raw::{Raw, call};
use crate::surroundings::root_or_skip;

const NOBODY: libc::uid_t = 65_534;

#[test]
fn a_method_is_told_who_calls() {
    let host = Host::start(Limits::default());
    let first = host.connect().call(&call(1, "peer")).json();
    assert_eq!(first["result"]["pid"], std::process::id());
    assert_eq!(first["result"]["uid"], nix::unistd::geteuid().as_raw());
    let mut second = host.connect();
    let conn = second.call(&call(1, "peer")).json()["result"]["conn"].clone();
    assert_ne!(conn, first["result"]["conn"]);
    assert_eq!(second.call(&call(2, "peer")).json()["result"]["conn"], conn, "kept through the connection");
    assert_ne!(conn, json!(null));
}

#[test]
fn e6_another_user_is_refused_before_a_byte_is_read() {
    if !root_or_skip("e6_another_user_is_refused_before_a_byte_is_read") {
        return;
    }
    let host = Host::start(Limits::default());
    // As if somebody had opened the way: the folder and the socket itself say no otherwise.
    let refused = as_nobody(host.path.clone()).map(drop);
    assert_eq!(refused.unwrap_err().kind(), std::io::ErrorKind::PermissionDenied);
    for (path, mode) in [(host.dir.path(), 0o755), (host.path.parent().unwrap(), 0o755), (&host.path, 0o666)]
    {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    for _ in 0..3 {
        let stream = as_nobody(host.path.clone()).unwrap();
        let mut other = Raw::on(stream);
        // What it wrote was never read: the kernel says so with a reset, or the write fails.
        let _ = std::io::Write::write_all(
            &mut other.stream,
            crate::raw::request(&call(1, "echo"), "").as_bytes(),
        );
        assert!(other.answer().is_none());
    }
    assert_eq!(host.connect().call(&call(1, "echo")).json()["result"], "echo");
    let lines = logged("a connection of another user was refused");
    assert_eq!(lines.iter().filter(|l| l.contains(&format!("uid={NOBODY}"))).count(), 1, "{lines:?}");
}

/// Connects as another user: in a thread, since the kernel keeps user ids for each of them.
fn as_nobody(path: PathBuf) -> std::io::Result<UnixStream> {
    std::thread::spawn(move || {
        // SAFETY: a system call without memory arguments. Unlike the C library's function it changes this thread
        // alone, which ends below.
        let changed = unsafe { libc::syscall(libc::SYS_setresuid, -1, NOBODY, -1) };
        assert_eq!(changed, 0);
        UnixStream::connect(path)
    })
    .join()
    .unwrap()
}
