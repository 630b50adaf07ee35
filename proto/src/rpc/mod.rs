//! Parameters and results of every method on the socket, by family. A parameter struct knows its method's name
//! and the type of its answer, so that a call is `client.call(&SessionState { … })`.

use serde::Serialize;
use serde::de::DeserializeOwned;

mod account;
mod daemon;
mod hook;
mod host;
mod launch;
mod message;
mod session;
mod store;
mod turn;
mod watch;

pub use account::{AccountList, AccountListAnswer, AccountRelease, AccountReleaseAnswer, OpenCircuit};
pub use daemon::{Hello, HelloAnswer, SecondWriter, Status, StatusAnswer, Stop};
pub use hook::{HookAnswer, HookEnv, HookEvent, HookWait};
pub use host::{
    HostAck, HostAckAnswer, HostDrain, HostDrainAnswer, HostDrained, HostDrainedAnswer, HostStatus,
    HostStatusAnswer, HostSwitch, HostSwitchAnswer,
};
pub use launch::{Launch, LaunchAnswer, Place, Relaunch};
pub use message::{
    Ack, AckAnswer, Drop, Receipt, ReceiptAnswer, Retry, Send, SendAnswer, Take, TakeAnswer, Taken,
    WaitVerdict,
};
pub use session::{
    Adopt, AdoptAnswer, Close, CloseAnswer, Create, CreateAnswer, Declare, DeclareAnswer, Get, GetAnswer,
    List, ListAnswer, Set, SetAnswer,
};
pub use store::{Compact, CompactAnswer};
pub use turn::{
    Hold, Settled, TurnAnswer, TurnCancel, TurnDone, TurnFinish, TurnGet, TurnList, TurnListAnswer, TurnRow,
    TurnRun, TurnStart,
};
pub use watch::{
    Cancelled, WatchAdd, WatchAddAnswer, WatchCancel, WatchCancelAnswer, WatchList, WatchListAnswer,
    WatchRow, Watched,
};

/// A call: its parameters know the method and the answer.
pub trait Call: Serialize {
    /// The method's name, `family.verb`.
    const METHOD: &'static str;
    /// True if it may take as long as it takes: no read time-out.
    const LONG: bool = false;
    /// What it answers.
    type Answer: DeserializeOwned;
}

/// Header with the protocol number of the client.
pub const HEADER_PROTOCOL: &str = "minder-protocol";
/// Header with the real path of the store that the client means.
pub const HEADER_STORE: &str = "minder-store";

/// A request left in `spool/` while no daemon could be reached.
#[derive(Clone, Debug, PartialEq, Serialize, serde::Deserialize)]
pub struct Spooled {
    /// `session.state`, `message.send`, `message.ack` or `hook.event`.
    pub method: String,
    /// Its parameters as they would have gone over the socket; a `key` in them counts, else the file's name does.
    pub params: serde_json::Value,
    /// When it was said.
    pub at: crate::stamp::Stamp,
}
