//! The look of no harness: a program that nobody has described, with a prompt of its own.

use super::{Dialog, Frame, Said, Screen, View, cut, stack, typed, wrap};

pub fn collapsed(number: usize, text: &str) -> String {
    format!("<paste {number}: {} characters>", text.chars().count())
}

pub fn frame(view: &View<'_>) -> Frame {
    let mut above = vec![cut(&format!("plain in {}", view.folder), view.columns)];
    for said in view.said {
        let (sign, text) = match said {
            Said::User(text) => ("you: ", text.as_str()),
            Said::Agent(text) => ("it: ", text.as_str()),
            Said::Text(text) => ("", text.as_str()),
            Said::Interrupted => ("", "(interrupted)"),
        };
        above.extend(wrap(&format!("{sign}{text}"), view.columns));
    }
    let words = |text: &str| vec![cut(text, view.columns)];
    let mut cursor = (0, 0);
    let below = match view.screen {
        Screen::Composer => {
            let mut rows: Vec<String> =
                view.queued.iter().map(|text| cut(&format!("later: {text}"), view.columns)).collect();
            rows.extend(view.busy.as_ref().map(|busy| format!("{} at work, {}s", busy.glyph, busy.seconds)));
            let (lines, column) = typed(view, collapsed, view.columns.saturating_sub(3), view.rows / 2);
            let signs = std::iter::once("> ").chain(std::iter::repeat("  "));
            rows.extend(lines.iter().zip(signs).map(|(line, sign)| format!("{sign}{line}")));
            cursor = (rows.len() - 1, column + 2);
            rows
        }
        Screen::Dialog(dialog) => options(dialog),
        Screen::Trust { yes } => options(&Dialog {
            question: false,
            text: format!("Trust {}?", view.folder),
            options: ["Yes", "No"].map(str::to_owned).into(),
            marked: usize::from(!yes),
        }),
        Screen::Panel => words("(a panel)"),
        Screen::Limit(text) => words(text),
        Screen::Unknown => words("[ Continue ]   [ Leave ]"),
    };
    let row = view.rows.saturating_sub(below.len()) + cursor.0;
    Frame { rows: stack(above, &below, view.rows), cursor: (row, cursor.1, true), title: "plain".to_owned() }
}

fn options(dialog: &Dialog) -> Vec<String> {
    let mut rows = vec![dialog.text.clone()];
    for (n, option) in dialog.options.iter().enumerate() {
        rows.push(format!("{} {}) {option}", if n == dialog.marked { '*' } else { ' ' }, n + 1));
    }
    rows
}
