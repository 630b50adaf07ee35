//! Codex: `codex exec --json`, one line an item.

use nix::libc::{SIGINT, SIGTERM};

use super::Adapter;
use super::plan::{Arg, Call, Commands, Stream, Transport};
use super::reading::{At, End, Joined, Reading, Trouble, Used};

/// A line about an item that is a tool call.
macro_rules! call {
    ($line:literal, $item:literal) => {
        Call {
            line: &[("type", $line), ("item.type", $item)],
            each: None,
            item: &[],
            id: "item.id",
            task: false,
        }
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
        reading: Reading {
            conversation: &[At { line: &[("type", "thread.started")], path: "thread_id" }],
            text: At {
                line: &[("type", "item.completed"), ("item.type", "agent_message")],
                path: "item.text",
            },
            joined: Joined::Last,
            ends: &[
                End { line: &[("type", "turn.completed")], well: true },
                End { line: &[("type", "turn.failed")], well: false },
            ],
            troubles: &[
                Trouble {
                    line: &[("type", "error")],
                    kinds: &[],
                    status: None,
                    words: &["message"],
                    reset: None,
                    coarse: false,
                },
                Trouble {
                    line: &[("type", "turn.failed")],
                    kinds: &[],
                    status: None,
                    words: &["error.message"],
                    reset: None,
                    coarse: false,
                },
            ],
            usage: &[Used {
                line: &[("type", "turn.completed")],
                id: Some("type"),
                input: "usage.input_tokens",
                input_has_cached: true,
                output: "usage.output_tokens",
                cache_read: "usage.cached_input_tokens",
                cache_write: "usage.cache_write_input_tokens",
                cost: None,
                of_conversation: true,
            }],
            taken: &[],
        },
    }),
    // Its Interrupt and SessionEnd hooks run for SIGINT alone.
    cancel_signal: Some(SIGINT),
    budget_signal: SIGTERM,
};
