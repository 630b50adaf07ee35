//! `session watch list`: relations as the files show them, each with the last notice that it gave. Reads files
//! only.

use clap::Args;
use minder_proto::error::exit;
use minder_proto::event::{Body, Receipt};
use minder_proto::id::{MessageId, SessionId};
use minder_proto::layout::Home;
use minder_proto::record::Watcher;
use minder_proto::snapshot;
use minder_proto::stamp::{Stamp, short_age};
use minder_proto::timeline;
use serde::Serialize;

use crate::cli::Outcome;
use crate::commands::show::{source_word, states_words};
use crate::context::Context;
use crate::fault::CommandError;
use crate::fleet::Fleet;
use crate::holds;
use crate::look::Look;
use crate::table::{self, Column, STAYS};

/// Options of `watch list`.
#[derive(Args, Debug)]
#[command(after_help = "\
In a person's shell all relations are listed.

Example:
  minder watch list --of api")]
pub struct ListArgs {
    /// Who watches this session, instead of what the caller watches
    #[arg(long, value_name = "SEL")]
    of: Option<String>,
}

/// How many of a watcher's last lines are searched for the last notice.
const SEARCHED: usize = 4_096;

/// Lists.
pub fn run(args: &ListArgs, context: &mut Context) -> Outcome {
    let fleet = context.fleet()?;
    let home = context.home()?.clone();
    let caller = context.identity(&fleet)?.session();
    let (targets, watcher): (Vec<SessionId>, _) = match &args.of {
        Some(word) => (vec![fleet.one(&home, word, caller)?.id], None),
        // A person watches nothing durably: all there is.
        None => (fleet.records.iter().map(|r| r.id).collect(), caller),
    };
    let mut rows = Vec::new();
    for target in targets {
        let relations = match snapshot::watchers(&home, target) {
            Ok(relations) => relations,
            // One bad file hides nothing else.
            Err(error) if args.of.is_none() => {
                context.printer.tell(error.to_string());
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        for relation in relations.into_iter().filter(|r| watcher.is_none_or(|w| w == r.watcher)) {
            rows.push(Row::read(&home, &fleet, target, relation)?);
        }
    }
    if context.printer.is_json() {
        context.printer.object(&Shown { rows: &rows })?;
    } else if rows.is_empty() {
        context.printer.line("no watches")?;
    } else {
        for line in lines(&rows, Stamp::now(), context.printer.look()) {
            context.printer.line(line)?;
        }
    }
    Ok(exit::OK)
}

#[derive(Serialize)]
struct Shown<'a> {
    rows: &'a [Row],
}

/// One relation.
#[derive(Serialize)]
struct Row {
    target: SessionId,
    label: String,
    #[serde(skip)]
    watcher: String,
    #[serde(flatten)]
    relation: Watcher,
    /// True if the watcher is not in the store any more; the next notice discards the relation.
    gone: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<Last>,
}

/// The last notice of a relation.
#[derive(Serialize)]
struct Last {
    id: MessageId,
    at: Stamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    receipt: Option<Receipt>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl Row {
    fn read(home: &Home, fleet: &Fleet, target: SessionId, relation: Watcher) -> Result<Self, CommandError> {
        let gone = fleet.get(relation.watcher).is_none();
        let last = if gone { None } else { last(home, target, relation.watcher)? };
        let label = |id| fleet.label(home, minder_proto::id::Party::Session(id));
        Ok(Self { target, label: label(target), watcher: label(relation.watcher), relation, gone, last })
    }
}

/// The newest notice about `target` among the watcher's last lines.
fn last(home: &Home, target: SessionId, watcher: SessionId) -> Result<Option<Last>, CommandError> {
    let dir = home.session(watcher);
    let events = timeline::last(&dir, SEARCHED).map_err(|e| CommandError::io(dir.display(), &e))?;
    let found = events.into_iter().rev().find_map(|e| match e.body {
        Body::Message(m) if m.about.as_ref().is_some_and(|a| a.session == target) => Some((m.id, e.at)),
        _ => None,
    });
    let Some((id, at)) = found else { return Ok(None) };
    let ledger = minder_proto::whole::read(&dir.join("queue.jsonl")).unwrap_or_default();
    let newest = minder_proto::queue::history(&ledger, id).pop();
    let (receipt, reason) = newest.map_or((None, None), |l| (Some(l.r), l.reason));
    Ok(Some(Last { id, at, receipt, reason }))
}

fn lines(rows: &[Row], now: Stamp, look: Look) -> Vec<String> {
    let column = |head, stays, cell: &dyn Fn(&Row) -> String| Column::new(head, stays, rows.iter().map(cell));
    let columns = vec![
        column("WATCHER", STAYS, &|r| {
            if r.gone { format!("{} (gone)", r.watcher) } else { r.watcher.clone() }
        }),
        column("TARGET", STAYS, &|r| r.label.clone()),
        column("SOURCE", 3, &|r| {
            r.relation.sources.iter().map(|s| source_word(*s)).collect::<Vec<_>>().join(",")
        }),
        column("SINCE", 2, &|r| short_age(r.relation.since.age(now))),
        column("STATES", 4, &|r| states_words(r.relation.states)).giving_way(),
        column("LAST NOTICE", 5, &|r| {
            r.last.as_ref().map_or_else(String::new, |l| {
                let receipt = l.receipt.map_or_else(String::new, |receipt| {
                    format!(" {}", holds::receipt(receipt, l.reason.as_deref()))
                });
                format!("{}{receipt}, {} ago", l.id.short(), short_age(l.at.age(now)))
            })
        }),
    ];
    table::lines(columns, look, |_, _, text| text.to_owned())
}
