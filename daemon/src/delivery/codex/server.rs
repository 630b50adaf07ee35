//! What is asked of an app-server: how a thread is, what it has been given, and that it takes a text. JSON-RPC, as much of it as
//! that needs. Requests that the server makes of its clients are for the terminal: none is answered here.

use std::path::{Path, PathBuf};
use std::time::Duration;

use minder_proto::hold::Hold;
use minder_proto::id::MessageId;
use minder_proto::record::{Channel, SessionRecord};
use minder_proto::stamp::Stamp;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::socket::Socket;
use crate::delivery::served::{self, Conversation, Refusal, Sent};

/// How long one answer may take.
const ANSWER: Duration = Duration::from_secs(20);
/// Items of a thread that one answer has, newest first.
const ITEMS: u64 = 200;
/// Answers after which no end of a thread is looked for any more.
const PAGES: u32 = 500;
/// Where the socket is in Codex's own folder.
const PLACE: &str = "app-server-control/app-server-control.sock";

/// A server.
#[derive(Debug)]
pub struct Server {
    socket: Socket,
    last: u64,
}

/// The control socket of a session's server: the one that is named, else in the Codex folder that its conversation is written in,
/// else in the user's.
pub fn place(record: &SessionRecord) -> Option<PathBuf> {
    if let Channel::Codex { socket: Some(path) } = &record.channel {
        return Some(PathBuf::from(path));
    }
    let transcript = record.live_binding().and_then(|b| b.transcript.as_deref());
    let folder = transcript.and_then(|path| {
        let sessions =
            Path::new(path).ancestors().find(|p| p.file_name().is_some_and(|n| n == "sessions"))?;
        sessions.parent().map(Path::to_owned)
    });
    let own = || Some(Path::new(&std::env::var_os("HOME")?).join(".codex"));
    Some(folder.or_else(own)?.join(PLACE))
}

/// True for a Codex in a terminal of its own: where its server's socket would be there is none.
pub fn is_without_server(record: &SessionRecord) -> bool {
    matches!(record.channel, Channel::Codex { socket: None })
        && place(record).is_none_or(|path| !path.exists())
}

impl Server {
    /// Connects and says who this is.
    async fn open(path: &Path) -> Result<Self, Refusal> {
        let connect = timeout(ANSWER, Socket::connect(path)).await.map_err(|_| Refusal::Lost)?;
        let mut server = Self { socket: connect?, last: 0 };
        let who = json!({"name": "minder", "title": "minder", "version": minder_proto::VERSION});
        server.ask("initialize", &json!({"clientInfo": who})).await?;
        server
            .socket
            .send(&json!({"jsonrpc": "2.0", "method": "initialized", "params": {}}).to_string())
            .await?;
        Ok(server)
    }

    /// Gives a text to the turn that runs.
    async fn steer(&mut self, thread: &str, turn: &str, id: MessageId, text: &str) -> Result<(), Refusal> {
        let params = json!({
            "threadId": thread, "expectedTurnId": turn, "input": [{"type": "text", "text": text}],
            "clientUserMessageId": id.to_string(),
        });
        self.ask("turn/steer", &params).await.map(drop)
    }

    /// Starts a turn with a text.
    async fn start(&mut self, thread: &str, id: MessageId, text: &str) -> Result<(), Refusal> {
        let params = json!({
            "threadId": thread, "input": [{"type": "text", "text": text}], "clientUserMessageId": id.to_string(),
        });
        self.ask("turn/start", &params).await.map(drop)
    }

    async fn ask(&mut self, method: &str, params: &Value) -> Result<Value, Refusal> {
        self.last += 1;
        let id = self.last;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string();
        let talk = async {
            self.socket.send(&request).await?;
            loop {
                let Some(text) = self.socket.next().await? else { return Err(Refusal::Lost) };
                let said: Value = serde_json::from_str(&text).unwrap_or_default();
                if said["id"] != id || said.get("method").is_some() {
                    continue; // news, or a question to its terminals
                }
                return match said.get("error") {
                    Some(error) => {
                        Err(Refusal::No(error["message"].as_str().unwrap_or("it was refused").to_owned()))
                    }
                    None => Ok(said["result"].clone()),
                };
            }
        };
        timeout(ANSWER, talk).await.map_err(|_| Refusal::Lost)?
    }
}

