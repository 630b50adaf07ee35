//! Waiting for the end of a turn: one call that takes as long as the turn does. A signal becomes a cancel over a second
//! connection and the wait goes on; a connection that is lost is made anew, since the turn outlives the daemon.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use minder_proto::caller::Caller;
use minder_proto::error::Kind;
use minder_proto::id::TurnId;
use minder_proto::layout::Home;
use minder_proto::rpc::{TurnAnswer, TurnCancel, TurnGet, TurnRun};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::display::Display;
use crate::context::Context;
use crate::fault::CommandError;
use crate::folder_watch::FolderWatch;
use crate::follow::{Signal, Signals};
use crate::link::{Link, as_caller, failed, unreachable};
use crate::printer::Printer;
use crate::rpc::{CallError, Unreachable};

/// How long a daemon is looked for that went in the middle of a turn.
const ABSENCE: Duration = Duration::from_secs(60);
/// The first pause between two looks; each is twice the one before.
const PAUSE: Duration = Duration::from_millis(50);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(4);
/// How long a daemon that runs may take to take a cancel.
const BRIEFLY: Duration = Duration::from_secs(5);

/// One who waits for a turn.
pub struct Waiting<'a> {
    context: &'a Context,
    home: Home,
    id: TurnId,
    ears: Ears,
    display: Option<Display>,
}

/// What came of it.
pub struct Ended {
    /// The turn, settled.
    pub turn: TurnAnswer,
    /// The first signal that came meanwhile.
    pub said: Option<Signal>,
}

/// Who hears signals, and passes them on.
struct Ears {
    signals: Signals,
    said: Option<Signal>,
    /// Cancels that no daemon has taken yet.
    owed: u32,
    caller: Option<Caller>,
}

impl<'a> Waiting<'a> {
    /// Before the call.
    pub fn new(context: &'a Context, id: TurnId) -> Result<Self, CommandError> {
        let home = context.home()?.clone();
        let display = Display::new(&home, id, &context.printer);
        let ears =
            Ears { signals: Signals::default(), said: None, owed: 0, caller: as_caller(&context.caller) };
        Ok(Self { context, home, id, ears, display })
    }

    /// Runs the turn and waits for its end. The connection comes along: it is the one that the turn is held for.
    pub fn run(mut self, request: &TurnRun, mut link: Link) -> Result<(Ended, Link), CommandError> {
        // As long as nothing was asked for, a signal ends this process as it ends any.
        link.connect().map_err(|e| unreachable(&e))?;
        self.ears.signals.hold_back().map_err(|e| CommandError::io("signals", &e))?;
        let answer = match link.try_watched(request, &mut |stream| self.until_readable(stream)) {
            Err(error) if is_loss(&error) => self.again(&mut link),
            answer => answer.map_err(failed),
        };
        if let Some(display) = &mut self.display {
            display.wipe(&self.context.printer);
        }
        // From here on it is only output: whoever ends this process ends it, and the reply counts as lost.
        self.ears.signals.let_through();
        Ok((Ended { turn: answer?, said: self.ears.said }, link))
    }

    /// Finds the turn again after its connection was lost.
    fn again(&mut self, link: &mut Link) -> Result<TurnAnswer, CommandError> {
        let get = TurnGet { caller: as_caller(&self.context.caller), id: self.id.to_string(), wait: true };
        let mut until = Instant::now() + ABSENCE;
        let mut pause = PAUSE;
        loop {
            *link = self.context.daemon()?;
            let lost = match link.connect() {
                Ok(()) => {
                    self.ears.pay(&self.home, self.id);
                    match link.try_watched(&get, &mut |stream| self.until_readable(stream)) {
                        Err(error) if is_loss(&error) => {
                            // A daemon was there: what is looked for now is the next one.
                            until = until.max(Instant::now() + ABSENCE);
                            failed(error)
                        }
                        Err(CallError::Refused(fault)) if fault.kind == Kind::NotFound => {
                            return Err(CommandError::unavailable(
                                "the daemon ended before it took the turn",
                            ));
                        }
                        answer => return answer.map_err(failed),
                    }
                }
                Err(error) => unreachable(&error),
            };
            if Instant::now() >= until {
                let short = self.id.short();
                let message = format!("the turn goes on and no daemon was back within a minute: {lost}");
                return Err(CommandError { message, ..lost }.hint(format!("minder turn show {short}")));
            }
            self.rest(pause);
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Until something happens where a daemon's socket is told, or the time is over.
    fn rest(&mut self, limit: Duration) {
        let run = self.home.run();
        match FolderWatch::new(&[&run]) {
            Some(watch) => drop(watch.wait(self.ears.signals.as_fd(), Some(limit))),
            None => std::thread::sleep(limit),
        }
        self.ears.hear();
    }

    /// Until the answer comes: hears signals, draws the line.
    fn until_readable(&mut self, stream: BorrowedFd<'_>) {
        loop {
            let printer: &Printer = &self.context.printer;
            let due = self.display.as_ref().map(Display::due);
            // A moment more, so that it is time then.
            let due = due.map(|d| d + Duration::from_millis(1));
            let due = due.into_iter().chain((self.ears.owed > 0).then_some(PAUSE)).min();
            let due = due.map(|d| PollTimeout::try_from(d).unwrap_or(PollTimeout::MAX));
            let mut watched = vec![PollFd::new(stream, PollFlags::POLLIN)];
            watched.extend(self.ears.signals.as_fd().map(|fd| PollFd::new(fd, PollFlags::POLLIN)));
            let polled = poll(&mut watched, due.unwrap_or(PollTimeout::NONE));
            let answered = watched[0].revents().is_some_and(|events| !events.is_empty());
            if answered || polled.is_err_and(|e| e != nix::errno::Errno::EINTR) {
                return;
            }
            self.ears.hear();
            self.ears.pay(&self.home, self.id);
            if let Some(display) = &mut self.display {
                display.draw(printer);
            }
        }
    }
}

impl Ears {
    /// Takes the signals that came.
    fn hear(&mut self) {
        while let Some(signal) = self.signals.take() {
            self.said.get_or_insert(signal);
            self.owed += 1;
        }
    }

    /// Asks for the turn's end, once for each signal: the second one is the kill.
    fn pay(&mut self, home: &Home, id: TurnId) {
        while self.owed > 0 {
            let cancel = TurnCancel { caller: self.caller.clone(), id: id.to_string() };
            match Link::running(home, BRIEFLY).try_call(&cancel) {
                // The call that asks for the turn is on its way, or was lost: the cancel stays owed.
                Err(CallError::Refused(fault)) if fault.kind == Kind::NotFound => return,
                // Whatever it says, it has heard it.
                Ok(_) | Err(CallError::Refused(_) | CallError::Broken(_)) => self.owed -= 1,
                // It is owed to the next daemon.
                Err(CallError::Unreachable(_)) => return,
            }
        }
    }
}

/// True where the daemon went, or goes, and the turn may go on.
fn is_loss(error: &CallError) -> bool {
    match error {
        CallError::Unreachable(
            Unreachable::Lost
            | Unreachable::NotRunning(_)
            | Unreachable::Start(_)
            | Unreachable::NotAnswering(_),
        ) => true,
        CallError::Refused(fault) => fault.kind == Kind::Unavailable,
        CallError::Unreachable(_) | CallError::Broken(_) => false,
    }
}
