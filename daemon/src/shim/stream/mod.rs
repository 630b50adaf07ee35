//! What the bytes of a typed stream mean for the windows: lines of JSON against an adapter's rules. A line is never
//! kept, whatever its length: it is scanned as it comes, and of it only the few strings stay that a rule asks for.

mod scan;
#[cfg(test)]
mod tests;

use minder_proto::turn::stream::{Rules, Shape, Tool};

use scan::{ITEM, Scanner, Sink};

/// Longest string that is kept of a line; a longer one is none that a rule asks for.
const VALUE_MAX: usize = 256;
/// Tool calls of one line and rule that are told.
const CALLS_MAX: usize = 64;

/// What one line was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// It is progress.
    pub progress: bool,
    /// Tool calls that begin.
    pub starts: Vec<String>,
    /// Work behind a call that begins.
    pub tasks: Vec<String>,
    /// Tool calls that end.
    pub ends: Vec<String>,
    /// It is the final answer.
    pub result: bool,
    /// That answer says that the run failed.
    pub failed: bool,
}

/// The lines of one stream.
pub struct Lines {
    scanner: Scanner,
    meaning: Meaning,
}

impl Lines {
    /// A stream from its beginning.
    pub fn new(rules: &Rules) -> Self {
        Self { scanner: Scanner::default(), meaning: Meaning::new(rules) }
    }

    /// Takes bytes; `told` hears of every line that ends in them.
    pub fn push(&mut self, mut bytes: &[u8], mut told: impl FnMut(Line)) {
        while !bytes.is_empty() {
            let (taken, ended) = self.scanner.scan(bytes, &mut self.meaning);
            bytes = &bytes[taken..];
            if ended {
                self.end(&mut told);
            }
        }
    }

    /// The stream ends: what stands behind its last newline is a line too.
    pub fn finish(&mut self, mut told: impl FnMut(Line)) {
        self.end(&mut told);
    }

    fn end(&mut self, told: &mut impl FnMut(Line)) {
        if self.scanner.finish() {
            told(self.meaning.line());
        }
        self.meaning.clear();
    }
}

/// A string of a line that some rule asks for.
#[derive(Default)]
struct Slot {
    path: Vec<u8>,
    value: Option<String>,
}

/// Slots by path, each once.
#[derive(Default)]
struct Slots(Vec<Slot>);

impl Slots {
    fn at(&mut self, path: Vec<u8>) -> usize {
        self.0.iter().position(|slot| slot.path == path).unwrap_or_else(|| {
            self.0.push(Slot { path, value: None });
            self.0.len() - 1
        })
    }

    fn find(&mut self, path: &[u8]) -> Option<&mut Slot> {
        self.0.iter_mut().find(|slot| slot.path == path)
    }

    fn clear(&mut self) {
        self.0.iter_mut().for_each(|slot| slot.value = None);
    }

    fn fit(&self, wanted: &[(usize, String)]) -> bool {
        wanted.iter().all(|(slot, text)| self.0[*slot].value.as_ref() == Some(text))
    }
}

/// A shape, by slots.
type Wanted = Vec<(usize, String)>;

struct Call {
    task: bool,
    line: Wanted,
    item: Wanted,
    id: usize,
    /// Where it is looked for in the items of an array: their path, and what is asked for below it.
    each: Option<(Vec<u8>, Slots)>,
    /// Ids of items that fit, if the line does.
    ids: Vec<String>,
}

impl Call {
    fn new(tool: &Tool, of_line: &mut Slots) -> Self {
        let line = wanted(&tool.line, b"", of_line);
        let task = tool.task;
        match &tool.each {
            None => {
                let item = wanted(&tool.item, b"", of_line);
                let id = of_line.at(below(b"", &tool.id));
                Self { task, line, item, id, each: None, ids: Vec::new() }
            }
            Some(each) => {
                let place = [each.as_bytes(), b".", ITEM].concat();
                let mut slots = Slots::default();
                let item = wanted(&tool.item, &place, &mut slots);
                let id = slots.at(below(&place, &tool.id));
                Self { task, line, item, id, each: Some((place, slots)), ids: Vec::new() }
            }
        }
    }

