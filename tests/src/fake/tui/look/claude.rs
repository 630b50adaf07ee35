//! The look of Claude Code 2.1.332, from its own screens: a box of two rules around the composer, dialogs in its place,
//! a hard blank behind the composer's sign and a plain one behind the same sign elsewhere.

use super::{Dialog, Frame, Said, Screen, View, cut, stack, typed, wrap};

const GREY: &str = "\x1b[38;5;246m";
const RULE: &str = "\x1b[38;5;244m";
const BLUE: &str = "\x1b[38;5;153m";
const BACK: &str = "\x1b[39m";

/// `[Pasted text #1 +20 lines]`; one line has no count.
pub fn collapsed(number: usize, text: &str) -> String {
    match text.matches('\n').count() {
        0 => format!("[Pasted text #{number}]"),
        lines => format!("[Pasted text #{number} +{} lines]", lines + 1),
    }
}

pub fn frame(view: &View<'_>) -> Frame {
    if let Screen::Trust { yes } = view.screen {
        return trust(view, *yes);
    }
    let mut above = vec![
        String::new(),
        format!(
            " \x1b[38;5;174m\u{2590}\u{259b}\u{2588}\u{2588}\u{2588}\u{259b}\u{2588}{BACK}   \x1b[1mClaude Code\x1b[0m {GREY}v2.1.332"
        ),
        format!(
            "\x1b[38;5;174m\u{259d}\u{259c}\u{2588}\u{2588}\u{2588}\u{2588}\u{2588}\u{2588}\u{2580}{BACK}  {GREY}Opus 5.5 \u{b7} API Usage Billing"
        ),
        format!("\x1b[38;5;174m \u{259d}\u{259d}   \u{259d}\u{259d} {BACK}  {GREY}{}", view.folder),
        String::new(),
        String::new(),
    ];
    for said in view.said {
        conversation(&mut above, said, view.columns);
    }
    let (below, cursor) = match view.screen {
        Screen::Dialog(dialog) if dialog.question => question(view, dialog),
        Screen::Dialog(dialog) => permission(view, dialog),
        Screen::Panel => panel(view),
        Screen::Limit(text) => limit(view, text),
        Screen::Unknown => unknown(view),
        Screen::Composer | Screen::Trust { .. } => composer(view),
    };
    let title = match &view.busy {
        Some(busy) if busy.seconds % 2 == 1 => "\u{25d1} Claude Code",
        Some(_) => "\u{25d0} Claude Code",
        None => "\u{2733} Claude Code",
    };
    let row = view.rows.saturating_sub(below.len()) + cursor.0;
    Frame { rows: stack(above, &below, view.rows), cursor: (row, cursor.1, false), title: title.to_owned() }
}

fn conversation(rows: &mut Vec<String>, said: &Said, columns: usize) {
    let width = columns.saturating_sub(2);
    let block = |rows: &mut Vec<String>, first: &str, text: &str| {
        for (n, line) in wrap(text, width).iter().enumerate() {
            rows.push(if n == 0 { format!("{first}{line}") } else { format!("  {line}") });
        }
        rows.push(String::new());
    };
    match said {
        Said::User(text) => block(rows, &format!("\x1b[48;5;237m{GREY}\u{276f} \x1b[38;5;231m"), text),
        Said::Agent(text) => block(rows, &format!("\x1b[38;5;231m\u{25cf}{BACK} "), text),
        Said::Text(text) => rows.extend(wrap(text, columns)),
        Said::Interrupted => {
            rows.push(format!("  {GREY}\u{23bf}  Interrupted \u{b7} What should Claude do instead?"));
            rows.push(String::new());
        }
    }
}

fn rule(view: &View<'_>, colour: &str) -> String {
    format!("{colour}{}", "\u{2500}".repeat(view.columns))
}

/// Rows, and the cursor in them.
type Part = (Vec<String>, (usize, usize));

fn composer(view: &View<'_>) -> Part {
    let mut rows = Vec::new();
    for text in view.queued {
        rows.push(format!("{GREY}\u{276f} {}", cut(text, view.columns - 2)));
        rows.push(format!("{GREY}  \u{23bf}  Queued \u{b7} ctrl+x ctrl+s to send now"));
    }
    if let Some(busy) = &view.busy {
        rows.push(String::new());
        rows.push(format!("\x1b[38;5;174m{}{BACK} \x1b[38;5;174mSpelunking\u{2026}", busy.glyph));
    }
    let hint = "\u{25d0} medium \u{b7} /effort";
    rows.push(format!("{}{GREY}{hint}", " ".repeat(view.columns.saturating_sub(20))));
    rows.push(rule(view, RULE));
    let (lines, column) = typed(view, collapsed, view.columns.saturating_sub(3), view.rows / 2);
    let at = rows.len() + lines.len() - 1;
    let sign = if view.busy.is_some() { GREY } else { "" };
    let placeholder = "Press up to edit queued messages";
    for (n, line) in lines.iter().enumerate() {
        let last = n + 1 == lines.len();
        let first = if n == 0 { format!("{sign}\u{276f}\u{a0}{BACK}") } else { "  ".to_owned() };
        rows.push(if view.composer.is_empty() && !view.queued.is_empty() {
            format!("{first}\x1b[7m{}\x1b[0;2m{}", &placeholder[..1], &placeholder[1..])
        } else if last {
            format!("{first}{line}\x1b[7m ")
        } else {
            format!("{first}{line}")
        });
    }
    rows.push(rule(view, RULE));
    let empty = view.composer.is_empty();
    let footer = match (view.normal, &view.busy, empty) {
        (Some(true), ..) => "  -- NORMAL --".to_owned(),
        (Some(false), ..) => "  -- INSERT --".to_owned(),
        (None, Some(_), true) => format!("  {GREY}\u{23f8} manual mode on \u{b7} esc to interrupt"),
        (None, None, true) => {
            format!("  {GREY}\u{23f8} manual mode on \u{b7} ? for shortcuts \u{b7} \u{2190} for agents")
        }
        _ => format!("  {GREY}\u{23f8} manual mode on"),
    };
    rows.push(footer);
    (rows, (at, column + 2))
}

