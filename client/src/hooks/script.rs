//! A file of minder's own that a harness runs in itself: what is in it, whether a file is one, and the way back.

use std::path::PathBuf;

use super::ours::Standing;
use super::pack::{Body, Pack};

/// The line that makes a file ours.
const MARKER: &str = "// minder-hook";
/// The line that says which program it runs.
const PROGRAM: &str = "const PROGRAM = ";

/// The text of a pack's file for a program; nothing for a pack that has none.
pub fn text(pack: &Pack, program: &str) -> Option<String> {
    let Body::Script(_, parts) = &pack.body else { return None };
    let mut text = String::new();
    for line in parts.concat().split_inclusive('\n') {
        if line.starts_with(PROGRAM) {
            text.push_str(&format!("{PROGRAM}{}\n", serde_json::Value::from(program)));
        } else if line.starts_with("const HARNESS = ") {
            text.push_str(&format!("const HARNESS = {}\n", serde_json::Value::from(pack.name)));
        } else if line.starts_with("// Written by minder") {
            text.push_str(&line.replace("HARNESS", pack.name));
        } else {
            text.push_str(line);
        }
    }
    Some(text)
}

/// Whether a file is one of ours, of whatever version and program.
pub fn is_ours(text: &str) -> bool {
    text.lines().take(3).any(|line| line == MARKER)
}

/// How a file stands to the text that it should have.
pub fn compare(pack: &Pack, before: Option<&str>, wanted: &str) -> Standing {
    let name = PathBuf::from(pack.user.home).file_name().map(|name| name.to_string_lossy().into_owned());
    let name = name.unwrap_or_default();
    let mut standing = Standing::default();
    match before {
        None => standing.missing.push(name),
        Some(text) => {
            standing.programs.push(program(text).unwrap_or_else(|| "?".to_owned()));
            if text != wanted {
                standing.outdated.push(name);
            }
        }
    }
    standing
}

/// The program that a file of ours runs.
fn program(text: &str) -> Option<String> {
    let line = text.lines().find_map(|line| line.strip_prefix(PROGRAM))?;
    serde_json::from_str(line).ok()
}

#[cfg(test)]
mod tests {
    use super::super::pack;
    use super::*;

    #[test]
    fn the_program_is_read_back_whatever_its_path() {
        for pack in pack::ALL.iter().filter(|pack| matches!(pack.body, Body::Script(..))) {
            for path in ["/usr/bin/minder", "/a b/it's $HOME/\"q\"/`x`\\/${y}\n/minder"] {
                let text = text(pack, path).unwrap();
                assert!(is_ours(&text));
                assert_eq!(program(&text).as_deref(), Some(path));
                assert!(text.contains(&format!("const HARNESS = \"{}\"\n", pack.name)));
                assert!(text.starts_with(&format!("// Written by minder for {}; ", pack.name)), "{text}");
                assert!(compare(pack, Some(&text), &text).is_current());
                assert!(!text.contains('\r'));
            }
        }
        assert!(!is_ours("export default () => {}\n"));
    }
}
