//! What is asked of OpenCode's server: how a conversation is, what it has, and that it takes a text.

use std::time::Duration;

use minder_proto::hold::Hold;
use minder_proto::id::MessageId;
use minder_proto::limits::loopback;
use minder_proto::record::{Channel, SessionRecord};
use minder_proto::stamp::Stamp;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use super::http::{Coming, Place, quoted};
use super::owner::{self, Owner};
use crate::delivery::served::{self, Conversation, Refusal, Sent};

/// How long one answer may take.
const ANSWER: Duration = Duration::from_secs(20);
/// How long a text that was accepted may take to stand in the conversation: plugins are asked before.
const TAKEN: Duration = Duration::from_secs(20);
/// Messages of a conversation that are looked through first, the newest; then ever more.
const MESSAGES: usize = 100;
/// What its status is asked for without a password.
const UNAUTHORIZED: u16 = 401;

/// A server.
#[derive(Debug)]
pub struct Server {
    place: Place,
    /// What it tells.
    told: Coming,
    /// The folder of the conversation: a server has many, each with its own statuses and news.
    folder: String,
    /// Whom a text is for, as the person's last one was: another agent may do what theirs may not.
    addressed: Value,
    /// The newest message that the conversation was seen to have.
    newest: String,
}

/// The id under which a message stands there. The server orders by ids, which begin with a clock.
fn id_of(kind: &str, message: MessageId, at: Stamp) -> String {
    format!("{}{}", ordered(kind, at), tail(message))
}

/// How the ids of one moment begin: six bytes of a clock that counts in 1/4096 ms.
fn ordered(kind: &str, at: Stamp) -> String {
    let clock = u64::try_from(at.as_millis()).unwrap_or_default().wrapping_mul(4_096);
    format!("{kind}_{:012x}", clock & 0xffff_ffff_ffff)
}

fn tail(message: MessageId) -> String {
    message.to_string().replace('-', "")
}

impl Server {
    async fn open(record: &SessionRecord, conversation: &str) -> Result<Self, String> {
        let offline = || Hold::Offline.to_string();
        let Channel::Opencode { url } = &record.channel else { return Err(offline()) };
        let address = loopback(url).ok_or_else(offline)?;
        let process = record.process.clone().filter(|process| process.ended.is_none());
        let look = move || (owner::of(address, process.as_ref()), owner::password(process.as_ref()));
        let (owner, password) = tokio::task::spawn_blocking(look).await.map_err(|_| offline())?;
        match owner {
            Owner::Own => {}
            Owner::Nobody => return Err(offline()),
            Owner::Another => return Err(Hold::WrongProcess.to_string()),
        }
        let password = password.as_ref().map(|(user, word)| (user.as_str(), word.as_str()));
        let place = Place::new(address, password);
        let path = format!("/session/{}", quoted(conversation));
        let (status, about) = within(place.ask("GET", &path, None)).await.map_err(|_| offline())?;
        if status == UNAUTHORIZED {
            return Err(format!("{}(it asks for a password)", Hold::Offline));
        }
        let folder = about["directory"].as_str().unwrap_or(&record.dir).to_owned();
        let news = format!("/event?directory={}", quoted(&folder));
        let told = within(place.listen(&news)).await.map_err(|_| offline())?;
        Ok(Self { place, told, folder, addressed: json!({}), newest: String::new() })
    }

    async fn get(&self, path: &str) -> Result<(u16, Value), Refusal> {
        let path = format!("{path}?directory={}", quoted(&self.folder));
        within(self.place.ask("GET", &path, None)).await
    }

    /// True if something of this kind is open in a conversation.
    async fn is_open(&self, kind: &str, conversation: &str) -> Result<bool, Refusal> {
        // An older one has no questions.
        let (_, open) = self.get(kind).await?;
        let mut open = open.as_array().into_iter().flatten();
        Ok(open.any(|one| one["sessionID"] == conversation))
    }

    /// Until a text that was accepted stands in the conversation.
    async fn taken(&mut self, message: &str, conversation: &str) -> Result<(), Refusal> {
        let mut pause = Duration::from_millis(25);
        let deadline = Instant::now() + TAKEN;
        let path = format!("/session/{}/message/{message}", quoted(conversation));
        while Instant::now() < deadline {
            if self.get(&path).await?.0 == 200 {
                return Ok(());
            }
            sleep(pause).await;
            pause = (pause * 2).min(Duration::from_secs(1));
        }
        Err(Refusal::Lost)
    }
}

async fn within<T>(asked: impl Future<Output = std::io::Result<T>>) -> Result<T, Refusal> {
    Ok(timeout(ANSWER, asked).await.map_err(|_| Refusal::Lost)??)
}

/// What the server says in an answer that is no yes.
fn why(status: u16, said: &Value) -> String {
    let said = said["data"]["message"].as_str().or(said["name"].as_str());
    said.map_or_else(|| format!("status {status}"), str::to_owned)
}

/// Whom a text is for, from what is known of the conversation.
fn addressed(about: &Value) -> Value {
    let mut to = json!({});
    if about["agent"].is_string() {
        to["agent"] = about["agent"].clone();
    }
    let model = &about["model"];
    if let (Some(id), Some(provider)) = (model["id"].as_str(), model["providerID"].as_str()) {
        to["model"] = json!({"providerID": provider, "modelID": id});
        if let Some(variant) = model["variant"].as_str().filter(|variant| *variant != "default") {
            to["variant"] = variant.into();
        }
    }
    to
}

