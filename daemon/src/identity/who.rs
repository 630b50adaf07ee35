//! Whom a caller is taken for. Pure: from what the kernel says of it, what it says of itself, and the bindings.
//!
//! 0. In a supervised turn: the session whose turn it is.
//! 1. Under a harness: a session of that very process, or nobody that is registered. A variable tells which one where
//!    it has several; one that names a conversation of another process was inherited, and speaks for nobody.
//! 2. Under none (its ancestors cannot be seen, or it was detached): the session that its variables name, or the one
//!    that minder started it for, proven by its token.
//! 3. With variables that name none: an agent that is not registered. It is never taken for the person.
//! 4. Else: the person.

use minder_proto::caller::{self, Caller, Identity};
use minder_proto::error::{Fault, Kind};
use minder_proto::event::Author;
use minder_proto::id::{Party, SessionId};
use minder_proto::layout::Home;
use minder_proto::stamp::Stamp;

use super::{Ancestry, token};
use crate::session;
use crate::store::{Session, State};

/// A caller, with what it may speak as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Who {
    /// Whom it is taken for, or whom the person chose to act as.
    pub identity: Identity,
    /// The person is at the keys: as themselves, or (`--as`) for a session.
    pub by_operator: bool,
}

impl Who {
    /// The session that calls or is acted for.
    pub fn session(&self) -> Option<SessionId> {
        self.identity.session()
    }

    /// As whom it speaks. An agent that is not registered may look and wait, and does not speak.
    pub fn party(&self) -> Result<Party, Fault> {
        match &self.identity {
            Identity::Session { id } => Ok(Party::Session(*id)),
            Identity::Operator => Ok(Party::Operator),
            Identity::Unregistered { harness, .. } if harness == "unknown" => Err(Fault::new(
                Kind::Refused,
                "this agent is not registered: it may look and wait, and nothing else",
            )
            .hint("minder new")),
            Identity::Unregistered { harness, .. } => Err(Fault::new(
                Kind::Refused,
                format!(
                    "this {harness} conversation is not registered: it may look and wait, and nothing else"
                ),
            )
            .hint("minder new")),
        }
    }

    /// Who declares what it declares.
    pub fn author(&self) -> Author {
        if self.by_operator { Author::Operator } else { Author::Agent }
    }
}

/// Who calls over the socket. `--as` is for the person only.
pub fn who(caller: Option<&Caller>, ancestry: &Ancestry, state: &State, home: &Home) -> Result<Who, Fault> {
    acting(identify(caller, ancestry, state), caller, state, home)
}

/// Who left a request in the spool, where nobody can ask the kernel: a session that a variable names; the person only
/// if no daemon served when it was written (`ready` is when this one did), since then nobody could have been asked.
pub fn who_left(
    caller: Option<&Caller>,
    at: Stamp,
    ready: Option<Stamp>,
    state: &State,
    home: &Home,
) -> Result<Who, Fault> {
    let identity = by_variables(caller, state);
    if identity == Identity::Operator && ready.is_some_and(|ready| at >= ready) {
        return Err(Fault::new(
            Kind::Refused,
            "it was left while a daemon ran, by somebody who did not say who it is",
        ));
    }
    acting(identity, caller, state, home)
}

fn acting(identity: Identity, caller: Option<&Caller>, state: &State, home: &Home) -> Result<Who, Fault> {
    let by_operator = identity == Identity::Operator;
    let Some(selector) = caller.and_then(|c| c.acting_as.as_deref()) else {
        return Ok(Who { identity, by_operator });
    };
    let is = match &identity {
        Identity::Operator => {
            let id = session::selected_one(state, home, selector, None)?;
            return Ok(Who { identity: Identity::Session { id }, by_operator });
        }
        Identity::Session { id } => format!("session {}", id.short()),
        Identity::Unregistered { harness, .. } => format!("a {harness} conversation that is not registered"),
    };
    Err(Fault::new(Kind::Refused, format!("--as is for a person's shell, and this is {is}")))
}

/// Whom a caller is taken for. Without a `caller` object only its ancestors count.
pub fn identify(caller: Option<&Caller>, ancestry: &Ancestry, state: &State) -> Identity {
    // What a turn runs speaks as the session whose turn it is, whatever else stands between.
    if let Some(id) = ancestry.turn().filter(|id| state.session(*id).is_some()) {
        return Identity::Session { id };
    }
    for ancestor in ancestry.iter() {
        // What is bound was known as a harness once, whatever it calls itself now.
        let bound: Vec<&Session> = state.by_process(&ancestor.process).collect();
        let harness = ancestor.harness.or_else(|| bound.first()?.record.harness.as_deref());
        if ancestor.harness.is_some() || !bound.is_empty() {
            return under(harness.unwrap_or("unknown"), &bound, caller, state);
        }
    }
    by_variables(caller, state)
}

/// Rule 1: under a process of this harness, to which these sessions are bound.
fn under(harness: &str, bound: &[&Session], caller: Option<&Caller>, state: &State) -> Identity {
    let variable = caller.and_then(|c| c.conversations().find(|(h, _)| *h == harness)).map(|(_, id)| id);
    let has = |s: &Session, live: bool, id: Option<&str>| {
        let fits =
            |b: &&minder_proto::record::Binding| b.harness == harness && id.is_none_or(|id| b.id == id);
        s.record.bindings.iter().filter(fits).any(|b| !live || b.until.is_none())
    };
    let found = match variable {
        // A conversation that was cleared is still this session's own: what it left running says its name.
        Some(id) => {
            let own = |live| bound.iter().find(|s| has(s, live, Some(id)));
            own(true).or_else(|| own(false))
        }
        None if bound.len() == 1 => bound.first(),
        None => {
            let mut live = bound.iter().filter(|s| has(s, true, None));
            live.next().filter(|_| live.next().is_none())
        }
    };
    if let Some(session) = found {
        return Identity::Session { id: session.record.id };
    }
    // The name of somebody else's conversation is not its own.
    let own = variable.filter(|id| state.by_binding(harness, id).is_none());
    Identity::Unregistered { harness: harness.to_owned(), harness_id: own.unwrap_or_default().to_owned() }
}

/// Rules 2 to 4.
fn by_variables(caller: Option<&Caller>, state: &State) -> Identity {
    let Some(caller) = caller else { return Identity::Operator };
    let issued = |id| has_token(state, id, caller.token.as_deref()).then_some(id);
    caller::by_variables(caller, |h, id| state.by_binding(h, id), issued)
}

/// Whether the daemon gave this token to the process that it last started for a session.
pub fn has_token(state: &State, session: SessionId, token: Option<&str>) -> bool {
    let launch = state.session(session).and_then(|s| s.record.launch.as_ref());
    launch.zip(token).is_some_and(|(launch, token)| !token.is_empty() && launch.token == token::sum(token))
}

#[cfg(test)]
mod tests;
