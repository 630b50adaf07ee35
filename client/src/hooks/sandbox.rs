//! Codex's sandbox keeps a tool's commands from the daemon's socket and from the store. With the store's `spool/`
//! among its writable folders what they say is left there, and counts. This is the one line of `config.toml` for it:
//! put in and taken out as text, because that file is a person's, and read back, because a text that is not understood
//! must not be changed.

use serde::Deserialize;
use toml::{Spanned, Table, Value};

use super::memory::Memory;

/// What a line of ours ends with.
const MARKER: &str = "# minder-hook";
const TABLE: &str = "sandbox_workspace_write";
const KEY: &str = "writable_roots";

/// What there is to do.
#[derive(Debug, PartialEq, Eq)]
pub enum Offer {
    /// It is there.
    Given,
    /// This text has it, and this has to be remembered.
    Change {
        /// The text.
        text: String,
        /// For the way back.
        memory: Memory,
    },
    /// It is written in a way that is better changed by hand.
    ByHand,
}

#[derive(Deserialize)]
struct Config {
    sandbox_workspace_write: Option<Sandbox>,
}

#[derive(Deserialize)]
struct Sandbox {
    writable_roots: Option<Spanned<Vec<Spanned<String>>>>,
}

/// The lines, for a person who writes them.
pub fn lines(folder: &str) -> String {
    format!("[{TABLE}]\n{KEY} = [{}]", quoted(folder))
}

/// What a configuration becomes that lets tools write to a folder.
pub fn offer(before: Option<&str>, folder: &str) -> Offer {
    let text = before.unwrap_or_default();
    let (Ok(config), Ok(table)) = (toml::from_str::<Config>(text), text.parse::<Table>()) else {
        return Offer::ByHand;
    };
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let (at, added) = match config.sandbox_workspace_write.map(|sandbox| sandbox.writable_roots) {
        Some(Some(roots)) => {
            if roots.get_ref().iter().any(|root| root.get_ref() == folder) {
                return Offer::Given;
            }
            let comma = if roots.get_ref().is_empty() { "" } else { ", " };
            (roots.span().start + 1, format!("{}{comma}", quoted(folder)))
        }
        Some(None) => match behind_header(text) {
            Some(at) => (at, format!("{KEY} = [{}] {MARKER}{newline}", quoted(folder))),
            None => return Offer::ByHand,
        },
        None => {
            let first = if text.is_empty() || text.ends_with('\n') { "" } else { newline };
            let header = format!("[{TABLE}] {MARKER}{newline}");
            (text.len(), format!("{first}{header}{KEY} = [{}] {MARKER}{newline}", quoted(folder)))
        }
    };
    let after = format!("{}{added}{}", &text[..at], &text[at..]);
    if after.parse::<Table>().ok() != with(table, folder) {
        return Offer::ByHand;
    }
    let memory = match before {
        None => Memory::of_new_file(&after),
        Some(before) => {
            let range = at..at + added.len();
            Memory::of_added(before, &after, std::slice::from_ref(&range), Vec::new())
        }
    };
    Offer::Change { text: after, memory }
}

/// The configuration without it: `None` where it is not ours or not there, else the text, or no file at all. It is
/// ours where the receipt or its line says so: a folder that a person allowed stays allowed.
pub fn take_back(text: &str, memory: Option<&Memory>, folder: &str) -> Option<Option<String>> {
    if let Some(start) = memory.and_then(|memory| memory.take_back(text)) {
        return Some(start);
    }
    let own_lines = text.lines().any(|line| line.trim_end().ends_with(MARKER));
    if memory.is_none() && !own_lines {
        return None;
    }
    let left = without_line(text, folder).or_else(|| without_element(text, folder))?;
    let gone = memory.is_some_and(|memory| memory.made_file) && left.trim().is_empty();
    Some((!gone).then_some(left))
}

