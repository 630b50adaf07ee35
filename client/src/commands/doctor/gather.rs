//! Looks at everything once. Nothing is started and nothing is changed by it.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use minder_proto::event::Receipt;
use minder_proto::hold::Hold;
use minder_proto::layout::{self, Home, SOCKET_PATH_MAX};
use minder_proto::record::SessionRecord;
use minder_proto::rpc::Status;
use minder_proto::stamp::Stamp;
use minder_proto::{STORE_FORMAT, config, snapshot};

use super::facts::{
    Config, Daemon, DaemonProcess, Disk, Facts, Files, Harness, Hooks, Lock, Modes, Socket, Stranded, There,
};
use crate::autostart::find_program;
use crate::commands::hooks::look;
use crate::context::Context;
use crate::fault::CommandError;
use crate::fleet::Fleet;
use crate::hooks::change::{SandboxConfig, SandboxOffer};
use crate::hooks::probe::{TIME_LIMIT, find, find_program as program_on, said, version};
use crate::hooks::service::look_here;
use crate::hooks::{Pack, Scope, Surroundings, command, pack};
use crate::link::{Link, as_caller};
use crate::rpc::{CallError, Start, Unreachable};
use crate::service;

/// How long a daemon that is well may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Most files whose permissions are looked at.
const LOOKED_AT: usize = 5_000;

/// Looks.
pub fn gather(context: &Context) -> Result<Facts, CommandError> {
    let home = context.home()?.clone();
    let daemon = ask(context, &home);
    let pid = if let Daemon::Runs(status) = &daemon { Some(status.pid) } else { None };
    let process = pid.and_then(process);
    let surroundings = Surroundings::from_env()?;
    let own = command::own_program()?;
    let theirs = process.as_ref().and_then(|process| process.path.clone());
    let harnesses = pack::ALL.iter().filter_map(|pack| harness(pack, &surroundings, theirs.as_deref(), &own));
    let (stranded, unreadable) = match Fleet::read(&home) {
        Ok(fleet) => (
            fleet.records.iter().filter_map(|record| lost(&home, record)).collect(),
            fleet.unreadable.iter().map(ToString::to_string).collect(),
        ),
        Err(error) => (Vec::new(), vec![error.to_string()]),
    };
    Ok(Facts {
        now: Stamp::now(),
        store: home.root().to_owned(),
        in_charge: pid.map_or_else(service::has_charge, service::runs),
        can_start: can_start(),
        socket: socket(&home, &daemon),
        lock: lock(&home),
        modes: modes(home.root()),
        service: look_here(),
        harnesses: harnesses.collect(),
        tmux: program_on("tmux", surroundings.path.as_deref())
            .and_then(|program| said(&program, &["-V"], TIME_LIMIT).ok())
            .map(|said| said.trim().to_owned()),
        disk: disk(home.root()),
        files: files(&home),
        config: configuration()?,
        stranded,
        unreadable,
        daemon,
        process,
    })
}

fn ask(context: &Context, home: &Home) -> Daemon {
    let mut link = Link::of_any_version(home, PATIENCE);
    match link.try_call(&Status { caller: as_caller(&context.caller) }) {
        Ok(status) => Daemon::Runs(Box::new(status)),
        Err(CallError::Unreachable(Unreachable::NotRunning(_))) => Daemon::Absent,
        Err(CallError::Broken(_)) => Daemon::Foreign,
        Err(error) => Daemon::Mute(crate::link::failed(error).message),
    }
}

fn can_start() -> Result<PathBuf, String> {
    match Start::from_env() {
        Start::Never(why) => Err(why.to_owned()),
        Start::Await(_) => Err("inside a turn nothing is started".to_owned()),
        Start::Found | Start::This(_) => {
            find_program().ok_or_else(|| "minderd is neither beside minder nor on PATH".to_owned())
        }
    }
}

