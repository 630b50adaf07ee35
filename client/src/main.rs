//! `minder`: the client.
//!
//! On Linux it begins where the C library does, and does itself what is needed of all that the standard library does
//! before `main`: a hook runs at every step of a harness, and half of its time is the start of this program.
#![cfg_attr(all(target_os = "linux", target_env = "gnu"), no_main)]
// The C library finds `main` by its name, and signals have no safe form.
#![allow(unsafe_code)]

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod start {
    use std::ffi::{c_char, c_int};
    use std::process::exit;

    use nix::libc;

    /// Called by the C library. The standard library finds the arguments without it.
    // SAFETY: there is no other `main` in this program.
    #[unsafe(no_mangle)]
    extern "C" fn main(_: c_int, _: *const *const c_char) -> c_int {
        have_streams();
        // SAFETY: no handler is involved.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
        exit(i32::from(minder_client::run()))
    }

    /// What is closed of the three standard streams leads nowhere, and is not the next file that is opened.
    fn have_streams() {
        for stream in 0..3 {
            // SAFETY: it takes a number and gives one.
            if unsafe { libc::fcntl(stream, libc::F_GETFD) } >= 0 {
                continue;
            }
            // SAFETY: the path is a string that ends in a zero and lives for ever.
            let nowhere = unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDWR) };
            // The lowest that is free is this one.
            if nowhere != stream {
                std::process::abort();
            }
        }
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn main() -> std::process::ExitCode {
    std::process::ExitCode::from(minder_client::run())
}
