//! The table, as text and as a part of the page.

use std::fmt::Write;
use std::path::Path;

/// Rows, in the order in which they were measured.
#[derive(Default)]
pub struct Table {
    rows: Vec<[String; 5]>,
}

impl Table {
    /// A figure that must not be larger than `most`.
    pub fn at_most(&mut self, what: &str, figure: f64, unit: &str, most: f64, how: &str) {
        self.row(what, figure, unit, most, how, figure <= most);
    }

    /// A figure that must not be smaller than `least`.
    pub fn at_least(&mut self, what: &str, figure: f64, unit: &str, least: f64, how: &str) {
        self.row(what, figure, unit, least, how, figure >= least);
    }

    fn row(&mut self, what: &str, figure: f64, unit: &str, target: f64, how: &str, met: bool) {
        let sign = if met == (figure <= target) { "≤" } else { "≥" };
        eprint_row(what, figure, unit);
        let shown = |n: f64| format!("{} {unit}", number(n)).trim_end().to_owned();
        let met = if met { "yes" } else { "**no**" };
        let target = format!("{sign} {}", shown(target));
        self.rows.push([what.to_owned(), shown(figure), target, met.to_owned(), how.to_owned()]);
    }

    /// The whole of it.
    pub fn markdown(&self) -> String {
        let mut text =
            String::from("| what | measured | target | met | against, or how |\n|---|---|---|---|---|\n");
        for row in &self.rows {
            writeln!(text, "| {} |", row.join(" | ")).expect("a string takes everything");
        }
        text
    }
}

fn eprint_row(what: &str, figure: f64, unit: &str) {
    eprintln!("  {what}: {} {unit}", number(figure));
}

/// Three digits that count.
fn number(n: f64) -> String {
    match n.abs() {
        0.0 => "0".to_owned(),
        x if x >= 100.0 => format!("{n:.0}"),
        x if x >= 10.0 => format!("{n:.1}"),
        _ => format!("{n:.2}"),
    }
}

/// Puts it between the marks of the page.
pub fn write(text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/performance.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (begin, end) = ("<!-- table -->\n", "<!-- end of the table -->");
    let (before, rest) = page.split_once(begin).expect("the page has a place for the table");
    let (_, after) = rest.split_once(end).expect("the place ends");
    std::fs::write(&path, format!("{before}{begin}{text}{end}{after}")).unwrap();
}
