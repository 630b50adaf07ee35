//! The real OpenCode, from npm, in isolated surroundings, talking to the scripted model. [`Server::start`] runs its server,
//! which is what stands behind its terminal too, and speaks to it as a client would.
//!
//! A test that uses this is marked `#[cfg_attr(not(opencode), ignore = "...")]`, as those of Claude Code are.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::files;
use crate::isolate::Isolated;
use crate::model::Model;
use crate::process;

/// How long a start may take on a busy machine.
const START: Duration = Duration::from_secs(60);
/// The same of one answer. Its first one waits for what it installs.
const ANSWER: Duration = Duration::from_secs(120);

/// A server in a folder.
pub struct Server {
    child: Child,
    base: String,
}

/// What a server asks for: it is in its environment alone.
const PASSWORD: &str = "s3cret";

impl Server {
    /// Starts one that asks before it makes a file by `touch`, and for nothing else.
    pub fn start(isolated: &Isolated, model: &Model, folder: &Path) -> Result<Self> {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("node/node_modules/.bin/opencode");
        ensure!(program.exists(), "OpenCode is not installed; run tests/setup.sh");
        let config = isolated.config_home().join("opencode");
        std::fs::create_dir_all(&config)?;
        std::fs::write(config.join("opencode.json"), settings(model).to_string())?;
        // It takes the number that it is given and no other.
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let output: PathBuf = isolated.root().join("opencode-serve");
        let file = std::fs::File::create(&output)?;
        let mut command = isolated.command(program);
        command.args(["serve", "--port", &port.to_string()]).current_dir(folder);
        for name in ["AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD"] {
            command.env(format!("OPENCODE_DISABLE_{name}"), "1");
        }
        command.env("OPENCODE_SERVER_PASSWORD", PASSWORD);
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        let child = command.spawn().context("opencode serve")?;
        let server = Self { child, base: format!("http://127.0.0.1:{port}") };
        let listens = || std::fs::read_to_string(&output).ok()?.contains("listening on").then_some(());
        files::wait_for(&output, START, listens).context("waiting for OpenCode's server")?;
        Ok(server)
    }

    /// Where it listens.
    pub fn url(&self) -> &str {
        &self.base
    }

    /// Begins a conversation and gives its id.
    pub fn begin(&self) -> Result<String> {
        let begun = self.post("/session", &json!({}))?;
        Ok(begun["id"].as_str().context("a session has an id")?.to_owned())
    }

    /// Gives a conversation a prompt, as its terminal does.
    pub fn prompt(&self, id: &str, text: &str) -> Result<()> {
        let body = json!({"parts": [{"type": "text", "text": text}]});
        self.post(&format!("/session/{id}/prompt_async"), &body).map(drop)
    }

    /// Answers the only question for permission that is open.
    pub fn allow(&self) -> Result<()> {
        let open = self.ask("GET", "/permission", None)?;
        let id = open[0]["id"].as_str().context("a permission is asked for")?.to_owned();
        self.post(&format!("/permission/{id}/reply"), &json!({"reply": "once"})).map(drop)
    }

    fn post(&self, path: &str, body: &Value) -> Result<Value> {
        self.ask("POST", path, Some(body))
    }

    fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value> {
        let mut curl = Command::new("curl");
        curl.arg("-u").arg(format!("opencode:{PASSWORD}"));
        curl.args(["-sS", "--fail", "-m", "110", "-X", method, "-H", "content-type: application/json"]);
        if let Some(body) = body {
            curl.args(["-d", &body.to_string()]);
        }
        curl.arg(format!("{}{path}", self.base));
        let output = process::run(&mut curl, b"", ANSWER)?;
        ensure!(output.status.success(), "{method} {path}: {output:?}");
        Ok(serde_json::from_slice(&output.stdout).unwrap_or(Value::Null))
    }

    /// Ends it, as a closed terminal does: it is not asked.
    pub fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

fn settings(model: &Model) -> Value {
    let model = json!({
        "npm": "@ai-sdk/anthropic", "name": "sim",
        "options": {"baseURL": format!("{}/v1", model.base_url()), "apiKey": "test-key"},
        "models": {"sim-1": {"name": "sim-1", "tool_call": true, "limit": {"context": 200_000, "output": 8_000}}},
    });
    json!({
        "autoupdate": false, "share": "disabled", "model": "sim/sim-1", "small_model": "sim/sim-1",
        "permission": {"bash": {"*": "allow", "touch *": "ask"}}, "provider": {"sim": model},
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_is_there_where_harnesses_are_required() {
        assert!(
            cfg!(opencode) || std::env::var_os("REQUIRE_HARNESSES").is_none(),
            "run tests/setup.sh first"
        );
    }
}
