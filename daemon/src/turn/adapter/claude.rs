//! Claude Code in print mode, with its stream of JSON lines so that progress shows.

use nix::libc::SIGTERM;

use super::Adapter;
use super::plan::{Arg, Call, Commands, Stream, Transport};

pub static ADAPTER: Adapter = Adapter {
    name: "claude",
    seen: &["2.1.332"],
    version: &["--version"],
    env: &[
        "ANTHROPIC_*",
        "AWS_*",
        "CLAUDE_CONFIG_DIR",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "CLAUDE_CODE_USE_*",
        "CLAUDE_CODE_SKIP_*",
        "CLAUDE_CODE_API_KEY_HELPER_TTL_MS",
        "CLAUDE_CODE_CLIENT_*",
        "CLAUDE_CODE_DISABLE_*",
        "CLAUDE_CODE_ENABLE_*",
        "CLAUDE_CODE_MAX_*",
        "CLAUDE_CODE_SUBAGENT_MODEL",
        "CLAUDE_CODE_EFFORT_LEVEL",
        "CLAUDE_CODE_SHELL*",
        "CLAUDE_CODE_TMPDIR",
        "CLOUD_ML_REGION",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "VERTEX_REGION_*",
        "BASH_*_TIMEOUT_MS",
        "BASH_MAX_OUTPUT_LENGTH",
        "MAX_THINKING_TOKENS",
        "MCP_*",
        "DISABLE_*",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "NO_PROXY",
        "NODE_EXTRA_CA_CERTS",
    ],
    commands: Some(Commands {
        program: "claude",
        first: &[
            Arg::Word("-p"),
            Arg::Word("--output-format"),
            Arg::Word("stream-json"),
            Arg::Word("--verbose"),
            Arg::Typed(&["--input-format", "stream-json"]),
            Arg::Word("--session-id"),
            Arg::Id,
            Arg::Further,
        ],
        resume: &[
            Arg::Word("-p"),
            Arg::Word("--output-format"),
            Arg::Word("stream-json"),
            Arg::Word("--verbose"),
            Arg::Typed(&["--input-format", "stream-json"]),
            Arg::Word("--resume"),
            Arg::Id,
            Arg::Further,
        ],
        stale: &["No conversation found with session ID"],
        transport: Transport::StdinTyped,
        stream: Stream {
            // Not `tool_progress`, which comes each 30 s of a tool that runs, nor `api_retry`: both are ticks of a clock.
            progress: &[
                &[("type", "system"), ("subtype", "init")],
                &[("type", "assistant")],
                &[("type", "user")],
                &[("type", "stream_event")],
            ],
            tool_start: &[Call {
                line: &[("type", "assistant")],
                each: Some("message.content"),
                item: &[("type", "tool_use")],
                id: "id",
            }],
            tool_end: &[Call {
                line: &[("type", "user")],
                each: Some("message.content"),
                item: &[("type", "tool_result")],
                id: "tool_use_id",
            }],
            result: &[&[("type", "result")]],
        },
    }),
    // It ends its tools, writes its transcript and runs its end hooks, within about 2 s.
    cancel_signal: Some(SIGTERM),
    budget_signal: SIGTERM,
};
