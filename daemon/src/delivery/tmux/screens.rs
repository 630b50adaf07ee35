//! The screens that were recorded from the real programs, each as what it is. `docs/decisions.md` says how they were made.

use std::path::Path;

use super::screen::Screen;
use super::sight::{Content, MANNERS, Manner, Sight};

/// A recorded screen: what it is, and what tmux said of it.
pub struct Recorded {
    pub name: String,
    pub sight: String,
    pub screen: Screen,
}

fn field<'a>(head: &'a str, name: &str) -> &'a str {
    let found = head.split(' ').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    found.unwrap_or_else(|| panic!("{head:?} has no {name}"))
}

/// All of a harness's.
pub fn of(manner: &Manner) -> Vec<Recorded> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/screens");
    let folder = folder.join(format!("{}-{}", manner.harness, manner.version));
    let mut all: Vec<Recorded> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            let (head, captured) = text.split_once('\n').unwrap();
            let (column, row) = field(head, "cursor").split_once(',').unwrap();
            let cursor = (column.parse().unwrap(), row.parse().unwrap());
            Recorded {
                name: path.file_stem().unwrap().to_str().unwrap().to_owned(),
                sight: field(head, "sight").to_owned(),
                screen: Screen::parse(captured, cursor, field(head, "shows") == "1"),
            }
        })
        .collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

fn word(sight: &Sight) -> &'static str {
    match sight {
        Sight::Composer { content: Content::Empty, busy: false } => "empty",
        Sight::Composer { content: Content::Empty, busy: true } => "busy",
        Sight::Composer { content: Content::Collapsed(_), .. } => "collapsed",
        Sight::Composer { content: Content::Text(_), .. } => "draft",
        Sight::Dialog => "dialog",
        Sight::Trust => "trust",
        Sight::Panel => "panel",
        Sight::Limit => "limit",
        Sight::Unknown => "unknown",
    }
}

#[test]
fn every_recorded_screen_is_what_it_is() {
    let mut wrong = Vec::new();
    for manner in &MANNERS {
        let all = of(manner);
        assert!(all.len() >= 25, "{}: {}", manner.harness, all.len());
        for recorded in all {
            let found = manner.see(&recorded.screen);
            if word(&found) != recorded.sight {
                wrong.push(format!(
                    "{} {}: {} instead of {}: {found:?}",
                    manner.harness,
                    recorded.name,
                    word(&found),
                    recorded.sight
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_stands_in_a_recorded_composer_is_read_whole() {
    let text = "[minder] message 7be21c09 from session \"api worker\" (5f1c2d4a), not from your user. Reply: minder send \
        --reply-to 7be21c09 - <<EOF and this is rather a long line that has to be wrapped by the input box at least once";
    for manner in &MANNERS {
        let all = of(manner);
        let recorded = |name: &str| all.iter().find(|r| r.name == name).unwrap();
        let content = |name: &str| match manner.see(&recorded(name).screen) {
            Sight::Composer { content, .. } => content,
            other => panic!("{name}: {other:?}"),
        };
        assert!(content("ours-wrapped").is(text), "{:?}", content("ours-wrapped"));
        assert!(!content("draft").is(text));
        assert!(content("draft").is("a half-typed line"));
        assert!(content("draft-lines").is(if manner.harness == "claude" {
            "line one\nline two\nline three"
        } else {
            "line one\nline two"
        }));
    }
}

/// A screen of one harness is never a composer to the other, nor is one from which a row was taken at the bottom.
#[test]
fn what_is_not_whole_or_another_programs_is_no_composer() {
    for manner in &MANNERS {
        for recorded in of(manner) {
            for other in MANNERS.iter().filter(|other| other.harness != manner.harness) {
                let seen = other.see(&recorded.screen);
                assert!(!matches!(seen, Sight::Composer { .. }), "{} {}", other.harness, recorded.name);
            }
            let mut cut = recorded.screen.clone();
            let last = cut.last().unwrap();
            cut.rows.truncate(last);
            let seen = manner.see(&cut);
            assert!(
                !matches!(seen, Sight::Composer { .. }),
                "{} {}: {seen:?}",
                manner.harness,
                recorded.name
            );
            let empty = Screen { cursor: recorded.screen.cursor, ..Screen::default() };
            assert_eq!(manner.see(&empty), Sight::Unknown);
        }
    }
}

proptest::proptest! {
    /// Whatever a program draws, reading it ends.
    #[test]
    fn no_screen_brings_it_down(
        captured in "(\u{1b}?[\\[\\]PX;:0-9m\u{276f}\u{203a}\u{2500}!a. \u{7}\u{1b}\\\\\n\u{a0}\u{4f60}]){0,300}",
        column in 0_usize..200,
        row in 0_usize..60,
        shows: bool,
    ) {
        let screen = Screen::parse(&captured, (column, row), shows);
        for manner in &MANNERS {
            manner.see(&screen);
        }
    }

    /// A recorded screen of which a piece is missing, with the cursor somewhere, is no free composer unless it was one.
    #[test]
    fn no_piece_of_a_screen_is_a_free_composer(
        from in 0_usize..45, many in 1_usize..5, column in 0_usize..120, row in 0_usize..45,
    ) {
        for manner in &MANNERS {
            for recorded in of(manner).into_iter().filter(|r| !matches!(r.sight.as_str(), "empty" | "busy")) {
                let mut screen = recorded.screen;
                screen.cursor = (column, row);
                let from = from.min(screen.rows.len() - 1);
                screen.rows.drain(from..screen.rows.len().min(from + many));
                let free = matches!(manner.see(&screen), Sight::Composer { content: Content::Empty, .. });
                proptest::prop_assert!(!free, "{} {}", manner.harness, recorded.name);
            }
        }
    }
}
