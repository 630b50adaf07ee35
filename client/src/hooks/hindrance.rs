//! What keeps hooks from running that stand where they should: a file that its harness does not read, a switch, a
//! review that is still to come.

use std::path::Path;

use super::json_text::{Document, Node, Piece};
use super::ours::find;
use super::pack::Pack;

/// What in the text itself does, a line for each.
pub fn in_text(document: &Document, pack: &Pack) -> Vec<String> {
    let reader = &pack.reader;
    let mut lines = Vec::new();
    let members = document.root.as_ref().map(Node::members).unwrap_or_default();
    if let Some((names, off)) = reader.switch {
        let switch = document
            .root
            .as_ref()
            .and_then(|root| names.iter().try_fold(root, |node, name| node.member(name)));
        if switch.is_some_and(|value| Piece::Bool(off).matches(value)) {
            lines.push(format!("`{}` is {off} in this file: no hook runs", names.join(".")));
        }
    }
    let is_refused = |there: bool, borne: bool| there && !borne;
    if is_refused(document.has_comments, reader.comments)
        || is_refused(document.has_trailing_commas, reader.trailing_commas)
    {
        let what = if reader.comments { "trailing commas" } else { "comments or trailing commas" };
        lines.push(format!("this file has {what}: {} loads nothing of it", pack.title));
    }
    for member in members.iter().filter(|_| !reader.root_keys.is_empty()) {
        if !reader.root_keys.contains(&member.key.as_str()) {
            lines.push(format!(
                "`{}` is no name that it may have: nothing of this file is loaded",
                member.key
            ));
        }
    }
    lines
}

/// Events whose hooks Codex has never shown to its user: until then it runs none of them. A hook that was changed
/// after its review is asked for again, and cannot be told here. `config` is the text of `config.toml`, `file` the
/// file of the hooks as Codex names it.
pub fn unreviewed(document: &Document, file: &Path, config: &str) -> Vec<String> {
    let config: toml::Table = config.parse().unwrap_or_default();
    let reviews = config.get("hooks").and_then(|hooks| hooks.get("state")).and_then(toml::Value::as_table);
    let known = |key: &str| reviews.is_some_and(|reviews| reviews.contains_key(key));
    let mut events = Vec::new();
    for one in find(document).iter().filter(|one| one.whole && one.effective) {
        let key = format!("{}:{}:{}:0", file.display(), snake(one.event), one.index);
        if !known(&key) {
            events.push(one.event.to_owned());
        }
    }
    events
}

/// Whether Codex's configuration has `notify`: a program that it runs when a turn has ended, and for nothing else.
pub fn notifies(config: &str) -> bool {
    let config: toml::Table = config.parse().unwrap_or_default();
    config.get("notify").and_then(toml::Value::as_array).is_some_and(|argv| !argv.is_empty())
}

/// `PostToolUse` as `post_tool_use`.
fn snake(event: &str) -> String {
    let mut name = String::new();
    for letter in event.chars() {
        if letter.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}

#[cfg(test)]
mod tests {
    use super::super::json_text::parse;
    use super::super::pack;
    use super::*;

    #[test]
    fn each_harness_has_its_own() {
        let said = |harness: &str, text: &str| in_text(&parse(text).unwrap(), pack::of(harness).unwrap());
        assert_eq!(said("claude", "{\"x\": 1}"), [""; 0]);
        assert_eq!(said("claude", "{\"disableAllHooks\": true}").len(), 1);
        assert_eq!(said("claude", "{\"disableAllHooks\": false}").len(), 0);
        assert!(said("claude", "{/**/}")[0].contains("Claude Code loads nothing of it"));
        assert!(said("codex", "{\"hooks\": {},}")[0].contains("Codex loads nothing of it"));
        assert_eq!(said("codex", "{\"description\": \"mine\", \"hooks\": {}}").len(), 0);
        assert_eq!(said("gemini", "{\"hooksConfig\": {\"enabled\": true} /* mine */}").len(), 0);
        let off = said("gemini", "{\"hooksConfig\": {\"enabled\": false},}");
        assert_eq!(off[0], "`hooksConfig.enabled` is false in this file: no hook runs");
        assert!(off[1].starts_with("this file has trailing commas: Gemini"), "{off:?}");
        assert!(said("codex", "{\"x\": 1}")[0].starts_with("`x` is no name"));
    }

    #[test]
    fn h9_a_notify_is_no_hook() {
        for (config, has) in [
            ("notify = [\"minder\", \"hook\", \"codex\"]\n", true),
            ("notify = []\n", false),
            ("[tui]\nnotify = [\"x\"]\n", false),
            ("no toml [", false),
        ] {
            assert_eq!(notifies(config), has, "{config}");
        }
    }

    #[test]
    fn h9_what_was_never_reviewed_is_named() {
        let ours = "{\"hooks\": [{\"command\": \"x # minder-hook\"}]}";
        let text =
            format!("{{\"hooks\": {{\"Stop\": [{{\"hooks\": []}}, {ours}], \"PostToolUse\": [{ours}]}}}}");
        let document = parse(&text).unwrap();
        let file = Path::new("/h/hooks.json");
        assert_eq!(unreviewed(&document, file, ""), ["Stop", "PostToolUse"]);
        let config = "[hooks.state.\"/h/hooks.json:stop:1:0\"]\ntrusted_hash = \"sha256:0\"\n";
        assert_eq!(unreviewed(&document, file, config), ["PostToolUse"]);
        assert_eq!(unreviewed(&document, file, "no toml ["), ["Stop", "PostToolUse"]);
        let both =
            format!("{config}[hooks.state.\"/h/hooks.json:post_tool_use:0:0\"]\ntrusted_hash = \"x\"\n");
        assert_eq!(unreviewed(&document, file, &both), [""; 0]);
    }
}
