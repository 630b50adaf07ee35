//! What kind of refusal stopped a run: from a typed kind or a status where there is one, else from the shape of a
//! sentence. A bare number or a single word says nothing: "line 403", "500 tokens" and "see the billing page" are no
//! refusals, and neither is what stands in quotation marks.

use minder_proto::turn::names::Class;
use serde_json::Value;

use super::sentence::{Sentence, sentences};

/// Why a run was refused or could not reach its model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// What the account was allowed is used up.
    Limit,
    /// Too many requests just now.
    Rate,
    /// The login or key is missing, expired or wrong.
    Login,
    /// A model, flag or setting is wrong.
    Setup,
    /// The model's side is overloaded or down, and says so.
    Overload,
    /// The model's side cannot be reached.
    Unreachable,
    /// Another process has the conversation.
    InUse,
}

impl Refusal {
    /// Its class for a retry policy.
    pub fn class(self) -> Class {
        match self {
            Self::Limit => Class::Quota,
            Self::Rate => Class::RateLimit,
            Self::Login | Self::Setup => Class::Configuration,
            Self::Overload | Self::Unreachable | Self::InUse => Class::Unavailable,
        }
    }

    /// True if it is the model's side that refused.
    pub fn is_upstreams(self) -> bool {
        matches!(self, Self::Limit | Self::Rate | Self::Login | Self::Overload)
    }
}

/// What an HTTP status of the model's side says.
pub fn of_status(status: u64) -> Option<Refusal> {
    match status {
        401 => Some(Refusal::Login),
        402 => Some(Refusal::Limit),
        403 | 404 => Some(Refusal::Setup),
        429 => Some(Refusal::Rate),
        500 | 502 | 503 | 504 | 529 => Some(Refusal::Overload),
        _ => None,
    }
}

/// Kinds of errors that interfaces of models name.
const KINDS: [(&str, Refusal); 18] = [
    ("usage_limit_reached", Refusal::Limit),
    ("insufficient_quota", Refusal::Limit),
    ("billing_error", Refusal::Limit),
    ("billing_hard_limit_reached", Refusal::Limit),
    ("rate_limit", Refusal::Rate),
    ("rate_limit_error", Refusal::Rate),
    ("rate_limit_exceeded", Refusal::Rate),
    ("RESOURCE_EXHAUSTED", Refusal::Rate),
    ("authentication_error", Refusal::Login),
    ("authentication_failed", Refusal::Login),
    ("invalid_api_key", Refusal::Login),
    ("API_KEY_INVALID", Refusal::Login),
    ("UNAUTHENTICATED", Refusal::Login),
    ("model_not_found", Refusal::Setup),
    ("overloaded_error", Refusal::Overload),
    ("server_error", Refusal::Overload),
    ("UNAVAILABLE", Refusal::Overload),
    ("connection_failed", Refusal::Unreachable),
];

/// What a typed kind says.
pub fn of_kind(kind: &str) -> Option<Refusal> {
    KINDS.iter().find(|(name, _)| *name == kind).map(|(_, refusal)| *refusal)
}

/// What a text says: the last of its lines that says something.
pub fn of_text(text: &str) -> Option<Refusal> {
    in_text(text).map(|(refusal, _)| refusal)
}

/// The same, with the line.
pub fn in_text(text: &str) -> Option<(Refusal, &str)> {
    text.lines().rev().find_map(|line| Some((of_line(line, 0)?, line)))
}

/// True if a text is a refusal and nothing else: one short line that says that a limit is reached or a login is missing.
pub fn is_all_of(text: &str) -> bool {
    let text = text.trim();
    let short = text.len() <= 300 && text.lines().count() == 1;
    short && matches!(of_text(text), Some(Refusal::Limit | Refusal::Login))
}

fn of_line(line: &str, depth: usize) -> Option<Refusal> {
    // An error that was passed on as it came.
    if depth < 3
        && let Some(at) = line.find('{')
        && let Some(Ok(value)) = serde_json::Deserializer::from_str(&line[at..]).into_iter::<Value>().next()
        && value.is_object()
    {
        return of_json(&value, depth).or_else(|| of_line(&line[..at], depth + 1));
    }
    let said: Vec<Sentence> = sentences(line).collect();
    let first = |says: fn(&Sentence) -> bool| said.iter().any(says);
    let goes_on = said.iter().any(tells_more);
    // What is more certain comes first.
    if said.iter().any(|s| is_limit(s, goes_on)) {
        Some(Refusal::Limit)
    } else if first(is_rate) {
        Some(Refusal::Rate)
    } else if first(is_login) {
        Some(Refusal::Login)
    } else if first(is_setup) {
        Some(Refusal::Setup)
    } else if first(is_overload) {
        Some(Refusal::Overload)
    } else if first(is_unreachable) {
        Some(Refusal::Unreachable)
    } else if first(is_in_use) {
        Some(Refusal::InUse)
    } else {
        None
    }
}

