//! What the primary reads of a hand-back: a line for each wake, the host's own lines, and the command to go on with.

use std::fmt::Write as _;

use minder_proto::host::bounds::{HANDBACK_MAX, WAKE_LINES_MAX};
use minder_proto::host::reason::HostLine;
use minder_proto::host::row::{Kind, Row};
use minder_proto::id::SessionId;
use minder_proto::text::{line_of, one_line};

use super::queue::{Shown, collapse};

/// Longest wake line, in bytes.
const LINE_MAX: usize = 640;

/// The last line of every hand-back.
pub const NEXT: &str = "next: minder host drain";

/// One wake as a line: `signal: api-worker (5f1c2d4a) working → review | PR 12 ready for review`.
pub fn wake_line(shown: &Shown<'_>, name_of: impl Fn(SessionId) -> Option<String>) -> String {
    let row = shown.row;
    let mut line = format!("{}: ", row.kind.as_str());
    match (row.session, row.kind) {
        (Some(session), _) => {
            let id = session.short();
            let name = name_of(session);
            let _ = match name {
                Some(label) => write!(line, "{} ({id})", one_line(&label)),
                None => write!(line, "{id}"),
            };
            let path: Vec<&str> = row.states.iter().map(|state| state.as_str()).collect();
            if !path.is_empty() {
                let _ = write!(line, " {}", path.join(" → "));
            }
            match row.what.as_str() {
                "turn-end" => line.push_str(", its turn over and nothing declared"),
                "closed" => line.push_str(" → closed"),
                _ => {}
            }
        }
        (None, Kind::Check) => {
            let _ = write!(line, "{} (exit {})", one_line(&row.key), one_line(&row.what));
        }
        (None, _) => line.push_str("what nothing covers"),
    }
    if row.inspect {
        line.push_str(", inspect");
    }
    if shown.count > 1 {
        let _ = write!(line, " ({} times)", shown.count);
    }
    if !row.text.is_empty() {
        let between = if row.kind == Kind::Check { " " } else { " | " };
        line.push_str(between);
        line.push_str(&row.text);
    }
    line_of(&line, LINE_MAX)
}

/// The text of a hand-back, bounded; each line of it ends in a newline.
pub fn render(
    rows: &[&Row],
    lines: &[HostLine],
    name_of: impl Fn(SessionId) -> Option<String> + Copy,
) -> String {
    let shown = collapse(rows.iter().copied());
    let tail = lines.iter().fold(String::new(), |mut tail, line| {
        let _ = writeln!(tail, "{line}");
        tail
    });
    for most in (0..=WAKE_LINES_MAX).rev() {
        let mut text = String::new();
        for wake in shown.iter().take(most) {
            let _ = writeln!(text, "{}", wake_line(wake, name_of));
        }
        if let more @ 1.. = shown.len().saturating_sub(most) {
            let _ = writeln!(text, "and {more} more");
        }
        text.push_str(&tail);
        let _ = writeln!(text, "{NEXT}");
        if text.len() <= HANDBACK_MAX || most == 0 {
            return text;
        }
    }
    unreachable!("the last round gives a text")
}

#[cfg(test)]
mod tests {
    use minder_proto::host::reason::{Code, HostLine};
    use minder_proto::host::row::{NO_KEY, Queue};
    use minder_proto::stamp::Stamp;
    use minder_proto::state::State;

    use super::*;
    use crate::host::queue::{News, add};

    fn queue(news: impl IntoIterator<Item = News>) -> Queue {
        let (mut queue, mut next) = (Queue::default(), 1);
        for news in news {
            add(&mut queue, &mut next, news, Stamp::from_millis(0));
        }
        queue
    }

    fn text(queue: &Queue, lines: &[HostLine]) -> String {
        let rows: Vec<&Row> = queue.rows.iter().collect();
        render(&rows, lines, |_| Some("api".to_owned()))
    }

    #[test]
    fn each_kind_has_its_line_and_the_command_is_last() {
        let id: SessionId = "5f1c2d4a-90c3-4f0e-8a17-c2b6d1e4f700".parse().unwrap();
        let signal = |what: &str, states: &[State], text: &str| News {
            session: Some(id),
            states: states.to_vec(),
            text: text.to_owned(),
            ..News::of(Kind::Signal, what, "a")
        };
        let check = News { text: "main is red\nsince".to_owned(), ..News::of(Kind::Check, "1", "ci") };
        let lines = [HostLine::new(Code::Repeat, "2 rows told 15 minutes ago are not acknowledged")];
        let one = queue([signal("review", &[State::Working, State::Review], "PR 12"), check]);
        assert_eq!(
            text(&one, &lines),
            "signal: api (5f1c2d4a) working → review | PR 12\ncheck: ci (exit 1) main is red\\nsince\n\
             minder host: 2 rows told 15 minutes ago are not acknowledged\nnext: minder host drain\n"
        );
        let other = queue([
            signal("turn-end", &[State::Working, State::Idle], ""),
            News::of(Kind::Heartbeat, "", NO_KEY),
        ]);
        assert_eq!(
            text(&other, &[]),
            "signal: api (5f1c2d4a) working → idle, its turn over and nothing declared\n\
             heartbeat: what nothing covers\nnext: minder host drain\n"
        );
    }

    #[test]
    fn it_is_bounded_in_lines_and_bytes_and_nothing_in_it_acts_on_a_terminal() {
        let many = queue((0..30).map(|n| News {
            session: Some(SessionId::random()),
            text: "ä\u{1b}[2J".repeat(100),
            ..News::of(Kind::Signal, "review", &n.to_string())
        }));
        let lines = vec![HostLine::new(Code::Repeat, &"x".repeat(400)); 12];
        let text = text(&many, &lines);
        assert!(text.len() <= HANDBACK_MAX, "{}", text.len());
        assert!(text.ends_with("next: minder host drain\n") && !text.contains('\u{1b}'));
        let wakes = text.lines().filter(|line| line.starts_with("signal: ")).count();
        assert!((1..=WAKE_LINES_MAX).contains(&wakes), "{wakes}");
        assert!(text.contains(&format!("and {} more\n", 30 - wakes)), "{text}");
    }
}
