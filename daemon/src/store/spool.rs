//! The files of `spool/`: which there are, what one says, and taking it away. The spool is filled by clients, so that
//! nothing in it is believed before it was looked at; and what is taken from it goes by no journal.

use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use minder_proto::layout::Home;
use minder_proto::rpc::Spooled;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use uuid::Uuid;

use super::disk::{self, DiskError, at};
use super::recover::quarantine_file;

/// Most bytes of one request, as over the socket.
const MAX: u64 = 4 << 20;
/// A client writes a file under another name and renames it at once: one that is as old as this was given up.
const GIVEN_UP: Duration = Duration::from_secs(60 * 60);

/// The spool of one store.
#[derive(Clone, Debug)]
pub struct Spool {
    home: Home,
    own: u32,
}

/// What one file says.
#[derive(Debug)]
pub enum Content {
    /// A request, and the key under which it is applied once.
    Request(Spooled, String),
    /// Not one that may be applied, and why.
    Unfit(String),
    /// It is not there any more.
    Gone,
}

impl Spool {
    /// That of this store. Its folder is made when the store is opened.
    pub fn new(home: &Home) -> Self {
        Self { home: home.clone(), own: nix::unistd::geteuid().as_raw() }
    }

    /// Makes the folder if somebody took it away.
    pub fn make(&self) -> Result<(), DiskError> {
        disk::make_dir(&self.home.spool())
    }

    /// Its folder.
    pub fn folder(&self) -> PathBuf {
        self.home.spool()
    }

