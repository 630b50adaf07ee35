//! `session queue`: what waits for a session and why, or how far one message got. Reads files only.

use clap::Args;
use minder_proto::envelope;
use minder_proto::error::exit;
use minder_proto::event::{Class, Receipt};
use minder_proto::id::{MessageId, Party};
use minder_proto::snapshot;
use minder_proto::stamp::{Stamp, short_age};
use minder_proto::text::{first_line, one_line};
use serde::Serialize;

use crate::cli::Outcome;
use crate::context::Context;
use crate::fault::CommandError;
use crate::fleet::Fleet;
use crate::holds;
use crate::look::Look;
use crate::receipts::{self, Tracked};
use crate::table::{self, Column, STAYS};

/// Options of `queue`.
#[derive(Args, Debug)]
#[command(after_help = "\
SEL: minder help selectors.

Examples:
  minder queue api
  minder queue 7be21c09
  minder queue @operator")]
pub struct QueueArgs {
    /// A session, @operator, or a message: its id or the end of it [default: the caller]
    #[arg(value_name = "SEL|MID")]
    what: Option<String>,
}

/// Shows.
pub fn run(args: &QueueArgs, context: &mut Context) -> Outcome {
    let fleet = context.fleet_for(args.what.as_deref().filter(|what| *what != "@operator"))?;
    let party = match args.what.as_deref() {
        None => context.party(&fleet)?,
        Some("@operator") => Party::Operator,
        Some(word) => {
            let home = context.home()?;
            let caller = context.identity(&fleet)?.session();
            match fleet.one(home, word, caller) {
                Ok(record) => Party::Session(record.id),
                // A word that names no session may name a message.
                Err(error) if error.exit == exit::GONE && receipts::is_message_word(word) => {
                    let tracked = match receipts::find(home, word) {
                        Err(e) if e.exit == exit::GONE && error.kind == "gone" => return Err(error),
                        found => found?,
                    };
                    return one(context, &fleet, &tracked);
                }
                Err(error) => return Err(error),
            }
        }
    };
    all(context, &fleet, party)
}

