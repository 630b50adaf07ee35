//! What a loss may leave and what it may not, on small records.

use std::collections::BTreeSet;

use super::*;

/// A picture of these acts, one line each, and all that can be left after a loss at `line`, as `name=content`.
fn left(acts: &[Act], line: usize) -> BTreeSet<Vec<String>> {
    let root = Path::new("/r");
    let mut picture = Picture::new(root);
    for (n, act) in acts.iter().enumerate() {
        picture.apply(&Step { enter: n, exit: Some(n), act: act.clone() }).unwrap();
    }
    let mut found = BTreeSet::new();
    for seed in 0..400 {
        let into = tempfile::tempdir().unwrap();
        picture.after_loss(line, &mut Dice::new(seed), into.path()).unwrap();
        let files = tree(into.path()).unwrap().into_iter();
        found.insert(files.map(|(name, b)| format!("{name}={}", String::from_utf8_lossy(&b))).collect());
    }
    found
}

fn open(fd: i64, path: &str) -> Act {
    Act::Open { fd, path: path.into(), create: true, truncate: false }
}

fn write(fd: i64, text: &str) -> Act {
    Act::Write { fd, offset: None, bytes: text.into() }
}

fn sync(fd: i64) -> Act {
    Act::Sync { fd, done: true }
}

fn all(of: &[&[&str]]) -> BTreeSet<Vec<String>> {
    of.iter().map(|files| files.iter().map(|f| (*f).to_owned()).collect()).collect()
}

#[test]
fn what_was_synced_is_there_and_a_name_only_if_its_folder_was() {
    let acts = [open(3, "/r/f"), write(3, "ab"), sync(3), open(4, "/r"), sync(4)];
    assert_eq!(left(&acts, 5), all(&[&["f=ab"]]));
    assert_eq!(left(&acts, 4), all(&[&[], &["f=ab"]]));
    // Without any sync the bytes come whole, cut, as zeros or not at all.
    assert_eq!(left(&acts, 2), all(&[&[], &["f="], &["f=a"], &["f=ab"], &["f=\0\0"]]));
    assert_eq!(left(&acts, 0), all(&[&[]]));
}

#[test]
fn a_rename_is_whole_and_does_not_bring_its_bytes() {
    let rename = Act::Rename { from: "/r/t".into(), to: "/r/f".into() };
    let acts = [
        open(3, "/r/f"),
        write(3, "1"),
        sync(3),
        open(4, "/r"),
        sync(4),
        open(5, "/r/t"),
        write(5, "2"),
        rename,
    ];
    let found = left(&acts, 8);
    let new = [&["f="][..], &["f=2"], &["f=\0"]];
    assert!(new.iter().all(|f| found.contains(&f.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>())));
    assert!(found.iter().all(|files| files.iter().any(|f| f.starts_with("f="))), "{found:?}");
    assert!(found.iter().all(|files| files.len() == 1 || files[0] == "f=1"), "{found:?}");
}

#[test]
fn what_a_failed_sync_was_for_may_be_lost_though_the_next_one_is_fine() {
    let failed = Act::Sync { fd: 3, done: false };
    let acts = [open(3, "/r/f"), open(4, "/r"), sync(4), write(3, "ab"), failed, sync(3)];
    let found = left(&acts, 6);
    assert!(found.contains(&vec!["f=".to_owned()]) && found.contains(&vec!["f=ab".to_owned()]), "{found:?}");
}

#[test]
fn what_came_after_the_beginning_of_a_sync_is_not_durable_by_it() {
    let mut picture = Picture::new(Path::new("/r"));
    let steps = [
        (0, 0, open(3, "/r/f")),
        (1, 1, open(4, "/r")),
        (2, 2, sync(4)),
        (3, 6, sync(3)),
        (4, 5, write(3, "late")),
    ];
    for (enter, exit, act) in steps {
        picture.apply(&Step { enter, exit: Some(exit), act }).unwrap();
    }
    let nothing = (0..100).any(|seed| {
        let into = tempfile::tempdir().unwrap();
        picture.after_loss(7, &mut Dice::new(seed), into.path()).unwrap();
        std::fs::read(into.path().join("f")).unwrap().is_empty()
    });
    assert!(nothing);
}