    /// The names of all requests, in the order in which they were made.
    pub fn names(&self) -> Result<Vec<String>, DiskError> {
        let mut names = Vec::new();
        for entry in self.entries()? {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.ends_with(".json") && !name.starts_with('.') {
                names.push(name.into_owned());
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Removes what clients left half written.
    pub fn sweep(&self) -> Result<(), DiskError> {
        let now = SystemTime::now();
        for entry in self.entries()? {
            let old = entry.metadata().and_then(|m| m.modified());
            let old = old.is_ok_and(|at| now.duration_since(at).is_ok_and(|age| age >= GIVEN_UP));
            if old && entry.file_name().to_string_lossy().starts_with('.') {
                disk::remove(&entry.path())?;
            }
        }
        Ok(())
    }

    fn entries(&self) -> Result<Vec<std::fs::DirEntry>, DiskError> {
        let folder = self.folder();
        match std::fs::read_dir(&folder).and_then(Iterator::collect) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            entries => entries.map_err(at(&folder)),
        }
    }

    /// Reads one. An error is the disk's, and may pass.
    pub fn read(&self, name: &str) -> Result<Content, DiskError> {
        let path = self.folder().join(name);
        let Some(key) = key(name) else {
            return Ok(Content::Unfit("its name is no UUIDv7, by which it would be applied once".to_owned()));
        };
        // Opening must neither follow a link nor wait for somebody at the other end of a pipe.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match rustix::fs::open(&path, flags, Mode::empty()) {
            Ok(file) => std::fs::File::from(file),
            Err(Errno::NOENT) => return Ok(Content::Gone),
            Err(Errno::LOOP) => return Ok(Content::Unfit("it is a symbolic link".to_owned())),
            Err(Errno::NXIO) => return Ok(Content::Unfit("it is no regular file".to_owned())),
            Err(error @ Errno::ACCESS) => return Ok(Content::Unfit(error.to_string())),
            Err(error) => return Err(at(&path)(error.into())),
        };
        let meta = file.metadata().map_err(at(&path))?;
        if let Some(why) = self.unfit(&meta) {
            return Ok(Content::Unfit(why));
        }
        let mut bytes = Vec::new();
        // It may grow while it is read.
        file.take(MAX + 1).read_to_end(&mut bytes).map_err(at(&path))?;
        if bytes.len() as u64 > MAX {
            return Ok(Content::Unfit(too_large()));
        }
        match serde_json::from_slice(&bytes) {
            Ok(spooled) => Ok(Content::Request(spooled, key)),
            Err(error) => Ok(Content::Unfit(format!("it cannot be read: {error}"))),
        }
    }

    fn unfit(&self, meta: &std::fs::Metadata) -> Option<String> {
        let (owner, mode) = (meta.uid(), meta.mode() & 0o777);
        if !meta.is_file() {
            Some("it is no regular file".to_owned())
        } else if owner != self.own {
            Some(format!("it belongs to user {owner}"))
        } else if mode & 0o022 != 0 {
            Some(format!("others may write it (its mode is {mode:o})"))
        } else if meta.len() > MAX {
            Some(too_large())
        } else {
            None
        }
    }

    /// Takes away what was applied. Durable only with [`Self::sync`]: until then it may come back, and is applied under
    /// the same key.
    pub fn remove(&self, name: &str) -> Result<(), DiskError> {
        disk::remove(&self.folder().join(name))
    }

    /// Moves one to the quarantine, with the reason beside it.
    pub fn set_aside(&self, name: &str, why: &str) -> Result<(), DiskError> {
        quarantine_file(self.home.root(), &self.folder().join(name), &format!("spool.{name}"), why)
    }

    /// Makes it durable that files were taken away.
    pub fn sync(&self) -> Result<(), DiskError> {
        disk::sync_dir(&self.folder())
    }
}

fn too_large() -> String {
    format!("it is larger than {MAX} bytes")
}

/// The idempotency key that a file's name is.
fn key(name: &str) -> Option<String> {
    let stem = name.strip_suffix(".json")?;
    let id = Uuid::try_parse(stem).ok().filter(|id| id.get_version_num() == 7)?;
    (id.as_hyphenated().to_string() == stem).then(|| stem.to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use minder_proto::stamp::Stamp;

    use super::*;

    fn spool() -> (tempfile::TempDir, Spool) {
        let dir = tempfile::tempdir().unwrap();
        let spool = Spool::new(&Home::at(dir.path()));
        spool.make().unwrap();
        (dir, spool)
    }

    fn put(spool: &Spool, name: &str, bytes: &[u8]) -> PathBuf {
        let path = spool.folder().join(name);
        std::fs::write(&path, bytes).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        path
    }

    fn good() -> Vec<u8> {
        let spooled =
            Spooled { method: "m".into(), params: serde_json::json!({}), at: Stamp::from_millis(0) };
        serde_json::to_vec(&spooled).unwrap()
    }

    fn name() -> String {
        format!("{}.json", Uuid::now_v7())
    }

    #[test]
    fn only_what_its_owner_alone_can_have_written_is_a_request() {
        let (_dir, spool) = spool();
        let unfit = |name: &str| match spool.read(name).unwrap() {
            Content::Unfit(why) => why,
            other => panic!("{name}: {other:?}"),
        };
        let fine = name();
        put(&spool, &fine, &good());
        let Content::Request(spooled, key) = spool.read(&fine).unwrap() else { panic!("it is one") };
        assert_eq!((spooled.method.as_str(), format!("{key}.json")), ("m", fine.clone()));
        assert!(matches!(spool.read(&name()).unwrap(), Content::Gone));

        for bad in ["x.json", "0199C2D4-90c3-7f0e-8a17-c2b67be21c09.json", &format!("{}.json", Uuid::nil())] {
            put(&spool, bad, &good());
            assert!(unfit(bad).contains("UUIDv7"), "{bad}");
        }
        for (bytes, why) in
            [(&b"{"[..], "cannot be read"), (b"", "cannot be read"), (b"[]", "cannot be read")]
        {
            let name = name();
            put(&spool, &name, bytes);
            assert!(unfit(&name).contains(why));
        }
        let link = name();
        std::os::unix::fs::symlink(spool.folder().join(&fine), spool.folder().join(&link)).unwrap();
        assert!(unfit(&link).contains("symbolic link"));
        let pipe = name();
        nix::unistd::mkfifo(&spool.folder().join(&pipe), nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(unfit(&pipe).contains("no regular file"));
        let socket = name();
        let _listener = std::os::unix::net::UnixListener::bind(spool.folder().join(&socket)).unwrap();
        assert!(unfit(&socket).contains("no regular file"));
        let folder = name();
        std::fs::create_dir(spool.folder().join(&folder)).unwrap();
        assert!(unfit(&folder).contains("no regular file"));
        let shared = name();
        let path = put(&spool, &shared, &good());
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o620)).unwrap();
        assert!(unfit(&shared).contains("620"));
        let large = name();
        let path = put(&spool, &large, b"");
        std::fs::File::options().write(true).open(path).unwrap().set_len(MAX + 1).unwrap();
        assert!(unfit(&large).contains("larger"));
        let foreign = Spool { own: spool.own + 1, ..spool.clone() };
        assert!(
            matches!(foreign.read(&fine).unwrap(), Content::Unfit(why) if why.contains("belongs to user"))
        );
    }

    #[test]
    fn names_come_in_the_order_in_which_they_were_made_and_half_files_are_swept() {
        let (_dir, spool) = spool();
        let made: Vec<String> = (0..20).map(|_| name()).collect();
        for name in made.iter().rev() {
            put(&spool, name, &good());
        }
        put(&spool, "README", b"");
        let fresh = put(&spool, ".fresh.json", b"");
        let old = put(&spool, ".old.new", b"");
        let age = SystemTime::now() - GIVEN_UP;
        std::fs::File::options().write(true).open(&old).unwrap().set_modified(age).unwrap();
        assert_eq!(spool.names().unwrap(), made);
        spool.sweep().unwrap();
        assert_eq!((fresh.exists(), old.exists()), (true, false));
        spool.remove(&made[0]).unwrap();
        spool.remove(&made[0]).unwrap();
        assert_eq!(spool.names().unwrap(), made[1..]);
        spool.sync().unwrap();
    }

    #[test]
    fn what_is_set_aside_lies_in_the_quarantine_with_its_reason() {
        let (dir, spool) = spool();
        let name = name();
        let home = Home::at(dir.path());
        for _ in 0..2 {
            put(&spool, &name, b"x");
            spool.set_aside(&name, "no good").unwrap();
        }
        assert!(spool.names().unwrap().is_empty());
        assert_eq!(std::fs::read_dir(home.quarantine()).unwrap().count(), 4);
        let why = home.quarantine().join(format!("spool.{name}.why"));
        assert_eq!(std::fs::read_to_string(why).unwrap(), "no good\n");
    }
}
