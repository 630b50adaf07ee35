//! Claude Code in print mode, with its stream of JSON lines so that progress shows.

use nix::libc::SIGTERM;

use super::Adapter;
use super::plan::{Arg, Call, Commands, Stream, Transport};
use super::reading::{At, End, Joined, Reading, Trouble, Used};

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
        "BASH_DEFAULT_TIMEOUT_MS",
        "BASH_MAX_TIMEOUT_MS",
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
        stale: &["No conversation found with session ID", "is already in use"],
        transport: Transport::StdinTyped,
        stream: Stream {
            // Not `tool_progress`, which comes each 30 s of a tool that runs, nor `api_retry`: both are ticks of a clock.
            progress: &[
                &[("type", "system"), ("subtype", "init")],
                &[("type", "assistant")],
                &[("type", "user")],
                &[("type", "stream_event")],
            ],
            tool_start: &[
                Call {
                    line: &[("type", "assistant")],
                    each: Some("message.content"),
                    item: &[("type", "tool_use")],
                    id: "id",
                    task: false,
                },
                Call {
                    // Also what goes on behind an answer: the run waits for it, and answers again.
                    line: &[("type", "system"), ("subtype", "task_started")],
                    each: None,
                    item: &[],
                    id: "task_id",
                    task: true,
                },
            ],
            tool_end: &[
                Call {
                    line: &[("type", "user")],
                    each: Some("message.content"),
                    item: &[("type", "tool_result")],
                    id: "tool_use_id",
                    task: false,
                },
                Call {
                    line: &[("type", "system"), ("subtype", "task_notification")],
                    each: None,
                    item: &[],
                    id: "task_id",
                    task: true,
                },
            ],
            result: &[&[("type", "result")]],
        },
        reading: Reading {
            conversation: &[
                At { line: &[("type", "system"), ("subtype", "init")], path: "session_id" },
                At { line: &[("type", "result")], path: "session_id" },
            ],
            text: At { line: &[("type", "result"), ("is_error", "false")], path: "result" },
            joined: Joined::Each,
            ends: &[
                End { line: &[("type", "result"), ("is_error", "true")], well: false },
                End { line: &[("type", "result"), ("subtype", "error_during_execution")], well: false },
                End { line: &[("type", "result"), ("subtype", "error_max_turns")], well: false },
                End { line: &[("type", "result")], well: true },
            ],
            troubles: &[
                Trouble {
                    line: &[("type", "system"), ("subtype", "api_retry")],
                    kinds: &["error"],
                    status: Some("error_status"),
                    words: &[],
                    reset: None,
                    coarse: false,
                },
                Trouble {
                    line: &[("type", "assistant"), ("is_api_error_message", "true")],
                    kinds: &["api_error", "error", "api_error_type"],
                    status: Some("api_error_status"),
                    words: &["message.content.*.text"],
                    reset: Some("api_error_params.rate_limit_info.resetsAt"),
                    coarse: false,
                },
                Trouble {
                    line: &[("type", "result"), ("is_error", "true")],
                    kinds: &["api_error_type"],
                    status: Some("api_error_status"),
                    words: &["result", "errors.*"],
                    reset: None,
                    coarse: true,
                },
            ],
            usage: &[
                // Of this turn and of every model in it. `total_cost_usd` and `modelUsage` are of the conversation.
                Used {
                    line: &[("type", "result")],
                    id: Some("uuid"),
                    input: "model_usage_since_last_result.*.inputTokens",
                    input_has_cached: false,
                    output: "model_usage_since_last_result.*.outputTokens",
                    cache_read: "model_usage_since_last_result.*.cacheReadInputTokens",
                    cache_write: "model_usage_since_last_result.*.cacheCreationInputTokens",
                    cost: Some("model_usage_since_last_result.*.costUSD"),
                    of_conversation: false,
                },
                Used {
                    line: &[("type", "result")],
                    id: Some("uuid"),
                    input: "usage.input_tokens",
                    input_has_cached: false,
                    output: "usage.output_tokens",
                    cache_read: "usage.cache_read_input_tokens",
                    cache_write: "usage.cache_creation_input_tokens",
                    cost: None,
                    of_conversation: false,
                },
                // A message stands in a record for each of its blocks.
                Used {
                    line: &[("type", "assistant")],
                    id: Some("message.id"),
                    input: "message.usage.input_tokens",
                    input_has_cached: false,
                    output: "message.usage.output_tokens",
                    cache_read: "message.usage.cache_read_input_tokens",
                    cache_write: "message.usage.cache_creation_input_tokens",
                    cost: None,
                    of_conversation: false,
                },
            ],
            taken: &[At {
                line: &[("type", "command_lifecycle"), ("state", "completed")],
                path: "command_uuid",
            }],
        },
    }),
    // It ends its tools, writes its transcript and runs its end hooks, within about 2 s.
    cancel_signal: Some(SIGTERM),
    budget_signal: SIGTERM,
};
