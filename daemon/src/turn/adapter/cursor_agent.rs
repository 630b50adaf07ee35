//! Cursor's agent. It could not be run here, so nothing of this was seen: the stream is read as Claude Code's, which it
//! is documented to resemble, and what does not fit is no progress.

use nix::libc::SIGTERM;

use super::Adapter;
use super::plan::{Arg, Commands, Stream, Transport};

pub static ADAPTER: Adapter = Adapter {
    name: "cursor-agent",
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
    }),
    cancel_signal: None,
    budget_signal: SIGTERM,
};
