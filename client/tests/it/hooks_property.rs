//! Whatever a settings file looks like: what goes in comes out again to the byte, and nothing else moves.

use minder_client::hooks::json_text::{Node, Piece, parse};
use minder_client::hooks::packs::claude::PACK;
use minder_client::hooks::plan::{install, uninstall};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

use crate::grown::{grown, meaning};

/// A value before it is written down.
#[derive(Debug, Clone)]
enum Tree {
    Scalar(&'static str),
    Array(Vec<Tree>),
    Object(Vec<(String, Tree)>),
}

const SCALARS: &[&str] = &[
    "null",
    "true",
    "-1.5e3",
    "\"\"",
    "\"// no comment\"",
    "\"/* nor this\"",
    "\"a\\\"]}\\\\\"",
    "\"ä😀\"",
    "\"say # minder-hook now\"",
    "12345678901234567890",
];

/// What may stand between two tokens.
const TRIVIA: &[&str] = &[
    "",
    "",
    "",
    " ",
    "\n",
    "\n  ",
    "\r\n\t",
    "  \n\n    ",
    " // c\n",
    "// \"x\": [\r\n  ",
    "/**/",
    " /* a\n b */ ",
    "//*/\n",
    "/*//*/",
    "\t",
];

fn tree() -> impl Strategy<Value = Tree> {
    let scalar = (0..SCALARS.len()).prop_map(|at| Tree::Scalar(SCALARS[at]));
    scalar.prop_recursive(4, 24, 4, |inner| {
        let key = prop_oneof![
            "[a-c]",
            Just("hooks".to_owned()),
            Just("Stop".to_owned()),
            Just("command".to_owned())
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Tree::Array),
            prop::collection::vec((key, inner), 0..4).prop_map(Tree::Object),
        ]
    })
}

/// An object, often with hooks of the right form in it.
fn settings() -> impl Strategy<Value = Tree> {
    let event = prop_oneof![
        Just("Stop"),
        Just("SessionStart"),
        Just("PostToolUse"),
        Just("PreToolUse"),
        Just("PostCompact")
    ];
    let list = prop::collection::vec(tree(), 0..3).prop_map(Tree::Array);
    let hooks = prop::collection::vec((event.prop_map(str::to_owned), list), 0..4).prop_map(Tree::Object);
    let other = ("[a-c]", tree());
    let member = prop_oneof![3 => other, 2 => (Just("hooks".to_owned()), hooks)];
    prop::collection::vec(member, 0..5).prop_map(Tree::Object)
}

/// Writes a tree down, with trivia and trailing commas as the dice say.
struct Writer<'a> {
    dice: &'a [u8],
    at: usize,
    out: String,
}

impl Writer<'_> {
    fn roll(&mut self, sides: usize) -> usize {
        self.at += 1;
        usize::from(self.dice[self.at % self.dice.len()]) % sides
    }

    fn trivia(&mut self) {
        let at = self.roll(TRIVIA.len());
        self.out.push_str(TRIVIA[at]);
    }

    fn write(&mut self, tree: &Tree) {
        match tree {
            Tree::Scalar(text) => self.out.push_str(text),
            Tree::Array(items) => self.list('[', ']', items, Writer::write),
            Tree::Object(members) => self.list('{', '}', members, |writer, (key, value)| {
                writer.out.push_str(&format!("\"{key}\""));
                writer.trivia();
                writer.out.push(':');
                writer.trivia();
                writer.write(value);
            }),
        }
    }

    fn list<T>(&mut self, open: char, close: char, items: &[T], write: impl Fn(&mut Self, &T)) {
        self.out.push(open);
        for (at, item) in items.iter().enumerate() {
            self.trivia();
            write(self, item);
            self.trivia();
            if at + 1 < items.len() || self.roll(4) == 0 {
                self.out.push(',');
            }
        }
        self.trivia();
        self.out.push(close);
    }
}

