//! Places for a store, mounted for one test.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::world::{LIMIT, World};

/// How an image is mounted.
const OPTIONS: &str = "loop,errors=remount-ro";

/// A mounted place. It goes with this.
pub struct Place {
    at: PathBuf,
    /// The program that serves it, where one does.
    server: Option<Child>,
}

impl Place {
    /// Where a world's store will be.
    fn of(world: &World) -> Self {
        let at = world.home().root().to_owned();
        std::fs::create_dir_all(&at).unwrap();
        Self { at, server: None }
    }

    /// In memory, of this size.
    pub fn memory(world: &World, size: &str) -> Self {
        let place = Self::of(world);
        run(Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size},mode=700"), "minder-test"])
            .arg(&place.at));
        place
    }

    /// An ext4 file system of this size in a file, over a loop device.
    pub fn image(world: &World, size: u64) -> Self {
        let place = Self::of(world);
        let image = world.isolated.root().join("image");
        std::fs::File::create(&image).unwrap().set_len(size).unwrap();
        run(Command::new("mkfs.ext4").args(["-q", "-F", "-m", "0"]).arg(&image));
        run(Command::new("mount").args(["-o", OPTIONS]).arg(&image).arg(&place.at));
        std::fs::remove_dir(place.at.join("lost+found")).unwrap();
        private(&place.at);
        place
    }

    /// Two folders as one.
    pub fn overlay(world: &World) -> Self {
        let place = Self::of(world);
        let below = world.isolated.root().join("layers");
        run(Command::new("mkdir").arg(&below));
        // The upper layers need a file system that can hold them, which an overlay itself is not.
        run(Command::new("mount").args(["-t", "tmpfs", "minder-test"]).arg(&below));
        let layers = ["lower", "upper", "work"].map(|name| below.join(name));
        layers.iter().for_each(|layer| std::fs::create_dir(layer).unwrap());
        let [lower, upper, work] = layers.map(|layer| layer.display().to_string());
        let options = format!("lowerdir={lower},upperdir={upper},workdir={work}");
        run(Command::new("mount").args(["-t", "overlay", "-o", &options, "minder-test"]).arg(&place.at));
        // It stays until nobody uses it any more.
        run(Command::new("umount").arg("-l").arg(&below));
        private(&place.at);
        place
    }

    /// A folder that a program serves. Returns the folder behind it too: what changes there the kernel tells nobody.
    pub fn served(world: &World) -> (Self, PathBuf) {
        let mut place = Self::of(world);
        let behind = world.isolated.root().join("behind");
        std::fs::create_dir(&behind).unwrap();
        private(&behind);
        let mut bindfs = Command::new("bindfs");
        bindfs.args(["-f", "--no-allow-other"]).arg(&behind).arg(&place.at);
        bindfs.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit());
        let outside = place.at.metadata().map(device).unwrap();
        place.server = Some(bindfs.spawn().expect("bindfs is installed"));
        // Mounted once it is another device.
        let deadline = std::time::Instant::now() + LIMIT;
        while place.at.metadata().map(device).is_ok_and(|d| d == outside) {
            assert!(std::time::Instant::now() < deadline, "bindfs does not mount");
            std::thread::yield_now();
        }
        (place, behind)
    }

    /// Takes all the room that is left.
    pub fn fill(&self) -> PathBuf {
        let filler = self.at.join("filler");
        let mut file = std::fs::File::create(&filler).unwrap();
        for size in [1 << 16, 1 << 10, 1] {
            while std::io::Write::write_all(&mut file, &vec![1; size]).is_ok() {}
        }
        let _ = file.sync_all();
        filler
    }

    /// The file system of an image finds an error in itself, and takes nothing any more.
    pub fn fail(&self) {
        let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
        let here = format!(" {} ", self.at.display());
        let device = mounts.lines().find(|l| l.contains(&here)).unwrap().split(' ').next().unwrap();
        let name = device.strip_prefix("/dev/").unwrap();
        std::fs::write(format!("/sys/fs/ext4/{name}/trigger_fs_error"), "1").unwrap();
    }

    /// Mounts an image anew. Nobody may use it.
    pub fn mount_again(&mut self) {
        run(Command::new("umount").arg(&self.at));
        run(Command::new("mount").args(["-o", OPTIONS]).arg(self.at.with_file_name("image")).arg(&self.at));
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Lazily: a daemon of a test that failed may still be there.
        let _ = Command::new("umount").arg("-l").arg(&self.at).status();
        if let Some(server) = &mut self.server {
            let _ = server.wait();
        }
    }
}

fn device(meta: std::fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::dev(&meta)
}

fn private(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700)).unwrap();
}

fn run(command: &mut Command) {
    let out = minder_tests::process::run(command, b"", LIMIT).unwrap();
    assert!(out.status.success(), "{command:?}: {}", String::from_utf8_lossy(&out.stderr));
}
