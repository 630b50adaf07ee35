//! A file system of its own in an image file, whose power can be cut: mounted over a loop device, and ended with the
//! ioctl that ext4 and XFS have for this. What was not on the device by then is gone.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::process;

/// Which file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Ext4,
    Xfs,
}

impl Kind {
    /// By its name.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "ext4" => Some(Self::Ext4),
            "xfs" => Some(Self::Xfs),
            _ => None,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
        }
    }

    /// An image's size in bytes: XFS is not made smaller.
    fn size(self) -> u64 {
        match self {
            Self::Ext4 => 96 << 20,
            Self::Xfs => 320 << 20,
        }
    }

    fn make(self) -> Command {
        let (program, options): (_, &[&str]) = match self {
            Self::Ext4 => ("mkfs.ext4", &["-q", "-F", "-m", "0"]),
            Self::Xfs => ("mkfs.xfs", &["-q", "-f"]),
        };
        let mut command = Command::new(program);
        command.args(options);
        command
    }
}

/// What is lost when the power is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// All that is in memory, the file system's own log included.
    Hard,
    /// The data; the log reaches the device first. Files may have their new sizes and names without their data.
    LogFlushed,
}

impl Cut {
    /// The ioctl's flag: ext4 and XFS have the same ones.
    fn flag(self) -> u32 {
        match self {
            Self::LogFlushed => 1,
            Self::Hard => 2,
        }
    }
}

/// A mounted image.
pub struct LoopFs {
    kind: Kind,
    image: PathBuf,
    at: PathBuf,
    mounted: bool,
}

impl LoopFs {
    /// Makes and mounts one below `folder`.
    pub fn new(kind: Kind, folder: &Path) -> Result<Self> {
        let image = folder.join(format!("{}.img", kind.name()));
        let at = folder.join(format!("{}.mnt", kind.name()));
        File::create(&image)?.set_len(kind.size())?;
        run(kind.make().arg(&image))?;
        std::fs::create_dir_all(&at)?;
        let mut fs = Self { kind, image, at, mounted: false };
        fs.mount()?;
        Ok(fs)
    }

    /// Where it is mounted.
    pub fn root(&self) -> &Path {
        &self.at
    }

    /// Mounts it: its log is replayed, as after a power loss.
    pub fn mount(&mut self) -> Result<()> {
        // Small enough that much is in memory only; the kernel writes back by itself after 30 s.
        let mut mount = Command::new("mount");
        mount.args(["-t", self.kind.name(), "-o", "loop"]);
        run(mount.arg(&self.image).arg(&self.at)).with_context(|| {
            format!("no {} image can be mounted over a loop device here", self.kind.name())
        })?;
        self.mounted = true;
        Ok(())
    }

    /// Cuts the power. Everything fails from now on until the next mount.
    pub fn cut(&self, how: Cut) -> Result<()> {
        cut(&File::open(&self.at)?, how)
    }

    /// Unmounts it. Whoever has a file of it open must have ended.
    pub fn unmount(&mut self) -> Result<()> {
        run(Command::new("umount").arg(&self.at))?;
        self.mounted = false;
        Ok(())
    }
}

impl Drop for LoopFs {
    fn drop(&mut self) {
        if self.mounted {
            let _ = Command::new("umount").arg("-l").arg(&self.at).status();
        }
    }
}

/// `FS_IOC_SHUTDOWN`, as ext4 and XFS know it.
#[allow(unsafe_code, reason = "the ioctl has no wrapper")]
fn cut(folder: &File, how: Cut) -> Result<()> {
    // _IOR('X', 125, __u32)
    const SHUTDOWN: libc::c_ulong = 0x8004_587d;
    let flag: u32 = how.flag();
    // SAFETY: the descriptor is open, and the call reads one number at the address of one that lives.
    let result = unsafe { libc::ioctl(folder.as_raw_fd(), SHUTDOWN, &raw const flag) };
    if result != 0 {
        bail!("the power of this file system cannot be cut: {}", std::io::Error::last_os_error());
    }
    Ok(())
}

fn run(command: &mut Command) -> Result<()> {
    let out = process::run(command, b"", Duration::from_secs(60)).with_context(|| format!("{command:?}"))?;
    if !out.status.success() {
        bail!("{command:?}: {}: {}", out.status, String::from_utf8_lossy(&out.stderr).trim());
    }
    Ok(())
}