/// What the system shows of a process of this user's; nothing where it shows nothing.
fn process(pid: u32) -> Option<DaemonProcess> {
    let program = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let path = environment.split(|byte| *byte == 0).find_map(|set| set.strip_prefix(b"PATH="));
    Some(DaemonProcess {
        path: path.map(|path| String::from_utf8_lossy(path).into_owned()),
        replaced: program.to_string_lossy().ends_with(" (deleted)"),
    })
}

fn socket(home: &Home, daemon: &Daemon) -> Socket {
    let path = match daemon {
        Daemon::Runs(status) => PathBuf::from(&status.socket),
        _ => home.socket().unwrap_or_default(),
    };
    let is_socket = |path: &Path| fs::metadata(path).is_ok_and(|m| m.file_type().is_socket());
    // Only of a folder that is minder's own: another one may be shared on purpose.
    let own = path.parent().filter(|folder| folder.ends_with("minder") || *folder == home.run());
    let open = own.and_then(|folder| fs::metadata(folder).ok()).map(|m| m.mode() & 0o777);
    Socket {
        linked: is_socket(&home.socket_link()),
        open: open.filter(|mode| mode & 0o077 != 0),
        too_long: path.as_os_str().len() > SOCKET_PATH_MAX,
        path,
    }
}

fn lock(home: &Home) -> Lock {
    let file = home.lock();
    let text = fs::read_to_string(&file).unwrap_or_default();
    let line = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
    let inode = fs::metadata(&file).ok().map(|m| m.ino());
    Lock {
        named: line("pid ").and_then(|pid| pid.parse().ok()),
        held: fs::read_to_string("/proc/locks")
            .ok()
            .map(|locks| inode.is_some_and(|inode| is_held(&locks, inode))),
        elsewhere: boot().is_some_and(|(id, began)| is_elsewhere(line("boot "), line("since "), &id, began)),
    }
}

/// Whether a lock of `/proc/locks` is on a file.
fn is_held(locks: &str, inode: u64) -> bool {
    let end = format!(":{inode}");
    locks
        .lines()
        .any(|line| line.contains(" FLOCK ") && line.split_whitespace().any(|word| word.ends_with(&end)))
}

/// Whether a lock was taken in another boot at a time when this one had begun.
fn is_elsewhere(boot: Option<&str>, since: Option<&str>, own: &str, began: Stamp) -> bool {
    let later = |since: &str| since.parse::<Stamp>().is_ok_and(|since| since > began);
    boot.is_some_and(|boot| boot != own) && since.is_some_and(later)
}

/// This boot's id, and when it began.
fn boot() -> Option<(String, Stamp)> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let uptime = fs::read_to_string("/proc/uptime").ok()?;
    let uptime: u64 = uptime.split('.').next()?.parse().ok()?;
    let began = SystemTime::now().checked_sub(Duration::from_secs(uptime))?;
    let millis = began.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_millis();
    Some((id.trim().to_owned(), Stamp::from_millis(i64::try_from(millis).ok()?)))
}

/// The folder, what is in it, and what is in that.
fn modes(root: &Path) -> Modes {
    let mut modes = Modes::default();
    let mut left = LOOKED_AT;
    let mut places = vec![(root.to_owned(), 2)];
    let own = nix::unistd::geteuid().as_raw();
    while let Some((place, depth)) = places.pop() {
        let Ok(metadata) = fs::symlink_metadata(&place) else { continue };
        if !(metadata.is_file() || metadata.is_dir()) || left == 0 {
            continue;
        }
        left -= 1;
        if metadata.uid() != own {
            modes.foreign.get_or_insert_with(|| place.clone());
        }
        if metadata.mode() & 0o077 != 0 {
            modes.wide += 1;
            modes.first_wide.get_or_insert_with(|| place.clone());
        }
        if metadata.is_dir() && depth > 0 {
            let entries = fs::read_dir(&place).into_iter().flatten().flatten();
            places.extend(entries.map(|entry| (entry.path(), depth - 1)));
        }
    }
    modes
}

