//! What there is on this machine to start the daemon: a service manager, or nobody. It is only looked at; the
//! daemon needs none, the first command or hook starts it.

use std::env;
use std::path::{Path, PathBuf};

use nix::unistd::{User, getuid};
use serde::Serialize;

/// Who could look after the daemon here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "manager", rename_all = "kebab-case")]
pub enum Service {
    /// A systemd user manager answers for this user.
    Systemd {
        /// The folder in which the daemon's units are, if they are installed.
        units: Option<PathBuf>,
        /// Whether the user's manager outlives the last login.
        lingers: bool,
    },
    /// systemd runs, but there is no manager for this user (no login session, `su`).
    NoUserManager,
    /// Another init.
    NoSystemd,
    /// macOS.
    Launchd,
}

/// The name of the unit that starts the daemon when somebody connects.
pub const SOCKET_UNIT: &str = "minderd.socket";

/// Looks around on this machine.
pub fn look_here() -> Service {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let config = set("XDG_CONFIG_HOME").or_else(|| set("HOME").map(|home| home.join(".config")));
    let user = User::from_uid(getuid()).ok().flatten().map(|user| user.name);
    look(
        Path::new("/"),
        set("XDG_RUNTIME_DIR").as_deref(),
        &config.unwrap_or_default(),
        &user.unwrap_or_default(),
    )
}

/// Looks. `root` is `/`, `runtime` is `XDG_RUNTIME_DIR`, `config` is `XDG_CONFIG_HOME` or what stands for it.
pub fn look(root: &Path, runtime: Option<&Path>, config: &Path, user: &str) -> Service {
    if cfg!(target_os = "macos") {
        return Service::Launchd;
    }
    if !root.join("run/systemd/system").is_dir() {
        return Service::NoSystemd;
    }
    if !runtime.is_some_and(|folder| folder.join("systemd/private").exists()) {
        return Service::NoUserManager;
    }
    let system =
        ["etc/systemd/user", "usr/local/lib/systemd/user", "usr/lib/systemd/user", "lib/systemd/user"];
    let mut folders = vec![config.join("systemd/user")];
    folders.extend(system.iter().map(|folder| root.join(folder)));
    Service::Systemd {
        units: folders.into_iter().find(|folder| folder.join(SOCKET_UNIT).exists()),
        lingers: !user.is_empty() && root.join("var/lib/systemd/linger").join(user).exists(),
    }
}

impl Service {
    /// One plain line for a person.
    pub fn line(&self) -> &'static str {
        match self {
            Self::Systemd { units: Some(_), .. } => "systemd has the daemon's units",
            Self::Systemd { units: None, .. } => {
                "systemd does not have the daemon's units; none needed: the first command or hook starts the daemon"
            }
            Self::NoUserManager => {
                "no systemd manager for this user; none needed: the first command or hook starts the daemon"
            }
            Self::NoSystemd => "no systemd here; none needed: the first command or hook starts the daemon",
            Self::Launchd => "launchd is not asked; none needed: the first command or hook starts the daemon",
        }
    }

    /// Whether the daemon is ended with the user's last login.
    pub fn ends_with_login(&self) -> bool {
        matches!(self, Self::Systemd { lingers: false, .. })
    }
}

#[cfg(all(test, not(target_os = "macos")))]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_machine_gets_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let runtime = root.join("run/user/1000");
        let config = root.join("home/.config");
        let seen = || look(root, Some(&runtime), &config, "ana");
        assert_eq!(seen(), Service::NoSystemd);
        fs_err::create_dir_all(root.join("run/systemd/system")).unwrap();
        assert_eq!(seen(), Service::NoUserManager);
        assert_eq!(look(root, None, &config, "ana"), Service::NoUserManager);
        fs_err::create_dir_all(runtime.join("systemd/private")).unwrap();
        assert_eq!(seen(), Service::Systemd { units: None, lingers: false });
        assert!(seen().ends_with_login());
        let units = root.join("usr/lib/systemd/user");
        fs_err::create_dir_all(&units).unwrap();
        fs_err::write(units.join(SOCKET_UNIT), "").unwrap();
        fs_err::create_dir_all(root.join("var/lib/systemd/linger")).unwrap();
        fs_err::write(root.join("var/lib/systemd/linger/ana"), "").unwrap();
        assert_eq!(seen(), Service::Systemd { units: Some(units), lingers: true });
        assert!(!seen().ends_with_login());
        for service in [Service::NoSystemd, Service::NoUserManager, Service::Launchd, seen()] {
            assert!(!service.line().contains('\n'));
        }
    }
}
