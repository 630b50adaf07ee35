//! Selectors: how people and agents name sessions. A comma list; a session matches if any part does.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::path::Path;

use crate::id::{MIN_PARTIAL, SessionId};
use crate::record::SessionRecord;
use crate::state::State;

/// A parsed selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    parts: Vec<(String, Part)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// A full id: a session's, or a harness's own in the same form.
    Id(SessionId),
    /// A label, an id's prefix, or a harness's own id in full.
    Name,
    /// A label with `*` or `?`.
    Glob,
    /// `.`
    Caller,
    /// `@all`
    All,
    /// `@children`
    Children,
    /// `@parent`
    Parent,
    /// `state:…`
    InState(State),
    /// `dir:…`
    Dir(String),
}

/// Why a selector cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SelectorError {
    /// It cannot be read.
    #[error("bad selector {text:?}: {why}")]
    Bad {
        /// The part.
        text: String,
        /// What is wrong with it.
        why: String,
    },
    /// A part that names one thing matches nothing.
    #[error("no session {0:?}")]
    NotFound(String),
    /// A prefix fits several.
    #[error("{text:?} fits {} sessions: {}", candidates.len(), candidates.join(", "))]
    Ambiguous {
        /// What was given.
        text: String,
        /// `label (short id)` of each.
        candidates: Vec<String>,
    },
    /// `.`, `@children` or `@parent` from a caller that is no session.
    #[error("{0:?} needs a caller that is a session")]
    NoCaller(String),
}

/// One session that a selector matched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Match {
    /// The session.
    pub id: SessionId,
    /// True if a part named it (an id, a label, a harness id), false if a broad part swept it in.
    pub named: bool,
}

impl Selector {
    /// Reads a selector.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let bad = |text: &str, why: &str| SelectorError::Bad { text: text.to_owned(), why: why.to_owned() };
        let mut parts: Vec<(String, Part)> = Vec::new();
        for word in text.split(',') {
            // `state:asking,review`: no label is a state's word, so that it can only go on with the states.
            let more =
                matches!(parts.last(), Some((_, Part::InState(_)))).then(|| word.parse().ok()).flatten();
            let part = match word {
                _ if more.is_some() => more.map_or(Part::Name, Part::InState),
                "" => return Err(bad(text, "an empty part")),
                "." => Part::Caller,
                "@all" => Part::All,
                "@children" => Part::Children,
                "@parent" => Part::Parent,
                "@operator" => return Err(bad(word, "the person is a recipient, not a session")),
                w if w.starts_with('@') => return Err(bad(w, "only @all, @children, @parent, @operator")),
                w => match w.split_once(':') {
                    Some(("state", state)) => Part::InState(
                        state.parse().map_err(|e: crate::state::BadState| bad(w, &e.to_string()))?,
                    ),
                    Some(("dir", dir)) if !dir.is_empty() => Part::Dir(dir.to_owned()),
                    Some(_) => return Err(bad(w, "only state: and dir:")),
                    None if w.contains(['*', '?']) => Part::Glob,
                    None => w.parse().map_or(Part::Name, Part::Id),
                },
            };
            parts.push((word.to_owned(), part));
        }
        Ok(Self { parts })
    }

    /// Parses several command-line words as one selector.
    pub fn parse_all(words: &[String]) -> Result<Option<Self>, SelectorError> {
        if words.is_empty() { Ok(None) } else { Self::parse(&words.join(",")).map(Some) }
    }

    /// True if some part sweeps (a glob, `@all`, `@children`, `state:`, `dir:`): such a follow re-enumerates.
    pub fn is_broad(&self) -> bool {
        self.parts.iter().any(|(_, p)| {
            matches!(p, Part::Glob | Part::All | Part::Children | Part::InState(_) | Part::Dir(_))
        })
    }

    /// The words of a selector of which each names one thing, or nothing where some part sweeps: a caller may
    /// then look just those up.
    pub fn words(&self) -> Option<impl Iterator<Item = &str>> {
        (!self.is_broad()).then(|| self.parts.iter().map(|(text, _)| text.as_str()))
    }

    /// The sessions of `records` that match, each once, in the order of the parts. A part that names one thing
    /// and matches nothing is an error; a broad part may match nothing.
    pub fn resolve<'a>(
        &self,
        records: impl Iterator<Item = &'a SessionRecord> + Clone,
        caller: Option<SessionId>,
    ) -> Result<Vec<Match>, SelectorError> {
        let mut found: Vec<Match> = Vec::new();
        let mut places: HashMap<SessionId, usize> = HashMap::new();
        let mut seen: HashSet<&str> = HashSet::new();
        for (text, part) in &self.parts {
            if !seen.insert(text) {
                continue;
            }
            let named = matches!(part, Part::Id(_) | Part::Name | Part::Caller | Part::Parent);
            let ids = resolve_part(text, part, records.clone(), caller)?;
            if named && ids.is_empty() {
                return Err(SelectorError::NotFound(text.clone()));
            }
            for id in ids {
                match places.entry(id) {
                    Entry::Occupied(place) => found[*place.get()].named |= named,
                    Entry::Vacant(place) => {
                        place.insert(found.len());
                        found.push(Match { id, named });
                    }
                }
            }
        }
        Ok(found)
    }

    /// Exactly one session; more are an error that lists them.
    pub fn resolve_one<'a>(
        &self,
        records: impl Iterator<Item = &'a SessionRecord> + Clone,
        caller: Option<SessionId>,
    ) -> Result<SessionId, SelectorError> {
        let found = self.resolve(records.clone(), caller)?;
        match found.as_slice() {
            [] => Err(SelectorError::NotFound(self.to_string())),
            [one] => Ok(one.id),
            many => Err(SelectorError::Ambiguous {
                text: self.to_string(),
                candidates: records.filter(|r| many.iter().any(|m| m.id == r.id)).map(shown).collect(),
            }),
        }
    }
}

