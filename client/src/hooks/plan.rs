//! What installing and uninstalling make of a settings text: functions of texts, without a file in sight.

use super::json_text::{
    Added, Document, NewItem, Node, ParseError, Piece, Style, insert_item, insert_root, parse, remove_item,
    replace_item,
};
use super::memory::{Before, Memory};
use super::ours::{Found, check_form, compare, find, is_slot, surplus};

/// The hooks to put in: per event a group.
pub type Groups = [(&'static str, Piece)];

/// A settings text with our hooks, and what has to be remembered to take them back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// The text.
    pub text: String,
    /// What the text alone does not tell, if anything.
    pub memory: Option<Memory>,
}

/// The settings with the pack in them; nothing if they are as they should be. Ours of another version or path
/// are exchanged where they stand.
pub fn install(
    before: Option<&str>,
    pack: &Groups,
    memory: Option<&Memory>,
) -> Result<Option<Installed>, ParseError> {
    let Some(before) = before else { return Ok(Some(new_file(pack))) };
    let document = parse(before)?;
    check_form(before, &document, pack)?;
    let standing = compare(&document, pack);
    if standing.is_current() {
        return Ok(None);
    }
    if find(&document).is_empty() {
        return add(before, pack).map(Some);
    }
    match memory.and_then(|memory| memory.take_back(before)) {
        Some(None) => Ok(Some(new_file(pack))),
        Some(Some(start)) => add(&start, pack).map(Some),
        None => exchange(before, pack, memory).map(Some),
    }
}

/// The settings without anything of ours: `None` if there was nothing, else the text, or no file at all.
pub fn uninstall(text: &str, memory: Option<&Memory>) -> Result<Option<Before>, ParseError> {
    let document = parse(text)?;
    if find(&document).is_empty() {
        return Ok(None);
    }
    if let Some(start) = memory.and_then(|memory| memory.take_back(text)) {
        return Ok(Some(start));
    }
    let left = remove_all(text, empties(memory))?;
    let made_file = memory.is_some_and(|memory| memory.made_file);
    Ok(Some(if made_file && holds_nothing(&parse(&left)?) { None } else { Some(left) }))
}

fn new_file(pack: &Groups) -> Installed {
    let style = Style::plain();
    let text = whole(pack).render(&style, "", false) + style.newline;
    let memory = Some(Memory::of_new_file(&text));
    Installed { text, memory }
}

fn whole(pack: &Groups) -> Piece {
    Piece::Object(vec![("hooks", all_events(pack))])
}

fn all_events(pack: &Groups) -> Piece {
    Piece::Object(pack.iter().map(|(event, group)| (*event, Piece::Array(vec![group.clone()]))).collect())
}

/// Into a text in which nothing of ours stands.
fn add(before: &str, pack: &Groups) -> Result<Installed, ParseError> {
    let (text, ranges) = insert_missing(before, pack)?.into_parts();
    let tells_all = remove_all(&text, &[])? == before;
    let memory = if tells_all {
        None
    } else {
        Some(Memory::of_added(before, &text, &ranges, empty_containers(before, pack)?))
    };
    Ok(Installed { text, memory })
}

/// Into a text in which some of ours stand and which was edited since, or whose start is not remembered.
fn exchange(before: &str, pack: &Groups, memory: Option<&Memory>) -> Result<Installed, ParseError> {
    let mut text = before.to_owned();
    loop {
        let document = parse(&text)?;
        let found = find(&document);
        let Some(one) = surplus(&found, pack).first().copied() else { break };
        text = remove_found(&text, one, empties(memory));
    }
    let style = Style::of(before, &parse(before)?);
    for (event, group) in pack {
        let document = parse(&text)?;
        let old = find(&document).into_iter().find(|one| is_slot(one, event) && !group.matches(one.node()));
        if let Some(old) = old {
            text = replace_item(&text, old.node(), &style, group);
        }
    }
    let (text, _) = insert_missing(&text, pack)?.into_parts();
    let memory = memory.map(Memory::without_exact).filter(|memory| !memory.is_empty());
    Ok(Installed { text, memory })
}

/// Adds every group of the pack that is not there.
fn insert_missing(before: &str, pack: &Groups) -> Result<Added, ParseError> {
    let mut added = Added::new(before);
    let document = parse(before)?;
    let style = Style::of(before, &document);
    let Some(root) = &document.root else {
        insert_root(&mut added, &document, &style, &whole(pack));
        return Ok(added);
    };
    if root.member("hooks").is_none() {
        insert_item(&mut added, root, &style, NewItem::Member("hooks", &all_events(pack)));
        return Ok(added);
    }
    for (event, group) in pack {
        let document = parse(added.text())?;
        if find(&document).iter().any(|one| is_slot(one, event)) {
            continue;
        }
        let hooks = document.root.as_ref().and_then(|root| root.member("hooks"));
        let hooks = hooks.expect("an addition removes no member");
        if let Some(list) = hooks.member(event) {
            insert_item(&mut added, list, &style, NewItem::Element(group));
        } else {
            let list = Piece::Array(vec![group.clone()]);
            insert_item(&mut added, hooks, &style, NewItem::Member(event, &list));
        }
    }
    Ok(added)
}

/// Cuts everything of ours out, and the lists and objects that are empty then, but for those named.
fn remove_all(text: &str, empties: &[String]) -> Result<String, ParseError> {
    let mut text = text.to_owned();
    loop {
        let document = parse(&text)?;
        let found = find(&document);
        let Some(one) = found.first() else { return Ok(text) };
        text = remove_found(&text, one, empties);
    }
}

/// Cuts out one of ours; with it the list and the object that hold nothing else, not even a comment.
fn remove_found(text: &str, found: &Found<'_>, empties: &[String]) -> String {
    let keeps = |name: &str| empties.iter().any(|kept| kept == name);
    let mut place = (found.list, found.index);
    if found.whole && holds_only(text, place) && is_plain(text, found.event_place) && !keeps(found.event) {
        place = found.event_place;
        if holds_only(text, place) && is_plain(text, found.hooks_place) && !keeps("hooks") {
            place = found.hooks_place;
        }
    }
    remove_item(text, place.0, place.1)
}

/// Whether a member is written as we write one: with no comment between its key and its value.
fn is_plain(text: &str, (object, index): (&Node, usize)) -> bool {
    let member = &object.members()[index];
    let head = &text[member.span.start..member.value.span.start];
    head.strip_prefix(&format!("\"{}\"", member.key)).is_some_and(|colon| colon.trim() == ":")
}

/// Whether a container has this one item, and beside it only blanks and a comma.
fn holds_only(text: &str, (container, index): (&Node, usize)) -> bool {
    let spans: Vec<_> = match container.members() {
        [] => container.items().iter().map(|item| &item.span).collect(),
        members => members.iter().map(|member| &member.span).collect(),
    };
    let blank =
        |part: &str| part.chars().all(|character| matches!(character, ' ' | '\t' | '\r' | '\n' | ','));
    spans.len() == 1
        && blank(&text[container.span.start + 1..spans[index].start])
        && blank(&text[spans[index].end..container.span.end - 1])
}

/// The containers of a text that are there and empty, by name.
fn empty_containers(text: &str, pack: &Groups) -> Result<Vec<String>, ParseError> {
    let document = parse(text)?;
    let Some(hooks) = document.root.as_ref().and_then(|root| root.member("hooks")) else {
        return Ok(Vec::new());
    };
    let mut names = Vec::new();
    if hooks.members().is_empty() {
        names.push("hooks".to_owned());
    }
    for (event, _) in pack {
        if hooks.member(event).is_some_and(|list| list.items().is_empty()) {
            names.push((*event).to_owned());
        }
    }
    Ok(names)
}

fn empties(memory: Option<&Memory>) -> &[String] {
    memory.map(|memory| memory.empties.as_slice()).unwrap_or_default()
}

fn holds_nothing(document: &Document) -> bool {
    !document.has_comments && document.root.as_ref().is_none_or(|root| root.members().is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::packs::claude::PACK;
    use super::*;

    fn put_in(before: Option<&str>, program: &str, memory: Option<&Memory>) -> Installed {
        install(before, &PACK.groups(program), memory).unwrap().expect("something was missing")
    }

    #[test]
    fn no_file_becomes_one_and_none_again() {
        let installed = put_in(None, "/m", None);
        assert!(installed.text.starts_with("{\n  \"hooks\": {\n    \"SessionStart\": [\n      {\n"));
        assert!(installed.text.ends_with("    ]\n  }\n}\n"));
        assert_eq!(uninstall(&installed.text, installed.memory.as_ref()).unwrap(), Some(None));
        // Without the memory the file is left, with nothing in it.
        assert_eq!(uninstall(&installed.text, None).unwrap(), Some(Some("{}\n".to_owned())));
    }

    #[test]
    fn ordinary_settings_need_no_memory() {
        for text in [
            "{\n  \"model\": \"x\"\n}\n",
            "{\"model\":\"x\"}",
            "{\n\t\"hooks\": {\n\t\t\"Stop\": [7]\n\t}\n}",
        ] {
            let installed = put_in(Some(text), "/m", None);
            assert_eq!(installed.memory, None, "{text}");
            assert_eq!(uninstall(&installed.text, None).unwrap(), Some(Some(text.to_owned())));
            assert_eq!(install(Some(&installed.text), &PACK.groups("/m"), None).unwrap(), None);
        }
    }

    #[test]
    fn empty_containers_are_remembered_also_after_an_edit() {
        let text = "{\n  \"hooks\": { },\n  \"model\": \"x\"\n}\n";
        let installed = put_in(Some(text), "/m", None);
        let memory = installed.memory.as_ref();
        assert_eq!(memory.unwrap().empties, ["hooks"]);
        assert_eq!(uninstall(&installed.text, memory).unwrap(), Some(Some(text.to_owned())));
        let edited = installed.text.replace("\"x\"", "\"y\"");
        let left = uninstall(&edited, memory).unwrap().unwrap().unwrap();
        assert_eq!(left, "{\n  \"hooks\": {},\n  \"model\": \"y\"\n}\n");
        let left = uninstall(&edited, None).unwrap().unwrap().unwrap();
        assert_eq!(left, "{\n  \"model\": \"y\"\n}\n");
    }

    #[test]
    fn another_path_is_exchanged_in_place_and_taken_back_to_the_start() {
        for text in
            [Some("{\n  \"hooks\": {\n    \"Stop\": []\n  }\n}\n"), Some("{\"a\":[1]}"), Some(""), None]
        {
            let first = put_in(text, "/old/minder", None);
            let second = put_in(Some(&first.text), "/new/minder", first.memory.as_ref());
            assert_eq!(second.text, first.text.replace("/old/minder", "/new/minder"));
            let left = uninstall(&second.text, second.memory.as_ref()).unwrap();
            assert_eq!(left, Some(text.map(str::to_owned)));
        }
    }

    #[test]
    fn an_edited_file_is_exchanged_in_place_and_foreign_hooks_stay_where_they_are() {
        let first = put_in(Some("{\n  \"hooks\": {}\n}\n"), "/old", None);
        // Somebody put a hook of their own behind ours, and dropped one of ours.
        let foreign = "\"Stop\": [\n      {\"hooks\": [{\"type\": \"command\", \"command\": \"true\"}]},";
        let edited = first.text.replace("\"Stop\": [", foreign).replace("\"Notification\"", "\"Other\"");
        let second = put_in(Some(&edited), "/new", first.memory.as_ref());
        assert!(!second.text.contains("/old"));
        assert!(second.text.contains(foreign));
        assert!(!second.text.contains("\"Other\""));
        assert_eq!(second.memory.as_ref().unwrap().exact, None);
        assert_eq!(install(Some(&second.text), &PACK.groups("/new"), None).unwrap(), None);
        let left = uninstall(&second.text, second.memory.as_ref()).unwrap().unwrap().unwrap();
        let expected = "{\n  \"hooks\": {\n    \"Stop\": [\n      {\"hooks\": [{\"type\": \"command\", \"command\": \"true\"}]}\n    ]\n  }\n}\n";
        assert_eq!(left, expected);
    }

    #[test]
    fn copies_and_merged_commands_become_one_set() {
        let first = put_in(Some("{}"), "/m", None);
        let group = PACK.groups("/m").iter().find(|(event, _)| *event == "Stop").unwrap().1.clone();
        let group = group.render(&Style::plain(), "", true);
        let merged =
            group.replace("\"hooks\": [", "\"hooks\": [{\"type\": \"command\", \"command\": \"true\"}, ");
        let text = first.text.replace("\"Stop\": [", &format!("\"Stop\": [{merged}, {group},"));
        let second = put_in(Some(&text), "/m", None);
        let document = parse(&second.text).unwrap();
        assert_eq!(find(&document).iter().filter(|one| one.event == "Stop").count(), 1);
        assert!(second.text.contains("{\"hooks\": [{\"type\": \"command\", \"command\": \"true\"}]}"));
    }

    #[test]
    fn of_duplicate_keys_the_one_that_counts_is_filled() {
        let text = "{\"hooks\": {\"Stop\": [1]}, \"hooks\": {\"Stop\": [2], \"Stop\": [3]}}";
        let installed = put_in(Some(text), "/m", None);
        assert!(
            installed
                .text
                .starts_with("{\"hooks\": {\"Stop\": [1]}, \"hooks\": {\"Stop\": [2], \"Stop\": [3, {")
        );
        assert_eq!(uninstall(&installed.text, None).unwrap(), Some(Some(text.to_owned())));
    }

    #[test]
    fn comments_in_a_list_that_only_ours_was_in_stay() {
        let text = "{\n  \"hooks\": {\n    \"Stop\": [\n      // nothing yet\n    ]\n  }\n}\n";
        let installed = put_in(Some(text), "/m", None);
        assert_eq!(installed.memory, None);
        assert_eq!(uninstall(&installed.text, None).unwrap(), Some(Some(text.to_owned())));
    }

    #[test]
    fn nothing_of_ours_is_nothing_to_take_out() {
        for text in
            ["", "{}", "{\"hooks\": {\"Stop\": [{\"hooks\": [{\"command\": \"minder hook claude\"}]}]}}"]
        {
            assert_eq!(uninstall(text, None).unwrap(), None);
            assert_eq!(uninstall(text, Some(&Memory::of_new_file("gone"))).unwrap(), None);
        }
    }
}
