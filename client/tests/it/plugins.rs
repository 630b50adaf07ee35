//! The plugin of OpenCode and the extension of Pi, each run by Node with a stand-in for its harness and one for minder:
//! what is told, in which order, and what becomes of what comes back.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use minder_client::hooks::pack;
use minder_client::hooks::script::text;
use serde_json::{Value, json};

use crate::place::script;

/// A folder with a stand-in for minder, whose path needs quoting in every language.
struct Bench {
    folder: tempfile::TempDir,
    minder: PathBuf,
}

/// It notes what it is told. What waits in the files `begin`, `tool`, `stop` and `mail` it gives once, in the form of
/// the daemon's answers.
const MINDER: &str = r#"
cd "$BENCH"; in=$(cat); event=$(printf %s "$in" | sed 's/.*"hook_event_name":"\([A-Za-z]*\)".*/\1/')
printf '%s\n' "{\"args\":\"$*\",\"pid\":\"$MINDER_HARNESS_PID\",\"event\":$in}" >>told
give() { [ -e "$1" ] && mv "$1" "$1.given" && cat "$1.given" >&2 && exit 2; }
case "$3$event" in
--wait*) [ -e always ] && cat always >&2 && exit 2; while [ -e idle ]; do give mail; sleep 0.01; done;;
SessionStart) printf '{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"brief"}}\n';;
PostToolUse) give tool;;
Stop) give stop;;
esac
exit 0"#;

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let bin = folder.path().join("it's a \"bin\" $HOME `id`");
        fs_err::create_dir(&bin).unwrap();
        let minder = bin.join("minder");
        script(&minder, MINDER);
        Self { folder, minder }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs the pack's script under a driver, which is given the module as `plugin`, `until(condition)`, and `post(text)`,
    /// which leaves a text for whichever waiter comes first, whole.
    fn drive(&self, harness: &str, driver: &str) -> Output {
        let source = text(pack::of(harness).unwrap(), self.minder.to_str().unwrap()).unwrap();
        // As long as a test wants to wait for one that never answers.
        let shorter = source.replace("PATIENCE_MS = 10_000\n", "PATIENCE_MS = 500\n");
        assert_ne!(shorter, source);
        fs_err::write(self.at("plugin.mjs"), if self.at("hangs").exists() { shorter } else { source })
            .unwrap();
        let head = "import * as plugin from './plugin.mjs'\nimport fs from 'node:fs'\n\
            const until = async (what) => { while (!what()) await new Promise((r) => setTimeout(r, 5)) }\n\
            const post = (text) => { fs.writeFileSync('letter', text); fs.renameSync('letter', 'mail') }\n";
        fs_err::write(self.at("driver.mjs"), format!("{head}{driver}")).unwrap();
        let mut node = Command::new("timeout");
        node.args(["60", "node", "driver.mjs"]).current_dir(self.folder.path()).env_clear();
        node.env("PATH", "/usr/local/bin:/usr/bin:/bin").env("BENCH", self.folder.path());
        node.output().unwrap()
    }

    /// What minder was told: its arguments and the events, in order.
    fn told(&self) -> Vec<Value> {
        let text = fs_err::read_to_string(self.at("told")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The names of the events, the waiter's apart.
    fn events(&self) -> Vec<String> {
        let told = self.told();
        let events = told.iter().filter(|one| !one["args"].as_str().unwrap().ends_with("--wait"));
        events.map(|one| one["event"]["hook_event_name"].as_str().unwrap().to_owned()).collect()
    }

    fn event(&self, name: &str) -> Value {
        self.told()
            .into_iter()
            .map(|one| one["event"].clone())
            .find(|e| e["hook_event_name"] == name)
            .unwrap()
    }

    fn leave(&self, name: &str, text: &str) {
        fs_err::write(self.at(name), text).unwrap();
    }
}

#[track_caller]
fn json_of(output: &Output) -> Value {
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// OpenCode as far as the plugin sees it.
const OPENCODE: &str = r#"
const sent = []
const stored = []
let hooks
const client = { session: {
  get: async ({ path }) => ({ data: { id: path.id, directory: "/src", parentID: path.id.startsWith("sub") ? "ses_1" : undefined } }),
  messages: async () => ({ data: [
    { info: { role: "user" }, parts: [{ type: "text", text: "do it" }] },
    { info: { role: "assistant" }, parts: [{ type: "reasoning", text: "hm" }, { type: "text", text: "done" }] } ] }),
  promptAsync: async ({ path, body }) => {
    const { text } = body.parts[0]
    sent.push({ id: path.id, ...body, text })
    // It is accepted before it is there.
    const part = { sessionID: path.id, type: "text", text }
    setTimeout(() => { stored.push(text); event("message.part.updated", { part }) }, 50)
  },
} }
hooks = await plugin.Minder({ client, directory: "/src" })
const prompt = async (sessionID, text) => {
  const parts = [{ type: "text", text }]
  await hooks["chat.message"]({ sessionID }, { message: { id: "msg_1", agent: "plan", model: { providerID: "p", modelID: "m" } }, parts })
  return parts
}
const event = (type, properties) => hooks.event({ event: { type, properties } })
"#;

#[test]
fn opencode_tells_a_turn_and_brings_what_comes_back() {
    let bench = Bench::new();
    for (name, text) in [("idle", ""), ("tool", "[minder] at the tool"), ("stop", "[minder] at the end")] {
        bench.leave(name, text);
    }
    let driver = format!(
        "{OPENCODE}
const parts = await prompt('ses_1', 'do it')
await hooks['tool.execute.after']({{ sessionID: 'ses_1', tool: 'bash', args: {{ command: 'ls' }} }}, {{}})
const had = [...stored]
await event('permission.asked', {{ sessionID: 'ses_1', permission: 'bash', patterns: ['rm -rf build/'], metadata: {{}} }})
await event('permission.replied', {{ sessionID: 'ses_1', reply: 'once' }})
await event('session.idle', {{ sessionID: 'ses_1' }})
await until(() => sent.length === 2)
await prompt('ses_1', sent[1].text)
await event('session.idle', {{ sessionID: 'ses_1' }})
await event('session.idle', {{ sessionID: 'ses_1' }})
post('[minder] wake up')
await until(() => sent.length === 3)
await prompt('ses_1', sent[2].text)
const tool = () => hooks['tool.execute.after']({{ sessionID: 'ses_1', tool: 'bash', args: {{ command: 'ls' }} }}, {{}})
await event('session.error', {{ sessionID: 'ses_1', error: {{ name: 'MessageAbortedError', data: {{}} }} }})
await event('session.idle', {{ sessionID: 'ses_1' }})
await tool() // it was running when the turn was aborted
await prompt('ses_1', 'again')
await event('session.error', {{ sessionID: 'ses_1', error: {{ name: 'APIError', data: {{ message: 'overloaded' }} }} }})
await event('session.idle', {{ sessionID: 'ses_1' }})
await prompt('ses_1', 'at length')
await event('session.error', {{ sessionID: 'ses_1', error: {{ name: 'ContextOverflowError', data: {{}} }} }})
await event('session.compacted', {{ sessionID: 'ses_1' }})
await tool()
await event('session.idle', {{ sessionID: 'ses_1' }})
const env = {{}}
await hooks['shell.env']({{ sessionID: 'ses_1' }}, {{ env }})
await event('session.deleted', {{ info: {{ id: 'ses_1' }} }})
console.log(JSON.stringify({{ parts, sent, env, had }}))"
    );
    let seen = json_of(&bench.drive("opencode", &driver));
    assert_eq!(seen["had"], json!(["[minder] at the tool"]), "the next step has it");
    let expected = [
        "SessionStart",
        "UserPromptSubmit",
        "PostToolUse",
        "PermissionRequest",
        "PermissionReplied",
        "Stop",
        "UserPromptSubmit",
        "Stop",
        "UserPromptSubmit",
        "Interrupt",
        "UserPromptSubmit",
        "StopFailure",
        "UserPromptSubmit",
        "PostCompact",
        "PostToolUse",
        "Stop",
        "SessionEnd",
    ];
    assert_eq!(bench.events(), expected);
    // The brief is put beside the first prompt, and only there.
    assert_eq!((&seen["parts"][0]["text"], &seen["parts"][1]["text"]), (&json!("do it"), &json!("brief")));
    assert_eq!(seen["parts"][1]["synthetic"], true);
    let texts: Vec<_> =
        seen["sent"].as_array().unwrap().iter().map(|one| one["text"].as_str().unwrap()).collect();
    assert_eq!(texts, ["[minder] at the tool", "[minder] at the end", "[minder] wake up"]);
    for one in seen["sent"].as_array().unwrap() {
        assert_eq!(
            (&one["agent"], &one["model"]["modelID"]),
            (&json!("plan"), &json!("m")),
            "as the person's last"
        );
    }
    assert_eq!(seen["env"]["MINDER_SESSION"], "opencode:ses_1");
    let told = bench.told();
    assert!(told.iter().all(|one| one["event"]["session_id"] == "ses_1" && one["event"]["cwd"] == "/src"));
    assert!(told.iter().all(|one| one["pid"].as_str().unwrap().parse::<u32>().is_ok()));
    let stops: Vec<_> = told.iter().filter(|one| one["event"]["hook_event_name"] == "Stop").collect();
    assert_eq!(
        (&stops[0]["event"]["stop_hook_active"], &stops[1]["event"]["stop_hook_active"]),
        (&json!(false), &json!(true))
    );
    assert_eq!(stops[0]["event"]["last_assistant_message"], "done");
    assert_eq!(bench.event("PermissionRequest")["tool_input"]["command"], "rm -rf build/");
    assert_eq!(bench.event("StopFailure")["error"], "overloaded");
}

#[test]
fn what_is_said_again_and_again_is_given_three_times_and_what_is_not_minders_never() {
    for (text, times) in [("[minder] wake up", 3), ("error: unexpected argument", 0)] {
        let bench = Bench::new();
        bench.leave("always", text);
        let driver = format!(
            "{WAITERS}{OPENCODE}
const waits = () => fs.existsSync('told') && fs.readFileSync('told', 'utf8').split('\\n').filter((line) => line.includes('--wait')).length
await event('session.created', {{ info: {{ id: 'ses_1', directory: '/src' }} }})
await until(() => started.length === {times} + 1 && started.every((child) => child.closed))
for (let n = 0; n < 3; n++) await hooks['tool.execute.after']({{ sessionID: 'ses_1', tool: 'bash', args: {{}} }}, {{}})
const [first, again] = [sent.length, waits()]
await prompt('ses_1', 'I am here')
await until(() => waits() > again)
console.log(JSON.stringify({{ first, again }}))
process.exit()"
        );
        let seen = json_of(&bench.drive("opencode", &driver));
        assert_eq!((&seen["first"], &seen["again"]), (&json!(times), &json!(times + 1)), "{text}");
    }
}

#[test]
fn h10_a_sub_agents_conversation_is_not_told() {
    let bench = Bench::new();
    let driver = format!(
        "{OPENCODE}
const parts = await prompt('sub_1', 'look')
await hooks['tool.execute.after']({{ sessionID: 'sub_1', tool: 'bash', args: {{}} }}, {{}})
await event('session.idle', {{ sessionID: 'sub_1' }})
await event('session.created', {{ info: {{ id: 'sub_2', parentID: 'ses_1' }} }})
console.log(JSON.stringify(parts))"
    );
    assert_eq!(json_of(&bench.drive("opencode", &driver)), json!([{"type": "text", "text": "look"}]));
    assert_eq!(bench.told(), [] as [Value; 0]);
}

/// Pi as far as the extension sees it.
const PI: &str = r#"
const on = {}
const sent = []
plugin.default({ on: (name, f) => (on[name] = f), sendUserMessage: (text, how) => sent.push({ text, ...how }) })
const ctx = { cwd: "/src", sessionManager: { getSessionId: () => "s1" } }
const prompt = async (text) => {
  const begun = await on.before_agent_start({ prompt: text })
  await on.agent_start({})
  await on.message_start({ message: { role: "user", content: [{ type: "text", text }] } })
  return begun
}
const end = (message) => on.agent_end({ messages: [{ role: "user" }, { role: "assistant", content: [{ type: "text", text: "done" }], ...message }] })
"#;

#[test]
fn pi_tells_a_turn_and_brings_what_comes_back() {
    let bench = Bench::new();
    for (name, text) in [("idle", ""), ("tool", "[minder] at the tool"), ("stop", "[minder] at the end")] {
        bench.leave(name, text);
    }
    let driver = format!(
        "{PI}
await on.session_start({{ reason: 'startup' }}, ctx)
await on.session_start({{ reason: 'startup' }}, ctx)
const begun = await prompt('do it')
await on.tool_result({{ toolName: 'bash', input: {{ command: 'ls' }} }})
await end({{}})
const again = await prompt(sent[1].text)
await end({{}})
post('[minder] wake up')
await until(() => sent.length === 3)
await prompt(sent[2].text)
await end({{ stopReason: 'aborted' }})
await prompt('again')
await end({{ stopReason: 'error', errorMessage: 'overloaded' }})
await on.session_before_compact({{}})
await on.session_compact({{}})
await on.session_shutdown({{ reason: 'new' }})
await end({{}})
console.log(JSON.stringify({{ begun, again: again ?? null, sent, env: process.env.MINDER_SESSION }}))"
    );
    let seen = json_of(&bench.drive("pi", &driver));
    let expected = [
        "SessionStart",
        "UserPromptSubmit",
        "PostToolUse",
        "Stop",
        "UserPromptSubmit",
        "Stop",
        "UserPromptSubmit",
        "Interrupt",
        "UserPromptSubmit",
        "StopFailure",
        "PreCompact",
        "PostCompact",
        "SessionEnd",
    ];
    assert_eq!(bench.events(), expected);
    assert_eq!((&seen["begun"]["message"]["content"], &seen["again"]), (&json!("brief"), &Value::Null));
    let texts: Vec<_> =
        seen["sent"].as_array().unwrap().iter().map(|one| one["text"].as_str().unwrap()).collect();
    assert_eq!(texts, ["[minder] at the tool", "[minder] at the end", "[minder] wake up"]);
    assert!(seen["sent"].as_array().unwrap().iter().all(|one| one["deliverAs"] == "steer"));
    assert_eq!(seen["env"], "pi:s1");
    assert_eq!(bench.event("SessionEnd")["reason"], "clear");
    assert_eq!(bench.event("StopFailure")["error"], "overloaded");
    assert_eq!(bench.event("Stop")["last_assistant_message"], "done");
}

/// Notes which waiters were started; `waiting()` are those that nobody ended.
const WAITERS: &str = r#"
import child_process from 'node:child_process'
import { syncBuiltinESMExports } from 'node:module'
const started = []
const spawn = child_process.spawn
child_process.spawn = (program, args, options) => {
  const child = spawn(program, args, options)
  if (args.includes('--wait')) {
    started.push(child)
    child.on('close', () => (child.closed = true))
  }
  return child
}
syncBuiltinESMExports()
const waiting = () => started.filter((child) => !child.killed && child.exitCode === null && child.signalCode === null)
"#;

#[test]
fn one_waiter_is_kept_whatever_is_told() {
    let bench = Bench::new();
    bench.leave("idle", "");
    let driver = format!(
        "{WAITERS}{PI}
await on.session_start({{ reason: 'resume' }}, ctx)
for (let i = 0; i < 3; i++) {{ await prompt('do it'); await end({{}}) }}
const count = [started.length, waiting().length]
await on.session_shutdown({{}})
console.log(JSON.stringify([...count, waiting().length]))"
    );
    assert_eq!(json_of(&bench.drive("pi", &driver)), json!([1, 1, 0]));
    assert_eq!(bench.event("SessionStart")["source"], "resume");
}

#[test]
fn of_many_conversations_those_that_were_spoken_to_last_have_a_waiter() {
    let bench = Bench::new();
    bench.leave("idle", "");
    let driver = format!(
        "{WAITERS}{OPENCODE}
const before = process.listenerCount('exit')
for (let i = 0; i < 12; i++) await prompt(`ses_${{i}}`, 'x')
await prompt('ses_4', 'again')
await prompt('ses_0', 'again')
const count = [started.length, waiting().length, process.listenerCount('exit') - before]
post('[minder] wake up')
await until(() => sent.length === 1)
console.log(JSON.stringify(count))
process.exit(0)"
    );
    let output = bench.drive("opencode", &driver);
    // Thirteen: that of the first had ended, that of the fifth had not.
    assert_eq!(json_of(&output), json!([13, 8, 0]));
    assert!(output.stderr.is_empty(), "{output:?}");
}

#[test]
fn two_copies_of_a_plugin_in_one_process_tell_everything_once() {
    let bench = Bench::new();
    let driver = format!(
        "fs.copyFileSync('plugin.mjs', 'project.mjs')
{OPENCODE}
const mine = hooks
const other = await (await import('./project.mjs')).Minder({{ client, directory: '/src' }})
for (const both of [mine, other, mine, other]) {{ hooks = both; await prompt('ses_1', 'x') }}
for (const both of [mine, other]) {{ hooks = both; await event('session.idle', {{ sessionID: 'ses_1' }}) }}
for (const both of [mine, other]) {{ hooks = both; await event('session.deleted', {{ info: {{ id: 'ses_1' }} }}) }}
console.log('[]')"
    );
    json_of(&bench.drive("opencode", &driver));
    assert_eq!(
        bench.events(),
        ["SessionStart", "UserPromptSubmit", "UserPromptSubmit", "Stop", "SessionEnd"]
    );

    // Loaded anew it takes over; what was loaded before says nothing any more.
    let bench = Bench::new();
    let driver = format!(
        "{PI}
await on.session_start({{}}, ctx)
await prompt('one')
const before = {{ ...on }}
const anew = await import('./plugin.mjs?anew')
anew.default({{ on: (name, f) => (on[name] = f), sendUserMessage: () => {{}} }})
await on.session_start({{ reason: 'reload' }}, ctx)
await before.message_start({{ message: {{ role: 'user', content: 'two' }} }})
await prompt('two')
await on.session_shutdown({{}})
console.log('[]')"
    );
    json_of(&bench.drive("pi", &driver));
    let expected = ["SessionStart", "UserPromptSubmit", "SessionStart", "UserPromptSubmit", "SessionEnd"];
    assert_eq!(bench.events(), expected);
}

#[test]
fn the_end_of_a_turn_is_told_before_a_prompt_that_comes_while_its_answer_is_fetched() {
    let bench = Bench::new();
    let driver = format!(
        "{OPENCODE}
let answer
const messages = client.session.messages
client.session.messages = () => new Promise((resolve) => (answer = () => resolve(messages())))
await prompt('ses_1', 'one')
const idle = event('session.idle', {{ sessionID: 'ses_1' }})
await until(() => answer)
const second = prompt('ses_1', 'two')
await new Promise(setImmediate)
answer()
await Promise.all([idle, second])
console.log('[]')"
    );
    json_of(&bench.drive("opencode", &driver));
    assert_eq!(bench.events(), ["SessionStart", "UserPromptSubmit", "Stop", "UserPromptSubmit"]);
    assert_eq!(bench.event("Stop")["last_assistant_message"], "done");
}

#[test]
fn a_harness_that_never_answers_costs_no_event() {
    let bench = Bench::new();
    let driver = format!(
        "{OPENCODE}
await prompt('ses_1', 'one')
client.session.messages = () => new Promise(() => {{}})
await event('session.idle', {{ sessionID: 'ses_1' }})
client.session.get = () => {{ throw new Error('gone') }}
await prompt('ses_2', 'nobody knows it')
client.session.messages = () => {{ throw new Error('gone') }}
await prompt('ses_1', 'two')
await event('session.idle', {{ sessionID: 'ses_1' }})
await prompt('ses_1', 'three')
console.log('[]')"
    );
    let output = bench.drive("opencode", &driver);
    json_of(&output);
    let turn = ["UserPromptSubmit", "Stop", "UserPromptSubmit", "Stop", "UserPromptSubmit"];
    assert_eq!(bench.events()[1..], turn);
    assert!(output.stderr.is_empty(), "{output:?}");
}

/// The pid of a process that outlives its minder and holds what that wrote to.
const LEAVES_A_PROCESS: &str = "sleep 100 & echo $! >>sleepers";

#[test]
fn h7_a_minder_that_hangs_or_leaves_a_process_holds_up_nobody() {
    for stuck in ["exec sleep 100", "wait", "exit 0"] {
        let bench = Bench::new();
        let first = format!("cd \"$BENCH\"; mv stuck was && {{ {LEAVES_A_PROCESS}; {stuck}; }} 2>&1\n");
        script(
            &bench.minder,
            &format!("{}{MINDER}", first.replace("mv stuck was", "mv stuck was 2>/dev/null")),
        );
        bench.leave("stuck", "");
        bench.leave("hangs", "");
        let driver = format!(
            "{PI}
await on.session_start({{}}, ctx)
await prompt('one')
await end({{}})
await on.session_shutdown({{}})
for (const pid of fs.readFileSync('sleepers', 'utf8').trim().split('\\n')) process.kill(Number(pid))
console.log(JSON.stringify(sent))"
        );
        let output = bench.drive("pi", &driver);
        assert_eq!(json_of(&output), json!([]), "{stuck}");
        // What it was told first it never read.
        assert_eq!(bench.events(), ["UserPromptSubmit", "Stop", "SessionEnd"], "{stuck}");
        assert!(output.stderr.is_empty(), "{output:?}");
    }
}

#[test]
fn h7_what_cannot_be_started_or_told_is_nothing_to_its_harness() {
    let bench = Bench::new();
    let driver = format!(
        "{PI}
await on.session_start({{}}, ctx)
await until(() => fs.existsSync('told'))
const open = []
try {{ for (;;) open.push(fs.openSync('/dev/null')) }} catch {{}}
await prompt('no descriptor is left')
const timers = process.getActiveResourcesInfo().filter((one) => one === 'Timeout')
for (const fd of open) fs.closeSync(fd)
const ring = {{}}
ring.ring = ring
await on.tool_result({{ toolName: 'ring', input: ring }})
await on.message_start({{}})
await end({{}})
console.log(JSON.stringify(timers))"
    );
    let output = bench.drive("pi", &driver);
    assert_eq!(json_of(&output), json!([]));
    assert_eq!(bench.events(), ["SessionStart", "Stop"]);
    assert!(output.stderr.is_empty(), "{output:?}");
}

#[test]
fn h7_a_minder_that_is_gone_or_breaks_is_nothing_to_its_harness() {
    for body in [None, Some("exit 1"), Some("echo nonsense; exit 0"), Some("kill -9 $$")] {
        let bench = Bench::new();
        match body {
            None => fs_err::remove_file(&bench.minder).unwrap(),
            Some(body) => script(&bench.minder, body),
        }
        for (harness, driver) in [
            (
                "pi",
                format!(
                    "{PI}\nawait on.session_start({{}}, ctx); await prompt('x'); await end({{}}); await on.session_shutdown({{}}); console.log(JSON.stringify(sent))"
                ),
            ),
            (
                "opencode",
                format!(
                    "{OPENCODE}\nawait prompt('ses_1', 'x'); await event('session.idle', {{ sessionID: 'ses_1' }}); console.log(JSON.stringify(sent))"
                ),
            ),
        ] {
            let output = bench.drive(harness, &driver);
            assert_eq!(json_of(&output), json!([]), "{harness} {body:?}");
            assert!(output.stderr.is_empty(), "{output:?}");
        }
    }
}

#[test]
fn nothing_of_a_plugin_is_exported_but_what_its_harness_calls() {
    // OpenCode calls whatever a file exports.
    for (harness, names) in [("opencode", json!(["Minder"])), ("pi", json!(["default"]))] {
        let bench = Bench::new();
        let output = bench.drive(harness, "console.log(JSON.stringify(Object.keys(plugin)))");
        assert_eq!(json_of(&output), names);
        assert!(Path::new(&bench.at("told")).symlink_metadata().is_err());
    }
}
