//! Deliveries as tables: what is seen, one look after the other, and what is done about it.

use super::*;

const TEXT: &str = "[minder] message 7be21c09 from your user: go";

/// A pane that shows these things one after the other, the last one from then on.
struct Pane {
    looks: Vec<(Option<Hold>, Sight)>,
    /// Shown from the Enter with this number on; before it an Enter changes nothing.
    taken: Option<(u32, Sight)>,
    /// How often a key finds that the pane has moved.
    moves: u32,
    pasted: u32,
    enters: u32,
    claims: u32,
    steps: u32,
}

fn empty() -> Sight {
    Sight::Composer { content: Content::Empty, busy: false }
}

fn busy() -> Sight {
    Sight::Composer { content: Content::Empty, busy: true }
}

fn text(rows: &[&str]) -> Sight {
    let rows = rows.iter().map(ToString::to_string).collect();
    Sight::Composer { content: Content::Text(rows), busy: false }
}

fn ours() -> Sight {
    text(&[TEXT])
}

fn collapsed() -> Sight {
    Sight::Composer { content: Content::Collapsed("[Pasted text #1]".into()), busy: false }
}

impl Pane {
    fn showing(looks: &[Sight]) -> Self {
        let looks = looks.iter().map(|sight| (None, sight.clone())).collect();
        Self { looks, taken: None, moves: 0, pasted: 0, enters: 0, claims: 0, steps: 0 }
    }

    fn taking(self, enter: u32, then: Sight) -> Self {
        Self { taken: Some((enter, then)), ..self }
    }

    fn run(&mut self, machine: &mut Machine) -> End {
        let mut done = Done::Begun;
        let mut at = 0;
        loop {
            self.steps += 1;
            assert!(self.steps < 1_000, "it does not end");
            done = match machine.next(&done) {
                Act::Look => {
                    let (hold, mut sight) = self.looks[at.min(self.looks.len() - 1)].clone();
                    at += 1;
                    if let Some((_, then)) = self.taken.as_ref().filter(|(enter, _)| self.enters >= *enter) {
                        sight = then.clone();
                    }
                    Done::Looked(Look { hold, sight })
                }
                Act::Claim => {
                    self.claims += 1;
                    assert_eq!(self.pasted + self.enters, 0, "claimed before anything is typed");
                    Done::Claimed
                }
                Act::Paste | Act::Enter if self.moves > 0 => {
                    self.moves -= 1;
                    Done::Moved
                }
                Act::Paste => {
                    self.pasted += 1;
                    assert_eq!(self.claims, 1);
                    Done::Went
                }
                Act::Enter => {
                    self.enters += 1;
                    assert_eq!(self.claims, 1);
                    Done::Went
                }
                Act::Wait(_) => Done::Waited,
                Act::End(end) => return end,
            };
        }
    }
}

fn deliver(pane: &mut Pane) -> (End, u32, u32) {
    let end = pane.run(&mut Machine::new(TEXT.to_owned(), None));
    (end, pane.pasted, pane.enters)
}

fn held(hold: Hold) -> End {
    End::Held(hold)
}

#[test]
fn an_empty_composer_gets_the_text_once_and_one_enter() {
    for then in [empty(), busy(), Sight::Dialog, Sight::Unknown, text(&["next"])] {
        let mut pane = Pane::showing(&[empty(), empty(), ours()]).taking(1, then);
        assert_eq!(deliver(&mut pane), (End::Submitted, 1, 1));
    }
}

#[test]
fn nothing_is_typed_where_anything_else_stands() {
    for (sight, hold) in [
        (busy(), Hold::Busy),
        (text(&["dele"]), Hold::Draft),
        (text(&["dele", TEXT]), Hold::Draft),
        (collapsed(), Hold::Draft),
        (Sight::Dialog, Hold::Dialog),
        (Sight::Trust, Hold::Dialog),
        (Sight::Panel, Hold::Dialog),
        (Sight::Limit, Hold::UsageLimit),
        (Sight::Unknown, Hold::Unknown),
    ] {
        let mut pane = Pane::showing(std::slice::from_ref(&sight));
        assert_eq!(deliver(&mut pane), (held(hold), 0, 0), "{sight:?}");
        assert_eq!(pane.claims, 0, "{sight:?}");
    }
}

