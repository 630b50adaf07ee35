//! Damage in the last segment, which looks like a torn end.

use super::tests::{op, open};
use super::*;

#[test]
fn damage_in_the_last_segment_is_no_torn_end_where_a_later_group_stands_behind_it() {
    let dir = tempfile::tempdir().unwrap();
    let (mut journal, _) = open(dir.path());
    journal.commit(&[op(1)]).unwrap();
    let begin = journal.end as usize;
    journal.commit(&[op(2), op(3)]).unwrap();
    let end = journal.end as usize;
    journal.commit(&[op(4)]).unwrap();
    let file = path(dir.path(), journal.segment);
    let whole = std::fs::read(&file).unwrap();
    for at in begin..end {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x80;
        std::fs::write(&file, bytes).unwrap();
        let found = recover(dir.path()).unwrap();
        let kept = found.commits.len();
        assert_eq!((kept, found.commits.last(), found.next()), (3, Some(&op(4)), 5), "byte {at}");
        assert!(found.damage.len() == 1 && found.hole().is_some(), "byte {at}");
    }
    // Of a group that was written last nobody was told, if a part of it is missing.
    for torn in [begin, end - 40] {
        let mut bytes = whole[..end].to_vec();
        bytes[torn..torn + 20].fill(0);
        std::fs::write(&file, bytes).unwrap();
        let found = recover(dir.path()).unwrap();
        assert!(found.damage.is_empty() && found.hole().is_none());
        assert_eq!(found.commits[0], op(1));
        assert!(!found.commits.contains(&op(3)), "torn at {torn}");
    }
}

#[test]
fn a_group_that_was_refused_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let (mut journal, _) = open(dir.path());
    journal.commit(&[op(1)]).unwrap();
    let mut bytes = Vec::new();
    for n in 0..3 {
        record_bytes(journal.sequence + n, n > 0, &op::encode(&op(666)), &mut bytes);
    }
    journal.file.write_all_at(&bytes, journal.end).unwrap();
    // No other segment can be begun.
    std::fs::create_dir(path(dir.path(), journal.segment + 1)).unwrap();
    let end = journal.end as usize;
    journal.abandon(bytes.len());
    let left = std::fs::read(path(dir.path(), journal.segment)).unwrap();
    assert_eq!(written(&left[end..]), 0);
}

#[test]
fn a_last_segment_whose_header_is_damaged_is_damage_and_is_not_written_over() {
    for alone in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let (mut journal, _) = open(dir.path());
        journal.commit(&[op(1)]).unwrap();
        if alone {
            let last = journal.begin_checkpoint().unwrap();
            journal.end_checkpoint(last).unwrap();
        } else {
            journal.begin_checkpoint().unwrap();
        }
        journal.commit(&[op(2)]).unwrap();
        let begin = journal.end as usize;
        journal.commit(&[op(3)]).unwrap();
        let file = path(dir.path(), journal.segment);
        let mut bytes = std::fs::read(&file).unwrap();
        bytes[9] ^= 1;
        std::fs::write(&file, &bytes).unwrap();
        let found = recover(dir.path()).unwrap();
        let before = usize::from(!alone);
        assert_eq!(found.commits[before..], [op(2), op(3)]);
        assert_eq!((found.hole(), found.damage.len(), found.next()), (Some(before), 1, 4));
        assert!(Journal::open(dir.path(), &found, false).unwrap().segment > journal.segment);
        assert_eq!(std::fs::read(&file).unwrap(), bytes);
        std::fs::remove_file(path(dir.path(), journal.segment + 1)).unwrap();
        // The first record, too.
        bytes[begin - 1] ^= 1;
        std::fs::write(&file, &bytes).unwrap();
        let found = recover(dir.path()).unwrap();
        assert_eq!(found.commits[before..], [op(3)]);
        assert_eq!((found.hole(), found.damage.len(), found.next()), (Some(before), 1, 4));
    }
    // One that was being made has nothing in it.
    let dir = tempfile::tempdir().unwrap();
    let (mut journal, _) = open(dir.path());
    journal.commit(&[op(1)]).unwrap();
    std::fs::write(path(dir.path(), journal.segment + 1), [0; 9000]).unwrap();
    let found = recover(dir.path()).unwrap();
    assert!(found.damage.is_empty());
    assert_eq!(found.commits, [op(1)]);
}