impl std::fmt::Display for Selector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let words: Vec<&str> = self.parts.iter().map(|(text, _)| text.as_str()).collect();
        f.write_str(&words.join(","))
    }
}

fn shown(record: &SessionRecord) -> String {
    format!("{} ({})", record.label, record.id.short())
}

fn resolve_part<'a>(
    text: &str,
    part: &Part,
    records: impl Iterator<Item = &'a SessionRecord> + Clone,
    caller: Option<SessionId>,
) -> Result<Vec<SessionId>, SelectorError> {
    let me = || caller.ok_or_else(|| SelectorError::NoCaller(text.to_owned()));
    let those = |keep: &dyn Fn(&SessionRecord) -> bool| -> Vec<SessionId> {
        records.clone().filter(|r| keep(r)).map(|r| r.id).collect()
    };
    Ok(match part {
        // A harness's own id may be of the same form.
        Part::Id(id) => match those(&|r| r.id == *id) {
            none if none.is_empty() => those(&|r| r.bindings.iter().any(|b| b.id.eq_ignore_ascii_case(text))),
            own => own,
        },
        Part::Caller => vec![me()?],
        Part::All => those(&|_| true),
        Part::Children => {
            let me = me()?;
            those(&|r| r.parent == Some(me))
        }
        Part::Parent => {
            let me = me()?;
            records.clone().find(|r| r.id == me).and_then(|r| r.parent).into_iter().collect()
        }
        Part::InState(state) => those(&|r| r.state == *state),
        Part::Dir(dir) => {
            let dir = std::fs::canonicalize(dir).unwrap_or_else(|_| dir.into());
            those(&|r| Path::new(&r.dir).starts_with(&dir))
        }
        Part::Glob => those(&|r| glob(text.as_bytes(), r.label.as_bytes())),
        Part::Name => {
            // The exact label wins over an id that happens to begin so: people chose the label.
            let by_label = those(&|r| r.label == text);
            if !by_label.is_empty() {
                return Ok(by_label);
            }
            let by_harness = those(&|r| r.bindings.iter().any(|b| b.id == text));
            if !by_harness.is_empty() {
                return Ok(by_harness);
            }
            let lower = text.to_ascii_lowercase();
            let is_prefix =
                lower.len() >= MIN_PARTIAL && lower.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
            let by_prefix = if is_prefix { those(&|r| r.id.to_string().starts_with(&lower)) } else { vec![] };
            if by_prefix.len() > 1 {
                return Err(SelectorError::Ambiguous {
                    text: text.to_owned(),
                    candidates: records.filter(|r| by_prefix.contains(&r.id)).map(shown).collect(),
                });
            }
            by_prefix
        }
    })
}