#[test]
fn what_the_pane_is_forbids_whatever_the_screen_shows() {
    for hold in [Hold::CopyMode, Hold::WrongProcess, Hold::Draft, Hold::Offline, Hold::Dialog] {
        for sight in [empty(), ours(), Sight::Unknown] {
            let mut pane = Pane { looks: vec![(Some(hold), sight)], ..Pane::showing(&[]) };
            assert_eq!(deliver(&mut pane), (held(hold), 0, 0));
        }
        // After the paste and before the Enter.
        let looks = vec![(None, empty()), (None, ours()), (Some(hold), ours())];
        let mut pane = Pane { looks, ..Pane::showing(&[]) };
        let hold = if hold == Hold::Dialog { Hold::NotSubmitted } else { hold };
        assert_eq!(deliver(&mut pane), (held(hold), 1, 0));
    }
}

#[test]
fn whatever_comes_between_the_text_and_its_enter_ends_it_without_one() {
    for (between, hold) in [
        (Sight::Dialog, Hold::NotSubmitted),
        (Sight::Trust, Hold::NotSubmitted),
        (Sight::Panel, Hold::NotSubmitted),
        (Sight::Unknown, Hold::NotSubmitted),
        (text(&["dele"]), Hold::Differs),
        (text(&[TEXT, "more"]), Hold::Differs),
        (text(&[&TEXT[1..]]), Hold::Differs),
        (empty(), Hold::NotReady),
    ] {
        let mut pane = Pane::showing(&[empty(), between.clone()]);
        assert_eq!(deliver(&mut pane), (held(hold), 1, 0), "{between:?}");
        // In the pause before the Enter it is gone for whatever reason.
        let hold = if hold == Hold::NotReady { Hold::Differs } else { hold };
        let mut pane = Pane::showing(&[empty(), ours(), between.clone()]);
        assert_eq!(deliver(&mut pane), (held(hold), 1, 0), "then {between:?}");
    }
}

#[test]
fn an_enter_that_is_not_taken_is_pressed_again_twice_and_the_text_never() {
    for enters in 1..=3 {
        let mut pane = Pane::showing(&[empty(), ours()]).taking(enters, busy());
        assert_eq!(deliver(&mut pane), (End::Submitted, 1, enters));
    }
    let mut pane = Pane::showing(&[empty(), ours()]);
    assert_eq!(deliver(&mut pane), (held(Hold::NotSubmitted), 1, 3));
    // A dialog after the first: what follows is evidence's, no further key.
    let mut pane = Pane::showing(&[empty(), ours()]).taking(1, Sight::Dialog);
    assert_eq!(deliver(&mut pane), (End::Submitted, 1, 1));
}

#[test]
fn what_stands_there_from_before_is_not_typed_again() {
    let mut pane = Pane::showing(&[ours()]).taking(1, busy());
    assert_eq!(deliver(&mut pane), (End::Submitted, 0, 1));
    let mut machine = Machine::new(TEXT.to_owned(), Some("[Pasted text #1]".into()));
    let mut pane = Pane::showing(&[collapsed()]).taking(1, busy());
    assert_eq!(pane.run(&mut machine), End::Submitted);
    assert_eq!((pane.pasted, pane.enters), (0, 1));
    // Another paste is a draft.
    let mut machine = Machine::new(TEXT.to_owned(), Some("[Pasted text #2]".into()));
    assert_eq!(Pane::showing(&[collapsed()]).run(&mut machine), held(Hold::Draft));
}

