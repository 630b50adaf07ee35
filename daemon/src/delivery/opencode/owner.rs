//! Whose server it is that listens at an address of this machine: any user may listen there, and any later process under the
//! same number.

use std::net::SocketAddr;

use minder_proto::record::Process;

/// Who listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Nobody.
    Nobody,
    /// This user, and, where its process is known, the session.
    Own,
    /// Somebody else.
    Another,
}

/// Looks. `process` is the session's, where one is known to run.
#[cfg(target_os = "linux")]
pub fn of(address: SocketAddr, process: Option<&Process>) -> Owner {
    use procfs::net::{TcpState, tcp, tcp6};

    let listeners = [tcp(), tcp6()].into_iter().flatten().flatten();
    let listeners = listeners.filter(|entry| entry.state == TcpState::Listen);
    let (exact, any): (Vec<_>, Vec<_>) = listeners
        .filter(|entry| entry.local_address.port() == address.port())
        .filter(|entry| {
            let at = entry.local_address.ip().to_canonical();
            at == address.ip() || at.is_unspecified()
        })
        .partition(|entry| entry.local_address.ip().to_canonical() == address.ip());
    // The one that names the address is the one that is connected to.
    let Some(entry) = exact.first().or(any.first()) else { return Owner::Nobody };
    if entry.uid != nix::unistd::geteuid().as_raw() {
        return Owner::Another;
    }
    match process {
        Some(process) if !holds(process, entry.inode) => Owner::Another,
        _ => Owner::Own,
    }
}

/// True if a process has a socket open.
#[cfg(target_os = "linux")]
fn holds(process: &Process, inode: u64) -> bool {
    use procfs::process::FDTarget;

    let open = procfs::process::Process::new(process.pid).and_then(|process| process.fd());
    open.is_ok_and(|mut open| {
        open.any(|fd| fd.is_ok_and(|fd| matches!(fd.target, FDTarget::Socket(held) if held == inode)))
    })
}

/// Nothing tells it: the address is taken for what it is.
#[cfg(not(target_os = "linux"))]
pub fn of(_address: SocketAddr, _process: Option<&Process>) -> Owner {
    Owner::Own
}

/// The user and the password that a server asks for, as its own environment has them, else the daemon's.
pub fn password(process: Option<&Process>) -> Option<(String, String)> {
    let own = process.and_then(|process| std::fs::read(format!("/proc/{}/environ", process.pid)).ok());
    let find = |name: &str| {
        let value = match &own {
            Some(all) => all.split(|byte| *byte == 0).find_map(|pair| {
                let value = pair.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
                Some(String::from_utf8_lossy(value).into_owned())
            }),
            None => std::env::var(name).ok(),
        };
        value.filter(|value| !value.is_empty())
    };
    let word = find("OPENCODE_SERVER_PASSWORD")?;
    Some((find("OPENCODE_SERVER_USERNAME").unwrap_or_else(|| "opencode".to_owned()), word))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::identity::process_of;

    #[test]
    fn a_server_is_the_sessions_own_or_nobodys_to_speak_to() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let own = process_of(i32::try_from(std::process::id()).unwrap()).unwrap();
        let parent = process_of(i32::try_from(std::os::unix::process::parent_id()).unwrap()).unwrap();
        assert_eq!(of(at, None), Owner::Own);
        assert_eq!(of(at, Some(&own)), Owner::Own);
        assert_eq!(of(at, Some(&parent)), Owner::Another, "a later process has its number");
        let everywhere = TcpListener::bind("0.0.0.0:0").unwrap();
        let port = everywhere.local_addr().unwrap().port();
        assert_eq!(of(SocketAddr::new(at.ip(), port), Some(&own)), Owner::Own);
        drop(listener);
        assert_eq!(of(at, Some(&own)), Owner::Nobody);
    }
}
