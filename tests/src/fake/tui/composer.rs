//! The box in which a prompt is written: typed text, and pastes that stand there as themselves or collapsed.

/// What stands in the composer. The cursor is always at its end.
#[derive(Clone, Debug, Default)]
pub struct Composer {
    parts: Vec<Part>,
    pastes: usize,
}

#[derive(Clone, Debug)]
enum Part {
    Plain(String),
    Collapsed { number: usize, text: String },
}

/// How a look shows a paste that it collapses.
pub type Collapsed = fn(number: usize, text: &str) -> String;

impl Composer {
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// What would be submitted.
    pub fn text(&self) -> String {
        self.parts
            .iter()
            .map(|part| match part {
                Part::Plain(text) | Part::Collapsed { text, .. } => text.as_str(),
            })
            .collect()
    }

    /// What is shown.
    pub fn shown(&self, collapsed: Collapsed) -> String {
        self.parts
            .iter()
            .map(|part| match part {
                Part::Plain(text) => text.clone(),
                Part::Collapsed { number, text } => collapsed(*number, text),
            })
            .collect()
    }

    pub fn insert(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        match self.parts.last_mut() {
            Some(Part::Plain(plain)) => plain.push_str(text),
            _ => self.parts.push(Part::Plain(text.to_owned())),
        }
    }

    pub fn insert_collapsed(&mut self, text: &str) {
        self.pastes += 1;
        self.parts.push(Part::Collapsed { number: self.pastes, text: text.to_owned() });
    }

    /// Takes away the last character, or the last paste.
    pub fn backspace(&mut self) {
        if let Some(Part::Plain(text)) = self.parts.last_mut() {
            text.pop();
            if !text.is_empty() {
                return;
            }
        }
        self.parts.pop();
    }

    /// Takes away the last line.
    pub fn clear_line(&mut self) {
        if let Some(Part::Plain(text)) = self.parts.last_mut() {
            // At the beginning of a line the line's end before it goes.
            let keep = match text.rfind('\n') {
                Some(at) if at + 1 == text.len() => at,
                Some(at) => at + 1,
                None => 0,
            };
            text.truncate(keep);
            if !text.is_empty() {
                return;
            }
        }
        self.parts.pop();
    }

    pub fn clear(&mut self) {
        self.parts.clear();
    }

    pub fn set(&mut self, text: &str) {
        self.clear();
        self.insert(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paste_is_one_thing_and_the_text_is_whole() {
        let mut composer = Composer::default();
        composer.insert("see ");
        composer.insert_collapsed("1\n2\n3");
        composer.insert("!\nx");
        assert_eq!(composer.text(), "see 1\n2\n3!\nx");
        let shown = |c: &Composer| c.shown(|n, text| format!("<{n}: {}>", text.len()));
        assert_eq!(shown(&composer), "see <1: 5>!\nx");
        composer.backspace();
        composer.backspace();
        composer.backspace();
        assert_eq!(shown(&composer), "see <1: 5>");
        composer.backspace();
        composer.insert_collapsed("4");
        assert_eq!((shown(&composer), composer.text()), ("see <2: 1>".to_owned(), "see 4".to_owned()));
        composer.set("a\nb");
        for left in ["a\n", "a", ""] {
            composer.clear_line();
            assert_eq!((composer.text().as_str(), composer.is_empty()), (left, left.is_empty()));
        }
    }
}
