//! Timelines on disk, read forward and back.

use super::*;

fn note(seq: u64) -> String {
    format!(
        "{{\"seq\":{seq},\"at\":\"2026-11-30T12:00:00.000Z\",\"kind\":\"note\",\"what\":\"n\",\"text\":\"{seq}\"}}\n"
    )
}

fn store(sealed: &[std::ops::Range<u64>], active: std::ops::Range<u64>) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for range in sealed {
        let text: String = range.clone().map(note).collect();
        std::fs::write(dir.path().join(sealed_name(range.start)), text).unwrap();
    }
    std::fs::write(dir.path().join(ACTIVE), active.map(note).collect::<String>()).unwrap();
    dir
}

fn seqs(dir: &Path, position: Option<Cursor>) -> (Vec<u64>, End) {
    let mut seen = Vec::new();
    let end = read_after(dir, position, |item| {
        seen.extend(item.line.seq());
        ControlFlow::Continue(())
    })
    .unwrap();
    (seen, end)
}

#[test]
fn reading_goes_on_over_segments_from_any_position() {
    let dir = store(&[1..5, 5..9], 9..12);
    let mut stops = Vec::new();
    let (all, _) = seqs(dir.path(), None);
    assert_eq!(all, (1..12).collect::<Vec<_>>());
    read_after(dir.path(), None, |item| {
        stops.push(item.after);
        ControlFlow::Continue(())
    })
    .unwrap();
    for stop in stops {
        let (rest, end) = seqs(dir.path(), Some(stop));
        assert_eq!(rest, (stop.seq + 1..12).collect::<Vec<_>>(), "{stop:?}");
        assert_eq!(end.gap, None);
    }
}

#[test]
fn a_wrong_offset_is_found_again_by_seq_and_a_lost_seq_is_a_gap() {
    let dir = store(std::slice::from_ref(&(1..5)), 5..9);
    let (rest, end) = seqs(dir.path(), Some(Cursor { seq: 6, offset: 3, segment: 777 }));
    assert_eq!((rest, end.gap), (vec![7, 8], None));
    let (rest, end) = seqs(dir.path(), Some(Cursor { seq: 40, offset: 3, segment: 5 }));
    assert_eq!((rest, end.gap), (vec![], Some(Gap { lost: 40, resumed: 8 })));
    assert_eq!(end.cursor.seq, 8);
}

#[test]
fn an_unfinished_line_is_not_there_yet_and_a_torn_one_is_passed() {
    let dir = store(&[], 1..3);
    let path = dir.path().join(ACTIVE);
    let mut text = std::fs::read_to_string(&path).unwrap();
    text.push_str("{\"seq\":3,\"at\"");
    std::fs::write(&path, &text).unwrap();
    let (seen, end) = seqs(dir.path(), None);
    assert_eq!((seen, end.cursor.seq), (vec![1, 2], 2));
    assert_eq!(tail(dir.path()).unwrap(), Tail { seq: 2, segment: 1, len: text.len() as u64, torn: true });
    text.push('\n');
    text.push_str(&note(4));
    std::fs::write(&path, &text).unwrap();
    let (seen, _) = seqs(dir.path(), Some(end.cursor));
    assert_eq!(seen, [4]);
    assert!(!tail(dir.path()).unwrap().torn);
}

#[test]
fn the_oldest_line_of_a_shortened_history_goes_on_from_the_line_before_it() {
    let dir = store(std::slice::from_ref(&(5..7)), 7..9);
    for (wanted, rest, gap) in
        [(4, vec![5, 6, 7, 8], None), (3, vec![], Some(Gap { lost: 3, resumed: 8 })), (6, vec![7, 8], None)]
    {
        let (seen, end) = seqs(dir.path(), Some(Cursor { seq: wanted, offset: 0, segment: 0 }));
        assert_eq!((seen, end.gap), (rest, gap), "{wanted}");
    }
}

#[test]
fn damage_is_passed_once() {
    let dir = store(&[], 1..3);
    let path = dir.path().join(ACTIVE);
    let mut text = std::fs::read_to_string(&path).unwrap();
    text.push_str("garbage\n");
    std::fs::write(&path, &text).unwrap();
    let mut torn = 0;
    let mut position = None;
    for round in 0..3 {
        let end = read_after(dir.path(), position, |item| {
            torn += usize::from(item.line == Line::Torn);
            ControlFlow::Continue(())
        })
        .unwrap();
        assert_eq!((end.cursor.seq, torn, end.gap), (2 + round, 1, None));
        position = Some(end.cursor);
        text.push_str(&note(3 + round));
        std::fs::write(&path, &text).unwrap();
    }
}

#[test]
fn reading_back_is_reading_on_in_reverse() {
    let dir = store(&[1..5, 5..300], 300..700);
    let path = dir.path().join(ACTIVE);
    let mut text = std::fs::read_to_string(&path).unwrap();
    text.push_str(&format!("{}\n{}{{\"seq\":9", "x".repeat(20_000), note(700)));
    std::fs::write(&path, &text).unwrap();
    let mut on = Vec::new();
    read_after(dir.path(), None, |item| {
        on.push(item);
        ControlFlow::Continue(())
    })
    .unwrap();
    let mut back = Vec::new();
    let newest = read_back(dir.path(), |item| {
        back.push(item);
        ControlFlow::Continue(())
    })
    .unwrap();
    back.reverse();
    assert_eq!((on.len(), on.iter().filter(|i| i.line == Line::Torn).count()), (701, 1));
    for (on, back) in on.iter().zip(&back) {
        assert_eq!(on.line, back.line);
        if on.line != Line::Torn {
            assert_eq!(on.after, back.after);
        }
    }
    assert_eq!(on.len(), back.len());
    assert_eq!(Some(newest), on.last().map(|i| i.after));
    assert_eq!(newest.seq, 700);
}

#[test]
fn lines_are_found_by_seq_and_from_the_end() {
    let dir = store(&[1..5, 5..9], 9..12);
    for seq in 1..12 {
        assert_eq!(find(dir.path(), seq).unwrap().unwrap().seq, seq);
    }
    assert_eq!(find(dir.path(), 12).unwrap(), None);
    for n in 0..15 {
        let last: Vec<u64> = last(dir.path(), n).unwrap().iter().map(|e| e.seq).collect();
        assert_eq!(last, (12u64.saturating_sub(n as u64).max(1)..12).collect::<Vec<_>>());
    }
}

#[test]
fn an_active_file_that_was_just_sealed_away_is_no_error() {
    let dir = store(std::slice::from_ref(&(1..5)), 5..5);
    assert_eq!(tail(dir.path()).unwrap(), Tail { seq: 4, segment: 5, len: 0, torn: false });
    std::fs::remove_file(dir.path().join(ACTIVE)).unwrap();
    assert_eq!(tail(dir.path()).unwrap(), Tail { seq: 4, segment: 5, len: 0, torn: false });
    assert_eq!(seqs(dir.path(), None).0, [1, 2, 3, 4]);
}