/// `*` is any text, `?` any one byte; labels are ASCII.
fn glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    // The last star, and how much of the text it stands for: no earlier one needs to be tried again.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match (pattern.get(p), star) {
            (Some(b'*'), _) => {
                star = Some((p + 1, t));
                p += 1;
            }
            (Some(c), _) if *c == b'?' || *c == text[t] => {
                p += 1;
                t += 1;
            }
            (_, Some((after, from))) => {
                star = Some((after, from + 1));
                (p, t) = (after, from + 1);
            }
            (_, None) => return false,
        }
    }
    pattern[p..].iter().all(|c| *c == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Binding;

    fn record(id: &str, label: &str) -> SessionRecord {
        serde_json::from_value(serde_json::json!({
            "id": id, "label": label, "title": label, "dir": "/w/x", "channel": {"kind": "mailbox"},
            "created": "2026-11-30T12:00:00Z", "state": "review", "state_at": "2026-11-30T12:00:00Z",
            "state_by": "agent", "last_seq": 1,
            "bindings": [{"harness": "claude", "id": format!("conv-{label}"), "since": "2026-11-30T12:00:00Z", "why": "startup"}],
        }))
        .unwrap()
    }

    #[test]
    fn stars_cost_no_more_than_the_text_is_long() {
        for (pattern, text, fits) in [
            ("*", "", true),
            ("?*", "", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-b-b-cx", false),
            ("*a", "aaa", true),
            ("a?c*", "abc", true),
        ] {
            assert_eq!(glob(pattern.as_bytes(), text.as_bytes()), fits, "{pattern} {text}");
        }
        // With every star tried at every place this would not come to an end.
        assert!(!glob(("*a".repeat(30) + "b").as_bytes(), "a".repeat(64).as_bytes()));
    }

    #[test]
    fn the_ways_to_name_a_session() {
        let a = record("5f1c2d4a-90c3-4f0e-8a17-c2b6d1e4f700", "api-1");
        let mut b = record("5f1c2d4b-90c3-4f0e-8a17-c2b6d1e4f700", "api-2");
        let mut c = record("3f0a91c2-7d1e-4c55-9a6b-0d5a1f2e3b4c", "web");
        b.parent = Some(a.id);
        let own = "0199c2d4-90c3-7f0e-8a17-c2b67be21c09";
        c.bindings.extend([
            Binding { id: own.into(), ..c.bindings[0].clone() },
            Binding { id: a.id.to_string(), ..c.bindings[0].clone() },
        ]);
        let all = [a.clone(), b.clone(), c.clone()];
        let labels = |text: &str| -> Result<Vec<String>, SelectorError> {
            let found = Selector::parse(text)?.resolve(all.iter(), Some(a.id))?;
            Ok(found.iter().map(|m| all.iter().find(|r| r.id == m.id).unwrap().label.clone()).collect())
        };
        for (text, expected) in [
            ("api-1", "api-1"),
            ("5f1c2d4a", "api-1"),
            ("5F1C2D4A-90c3", "api-1"),
            ("3f0a91c2-7d1e-4c55-9a6b-0d5a1f2e3b4c", "web"),
            ("api-*", "api-1 api-2"),
            ("web,api-*,web", "web api-1 api-2"),
            ("conv-web", "web"),
            (own, "web"),
            ("0199C2D4-90C3-7F0E-8A17-C2B67BE21C09", "web"),
            ("5f1c2d4a-90c3-4f0e-8a17-c2b6d1e4f700", "api-1"),
            (".", "api-1"),
            ("@children", "api-2"),
            ("@all", "api-1 api-2 web"),
            ("state:review", "api-1 api-2 web"),
            ("state:done", ""),
            ("state:done,review", "api-1 api-2 web"),
            ("state:done,web", "web"),
            ("dir:/w", "api-1 api-2 web"),
            ("dir:/w/xx", ""),
            ("zzz-*", ""),
        ] {
            assert_eq!(labels(text).unwrap().join(" "), expected, "{text}");
        }
        assert!(
            matches!(labels("5f1c2d"), Err(SelectorError::Ambiguous { candidates, .. }) if candidates.len() == 2)
        );
        assert!(matches!(labels("5f1c2"), Err(SelectorError::NotFound(_))), "shorter than a prefix may be");
        assert!(matches!(labels("nobody"), Err(SelectorError::NotFound(_))));
        assert!(
            matches!(labels("web,review"), Err(SelectorError::NotFound(_))),
            "a state alone is no selector"
        );
        for bad in [
            "",
            "a,",
            "state:done,",
            "state:done,frobnicate:x",
            "@bogus",
            "state:offline",
            "what:x",
            "@operator",
        ] {
            assert!(matches!(labels(bad), Err(SelectorError::Bad { .. })), "{bad}");
        }
        assert!(Selector::parse("web,api-*").unwrap().words().is_none());
        let named = Selector::parse("web,.").unwrap();
        assert_eq!(named.words().unwrap().collect::<Vec<_>>(), ["web", "."]);
        let one = Selector::parse("api-*").unwrap().resolve_one(all.iter(), None);
        assert!(matches!(one, Err(SelectorError::Ambiguous { .. })));
        assert!(matches!(
            Selector::parse(".").unwrap().resolve(all.iter(), None),
            Err(SelectorError::NoCaller(_))
        ));
    }
}