/// `{"error": {"message": …, "type": …, "code": …, "status": …}}`, or the inner part of it.
fn of_json(value: &Value, depth: usize) -> Option<Refusal> {
    let error = value.get("error").filter(|e| e.is_object()).unwrap_or(value);
    let text = |name: &str| error.get(name).and_then(Value::as_str);
    let details = error.get("details").and_then(Value::as_array).into_iter().flatten();
    let reasons = details.filter_map(|detail| detail.get("reason")?.as_str());
    let mut kinds = [text("code"), text("type"), text("status")].into_iter().flatten().chain(reasons);
    let status = ["code", "status"].iter().find_map(|name| error.get(name)?.as_u64());
    let typed = kinds.find_map(of_kind).or_else(|| status.and_then(of_status));
    let said = || text("message").and_then(|message| of_line(message, depth + 1));
    sharpened(typed, said)
}

/// A typed refusal, with what its words add: "too many requests" may be a limit that is used up.
pub fn sharpened(typed: Option<Refusal>, said: impl FnOnce() -> Option<Refusal>) -> Option<Refusal> {
    match typed {
        Some(Refusal::Rate) => Some(said().filter(|r| *r == Refusal::Limit).unwrap_or(Refusal::Rate)),
        Some(refusal) => Some(refusal),
        None => said(),
    }
}

/// What may stand before `limit` in a sentence about something else.
const TECHNICAL: &str = "attempt attempts budget buffer character characters concurrency concurrent connection context \
    cpu depth descriptor disk file heap input iteration iterations length line lines memory nesting open output pool \
    process recursion response retries retry size speed stack step steps subagent subagents time timeout token tokens \
    tool turn turns type upload window";
/// What stands before `limit` where it is what an account may use.
const ALLOWED: &str = "5-hour account billing credit credits daily day free hour hourly month monthly plan premium quota \
    session spend spending subscription tier usage week weekly";

fn among(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|one| one == word)
}

/// The sentence tells when it ends or what can be bought, so that an unknown kind of limit is one of an account.
fn tells_more(s: &Sentence) -> bool {
    s.has("resets") || s.has("try again") || s.has("upgrade to") || s.has("your plan") || s.begins("reset")
}

fn is_limit(s: &Sentence, goes_on: bool) -> bool {
    let words = s.words();
    let reached = ["reached", "hit", "exceeded", "exhausted"];
    if s.has("rate limit") || s.has("rate limits") {
        return false;
    }
    // "You have hit your weekly limit", "your account has reached its monthly usage limit".
    let noun = |from: usize| {
        let after = words[from..].iter().take(5);
        let end = after.clone().position(|w| among("limit limits quota allowance cap credits usage", w))?;
        let technical = after.take(end).any(|w| among(TECHNICAL, w));
        (!technical).then_some(end)
    };
    let verb = words.iter().position(|w| reached.contains(w) || *w == "used");
    if let Some(verb) = verb
        && words[..verb].iter().take(4).any(|w| among("you your organization workspace account", w))
    {
        let all = words.get(verb + 1).is_some_and(|w| *w == "up" || *w == "all");
        let of = verb + 1 + usize::from(all);
        match words.get(of) {
            Some(&("your" | "its")) if noun(of + 1).is_some() => return true,
            Some(&"the")
                if words[of..].iter().take(4).any(|w| among(ALLOWED, w)) && noun(of + 1).is_some() =>
            {
                return true;
            }
            _ => {}
        }
    }
    // "Weekly limit reached", "quota exceeded": of an unknown kind only where the line goes on to say when it ends.
    let noun = words.iter().take(6).position(|w| ["limit", "quota"].contains(w));
    if let Some(noun) = noun {
        let kind = &words[..noun];
        let rest = &words[noun + 1..];
        let done = rest.first().is_some_and(|w| reached.contains(w))
            || matches!(rest, ["has", "been", w, ..] | ["is" | "was", w, ..] if reached.contains(w));
        let technical = kind.iter().any(|w| among(TECHNICAL, w));
        let of_an_account = words[noun] == "quota" || kind.iter().any(|w| among(ALLOWED, w)) || goes_on;
        if done && !technical && of_an_account {
            return true;
        }
    }
    let out =
        ["out of extra usage", "out of usage", "out of credits", "out of quota", "run out of extra usage"];
    out.iter().any(|w| s.has(w))
        || s.has("credit balance is too low")
        || s.has("balance is too low")
        || s.begins("insufficient credits")
        || s.begins("insufficient quota")
        || s.begins("insufficient balance")
        || s.has("402 payment required")
        || s.has("resource has been exhausted")
}

