//! The terminal itself: its modes, its size, whole frames. Modes are put back where the program leaves it.

use std::io::Write;
use std::os::fd::AsFd;
use std::sync::Mutex;

use anyhow::{Context, Result};
use nix::sys::termios::{
    InputFlags, LocalFlags, OutputFlags, SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr,
};

/// As it was found; there is one a process.
static FOUND: Mutex<Option<Termios>> = Mutex::new(None);

/// Takes the terminal: keys come as they are pressed.
pub fn raw() -> Result<()> {
    let found = tcgetattr(std::io::stdin().as_fd()).context("standard input is no terminal")?;
    let mut modes = found.clone();
    FOUND.lock().expect("nobody panics with it").get_or_insert(found);
    cfmakeraw(&mut modes);
    tcsetattr(std::io::stdin().as_fd(), SetArg::TCSANOW, &modes)?;
    Ok(())
}

/// Gives the lines back to the kernel, which cuts those that are too long for it.
pub fn lines() -> Result<()> {
    let mut modes = tcgetattr(std::io::stdin().as_fd())?;
    modes.input_flags.insert(InputFlags::ICRNL);
    modes.output_flags.insert(OutputFlags::OPOST | OutputFlags::ONLCR);
    modes.local_flags.insert(LocalFlags::ICANON | LocalFlags::ECHO | LocalFlags::ISIG);
    tcsetattr(std::io::stdin().as_fd(), SetArg::TCSANOW, &modes)?;
    Ok(())
}

/// Puts everything back, if it was taken.
pub fn leave() {
    let Some(found) = FOUND.lock().expect("nobody panics with it").take() else { return };
    write(b"\x1b[?2004l\x1b[?1049l\x1b[?25h");
    // A terminal that is gone has no modes.
    let _ = tcsetattr(std::io::stdin().as_fd(), SetArg::TCSANOW, &found);
}

/// Rows and columns.
pub fn size() -> (usize, usize) {
    let size = rustix::termios::tcgetwinsize(std::io::stdout());
    size.map_or((24, 80), |size| (usize::from(size.ws_row).max(4), usize::from(size.ws_col).max(20)))
}

/// Waits for input; nothing at the end of it.
pub fn read() -> Option<Vec<u8>> {
    let mut buffer = vec![0; 64 * 1024];
    // Not through the buffered reader, which might hold some back.
    let got = nix::unistd::read(std::io::stdin(), &mut buffer).ok().filter(|got| *got > 0)?;
    buffer.truncate(got);
    Some(buffer)
}

/// Writes all of it, at once as far as the terminal lets it.
pub fn write(bytes: &[u8]) {
    let mut out = std::io::stdout().lock();
    // Nobody is left to be told of a terminal that is gone.
    let _ = out.write_all(bytes).and_then(|()| out.flush());
}
