//! `account.*`: what holds accounts, and circuits that are open.

use serde::{Deserialize, Serialize};

use super::Call;
use crate::account::{AccountHold, Circuit};
use crate::caller::Caller;
use crate::id::SessionId;

/// `account.list`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccountList {
    /// Who calls.
    #[serde(default)]
    pub caller: Option<Caller>,
}

/// Answer to `account.list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AccountListAnswer {
    /// What holds accounts.
    pub holds: Vec<AccountHold>,
    /// Open circuits.
    pub circuits: Vec<OpenCircuit>,
}

/// The circuit of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenCircuit {
    /// The session.
    pub session: SessionId,
    /// Its label.
    pub label: String,
    /// Its account.
    pub account: String,
    /// The circuit.
    pub circuit: Circuit,
    /// Seconds until its next probe.
    pub probe_s: u64,
}

impl Call for AccountList {
    const METHOD: &'static str = "account.list";
    type Answer = AccountListAnswer;
}

/// `account.release`: ends what holds an account, and closes its circuits.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccountRelease {
    /// Who calls.
    #[serde(default)]
    pub caller: Option<Caller>,
    /// The account.
    pub account: String,
}

/// Answer to `account.release`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AccountReleaseAnswer {
    /// Sessions that go on.
    pub sessions: Vec<SessionId>,
}

impl Call for AccountRelease {
    const METHOD: &'static str = "account.release";
    type Answer = AccountReleaseAnswer;
}