fn written(tree: &Tree, dice: &[u8]) -> String {
    let mut writer = Writer { dice, at: 0, out: String::new() };
    if writer.roll(6) == 0 {
        writer.out.push('\u{feff}');
    }
    writer.trivia();
    writer.write(tree);
    writer.trivia();
    writer.out
}

fn root(text: &str) -> Node {
    parse(text).unwrap().root.unwrap()
}

fn config() -> ProptestConfig {
    let mut config = ProptestConfig::with_cases(300);
    let regressions = FileFailurePersistence::WithSource("regressions");
    config.failure_persistence = Some(Box::new(regressions));
    config
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn what_goes_in_comes_out_to_the_byte(tree in settings(), dice in prop::collection::vec(any::<u8>(), 1..64)) {
        let start = written(&tree, &dice);
        let pack = PACK.groups("/opt/minder");
        let Ok(installed) = install(Some(&start), &pack, None) else {
            // `hooks` or an event of another kind: refused, nothing to see.
            return Ok(());
        };
        let installed = installed.expect("nothing of ours was there");
        let after = &installed.text;
        prop_assert!(parse(after).is_ok(), "{after}");
        prop_assert!(grown(&start, after), "{start}\n{after}");

        // All of ours is where the harness looks.
        let after_root = root(after);
        let hooks = after_root.member("hooks").unwrap();
        for (event, group) in &pack {
            let list = hooks.member(event).unwrap().items();
            prop_assert_eq!(list.iter().filter(|item| group.matches(item)).count(), 1);
        }
        prop_assert_eq!(install(Some(after), &pack, installed.memory.as_ref()), Ok(None));

        let left = uninstall(after, installed.memory.as_ref()).unwrap();
        prop_assert_eq!(left, Some(Some(start.clone())));

        // Without what was remembered: no byte to promise, but the same values and no comment lost.
        let left = uninstall(after, None).unwrap().unwrap().unwrap();
        prop_assert!(parse(&left).is_ok(), "{left}");
        prop_assert!(!left.contains("/opt/minder"));
        prop_assert_eq!(meaning(&left), meaning(&start));
        let comments = |text: &str| (text.matches("// c").count(), text.matches("/* a").count(), text.matches("/**/").count());
        prop_assert_eq!(comments(&left), comments(&start), "{}\n{}", start, left);
    }

    #[test]
    fn an_upgrade_leaves_no_trace_either(tree in settings(), dice in prop::collection::vec(any::<u8>(), 1..64)) {
        let start = written(&tree, &dice);
        let Ok(Some(first)) = install(Some(&start), &PACK.groups("/old/minder"), None) else { return Ok(()) };
        let second = install(Some(&first.text), &PACK.groups("/opt/minder"), first.memory.as_ref()).unwrap().unwrap();
        prop_assert!(!second.text.contains("/old/minder"));
        prop_assert_eq!(meaning(&second.text), meaning(&first.text.replace("/old/minder", "/opt/minder")));
        let left = uninstall(&second.text, second.memory.as_ref()).unwrap();
        prop_assert_eq!(left, Some(Some(start)));
    }

    #[test]
    fn any_bytes_are_parsed_or_refused_and_never_a_crash(text in "[\\[\\]{}\",:/*\\\\ \n\ru0-9a-f\u{feff}é-]{0,40}") {
        if let Err(error) = parse(&text) {
            prop_assert!(error.line >= 1 && error.column >= 1);
        }
    }

    #[test]
    fn what_serde_reads_is_read_alike(text in "[\\[\\]{}\",:\\\\ \n0-9a-e.+-]{0,16}") {
        if serde_json::from_str::<serde_json::Value>(&text).is_ok() {
            prop_assert!(parse(&text).is_ok(), "{text:?}");
        }
    }

    #[test]
    fn strings_survive(text in any::<String>()) {
        let rendered = Piece::String(text.clone()).render(&minder_client::hooks::json_text::Style::plain(), "", false);
        let node = root(&rendered);
        prop_assert_eq!(node.as_str(), Some(text.as_str()));
    }
}