/// One message in a list.
#[derive(Debug, Serialize)]
struct Row {
    id: MessageId,
    from: Option<Party>,
    class: Class,
    receipt: Receipt,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    since: Stamp,
    accepted: Stamp,
    tries: u32,
    waits_for: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

#[derive(Serialize)]
struct Shown {
    to: Party,
    messages: Vec<Row>,
}

fn all(context: &mut Context, fleet: &Fleet, to: Party) -> Outcome {
    let home = context.home()?.clone();
    let dir = snapshot::party_dir(&home, to);
    let queue = snapshot::queue(&dir).map_err(|e| CommandError::io(dir.display(), &e))?;
    let channel = to.session().and_then(|id| fleet.get(id)).map(|r| &r.channel);
    let rows: Vec<Row> = queue
        .iter()
        .map(|e| Row {
            id: e.id,
            from: e.brief.as_ref().map(|b| b.from),
            class: e.class(),
            receipt: e.receipt,
            reason: e.reason.clone(),
            since: e.since,
            accepted: e.accepted,
            tries: e.attempt,
            waits_for: holds::waits_for(e, channel),
            // A damaged line hides no receipt.
            text: snapshot::message_of(&dir, e).ok().flatten().map(|m| envelope::summary(&home, &m)),
        })
        .collect();
    if context.printer.is_json() {
        context.printer.object(&Shown { to, messages: rows })?;
    } else if rows.is_empty() {
        context.printer.line(format!("nothing waits for {}", fleet.label(&home, to)))?;
    } else {
        for line in lines(&rows, |p| fleet.label(&home, p), Stamp::now(), context.printer.look()) {
            context.printer.line(line)?;
        }
    }
    Ok(exit::OK)
}

fn lines(rows: &[Row], label: impl Fn(Party) -> String, now: Stamp, look: Look) -> Vec<String> {
    let column = |head, stays, cell: &dyn Fn(&Row) -> String| Column::new(head, stays, rows.iter().map(cell));
    let columns = vec![
        column("MESSAGE", STAYS, &|r| r.id.short()),
        column("FROM", 5, &|r| r.from.map_or_else(|| "?".to_owned(), &label)),
        column("CLASS", 4, &|r| r.class.as_str().to_owned()),
        column("RECEIPT", STAYS, &|r| one_line(&holds::receipt(r.receipt, r.reason.as_deref()))),
        column("SINCE", 6, &|r| short_age(r.since.age(now))),
        column("TRIES", 3, &|r| r.tries.to_string()),
        column("GOES ON WITH", 7, &|r| r.waits_for.clone()).giving_way_before(),
        column("TEXT", 8, &|r| r.text.as_deref().map_or_else(String::new, |t| one_line(first_line(t))))
            .giving_way(),
    ];
    table::lines(
        columns,
        look,
        |_, head, text| if head == "SINCE" { look.faint(text) } else { text.to_owned() },
    )
}

#[derive(Serialize)]
struct ShownOne<'a> {
    id: MessageId,
    from: Option<Party>,
    to: Party,
    #[serde(skip_serializing_if = "Option::is_none")]
    receipt: Option<Receipt>,
    history: &'a [minder_proto::record::QueueLine],
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

/// `7be21c09  lead to api  queued 12:00:01.204, handed .310, seen .311`
fn one(context: &mut Context, fleet: &Fleet, tracked: &Tracked) -> Outcome {
    let home = context.home()?.clone();
    if context.printer.is_json() {
        context.printer.object(&ShownOne {
            id: tracked.id,
            from: tracked.message.as_ref().map(|m| m.from),
            to: tracked.to,
            receipt: tracked.history.last().map(|l| l.r),
            history: &tracked.history,
            text: tracked.message.as_ref().map(|m| envelope::summary(&home, m)),
        })?;
        return Ok(exit::OK);
    }
    let from = tracked.message.as_ref().map_or_else(|| "?".to_owned(), |m| fleet.label(&home, m.from));
    let path = receipts::path(&tracked.history, Stamp::now());
    let to = fleet.label(&home, tracked.to);
    context.printer.line(format!("{}  {from} to {to}  {}", tracked.id.short(), one_line(&path)))?;
    let dir = snapshot::party_dir(&home, tracked.to);
    let queue = snapshot::queue(&dir).unwrap_or_default();
    if let Some(entry) = queue.get(tracked.id) {
        let channel = tracked.to.session().and_then(|id| fleet.get(id)).map(|r| &r.channel);
        context.printer.line(format!("          goes on with {}", holds::waits_for(entry, channel)))?;
    }
    Ok(exit::OK)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use expect_test::expect;

    use super::*;

    #[test]
    fn a_queue_says_why_since_when_how_often_and_what_lifts_it() {
        let now = Stamp::from_millis(1_796_040_001_204);
        let row = |end: &str, receipt, reason: Option<&str>, text: &str| Row {
            id: format!("0199c2d4-90c3-7f0e-8a17-c2b6{end}").parse().unwrap(),
            from: Some(Party::Operator),
            class: Class::TurnEnd,
            receipt,
            reason: reason.map(str::to_owned),
            since: now.minus(Duration::from_secs(130)),
            accepted: now,
            tries: 3,
            waits_for: reason.map_or("its next boundary", holds::lifted_by).to_owned(),
            text: Some(text.to_owned()),
        };
        let rows = [
            row("7be21c09", Receipt::Held, Some("busy"), "merge it\nplease"),
            row("7be21c10", Receipt::Queued, None, "\x1b]52;c;x\x07 and then"),
        ];
        expect![[r"
            MESSAGE   FROM      CLASS     RECEIPT     SINCE  TRIES  GOES ON WITH                   TEXT
            7be21c09  operator  turn-end  held(busy)  2m     3      the end of the turn that runs  merge it
            7be21c10  operator  turn-end  queued      2m     3      its next boundary              \x1b]52;c;x\x07 and then"]].assert_eq(&lines(&rows, |p| p.to_string(), now, Look::default()).join("\n"));
        // Where the width is short, what it says matters more than the whole of what lifts it.
        let look = Look { columns: Some(80), ..Look::default() };
        expect![[r#"
            MESSAGE   RECEIPT     SINCE  GOES ON WITH               TEXT
            7be21c09  held(busy)  2m     the end of the turn that…  merge it
            7be21c10  queued      2m     its next boundary          \x1b]52;c;x\x07 and then"#]]
        .assert_eq(&lines(&rows, |p| p.to_string(), now, look).join("\n"));
    }
}
