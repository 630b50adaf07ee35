//! What delivery decides, as pure functions: which class may enter at which boundary, why something waits, when it
//! is tried again.

use std::time::Duration;

use minder_proto::event::{Class, Receipt};
use minder_proto::hold::Hold;
use minder_proto::queue;
use minder_proto::record::{Channel, SessionRecord};
use minder_proto::stamp::Stamp;
use tokio::time::Instant;

/// Reason of what was sent and of which it is not known whether it was taken: it is given by nobody else meanwhile.
pub const UNKNOWN: &str = "unknown";

/// True for what its session's channel may give: it was given to nobody, or taken back. What was sent to a server and may
/// have been taken, and the news that a host keeps in its wake queue, are somebody else's to give.
pub fn is_given_by_its_channel(entry: &queue::Entry) -> bool {
    waits(entry) && entry.reason.as_deref() != Some(UNKNOWN)
}

/// True for what nobody has, and no host keeps.
pub fn waits(entry: &queue::Entry) -> bool {
    matches!(entry.receipt, Receipt::Queued | Receipt::Held) && !is_kept(entry)
}

/// True for news that is a host's to give: it keeps it, or has given it with a hand-back.
pub fn is_of_host(entry: &queue::Entry) -> bool {
    is_kept(entry) || entry.receipt == Receipt::Handed && entry.is_of_host()
}

/// True for news that a host keeps for a drain of its primary.
pub fn is_kept(entry: &queue::Entry) -> bool {
    entry.receipt == Receipt::Held && entry.reason.as_deref() == Some(Hold::Posture.as_str())
}

/// The longest that a compaction holds a message.
pub const COMPACTION: Duration = Duration::from_secs(10 * 60);

/// A moment at which a harness asks what there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boundary {
    /// A prompt was taken: the turn begins.
    Prompt,
    /// A tool call is over.
    ToolDone,
    /// The turn would end.
    TurnEnd,
    /// Nothing runs, and a waiter can start a turn.
    Idle,
}

/// How many notices and messages are between a person's act and a turn that these begin; none, where a person begins it.
pub fn hops_after(entries: &[queue::Entry]) -> u8 {
    let hops = entries.iter().map(|e| e.brief.as_ref().map_or(0, |b| b.hops).saturating_add(1));
    hops.max().unwrap_or(0)
}

/// Whether a message may enter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// It may.
    Yes,
    /// Only beside something else that may.
    Along,
    /// Not here.
    No,
}

/// Whether a class may enter at a boundary.
pub fn may_enter(class: Class, boundary: Boundary) -> Entry {
    match (class, boundary) {
        (Class::Now | Class::NextTool, _)
        | (Class::TurnEnd, Boundary::TurnEnd | Boundary::Idle)
        | (Class::Idle, Boundary::Idle)
        // Something is given at a prompt and after a tool anyway.
        | (Class::WithNext, Boundary::Prompt | Boundary::ToolDone) => Entry::Yes,
        // To keep a turn going or to start one for it would be what its class forbids.
        (Class::WithNext, Boundary::TurnEnd | Boundary::Idle) => Entry::Along,
        (Class::TurnEnd, Boundary::Prompt | Boundary::ToolDone)
        | (Class::Idle, Boundary::Prompt | Boundary::ToolDone | Boundary::TurnEnd) => Entry::No,
    }
}

/// Why a session's queue waits right now; none if it can be tried (or if its channel has no moments of its own).
pub fn hold(record: &SessionRecord, waiter: bool) -> Option<Hold> {
    match record.channel {
        Channel::Hook => at_boundaries(record, waiter),
        Channel::Tmux { .. } => at_boundaries(record, true),
        _ => None,
    }
}

/// The same for whoever is reached by hooks, as its channel or in place of one that is not there: then `waiter` says
/// whether something can wake it.
pub fn at_boundaries(record: &SessionRecord, waiter: bool) -> Option<Hold> {
    let turn = record.turn.as_ref();
    if record.launch.as_ref().is_some_and(|launch| launch.pending) {
        Some(Hold::NotReady)
    } else if record.process.as_ref().is_some_and(|p| p.ended.is_some()) {
        Some(Hold::Offline)
    } else if turn.is_some_and(|t| t.dialog.is_some()) {
        Some(Hold::Dialog)
    } else if record.compacting {
        Some(Hold::Compacting)
    } else if turn.is_some() {
        Some(Hold::Busy)
    } else if waiter {
        None
    } else {
        Some(Hold::NoWakePath)
    }
}

/// How long after a hook printed it or it was typed a message is not given again whoever asks: a harness writes what its
/// model saw some moments after the fact.
const SETTLES: Duration = Duration::from_secs(10);

/// What becomes of a message that somebody wants tried again: its receipt and its reason; none where it stays what it is. What was
/// sent to a server that knows no message again is asked for there first.
pub fn tried_again(
    channel: &Channel,
    entry: &queue::Entry,
    now: Stamp,
) -> Option<(Receipt, Option<&'static str>)> {
    let served = matches!(channel, Channel::Codex { .. } | Channel::Opencode { .. });
    let asked_for = served && entry.channel.as_deref() == Some(channel.as_str());
    match entry.receipt {
        Receipt::Handed if entry.channel.as_deref() == Some("mailbox") => None,
        Receipt::Handed
            if matches!(entry.channel.as_deref(), Some("hook" | "tmux"))
                && entry.since.age(now) < SETTLES =>
        {
            None
        }
        Receipt::Handed if asked_for => Some((Receipt::Held, Some(UNKNOWN))),
        Receipt::Handed => Some((Receipt::Queued, None)),
        // No server of this session's will tell.
        Receipt::Held if entry.reason.as_deref() == Some(UNKNOWN) && !asked_for => {
            Some((Receipt::Queued, None))
        }
        _ => None,
    }
}

