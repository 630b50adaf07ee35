//! Sentences that are refusals, and those that only look like them.

use super::*;

fn class(text: &str) -> Option<Class> {
    of_text(text).map(Refusal::class)
}

#[test]
fn m2_limits_are_known_by_the_shape_of_their_sentence() {
    for text in [
        "You've hit your session limit \u{b7} resets 3pm (America/New_York)",
        "You\u{2019}ve hit your weekly limit \u{b7} resets Dec 3, 8:14pm",
        // Kinds that nobody has heard of.
        "You've hit your frobnication limit",
        "Ponderous limit reached \u{2219} resets 3pm",
        "5-hour limit reached \u{2219} resets 3pm",
        "Claude AI usage limit reached|1749924000",
        "You\u{2019}ve hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro) or try again at 8:15 PM.",
        "You have reached your monthly spend limit.",
        "You exceeded your current quota, please check your plan and billing details.",
        "Quota exceeded. Check your plan and billing details.",
        "Your credit balance is too low to access the Anthropic API.",
        "[API Error: You have exhausted your daily quota on this model.]",
        "Your organization has reached its monthly usage limit",
        "You're out of extra usage \u{b7} resets 3pm",
        "429 You have reached the weekly usage limit",
        r#"429 {"error":{"message":"slow down","type":"insufficient_quota"}}"#,
        r#"[API Error: {"error":{"code":429,"message":"You exceeded your current quota.","status":"RESOURCE_EXHAUSTED"}}]"#,
    ] {
        assert_eq!(class(text), Some(Class::Quota), "{text}");
    }
}

#[test]
fn m2_what_is_no_limit_is_not_taken_for_one() {
    for (text, expected) in [
        ("503 The server is currently overloaded with other requests.", Some(Class::Unavailable)),
        (
            "unexpected status 503 Service Unavailable: no backend, url: http://127.0.0.1:1/v1",
            Some(Class::Unavailable),
        ),
        (
            "API Error: 529 Overloaded. This is a server-side issue, usually temporary",
            Some(Class::Unavailable),
        ),
        (
            "API Error: Connection refused \u{2014} a firewall or proxy may be blocking it (ECONNREFUSED)",
            Some(Class::Unavailable),
        ),
        (
            "Reconnecting... waiting for network (Connection failed: error sending request)",
            Some(Class::Unavailable),
        ),
        ("connect ECONNREFUSED 127.0.0.1:9", Some(Class::Unavailable)),
        (
            r#"{"error":{"message":"The model is overloaded.","code":503,"status":"UNAVAILABLE"}}"#,
            Some(Class::Unavailable),
        ),
        ("Rate limit reached for sim-1 on requests per min (RPM): Limit 3, Used 3.", Some(Class::RateLimit)),
        ("exceeded retry limit, last status: 429 Too Many Requests", Some(Class::RateLimit)),
        (
            "This request would exceed your account's rate limit. Please try again later.",
            Some(Class::RateLimit),
        ),
        ("Server is temporarily limiting requests (not your usage limit)", Some(Class::RateLimit)),
        ("Not logged in \u{b7} Please run /login", Some(Class::Configuration)),
        ("Invalid API key \u{b7} Fix external API key", Some(Class::Configuration)),
        ("unexpected status 401 Unauthorized: Incorrect API key provided: k.", Some(Class::Configuration)),
        (
            "When using Gemini API, you must specify the GEMINI_API_KEY environment variable.",
            Some(Class::Configuration),
        ),
        ("401 Incorrect API key provided: k.", Some(Class::Configuration)),
        ("error: unknown option '--no-such-flag'", Some(Class::Configuration)),
        (
            "Error: Model \"nope/nope\" not found. Use --list-models to see available models.",
            Some(Class::Configuration),
        ),
        ("something nobody has heard of", None),
    ] {
        assert_eq!(class(text), expected, "{text}");
    }
}

#[test]
fn m4_prose_and_numbers_are_no_refusals() {
    for text in [
        "Line 403 of the file is wrong",
        "error at line 429: unexpected token",
        "500 tokens were used",
        "see the billing page",
        "waiting for capacity",
        "the tool said \"timed out after 30ms\"",
        "it printed `You've hit your weekly limit` and went on",
        "the log has \"503 Service Unavailable\" in it",
        "quota",
        "overloaded operators are hard to read",
        "Context limit reached \u{b7} /compact or /clear to continue",
        "Reached maximum number of turns (1)",
        "Subagent nesting limit reached (depth 3)",
        "memory limit exceeded",
        "stack limit reached",
        "Budget limit reached ($2.00 of $2.00); stopping background agents.",
        "You have reached the limit of 500 tokens",
        "You have used your context window",
        "the rate limit is 50 requests per minute",
        "login.rs:401: not found",
        "Invalid value at line 403 of input",
        "I checked the usage limits page and the weekly limit is fine",
        "the connection pool limit was reached",
        "",
    ] {
        assert_eq!(class(text), None, "{text}");
    }
}

#[test]
fn the_last_sentence_that_says_something_counts() {
    let text = "Rate limit exceeded\nretrying\nYou've hit your weekly limit \u{b7} resets 3pm\nbye\n";
    assert_eq!(of_text(text), Some(Refusal::Limit));
}

#[test]
fn an_answer_about_a_limit_is_an_answer() {
    assert!(is_all_of("You've hit your session limit \u{b7} resets 3pm\n"));
    assert!(is_all_of("Not logged in \u{b7} Please run /login"));
    assert!(!is_all_of("I looked.\nYou've hit your session limit \u{b7} resets 3pm"));
    assert!(!is_all_of("The server answers 503 Service Unavailable"));
    assert!(!is_all_of(""));
}

#[test]
fn f8_a_conversation_that_another_process_has_is_no_crash() {
    for text in [
        "Error: session 4f0e is held by another process",
        "held by another process",
        "This conversation is in use by another process (pid 4121).",
        "Session ID 8a17 is already in use.",
        "the rollout is locked by another process",
    ] {
        assert_eq!(of_text(text), Some(Refusal::InUse), "{text}");
    }
    for text in [
        "Error: listen EADDRINUSE: address already in use 127.0.0.1:3000",
        "Port 3000 is in use by another process",
        "the file is held by another process",
        "a process held the session",
        "Session limit: nothing is in use",
    ] {
        assert_ne!(of_text(text), Some(Refusal::InUse), "{text}");
    }
}
