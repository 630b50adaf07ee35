//! Where the log goes: standard error under a service manager, which keeps it; else a file of the store's.

use std::path::Path;
use std::sync::Mutex;

use tracing::Level;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

use crate::folder::FolderError;
use crate::logfile::{KEEP, RotatingFile, SIZE};

/// Where the log goes.
#[derive(Clone, Copy, Debug)]
pub enum Sink<'a> {
    /// Standard error; `stamped` unless its reader stamps lines itself.
    Stderr {
        /// Whether each line begins with its time.
        stamped: bool,
    },
    /// A file, rotated by size.
    File(&'a Path),
}

/// Starts the log of this process. Called once.
pub fn start(sink: Sink<'_>) -> Result<(), FolderError> {
    // What libraries say at a lower level is about their insides.
    let wanted = Targets::new().with_default(Level::WARN).with_target("minder", Level::INFO);
    let plain = fmt::layer().with_ansi(false).with_target(false);
    let registry = tracing_subscriber::registry();
    match sink {
        Sink::Stderr { stamped: true } => {
            registry.with(plain.with_writer(std::io::stderr).with_filter(wanted)).init();
        }
        Sink::Stderr { stamped: false } => {
            registry.with(plain.without_time().with_writer(std::io::stderr).with_filter(wanted)).init();
        }
        Sink::File(path) => {
            let file = RotatingFile::open(path, SIZE, KEEP)?;
            registry.with(plain.with_writer(Mutex::new(file)).with_filter(wanted)).init();
        }
    }
    Ok(())
}
