//! The command line: one subcommand per file of `commands/`, which holds its options, its help and what it does.

use clap::{Args, Parser, Subcommand};

use crate::commands;
use crate::context::Context;
use crate::fault::CommandError;

/// What a command ends with: its exit code, or why it failed.
pub type Outcome = Result<u8, CommandError>;

/// minder watches over coding agents: it tells you, or the agent that supervises for you, when one asks,
/// finishes or dies.
#[derive(Parser, Debug)]
#[command(
    name = "minder",
    version,
    disable_help_subcommand = true,
    subcommand_help_heading = "Commands",
    after_help = "\
Without a command: who you are, how the daemon is, and all sessions. minder
help agent prints what an agent needs to know, minder help selectors how
sessions (SEL), messages (MID) and sets of states (STATES) are named."
)]
pub struct Cli {
    /// Options of every command.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// Options of every command.
#[derive(Args, Clone, Debug, Default)]
pub struct Global {
    /// Print objects instead of lines, and failures as one object on standard error
    #[arg(long, global = true, display_order = 900)]
    pub json: bool,
    /// Act as this session; for a person's shell only, and recorded
    #[arg(long = "as", global = true, value_name = "SEL", display_order = 901)]
    pub acting_as: Option<String>,
}

/// Every command.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// The commands of the noun `session`, which may be left out.
    #[command(flatten)]
    Session(SessionCommand),
    /// The same commands with their noun: minder session ls is minder ls
    #[command(name = "session")]
    Noun(Noun),
    /// What a harness runs as its hook; not for people
    Hook(commands::hook::HookArgs),
    /// Put minder's hooks into a harness's settings, or take them out
    Hooks(commands::hooks::args::HooksArgs),
    /// The harnesses: which are here, and what works with each
    Harness(commands::harness::HarnessArgs),
    /// Find what is not as it should be, each with the command that mends it
    Doctor(commands::doctor::DoctorArgs),
    /// Set everything up: find the harnesses, ask, install, test; or take it all back
    Setup(commands::setup::args::SetupArgs),
    /// Text for agents, how sessions are named, or the help of a command
    Help(commands::help::HelpArgs),
    /// Supervised turns: runs of a program that always end, with a named outcome
    Turn(commands::turn::TurnArgs),
    /// The wake queue beside a session that supervises others
    Host(commands::host::HostArgs),
    /// What holds the turns of headless sessions: usage limits, logins, open circuits
    Account(commands::account::AccountArgs),
    /// The daemon itself
    Daemon(commands::daemon::DaemonArgs),
    /// The store's files
    Store(commands::store::StoreArgs),
    /// Show the real programs at work in a throw-away store, and check that they do
    Tour(commands::tour::TourArgs),
}

/// `minder session …`.
#[derive(Args, Debug)]
pub struct Noun {
    /// What to do; a list without it.
    #[command(subcommand)]
    command: Option<SessionCommand>,
}

/// The commands of the noun `session`.
#[derive(Subcommand, Debug)]
pub enum SessionCommand {
    /// Register a session; in an agent's shell, this very conversation
    New(commands::new::NewArgs),
    /// Start a worker: register a session, start its harness, give it its first message
    Launch(commands::launch::LaunchArgs),
    /// Start a session's harness again, in its newest conversation
    Relaunch(commands::relaunch::RelaunchArgs),
    /// List sessions, those that want somebody first
    Ls(commands::ls::LsArgs),
    /// Show one session: its record, what waits for it, what happened last
    Show(commands::show::ShowArgs),
    /// Declare a state
    State(commands::state::StateArgs),
    /// Send a message to a session
    Send(commands::send::SendArgs),
    /// Show what waits for a session, or how far one message got
    Queue(commands::queue::QueueArgs),
    /// Try the delivery of a message again at once
    Retry(commands::retry::RetryArgs),
    /// Never deliver a message
    Drop(commands::drop::DropArgs),
    /// Read your own messages
    Inbox(commands::inbox::InboxArgs),
    /// Wait for the next event, and exit
    Wait(commands::wait::WaitArgs),
    /// Be told of every state but working that a session declares
    Watch(commands::watch::WatchArgs),
    /// Bring the pane of a session to the front
    Attach(commands::attach::AttachArgs),
    /// Change the record of a session
    Set(commands::set::SetArgs),
    /// End the care for a session
    Close(commands::close::CloseArgs),
}

impl Cli {
    /// Does what was asked.
    pub fn run(self, context: &mut Context) -> Outcome {
        match self.command {
            None => commands::home::run(context),
            Some(command) => command.run(context),
        }
    }
}

impl Command {
    fn run(self, context: &mut Context) -> Outcome {
        match self {
            Self::Session(command) | Self::Noun(Noun { command: Some(command) }) => command.run(context),
            Self::Noun(Noun { command: None }) => commands::home::run(context),
            Self::Hook(args) => commands::hook::run(&args, context),
            Self::Hooks(args) => commands::hooks::args::run(args, context),
            Self::Harness(args) => commands::harness::run(&args, context),
            Self::Doctor(args) => commands::doctor::run(&args, context),
            Self::Setup(args) => commands::setup::args::run(args, context),
            Self::Help(args) => commands::help::run(&args, context),
            Self::Turn(args) => commands::turn::run(args, context),
            Self::Host(args) => commands::host::run(&args, context),
            Self::Account(args) => commands::account::run(&args, context),
            Self::Daemon(args) => commands::daemon::run(&args, context),
            Self::Store(args) => commands::store::run(&args, context),
            Self::Tour(args) => commands::tour::run(&args, context),
        }
    }
}

impl SessionCommand {
    fn run(self, context: &mut Context) -> Outcome {
        match self {
            Self::New(args) => commands::new::run(args, context),
            Self::Launch(args) => commands::launch::run(args, context),
            Self::Relaunch(args) => commands::relaunch::run(args, context),
            Self::Ls(args) => commands::ls::run(&args, context),
            Self::Show(args) => commands::show::run(&args, context),
            Self::State(args) => commands::state::run(args, context),
            Self::Send(args) => commands::send::run(args, context),
            Self::Queue(args) => commands::queue::run(&args, context),
            Self::Retry(args) => commands::retry::run(&args, context),
            Self::Drop(args) => commands::drop::run(&args, context),
            Self::Inbox(args) => commands::inbox::run(args, context),
            Self::Wait(args) => commands::wait::run(args, context),
            Self::Watch(args) => commands::watch::run(args, context),
            Self::Attach(args) => commands::attach::run(&args, context),
            Self::Set(args) => commands::set::run(args, context),
            Self::Close(args) => commands::close::run(args, context),
        }
    }
}
