//! Finds our hooks in parsed settings, wherever they stand: alone in a group, beside foreign commands in one
//! that somebody merged, under a duplicate key.

use serde::Serialize;

use super::command;
use super::json_text::{Document, Node, ParseError, Piece, position};

/// A group of ours, or a command of ours in a group with foreign ones.
#[derive(Debug)]
pub struct Found<'a> {
    /// The event under which it stands.
    pub event: &'a str,
    /// What it is in: the event's list, or a group's `hooks`.
    pub list: &'a Node,
    /// Where in that list.
    pub index: usize,
    /// A whole group, all of it ours.
    pub whole: bool,
    /// It stands where the harness looks: not under a key that a later duplicate overrides.
    pub effective: bool,
    /// The `hooks` object and the place of the event in it.
    pub event_place: (&'a Node, usize),
    /// The root object and the place of `hooks` in it.
    pub hooks_place: (&'a Node, usize),
}

impl<'a> Found<'a> {
    /// The group or command itself.
    pub fn node(&self) -> &'a Node {
        &self.list.items()[self.index]
    }
}

/// All of ours, in the order of the text.
pub fn find(document: &Document) -> Vec<Found<'_>> {
    let mut all = Vec::new();
    let Some(root) = &document.root else { return all };
    for (hooks_index, hooks) in root.members().iter().enumerate().filter(|(_, member)| member.key == "hooks")
    {
        let effective_hooks = is_last(root, hooks_index);
        for (event_index, event) in hooks.value.members().iter().enumerate() {
            let effective = effective_hooks && is_last(&hooks.value, event_index);
            for (group_index, group) in event.value.items().iter().enumerate() {
                let found = |list, index, whole| Found {
                    event: &event.key,
                    list,
                    index,
                    whole,
                    effective,
                    event_place: (&hooks.value, event_index),
                    hooks_place: (root, hooks_index),
                };
                // A list of commands has them without a group.
                if is_ours(group) {
                    all.push(found(&event.value, group_index, true));
                    continue;
                }
                let Some(commands) = group.member("hooks") else { continue };
                let ours: Vec<_> =
                    (0..commands.items().len()).filter(|at| is_ours(&commands.items()[*at])).collect();
                if ours.len() == commands.items().len() && !ours.is_empty() {
                    all.push(found(&event.value, group_index, true));
                } else {
                    all.extend(ours.into_iter().map(|at| found(commands, at, false)));
                }
            }
        }
    }
    all
}

fn is_last(object: &Node, index: usize) -> bool {
    let members = object.members();
    members[index + 1..].iter().all(|member| member.key != members[index].key)
}

fn is_ours(hook: &Node) -> bool {
    hook.member("command").and_then(Node::as_str).is_some_and(command::is_ours)
}

/// How a settings file stands to the pack.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Standing {
    /// Events at which none of ours stands.
    pub missing: Vec<String>,
    /// Events at which ours is of another version or path, or was edited.
    pub outdated: Vec<String>,
    /// Events at which there is one of ours too many.
    pub surplus: Vec<String>,
    /// The programs that our commands run.
    pub programs: Vec<String>,
    /// What keeps the hooks of this file from running, a line for each.
    pub hindrances: Vec<String>,
}

impl Standing {
    /// Whether all is as the pack has it.
    pub fn is_current(&self) -> bool {
        self.missing.is_empty() && self.outdated.is_empty() && self.surplus.is_empty()
    }

    /// Whether nothing of ours is there.
    pub fn is_absent(&self) -> bool {
        self.programs.is_empty() && self.outdated.is_empty() && self.surplus.is_empty()
    }
}

