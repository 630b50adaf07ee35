//! What is cut from a file is kept in the quarantine before: who cuts may be wrong about whose it is.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::disk::{self, DiskError, at};
use super::durable::Flush;
use super::mender::flat;
use super::recover::{free_name, write_why};

/// Keeps the bytes of a file from here on, with the reason beside them. Zeros are no bytes that anybody wrote.
pub fn tail(root: &Path, path: &Path, from: u64, why: &str) -> Result<(), DiskError> {
    let read = || {
        let file = File::open(path)?;
        let mut bytes = vec![0; file.metadata()?.len().saturating_sub(from) as usize];
        file.read_exact_at(&mut bytes, from)?;
        Ok(bytes)
    };
    let bytes: Vec<u8> = read().map_err(at(path))?;
    if bytes.iter().all(|b| *b == 0) {
        return Ok(());
    }
    let file = path.strip_prefix(root).unwrap_or(path).to_string_lossy();
    copy(root, &format!("{}.cut", flat(&file)), &bytes, why)
}

/// Keeps bytes in the quarantine under this name, or under it and a number, with the reason beside them.
pub fn copy(root: &Path, name: &str, bytes: &[u8], why: &str) -> Result<(), DiskError> {
    let dir = root.join("quarantine");
    disk::make_dir(&dir)?;
    // What one that was cut off has kept is this.
    let kept = (1..).map(|n| dir.join(if n == 1 { name.to_owned() } else { format!("{name}.{n}") }));
    for path in kept.take_while(|path| path.exists()) {
        if std::fs::read(&path).is_ok_and(|there| there == bytes) {
            return Ok(());
        }
    }
    let to = free_name(&dir, name);
    write_why(&to, why)?;
    disk::replace(&to, bytes)?;
    Flush::of(&dir, &[to, dir.clone()])?.run()
}
