//! F11 and the environment: where a turn runs, and what it is given.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::{Duration, Instant};

use minder_proto::rpc::TurnRun;
use minder_proto::turn::{Failure, Outcome};
use minder_tests::process::{self, Process};
use rustix::process::Signal;

use super::scene::*;
use crate::strace::Attached;
use crate::world::{LIMIT, World, must};

#[test]
fn f11_a_directory_that_is_gone_is_not_a_program_that_is_missing() {
    let world = World::new();
    let _daemon = world.start();
    let mut client = world.client();
    let gone = world.isolated.root().join("gone").display().to_string();
    let call = TurnRun { dir: Some(gone.clone()), ..command(&world, &["true"]) };
    let settled = must(&mut client, &call).settled.expect("it ran");
    assert_eq!(settled.failure, Some(Failure::CwdMissing));
    assert!(settled.why.expect("it says why").contains(&gone));
    assert_eq!(line_of(&world, id(&call)).failure, Some(Failure::CwdMissing));

    let missing = command(&world, &["no-such-program"]);
    let settled = must(&mut client, &missing).settled.expect("it ran");
    assert_eq!(settled.failure, Some(Failure::NotFound));
    assert!(settled.why.expect("it says why").contains("no-such-program"));
    let file = world.isolated.root().join("file").display().to_string();
    std::fs::write(&file, "echo never\n").unwrap();
    let file = command(&world, &[&file]);
    assert_eq!(must(&mut client, &file).settled.expect("it ran").failure, Some(Failure::NotExecutable));
}

#[test]
fn f11_a_directory_that_goes_meanwhile_is_one_outcome_that_says_so() {
    let world = World::new();
    let daemon = world.start();
    let call = fake(&world, "remove-directory\nerror cannot go on\nexit 1");
    let turn = id(&call);
    let settled = must(&mut world.client(), &call).settled.expect("it ran");
    assert_eq!((settled.outcome, settled.failure), (Some(Outcome::Failed), Some(Failure::AdapterExit)));
    let why = settled.why.expect("it says why");
    assert!(why.contains(call.dir.as_deref().unwrap()) && why.contains("gone"), "{why}");
    assert_eq!(line_of(&world, turn).exit_code, Some(1));
    daemon.stop();
    let _daemon = world.start();
    assert_eq!(rows(&mut world.client()), []);
    assert_eq!(recorded(&world, turn).iter().filter(|l| l["what"] == "started").count(), 1);
}

/// The daemon's own environment never leaks, nor what names somebody else's session.
#[test]
fn l2_a_child_gets_what_is_listed_of_its_callers_and_nothing_of_the_daemons() {
    let world = World::with("[turn]\nenv_pass = [\"MY_OWN\"]\n");
    let _daemon = world
        .launch(&[("ANTHROPIC_API_KEY", "of-the-daemon"), ("MY_OWN", "of-the-daemon"), ("LC_TIME", "C")])
        .settle()
        .unwrap_or_else(|e| panic!("{e}"));
    let mut call = command(&world, &["env"]);
    let more = [
        ("FOREIGN", "of-the-caller"),
        ("ANTHROPIC_API_KEY", "of-the-caller"),
        ("CLAUDECODE", "1"),
        ("CLAUDE_CODE_SESSION_ID", "outer"),
        ("CODEX_THREAD_ID", "outer"),
        ("MINDER_SESSION", "outer"),
        ("MINDER_TURN", "outer"),
        ("LC_ALL", "C"),
    ];
    call.env.extend(more.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let text = must(&mut world.client(), &call).settled.and_then(|s| s.text).expect("it printed");
    for absent in ["of-the-daemon", "of-the-caller", "outer", "CLAUDECODE", "LC_TIME", "MY_OWN"] {
        assert!(!text.contains(absent), "{absent}: {text}");
    }
    for there in [&format!("MINDER_TURN={}", id(&call)), "LC_ALL=C", "MINDER_TURN_DEADLINE=20"] {
        assert!(text.lines().any(|line| line.starts_with(there)), "{there}: {text}");
    }
    let home = format!("MINDER_HOME={}", world.home().root().display());
    assert!(text.lines().any(|line| line == home), "{text}");
}

/// A child has the limit on open files that the daemon was started with, and no descriptor beyond its own three.
#[test]
fn a_child_has_the_old_limit_and_no_descriptors_of_others() {
    let world = World::new();
    let _daemon = world.start();
    let call = command(&world, &["sh", "-c", "ulimit -S -n; ls /proc/self/fd | wc -l; umask; cat; echo end"]);
    let soft = {
        let (soft, _) = nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE).unwrap();
        soft.to_string()
    };
    let text = must(&mut world.client(), &call).settled.and_then(|s| s.text).expect("it printed");
    // The three, and the folder that `ls` reads.
    assert_eq!(text.lines().collect::<Vec<_>>(), [soft.as_str(), "4", "0077", "end"]);
}

