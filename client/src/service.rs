//! The service manager, where one has charge of the daemon: the units `minderd.service` and `minderd.socket` of
//! the user's systemd.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::fault::CommandError;

/// The daemon's unit.
pub const UNIT: &str = "minderd.service";
/// The unit that listens for it.
pub const SOCKET_UNIT: &str = "minderd.socket";

/// True if systemd runs this process as [`UNIT`].
pub fn runs(pid: u32) -> bool {
    let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    groups.lines().any(|line| line.ends_with(&format!("/{UNIT}")))
}

/// True if the user's systemd is to start the daemon: one of its units is enabled.
pub fn has_charge() -> bool {
    // Asked only where a user's manager is: elsewhere the question costs a second and ends in an error.
    let manager = std::env::var_os("XDG_RUNTIME_DIR").map(|d| PathBuf::from(d).join("systemd"));
    manager.is_some_and(|m| m.is_dir())
        && [UNIT, SOCKET_UNIT].iter().any(|unit| {
            let mut ask = systemctl();
            ask.args(["is-enabled", "--quiet", unit]).stdout(Stdio::null()).stderr(Stdio::null());
            ask.status().is_ok_and(|status| status.success())
        })
}

/// `systemctl --user VERB UNIT…`; its own words are the error.
pub fn control(verb: &str, units: &[&str]) -> Result<(), CommandError> {
    let output = systemctl().arg(verb).args(units).stdin(Stdio::null()).output();
    let output = output.map_err(|e| CommandError::unavailable(format!("systemctl: {e}")))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = minder_proto::text::first_line(&said);
    Err(CommandError::unavailable(format!("systemctl --user {verb} {}: {said}", units.join(" ")))
        .hint(format!("journalctl --user -u {UNIT}")))
}

/// True if this unit is active now.
pub fn is_active(unit: &str) -> bool {
    let mut ask = systemctl();
    ask.args(["is-active", "--quiet", unit]).stdout(Stdio::null()).stderr(Stdio::null());
    ask.status().is_ok_and(|status| status.success())
}

fn systemctl() -> Command {
    let mut command = Command::new("systemctl");
    command.arg("--user");
    command
}
