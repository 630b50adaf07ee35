//! One delivery into a pane, as a state machine that is told what was seen and says what to do next. It presses Enter
//! only where this text was seen to stand alone in the composer, twice, and at most three times in all; whatever else
//! comes in between ends the delivery with the reason, and nothing is pressed.
//!
//! Pure: clocks and tmux are the executor's.

use std::time::Duration;

use minder_proto::hold::Hold;

use super::sight::{Content, Sight};

/// Between looks for what was pasted or taken.
const PAUSE: Duration = Duration::from_millis(60);
/// Between the text and an Enter, which a harness loses where they come together.
const SETTLE: Duration = Duration::from_millis(200);
/// Looks for the text after it was pasted, and for its leaving after an Enter.
const LOOKS: u32 = 30;
const LOOKS_AFTER_ENTER: u32 = 15;
/// Enters in all.
const ENTERS: u32 = 3;
/// Looks at the whole again because something moved between a look and a key.
const MOVES: u32 = 5;

/// What was seen at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// What forbids typing, whatever the screen shows: another program, copy mode, a person at the keys.
    pub hold: Option<Hold>,
    /// The screen.
    pub sight: Sight,
}

/// What the executor did last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done {
    /// Nothing yet.
    Begun,
    /// It looked.
    Looked(Look),
    /// The message is this delivery's: nobody else gives it meanwhile.
    Claimed,
    /// It waited.
    Waited,
    /// Text or a key went in.
    Went,
    /// The pane was not as it was looked at, and nothing went in.
    Moved,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Look at the pane.
    Look,
    /// Make the message this delivery's, or end.
    Claim,
    /// Paste the text, if the pane is still as it was looked at.
    Paste,
    /// Wait.
    Wait(Duration),
    /// Press Enter, if the pane is still as it was looked at.
    Enter,
    /// It is over.
    End(End),
}

/// How a delivery ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The composer took the text.
    Submitted,
    /// Nothing was submitted.
    Held(Hold),
}

/// Where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing was typed.
    First,
    /// The pane is free: to be claimed, with what follows then.
    Free { stands: bool },
    /// The text was pasted, and is looked for.
    Pasted,
    /// The text stood there alone once; after a pause it is looked at again.
    Stood,
    /// Enter was pressed.
    Pressed,
}

/// A delivery.
#[derive(Debug)]
pub struct Machine {
    text: String,
    phase: Phase,
    claimed: bool,
    looks: u32,
    enters: u32,
    moves: u32,
    /// The harness's word for our paste, where it shows that instead.
    collapsed: Option<String>,
}

impl Machine {
    /// A delivery of a text; `collapsed` is the word by which an earlier attempt saw it stand.
    pub fn new(text: String, collapsed: Option<String>) -> Self {
        Self { text, phase: Phase::First, claimed: false, looks: 0, enters: 0, moves: 0, collapsed }
    }

    /// The word that stands for the text, if it does.
    pub fn collapsed(&self) -> Option<&str> {
        self.collapsed.as_deref()
    }

    /// What follows from what was done.
    pub fn next(&mut self, done: &Done) -> Act {
        match (self.phase, done) {
            (_, Done::Begun | Done::Waited) => Act::Look,
            (_, Done::Moved) => self.moved(),
            (Phase::First, Done::Looked(look)) => self.first(look),
            (Phase::Free { stands: true }, Done::Claimed) => {
                self.claimed = true;
                self.phase = Phase::Stood;
                Act::Wait(SETTLE)
            }
            (Phase::Free { stands: false }, Done::Claimed) => {
                self.claimed = true;
                Act::Paste
            }
            (Phase::Free { .. }, Done::Went) => {
                self.phase = Phase::Pasted;
                self.looks = 0;
                Act::Wait(PAUSE)
            }
            (Phase::Pasted, Done::Looked(look)) => self.pasted(look),
            (Phase::Stood, Done::Looked(look)) => match self.stands(look) {
                Ok(true) => Act::Enter,
                Ok(false) => Act::End(End::Held(Hold::Differs)),
                Err(hold) => Act::End(End::Held(hold)),
            },
            (Phase::Stood, Done::Went) => {
                self.phase = Phase::Pressed;
                self.enters += 1;
                self.looks = 0;
                Act::Wait(PAUSE)
            }
            (Phase::Pressed, Done::Looked(look)) => self.pressed(look),
            // An executor that does something else than it was told: nothing is pressed.
            (_, Done::Looked(_) | Done::Claimed | Done::Went) => Act::End(End::Held(Hold::Unknown)),
        }
    }

