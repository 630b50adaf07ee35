//! A wait's telling: events under the lock, and how far it read.

use minder_proto::error::exit;
use minder_proto::stamp::Stamp;

use super::Waiting;
use crate::fault::CommandError;
use crate::follow::keeper::Held;
use crate::follow::news::Aside;
use crate::follow::opening::forget_closed;
use crate::follow::wait::Tell;
use crate::follow::{card, render};

impl Waiting<'_> {
    /// Tells events: takes the lock, reads again, prints and flushes, then writes. Killed in between, they are told
    /// again; told by another wait of this caller meanwhile, they are not.
    pub(super) fn tell(&mut self, tell: &[Tell]) -> Result<(), CommandError> {
        self.source.awake();
        let mut held = self.keeper.hold();
        let again = self.options.since.is_some();
        let (mut told, mut refused) = (Vec::new(), Vec::new());
        for tell in tell {
            let fresh = match tell {
                Tell::News(news) => held.book.claim(news.session, news.edge) || again,
                Tell::Letter(letter) => held.book.claim_letter(letter.seq),
            };
            if !fresh {
                let session = match tell {
                    Tell::News(news) => Some(news.session),
                    Tell::Letter(_) => None,
                };
                self.wait.refused(tell);
                refused.extend(session);
                self.say(&Aside::Elsewhere { session });
                continue;
            }
            let (now, home) = (Stamp::now(), self.home);
            let names = |id| card::names(home, id);
            match (tell, self.printer.is_json()) {
                (Tell::News(news), true) => self.printer.object(&render::news_object(news, &names, now)),
                (Tell::News(news), false) => self.printer.line(render::news_lines(news, &names, now)),
                (Tell::Letter(letter), true) => {
                    self.printer.object(&render::letter_object(letter, &names, now))
                }
                (Tell::Letter(letter), false) => self.printer.line(render::letter_line(letter, &names)),
            }
            .map_err(untold)?;
            told.push(tell);
        }
        self.book.told = held.book.told;
        let told_none = told.is_empty();
        if !told.is_empty() {
            self.printer.flush().map_err(untold)?;
            told.into_iter().for_each(|t| self.wait.told(t));
            self.write(held);
        }
        if told_none || self.options.each {
            // What another wait told lies before what is there now.
            refused.into_iter().for_each(|id| self.read(id));
            self.look_at_inbox();
        }
        Ok(())
    }

    /// Keeps how far was read.
    pub(super) fn keep(&mut self) {
        let held = self.keeper.hold();
        self.write(held);
    }

    pub(super) fn write(&mut self, mut held: Held) {
        self.kept = true;
        for (id, target) in self.wait.targets() {
            held.book.advance(id, target.cursor, target.wrong);
        }
        for id in self.wait.heard_gone() {
            held.book.forget(id);
        }
        if self.rules.broad {
            held.book.swept_at(self.began);
        }
        let wait = &self.wait;
        forget_closed(self.home, &mut held.book, |id| wait.target(id).is_some());
        if held.book.changed
            && let Err(e) = self.keeper.keep(held)
        {
            self.say(&Aside::Plain(format!(
                "the position could not be kept, so this will be told again: {e}"
            )));
        }
    }
}

/// An event that could not be printed was not told, also where nobody reads: the exit is no event's.
fn untold(error: CommandError) -> CommandError {
    CommandError { exit: exit::IO, ..error }
}