/// Without our lines, if the only root in them is ours.
fn without_line(text: &str, folder: &str) -> Option<String> {
    let ours = |line: &str| line.trim_end().ends_with(MARKER);
    let is_root = |line: &str| ours(line) && line.trim_start().starts_with(KEY);
    let root = format!("{KEY} = [{}] {MARKER}", quoted(folder));
    if !text.lines().any(|line| is_root(line) && line.trim() == root) {
        return None;
    }
    // A table that somebody put more into stays.
    let before: Table = text.parse().ok()?;
    let alone = before.get(TABLE).and_then(Value::as_table).is_some_and(|table| table.len() == 1);
    let header = format!("[{TABLE}]");
    let is_header = |line: &str| alone && ours(line) && line.trim_start().starts_with(&header);
    let stays = |line: &&str| !is_root(line) && !is_header(line);
    let left: String = text.split_inclusive('\n').filter(stays).collect();
    (less(left.parse::<Table>().ok()?, folder) == less(before, folder)).then_some(left)
}

/// Without our element in a list with others.
fn without_element(text: &str, folder: &str) -> Option<String> {
    let config: Config = toml::from_str(text).ok()?;
    let roots = config.sandbox_workspace_write?.writable_roots?;
    let roots = roots.get_ref();
    let at = roots.iter().position(|root| root.get_ref() == folder)?;
    let range = match (at.checked_sub(1).and_then(|i| roots.get(i)), roots.get(at + 1)) {
        (_, Some(next)) => roots[at].span().start..next.span().start,
        (Some(last), None) => last.span().end..roots[at].span().end,
        (None, None) => roots[at].span(),
    };
    let left = format!("{}{}", &text[..range.start], &text[range.end..]);
    let after: Table = left.parse().ok()?;
    let kept = after.get(TABLE)?.get(KEY)?.as_array()?;
    (kept.len() + 1 == roots.len()).then_some(left)
}

/// The place behind the line that opens the table.
fn behind_header(text: &str) -> Option<usize> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        at += line.len();
        let rest = line.trim().strip_prefix(&format!("[{TABLE}]"));
        if rest.is_some_and(|rest| rest.is_empty() || rest.trim_start().starts_with('#'))
            && line.ends_with('\n')
        {
            return Some(at);
        }
    }
    None
}

/// The table with the folder first among the roots.
fn with(mut table: Table, folder: &str) -> Option<Table> {
    let sandbox = table.entry(TABLE).or_insert_with(|| Value::Table(Table::new())).as_table_mut()?;
    let roots = sandbox.entry(KEY).or_insert_with(|| Value::Array(Vec::new())).as_array_mut()?;
    roots.insert(0, Value::String(folder.to_owned()));
    Some(table)
}

/// The configuration without the folder where that is the only root, and without a table that holds nothing else.
fn less(mut table: Table, folder: &str) -> Table {
    if let Some(sandbox) = table.get_mut(TABLE).and_then(Value::as_table_mut) {
        let only = [Value::String(folder.to_owned())];
        if sandbox.get(KEY).and_then(Value::as_array).is_some_and(|roots| roots[..] == only) {
            sandbox.remove(KEY);
        }
        if sandbox.is_empty() {
            table.remove(TABLE);
        }
    }
    table
}

