//! The transcripts within a page.

use std::ops::Range;

/// One fenced block of commands and what they print.
pub struct Block<'a> {
    pub commands: Vec<Command<'a>>,
}

/// One command as it stands in the page.
#[derive(Clone)]
pub struct Command<'a> {
    /// Its lines, with the prompts.
    pub lines: Vec<&'a str>,
    /// What it prints.
    pub output: Vec<&'a str>,
    /// Where all of that stands in the page, in bytes.
    pub place: Range<usize>,
}

impl Command<'_> {
    /// What is typed.
    pub fn text(&self) -> String {
        let typed: Vec<&str> = self.lines.iter().map(|line| line.get(2..).unwrap_or_default()).collect();
        typed.join("\n")
    }
}

/// The blocks that are marked `console`.
pub fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut open: Option<Block<'_>> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let (start, end) = (at, at + line.len());
        at = end;
        let line = line.trim_end();
        match &mut open {
            None if line == "```console" => open = Some(Block { commands: Vec::new() }),
            None => {}
            Some(_) if line == "```" => blocks.extend(open.take()),
            Some(block) => {
                let is_next = line.starts_with("> ") || line == ">";
                match block.commands.last_mut() {
                    _ if line.starts_with("$ ") => block.commands.push(Command {
                        lines: vec![line],
                        output: Vec::new(),
                        place: start..end,
                    }),
                    None => panic!("a transcript begins with a command, not with {line:?}"),
                    Some(command) => {
                        let part = if is_next && command.output.is_empty() {
                            &mut command.lines
                        } else {
                            &mut command.output
                        };
                        part.push(line);
                        command.place.end = end;
                    }
                }
            }
        }
    }
    assert!(open.is_none(), "a transcript does not end");
    blocks
}

/// A group of commands with what they printed now. What several printed stands after the last of them.
pub fn render(group: &[Command<'_>], printed: &[String]) -> String {
    let typed = group.iter().flat_map(|command| command.lines.iter().map(|line| (*line).to_owned()));
    typed.chain(printed.iter().cloned()).map(|line| line + "\n").collect()
}

/// The page with these places replaced.
pub fn replace(text: &str, places: &[(Range<usize>, String)]) -> String {
    let mut out = String::new();
    let mut at = 0;
    for (place, new) in places {
        out += &text[at..place.start];
        out += new;
        at = place.end;
    }
    out + &text[at..]
}

#[test]
fn a_page_is_read_and_written() {
    let text = "a\n```console\n$ one <<'EOF'\n> x\n> EOF\nout\n\n> out\n$ two\n```\nb\n```sh\n$ no\n```\n";
    let found = blocks(text);
    assert_eq!(found.len(), 1);
    let [one, two] = &found[0].commands[..] else { panic!() };
    assert_eq!((one.text().as_str(), &one.output[..]), ("one <<'EOF'\nx\nEOF", &["out", "", "> out"][..]));
    assert_eq!((two.text().as_str(), two.output.len()), ("two", 0));
    let new = render(std::slice::from_ref(two), &["new".to_owned()]);
    let changed = replace(text, &[(two.place.clone(), new)]);
    assert_eq!(changed, text.replace("$ two\n", "$ two\nnew\n"));
}