/// True for what may change what is to be done with a conversation.
fn is_news(told: &Value, conversation: &str) -> bool {
    let kind = told["type"].as_str().unwrap_or_default();
    let about = &told["properties"];
    let of_it = about["sessionID"] == conversation || about["info"]["sessionID"] == conversation;
    let matters = match kind {
        "message.updated" => about["info"]["role"] == "user",
        "session.idle" | "session.status" | "session.error" | "session.deleted" => true,
        _ => kind.starts_with("permission.") || kind.starts_with("question."),
    };
    of_it && matters
}

impl served::Server for Server {
    const CHANNEL: &'static str = "opencode";
    const EVIDENCE: &'static str = "conversation";

    async fn connect(record: &SessionRecord, conversation: &str) -> Result<Self, Option<String>> {
        Self::open(record, conversation).await.map_err(Some)
    }

    async fn look(&mut self, conversation: &str) -> Result<Conversation, Refusal> {
        let (status, about) = self.get(&format!("/session/{}", quoted(conversation))).await?;
        match status {
            200 => self.addressed = addressed(&about),
            404 => return Ok(Conversation::Elsewhere),
            _ => return Err(Refusal::Lost),
        }
        if self.is_open("/permission", conversation).await? || self.is_open("/question", conversation).await?
        {
            return Ok(Conversation::Asks);
        }
        let (status, all) = self.get("/session/status").await?;
        match all[conversation]["type"].as_str() {
            _ if status != 200 => Err(Refusal::Lost),
            None | Some("idle") => Ok(Conversation::Idle),
            Some(_) => Ok(Conversation::Runs(String::new())),
        }
    }

    async fn has(&mut self, conversation: &str, ids: &[MessageId]) -> Result<Vec<MessageId>, Refusal> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let oldest = served::oldest(ids);
        let folder = quoted(&self.folder);
        let mut most = MESSAGES;
        loop {
            let path = format!("/session/{}/message?limit={most}&directory={folder}", quoted(conversation));
            let (status, all) = within(self.place.ask("GET", &path, None)).await?;
            let all =
                all.as_array().filter(|_| status == 200).ok_or_else(|| Refusal::No(why(status, &all)))?;
            let known: Vec<&str> = all.iter().filter_map(|message| message["info"]["id"].as_str()).collect();
            self.newest = known.iter().max().map(|id| (*id).to_owned()).unwrap_or_default();
            let has = |id: &MessageId| known.iter().any(|known| known.ends_with(&tail(*id)));
            let found: Vec<MessageId> = ids.iter().copied().filter(has).collect();
            let made = all.iter().filter_map(|message| message["info"]["time"]["created"].as_i64());
            let far = made.min().is_some_and(|first| first < oldest.as_millis());
            if far || all.len() < most || found.len() == ids.len() {
                return Ok(found);
            }
            most = most.saturating_mul(4);
        }
    }

    async fn give(&mut self, conversation: &str, _turn: Option<&str>, sent: Sent<'_>) -> Result<(), Refusal> {
        let message = id_of("msg", sent.id, sent.at);
        let mut body = self.addressed.clone();
        body["messageID"] = message.as_str().into();
        body["parts"] = json!([{"id": id_of("prt", sent.id, sent.at), "type": "text", "text": sent.text}]);
        let folder = quoted(&self.folder);
        let path = format!("/session/{}/prompt_async?directory={folder}", quoted(conversation));
        let (status, said) = within(self.place.ask("POST", &path, Some(&body))).await?;
        match status {
            200..300 => self.taken(&message, conversation).await,
            400..500 => Err(Refusal::No(why(status, &said))),
            _ => Err(Refusal::Lost),
        }
    }

    async fn news(&mut self, conversation: &str) -> Result<(), Refusal> {
        loop {
            if is_news(&self.told.next().await?, conversation) {
                return Ok(());
            }
        }
    }

    fn knows_again(&self, first: Stamp) -> bool {
        // One that would stand before what came meanwhile would be taken for answered.
        self.newest < ordered("msg", first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_ordered_as_the_servers_own_are() {
        let id = MessageId::now();
        let at = Stamp::from_millis(1_796_081_170_954);
        let ours = id_of("msg", id, at);
        // As seen in 1.18.33: its own id of that moment.
        assert!(ours.starts_with("msg_22ec7ba0a000"), "{ours}");
        assert!(ours.as_str() < "msg_22ec7ba0a001v7A23p1yTTfW2N");
        assert!(ours.ends_with(&tail(id)) && tail(id).len() == 32);
        assert_eq!(ours, id_of("msg", id, at), "the same when it is sent again");
    }

    #[test]
    fn a_text_is_for_whom_the_last_one_was() {
        let about = json!({"agent": "plan", "model": {"id": "m", "providerID": "p", "variant": "default"}});
        let model = json!({"providerID": "p", "modelID": "m"});
        assert_eq!(addressed(&about), json!({"agent": "plan", "model": model}));
        let about = json!({"model": {"id": "m", "providerID": "p", "variant": "high"}});
        assert_eq!(addressed(&about), json!({"model": model, "variant": "high"}));
        assert_eq!(addressed(&json!({})), json!({}));
    }

    #[test]
    fn only_what_may_change_a_move_is_news() {
        let told = |kind: &str, about: Value| is_news(&json!({"type": kind, "properties": about}), "ses_1");
        assert!(told("session.idle", json!({"sessionID": "ses_1"})));
        assert!(!told("session.idle", json!({"sessionID": "ses_2"})));
        assert!(told("permission.replied", json!({"sessionID": "ses_1"})));
        assert!(told("message.updated", json!({"info": {"sessionID": "ses_1", "role": "user"}})));
        assert!(!told("message.updated", json!({"info": {"sessionID": "ses_1", "role": "assistant"}})));
        assert!(!told("message.part.delta", json!({"sessionID": "ses_1"})));
        assert!(!told("server.heartbeat", json!({})));
    }
}