    /// The ids of the calls of a line that is complete.
    fn ids(&mut self, of_line: &Slots) -> Vec<String> {
        if !of_line.fit(&self.line) {
            return Vec::new();
        }
        if self.each.is_none() && of_line.fit(&self.item) {
            self.ids.extend(of_line.0[self.id].value.clone());
        }
        std::mem::take(&mut self.ids)
    }
}

/// The rules, and what the line at hand has of them.
struct Meaning {
    of_line: Slots,
    progress: Vec<Wanted>,
    result: Vec<Wanted>,
    failed: Vec<Wanted>,
    starts: Vec<Call>,
    ends: Vec<Call>,
}

impl Meaning {
    fn new(rules: &Rules) -> Self {
        let mut of_line = Slots::default();
        let shapes = |shapes: &[Shape], slots: &mut Slots| -> Vec<Wanted> {
            shapes.iter().map(|shape| wanted(shape, b"", slots)).collect()
        };
        let calls = |tools: &[Tool], slots: &mut Slots| -> Vec<Call> {
            tools.iter().map(|tool| Call::new(tool, slots)).collect()
        };
        let progress = shapes(&rules.progress, &mut of_line);
        let result = shapes(&rules.result, &mut of_line);
        let failed = shapes(&rules.failed, &mut of_line);
        let starts = calls(&rules.tool_start, &mut of_line);
        let ends = calls(&rules.tool_end, &mut of_line);
        Self { of_line, progress, result, failed, starts, ends }
    }

    fn line(&mut self) -> Line {
        let slots = &self.of_line;
        let any = |shapes: &[Wanted]| shapes.iter().any(|wanted| slots.fit(wanted));
        let (progress, result) = (any(&self.progress), any(&self.result));
        let failed = result && any(&self.failed);
        let ids = |calls: &mut [Call], task: Option<bool>| {
            let calls = calls.iter_mut().filter(|call| task.is_none_or(|task| call.task == task));
            calls.flat_map(|call| call.ids(slots)).collect::<Vec<String>>()
        };
        let (starts, tasks) = (ids(&mut self.starts, Some(false)), ids(&mut self.starts, Some(true)));
        Line { progress, starts, tasks, ends: ids(&mut self.ends, None), result, failed }
    }

    fn clear(&mut self) {
        self.of_line.clear();
        for call in self.starts.iter_mut().chain(&mut self.ends) {
            call.ids.clear();
            if let Some((_, slots)) = &mut call.each {
                slots.clear();
            }
        }
    }

    fn slots(&mut self) -> impl Iterator<Item = &mut Slots> {
        let calls = self.starts.iter_mut().chain(&mut self.ends);
        let items = calls.filter_map(|call| call.each.as_mut().map(|(_, slots)| slots));
        std::iter::once(&mut self.of_line).chain(items)
    }
}

impl Sink for Meaning {
    fn wants(&mut self, path: &[u8]) -> bool {
        let mut wants = false;
        for slots in self.slots() {
            if let Some(slot) = slots.find(path) {
                // The last of several of one name counts.
                slot.value = None;
                wants = true;
            }
        }
        wants
    }

    fn string(&mut self, path: &[u8], value: &str) {
        for slots in self.slots() {
            if let Some(slot) = slots.find(path) {
                slot.value = Some(value.to_owned());
            }
        }
    }

    fn item_ends(&mut self, path: &[u8]) {
        for call in self.starts.iter_mut().chain(&mut self.ends) {
            let Some((place, slots)) = &mut call.each else { continue };
            if place == path {
                if slots.fit(&call.item) && call.ids.len() < CALLS_MAX {
                    call.ids.extend(slots.0[call.id].value.take());
                }
                slots.clear();
            }
        }
    }
}

fn wanted(shape: &Shape, place: &[u8], slots: &mut Slots) -> Wanted {
    shape.0.iter().map(|(path, text)| (slots.at(below(place, path)), text.clone())).collect()
}

fn below(place: &[u8], path: &str) -> Vec<u8> {
    if place.is_empty() { path.as_bytes().to_vec() } else { [place, b".", path.as_bytes()].concat() }
}
