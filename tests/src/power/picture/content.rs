//! The bytes of one file after a loss, of which those that were not durable may be there, in several ways.

use super::What;
use crate::power::dice::Dice;

/// How the changes of a file that are not durable come to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    All,
    Nothing,
    Whole,
    Sectors,
    Torn,
    Grown,
}

impl Style {
    const ALL: [Self; 6] = [Self::All, Self::Nothing, Self::Whole, Self::Sectors, Self::Torn, Self::Grown];

    /// Any of them.
    pub fn any(dice: &mut Dice) -> Self {
        *dice.one_of(&Self::ALL)
    }

    /// This one for most files, another for some.
    pub fn or_another(self, dice: &mut Dice) -> Self {
        if dice.percent(60) { self } else { Self::any(dice) }
    }
}

/// The bytes of a file.
#[derive(Clone, Debug, Default)]
pub struct Content(pub Vec<u8>);

/// The unit that a disk writes whole.
const SECTOR: usize = 512;

impl Content {
    /// A change that is there.
    pub fn apply(&mut self, what: &What) {
        match what {
            What::Bytes { offset, bytes, .. } => self.write(*offset as usize, bytes),
            What::Size { len, .. } => self.0.resize(*len as usize, 0),
            What::Grow { len, .. } => self.grow(*len as usize),
            What::Put { .. } | What::Take { .. } | What::Move { .. } => {}
        }
    }

    /// A change that may be there, as the style says.
    pub fn apply_in_part(&mut self, what: &What, style: Style, dice: &mut Dice) {
        let What::Bytes { offset, bytes, .. } = what else {
            // A size comes or does not.
            let comes = match style {
                Style::All | Style::Grown => true,
                Style::Nothing => false,
                Style::Whole | Style::Sectors | Style::Torn => dice.percent(50),
            };
            if comes {
                self.apply(what);
            }
            return;
        };
        let offset = *offset as usize;
        match style {
            Style::All => self.apply(what),
            Style::Nothing => {}
            Style::Whole => {
                if dice.percent(50) {
                    self.apply(what);
                }
            }
            Style::Grown => self.grow(offset + bytes.len()),
            Style::Torn => self.write(offset, &bytes[..dice.below(bytes.len() + 1)]),
            Style::Sectors => {
                let mut at = 0;
                while at < bytes.len() {
                    let end = (SECTOR - (offset + at) % SECTOR + at).min(bytes.len());
                    if dice.percent(50) {
                        self.write(offset + at, &bytes[at..end]);
                    }
                    at = end;
                }
            }
        }
    }

    fn write(&mut self, offset: usize, bytes: &[u8]) {
        self.grow(offset + bytes.len());
        self.0[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    fn grow(&mut self, len: usize) {
        if self.0.len() < len {
            self.0.resize(len, 0);
        }
    }
}
