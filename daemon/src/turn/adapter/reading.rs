//! What the records of a harness mean, as data, and what a run's records come to when they are read with it.

use minder_proto::turn::line::Usage;
use serde_json::Value;

use super::TEXT_MAX;
use super::plan::{Fields, Stream};
use super::record::{at, fits, text};
use super::refusal::{self, Refusal};

/// How much of a text is looked at for words, in bytes.
pub const WORDS_MAX: usize = 4 * 1024;

/// Where things stand in a harness's records.
#[derive(Debug)]
pub struct Reading {
    /// The conversation's id; the last one counts.
    pub conversation: &'static [At],
    /// The pieces of the final text.
    pub text: At,
    /// Which of them are one text.
    pub joined: Joined,
    /// Records that end a run.
    pub ends: &'static [End],
    /// Records that tell what went wrong, before the end or without one.
    pub troubles: &'static [Trouble],
    /// What was used.
    pub usage: &'static [Used],
    /// Ids of messages that the harness has taken for good.
    pub taken: &'static [At],
}

/// A path in records with these fields.
#[derive(Debug)]
pub struct At {
    pub line: Fields,
    pub path: &'static str,
}

/// Which pieces of text belong together.
#[derive(Debug, Clone, Copy)]
pub enum Joined {
    /// The last piece is the text.
    Last,
    /// The last piece is the text, but where several messages were given each piece answers some of them.
    Each,
    /// The last pieces that have the same text at this path.
    Same(&'static str),
    /// The pieces since the last record with these fields.
    Since(&'static [Fields]),
}

/// A record that ends a run.
#[derive(Debug)]
pub struct End {
    pub line: Fields,
    /// It ended well.
    pub well: bool,
}

/// A record that tells what went wrong.
#[derive(Debug)]
pub struct Trouble {
    pub line: Fields,
    /// Where a kind stands, the most telling one first.
    pub kinds: &'static [&'static str],
    /// Where an HTTP status stands.
    pub status: Option<&'static str>,
    /// Where the words stand, for people.
    pub words: &'static [&'static str],
    /// Where the end of a limit stands, in seconds since the epoch.
    pub reset: Option<&'static str>,
    /// What an earlier record said of the kind is more exact.
    pub coarse: bool,
}

/// Where numbers of what was used stand. The first of several that gives any is the one that counts.
#[derive(Debug)]
pub struct Used {
    pub line: Fields,
    /// What is one count: records with the same text here count once, the last of them.
    pub id: Option<&'static str>,
    pub input: &'static str,
    /// The number of input tokens counts cached ones too.
    pub input_has_cached: bool,
    pub output: &'static str,
    pub cache_read: &'static str,
    pub cache_write: &'static str,
    pub cost: Option<&'static str>,
    /// It counts the whole conversation, so that of a resumed one nothing is known.
    pub of_conversation: bool,
}

/// What the records come to.
#[derive(Debug, Default)]
pub struct Read {
    pub conversation: Option<String>,
    pub text: String,
    /// The last end, unless something went on after it.
    pub end: Option<bool>,
    /// What was told of the last end that was not well.
    pub failed: Option<Told>,
    /// What was told last, if nothing went on after it.
    pub trouble: Option<Told>,
    pub usage: Usage,
    pub taken: Vec<String>,
    /// There was any record that the stream's rules know.
    pub any: bool,
}

/// What one record told of what went wrong.
#[derive(Debug, Default)]
pub struct Told {
    pub typed: Option<Refusal>,
    pub words: Option<String>,
    pub reset: Option<i64>,
}

