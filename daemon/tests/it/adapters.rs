//! Every recording of a real harness under `tests/data/adapters`, against what an adapter makes of it. A recording
//! without a row is a failure, and so is a row without its recording.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;
use jiff::{Timestamp, ZonedDateTime};
use minder_daemon::turn::adapter::{self, Input, Judged, Output, Plan};
use minder_proto::turn::folder::{Found, Heal, Purpose, Spec};
use minder_proto::turn::line::Usage;
use minder_proto::turn::names::{Class, Failure, Trigger};
use serde_json::json;

use Class::{Configuration, Quota, RateLimit, Runtime, Unavailable};
use Failure::{AdapterExit, AdapterResult, AdapterTimeout, UpstreamRefused};

/// The ids under which the messages of the recorded queues went in.
const MESSAGES: [&str; 3] = [
    "01a22d70-0000-7000-8000-000000000001",
    "01a22d70-0000-7000-8001-000000000002",
    "01a22d70-0000-7000-8002-000000000003",
];

/// What a recording comes to.
#[derive(Clone, Copy)]
struct Row {
    name: &'static str,
    failure: Option<(Failure, Class)>,
    /// The final text, or for a failure a part of the line for people.
    says: &'static str,
    /// Tokens in, tokens out, dollars in thousandths.
    used: Option<(u64, u64, u64)>,
    resumed: bool,
    messages: usize,
    taken: usize,
    trigger: Option<Trigger>,
}

const WELL: Row = Row {
    name: "",
    failure: None,
    says: "",
    used: None,
    resumed: false,
    messages: 0,
    taken: 0,
    trigger: None,
};

fn well(name: &'static str, says: &'static str, used: (u64, u64, u64)) -> Row {
    Row { name, says, used: Some(used), ..WELL }
}

fn bad(name: &'static str, failure: Failure, class: Class, says: &'static str) -> Row {
    Row { name, failure: Some((failure, class)), says, ..WELL }
}

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/adapters")
}

fn now() -> ZonedDateTime {
    // All recordings are of this afternoon, in this zone.
    ZonedDateTime::new("2026-11-30T17:15:00Z".parse::<Timestamp>().unwrap(), TimeZone::UTC)
}

fn judged(folder: &str, row: &Row) -> Judged {
    let (harness, _) = folder.rsplit_once('-').unwrap();
    let adapter = adapter::by_name(harness).unwrap();
    let read = |what: &str| std::fs::read(data().join(folder).join(format!("{}.{what}", row.name))).unwrap();
    let (stdout, stderr) = (read("stdout"), read("stderr"));
    let exit: i32 = String::from_utf8(read("exit")).unwrap().trim().parse().unwrap();
    let heal = json!({"texts": ["x"], "argv": [harness]});
    let mut spec: Spec = serde_json::from_value(json!({
        "turn": "01a22d70-0000-7000-8000-00000000000f", "seat": "s", "adapter": harness, "purpose": {"for": "caller"},
        "asked": "2026-11-30T17:00:00Z", "boot": "b", "argv": [harness], "dir": "/", "budget_signal": 15,
        "policy": {"budget_ms": 1, "stall_ms": 0, "stall_in_tool_ms": 0, "grace_ms": 1, "backstop_ms": 1,
            "exit_wait_ms": 1, "output_max": 8_000_000},
    }))
    .unwrap();
    if row.resumed {
        spec.heal = Some(serde_json::from_value::<Heal>(heal).unwrap());
    }
    if row.messages > 0 {
        let messages = MESSAGES[..row.messages].iter().map(|id| id.parse().unwrap()).collect();
        spec.purpose = Purpose::Queue { messages };
    }
    let found = Found {
        exit_observed: true,
        exit_code: (exit >= 0).then_some(exit),
        signal: (exit < 0).then_some(-exit),
        stdout_bytes: stdout.len() as u64,
        attempts: 1,
        trigger: row.trigger,
        ..Found::default()
    };
    let output = Output { head: &stdout, tail: b"", stderr: &stderr };
    adapter::judge(adapter, &spec, &found, &output, &now())
}