#[test]
fn a_paste_that_is_collapsed_is_ours_where_nothing_stood_before() {
    let mut machine = Machine::new(TEXT.to_owned(), None);
    let mut pane = Pane::showing(&[empty(), collapsed()]);
    assert_eq!(pane.run(&mut machine), held(Hold::NotSubmitted));
    assert_eq!((pane.pasted, pane.enters), (1, 3));
    assert_eq!(machine.collapsed(), Some("[Pasted text #1]"));
    // While a person is at the keys it may be theirs.
    let mut machine = Machine::new(TEXT.to_owned(), None);
    let mut pane =
        Pane { looks: vec![(None, empty()), (Some(Hold::Draft), collapsed())], ..Pane::showing(&[]) };
    assert_eq!((pane.run(&mut machine), pane.enters), (held(Hold::Draft), 0));
    assert_eq!(machine.collapsed(), None);
}

#[test]
fn what_moves_between_a_look_and_a_key_is_looked_at_again_and_not_for_ever() {
    let mut pane = Pane { moves: 2, ..Pane::showing(&[empty(), empty(), empty(), ours()]).taking(1, busy()) };
    assert_eq!(deliver(&mut pane), (End::Submitted, 1, 1));
    let mut pane = Pane { moves: 99, ..Pane::showing(&[empty()]) };
    assert_eq!(deliver(&mut pane), (held(Hold::Unknown), 0, 0));
    assert_eq!(pane.claims, 1);
    let mut pane = Pane { moves: 99, ..Pane::showing(&[ours()]) };
    assert_eq!(deliver(&mut pane), (held(Hold::NotSubmitted), 0, 0));
    // A dialog was what moved.
    let mut pane = Pane { moves: 1, ..Pane::showing(&[empty(), Sight::Dialog]) };
    assert_eq!(deliver(&mut pane), (held(Hold::Dialog), 0, 0));
}

/// Whatever is seen in whatever order: no Enter but where our text was seen alone in the look before it, at most three,
/// the text at most once, and it ends.
#[test]
fn no_order_of_screens_brings_forth_a_key_that_was_not_safe() {
    let screens = [
        empty(),
        busy(),
        ours(),
        text(&["dele"]),
        text(&[TEXT, "x"]),
        collapsed(),
        Sight::Dialog,
        Sight::Trust,
        Sight::Panel,
        Sight::Limit,
        Sight::Unknown,
    ];
    let holds = [None, None, None, None, Some(Hold::CopyMode), Some(Hold::WrongProcess)];
    let mut seed = 0x9e37_79b9_u64;
    let mut random = |n: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).unwrap() % n
    };
    let mut submitted = 0;
    for _ in 0..20_000 {
        let mut machine = Machine::new(TEXT.to_owned(), None);
        let (mut done, mut enters, mut pastes, mut claimed) = (Done::Begun, 0, 0, false);
        let mut last: Option<Look> = None;
        for step in 0.. {
            assert!(step < 1_000);
            done = match machine.next(&done) {
                Act::Look => {
                    // Mostly what a harness would show, so that every phase is reached.
                    let usual = if pastes == 0 { empty() } else { ours() };
                    let sight = if random(8) > 0 { usual } else { screens[random(screens.len())].clone() };
                    let look = Look { hold: holds[random(holds.len())].filter(|_| random(4) == 0), sight };
                    last = Some(look.clone());
                    Done::Looked(look)
                }
                Act::Claim => {
                    claimed = true;
                    Done::Claimed
                }
                Act::Paste => {
                    let look = last.as_ref().unwrap();
                    assert!(claimed && look.hold.is_none() && look.sight == empty());
                    if random(10) == 0 {
                        Done::Moved
                    } else {
                        pastes += 1;
                        Done::Went
                    }
                }
                Act::Enter => {
                    let look = last.as_ref().unwrap();
                    let alone = look.sight == ours() || look.sight == collapsed() && pastes == 1;
                    assert!(claimed && look.hold.is_none() && alone, "{look:?}");
                    if random(10) == 0 {
                        Done::Moved
                    } else {
                        enters += 1;
                        Done::Went
                    }
                }
                Act::Wait(_) => Done::Waited,
                Act::End(end) => {
                    assert!(enters <= 3 && pastes <= 1, "{end:?}");
                    assert!(end != End::Submitted || enters > 0);
                    submitted += u32::from(end == End::Submitted);
                    break;
                }
            };
        }
    }
    assert!(submitted > 1_000, "{submitted}");
}
