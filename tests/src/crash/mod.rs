//! The crash harness: clients that keep their own history of what they were told, a daemon that is killed on the way,
//! and a look at the files afterwards. What was told must be there, once and in order, and nothing else.
//!
//! | module | what it is |
//! |---|---|
//! | [`daemon`] | a daemon that is killed: at a random moment, at a kill point, at a system call |
//! | [`fleet`] | the sessions of a store and the clients that speak for them, made once and copied |
//! | [`history`] | what one client said, and what became of it |
//! | [`clients`] | the steps of each kind of client |
//! | [`primary`] | one whose host is on: it drains and acknowledges |
//! | [`followers`] | a stream and waits that follow over the crashes, by files alone |
//! | [`picture`] | what the files say, read line by line, by nothing of the programs' own readers |
//! | [`verdict`] | the histories against the picture |
//! | [`rounds`] | random moments under load |
//! | [`points`] | every kill point and every system call, one after the other |
//! | [`faults`] | whether seeded faults are found, and by what |
//! | [`table`] | what is printed |

pub mod clients;
pub mod daemon;
pub mod faults;
pub mod fleet;
pub mod followers;
pub mod history;
pub mod picture;
pub mod points;
pub mod primary;
pub mod rounds;
pub mod table;
pub mod verdict;

/// Numbers that a seed decides.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// Those of this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any number (SplitMix64).
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// One below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.number() % end.max(1)
    }

    /// True once in `n`.
    pub fn once_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// What was found wrong, a line each.
#[derive(Clone, Debug, Default)]
pub struct Findings(pub Vec<String>);

impl Findings {
    /// Notes one.
    pub fn add(&mut self, what: impl Into<String>) {
        self.0.push(what.into());
    }

    /// What a step gave; that it failed is found wrong: every call is one that must be taken, and every start one that
    /// must lead to a daemon that serves.
    pub fn unless_failed<T>(&mut self, at: &str, result: anyhow::Result<T>) -> Option<T> {
        result.map_err(|error| self.add(format!("{at}: {error:#}"))).ok()
    }

    /// True if nothing was.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Takes over those of another look, with where that was.
    pub fn absorb(&mut self, at: &str, other: Self) {
        self.0.extend(other.0.into_iter().map(|what| format!("{at}: {what}")));
    }
}