/// As a TOML string.
fn quoted(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPOOL: &str = "/home/ana/.local/state/minder/spool";

    fn changed(text: Option<&str>, folder: &str) -> (String, Memory) {
        match offer(text, folder) {
            Offer::Change { text, memory } => (text, memory),
            other => panic!("{other:?} for {text:?}"),
        }
    }

    const CONFIGS: &[&str] = &[
        "",
        "model = \"x\"\n",
        "model = \"x\"",
        "# mine\r\nmodel = \"x\"\r\n[tui]\r\ntheme = 1\r\n",
        "[sandbox_workspace_write]\n",
        "[sandbox_workspace_write] # mine\nnetwork_access = true\n\n[tui]\n",
        "[sandbox_workspace_write]\nwritable_roots = []\n",
        "[sandbox_workspace_write]\nwritable_roots = [ ]\n",
        "[sandbox_workspace_write]\nwritable_roots = [\n  \"/a\", # one\n  '/b',\n]\n",
        "sandbox_workspace_write.writable_roots = [\"/a\"]\n[tui]\n",
        "sandbox_workspace_write = { writable_roots = ['/a'] }\n",
        "[projects.\"/x\"]\ntrust_level = \"trusted\"\n",
    ];

    #[test]
    fn it_goes_in_once_and_out_to_the_byte() {
        for folder in [SPOOL, "/a b/it's \"q\" $HOME\\n/spool", "/ä\t/spool"] {
            for start in CONFIGS {
                let (text, memory) = changed(Some(start), folder);
                assert_eq!(offer(Some(&text), folder), Offer::Given, "{start}");
                assert_eq!(
                    take_back(&text, Some(&memory), folder),
                    Some(Some((*start).to_owned())),
                    "{start}"
                );
            }
        }
        let (text, memory) = changed(None, SPOOL);
        assert_eq!(
            text,
            format!(
                "[sandbox_workspace_write] # minder-hook\nwritable_roots = [\"{SPOOL}\"] # minder-hook\n"
            )
        );
        assert_eq!(take_back(&text, Some(&memory), SPOOL), Some(None));
    }

    #[test]
    fn what_codex_adds_to_the_file_meanwhile_stays_and_ours_goes() {
        let review = "\n[hooks.state.\"/h/hooks.json:stop:0:0\"]\ntrusted_hash = \"sha256:1\"\n";
        for start in CONFIGS.iter().filter(|start| start.is_empty() || start.ends_with('\n')) {
            let (text, memory) = changed(Some(start), SPOOL);
            let left = take_back(&format!("{text}{review}"), Some(&memory), SPOOL).unwrap().unwrap();
            let expected: Table = format!("{start}{review}").parse().unwrap();
            let mut got: Table = left.parse().unwrap();
            assert!(!left.contains(SPOOL) && !left.contains(MARKER), "{left}");
            got.entry(TABLE).or_insert_with(|| Value::Table(Table::new()));
            let mut expected = expected;
            expected.entry(TABLE).or_insert_with(|| Value::Table(Table::new()));
            assert_eq!(got, expected, "{start}");
            assert!(left.ends_with(review));
        }
    }

    #[test]
    fn without_a_receipt_only_marked_lines_are_ours() {
        let (text, _) = changed(Some("model = \"x\"\n"), SPOOL);
        assert_eq!(take_back(&text, None, SPOOL), Some(Some("model = \"x\"\n".to_owned())));
        let theirs = format!("[sandbox_workspace_write]\nwritable_roots = [\"{SPOOL}\"]\n");
        assert_eq!(offer(Some(&theirs), SPOOL), Offer::Given);
        assert_eq!(take_back(&theirs, None, SPOOL), None);
        assert_eq!(take_back("model = \"x\"\n", None, SPOOL), None);
    }

    #[test]
    fn a_table_that_somebody_put_more_into_stays() {
        let (text, memory) = changed(Some(""), SPOOL);
        let more = format!("{text}network_access = true\n");
        let left = take_back(&more, Some(&memory), SPOOL).unwrap().unwrap();
        assert_eq!(left, "[sandbox_workspace_write] # minder-hook\nnetwork_access = true\n");
    }

    #[test]
    fn what_is_not_understood_is_left_to_a_person() {
        for odd in [
            "no toml [",
            "sandbox_workspace_write = { network_access = true }\n",
            "sandbox_workspace_write.network_access = true\n",
            "[sandbox_workspace_write]",
            "[sandbox_workspace_write]\nwritable_roots = 7\n",
            "sandbox_workspace_write = 1\n",
        ] {
            assert_eq!(offer(Some(odd), SPOOL), Offer::ByHand, "{odd}");
        }
    }
}
