//! The sessions: which of them cannot be reached, and whose files cannot be read.

use minder_proto::stamp::short_age;

use super::super::facts::{Daemon, Facts};
use super::super::finding::Finding;
use super::daemon::damaged;

/// Sessions whose way in is gone, and records that cannot be read.
pub fn stranded(facts: &Facts) -> Vec<Finding> {
    const CHECK: &str = "sessions";
    let mut found = Vec::new();
    for one in &facts.stranded {
        let messages =
            if one.messages == 1 { "1 message is" } else { &format!("{} messages are", one.messages) };
        let age = short_age(one.since.age(facts.now));
        let text = format!(
            "{}: {messages} held since {age}: offline, its way in ({}) is gone",
            one.label, one.channel
        );
        let finding = Finding::wrong(CHECK, text);
        found.push(if one.can_relaunch {
            finding.by_hand(&["minder", "relaunch", &one.label])
        } else {
            finding.by_hand(&["minder", "set", &one.label, "--channel", "mailbox"])
        });
    }
    if let Daemon::Runs(status) = &facts.daemon {
        found.extend(status.second_writers.iter().map(|one| {
            let text = format!(
                "{}: another {} (pid {}) writes the conversation that pid {} has; it is not heard, and one of them will lose \
                 what it writes",
                one.label, one.harness, one.pid, one.bound
            );
            Finding::wrong(CHECK, text).told(format!("end one of the two: kill {}", one.pid))
        }));
    }
    // A daemon that runs has said so of its own.
    if !matches!(facts.daemon, Daemon::Runs(_)) {
        found.extend(facts.unreadable.iter().map(|why| damaged(CHECK, why)));
    }
    if found.is_empty() {
        found.push(Finding::ok(CHECK, "all can be reached"));
    }
    found
}

#[cfg(test)]
mod tests {
    use minder_proto::id::SessionId;
    use minder_proto::rpc::SecondWriter;

    use super::super::super::facts::Stranded;
    use super::super::super::finding::Level::{Ok, Wrong};
    use super::super::super::samples::{check, facts};
    use super::*;

    #[test]
    fn c13_a_session_whose_way_in_is_gone_has_its_line() {
        let mut one = facts();
        check(&stranded(&one), &[(Ok, "all can be reached", None)]);
        let lost = |label: &str, messages, can_relaunch| Stranded {
            label: label.into(),
            messages,
            since: one.now,
            channel: "hook",
            can_relaunch,
        };
        one.stranded = vec![lost("api", 3, true), lost("web", 1, false)];
        check(
            &stranded(&one),
            &[
                (Wrong, "api: 3 messages are held since", Some("minder relaunch api")),
                (Wrong, "web: 1 message is held since", Some("minder set web --channel mailbox")),
            ],
        );
    }

    #[test]
    fn two_processes_that_write_one_conversation_have_their_line() {
        let mut one = facts();
        let Daemon::Runs(status) = &mut one.daemon else { panic!() };
        status.second_writers = vec![SecondWriter {
            session: SessionId::random(),
            label: "api".into(),
            harness: "claude".into(),
            bound: 41,
            pid: 42,
        }];
        let text = "api: another claude (pid 42) writes the conversation that pid 41 has";
        check(&stranded(&one), &[(Wrong, text, Some("kill 42"))]);
    }

    #[test]
    fn unreadable_records_are_told_once() {
        let mut one = facts();
        one.unreadable = vec!["sessions/x/session.json: bad".into()];
        check(&stranded(&one), &[(Ok, "", None)]);
        one.daemon = Daemon::Absent;
        check(&stranded(&one), &[(Wrong, "session.json", Some("store repair"))]);
    }
}
