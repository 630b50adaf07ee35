//! The transcripts of the README and of `docs/` are replayed: what a reader sees there is what the programs print.
//!
//! A transcript is a fenced block marked `console`. A line that begins with `$ ` is a command for bash, one that begins
//! with `> ` goes on with it (a here-document, a long line); what follows until the next command is what was printed, on
//! both streams. The blocks of a page are run one after the other in one shell, as a person, with a store of their own;
//! blocks inside an HTML comment too, which set the scene unseen. Ids, times, ages, pids and versions differ from run to
//! run: they are compared by shape, and an id must stand in all places where the page has the same one
//! ([`normal`]). After a command that ends with `&` the rest of the block is compared without regard to the order of lines.
//!
//! `make docs` writes what differs into the page.

mod normal;
mod page;
mod shell;

use std::path::PathBuf;

use normal::Ids;
use page::{Block, Command};
use rstest::rstest;
use shell::Shell;

/// The pages with transcripts.
const PAGES: [&str; 8] = [
    "README.md",
    "docs/files.md",
    "docs/harnesses.md",
    "docs/headless.md",
    "docs/host.md",
    "docs/server.md",
    "docs/supervise.md",
    "docs/turns.md",
];

#[rstest]
#[case::readme("README.md")]
#[case::files("docs/files.md")]
#[case::harnesses("docs/harnesses.md")]
#[case::headless("docs/headless.md")]
#[case::host("docs/host.md")]
#[case::server("docs/server.md")]
#[case::supervise("docs/supervise.md")]
#[case::turns("docs/turns.md")]
fn generated_transcripts_are_what_the_programs_print(#[case] page: &str) {
    let path = root().join(page);
    let text = std::fs::read_to_string(&path).unwrap();
    let blocks = page::blocks(&text);
    assert!(!blocks.is_empty(), "{page} has no transcript");
    let mut shell = Shell::start().unwrap();
    let mut ids = Ids::default();
    let mut replaced = Vec::new();
    for block in blocks {
        for group in block.groups() {
            let printed = run(&mut shell, &ids, &group);
            let expected: Vec<&str> = group.iter().flat_map(|c| c.output.iter().copied()).collect();
            let ordered = group.len() == 1;
            if let Err(difference) = ids.compare(&expected, &printed, ordered) {
                let command = group[0].lines.join("\n");
                let shown = page::render(&group, &ids.as_in_page(&printed));
                replaced.push((group[0].place.start..group[group.len() - 1].place.end, shown));
                assert!(updating(), "{page}: after\n{command}\n{difference}\n`make docs` writes it anew");
            }
        }
    }
    if !replaced.is_empty() {
        std::fs::write(&path, page::replace(&text, &replaced)).unwrap();
    }
}

/// Runs the commands of a group and gives all that they printed.
fn run(shell: &mut Shell, ids: &Ids, group: &[Command<'_>]) -> Vec<String> {
    let commands = group.iter().map(|command| ids.as_in_run(&command.text()));
    commands.flat_map(|command| shell.run(&command).unwrap()).collect()
}

fn updating() -> bool {
    std::env::var_os("UPDATE_EXPECT").is_some_and(|wish| wish == "1")
}

fn root() -> PathBuf {
    crate::house::root().to_owned()
}

/// A page whose transcripts nobody replays is a page that grows wrong.
#[test]
fn every_page_with_a_transcript_is_replayed() {
    let mut pages = vec!["README.md".to_owned()];
    for entry in std::fs::read_dir(root().join("docs")).unwrap() {
        pages.push(format!("docs/{}", entry.unwrap().file_name().to_str().unwrap()));
    }
    let has = |page: &String| !page::blocks(&std::fs::read_to_string(root().join(page)).unwrap()).is_empty();
    let mut with: Vec<String> = pages.into_iter().filter(has).collect();
    with.sort();
    assert_eq!(with, PAGES);
}

impl<'a> Block<'a> {
    /// The commands, those from one with `&` on together.
    fn groups(&self) -> Vec<Vec<Command<'a>>> {
        let behind = self.commands.iter().position(|c| c.text().trim_end().ends_with('&'));
        let alone = &self.commands[..behind.unwrap_or(self.commands.len())];
        let mut groups: Vec<Vec<Command<'a>>> = alone.iter().map(|c| vec![c.clone()]).collect();
        groups.extend(behind.map(|at| self.commands[at..].to_vec()));
        groups
    }
}