fn check(folder: &str, rows: &[Row]) {
    let entries = std::fs::read_dir(data().join(folder)).unwrap();
    let there: BTreeSet<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter_map(|name| name.strip_suffix(".exit").map(str::to_owned))
        .collect();
    let told: BTreeSet<String> = rows.iter().map(|row| row.name.to_owned()).collect();
    assert_eq!(told, there, "{folder}");
    for row in rows {
        let judged = judged(folder, row);
        let place = format!("{folder}/{}: {judged:#?}", row.name);
        match row.failure {
            None => {
                assert_eq!(
                    (judged.failure, judged.class, judged.why.as_deref()),
                    (None, None, None),
                    "{place}"
                );
                assert_eq!(judged.text.as_deref().unwrap_or_default(), row.says, "{place}");
                assert_eq!(judged.silent, matches!(row.says, "" | "NO_REPLY"), "{place}");
            }
            Some((failure, class)) => {
                assert_eq!((judged.failure, judged.class), (Some(failure), Some(class)), "{place}");
                assert!(judged.why.as_deref().unwrap_or_default().contains(row.says), "{place}");
                assert!(!judged.silent, "{place}");
            }
        }
        assert_eq!(judged.limit.is_some(), judged.class == Some(Quota), "{place}");
        let is_login =
            row.name.contains("login") || row.name == "killed-retrying" && folder.starts_with("claude");
        assert_eq!(judged.login, is_login, "{place}");
        assert_eq!(judged.taken.len(), row.taken, "{place}");
        if let Some((input, output, cost)) = row.used {
            let used = judged.usage;
            assert_eq!((used.input_tokens, used.output_tokens), (Some(input), Some(output)), "{place}");
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let thousandths = used.cost_usd.map_or(0, |usd| (usd * 1_000.0).round() as u64);
            assert_eq!(thousandths, cost, "{place}");
        }
    }
}

#[test]
fn claude_code() {
    let reset = |name: &str| {
        judged("claude-2.1.332", &Row { name: name.to_owned().leak(), ..WELL }).limit.unwrap().reset
    };
    let queue = |name, messages, taken, says, used| Row { messages, taken, ..well(name, says, used) };
    check(
        "claude-2.1.332",
        &[
            well("answer", "the answer", (12_464, 7, 50)),
            well("tool", "done", (24_997, 14, 100)),
            well("long-tool", "over", (25_010, 14, 100)),
            // Two answers: the second when what went on behind the first had ended.
            well("background", "ECHO: ", (38_024, 21, 153)),
            well("sub-agent", "ECHO: ", (49_718, 35, 200)),
            well("empty", "", (24_966, 14, 100)),
            well("no-reply", "NO_REPLY", (12_464, 7, 50)),
            bad("limit-session", UpstreamRefused, Quota, "You've hit your 5-hour limit"),
            bad("limit-weekly", UpstreamRefused, Quota, "You've hit your weekly limit"),
            bad("credit", UpstreamRefused, Quota, "Credit balance is too low"),
            bad("rate", UpstreamRefused, RateLimit, "Request rejected (429)"),
            bad("login-none", UpstreamRefused, Configuration, "Not logged in"),
            bad("login-key", UpstreamRefused, Configuration, "Invalid API key"),
            bad("login-expired", UpstreamRefused, Configuration, "OAuth token has expired"),
            bad("overloaded", UpstreamRefused, Unavailable, "529 Overloaded"),
            bad("unavailable", UpstreamRefused, Unavailable, "503 Service Unavailable"),
            bad("unreachable", AdapterResult, Unavailable, "Connection refused"),
            bad("no-model", AdapterResult, Configuration, "issue with the selected model"),
            bad("bad-request", AdapterResult, Runtime, "line 403"),
            bad("max-turns", AdapterResult, Runtime, "maximum number of turns"),
            bad("cut", AdapterResult, Runtime, "diagnostic"),
            bad("bad-flag", AdapterExit, Configuration, "unknown option"),
            bad("taken", AdapterExit, Unavailable, "already in use"),
            Row { resumed: true, ..bad("stale", AdapterResult, Runtime, "No conversation found") },
            // Each message of the model counts once, whatever ended the run.
            Row { used: Some((12_465, 7, 0)), ..bad("killed", AdapterExit, Runtime, "ended with code 143") },
            bad("killed-retrying", UpstreamRefused, Configuration, "ended with code 143"),
            queue("queue", 3, 3, "one\n\ntwo", (24_953, 14, 100)),
            Row { messages: 1, ..bad("queue-limit", UpstreamRefused, Quota, "You've hit your 5-hour limit") },
            // The same id again after a failure: it is "completed", and the model was asked nothing.
            Row { used: None, ..queue("queue-repeated", 1, 1, "", (0, 0, 0)) },
            queue("queue-other-id", 1, 1, "now", (12_784, 7, 51)),
            Row {
                messages: 2,
                taken: 1,
                ..bad("queue-mixed", UpstreamRefused, Unavailable, "529 Overloaded")
            },
        ],
    );
    assert_eq!(reset("limit-session"), Some("2026-11-30T20:14:24Z".parse().unwrap()));
    assert_eq!(reset("limit-weekly"), Some("2026-12-03T20:14:24Z".parse().unwrap()));
    assert_eq!(reset("credit"), None);
    let repeated = |name| judged("claude-2.1.332", &Row { name, messages: 1, ..WELL }).repeated;
    assert!(repeated("queue-repeated") && !repeated("queue-other-id") && !repeated("queue-limit"));
}

