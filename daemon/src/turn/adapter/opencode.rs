//! OpenCode: `opencode run --format json`, one line a part of an answer. A tool call is told when it has ended only.

use nix::libc::SIGTERM;

use super::Adapter;
use super::plan::{Arg, Commands, Stream, Transport};
use super::reading::{At, End, Joined, Reading, Trouble, Used};

pub static ADAPTER: Adapter = Adapter {
    name: "opencode",
    seen: &["1.18.33"],
    version: &["--version"],
    env: &[
        "OPENCODE_*",
        "ANTHROPIC_*",
        "OPENAI_*",
        "OPENROUTER_*",
        "GEMINI_*",
        "GOOGLE_*",
        "AWS_*",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "NO_PROXY",
    ],
    commands: Some(Commands {
        program: "opencode",
        first: &[Arg::Word("run"), Arg::Word("--format"), Arg::Word("json"), Arg::Further],
        resume: &[
            Arg::Word("run"),
            Arg::Word("--format"),
            Arg::Word("json"),
            Arg::Word("--session"),
            Arg::Id,
            Arg::Further,
        ],
        stale: &["Session not found"],
        transport: Transport::Stdin,
        stream: Stream {
            progress: &[
                &[("type", "step_start")],
                &[("type", "step_finish")],
                &[("type", "text")],
                &[("type", "reasoning")],
                &[("type", "tool_use")],
            ],
            tool_start: &[],
            tool_end: &[],
            // Every step ends with a line of its own; none says that it was the last.
            result: &[],
        },
        reading: Reading {
            conversation: &[At { line: &[], path: "sessionID" }],
            text: At { line: &[("type", "text")], path: "part.text" },
            joined: Joined::Same("part.messageID"),
            ends: &[
                End { line: &[("type", "error")], well: false },
                End { line: &[("type", "step_finish"), ("part.reason", "stop")], well: true },
                End { line: &[("type", "step_finish"), ("part.reason", "length")], well: true },
            ],
            troubles: &[Trouble {
                line: &[("type", "error")],
                kinds: &[],
                status: Some("error.data.statusCode"),
                words: &["error.data.message", "error.message", "error.name"],
                reset: None,
                coarse: false,
            }],
            usage: &[Used {
                line: &[("type", "step_finish")],
                id: Some("part.id"),
                input: "part.tokens.input",
                input_has_cached: false,
                output: "part.tokens.output",
                cache_read: "part.tokens.cache.read",
                cache_write: "part.tokens.cache.write",
                cost: Some("part.cost"),
                of_conversation: false,
            }],
            taken: &[],
        },
    }),
    // It leaves its tools and tells nobody, whatever the signal.
    cancel_signal: None,
    budget_signal: SIGTERM,
};