    /// Something moved between the look and the key: all is looked at again, a few times.
    fn moved(&mut self) -> Act {
        self.moves += 1;
        if self.moves > MOVES {
            let hold = if self.phase == Phase::Stood { Hold::NotSubmitted } else { Hold::Unknown };
            return Act::End(End::Held(hold));
        }
        if matches!(self.phase, Phase::Free { .. }) {
            self.phase = Phase::First;
        }
        Act::Wait(PAUSE)
    }

    fn first(&mut self, look: &Look) -> Act {
        if let Some(hold) = look.hold {
            return Act::End(End::Held(hold));
        }
        let hold = match &look.sight {
            Sight::Composer { content: Content::Empty, busy: false } => return self.free(false),
            Sight::Composer { content: Content::Empty, busy: true } => Hold::Busy,
            Sight::Composer { content, .. } if self.is_ours(content) => return self.free(true),
            Sight::Composer { .. } => Hold::Draft,
            Sight::Dialog | Sight::Trust | Sight::Panel => Hold::Dialog,
            Sight::Limit => Hold::UsageLimit,
            Sight::Unknown => Hold::Unknown,
        };
        Act::End(End::Held(hold))
    }

    fn free(&mut self, stands: bool) -> Act {
        self.phase = Phase::Free { stands };
        if self.claimed { self.next(&Done::Claimed) } else { Act::Claim }
    }

    fn is_ours(&self, content: &Content) -> bool {
        match content {
            Content::Collapsed(word) => self.collapsed.as_ref() == Some(word),
            content => content.is(&self.text),
        }
    }

    fn pasted(&mut self, look: &Look) -> Act {
        // The composer was empty before, and nobody is at the keys: what stands for a paste stands for ours.
        if let (Sight::Composer { content: Content::Collapsed(word), .. }, None) = (&look.sight, look.hold) {
            self.collapsed = Some(word.clone());
        }
        match self.stands(look) {
            Ok(true) => {
                self.phase = Phase::Stood;
                Act::Wait(SETTLE)
            }
            // It may be on its way.
            Ok(false) if self.looks < LOOKS => {
                self.looks += 1;
                Act::Wait(PAUSE)
            }
            Ok(false) => {
                let lost = matches!(look.sight, Sight::Composer { content: Content::Empty, .. });
                Act::End(End::Held(if lost { Hold::NotReady } else { Hold::Differs }))
            }
            Err(hold) => Act::End(End::Held(hold)),
        }
    }

    /// Whether our text, which was typed, stands there alone; why nothing may be pressed where no composer is seen.
    fn stands(&self, look: &Look) -> Result<bool, Hold> {
        match (&look.sight, look.hold) {
            // Its text is in already: that is what there is to say of it.
            (_, Some(Hold::Dialog | Hold::Busy)) => Err(Hold::NotSubmitted),
            (_, Some(hold)) => Err(hold),
            (Sight::Composer { content, .. }, None) => Ok(self.is_ours(content)),
            (_, None) => Err(Hold::NotSubmitted),
        }
    }

    fn pressed(&mut self, look: &Look) -> Act {
        let stands = matches!(&look.sight, Sight::Composer { content, .. } if self.is_ours(content));
        if !stands {
            // A dialog of the turn that began may be up already: evidence tells what became of it.
            return Act::End(End::Submitted);
        }
        if self.looks < LOOKS_AFTER_ENTER {
            self.looks += 1;
            return Act::Wait(PAUSE);
        }
        if look.hold.is_some() || self.enters >= ENTERS {
            return Act::End(End::Held(Hold::NotSubmitted));
        }
        self.phase = Phase::Stood;
        Act::Wait(SETTLE)
    }
}

#[cfg(test)]
mod tests;
