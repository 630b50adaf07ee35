//! Gemini CLI: `gemini -o stream-json`, one line an event.

use nix::libc::SIGTERM;

use super::Adapter;
use super::plan::{Arg, Call, Commands, Stream, Transport};

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
        stale: &[],
        transport: Transport::Stdin,
        stream: Stream {
            progress: &[
                &[("type", "init")],
                &[("type", "message")],
                &[("type", "tool_use")],
                &[("type", "tool_result")],
            ],
            tool_start: &[Call { line: &[("type", "tool_use")], each: None, item: &[], id: "tool_id" }],
            tool_end: &[Call { line: &[("type", "tool_result")], each: None, item: &[], id: "tool_id" }],
            result: &[&[("type", "result")]],
        },
    }),
    // It was seen to go on for 6 s after either signal.
    cancel_signal: None,
    budget_signal: SIGTERM,
};