fn permission(view: &View<'_>, dialog: &Dialog) -> Part {
    let dashes = format!("\x1b[38;5;239m{}", "\u{254c}".repeat(view.columns));
    let mut rows = vec![
        rule(view, BLUE),
        format!(" \x1b[1m{BLUE}Bash command"),
        format!(" {GREY}scripted"),
        dashes.clone(),
        " touch made".to_owned(),
        dashes,
    ];
    rows.extend(wrap(&dialog.text, view.columns - 1).iter().map(|line| format!(" {line}")));
    let at = rows.len() + dialog.marked;
    for (n, option) in dialog.options.iter().enumerate() {
        rows.push(if n == dialog.marked {
            format!(" {BLUE}\u{276f}{BACK} {GREY}{}. {BLUE}{option}", n + 1)
        } else {
            format!("   {GREY}{}. {BACK}{option}", n + 1)
        });
    }
    rows.push(String::new());
    rows.push(format!(" {GREY}Esc to cancel \u{b7} Tab to amend"));
    (rows, (at, 1))
}

fn question(view: &View<'_>, dialog: &Dialog) -> Part {
    let mut rows = vec![
        rule(view, GREY),
        "\x1b[38;5;16m\x1b[48;5;153m \u{2610} Way ".to_owned(),
        String::new(),
        format!("\x1b[1m\x1b[38;5;231m{}", cut(&dialog.text, view.columns)),
        String::new(),
    ];
    let at = rows.len() + dialog.marked;
    let type_something = "Type something.".to_owned();
    for (n, option) in dialog.options.iter().chain([&type_something]).enumerate() {
        rows.push(if n == dialog.marked {
            format!("{BLUE}\u{276f}{BACK} {GREY}{}.{BACK} {BLUE}{option}", n + 1)
        } else {
            format!("  {GREY}{}.{BACK} {option}", n + 1)
        });
    }
    rows.push(rule(view, GREY));
    rows.push(format!("  {}. Chat about this", dialog.options.len() + 2));
    rows.push(String::new());
    rows.push(format!("{GREY}Enter to select \u{b7} \u{2191}/\u{2193} to navigate \u{b7} Esc to cancel"));
    (rows, (at, 0))
}

fn trust(view: &View<'_>, yes: bool) -> Frame {
    let option = |marked: bool, text: &str| {
        if marked { format!(" {BLUE}\u{276f}{BACK} {BLUE}{text}") } else { format!("   {text}") }
    };
    let (first, second) = if yes {
        (option(true, "Yes, I trust this folder"), option(false, "No, exit"))
    } else {
        (option(true, "No, exit"), option(false, "Yes, I trust this folder"))
    };
    let rows = vec![
        String::new(),
        rule(view, "\x1b[38;5;220m"),
        " \x1b[1m\x1b[38;5;220mAccessing workspace:".to_owned(),
        String::new(),
        format!(" \x1b[1m{}", view.folder),
        String::new(),
        " Quick safety check: Is this a project you created or one you trust?".to_owned(),
        " If not, take a moment to review what's in this folder first.".to_owned(),
        String::new(),
        " Claude Code'll be able to read, edit, and execute files here.".to_owned(),
        String::new(),
        format!(" {GREY}Security guide"),
        String::new(),
        first,
        second,
        String::new(),
        format!(" {GREY}Enter to confirm \u{b7} Esc to cancel"),
    ];
    Frame { rows, cursor: (13, 1, false), title: "Claude Code".to_owned() }
}

fn panel(view: &View<'_>) -> Part {
    let mut rows = vec![format!("{BLUE}{}", "\u{2594}".repeat(view.columns))];
    rows.extend(
        [
            "  Select model",
            "  Your pick is the default for new sessions. For other models, use --model.",
            "",
            "  \u{276f} 1. Default (recommended) \u{2714}  Use the default model (currently Opus 5.5)",
            "    2. Sonnet                   Sonnet 5.5 \u{b7} Efficient for routine tasks",
            "",
            "  s to use this session only \u{b7} Enter to save \u{b7} Esc to cancel",
        ]
        .map(str::to_owned),
    );
    (rows, (4, 2))
}

fn limit(view: &View<'_>, text: &str) -> Part {
    let rows = vec![
        rule(view, BLUE),
        format!(" \x1b[1m{}", cut(text, view.columns - 1)),
        String::new(),
        " What do you want to do?".to_owned(),
        String::new(),
        format!(" {BLUE}\u{276f}{BACK} {GREY}1. {BLUE}Stop and wait for limit to reset"),
        format!("   {GREY}2. {BACK}Upgrade your plan"),
        String::new(),
        format!(" {GREY}Enter to confirm \u{b7} Esc to cancel"),
    ];
    (rows, (5, 1))
}

fn unknown(view: &View<'_>) -> Part {
    let mut rows =
        ["  Something entirely different", "", "  [ Continue ]   [ Leave ]"].map(str::to_owned).to_vec();
    rows.resize(view.rows.saturating_sub(6), String::new());
    (rows, (2, 4))
}
