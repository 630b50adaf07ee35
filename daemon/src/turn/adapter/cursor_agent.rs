//! Cursor's agent. It could not be run here, so nothing of this was seen: the stream is read as Claude Code's, which it
//! is documented to resemble, and what does not fit is no progress.

use nix::libc::SIGTERM;

use super::Adapter;
use super::plan::{Arg, Commands, Stream, Transport};
use super::reading::{At, End, Joined, Reading, Trouble};

pub static ADAPTER: Adapter = Adapter {
    name: "cursor",
    seen: &[],
    version: &["--version"],
    env: &["CURSOR_*", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"],
    commands: Some(Commands {
        program: "cursor-agent",
        first: &[
            Arg::Word("-p"),
            Arg::Word("--output-format"),
            Arg::Word("stream-json"),
            Arg::Further,
            Arg::Word("--"),
            Arg::Prompt,
        ],
        resume: &[
            Arg::Word("-p"),
            Arg::Word("--output-format"),
            Arg::Word("stream-json"),
            Arg::Word("--resume"),
            Arg::Id,
            Arg::Further,
            Arg::Word("--"),
            Arg::Prompt,
        ],
        stale: &[],
        transport: Transport::Argument,
        stream: Stream {
            progress: &[
                &[("type", "system")],
                &[("type", "assistant")],
                &[("type", "user")],
                &[("type", "tool_call")],
            ],
            tool_start: &[],
            tool_end: &[],
            result: &[&[("type", "result")]],
        },
        reading: Reading {
            conversation: &[At { line: &[("type", "result")], path: "session_id" }],
            text: At { line: &[("type", "result"), ("is_error", "false")], path: "result" },
            joined: Joined::Last,
            ends: &[
                End { line: &[("type", "result"), ("is_error", "true")], well: false },
                End { line: &[("type", "result")], well: true },
            ],
            troubles: &[Trouble {
                line: &[("type", "result"), ("is_error", "true")],
                kinds: &[],
                status: None,
                words: &["result"],
                reset: None,
                coarse: false,
            }],
            usage: &[],
            taken: &[],
        },
    }),
    cancel_signal: None,
    budget_signal: SIGTERM,
};
