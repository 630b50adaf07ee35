//! OpenCode: `opencode run --format json`, one line a part of an answer. A tool call is told when it has ended only.

use nix::libc::SIGTERM;

use super::Adapter;
use super::plan::{Arg, Commands, Stream, Transport};

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
        stale: &[],
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
    }),
    // It leaves its tools and tells nobody, whatever the signal.
    cancel_signal: None,
    budget_signal: SIGTERM,
};
