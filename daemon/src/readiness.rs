//! How a starter hears that the daemon serves, or why it does not: one line on a pipe, then the end of it.
//!
//! `ready`, or `error <exit code> <line>`. A pipe that ends without a line means that the daemon died.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, RawFd};

use crate::exit::Failure;

/// The starter's end, or nobody's.
#[derive(Debug, Default)]
pub struct Readiness {
    pipe: Option<File>,
}

impl Readiness {
    /// Takes the descriptor that `--ready-fd` names; the number itself is free (or `/dev/null`) afterwards.
    pub fn take(number: Option<RawFd>) -> io::Result<Self> {
        let Some(number) = number else { return Ok(Self::default()) };
        let pipe = Self::own(number)?;
        if number > 2 {
            nix::unistd::close(number)?;
        } else {
            // A standard stream must stay open: the next file opened would become it.
            let null = File::options().read(true).write(true).open("/dev/null")?;
            match number {
                0 => nix::unistd::dup2_stdin(null.as_fd())?,
                1 => nix::unistd::dup2_stdout(null.as_fd())?,
                _ => nix::unistd::dup2_stderr(null.as_fd())?,
            }
        }
        Ok(Self { pipe: Some(pipe) })
    }

    #[allow(unsafe_code)]
    fn own(number: RawFd) -> io::Result<File> {
        // SAFETY: the borrow ends within this statement, in which nothing closes a descriptor; a number that is not
        // open makes the duplication fail with EBADF. The duplicate is close-on-exec.
        let copy = unsafe { BorrowedFd::borrow_raw(number) }.try_clone_to_owned()?;
        Ok(File::from(copy))
    }

    /// The daemon serves.
    pub fn ready(self) {
        self.tell("ready\n");
    }

    /// The daemon cannot be, and why.
    pub fn failed(self, failure: &Failure) {
        self.tell(&format!("error {} {}\n", failure.code, failure.line));
    }

    fn tell(self, line: &str) {
        if let Some(mut pipe) = self.pipe {
            // A starter that has gone away is no fault of ours, and nobody else can be told.
            let _ = pipe.write_all(line.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::fd::IntoRawFd;

    use super::*;
    use minder_proto::error::exit;

    fn pipe() -> (io::PipeReader, RawFd) {
        let (reader, writer) = io::pipe().unwrap();
        (reader, std::os::fd::OwnedFd::from(writer).into_raw_fd())
    }

    #[test]
    fn one_line_and_the_end() {
        let (mut reader, number) = pipe();
        Readiness::take(Some(number)).unwrap().ready();
        let mut said = String::new();
        reader.read_to_string(&mut said).unwrap();
        assert_eq!(said, "ready\n");

        let (mut reader, number) = pipe();
        Readiness::take(Some(number)).unwrap().failed(&Failure::new(exit::HELD, "held by pid 4"));
        said.clear();
        reader.read_to_string(&mut said).unwrap();
        assert_eq!(said, "error 73 held by pid 4\n");
    }

    #[test]
    fn a_number_that_is_not_open_is_an_error() {
        assert!(Readiness::take(Some(9_999)).is_err());
        Readiness::take(None).unwrap().ready();
    }
}
