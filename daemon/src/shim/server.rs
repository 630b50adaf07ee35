//! `minderd shim --serve`: a process that becomes shims. To start a program costs more than a short turn does; to copy a
//! small process that stands ready costs little. A daemon has one such server from its first turn on, connected by the
//! socket that is the server's standard input, and the server goes when the daemon does. Its copies do not, but for one
//! that stands ready and was given no turn.
#![allow(unsafe_code)]

use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use minder_proto::turn::folder::Spec;
use nix::sys::signal::{SigHandler, Signal, signal};
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg};
use nix::unistd::ForkResult;
use serde::{Deserialize, Serialize};

use super::run;
use super::{place, rehearsal};

/// Longest description of what is wanted: an environment can be no longer than what a program may be started with.
const WANTED_MAX: usize = 8 << 20;
/// Bytes of a length, and of an answer.
const WORD: usize = 4;

/// A byte of a spare shim that has all that it needs but a turn.
pub const READY: u8 = b'r';
/// The byte that tells it that its folder is the turn's.
pub const GO: u8 = b'g';

/// What is wanted of a shim. It is told on the shim's own connection: the environment of one turn is never in the memory
/// that the shims of others are copied from.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wanted {
    /// A turn.
    Turn {
        /// Its folder.
        folder: PathBuf,
        /// The environment of the harness.
        environment: Vec<(String, String)>,
        /// What is to be done, for one that stood ready; any other reads it in the folder. Nothing is done before [`GO`].
        #[serde(default, skip_serializing_if = "Option::is_none")]
        spec: Option<Box<Spec>>,
    },
    /// To stand ready for one: the shim makes this folder with what it can make beforehand, says [`READY`], and is told of
    /// a turn then, whose folder this one has become. Where the connection ends before that, the shim goes and the folder
    /// with it.
    Spare {
        /// The folder.
        folder: PathBuf,
    },
}

/// Asks a server for a shim, whose standard input is `link`. An error of the kind `BrokenPipe` means that there is no
/// server any more, or none that answers: whether there is a shim is not known then.
pub fn ask(server: &mut UnixStream, link: &OwnedFd) -> io::Result<()> {
    let fds = [link.as_raw_fd()];
    let rights = [ControlMessage::ScmRights(&fds)];
    let sent = sendmsg::<()>(server.as_raw_fd(), &[IoSlice::new(&[1])], &rights, MsgFlags::empty(), None);
    let mut answer = [0; WORD];
    if sent.is_err() || server.read_exact(&mut answer).is_err() {
        return Err(ErrorKind::BrokenPipe.into());
    }
    match i32::from_le_bytes(answer) {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

/// Tells a shim what it is for.
pub fn tell(mut link: &UnixStream, wanted: &Wanted) -> io::Result<()> {
    let body = serde_json::to_vec(wanted).map_err(io::Error::other)?;
    let length = u32::try_from(body.len()).map_err(io::Error::other)?;
    link.write_all(&length.to_le_bytes())?;
    link.write_all(&body)
}

fn told(mut link: impl Read) -> io::Result<Wanted> {
    let mut length = [0; WORD];
    link.read_exact(&mut length)?;
    let length = usize::try_from(u32::from_le_bytes(length)).map_err(io::Error::other)?;
    if length > WANTED_MAX {
        return Err(ErrorKind::InvalidData.into());
    }
    let mut body = vec![0; length];
    link.read_exact(&mut body)?;
    Ok(serde_json::from_slice(&body)?)
}

/// The server, until its daemon goes; each of its copies is a shim, until its turn is settled.
pub fn serve() -> ExitCode {
    crate::descriptors::close_inherited(&[]);
    // Nobody waits for its children.
    // SAFETY: no handler is involved.
    let _ = unsafe { signal(Signal::SIGCHLD, SigHandler::SigIgn) };
    let Ok(socket) = io::stdin().as_fd().try_clone_to_owned().map(UnixStream::from) else {
        return ExitCode::FAILURE;
    };
    while let Ok(link) = next(&socket) {
        // SAFETY: this process has one thread.
        let answer = match unsafe { nix::unistd::fork() } {
            Ok(ForkResult::Child) => {
                drop(socket);
                return become_shim(link);
            }
            Ok(ForkResult::Parent { .. }) => 0,
            Err(errno) => errno as i32,
        };
        drop(link);
        if (&socket).write_all(&answer.to_le_bytes()).is_err() {
            break;
        }
    }
    ExitCode::SUCCESS
}

fn become_shim(link: OwnedFd) -> ExitCode {
    let run = || {
        let link = UnixStream::from(link);
        match told(&link)? {
            Wanted::Turn { folder, environment, .. } => {
                listen_to(link)?;
                take(&environment);
                run::in_folder(Some(&folder))
            }
            Wanted::Spare { folder } => spare(link, &folder),
        }
    };
    run::code_of(&run())
}

/// Stands ready for a turn, and runs it.
fn spare(link: UnixStream, folder: &Path) -> io::Result<()> {
    rehearsal::rehearse();
    let told_then = place::make(folder).and_then(|place| {
        (&link).write_all(&[READY])?;
        Ok((place, told(&link)?))
    });
    let ready = told_then.and_then(|(place, wanted)| match wanted {
        Wanted::Turn { environment, spec: Some(spec), .. } => {
            take(&environment);
            (&link).read_exact(&mut [0])?;
            Ok((*spec, place))
        }
        _ => Err(ErrorKind::InvalidData.into()),
    });
    // A folder that has become a turn's has another name by now.
    let (spec, place) = ready.inspect_err(|_| drop(std::fs::remove_dir_all(folder)))?;
    listen_to(link)?;
    run::in_place(spec, place)
}

/// The connection is where a shim looks for it.
fn listen_to(link: UnixStream) -> io::Result<()> {
    Ok(nix::unistd::dup2_stdin(link)?)
}

/// This environment, and nothing else.
fn take(environment: &[(String, String)]) {
    for (name, _) in std::env::vars_os() {
        // SAFETY: this process has one thread.
        unsafe { std::env::remove_var(name) };
    }
    for (name, value) in environment {
        // SAFETY: as above. What cannot be a variable was refused before the turn was begun.
        unsafe { std::env::set_var(name, value) };
    }
}

/// The connection of the next shim.
fn next(socket: &UnixStream) -> io::Result<OwnedFd> {
    let mut byte = [0; 1];
    let mut space = nix::cmsg_space!(RawFd);
    loop {
        let mut parts = [IoSliceMut::new(&mut byte)];
        // No program is started while it is open: not every system can have it closed for that.
        let flags = MsgFlags::empty();
        let message = match recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut space), flags) {
            Err(nix::errno::Errno::EINTR) => continue,
            message => message?,
        };
        for part in message.cmsgs()? {
            if let ControlMessageOwned::ScmRights(fds) = part {
                // SAFETY: the descriptors were made for this process by this very call, and nobody else has them.
                let mut fds: Vec<OwnedFd> =
                    fds.into_iter().map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }).collect();
                return fds.pop().ok_or_else(|| ErrorKind::InvalidData.into());
            }
        }
        // Its end, or a request without a connection.
        return Err(ErrorKind::UnexpectedEof.into());
    }
}