/// True for an item that was over by then. One that does not say may be of any time.
fn is_before(item: &Value, at: Stamp) -> bool {
    let times = [&item["startedAtMs"], &item["completedAtMs"]];
    times.into_iter().filter_map(Value::as_i64).max().is_some_and(|last| last < at.as_millis())
}

impl served::Server for Server {
    const CHANNEL: &'static str = "codex";
    const EVIDENCE: &'static str = "thread";

    async fn connect(record: &SessionRecord, _thread: &str) -> Result<Self, Option<String>> {
        let connected = match place(record) {
            Some(path) => Self::open(&path).await.ok(),
            None => None,
        };
        // A Codex without a server is reached at its boundaries only: the scheduler says why it waits.
        let why = || (!is_without_server(record)).then(|| Hold::Offline.to_string());
        connected.ok_or_else(why)
    }

    async fn look(&mut self, thread: &str) -> Result<Conversation, Refusal> {
        let read = match self.ask("thread/read", &json!({"threadId": thread})).await {
            Ok(read) => read,
            Err(Refusal::No(_)) => return Ok(Conversation::Elsewhere),
            Err(lost) => return Err(lost),
        };
        let status = &read["thread"]["status"];
        Ok(match status["type"].as_str() {
            Some("idle" | "systemError") => Conversation::Idle,
            Some("active") => {
                let flags = status["activeFlags"].as_array();
                let asks = flags
                    .is_some_and(|f| f.iter().any(|f| f.as_str().is_some_and(|f| f.starts_with("waiting"))));
                if asks {
                    return Ok(Conversation::Asks);
                }
                let turns = json!({"threadId": thread, "limit": 1, "itemsView": "notLoaded"});
                let newest = self.ask("thread/turns/list", &turns).await?;
                let turn = &newest["data"][0];
                match turn["id"].as_str().filter(|_| turn["status"] == "inProgress") {
                    Some(turn) => Conversation::Runs(turn.to_owned()),
                    None => Conversation::Idle,
                }
            }
            _ => Conversation::Elsewhere,
        })
    }

    async fn has(&mut self, thread: &str, ids: &[MessageId]) -> Result<Vec<MessageId>, Refusal> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let oldest = served::oldest(ids);
        let mut params = json!({"threadId": thread, "limit": ITEMS, "sortDirection": "desc"});
        let mut found: Vec<MessageId> = Vec::new();
        for _ in 0..PAGES {
            let mut page = self.ask("thread/items/list", &params).await?;
            let items = page["data"].as_array().ok_or_else(|| Refusal::No("it has no items".to_owned()))?;
            let known: Vec<&str> = items.iter().filter_map(|i| i["item"]["clientId"].as_str()).collect();
            found.extend(ids.iter().filter(|id| known.contains(&id.to_string().as_str())));
            let over = found.len() >= ids.len() || items.last().is_some_and(|item| is_before(item, oldest));
            match page["nextCursor"].take() {
                _ if over => return Ok(found),
                Value::Null => return Ok(found),
                cursor => params["cursor"] = cursor,
            }
        }
        Err(Refusal::No("it has no end".to_owned()))
    }

    async fn give(&mut self, thread: &str, turn: Option<&str>, sent: Sent<'_>) -> Result<(), Refusal> {
        let Sent { id, text, .. } = sent;
        let Some(turn) = turn else { return self.start(thread, id, text).await };
        match self.steer(thread, turn, id, text).await {
            // The turn was over before it came: a new one takes it.
            Err(Refusal::No(_)) => self.start(thread, id, text).await,
            steered => steered,
        }
    }

    async fn news(&mut self, thread: &str) -> Result<(), Refusal> {
        loop {
            let Some(text) = self.socket.next().await? else { return Err(Refusal::Lost) };
            let said: Value = serde_json::from_str(&text).unwrap_or_default();
            if said["params"]["threadId"] == thread {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_before_a_time_only_where_it_says_so() {
        let at = Stamp::from_millis(1_000);
        assert!(is_before(&json!({"startedAtMs": 900, "completedAtMs": 999}), at));
        assert!(is_before(&json!({"startedAtMs": 900}), at));
        assert!(!is_before(&json!({"startedAtMs": 900, "completedAtMs": 1_001}), at), "it ran on");
        assert!(!is_before(&json!({"startedAtMs": null}), at));
        assert!(!is_before(&json!({}), at));
    }
}
