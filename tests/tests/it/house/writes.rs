//! Who writes files, and who prints: the store's promises hold only if nobody else changes its files, and scripts read
//! standard output.

use super::tree::program_code;

/// What changes files. Functions of the standard library and of the crates in use.
const WRITES: [&str; 21] = [
    "fs::write(",
    "fs::copy(",
    "fs::rename(",
    "fs::remove_file(",
    "fs::remove_dir",
    "fs::create_dir",
    "fs::hard_link(",
    "fs::set_permissions(",
    "symlink(",
    "OpenOptions::new(",
    "OpenOptions::options(",
    "File::create",
    "File::options(",
    "DirBuilder::new(",
    "NamedTempFile::",
    ".set_permissions(",
    ".set_len(",
    ".persist(",
    "renameat",
    "unlink",
    "mkdirat(",
];

/// Modules that change files, or open them in a way that only `OpenOptions` knows; each with the reason.
const WRITERS: [(&str, &str); 17] = [
    ("daemon/src/store/", "the store"),
    (
        "daemon/src/folder.rs",
        "makes the store's folders and corrects their permissions, before there is a store",
    ),
    ("daemon/src/lock.rs", "the lock file, which says who may write the rest"),
    ("daemon/src/logfile.rs", "the daemon's own log"),
    ("daemon/src/turn/place.rs", "the folder of a turn, before its shim is started and when it is over"),
    ("daemon/src/turn/log/", "the turn log"),
    ("daemon/src/shim/", "the folder of the one turn that a shim minds"),
    ("daemon/src/launch/door.rs", "the socket at which one process asks what to become"),
    ("daemon/src/server/listen.rs", "the socket and the link to it"),
    ("client/src/spool.rs", "what is said while no daemon can be reached"),
    ("client/src/follow/keeper.rs", "a follower's own cursors and their lock"),
    ("client/src/hooks/replace.rs", "settings files of a harness"),
    ("client/src/hooks/receipt.rs", "what was put into them, for the way back"),
    ("client/src/commands/tour/stage.rs", "the throw-away folder of the tour"),
    ("client/src/commands/probe/scratch.rs", "the throw-away folder of a probe"),
    ("client/src/commands/hook/trace.rs", "that a hook ran, in the store of a probe"),
    ("daemon/src/readiness.rs", "opens /dev/null"),
];

#[test]
fn only_the_store_and_the_named_modules_write_files() {
    let mut found = Vec::new();
    let mut used = [false; WRITERS.len()];
    for (path, code) in program_code() {
        let writer = WRITERS.iter().position(|(place, _)| path.starts_with(place));
        for (number, line) in code.lines_with(&WRITES) {
            match writer {
                Some(writer) => used[writer] = true,
                None => found.push(format!("{path}:{number}: {line}")),
            }
        }
    }
    assert!(found.is_empty(), "files are written by modules that are not named:\n{}", found.join("\n"));
    let unused: Vec<_> = WRITERS.iter().zip(used).filter(|(_, used)| !used).map(|((p, _), _)| p).collect();
    assert!(unused.is_empty(), "named as a writer, and writes nothing: {unused:?}");
}

/// What reaches a standard stream.
const PRINTS: [&str; 7] = ["println!", "eprintln!", "print!", "eprint!", "dbg!", "stdout()", "stderr()"];

/// Modules that print; each with the reason.
const PRINTERS: [(&str, &str); 4] = [
    ("client/src/printer.rs", "the printer"),
    ("client/src/commands/hook/mod.rs", "what a harness reads from its hook, byte by byte"),
    ("daemon/src/main.rs", "--help, --version, and the line that says why the daemon ends"),
    ("client/src/look.rs", "asks whether standard output is a terminal"),
];

#[test]
fn only_the_printer_prints() {
    let mut found = Vec::new();
    let mut used = [false; PRINTERS.len()];
    for (path, code) in program_code() {
        let printer = PRINTERS.iter().position(|(place, _)| path.starts_with(place));
        for (number, line) in code.lines_with(&PRINTS) {
            match printer {
                Some(printer) => used[printer] = true,
                None => found.push(format!("{path}:{number}: {line}")),
            }
        }
    }
    assert!(found.is_empty(), "printed past the printer:\n{}", found.join("\n"));
    let unused: Vec<_> = PRINTERS.iter().zip(used).filter(|(_, used)| !used).map(|((p, _), _)| p).collect();
    assert!(unused.is_empty(), "named as a printer, and prints nothing: {unused:?}");
}