impl Reading {
    /// Reads a run's records. `several` messages were given; the conversation was `resumed`.
    pub fn read(
        &self,
        stream: &Stream,
        records: impl Iterator<Item = Value>,
        several: bool,
        resumed: bool,
    ) -> Read {
        let mut read = Read::default();
        let mut pieces: Vec<(String, Option<String>)> = Vec::new();
        let mut counts: Vec<Vec<(Option<String>, Usage)>> = self.usage.iter().map(|_| Vec::new()).collect();
        for record in records {
            for place in self.conversation.iter().filter(|place| fits(&record, place.line)) {
                read.conversation = text(&record, place.path).map(str::to_owned).or(read.conversation);
            }
            let taken = self.taken.iter().filter(|place| fits(&record, place.line));
            read.taken.extend(taken.filter_map(|place| text(&record, place.path).map(str::to_owned)));
            let progress = stream.progress.iter().any(|fields| fits(&record, fields));
            read.any |= progress;
            if progress {
                // What went on went on in spite of it.
                read.end = None;
                read.trouble = None;
            }
            for trouble in self.troubles.iter().filter(|trouble| fits(&record, trouble.line)) {
                read.trouble = Some(trouble.told(&record, read.trouble.take().unwrap_or_default()));
            }
            if let Joined::Since(breaks) = self.joined
                && breaks.iter().any(|fields| fits(&record, fields))
            {
                pieces.clear();
            }
            if fits(&record, self.text.line) {
                let id = match self.joined {
                    Joined::Same(path) => text(&record, path).map(str::to_owned),
                    Joined::Last | Joined::Each | Joined::Since(_) => None,
                };
                let whole: String =
                    at(&record, self.text.path).into_iter().filter_map(Value::as_str).collect();
                pieces.push((whole, id));
            }
            for (used, counted) in self.usage.iter().zip(&mut counts) {
                if fits(&record, used.line) {
                    let id = used.id.and_then(|path| text(&record, path)).map(str::to_owned);
                    counted.retain(|(known, _)| id.is_none() || *known != id);
                    counted.push((id, used.of(&record)));
                }
            }
            if let Some(end) = self.ends.iter().find(|end| fits(&record, end.line)) {
                read.any = true;
                read.end = Some(end.well);
                if !end.well {
                    read.failed = Some(read.trouble.take().unwrap_or_default());
                }
            }
        }
        read.text = self.join(pieces, several);
        let says =
            |counted: &[(Option<String>, Usage)]| counted.iter().any(|(_, usage)| *usage != Usage::default());
        let counted = self.usage.iter().zip(counts).find(|(_, counted)| says(counted));
        if let Some((used, counted)) = counted
            && !(used.of_conversation && resumed)
        {
            read.usage = counted.into_iter().map(|(_, usage)| usage).reduce(sum).unwrap_or_default();
        }
        read
    }

    fn join(&self, pieces: Vec<(String, Option<String>)>, several: bool) -> String {
        let (between, kept) = match self.joined {
            Joined::Each if several => ("\n\n", pieces.len()),
            Joined::Last | Joined::Each => ("", 1),
            Joined::Same(_) => {
                let last = pieces.last().map(|(_, id)| id.clone());
                ("", pieces.iter().rev().take_while(|(_, id)| Some(id) == last.as_ref()).count())
            }
            Joined::Since(_) => ("", pieces.len()),
        };
        let skipped = pieces.len().saturating_sub(kept);
        let texts = pieces.into_iter().skip(skipped).map(|(text, _)| text).filter(|text| !text.is_empty());
        let mut whole = texts.collect::<Vec<_>>().join(between);
        whole.truncate(up_to(&whole, TEXT_MAX).len());
        whole
    }
}

/// The beginning of a text, at most so many bytes.
fn up_to(text: &str, bytes: usize) -> &str {
    let end = (0..=bytes.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or(0)]
}

impl Trouble {
    /// What this record tells, with what an earlier one told where this one does not.
    fn told(&self, record: &Value, earlier: Told) -> Told {
        let mut kinds = self.kinds.iter().filter_map(|path| text(record, path));
        let status = self.status.and_then(|path| at(record, path).into_iter().find_map(Value::as_u64));
        let words = self.words.iter().filter_map(|path| text(record, path)).find(|w| !w.trim().is_empty());
        let typed = kinds.find_map(refusal::of_kind).or_else(|| status.and_then(refusal::of_status));
        let reset = self.reset.and_then(|path| at(record, path).into_iter().find_map(Value::as_i64));
        Told {
            typed: if self.coarse { earlier.typed.or(typed) } else { typed.or(earlier.typed) },
            words: words.map(|w| up_to(w, WORDS_MAX).to_owned()).or(earlier.words),
            reset: reset.or(earlier.reset),
        }
    }
}

impl Used {
    fn of(&self, record: &Value) -> Usage {
        let whole =
            |path: &str| at(record, path).into_iter().filter_map(Value::as_u64).reduce(u64::saturating_add);
        let cache_read = whole(self.cache_read);
        let cached = if self.input_has_cached { cache_read.unwrap_or(0) } else { 0 };
        let cost = self.cost.map(|path| at(record, path)).unwrap_or_default();
        Usage {
            input_tokens: whole(self.input).map(|input| input.saturating_sub(cached)),
            output_tokens: whole(self.output),
            cache_read_tokens: cache_read,
            cache_write_tokens: whole(self.cache_write),
            cost_usd: cost.into_iter().filter_map(Value::as_f64).reduce(|a, b| a + b),
        }
    }
}

fn sum(a: Usage, b: Usage) -> Usage {
    fn add<T: std::ops::Add<Output = T>>(a: Option<T>, b: Option<T>) -> Option<T> {
        match (a, b) {
            (Some(a), Some(b)) => Some(a + b),
            (a, b) => a.or(b),
        }
    }
    Usage {
        input_tokens: add(a.input_tokens, b.input_tokens),
        output_tokens: add(a.output_tokens, b.output_tokens),
        cache_read_tokens: add(a.cache_read_tokens, b.cache_read_tokens),
        cache_write_tokens: add(a.cache_write_tokens, b.cache_write_tokens),
        cost_usd: add(a.cost_usd, b.cost_usd),
    }
}
