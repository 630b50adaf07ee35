//! Tables for people: columns that say nothing are left out, one column gives way to the width there is (another may
//! before it), and no row is ever longer than a line.

use minder_proto::text::{fit, width};

use crate::look::Look;

/// Columns between two columns.
const GAP: usize = 2;
/// Columns that the one that gives way keeps as long as another one can go instead.
const ROOMY: usize = 28;
/// The same of one that gives way before it.
const ENOUGH: usize = 16;
/// Fewest columns that one that gives way keeps.
const NARROWEST: usize = 12;
/// Most columns of the one that gives way where no terminal says how many there are.
pub const UNBOUNDED: usize = 80;

/// One column, a cell for each row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its head.
    pub head: &'static str,
    /// Its cells: plain text on one line.
    pub cells: Vec<String>,
    /// How soon it goes where the width is short: the lowest goes first, [`STAYS`] never.
    pub stays: u8,
    /// For one that is cut where the width is short: the columns that it keeps as long as another column can go.
    pub gives_way: Option<usize>,
    /// True if it says something of its own even where its cells are those of another.
    pub distinct: bool,
}

/// A column that is never left out for want of width.
pub const STAYS: u8 = u8::MAX;

impl Column {
    /// A column of this head.
    pub fn new(head: &'static str, stays: u8, cells: impl Iterator<Item = String>) -> Self {
        Self { head, cells: cells.collect(), stays, gives_way: None, distinct: false }
    }

    /// The one that gives way.
    #[must_use]
    pub fn giving_way(self) -> Self {
        Self { gives_way: Some(ROOMY), ..self }
    }

    /// One that gives way before that.
    #[must_use]
    pub fn giving_way_before(self) -> Self {
        Self { gives_way: Some(ENOUGH), ..self }
    }

    /// One that is shown beside another with the same cells: two ages, two counts.
    #[must_use]
    pub fn distinct(self) -> Self {
        Self { distinct: true, ..self }
    }

    /// Its width where those that give way have at most so many columns, and at most what they keep.
    fn at_most(&self, most: usize) -> usize {
        self.gives_way.map_or(self.width(), |kept| self.width().min(kept.min(most)))
    }

    fn is_empty(&self) -> bool {
        self.cells.iter().all(String::is_empty)
    }

    fn width(&self) -> usize {
        self.cells.iter().map(|c| width(c)).chain([width(self.head)]).max().unwrap_or(0)
    }
}

/// The lines of a table, its head first. `paint` colours a padded cell, by row and head.
pub fn lines(columns: Vec<Column>, look: Look, paint: impl Fn(usize, &str, &str) -> String) -> Vec<String> {
    let columns = telling(columns);
    let (columns, widths) = fitting(columns, look.columns);
    let rows = columns.iter().map(|c| c.cells.len()).max().unwrap_or(0);
    let line = |cell: &dyn Fn(&Column) -> String, paint: &dyn Fn(&str, &str) -> String| {
        let mut out = String::new();
        let mut used = 0;
        let mut owed = 0;
        for (column, cell_width) in columns.iter().zip(&widths) {
            let text = fit(&cell(column), *cell_width);
            let taken = width(&text);
            if taken > 0 {
                // Padding is written before what follows it, so that no line ends in blanks.
                out.push_str(&" ".repeat(owed));
                used += owed + taken;
                owed = 0;
                out.push_str(&paint(column.head, &text));
            }
            owed += cell_width - taken + GAP;
        }
        debug_assert!(look.columns.is_none_or(|c| used <= c), "{used} columns: {out}");
        out
    };
    let mut lines = vec![line(&|c| c.head.to_owned(), &|_, text| look.faint(text))];
    for row in 0..rows {
        lines.push(line(&|c| c.cells[row].clone(), &|head, text| paint(row, head, text)));
    }
    lines
}

/// The columns that say something: not those that are empty, nor those that say what another says.
fn telling(columns: Vec<Column>) -> Vec<Column> {
    let mut kept: Vec<Column> = Vec::new();
    for column in columns {
        if !column.is_empty() && (column.distinct || kept.iter().all(|k| k.cells != column.cells)) {
            kept.push(column);
        }
    }
    kept
}

