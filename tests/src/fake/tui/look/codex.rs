//! The look of Codex 0.171.0, from its own screens: no box, a bold sign before the composer and a faint hint in it, the
//! model below; dialogs have letters beside their numbers.

use super::{Dialog, Frame, Said, Screen, View, cut, stack, typed, wrap};

const FAINT: &str = "\x1b[2m";
const PLAIN: &str = "\x1b[0m";
const BOLD: &str = "\x1b[1m";

pub fn collapsed(_: usize, text: &str) -> String {
    format!("[Pasted Content {} chars]", text.chars().count())
}

pub fn frame(view: &View<'_>) -> Frame {
    let folder = view.folder.rsplit('/').next().unwrap_or_default();
    if let Screen::Trust { yes } = view.screen {
        return trust(view, *yes);
    }
    let mut above = vec![
        String::new(),
        format!("  \x1b[38;5;75m>_ {BOLD}\x1b[39mOpenAI Codex{PLAIN}{FAINT} (v0.171.0)"),
        format!("     {FAINT}{}", view.folder),
        String::new(),
    ];
    for said in view.said {
        conversation(&mut above, said, view.columns);
    }
    let (below, cursor) = match view.screen {
        Screen::Dialog(dialog) => dialog_rows(view, dialog),
        Screen::Limit(text) => limit(view, text),
        Screen::Panel => panel(view),
        Screen::Unknown => (vec!["  [ Continue ]   [ Leave ]".to_owned(); 3], (0, 0, false)),
        Screen::Composer | Screen::Trust { .. } => composer(view, folder),
    };
    let title = match (view.screen, &view.busy) {
        (Screen::Dialog(_), _) => format!("[ . ] Action Required | {folder}"),
        (_, Some(_)) => format!("\u{2839} work | {folder}"),
        _ => folder.to_owned(),
    };
    let row = view.rows.saturating_sub(below.len()) + cursor.0;
    Frame { rows: stack(above, &below, view.rows), cursor: (row, cursor.1, cursor.2), title }
}

fn conversation(rows: &mut Vec<String>, said: &Said, columns: usize) {
    let width = columns.saturating_sub(2);
    match said {
        Said::User(text) => {
            let ground = "\x1b[38;5;255m\x1b[48;5;238m";
            rows.push(format!("{ground}\x1b[K"));
            for (n, line) in wrap(text, width).iter().enumerate() {
                let sign = if n == 0 { "\x1b[1;2m\u{203a} \x1b[0m" } else { "  " };
                rows.push(format!("{sign}{ground}{line}\x1b[K"));
            }
            rows.extend([format!("{ground}\x1b[K"), String::new()]);
        }
        Said::Agent(text) => {
            for (n, line) in wrap(text, width).iter().enumerate() {
                rows.push(format!("{}{line}", if n == 0 { "\u{2022} " } else { "  " }));
            }
            rows.push(String::new());
        }
        Said::Text(text) => rows.extend(wrap(text, columns)),
        Said::Interrupted => {
            let text = "\u{25a0} Conversation interrupted - use /feedback if something went wrong";
            rows.extend([text.to_owned(), String::new()]);
        }
    }
}

/// Rows, and the cursor in them.
type Part = (Vec<String>, (usize, usize, bool));

