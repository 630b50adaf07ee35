//! What an agent is told when it waits: whether the end of this program wakes anybody depends on its harness.

/// One line for an agent's shell; none for a person's.
pub fn background(harness: Option<&str>, selectors: &[String]) -> Option<String> {
    let watch = match selectors {
        [] => "minder watch SEL".to_owned(),
        some => format!("minder watch {}", some.join(" ")),
    };
    match harness? {
        "claude" => Some(format!(
            "run this in the background: its exit starts a turn. Better for you: `{watch}` needs no process and brings the text"
        )),
        // No way is built to wake it: what it watches waits until it asks.
        other => Some(format!(
            "the exit of this command wakes nobody in {other}, nor does anything else: stay until it ends, or `{watch}` and read the news with `minder inbox take`"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_harness_is_told_what_was_seen_of_it() {
        let api = ["api".to_owned()];
        assert!(background(Some("claude"), &api).unwrap().contains("its exit starts a turn"));
        for other in ["codex", "opencode"] {
            let line = background(Some(other), &api).unwrap();
            assert!(line.contains("wakes nobody") && !line.contains("you are woken"), "{line}");
            assert!(line.contains("`minder watch api`") && line.contains("`minder inbox take`"), "{line}");
        }
        assert!(background(Some("codex"), &[]).unwrap().contains("minder watch SEL"));
        assert_eq!(background(None, &api), None);
    }
}
