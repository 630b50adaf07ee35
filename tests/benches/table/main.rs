//! `make bench`: one table. Each figure is a ratio to something measured in the same run, or a count, since times alone
//! say more about the machine than about minder. With `UPDATE_EXPECT=1` the table goes into `docs/performance.md`.

// In a bench a panic is the report, and the table is what it is for.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr, clippy::cast_precision_loss)]

mod commits;
mod daemon;
mod fleet;
mod followers;
mod measure;
mod programs;
mod rpc;
mod scale;
mod table;
mod turns;

use table::Table;

/// A part of the table.
type Rows = fn(&mut Table);

fn main() {
    // `cargo bench` passes options of its own; a word is the part of the table that is wanted.
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let mut table = Table::default();
    let parts: [(&str, Rows); 6] = [
        ("programs", programs::rows),
        ("commits", commits::rows),
        ("followers", followers::rows),
        ("daemon", daemon::rows),
        ("scale", scale::rows),
        ("turns", turns::rows),
    ];
    for (name, rows) in parts {
        if wanted.is_empty() || wanted.iter().any(|w| w == name) {
            eprintln!("measuring {name} …");
            rows(&mut table);
        }
    }
    let text = table.markdown();
    println!("{text}");
    if wanted.is_empty() && std::env::var_os("UPDATE_EXPECT").is_some_and(|wish| wish == "1") {
        table::write(&text);
    }
}