/// The columns that fit, and the width of each.
fn fitting(mut columns: Vec<Column>, available: Option<usize>) -> (Vec<Column>, Vec<usize>) {
    let Some(available) = available else {
        let width = |c: &Column| if c.gives_way.is_some() { c.width().min(UNBOUNDED) } else { c.width() };
        let widths = columns.iter().map(width).collect();
        return (columns, widths);
    };
    let needed = |columns: &[Column], most| {
        let gaps = GAP * columns.len().saturating_sub(1);
        gaps + columns.iter().map(|c| c.at_most(most)).sum::<usize>()
    };
    while needed(&columns, usize::MAX) > available {
        let can_go = columns.iter().enumerate().filter(|(_, c)| c.stays != STAYS);
        let Some((i, first)) = can_go.min_by_key(|(_, c)| c.stays) else { break };
        if first.gives_way.is_some() && needed(&columns, NARROWEST) <= available {
            break;
        }
        columns.remove(i);
    }
    let mut spare = available.saturating_sub(needed(&columns, NARROWEST));
    let mut widths: Vec<usize> = columns.iter().map(|c| c.at_most(NARROWEST)).collect();
    // First each has what it keeps, then the one that gives way last has the rest.
    let mut order: Vec<usize> = (0..columns.len()).filter(|i| columns[*i].gives_way.is_some()).collect();
    order.sort_by_key(|i| std::cmp::Reverse(columns[*i].gives_way));
    for wanted in [|c: &Column| c.at_most(usize::MAX), Column::width] {
        for &i in &order {
            let more = wanted(&columns[i]).saturating_sub(widths[i]).min(spare);
            widths[i] += more;
            spare -= more;
        }
    }
    // What stays and has no room at all is cut as well: nothing wraps.
    let mut left = available;
    for width in &mut widths {
        *width = (*width).min(left);
        left = left.saturating_sub(*width + GAP);
    }
    (columns, widths)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(columns: Option<usize>, expected: Expect) {
        let cells = |texts: [&str; 3]| texts.map(str::to_owned).into_iter();
        let table = vec![
            Column::new("STATE", STAYS, cells(["asking", "review", "idle ended"])),
            Column::new("SESSION", STAYS, cells(["web", "api", "日本"])),
            Column::new("TITLE", 3, cells(["web", "api", "日本"])),
            Column::new("NOTE", 9, cells(["permission: Bash rm -rf build/", "", "Both charts 🙂 render"]))
                .giving_way(),
            Column::new("HARNESS", 2, cells(["claude", "codex", "claude"])),
            Column::new("QUEUE", 1, cells(["", "", ""])),
            Column::new("WHERE", 4, cells(["pts/1", "", "pts/3"])),
        ];
        let look = Look { columns, ..Look::default() };
        let lines = lines(table, look, |_, _, text| text.to_owned());
        for line in &lines {
            assert!(columns.is_none_or(|c| width(line) <= c), "{line}");
            assert_eq!(line.trim_end(), line);
        }
        expected.assert_eq(&format!("{}\n", lines.join("\n")));
    }

    #[test]
    fn where_nothing_says_how_wide_all_columns_that_tell_are_there() {
        check(
            None,
            expect![[r"
                STATE       SESSION  NOTE                            HARNESS  WHERE
                asking      web      permission: Bash rm -rf build/  claude   pts/1
                review      api                                      codex
                idle ended  日本     Both charts 🙂 render           claude   pts/3
            "]],
        );
    }

    #[test]
    fn one_column_gives_way_and_then_others_go() {
        check(
            Some(60),
            expect![[r"
                STATE       SESSION  NOTE                            WHERE
                asking      web      permission: Bash rm -rf build/  pts/1
                review      api
                idle ended  日本     Both charts 🙂 render           pts/3
            "]],
        );
        check(
            Some(41),
            expect![[r"
                STATE       SESSION  NOTE
                asking      web      permission: Bash rm…
                review      api
                idle ended  日本     Both charts 🙂 rend…
            "]],
        );
        check(
            Some(14),
            expect![[r"
                STATE       S…
                asking      w…
                review      a…
                idle ended  …
            "]],
        );
        check(
            Some(6),
            expect![[r"
                STATE
                asking
                review
                idle …
            "]],
        );
    }
}