#[test]
fn f11_a_script_that_names_nobody_to_run_it_is_run_by_a_shell() {
    let world = World::new();
    let _daemon = world.start();
    let script = world.isolated.root().join("script");
    std::fs::write(&script, "echo \"$1 in $(pwd)\"\n").unwrap();
    std::fs::set_permissions(&script, Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", world.isolated.root().display());
    for name in [script.display().to_string(), "script".to_owned()] {
        let mut call = command(&world, &[&name, "well"]);
        call.env.insert("PATH".to_owned(), path.clone());
        let settled = must(&mut world.client(), &call).settled.expect("it ran");
        let said = format!("well in {}\n", call.dir.expect("it has one"));
        assert_eq!((settled.failure, settled.text), (None, Some(said)), "{name}");
    }
}

/// The server of which shims are copies may be ended or hang at any time: the next turn has another one.
#[test]
fn a_server_of_shims_that_is_gone_is_replaced() {
    let world = World::new();
    let daemon = world.start();
    let servers = || process::find(|p| parent_of(p) == Some(daemon.pid()));
    let runs = || must(&mut world.client(), &command(&world, &["echo", "well"])).settled.and_then(|s| s.text);
    assert_eq!(servers().len(), 0, "nobody has asked for a turn");
    assert_eq!(runs().as_deref(), Some("well\n"));
    let [first]: [Process; 1] = servers().try_into().expect("one server");
    assert_eq!(runs().as_deref(), Some("well\n"));
    assert_eq!(servers().iter().map(Process::pid).collect::<Vec<_>>(), [first.pid()], "it serves all turns");
    first.signal(Signal::KILL);
    assert!(first.wait(LIMIT));
    assert_eq!(runs().as_deref(), Some("well\n"));
    let [second]: [Process; 1] = servers().try_into().expect("one server");
    daemon.stop();
    assert!(second.wait(LIMIT), "it goes with its daemon");
}

/// A shim is started by a daemon of any size in the time that a small one takes: what is cloned shares its memory until it
/// is another program.
#[test]
fn a_shim_is_started_without_a_copy_of_the_daemon() {
    let world = World::new();
    let daemon = world.start();
    let log = world.isolated.root().join("calls");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-e", "trace=clone,clone3,fork,vfork,execve", "-e", "signal=none", "-o"]);
    strace.arg(&log).args(["-p", &daemon.pid().to_string()]);
    let attached = Attached::new(&mut strace, daemon.pid());
    must(&mut world.client(), &command(&world, &["true"]));
    // The next shim is made ready meanwhile, and strace does not get away from a process that starts another one.
    let runs = world.home().turns().join("run");
    let ready = || {
        let folders = std::fs::read_dir(&runs).ok()?.filter_map(Result::ok);
        let mut spares = folders.filter(|entry| entry.file_name().to_string_lossy().starts_with(".spare-"));
        spares.any(|entry| entry.path().join("spec.json").exists()).then_some(())
    };
    let deadline = Instant::now() + LIMIT;
    while ready().is_none() {
        assert!(Instant::now() < deadline, "no shim stands ready");
        assert!(!daemon.process.wait(Duration::from_millis(5)), "the daemon has ended");
    }
    attached.detach();
    let text = std::fs::read_to_string(&log).unwrap();
    let calls: Vec<&str> = text.lines().collect();
    let shim = calls.iter().position(|line| line.contains("execve(") && line.contains("\"shim\""));
    let shim = shim.unwrap_or_else(|| panic!("no shim was started: {text}"));
    let copies = |line: &&&str| {
        let cloned = ["clone(", "clone3(", "fork(", "vfork("].iter().any(|call| line.contains(call));
        cloned && !line.contains("CLONE_VM") && !line.contains("vfork(")
    };
    assert_eq!(calls[..shim].iter().filter(copies).collect::<Vec<_>>(), [] as [&&str; 0]);
}
