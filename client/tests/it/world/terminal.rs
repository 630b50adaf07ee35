//! A program on a terminal of a test's own, and what it wrote there, byte by byte.

use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};

use nix::pty::{Winsize, openpty};
use nix::sys::termios::{OutputFlags, SetArg, tcgetattr, tcsetattr};

/// Runs a command with all three streams on a terminal of this many columns; gives its exit code and output.
pub fn run(command: &mut Command, columns: u16) -> (i32, Vec<u8>) {
    let size = Winsize { ws_row: 40, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    let pty = openpty(&size, None).unwrap();
    // As it is written: the terminal's own carriage returns are not the program's.
    let mut mode = tcgetattr(&pty.slave).unwrap();
    mode.output_flags.remove(OutputFlags::OPOST);
    tcsetattr(&pty.slave, SetArg::TCSANOW, &mode).unwrap();
    let stream = |fd: &OwnedFd| Stdio::from(fd.try_clone().unwrap());
    let mut child = command
        .stdin(stream(&pty.slave))
        .stdout(stream(&pty.slave))
        .stderr(stream(&pty.slave))
        .spawn()
        .unwrap();
    // Only the child's own, so that its end is the end of the output.
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    drop(pty.slave);
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // A terminal whose last holder is gone ends with an error.
        let _ = std::fs::File::from(pty.master).read_to_end(&mut bytes);
        bytes
    });
    let status = child.wait().unwrap();
    (status.code().unwrap_or(-1), reader.join().unwrap())
}
