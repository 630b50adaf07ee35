//! Gemini CLI: `gemini -o stream-json`, one line an event.

use nix::libc::SIGTERM;

use super::Adapter;
use super::plan::{Arg, Call, Commands, Stream, Transport};
use super::reading::{At, End, Joined, Reading, Trouble, Used};

pub static ADAPTER: Adapter = Adapter {
    name: "gemini",
    seen: &["0.61.0"],
    version: &["--version"],
    env: &[
        "GEMINI_API_KEY",
        "GEMINI_MODEL",
        "GEMINI_SANDBOX",
        "GEMINI_CLI_*",
        "GOOGLE_*",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "NO_PROXY",
    ],
    commands: Some(Commands {
        program: "gemini",
        first: &[Arg::Word("-o"), Arg::Word("stream-json"), Arg::Word("--session-id"), Arg::Id, Arg::Further],
        resume: &[Arg::Word("-o"), Arg::Word("stream-json"), Arg::Word("--resume"), Arg::Id, Arg::Further],
        stale: &["Invalid session identifier"],
        transport: Transport::Stdin,
        stream: Stream {
            progress: &[
                &[("type", "init")],
                &[("type", "message")],
                &[("type", "tool_use")],
                &[("type", "tool_result")],
            ],
            tool_start: &[Call {
                line: &[("type", "tool_use")],
                each: None,
                item: &[],
                id: "tool_id",
                task: false,
            }],
            tool_end: &[Call {
                line: &[("type", "tool_result")],
                each: None,
                item: &[],
                id: "tool_id",
                task: false,
            }],
            result: &[&[("type", "result")]],
        },
        reading: Reading {
            conversation: &[At { line: &[("type", "init")], path: "session_id" }],
            text: At { line: &[("type", "message"), ("role", "assistant")], path: "content" },
            joined: Joined::Since(&[
                &[("type", "tool_use")],
                &[("type", "tool_result")],
                &[("type", "message"), ("role", "user")],
            ]),
            ends: &[
                End { line: &[("type", "result"), ("status", "success")], well: true },
                End { line: &[("type", "result"), ("status", "error")], well: false },
                End { line: &[("type", "result")], well: false },
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
                    line: &[("type", "result"), ("status", "error")],
                    kinds: &[],
                    status: None,
                    words: &["error.message"],
                    reset: None,
                    coarse: false,
                },
            ],
            usage: &[Used {
                line: &[("type", "result")],
                id: None,
                input: "stats.input",
                input_has_cached: false,
                output: "stats.output_tokens",
                cache_read: "stats.cached",
                cache_write: "stats.cache_write",
                cost: None,
                of_conversation: false,
            }],
            taken: &[],
        },
    }),
    // It was seen to go on for 6 s after either signal.
    cancel_signal: None,
    budget_signal: SIGTERM,
};