/// Compares what stands in the settings with the pack.
pub fn compare(document: &Document, pack: &[(&'static str, Piece)]) -> Standing {
    let found = find(document);
    let mut standing = Standing::default();
    for (event, piece) in pack {
        match found.iter().position(|one| is_slot(one, event)) {
            None => standing.missing.push((*event).to_owned()),
            Some(at) if !piece.matches(found[at].node()) => standing.outdated.push((*event).to_owned()),
            Some(_) => {}
        }
    }
    for one in surplus(&found, pack) {
        standing.surplus.push(one.event.to_owned());
    }
    for one in &found {
        let commands = if one.whole { one.node().member("hooks").map(Node::items) } else { None };
        for hook in commands.unwrap_or(std::slice::from_ref(one.node())) {
            let program = hook.member("command").and_then(Node::as_str).and_then(command::program);
            let program = program.unwrap_or_else(|| "?".to_owned());
            if !standing.programs.contains(&program) {
                standing.programs.push(program);
            }
        }
    }
    standing
}

/// The place that the pack's group of an event has: a whole group where the harness looks.
pub fn is_slot(found: &Found<'_>, event: &str) -> bool {
    found.whole && found.effective && found.event == event
}

/// What of ours is in nobody's place.
pub fn surplus<'f, 'a>(found: &'f [Found<'a>], pack: &[(&'static str, Piece)]) -> Vec<&'f Found<'a>> {
    let mut taken: Vec<&str> = Vec::new();
    found
        .iter()
        .filter(|one| {
            let slot = pack.iter().any(|(event, _)| is_slot(one, event)) && !taken.contains(&one.event);
            if slot {
                taken.push(one.event);
            }
            !slot
        })
        .collect()
}

/// Whether the settings have a form into which hooks can be put: an object, in it `hooks` an object if it is
/// there at all, in that a list for each event of the pack that is there.
pub fn check_form(text: &str, document: &Document, pack: &[(&'static str, Piece)]) -> Result<(), ParseError> {
    let refuse = |node: &Node, what: String| {
        let (line, column) = position(text, node.span.start);
        Err(ParseError { line, column, what })
    };
    let Some(root) = &document.root else { return Ok(()) };
    if !root.is_object() {
        return refuse(root, "the settings are no object".to_owned());
    }
    let Some(hooks) = root.member("hooks") else { return Ok(()) };
    if !hooks.is_object() {
        return refuse(hooks, "`hooks` is no object".to_owned());
    }
    for (event, _) in pack {
        if let Some(list) = hooks.member(event)
            && !list.is_array()
        {
            return refuse(list, format!("`hooks.{event}` is no list"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::json_text::parse;
    use super::super::packs::claude::PACK;
    use super::*;

    const MINE: &str =
        r#"{"type":"command","command":"[ -x '/m' ] && exec '/m' hook claude || exit 0 # minder-hook"}"#;

    #[test]
    fn groups_and_merged_commands_are_found() {
        let text = format!(
            r#"{{"hooks":{{"Stop":[{{"hooks":[{MINE},{MINE}]}},{{"hooks":[{{"command":"x"}},{MINE}]}},{{"hooks":[]}},{{}},7],"Odd":{MINE}}}}}"#
        );
        let document = parse(&text).unwrap();
        let found = find(&document);
        let seen: Vec<_> = found.iter().map(|one| (one.event, one.index, one.whole)).collect();
        assert_eq!(seen, [("Stop", 0, true), ("Stop", 1, false)]);
        assert_eq!(compare(&document, &[]).programs, ["/m"]);
    }

    #[test]
    fn what_a_duplicate_key_overrides_is_found_and_not_effective() {
        let event = format!(r#""Stop":[{{"hooks":[{MINE}]}}]"#);
        let text = format!(r#"{{"hooks":{{{event}}},"hooks":{{{event},{event}}}}}"#);
        let document = parse(&text).unwrap();
        let effective: Vec<_> = find(&document).iter().map(|one| one.effective).collect();
        assert_eq!(effective, [false, false, true]);
    }

    #[test]
    fn nothing_current_and_outdated_are_told_apart() {
        let pack = PACK.groups("/m");
        let absent = compare(&parse("{}").unwrap(), &pack);
        assert!(absent.is_absent() && !absent.is_current());
        assert_eq!(absent.missing.len(), pack.len());

        let text = format!(r#"{{"hooks":{{"Stop":[{{"hooks":[{MINE}]}}],"Gone":[{{"hooks":[{MINE}]}}]}}}}"#);
        let partly = compare(&parse(&text).unwrap(), &pack);
        assert_eq!((partly.outdated, partly.surplus), (vec!["Stop".to_owned()], vec!["Gone".to_owned()]));
        assert_eq!(partly.missing.len(), pack.len() - 1);
    }

    #[test]
    fn a_form_that_takes_no_hooks_is_refused_with_its_place() {
        let pack = PACK.groups("/m");
        let refused = |text: &str| {
            let error = check_form(text, &parse(text).unwrap(), &pack).expect_err("is refused");
            (error.line, error.column, error.what)
        };
        assert_eq!(refused("[]"), (1, 1, "the settings are no object".to_owned()));
        assert_eq!(refused("{\n  \"hooks\": null}"), (2, 12, "`hooks` is no object".to_owned()));
        assert_eq!(refused("{\"hooks\": {\"Stop\": {}}}"), (1, 20, "`hooks.Stop` is no list".to_owned()));
        for fits in ["", "{}", "{\"hooks\": {\"Foreign\": 7}}"] {
            assert!(check_form(fits, &parse(fits).unwrap(), &pack).is_ok(), "{fits}");
        }
    }
}
