//! Gives back what only the start needed, before a long sleep: a follower may sleep for days, and a hundred of them
//! beside one another are not to hold a hundred times what it took to read the command line.

// The one call that tells the kernel so has no safe form.
#![allow(unsafe_code)]

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod imp {
    use std::ffi::c_void;
    use std::ptr::NonNull;

    use nix::libc;
    use nix::sys::mman::{MmapAdvise, madvise};

    /// Gives back the free part of the heap, and the pages of this program's own code. Code that runs on is read
    /// again from the page cache, a few pages of it.
    pub fn give_back() {
        // SAFETY: trims free memory of the allocator; nothing that is in use moves.
        unsafe {
            libc::malloc_trim(0);
        }
        let Ok(program) = std::fs::read_link("/proc/self/exe") else { return };
        let Ok(maps) = std::fs::read_to_string("/proc/self/maps") else { return };
        let code = maps.lines().filter_map(|line| code_of(line, program.to_str()?));
        for (begin, end) in code {
            let Some(address) = NonNull::new(std::ptr::with_exposed_provenance_mut::<c_void>(begin)) else {
                continue;
            };
            // SAFETY: the range is a private mapping of the program file that can be executed and not written,
            // and was never written (there are no relocations in code): what is dropped is read from the file
            // again at its next use, and a running program's file cannot be changed.
            let _ = unsafe { madvise(address, end - begin, MmapAdvise::MADV_DONTNEED) };
        }
    }

    /// The addresses of a mapping of the program's code, where this line of `/proc/self/maps` is one.
    pub fn code_of(line: &str, program: &str) -> Option<(usize, usize)> {
        let mut words = line.split_ascii_whitespace();
        let (begin, end) = words.next()?.split_once('-')?;
        if words.next()? != "r-xp" || !line.ends_with(program) {
            return None;
        }
        Some((usize::from_str_radix(begin, 16).ok()?, usize::from_str_radix(end, 16).ok()?))
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
mod imp {
    /// Here nothing is given back.
    pub fn give_back() {}
}

pub use imp::give_back;

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    use super::imp::code_of;

    #[test]
    fn only_code_that_is_not_written_is_given_back() {
        let line = |access: &str| {
            format!("55e0a000-55e0b000 {access} 00001000 fe:00 77                 /bin/minder")
        };
        assert_eq!(code_of(&line("r-xp"), "/bin/minder"), Some((0x55e0_a000, 0x55e0_b000)));
        for other in ["r--p", "rw-p", "rwxp"] {
            assert_eq!(code_of(&line(other), "/bin/minder"), None);
        }
        assert_eq!(code_of(&line("r-xp"), "/lib/libc.so"), None);
    }

    #[test]
    fn what_was_given_back_runs_on() {
        super::give_back();
        assert_eq!(code_of("", "x"), None);
    }
}