fn harness(
    pack: &'static Pack,
    surroundings: &Surroundings,
    theirs: Option<&str>,
    own: &str,
) -> Option<Harness> {
    let here = find(pack, surroundings);
    let file = pack.file(surroundings, Scope::User);
    let hooks = match look(pack, surroundings, own, Scope::User) {
        Err(error) => Hooks::Broken(error.to_string()),
        Ok(seen) if seen.standing.is_absent() => {
            seen.only_notifies.map_or(Hooks::Absent, Hooks::OnlyNotifies)
        }
        Ok(seen) => Hooks::There {
            missing: seen.standing.missing,
            outdated: seen.standing.outdated,
            surplus: seen.standing.surplus,
            gone: seen.missing_programs,
            unreviewed: seen.unreviewed,
            hindrances: seen.standing.hindrances,
        },
    };
    if here.is_none() && !matches!(hooks, Hooks::There { .. }) {
        return None;
    }
    let there = theirs.map_or(There::Unknown, |path| {
        let theirs = Surroundings { path: Some(path.into()), ..surroundings.clone() };
        find(pack, &theirs).map_or(There::Nowhere, There::At)
    });
    let known = here.as_deref().filter(|_| pack.program.oldest.is_some());
    let too_old = known.and_then(|program| version(program, TIME_LIMIT).ok()).filter(|v| pack.is_too_old(v));
    let sandbox = SandboxConfig::read(surroundings, pack).ok().flatten();
    Some(Harness {
        name: pack.name,
        title: pack.title,
        then: pack.then,
        here,
        there,
        too_old,
        file,
        hooks,
        muted: sandbox.is_some_and(|sandbox| !matches!(sandbox.offer(), SandboxOffer::Given)),
    })
}

fn disk(root: &Path) -> Option<Disk> {
    let place = root.ancestors().find(|place| place.exists())?;
    let room = nix::sys::statvfs::statvfs(place).ok()?;
    #[allow(clippy::unnecessary_cast, reason = "the fields have other types on other systems")]
    let free = (room.blocks_available() as u64).saturating_mul(room.fragment_size() as u64);
    #[allow(clippy::unnecessary_cast, reason = "the fields have other types on other systems")]
    let inodes = (room.files() > 0).then_some(room.files_available() as u64);
    Some(Disk { free, inodes, shared: shared(place) })
}

/// What a file system is called that several machines share.
#[cfg(target_os = "linux")]
fn shared(place: &Path) -> Option<&'static str> {
    #[allow(clippy::cast_sign_loss, clippy::cast_possible_truncation, reason = "magic numbers have 32 bits")]
    let kind = nix::sys::statfs::statfs(place).ok()?.filesystem_type().0 as u32;
    shared_kind(kind)
}

#[cfg(not(target_os = "linux"))]
fn shared(place: &Path) -> Option<&'static str> {
    match nix::sys::statfs::statfs(place).ok()?.filesystem_type_name() {
        "nfs" => Some("NFS"),
        "smbfs" => Some("SMB"),
        "afpfs" => Some("AFP"),
        "webdav" => Some("WebDAV"),
        _ => None,
    }
}

/// The kinds that Linux numbers so.
#[cfg(any(target_os = "linux", test))]
fn shared_kind(magic: u32) -> Option<&'static str> {
    Some(match magic {
        0x6969 => "NFS",
        0x517b | 0xff53_4d42 | 0xfe53_4d42 => "SMB",
        0x00c3_6400 => "Ceph",
        0x5346_414f => "AFS",
        0x7461_636f => "OCFS2",
        0x0bd0_0bd0 => "Lustre",
        0x0116_1970 => "GFS2",
        0x4750_4653 => "GPFS",
        _ => return None,
    })
}