/// When a transcript is looked through again for what was handed this long ago: a harness writes its lines some
/// moments after the fact, and an event that would say so may not come.
pub fn look_again_after(handed: Duration) -> Duration {
    handed.clamp(Duration::from_millis(100), Backoff::LAST)
}

/// Growing pauses between attempts: 1 s doubling to 60 s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    next: Instant,
    pause: Duration,
}

impl Backoff {
    const FIRST: Duration = Duration::from_secs(1);
    const LAST: Duration = Duration::from_secs(60);

    /// After a failed attempt at `now`; `before` is what stood until then.
    pub fn after(before: Option<Self>, now: Instant) -> Self {
        let pause = before.map_or(Self::FIRST, |b| (b.pause * 2).min(Self::LAST));
        Self { next: now + pause, pause }
    }

    /// When the next attempt may be.
    pub fn next(&self) -> Instant {
        self.next
    }
}

#[cfg(test)]
mod tests {
    use minder_proto::id::MessageId;

    use super::*;

    #[test]
    fn what_was_sent_to_a_server_is_asked_for_before_it_is_tried_again() {
        let now = Stamp::now();
        let entry = |receipt: Receipt, reason: Option<&str>, channel: &str| queue::Entry {
            id: MessageId::now(),
            seq: 1,
            brief: None,
            receipt,
            reason: reason.map(str::to_owned),
            since: now,
            accepted: now,
            attempt: 1,
            channel: Some(channel.to_owned()),
        };
        let codex = Channel::Codex { socket: None };
        let opencode = Channel::Opencode { url: String::new() };
        let (queued, doubt) = (Some((Receipt::Queued, None)), Some((Receipt::Held, Some(UNKNOWN))));
        for (channel, entry, expected) in [
            (&codex, entry(Receipt::Handed, None, "codex"), doubt),
            (&opencode, entry(Receipt::Handed, None, "opencode"), doubt),
            (&codex, entry(Receipt::Handed, None, "hook"), queued),
            (&Channel::Hook, entry(Receipt::Handed, None, "codex"), queued),
            (&codex, entry(Receipt::Handed, None, "mailbox"), None),
            (&codex, entry(Receipt::Held, Some(UNKNOWN), "codex"), None),
            (&Channel::Hook, entry(Receipt::Held, Some(UNKNOWN), "codex"), queued),
            (&codex, entry(Receipt::Held, Some("busy"), "codex"), None),
        ] {
            let later = now.plus(Duration::from_secs(60));
            assert_eq!(tried_again(channel, &entry, later), expected, "{channel:?} {entry:?}");
        }
    }

    #[test]
    fn what_was_given_a_moment_ago_is_not_given_again() {
        let now = Stamp::now();
        for (channel, settles) in [("hook", true), ("tmux", true), ("exec", false), ("headless", false)] {
            let entry = queue::Entry {
                id: MessageId::now(),
                seq: 1,
                brief: None,
                receipt: Receipt::Handed,
                reason: None,
                since: now,
                accepted: now,
                attempt: 1,
                channel: Some(channel.to_owned()),
            };
            for (after, again) in [(0, !settles), (9, !settles), (10, true)] {
                let asked = now.plus(Duration::from_secs(after));
                let expected = again.then_some((Receipt::Queued, None));
                assert_eq!(tried_again(&Channel::Hook, &entry, asked), expected, "{channel} {after}");
            }
        }
    }

    #[test]
    fn classes_at_boundaries() {
        use Boundary::{Idle, Prompt, ToolDone, TurnEnd};
        use Entry::{Along, No, Yes};
        for (class, at_prompt, after_tool, at_end, idle) in [
            (Class::Now, Yes, Yes, Yes, Yes),
            (Class::NextTool, Yes, Yes, Yes, Yes),
            (Class::TurnEnd, No, No, Yes, Yes),
            (Class::Idle, No, No, No, Yes),
            (Class::WithNext, Yes, Yes, Along, Along),
        ] {
            let found = [Prompt, ToolDone, TurnEnd, Idle].map(|b| may_enter(class, b));
            assert_eq!(found, [at_prompt, after_tool, at_end, idle], "{class:?}");
        }
    }

    #[test]
    fn a_transcript_is_looked_through_soon_and_then_ever_more_rarely() {
        let mut looks = Vec::new();
        let mut age = Duration::ZERO;
        while age < Duration::from_secs(300) {
            age += look_again_after(age);
            looks.push(age.as_millis());
        }
        let expected = [100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 51_200, 102_400];
        assert_eq!(looks[..11], expected);
        assert_eq!(looks[11..], [162_400, 222_400, 282_400, 342_400]);
    }

    #[test]
    fn pauses_grow_to_a_minute() {
        let now = Instant::now();
        let mut pauses = Vec::new();
        let mut backoff = None;
        for _ in 0..9 {
            let b = Backoff::after(backoff, now);
            pauses.push((b.next() - now).as_secs());
            backoff = Some(b);
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
    }
}
