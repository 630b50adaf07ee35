//! The unit files and the plist.

use std::path::PathBuf;
use std::process::Stdio;

use crate::surroundings::Surroundings;

fn repository(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join(name)
}

#[test]
fn systemd_finds_nothing_to_complain_about() {
    let around = Surroundings::new();
    let output = around
        .command("systemd-analyze")
        .args(["--user", "verify"])
        .args([repository("systemd/minderd.service"), repository("systemd/minderd.socket")])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .output()
        .expect("systemd-analyze (Debian: systemd) is needed");
    let said = [output.stdout, output.stderr].concat();
    assert_eq!(String::from_utf8_lossy(&said), "");
    assert!(output.status.success());
}

#[test]
fn the_units_say_what_the_contract_asks() {
    let service = std::fs::read_to_string(repository("systemd/minderd.service")).unwrap();
    for line in
        ["Type=notify", "NotifyAccess=main", "KillMode=process", "Restart=on-failure", "WatchdogSec=60"]
    {
        assert!(service.lines().any(|l| l == line), "{line}");
    }
    let prevented = service.lines().find_map(|l| l.strip_prefix("RestartPreventExitStatus=")).unwrap();
    assert!(prevented.split(' ').any(|code| code == "73"), "{prevented}");
    let socket = std::fs::read_to_string(repository("systemd/minderd.socket")).unwrap();
    for line in ["ListenStream=%t/minder/minder.sock", "SocketMode=0600", "DirectoryMode=0700", "Accept=no"] {
        assert!(socket.lines().any(|l| l == line), "{line}");
    }
}

#[test]
fn the_plist_is_one() {
    let agent = plist::Value::from_file(repository("launchd/org.minder.minderd.plist")).unwrap();
    let agent = agent.as_dictionary().unwrap();
    assert_eq!(agent["Label"].as_string(), Some("org.minder.minderd"));
    assert_eq!(agent["KeepAlive"].as_dictionary().unwrap()["Crashed"].as_boolean(), Some(true));
    assert!(agent["ThrottleInterval"].as_signed_integer().unwrap() >= 10);
    assert_eq!(agent["AbandonProcessGroup"].as_boolean(), Some(true), "turns outlive the daemon");
    assert!(agent["ProgramArguments"].as_array().unwrap().iter().all(|a| a.as_string().is_some()));
}
