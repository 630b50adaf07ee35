//! What a harness may use: niceness, its place before the out-of-memory killer, resource limits. They are set in the
//! harness's own process before it becomes the harness, so that the shim, which has to write, has none of them.
#![allow(unsafe_code)]

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use minder_proto::turn::folder::Limits;
use nix::libc;
use nix::sys::resource::{Resource, getrlimit, rlim_t, setrlimit};

/// Gives the shim, and so everything it starts, the limit on open files that the daemon was started with: programs that
/// use `select` break above it.
pub fn files(soft: Option<u64>) {
    let Some(soft) = soft.and_then(|soft| rlim_t::try_from(soft).ok()) else { return };
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        // One that cannot be set is the one that is there.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, soft.min(hard), hard);
    }
}

/// Has a command set its limits. One that cannot be set is a start that failed.
pub fn set(command: &mut Command, limits: &Limits) {
    let resources: Vec<(Resource, rlim_t)> =
        limits.rlimits.iter().filter_map(|(name, value)| Some((resource(name)?, *value as rlim_t))).collect();
    let (nice, oom) = (limits.nice, limits.oom_score_adj);
    if nice.is_none() && oom.is_none() && resources.is_empty() {
        return;
    }
    let oom = oom.map(|adj| adj.to_string().into_bytes());
    let apply = move || {
        if let Some(nice) = nice {
            niceness(nice)?;
        }
        if let Some(adj) = &oom {
            write_oom(adj)?;
        }
        for (resource, value) in &resources {
            let (_, hard) = getrlimit(*resource)?;
            let value = (*value).min(hard);
            setrlimit(*resource, value, value)?;
        }
        Ok(())
    };
    // SAFETY: the closure runs in the child of this process, which has one thread, between fork and exec; it makes
    // system calls and allocates nothing.
    unsafe { command.pre_exec(apply) };
}

fn niceness(nice: i32) -> io::Result<()> {
    // SAFETY: it takes numbers and gives one.
    let set = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Where there is no such file there is no such killer.
fn write_oom(adj: &[u8]) -> io::Result<()> {
    // SAFETY: the path is a string that ends in a zero and lives for ever.
    let fd = unsafe { libc::open(c"/proc/self/oom_score_adj".as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC) };
    if fd < 0 {
        return Ok(());
    }
    // SAFETY: the descriptor is open, the bytes are there during the call.
    let written = unsafe { libc::write(fd, adj.as_ptr().cast(), adj.len()) };
    let failed = io::Error::last_os_error();
    // SAFETY: the descriptor is ours and used no more.
    unsafe { libc::close(fd) };
    if written < 0 { Err(failed) } else { Ok(()) }
}

/// The resource of this name in the configuration.
fn resource(name: &str) -> Option<Resource> {
    Some(match name {
        "cpu" => Resource::RLIMIT_CPU,
        "as" => Resource::RLIMIT_AS,
        "fsize" => Resource::RLIMIT_FSIZE,
        "nofile" => Resource::RLIMIT_NOFILE,
        "core" => Resource::RLIMIT_CORE,
        #[cfg(not(target_os = "macos"))]
        "nproc" => Resource::RLIMIT_NPROC,
        _ => return None,
    })
}
