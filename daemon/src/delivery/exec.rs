//! The exec channel: a program of the user's, once a message. Its exit says what became of it: 0 seen, 75 hold (the
//! reason on stdout), 69 offline, anything else a refusal.

use std::pin::pin;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use minder_proto::envelope;
use minder_proto::event::{Receipt, cut};
use minder_proto::hold::Hold;
use minder_proto::id::{Party, SessionId};
use minder_proto::queue;
use minder_proto::record::{Channel, SessionRecord};
use minder_proto::snapshot;
use minder_proto::text::{first_line, one_line};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::Delivery;
use super::mailbox::{bury, bury_unreadable, seen};
use super::rules;
use crate::store::State;

/// Bytes of the program's stdout that are kept for a reason.
const REASON_MAX: usize = 4 * 1024;
/// How long after its exit what it said before is waited for.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// What an attempt came to.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Outcome {
    Seen,
    Held(String),
    Refused(String),
    /// Its text is damaged: nothing to give.
    Unreadable,
}

/// Reads what a program says to its end, so that it is never stopped by a full or closed pipe; keeps the beginning.
async fn listen(mut stdout: tokio::process::ChildStdout, said: &mut Vec<u8>) {
    let mut buffer = [0; 4096];
    while let Ok(n @ 1..) = stdout.read(&mut buffer).await {
        let room = REASON_MAX.saturating_sub(said.len());
        said.extend_from_slice(&buffer[..n.min(room)]);
    }
}

impl Delivery {
    /// Starts an attempt for the head of an exec session's queue, unless one runs or a pause is not over.
    pub(super) fn try_exec(self: &Arc<Self>, session: SessionId) {
        if !self.begin_attempt(session) {
            return;
        }
        let this = Arc::clone(self);
        tokio::spawn(async move {
            // What waits is asked now that nothing else is on its way: whoever led here may have looked before the
            // attempt before this one was written down, and its message would be given once more.
            let again = match this.head(session).await {
                Some((record, argv, head)) => {
                    let outcome = this.attempt(&record, &argv, &head).await;
                    let again = !matches!(outcome, Outcome::Seen);
                    this.conclude(session, head, outcome).await;
                    again
                }
                None => false,
            };
            this.end_attempt(session, again);
        });
    }

    /// The first that waits of an exec session's queue; what was handed is seen.
    async fn head(
        self: &Arc<Self>,
        session: SessionId,
    ) -> Option<(SessionRecord, Vec<String>, queue::Entry)> {
        let this = Arc::clone(self);
        let look = move |state: &State| {
            let found = state.session(session)?;
            let Channel::Exec { argv } = &found.record.channel else { return None };
            let head = found.inbox.queue.iter().find(|e| rules::waits(e))?;
            // Noted between two commits: nobody else can take it from here on.
            this.memory().attempts.insert(session, head.id);
            Some((found.record.clone(), argv.clone(), head.clone()))
        };
        self.store.read(look).await.ok().flatten()
    }

