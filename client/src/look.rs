//! What the place that is written to can show: colours, and how many columns.

use std::io::IsTerminal;

use minder_proto::state::State;
use owo_colors::{OwoColorize, Style};

/// How text is shown on standard output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// True on a terminal.
    pub terminal: bool,
    /// True where colours are wanted: on a terminal, without `NO_COLOR`.
    pub colour: bool,
    /// Columns of the terminal; `None` where it is none, and nothing is cut for it.
    pub columns: Option<usize>,
}

impl Look {
    /// What standard output is.
    pub fn of_stdout() -> Self {
        if !std::io::stdout().is_terminal() {
            return Self::default();
        }
        let set = |name| std::env::var_os(name).is_some_and(|v| !v.is_empty());
        let dumb = std::env::var_os("TERM").is_none_or(|t| t == "dumb" || t.is_empty());
        let size = rustix::termios::tcgetwinsize(std::io::stdout());
        // A terminal that does not know its size (a serial line) counts as the old standard.
        let columns = size.map(|s| usize::from(s.ws_col)).ok().filter(|c| *c > 0).unwrap_or(80);
        Self { terminal: true, colour: !set("NO_COLOR") && !dumb, columns: Some(columns) }
    }

    fn paint(self, text: &str, style: Style) -> String {
        if self.colour { text.style(style).to_string() } else { text.to_owned() }
    }

    /// A text in the colour of a state.
    pub fn state(self, state: State, text: &str) -> String {
        let style = Style::new();
        let style = match state {
            State::Asking => style.yellow().bold(),
            State::Error => style.red().bold(),
            State::Review | State::Done | State::ClosePending => style.green(),
            State::Working => style.cyan(),
            State::Idle | State::Parked | State::Queued => return text.to_owned(),
        };
        self.paint(text, style)
    }

    /// A text that stands behind the others: heads of tables, ids, times.
    pub fn faint(self, text: &str) -> String {
        self.paint(text, Style::new().dimmed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_colour_there_is_no_escape() {
        let plain = Look::default();
        assert_eq!(plain.state(State::Error, "error"), "error");
        assert_eq!(plain.faint("x"), "x");
        let colour = Look { colour: true, ..plain };
        assert!(colour.state(State::Error, "error").contains("\x1b["));
    }
}