fn files(home: &Home) -> Files {
    let names = |folder: PathBuf| -> Vec<String> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut names: Vec<_> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    };
    let format = fs::read_to_string(home.format()).ok();
    let now = SystemTime::now();
    let ahead = |path: PathBuf| {
        let written = fs::metadata(path).and_then(|m| m.modified()).ok()?;
        Some(written.duration_since(now).ok()?.as_secs())
    };
    let ends = |name: &String, end: &str| name.ends_with(end);
    Files {
        exists: format.is_some(),
        format: format.map(|text| text.trim_end().to_owned()).filter(|text| text != STORE_FORMAT),
        quarantined: names(home.quarantine()).into_iter().filter(|name| !ends(name, ".why")).collect(),
        spooled: names(home.spool()).iter().filter(|name| ends(name, ".json")).count(),
        repair_needed: home.repair_needed().exists(),
        ahead_s: ahead(home.feed()).unwrap_or(0),
    }
}

fn configuration() -> Result<Config, CommandError> {
    let file = layout::config_file()?;
    let is_open = |file: &PathBuf| fs::metadata(file).is_ok_and(|m| m.mode() & 0o077 != 0);
    Ok(match config::load(&file, |name| std::env::var(name).ok()) {
        Ok(config) => Config {
            file,
            error: None,
            not_durable: config.store.durability == config::Durability::None,
            open_env_file: config.turn.env_file.filter(is_open),
        },
        Err(error) => Config { file, error: Some(error.to_string()), ..Config::default() },
    })
}

/// A session with messages that its channel does not take.
fn lost(home: &Home, record: &SessionRecord) -> Option<Stranded> {
    let queue = snapshot::queue(&home.session(record.id)).ok()?;
    let offline = |entry: &&minder_proto::queue::Entry| {
        entry.receipt == Receipt::Held && entry.reason.as_deref() == Some(Hold::Offline.as_str())
    };
    let held: Vec<_> = queue.iter().filter(offline).collect();
    Some(Stranded {
        label: record.label.clone(),
        messages: held.len(),
        since: held.iter().map(|entry| entry.since).min()?,
        channel: record.channel.as_str(),
        can_relaunch: record.harness.is_some() && !record.bindings.is_empty(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_found_by_its_file() {
        let locks = "1: POSIX  ADVISORY  READ 5 08:02:1234 128 128\n2: FLOCK  ADVISORY  WRITE 41211 fe:00:4242 0 EOF\n";
        assert!(is_held(locks, 4242));
        assert!(!is_held(locks, 242));
        assert!(!is_held(locks, 1234), "another kind of lock");
    }

    #[test]
    fn a_lock_of_another_machine_is_told_from_one_of_an_earlier_boot() {
        let began: Stamp = "2026-12-01T08:00:00Z".parse().unwrap();
        let of = |boot, since| is_elsewhere(Some(boot), Some(since), "mine", began);
        assert!(of("other", "2026-12-01T09:00:00Z"));
        assert!(!of("other", "2026-12-01T07:00:00Z"), "before the reboot");
        assert!(!of("mine", "2026-12-01T09:00:00Z"));
        assert!(!is_elsewhere(None, Some("2026-12-01T09:00:00Z"), "mine", began));
    }

    #[test]
    fn what_others_may_use_is_counted_and_links_are_not_followed() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        set(dir.path(), 0o700);
        fs::write(dir.path().join("a"), "").unwrap();
        set(&dir.path().join("a"), 0o600);
        std::os::unix::fs::symlink("/", dir.path().join("link")).unwrap();
        assert_eq!((modes(dir.path()).wide, modes(dir.path()).foreign), (0, None));
        set(&dir.path().join("a"), 0o640);
        let seen = modes(dir.path());
        assert_eq!((seen.wide, seen.first_wide), (1, Some(dir.path().join("a"))));
    }

    #[test]
    fn shared_file_systems_are_known() {
        assert_eq!(shared_kind(0x6969), Some("NFS"));
        assert_eq!(shared_kind(0xef53), None);
    }
}