#[test]
fn codex() {
    check(
        "codex-0.171.0",
        &[
            well("answer", "the answer", (10_126, 7, 0)),
            well("tool", "done", (20_356, 14, 0)),
            well("tool-failed", "done", (20_355, 14, 0)),
            well("empty", "", (10_123, 7, 0)),
            // It says what the whole conversation used.
            Row { resumed: true, used: None, ..well("resumed", "again", (0, 0, 0)) },
            bad("limit", UpstreamRefused, Quota, "hit your usage limit"),
            bad("quota", UpstreamRefused, Quota, "Quota exceeded"),
            bad("rate", UpstreamRefused, RateLimit, "429 Too Many Requests"),
            bad("login", UpstreamRefused, Configuration, "401 Unauthorized"),
            bad("unavailable", UpstreamRefused, Unavailable, "503 Service Unavailable"),
            bad("bad-request", AdapterResult, Runtime, "line 403"),
            bad("bad-flag", AdapterExit, Configuration, "unexpected argument"),
            Row { resumed: true, ..bad("stale", AdapterExit, Runtime, "no rollout found") },
            bad("killed", AdapterExit, Runtime, "died of SIGTERM"),
            Row {
                trigger: Some(Trigger::Budget),
                ..bad("killed-unreachable", AdapterTimeout, Unavailable, "Reconnecting")
            },
        ],
    );
    let resumed = judged("codex-0.171.0", &Row { name: "resumed", resumed: true, ..WELL });
    assert_eq!((resumed.usage, resumed.conversation.is_some()), (Usage::default(), true));
    let limit = judged("codex-0.171.0", &Row { name: "limit", ..WELL }).limit.unwrap();
    assert_eq!(limit.reset, Some("2026-11-30T20:15:00Z".parse().unwrap()));
}

#[test]
fn opencode() {
    check(
        "opencode-1.18.33",
        &[
            well("answer", "the answer", (7_687, 7, 0)),
            well("tool", "done", (15_442, 14, 0)),
            well("resumed", "again", (7_773, 7, 0)),
            well("empty", "", (7_684, 7, 0)),
            bad("login", UpstreamRefused, Configuration, "Incorrect API key"),
            bad("bad-request", AdapterResult, Runtime, "line 403"),
            bad("no-model", AdapterResult, Runtime, "server error"),
            bad("stale", AdapterExit, Runtime, "Session not found"),
            // It retries without a word.
            bad("killed-retrying", AdapterExit, Runtime, "died of SIGTERM"),
        ],
    );
}

#[test]
fn pi() {
    check(
        "pi-0.73.1",
        &[
            well("answer", "the answer", (1_394, 7, 0)),
            well("tool", "done", (2_856, 14, 0)),
            well("resumed", "again", (1_487, 7, 0)),
            well("empty", "", (1_392, 7, 0)),
            // All of these ended with code 0.
            bad("quota", UpstreamRefused, Quota, "exceeded your current quota"),
            bad("rate", UpstreamRefused, RateLimit, "Rate limit reached"),
            bad("login", UpstreamRefused, Configuration, "Incorrect API key"),
            bad("unavailable", UpstreamRefused, Unavailable, "overloaded"),
            bad("bad-request", AdapterResult, Runtime, "line 403"),
            bad("no-model", AdapterExit, Configuration, "not found"),
            bad("stale", AdapterExit, Runtime, "No session found"),
        ],
    );
}

#[test]
fn gemini() {
    check(
        "gemini-0.61.0",
        &[
            well("answer", "the answer", (12_208, 7, 0)),
            well("tool", "done", (24_531, 14, 0)),
            well("resumed", "again", (12_315, 7, 0)),
            // It takes an empty answer for a fault, with code 0.
            bad("empty", AdapterResult, Runtime, "empty response"),
            bad("quota", UpstreamRefused, Quota, "exhausted your daily quota"),
            bad("login", UpstreamRefused, Configuration, "API key not valid"),
            bad("login-none", UpstreamRefused, Configuration, "GEMINI_API_KEY"),
            bad("bad-flag", AdapterExit, Configuration, "Unknown argument"),
            bad("stale", AdapterExit, Runtime, "Error resuming session"),
            bad("killed-retrying", UpstreamRefused, Unavailable, "status 503"),
        ],
    );
}

#[test]
fn what_a_harness_says_of_a_conversation_that_it_does_not_know_heals() {
    for folder in ["claude-2.1.332", "codex-0.171.0", "opencode-1.18.33", "pi-0.73.1", "gemini-0.61.0"] {
        let adapter = adapter::by_name(folder.rsplit_once('-').unwrap().0).unwrap();
        let stderr = std::fs::read_to_string(data().join(folder).join("stale.stderr")).unwrap();
        let plan = Plan {
            argv: &[],
            input: Input::Text("hello"),
            conversation: Some("known"),
            fresh: "11111111-1111-4111-8111-111111111111".parse().unwrap(),
        };
        let launch = adapter.plan(&plan).unwrap();
        let heal = launch.heal.unwrap();
        assert!(heal.texts.iter().any(|text| stderr.contains(text)), "{folder}: {stderr}");
        assert!(
            launch.argv.contains(&"known".to_owned()) && !heal.argv.contains(&"known".to_owned()),
            "{folder}"
        );
    }
}
