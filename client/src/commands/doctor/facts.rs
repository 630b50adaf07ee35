//! What the checks look at: plain data, gathered once. `gather` fills it.

use std::path::PathBuf;

use minder_proto::rpc::StatusAnswer;
use minder_proto::stamp::Stamp;

use crate::hooks::service::Service;

/// Everything.
#[derive(Clone, Debug)]
pub struct Facts {
    /// When it was looked at.
    pub now: Stamp,
    /// The store.
    pub store: PathBuf,
    /// What answers on its socket.
    pub daemon: Daemon,
    /// The daemon's own process, as the system shows it.
    pub process: Option<DaemonProcess>,
    /// Whether the service manager runs it, or would.
    pub in_charge: bool,
    /// Whether something can be started where nothing runs.
    pub can_start: Result<PathBuf, String>,
    /// The socket and the way to it.
    pub socket: Socket,
    /// The lock.
    pub lock: Lock,
    /// What of the store others may read, or is somebody else's.
    pub modes: Modes,
    /// Who could look after the daemon.
    pub service: Service,
    /// The harnesses that are here, or whose hooks are.
    pub harnesses: Vec<Harness>,
    /// What tmux says its version is; nothing where there is none.
    pub tmux: Option<String>,
    /// The file system of the store.
    pub disk: Option<Disk>,
    /// The store's own files.
    pub files: Files,
    /// The configuration.
    pub config: Config,
    /// Sessions that messages cannot get into.
    pub stranded: Vec<Stranded>,
    /// Sessions whose records cannot be read.
    pub unreadable: Vec<String>,
}

/// What answers.
#[derive(Clone, Debug)]
pub enum Daemon {
    /// It does.
    Runs(Box<StatusAnswer>),
    /// Nobody listens.
    Absent,
    /// Somebody listens whose answer is not of this version.
    Foreign,
    /// Somebody listens and does not answer as he should: why.
    Mute(String),
}

/// A daemon's process.
#[derive(Clone, Debug, Default)]
pub struct DaemonProcess {
    /// `PATH` in its environment.
    pub path: Option<String>,
    /// Its program was replaced since it was started.
    pub replaced: bool,
}

/// The socket.
#[derive(Clone, Debug, Default)]
pub struct Socket {
    /// Where it is, or would be.
    pub path: PathBuf,
    /// Whether the store's link leads to a socket.
    pub linked: bool,
    /// The mode of its folder, where others may enter.
    pub open: Option<u32>,
    /// Its path is longer than the system takes.
    pub too_long: bool,
}

/// `daemon.lock`.
#[derive(Clone, Debug, Default)]
pub struct Lock {
    /// The process that the file names.
    pub named: Option<u32>,
    /// Whether the kernel says that it is held; nothing where it does not tell.
    pub held: Option<bool>,
    /// It was taken in another boot although this machine was up by then: another machine did it.
    pub elsewhere: bool,
}

/// Permissions.
#[derive(Clone, Debug, Default)]
pub struct Modes {
    /// Files and folders that others may use, the first by name.
    pub wide: usize,
    /// The first of them.
    pub first_wide: Option<PathBuf>,
    /// The first that is somebody else's.
    pub foreign: Option<PathBuf>,
}

/// A harness.
#[derive(Clone, Debug, Default)]
pub struct Harness {
    /// The word after `minder hook`.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// What a person does after an installation.
    pub then: &'static str,
    /// Where its program is for this shell.
    pub here: Option<PathBuf>,
    /// Where it is for the daemon.
    pub there: There,
    /// The version, where it is older than any that works.
    pub too_old: Option<String>,
    /// The file of its hooks.
    pub file: PathBuf,
    /// How they stand.
    pub hooks: Hooks,
    /// Its tools cannot speak out of its sandbox.
    pub muted: bool,
}

/// Where the daemon's `PATH` leads.
#[derive(Clone, Debug, Default)]
pub enum There {
    /// Its `PATH` is not known.
    #[default]
    Unknown,
    /// Nowhere.
    Nowhere,
    /// To this program.
    At(PathBuf),
}

/// How a harness's hooks stand.
#[derive(Clone, Debug, Default)]
pub enum Hooks {
    /// None of ours is there.
    #[default]
    Absent,
    /// None is, but for an older way in this file that tells of ended turns alone.
    OnlyNotifies(PathBuf),
    /// The file cannot be read.
    Broken(String),
    /// They are there.
    There {
        /// Events at which there is none.
        missing: Vec<String>,
        /// Events at which it is of another version or place.
        outdated: Vec<String>,
        /// Events at which there is one that does not belong there.
        surplus: Vec<String>,
        /// Programs that they run and that are gone.
        gone: Vec<String>,
        /// Events whose hooks the harness has not shown its user.
        unreviewed: Vec<String>,
        /// What else keeps them from running.
        hindrances: Vec<String>,
    },
}

/// A file system.
#[derive(Clone, Debug, Default)]
pub struct Disk {
    /// Bytes that this user may still write.
    pub free: u64,
    /// Files that may still be made; nothing where that has no limit.
    pub inodes: Option<u64>,
    /// What it is called, where it is one that several machines share.
    pub shared: Option<&'static str>,
}

/// The store's files.
#[derive(Clone, Debug, Default)]
pub struct Files {
    /// Whether there is a store.
    pub exists: bool,
    /// What its `format` says, where that is not this build's.
    pub format: Option<String>,
    /// Files set aside, by name.
    pub quarantined: Vec<String>,
    /// Requests that wait for a daemon.
    pub spooled: usize,
    /// A repair was begun and not ended.
    pub repair_needed: bool,
    /// By how many seconds the newest line is ahead of the clock.
    pub ahead_s: u64,
}

/// The configuration.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// The file.
    pub file: PathBuf,
    /// Why it cannot be used.
    pub error: Option<String>,
    /// Commits do not wait for the disk.
    pub not_durable: bool,
    /// The file of variables, where others may read it.
    pub open_env_file: Option<PathBuf>,
}

/// A session that messages cannot get into.
#[derive(Clone, Debug)]
pub struct Stranded {
    /// Its label.
    pub label: String,
    /// How many wait.
    pub messages: usize,
    /// Since when the first is held.
    pub since: Stamp,
    /// Its channel.
    pub channel: &'static str,
    /// Whether minder knows how to start it again.
    pub can_relaunch: bool,
}
