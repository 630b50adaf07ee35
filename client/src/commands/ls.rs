//! `session ls`: a table of sessions, those that want somebody first. Reads files only.

use std::time::Duration;

use clap::Args;
use minder_proto::caller::Identity;
use minder_proto::error::exit;
use minder_proto::id::SessionId;
use minder_proto::layout::Home;
use minder_proto::record::{Channel, SessionRecord};
use minder_proto::snapshot;
use minder_proto::stamp::{Stamp, short_age};
use minder_proto::state::State;
use minder_proto::text::{first_line, one_line};
use serde::Serialize;

use crate::cli::Outcome;
use crate::commands::inbox::for_you;
use crate::context::Context;
use crate::fault::CommandError;
use crate::look::Look;
use crate::table::{self, Column, STAYS};

/// Options of `ls`.
#[derive(Args, Debug, Default)]
#[command(after_help = "\
Where standard output is no terminal, notes are cut at 80 columns and no
column is left out for want of width; --json has everything.

SEL: minder help selectors.

Examples:
  minder ls
  minder ls 'api-*' state:review")]
pub struct LsArgs {
    /// Which sessions [default: all]
    #[arg(value_name = "SEL")]
    sessions: Vec<String>,
    /// Also those that ended over a day ago and wait for nothing
    #[arg(long)]
    all: bool,
}

/// After this long an ended session that waits for nothing is only counted.
const OLD: Duration = Duration::from_secs(86_400);

/// Lists.
pub fn run(args: &LsArgs, context: &mut Context) -> Outcome {
    let listing = Listing::read(context, &args.sessions, args.all)?;
    if context.printer.is_json() {
        context.printer.object(&listing)?;
    } else {
        for line in listing.lines(context.printer.look()) {
            context.printer.line(line)?;
        }
    }
    for line in &listing.unreadable {
        context.printer.tell(one_line(line));
    }
    Ok(exit::OK)
}

/// What `ls` shows.
#[derive(Debug, Serialize)]
pub struct Listing {
    /// The sessions that are listed.
    pub sessions: Vec<Row>,
    /// Those that are only counted.
    pub hidden: usize,
    /// Sessions whose files cannot be read, with why.
    pub unreadable: Vec<String>,
    /// In a person's shell: messages to the person that they have not seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_you: Option<usize>,
    /// A selector that met nothing.
    #[serde(skip)]
    pub unmet: Option<Unmet>,
}

/// What was asked for and met nothing, and how many sessions there are beside.
#[derive(Debug)]
pub struct Unmet {
    asked: String,
    others: usize,
}

/// One session in a list.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    id: SessionId,
    label: String,
    title: String,
    state: State,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    turn_end: bool,
    /// True if somebody should look at it.
    news: bool,
    state_at: Stamp,
    age_s: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    harness: Option<String>,
    dir: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<SessionId>,
    waiting: usize,
    held: usize,
    watchers: usize,
    #[serde(rename = "where", skip_serializing_if = "Option::is_none")]
    place: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended: Option<Stamp>,
}

impl Listing {
    /// Reads the sessions that the words name.
    pub fn read(context: &Context, words: &[String], all: bool) -> Result<Self, CommandError> {
        let home = context.home()?;
        let fleet = context.fleet()?;
        let caller = context.identity(&fleet)?;
        // A ledger that cannot be read hides no session.
        let for_you = (caller == Identity::Operator)
            .then(|| snapshot::queue(&home.operator()).map_or(0, |queue| queue.len()));
        let caller = caller.session();
        let now = Stamp::now();
        let mut sessions: Vec<Row> =
            fleet.select(home, words, caller)?.into_iter().map(|r| Row::read(home, r, now)).collect();
        let before = sessions.len();
        // A session that was named is listed, however old it is.
        if words.is_empty() && !all {
            sessions.retain(|row| !row.is_over(now));
        }
        sessions.sort_by_key(|row| (row.state.rank(), std::cmp::Reverse(row.state_at)));
        let hidden = before - sessions.len();
        let unreadable = fleet.unreadable.iter().map(ToString::to_string).collect();
        let unmet = (!words.is_empty() && before == 0)
            .then(|| Unmet { asked: words.join(" "), others: fleet.records.len() });
        Ok(Self { sessions, hidden, unreadable, for_you, unmet })
    }