fn composer(view: &View<'_>, folder: &str) -> Part {
    let mut rows = Vec::new();
    if let Some(busy) = &view.busy {
        let seconds = busy.seconds;
        rows.push(format!(
            "{FAINT}{}{PLAIN} {FAINT}Working{PLAIN} {FAINT}({seconds}s \u{2022} {PLAIN}{BOLD}esc{PLAIN}{FAINT} to interrupt)",
            busy.glyph
        ));
        rows.push(String::new());
    }
    if !view.queued.is_empty() {
        rows.push(format!("{FAINT}\u{2022} {PLAIN}Queued follow-up inputs"));
        rows.extend(
            view.queued.iter().map(|text| format!("{FAINT}  \u{21b3} {}", cut(text, view.columns - 4))),
        );
        rows.push(format!("    {BOLD}shift+\u{2190}{PLAIN}{FAINT} edit last queued message"));
    }
    rows.push(String::new());
    let (lines, column) = typed(view, collapsed, view.columns.saturating_sub(3), view.rows / 2);
    let at = rows.len() + lines.len() - 1;
    for (n, line) in lines.iter().enumerate() {
        let sign = if n == 0 { format!("{BOLD}\u{203a}{PLAIN} ") } else { "  ".to_owned() };
        let hint = if view.composer.is_empty() { "\x1b[2mAsk Codex to do anything" } else { "" };
        rows.push(format!("{sign}{line}{hint}"));
    }
    rows.push(String::new());
    rows.push(format!("  \x1b[38;5;223msim-1 default\x1b[39m \u{b7} \x1b[38;5;151m~/{folder}"));
    let hint = if view.composer.is_empty() {
        format!("  {BOLD}\u{2190}{PLAIN} for agents \u{b7} {BOLD}?{PLAIN} for shortcuts")
    } else if view.busy.is_some() {
        format!("  {FAINT}tab to queue message")
    } else {
        String::new()
    };
    rows.push(hint);
    (rows, (at, column + 2, true))
}

fn dialog_rows(view: &View<'_>, dialog: &Dialog) -> Part {
    let mut rows: Vec<String> =
        wrap(&dialog.text, view.columns - 2).iter().map(|line| format!("  {BOLD}{line}{PLAIN}")).collect();
    rows.extend(["", "  $ touch made", "", ""].map(str::to_owned));
    let last = dialog.options.len().saturating_sub(1);
    for (n, option) in dialog.options.iter().enumerate() {
        let letter = match n {
            0 => " (y)",
            n if n == last => " (\x1b[1mesc\x1b[0m)",
            1 => " (\x1b[1mp\x1b[0m)",
            _ => "",
        };
        rows.push(if n == dialog.marked {
            format!("\x1b[1;7m\u{203a} {}. {option}{letter}", n + 1)
        } else {
            format!("  {}. {option}{letter}", n + 1)
        });
    }
    rows.push(String::new());
    rows.push(format!(
        "  {FAINT}Press {PLAIN}{BOLD}enter{PLAIN}{FAINT} to confirm or {PLAIN}{BOLD}esc{PLAIN}{FAINT} to cancel"
    ));
    let at = rows.len() - 1;
    (rows, (at, view.columns - 1, false))
}

fn trust(view: &View<'_>, yes: bool) -> Frame {
    let option = |n: usize, marked: bool, text: &str| {
        if marked { format!("\x1b[1;7m\u{203a} {n}. {text}") } else { format!("  {n}. {text}") }
    };
    let rows = vec![
        String::new(),
        format!("{BOLD}  Folder access"),
        format!("  {FAINT}{}", view.folder),
        String::new(),
        "  Trust this folder? Codex can read, edit, and run files here, subject to your permission settings."
            .to_owned(),
        "  Continue only if you trust these files. Your trust decision will be saved.".to_owned(),
        String::new(),
        option(1, yes, "Trust and continue"),
        option(2, !yes, "Back to Agent Command Center"),
        String::new(),
        format!("  {BOLD}enter{PLAIN}{FAINT} continue \u{b7} {PLAIN}{BOLD}esc{PLAIN}{FAINT} back"),
    ];
    Frame { rows, cursor: (view.rows - 3, 1, false), title: "codex".to_owned() }
}

fn limit(view: &View<'_>, text: &str) -> Part {
    let rows = vec![
        format!("  {BOLD}{}", cut(text, view.columns - 2)),
        String::new(),
        "\x1b[1;7m\u{203a} 1. Wait for the limit to reset".to_owned(),
        "  2. Upgrade".to_owned(),
        String::new(),
        format!("  {FAINT}Press enter to confirm or esc to go back"),
    ];
    (rows, (5, 0, false))
}

fn panel(_: &View<'_>) -> Part {
    let rows = [
        "  Select Model and Effort",
        "",
        "\x1b[1;7m\u{203a} 1. sim-1 (current)",
        "  2. sim-2",
        "",
        "  Press enter to confirm or esc to go back",
    ];
    (rows.map(str::to_owned).into(), (5, 0, false))
}
