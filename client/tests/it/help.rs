//! K1: help never acts.

use clap::CommandFactory;
use minder_client::cli::Cli;

use crate::world::World;
use crate::world::daemon::Reply;

/// The words of every command there is, the bare one first.
pub fn commands() -> Vec<Vec<String>> {
    fn walk(command: &clap::Command, words: &[String], found: &mut Vec<Vec<String>>) {
        found.push(words.to_vec());
        for sub in command.get_subcommands() {
            let words: Vec<String> = words.iter().cloned().chain([sub.get_name().to_owned()]).collect();
            walk(sub, &words, found);
        }
    }
    let mut found = Vec::new();
    walk(&Cli::command(), &[], &mut found);
    found
}

#[test]
fn k1_help_never_acts() {
    let world = World::new();
    // A daemon that would be started leaves a mark; one that runs would note a call.
    let mark = world.root().join("started");
    let starter = world.root().join("minderd");
    crate::place::script(&starter, &format!("touch {}", mark.display()));
    let daemon = world.daemon(|_, _| Reply::Silence);
    let before = world.tree();
    let commands = commands();
    assert!(commands.len() > 40, "{}", commands.len());
    for words in commands {
        for help in ["--help", "-h"] {
            let words: Vec<&str> = words.iter().map(String::as_str).chain([help]).collect();
            let mut command = world.command(&words);
            command.env_remove("MINDER_NO_AUTOSTART").env("MINDER_DAEMON", &starter);
            let ran = crate::world::finish(&mut command, b"");
            assert!(ran.ok().contains("Usage: minder"), "{words:?}: {ran:?}");
            assert!(ran.out.contains("--json"), "{words:?} has no --json");
        }
    }
    assert_eq!(daemon.calls(), []);
    assert_eq!(world.tree(), before);
}

/// A text that is broken by hand and again by an 80 column terminal is ragged.
#[test]
fn no_line_that_help_was_given_is_longer_than_a_terminal() {
    let mut long = Vec::new();
    let mut texts = vec![("help selectors".to_owned(), minder_client::commands::help::SELECTORS.to_owned())];
    let root = Cli::command();
    for words in commands() {
        let command = words.iter().fold(&root, |c, word| c.find_subcommand(word).unwrap());
        texts.extend(command.get_after_help().map(|text| (words.join(" "), text.to_string())));
    }
    assert!(texts.len() > 20, "{}", texts.len());
    for (name, text) in texts {
        long.extend(text.lines().filter(|l| l.chars().count() > 78).map(|l| format!("{name}: {l}")));
    }
    assert!(long.is_empty(), "{}", long.join("\n"));
}

#[test]
fn selectors_are_a_topic_that_help_leads_to() {
    let world = World::new();
    let ran = world.run(&["help", "selectors"]);
    let text = ran.ok();
    for word in
        ["@all", "@parent", "@children", "@operator", "state:", "dir:", "actionable", "turn-end", "MID"]
    {
        assert!(text.contains(word), "{word}");
    }
    for words in [vec!["ls"], vec!["wait"], vec!["watch"], vec!["send"], vec![]] {
        let ran = world.run(&[&words[..], &["--help"]].concat());
        assert!(ran.ok().contains("minder help selectors"), "{words:?}");
    }
}

#[test]
fn help_and_version_are_output_and_can_be_objects() {
    let world = World::new();
    assert_eq!(world.run(&["--version"]).ok(), format!("minder {}\n", env!("CARGO_PKG_VERSION")));
    assert!(
        world.run(&["ls", "--help", "--json"]).json()["text"].as_str().unwrap().contains("Usage: minder ls")
    );
    assert_eq!(world.run(&["help", "send"]).ok(), world.run(&["send", "--help"]).ok());
    assert_eq!(world.run(&["help"]).ok(), world.run(&["--help"]).ok());
    assert!(world.run(&["help", "agent"]).ok().starts_with("## minder"));
    assert!(
        world.run(&["help", "agent", "--json"]).json()["text"].as_str().unwrap().starts_with("## minder")
    );
    world.run(&["help", "frobnicate"]).failed(64);
}