    /// True if the store has no session at all.
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty() && self.hidden == 0
    }

    /// The table and the counts, for people.
    pub fn lines(&self, look: Look) -> Vec<String> {
        let mut lines = if self.sessions.is_empty() { Vec::new() } else { self.table(look) };
        let shown = lines.first().is_some_and(|head| head.contains("QUEUE"));
        if shown && self.sessions.iter().any(|r| r.held > 0) {
            lines.push(look.faint("QUEUE: waiting/held (minder queue SEL says why)"));
        }
        lines.push(self.counts());
        lines.extend(for_you(self.for_you.unwrap_or(0)));
        lines
    }

    fn table(&self, look: Look) -> Vec<String> {
        let rows = &self.sessions;
        let column =
            |head, stays, cell: &dyn Fn(&Row) -> String| Column::new(head, stays, rows.iter().map(cell));
        let count = |n: usize| if n == 0 { String::new() } else { n.to_string() };
        let columns = vec![
            column("STATE", STAYS, &Row::state_words),
            column("AGE", STAYS, &|r| short_age(Duration::from_secs(r.age_s))),
            column("SESSION", STAYS, &|r| r.label.clone()),
            column("TITLE", 4, &|r| if r.title == r.label { String::new() } else { one_line(&r.title) }),
            column("NOTE", 6, &|r| r.note.as_deref().map_or_else(String::new, |n| one_line(first_line(n))))
                .giving_way(),
            column("HARNESS", 2, &|r| r.harness.as_deref().map_or_else(String::new, one_line)),
            column("QUEUE", 3, &|r| match (r.waiting, r.held) {
                (waiting, 0) => count(waiting),
                (waiting, held) => format!("{waiting}/{held}"),
            }),
            column("WATCHERS", 1, &|r| count(r.watchers)),
            column("WHERE", 5, &|r| r.place.as_deref().map_or_else(String::new, one_line)),
        ];
        table::lines(columns, look, |row, head, text| match head {
            "STATE" => look.state(rows[row].state, text),
            "AGE" => look.faint(text),
            _ => text.to_owned(),
        })
    }

    fn counts(&self) -> String {
        let news = self.sessions.iter().filter(|r| r.news).count();
        let total = self.sessions.len();
        let mut line = match total {
            0 => self.unmet.as_ref().map_or_else(|| "no sessions".to_owned(), Unmet::line),
            1 => "1 session".to_owned(),
            n => format!("{n} sessions"),
        };
        if total > 0 {
            line.push_str(&match news {
                0 => ": nothing new".to_owned(),
                1 => ": 1 has news for you".to_owned(),
                n => format!(": {n} have news for you"),
            });
        }
        if self.hidden > 0 {
            line.push_str(&format!("; {} ended over a day ago (minder ls --all)", self.hidden));
        }
        line
    }
}

impl Unmet {
    fn line(&self) -> String {
        let others = match self.others {
            0 => "there is none".to_owned(),
            1 => "1 other".to_owned(),
            n => format!("{n} others"),
        };
        format!("no session matches {} ({others})", one_line(&self.asked))
    }
}

impl Row {
    /// Reads what a list shows of a session. What stands beside its record and cannot be read counts as nothing.
    fn read(home: &Home, record: &SessionRecord, now: Stamp) -> Self {
        let queue = snapshot::queue(&home.session(record.id)).unwrap_or_default();
        let process = record.process.as_ref();
        Self {
            id: record.id,
            label: record.label.clone(),
            title: record.title.clone(),
            state: record.state,
            turn_end: record.turn_end,
            news: record.state.is_actionable() || record.turn_end,
            state_at: record.state_at,
            age_s: record.state_at.age(now).as_secs(),
            note: record.note.clone(),
            harness: record.harness.clone(),
            dir: record.dir.clone(),
            parent: record.parent,
            waiting: queue.len(),
            held: queue.held(),
            watchers: snapshot::watchers(home, record.id).map_or(0, |w| w.len()),
            place: place(record),
            ended: process.and_then(|p| p.ended),
        }
    }

    /// True if its process ended long ago and it waits for nothing: no message, no answer, nobody's look.
    fn is_over(&self, now: Stamp) -> bool {
        let wants = matches!(self.state, State::Asking | State::Review | State::Error);
        !wants && self.waiting == 0 && self.ended.is_some_and(|at| at.age(now) > OLD)
    }

