//! Codex: `codex exec --json`, one line an item.

use nix::libc::{SIGINT, SIGTERM};

use super::Adapter;
use super::plan::{Arg, Call, Commands, Stream, Transport};

/// A line about an item that is a tool call.
macro_rules! call {
    ($line:literal, $item:literal) => {
        Call { line: &[("type", $line), ("item.type", $item)], each: None, item: &[], id: "item.id" }
    };
}

pub static ADAPTER: Adapter = Adapter {
    name: "codex",
    seen: &["0.171.0"],
    version: &["--version"],
    env: &[
        "CODEX_HOME",
        "CODEX_API_KEY",
        "OPENAI_*",
        "AZURE_OPENAI_*",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "NO_PROXY",
    ],
    commands: Some(Commands {
        program: "codex",
        first: &[Arg::Word("exec"), Arg::Word("--json"), Arg::Further, Arg::Word("-")],
        // Options of `exec` that `resume` does not know stand before it.
        resume: &[
            Arg::Word("exec"),
            Arg::Word("--json"),
            Arg::Further,
            Arg::Word("resume"),
            Arg::Id,
            Arg::Word("-"),
        ],
        stale: &["no rollout found for thread id"],
        transport: Transport::Stdin,
        stream: Stream {
            // Not `error`: "Reconnecting... 2/5" comes by the clock while a model is silent.
            progress: &[
                &[("type", "thread.started")],
                &[("type", "turn.started")],
                &[("type", "item.started")],
                &[("type", "item.updated")],
                &[("type", "item.completed")],
            ],
            tool_start: &[
                call!("item.started", "command_execution"),
                call!("item.started", "mcp_tool_call"),
                call!("item.started", "web_search"),
            ],
            tool_end: &[
                call!("item.completed", "command_execution"),
                call!("item.completed", "mcp_tool_call"),
                call!("item.completed", "web_search"),
            ],
            result: &[&[("type", "turn.completed")], &[("type", "turn.failed")]],
        },
    }),
    // Its Interrupt and SessionEnd hooks run for SIGINT alone.
    cancel_signal: Some(SIGINT),
    budget_signal: SIGTERM,
};
