//! Pi: `pi -p --mode json`, one line an event of its agent.

use nix::libc::SIGTERM;

use super::Adapter;
use super::plan::{Arg, Call, Commands, Stream, Transport};
use super::reading::{At, End, Joined, Reading, Trouble, Used};

pub static ADAPTER: Adapter = Adapter {
    name: "pi",
    seen: &["0.73.1"],
    version: &["--version"],
    env: &[
        "PI_CODING_AGENT_DIR",
        "PI_OFFLINE",
        "PI_SKIP_VERSION_CHECK",
        "ANTHROPIC_*",
        "OPENAI_*",
        "OPENROUTER_*",
        "GEMINI_*",
        "GOOGLE_*",
        "AWS_*",
        "GROQ_API_KEY",
        "CEREBRAS_API_KEY",
        "XAI_API_KEY",
        "ZAI_API_KEY",
        "MISTRAL_API_KEY",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "NO_PROXY",
    ],
    commands: Some(Commands {
        program: "pi",
        first: &[Arg::Word("-p"), Arg::Word("--mode"), Arg::Word("json"), Arg::Further],
        resume: &[
            Arg::Word("-p"),
            Arg::Word("--mode"),
            Arg::Word("json"),
            Arg::Word("--session"),
            Arg::Id,
            Arg::Further,
        ],
        stale: &["No session found matching"],
        transport: Transport::Stdin,
        stream: Stream {
            progress: &[
                &[("type", "session")],
                &[("type", "agent_start")],
                &[("type", "turn_start")],
                &[("type", "turn_end")],
                &[("type", "message_start")],
                &[("type", "message_update")],
                &[("type", "message_end")],
                &[("type", "tool_execution_start")],
                &[("type", "tool_execution_update")],
                &[("type", "tool_execution_end")],
            ],
            tool_start: &[Call {
                line: &[("type", "tool_execution_start")],
                each: None,
                item: &[],
                id: "toolCallId",
                task: false,
            }],
            tool_end: &[Call {
                line: &[("type", "tool_execution_end")],
                each: None,
                item: &[],
                id: "toolCallId",
                task: false,
            }],
            // `agent_end` may be followed by another try.
            result: &[],
        },
        reading: Reading {
            conversation: &[At { line: &[("type", "session")], path: "id" }],
            text: At {
                line: &[("type", "message_end"), ("message.role", "assistant")],
                path: "message.content.*.text",
            },
            joined: Joined::Last,
            // Its exit code is 0 whatever its model said.
            ends: &[
                End { line: &[("type", "turn_end"), ("message.stopReason", "stop")], well: true },
                End { line: &[("type", "turn_end"), ("message.stopReason", "length")], well: true },
                End { line: &[("type", "turn_end"), ("message.stopReason", "error")], well: false },
                End { line: &[("type", "turn_end"), ("message.stopReason", "aborted")], well: false },
            ],
            troubles: &[
                Trouble {
                    line: &[("type", "turn_end"), ("message.stopReason", "error")],
                    kinds: &[],
                    status: None,
                    words: &["message.errorMessage"],
                    reset: None,
                    coarse: false,
                },
                Trouble {
                    line: &[("type", "auto_retry_start")],
                    kinds: &[],
                    status: None,
                    words: &["errorMessage"],
                    reset: None,
                    coarse: false,
                },
            ],
            usage: &[Used {
                line: &[("type", "message_end"), ("message.role", "assistant")],
                id: Some("message.responseId"),
                input: "message.usage.input",
                input_has_cached: false,
                output: "message.usage.output",
                cache_read: "message.usage.cacheRead",
                cache_write: "message.usage.cacheWrite",
                cost: Some("message.usage.cost.total"),
                of_conversation: false,
            }],
            taken: &[],
        },
    }),
    // It ends its tool's group and tells its extensions.
    cancel_signal: Some(SIGTERM),
    budget_signal: SIGTERM,
};