    fn state_words(&self) -> String {
        if self.ended.is_some() { format!("{} ended", self.state) } else { self.state.to_string() }
    }
}

/// Where its harness is: the pane that it is typed to, else its process's terminal; or that it has none.
fn place(record: &SessionRecord) -> Option<String> {
    let alive = record.process.as_ref().filter(|p| p.ended.is_none());
    match &record.channel {
        Channel::Tmux { pane, .. } => Some(format!("tmux {pane}")),
        _ => alive.and_then(|p| p.tty.clone()),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn row(label: &str, state: State, age_s: u64, note: &str) -> Row {
        let now = Stamp::from_millis(1_796_040_000_000);
        Row {
            id: SessionId::from_bytes([7; 16]),
            label: label.into(),
            title: label.into(),
            state,
            turn_end: false,
            news: state.is_actionable(),
            state_at: now.minus(Duration::from_secs(age_s)),
            age_s,
            note: (!note.is_empty()).then(|| note.to_owned()),
            harness: Some("claude".into()),
            dir: "/w".into(),
            parent: None,
            waiting: 0,
            held: 0,
            watchers: 0,
            place: None,
            ended: None,
        }
    }

    #[test]
    fn a_list_as_people_see_it() {
        let mut web = row("web", State::Asking, 130, "permission: Bash rm -rf build/\nand more");
        web.place = Some("pts/3".into());
        let mut api = row("api", State::Review, 540, "PR 12\x1b[2J is up, tests green");
        (api.waiting, api.held, api.watchers) = (3, 1, 2);
        let mut infra = row("infra", State::Idle, 840, "Both charts render the same.");
        (infra.turn_end, infra.news, infra.ended) = (true, true, Some(Stamp::from_millis(1)));
        let docs = row("docs", State::Working, 41, "");
        let sessions = vec![web, api, infra, docs];
        let listing = Listing { sessions, hidden: 2, unreadable: vec![], for_you: Some(1), unmet: None };
        let look = Look { columns: Some(78), ..Look::default() };
        let text = listing.lines(look).join("\n");
        expect![[r"
            STATE       AGE  SESSION  NOTE                           HARNESS  QUEUE  WHERE
            asking      2m   web      permission: Bash rm -rf buil…  claude          pts/3
            review      9m   api      PR 12\x1b[2J is up, tests gr…  claude   3/1
            idle ended  14m  infra    Both charts render the same.   claude
            working     41s  docs                                    claude
            QUEUE: waiting/held (minder queue SEL says why)
            4 sessions: 3 have news for you; 2 ended over a day ago (minder ls --all)
            1 message for you: minder inbox"]]
        .assert_eq(&text);
    }

    #[test]
    fn a_selector_that_meets_nothing_is_no_empty_store() {
        let unmet = |others| Unmet { asked: "state:review".into(), others };
        let of = |unmet| {
            Listing { sessions: vec![], hidden: 0, unreadable: vec![], for_you: None, unmet }
                .lines(Look::default())
        };
        assert_eq!(of(Some(unmet(8))), ["no session matches state:review (8 others)"]);
        assert_eq!(of(Some(unmet(1))), ["no session matches state:review (1 other)"]);
        assert_eq!(of(Some(unmet(0))), ["no session matches state:review (there is none)"]);
        assert_eq!(of(None), ["no sessions"]);
    }

    #[test]
    fn what_ended_long_ago_and_waits_for_nothing_is_over() {
        let now = Stamp::from_millis(1_796_040_000_000);
        let ended = |state, hours: u64, waiting| Row {
            ended: Some(now.minus(Duration::from_secs(hours * 3_600))),
            waiting,
            ..row("x", state, 9, "")
        };
        assert!(ended(State::Idle, 25, 0).is_over(now) && ended(State::Done, 25, 0).is_over(now));
        assert!(!ended(State::Idle, 23, 0).is_over(now));
        assert!(!ended(State::Idle, 25, 1).is_over(now));
        assert!(!ended(State::Asking, 25, 0).is_over(now));
        assert!(!row("x", State::Idle, 999_999, "").is_over(now), "its process lives");
    }
}
