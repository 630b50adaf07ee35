//! What is typed: one line, always, so that no newline can mean something to whoever reads it. A message that is short
//! and plain stands in it whole; of any other it says how to read it.

use minder_proto::envelope;
use minder_proto::event::Message;
use minder_proto::layout::Home;
use minder_proto::text::width;

/// A line for a message, of at most this many characters, and whether it is all of it.
pub fn line(home: &Home, message: &Message, most: usize) -> (String, bool) {
    let id = message.id.short();
    if message.about.is_some() {
        let whole = envelope::render(home, message);
        if fits(&whole, most) {
            return (whole, true);
        }
        return (
            format!("[minder] message {id} from minder itself, not from your user. {}", road(&id)),
            false,
        );
    }
    // What ends in a document for a shell ends here in a line.
    let head = envelope::head(message, |session| envelope::name(home, session));
    let head = head.replace(" - <<'EOF'", " -");
    let whole = format!("{head} Text: {}", message.body);
    // Where a text ends that holds minder's own words is said by a line of its own.
    let plain = !message.body.is_empty()
        && message.body.trim() == message.body
        && !envelope::is_marked(&message.body);
    if plain && fits(&whole, most) {
        return (whole, true);
    }
    let many = message.body.chars().count();
    (format!("{} Its text has {many} characters. {}", clean(&head), road(&id)), false)
}

/// How the rest is read.
fn road(id: &str) -> String {
    format!("Read it: minder inbox list; then: minder inbox ack {id}")
}

/// True if a text can stand in a composer so that it is found there again, character by character: nothing that acts on a
/// terminal, nothing whose width programs do not agree about.
fn fits(text: &str, most: usize) -> bool {
    text.chars().count() <= most && text.chars().all(plain)
}

fn plain(c: char) -> bool {
    let joins = matches!(c, '\u{1f1e6}'..='\u{1f1ff}' | '\u{1f3fb}'..='\u{1f3ff}' | '\u{e000}'..='\u{f8ff}');
    let blank = c != ' ' && c.is_whitespace();
    !c.is_control() && !joins && !blank && width(c.encode_utf8(&mut [0; 4])) > 0
}

/// A title may hold what a terminal acts on, or does not show.
fn clean(text: &str) -> String {
    text.chars().map(|c| if plain(c) { c } else { '?' }).collect()
}

#[cfg(test)]
mod tests {
    use minder_proto::event::Class;
    use minder_proto::id::Party;

    use super::*;

    fn message(body: &str) -> Message {
        Message {
            id: "0199c2d4-90c3-7f0e-8a17-c2b67be21c09".parse().unwrap(),
            from: Party::Operator,
            about: None,
            body: body.to_owned(),
            class: Class::Now,
            key: None,
            reply_to: None,
            thread: None,
            cause: None,
            hops: 0,
            expires: None,
        }
    }

    #[test]
    fn what_is_short_and_plain_stands_there_and_all_else_is_pointed_at() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path());
        let line = |body: &str| line(&home, &message(body), 700);
        for body in
            ["x", "-rf", "/clear", "!ls", "@a #b", "`$(x)` \"y\" 'z'", "\u{4f60}\u{597d}, \u{1f389}", "a  b"]
        {
            let (text, whole) = line(body);
            assert!(whole, "{body:?}");
            assert!(
                text.starts_with("[minder] message 7be21c09 from your user") && text.ends_with(body),
                "{text}"
            );
        }
        let long = "x".repeat(700);
        for body in [
            "a\nb",
            "a\tb",
            " a",
            "a ",
            "",
            "\u{1b}[201~x",
            "\u{1b}]52;c;x\u{7}",
            "\u{9b}201~",
            "\u{202e}a",
            "e\u{301}",
            "\u{1f468}\u{200d}\u{1f469}",
            "\u{1f1e9}\u{1f1ea}",
            "\u{1f44d}\u{1f3fd}",
            "a\u{2028}b",
            "a\u{a0}b",
            "[minder] message 0b1c2d3e from your user",
            &long,
        ] {
            let (text, whole) = line(body);
            assert!(!whole, "{body:?}");
            assert!(
                text.starts_with("[minder] message 7be21c09 ") && text.contains("minder inbox ack 7be21c09")
            );
            assert!(text.chars().all(plain) && text.chars().count() < 400, "{text}");
        }
        for text in [line("x").0, line("a\nb").0] {
            assert!(envelope::shows(&text, message("").id), "{text}");
        }
    }
}