fn is_rate(s: &Sentence) -> bool {
    let limited = ["rate limit", "rate limits"].iter().any(|w| s.has(w))
        && ["reached", "exceeded", "exceed", "hit"].iter().any(|w| s.has(w));
    limited
        || s.has("been rate limited")
        || s.has("been rate-limited")
        || s.has("429 too many requests")
        || s.begins("too many requests")
        || s.has("temporarily limiting requests")
}

fn is_login(s: &Sentence) -> bool {
    const BEGIN: [&str; 13] = [
        "invalid api key",
        "incorrect api key provided",
        "api key not valid",
        "invalid x-api-key",
        "not logged in",
        "you are not logged in",
        "please run /login",
        "failed to authenticate",
        "invalid authentication credentials",
        "no api key found",
        "missing api key",
        "please log in",
        "login required",
    ];
    let expired = s.has("expired") || s.has("revoked");
    BEGIN.iter().any(|w| s.begins(w))
        || s.has("401 unauthorized")
        || (expired && (s.has("oauth token") || s.has("access token") || s.has("refresh token")))
        || (s.has("must specify the") && s.has("environment variable"))
}

fn is_setup(s: &Sentence) -> bool {
    const BEGIN: [&str; 7] = [
        "unknown option",
        "unknown argument",
        "unexpected argument",
        "unrecognized argument",
        "unrecognized option",
        "invalid choice",
        "403 forbidden",
    ];
    let missing = s.has("not found") || s.has("does not exist");
    BEGIN.iter().any(|w| s.begins(w))
        || (s.begins("model") && missing)
        || (s.begins("the model") && missing)
        || s.has("issue with the selected model")
}

fn is_overload(s: &Sentence) -> bool {
    s.words() == ["overloaded"]
        || s.words() == ["service", "unavailable"]
        || s.has("529 overloaded")
        || s.has("503 service unavailable")
        || s.has("503 service temporarily unavailable")
        || s.has("502 bad gateway")
        || s.has("504 gateway timeout")
        || s.has("504 gateway time-out")
        || s.has("500 internal server error")
        || ["is overloaded", "is currently overloaded", "is temporarily overloaded", "are overloaded"]
            .iter()
            .any(|w| s.has(w) && (s.has("model") || s.has("server") || s.has("servers") || s.has("api")))
}

fn is_unreachable(s: &Sentence) -> bool {
    const CODES: [&str; 6] =
        ["econnrefused", "econnreset", "enotfound", "etimedout", "eai_again", "enetunreach"];
    const BEGIN: [&str; 12] = [
        "connection refused",
        "connection reset",
        "connection failed",
        "connection timed out",
        "connection error",
        "could not resolve host",
        "network is unreachable",
        "no route to host",
        "name or service not known",
        "unable to connect",
        "failed to connect",
        "error sending request",
    ];
    CODES.iter().any(|w| s.has(w)) || BEGIN.iter().any(|w| s.begins(w)) || s.words() == ["fetch", "failed"]
}

/// "This session is held by another process": of a conversation, not of a port or a file.
fn is_in_use(s: &Sentence) -> bool {
    const WHAT: &str = "conversation rollout session thread";
    let words = s.words();
    let place = |sought: &[&str]| words.windows(sought.len()).position(|found| found == sought);
    let held =
        ["held", "locked", "used", "opened"].iter().find_map(|how| place(&[how, "by", "another", "process"]));
    let used =
        || place(&["in", "use", "by", "another", "process"]).or_else(|| place(&["already", "in", "use"]));
    let Some(at) = held.or_else(used) else { return false };
    // What has it stands before that, and nothing does that is something else.
    words[..at].iter().take(4).any(|word| among(WHAT, word)) || held == Some(0)
}

#[cfg(test)]
mod tests;