    async fn attempt(&self, record: &SessionRecord, argv: &[String], head: &queue::Entry) -> Outcome {
        let home = self.store.home();
        let dir = snapshot::party_dir(home, Party::Session(record.id));
        let message = match snapshot::message_of(&dir, head) {
            Ok(Some(message)) => message,
            Ok(None) => return Outcome::Unreadable,
            Err(e) => return Outcome::Held(format!("{}: {e}", dir.display())),
        };
        let text = envelope::render(home, &message);
        let about = serde_json::json!({
            "id": message.id, "to": record.id, "label": record.label, "from": message.from,
            "class": message.class, "reply_to": message.reply_to, "attempt": head.attempt + 1,
            "notice": message.about.as_ref().map(|a| a.session),
        });
        let Some((program, arguments)) = argv.split_first() else {
            return Outcome::Refused("no program".to_owned());
        };
        let mut command = tokio::process::Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .envs(
                ["HOME", "PATH", "USER", "LOGNAME", "LANG", "TZ", "XDG_RUNTIME_DIR"]
                    .iter()
                    .filter_map(|name| Some((*name, std::env::var_os(name)?))),
            )
            .env("MINDER_MESSAGE", about.to_string())
            .current_dir(if std::path::Path::new(&record.dir).is_dir() { &record.dir } else { "/" })
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .kill_on_drop(true);
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(e) => return Outcome::Refused(format!("{program}: {e}")),
        };
        let group = child.id().and_then(|pid| i32::try_from(pid).ok()).map(nix::unistd::Pid::from_raw);
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let run = async {
            // A program that does not read its input is no failure: its exit speaks.
            let write = async {
                if let Some(mut stdin) = stdin {
                    let _ = stdin.write_all(text.as_bytes()).await;
                }
            };
            let mut said = Vec::new();
            let talk = async {
                tokio::join!(write, async {
                    if let Some(stdout) = stdout {
                        listen(stdout, &mut said).await;
                    }
                })
            };
            // Its exit decides. A child that it left may hold its descriptors for ever.
            let status = {
                let mut talk = pin!(talk);
                tokio::select! {
                    status = child.wait() => {
                        let _ = tokio::time::timeout(LAST_WORDS, talk).await;
                        status
                    }
                    _ = &mut talk => child.wait().await,
                }
            };
            (said, status)
        };
        let limit = self.store.config().exec.timeout.0;
        match tokio::time::timeout(limit, run).await {
            Err(_) => {
                if let Some(group) = group {
                    let _ = nix::sys::signal::killpg(group, nix::sys::signal::Signal::SIGKILL);
                }
                // A channel that hangs may live again, hours later too: that is no refusal.
                Outcome::Held(Hold::Offline.to_string())
            }
            Ok((_, Err(e))) => Outcome::Refused(e.to_string()),
            Ok((said, Ok(status))) => match status.code() {
                Some(0) => Outcome::Seen,
                Some(75) => {
                    let said = String::from_utf8_lossy(&said);
                    let reason = one_line(cut(first_line(&said), 60));
                    Outcome::Held(if reason.is_empty() { Hold::Busy.to_string() } else { reason })
                }
                Some(69) => Outcome::Held(Hold::Offline.to_string()),
                Some(code) => Outcome::Refused(format!("exit {code}")),
                None => Outcome::Refused("it was killed by a signal".to_owned()),
            },
        }
    }

    /// Writes down what an attempt came to. While the disk refuses there is no further attempt: the program has the
    /// message.
    async fn conclude(&self, session: SessionId, head: queue::Entry, outcome: Outcome) {
        let most = self.store.config().delivery.max_attempts;
        let party = Party::Session(session);
        let written = self
            .store
            .write_on_files_patiently(move |txn, files| {
                let Some(now) = txn.session(session)?.inbox.queue.get(head.id).cloned() else {
                    return Ok(()); // settled by another road meanwhile
                };
                match outcome.clone() {
                    Outcome::Seen => {
                        txn.receipt(party, head.id, Receipt::Handed, None, now.attempt + 1, Some("exec"))?;
                        seen(txn, party, head.id, "exit 0", "exec")
                    }
                    // Holds do not count as attempts; the same one again is not written again.
                    Outcome::Held(reason) if now.reason.as_ref() == Some(&reason) => Ok(()),
                    Outcome::Held(reason) => {
                        txn.receipt(party, head.id, Receipt::Held, Some(reason), now.attempt, Some("exec"))
                    }
                    Outcome::Unreadable => bury_unreadable(txn, files, party, &[now]),
                    Outcome::Refused(why) if now.attempt + 1 >= most => {
                        let tries = now.attempt + 1;
                        let entry = queue::Entry { attempt: tries, ..now };
                        let why = format!("it was refused {tries} times ({why})");
                        bury(txn, files, party, &[entry], "refused", &why)
                    }
                    Outcome::Refused(why) => {
                        let reason = Some(format!("refused: {why}"));
                        txn.receipt(party, head.id, Receipt::Held, reason, now.attempt + 1, Some("exec"))
                    }
                }
            })
            .await;
        if let Err(fault) = written {
            tracing::warn!(%session, %fault, "what became of a message was not written");
        }
    }
}
