//! What clients ask: each request's answer, and what is done once it was given.

use std::sync::Arc;

use serde_json::{Value, json};

use super::Server;
use super::step::Steers;
use super::threads::Text;

/// What follows an answer.
pub enum Then {
    /// A turn begins with this text.
    Begin {
        thread: String,
        turn: String,
        text: Text,
    },
    /// It ends as a request has it.
    Interrupt {
        thread: String,
    },
    Started {
        thread: String,
    },
}

impl Server {
    /// The answer to a request and what follows it; or what is wrong with it.
    pub(super) fn request(
        self: &Arc<Self>,
        method: &str,
        params: &Value,
    ) -> Result<(Value, Vec<Then>), String> {
        let text = |name: &str| params[name].as_str().unwrap_or_default().to_owned();
        let thread = text("threadId");
        match method {
            "initialize" => Ok((
                json!({ "userAgent": "fake/0.171.0", "codexHome": std::env::var("CODEX_HOME").unwrap_or_default(),
                    "platformFamily": "unix", "platformOs": "linux" }),
                Vec::new(),
            )),
            "thread/start" => {
                let id = self.number("0003");
                let thread = self.add_thread(&id, params["cwd"].as_str().map(str::to_owned), None);
                Ok((opened(thread), vec![Then::Started { thread: id }]))
            }
            "thread/fork" => {
                self.known(&thread)?;
                let id = self.number("0003");
                let forked = self.add_thread(&id, None, Some(thread));
                Ok((opened(forked), vec![Then::Started { thread: id }]))
            }
            "thread/resume" => match self.shown(&thread, true) {
                Some(shown) => Ok((opened(shown), Vec::new())),
                None => Err(format!("no rollout found for thread id {thread}")),
            },
            "thread/read" => {
                self.known(&thread)?;
                let turns = params["includeTurns"].as_bool().unwrap_or(false);
                Ok((json!({ "thread": self.shown(&thread, turns) }), Vec::new()))
            }
            "thread/turns/list" => {
                self.known(&thread)?;
                Ok((json!({ "data": self.turns_of(&thread, params), "nextCursor": null }), Vec::new()))
            }
            "thread/items/list" => {
                self.known(&thread)?;
                Ok((json!({ "data": self.items_of(&thread, params), "nextCursor": null }), Vec::new()))
            }
            "thread/list" => {
                let shown: Vec<Value> = self.loaded().iter().filter_map(|id| self.shown(id, false)).collect();
                Ok((json!({ "data": shown, "nextCursor": null }), Vec::new()))
            }
            "thread/loaded/list" => Ok((json!({ "data": self.loaded(), "nextCursor": null }), Vec::new())),
            "turn/start" => {
                self.known(&thread)?;
                let input = Text::of(params);
                // Where one runs the text joins it.
                if let Some(turn) = self.active(&thread) {
                    self.steer(&thread, input, Steers::Taken);
                    return Ok((json!({ "turn": shown_turn(&turn, "inProgress", None) }), Vec::new()));
                }
                let turn = self.number("0007");
                let answer = json!({ "turn": shown_turn(&turn, "inProgress", None) });
                Ok((answer, vec![Then::Begin { thread, turn, text: input }]))
            }
            "turn/steer" => {
                self.known(&thread)?;
                let how = self.state().steers;
                if how == Steers::Late && self.active(&thread).is_some() {
                    // Its turn ends while the request is on its way.
                    let _ = self.end_turn(&thread, "completed", None);
                }
                let Some(turn) = self.active(&thread) else {
                    return Err("no active turn to steer".to_owned());
                };
                let expected = text("expectedTurnId");
                if expected != turn {
                    return Err(format!("expected active turn id `{expected}` but found `{turn}`"));
                }
                self.steer(&thread, Text::of(params), how);
                Ok((json!({ "turnId": turn }), Vec::new()))
            }
            "turn/interrupt" => {
                self.known(&thread)?;
                Ok((json!({}), vec![Then::Interrupt { thread }]))
            }
            _ => Err(format!("Invalid request: unknown variant `{method}`")),
        }
    }

    fn known(&self, thread: &str) -> Result<(), String> {
        if self.state().threads.contains_key(thread) {
            Ok(())
        } else {
            Err(format!("thread not found: {thread}"))
        }
    }

    /// Does what follows answers.
    pub(super) fn do_after(self: &Arc<Self>, then: Vec<Then>) {
        for then in then {
            match then {
                Then::Begin { thread, turn, text } => self.begin_turn(&thread, &turn, text),
                // One that is over already was not interrupted.
                Then::Interrupt { thread } => drop(self.end_turn(&thread, "interrupted", None)),
                Then::Started { thread } => {
                    self.tell("thread/started", &json!({ "thread": self.shown(&thread, false) }));
                }
            }
        }
    }
}

/// A conversation as the client is told of it that asked for it.
fn opened(thread: Value) -> Value {
    json!({ "cwd": thread["cwd"], "thread": thread, "model": "sim-1", "modelProvider": "sim" })
}

/// A turn as clients are told of it.
pub fn shown_turn(id: &str, status: &str, items: Option<&[Value]>) -> Value {
    let error = (status == "failed").then(|| json!({ "message": "the turn died" }));
    json!({ "id": id, "rootTurnId": id, "items": items.unwrap_or_default(), "status": status, "error": error,
        "itemsView": if items.is_some() { "summary" } else { "notLoaded" } })
}
