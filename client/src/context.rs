//! What every command stands in: the store's place, who calls, the printer, and the way to the daemon.

use std::cell::OnceCell;
use std::time::Duration;

use minder_proto::caller::{self, Caller, Identity};
use minder_proto::config;
use minder_proto::id::{Party, SessionId};
use minder_proto::layout::{self, Home};
use minder_proto::snapshot;

use crate::ancestors;
use crate::fault::CommandError;
use crate::fleet::{self, Fleet};
use crate::follow::Follower;
use crate::link::Link;
use crate::printer::Printer;

/// How long a daemon that runs may take to be found.
const BRIEFLY: Duration = Duration::from_millis(300);

/// The surroundings of one command.
#[derive(Debug)]
pub struct Context {
    /// Writes the output.
    pub printer: Printer,
    /// What is said of the caller, in every call.
    pub caller: Caller,
    home: OnceCell<Home>,
}

impl Context {
    /// The surroundings of this process. Reads no file.
    pub fn new(json: bool, acting_as: Option<String>) -> Self {
        let caller = Caller { acting_as, ..Caller::from_env() };
        Self { printer: Printer::new(json), caller, home: OnceCell::new() }
    }

    /// The store.
    pub fn home(&self) -> Result<&Home, CommandError> {
        if let Some(home) = self.home.get() {
            return Ok(home);
        }
        let home = Home::from_env()?;
        Ok(self.home.get_or_init(|| home))
    }

    /// Every open session, as the files show it.
    pub fn fleet(&self) -> Result<Fleet, CommandError> {
        Fleet::read(self.home()?)
    }

    /// As much of the fleet as one word, or the caller alone, asks for: where each is named outright, those sessions and
    /// no others.
    pub fn fleet_for(&self, word: Option<&str>) -> Result<Fleet, CommandError> {
        let home = self.home()?;
        let caller = caller::from_files(home, &self.caller).session();
        let acting = self.caller.acting_as.as_deref();
        let mut records = Vec::new();
        for word in acting.into_iter().chain(word) {
            let record = match (word, caller) {
                (".", Some(me)) => snapshot::record(home, me).ok(),
                _ => fleet::outright(home, word),
            };
            match record {
                Some(record) => records.push(record),
                None => return self.fleet(),
            }
        }
        if word.is_none()
            && let Some(me) = caller
        {
            match snapshot::record(home, me) {
                Ok(record) => records.push(record),
                Err(_) => return self.fleet(),
            }
        }
        Ok(Fleet::only(records))
    }

    /// The daemon; it is started at the first call if none runs.
    pub fn daemon(&self) -> Result<Link, CommandError> {
        Ok(Link::starting(self.home()?))
    }

    /// The daemon, for what only a session can ask; none where no daemon runs and the caller cannot be a session. To be
    /// refused nobody needs one started.
    pub fn daemon_of_session(&self) -> Result<Option<Link>, CommandError> {
        let runs = || Ok::<_, CommandError>(Link::running(self.home()?, BRIEFLY).is_answered());
        if self.may_be_session()? || runs()? { self.daemon().map(Some) } else { Ok(None) }
    }

    /// Whether a daemon could take the caller for a session: by a variable, by `--as`, or by a process above it.
    fn may_be_session(&self) -> Result<bool, CommandError> {
        if self.caller.acting_as.is_some() || self.caller.is_agent() {
            return Ok(true);
        }
        let fleet = self.fleet()?;
        let processes = fleet.records.iter().filter_map(|r| r.process.as_ref());
        Ok(fleet.unreadable.is_empty().then(|| ancestors::include(processes)).flatten().unwrap_or(true))
    }

    /// Refuses `--as` where an agent's variables stand, whatever the command: it is for a person's shell only.
    pub fn check_acting(&self) -> Result<(), CommandError> {
        if self.caller.acting_as.is_some() && self.caller.is_agent() {
            return Err(not_a_person());
        }
        Ok(())
    }

    /// Who calls, as the files alone tell it. `--as` is for a person's shell only.
    pub fn identity(&self, fleet: &Fleet) -> Result<Identity, CommandError> {
        let home = self.home()?;
        let found = caller::from_files(home, &self.caller);
        match (&self.caller.acting_as, found) {
            (None, found) => Ok(found),
            (Some(selector), Identity::Operator) => {
                Ok(Identity::Session { id: fleet.one(home, selector, None)?.id })
            }
            (Some(_), _) => Err(not_a_person()),
        }
    }

    /// Who calls, as [`Context::identity`] tells it, without a look at every session.
    pub fn who(&self) -> Result<Identity, CommandError> {
        match &self.caller.acting_as {
            None => Ok(caller::from_files(self.home()?, &self.caller)),
            Some(_) => self.identity(&self.fleet_for(None)?),
        }
    }

    /// The caller as somebody who follows sessions by their files.
    pub fn follower<'a>(&self, home: &'a Home) -> Result<Follower<'a>, CommandError> {
        let config = config::load(&layout::config_file()?, |name| std::env::var(name).ok())?;
        Ok(Follower {
            home,
            identity: self.who()?,
            harness: self.caller.conversations().next().map(|(harness, _)| harness.to_owned()),
            backstop: config.follow.backstop.0,
        })
    }

    /// The session that calls; an error for everybody else.
    pub fn session(&self, fleet: &Fleet) -> Result<SessionId, CommandError> {
        match self.identity(fleet)? {
            Identity::Session { id } => Ok(id),
            Identity::Unregistered { .. } => Err(unregistered()),
            Identity::Operator => {
                Err(CommandError::usage("which session? a person's shell is none").hint("minder ls"))
            }
        }
    }

    /// The caller as somebody who has messages: a session, or the person.
    pub fn party(&self, fleet: &Fleet) -> Result<Party, CommandError> {
        match self.identity(fleet)? {
            Identity::Session { id } => Ok(Party::Session(id)),
            Identity::Operator => Ok(Party::Operator),
            Identity::Unregistered { .. } => Err(unregistered()),
        }
    }
}

fn not_a_person() -> CommandError {
    CommandError::refused("--as is for a person's shell, and this is an agent's")
}

/// An agent whose conversation is bound to nothing has no messages and cannot speak.
pub fn unregistered() -> CommandError {
    CommandError::refused("this conversation is not registered").hint("minder new")
}
