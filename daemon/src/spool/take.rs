//! Taking requests out of the spool.

use std::collections::HashSet;

use minder_proto::error::{Fault, Kind};
use minder_proto::layout::Home;
use minder_proto::rpc::Spooled;
use minder_proto::stamp::Stamp;
use minder_proto::trial;
use tokio::time::Instant;

use super::bell::Bell;
use super::judge::{Verdict, judge};
use crate::store::kill_point::reach;
use crate::store::spool::{Content, Spool};
use crate::store::{DiskError, Pauses};

/// Takes requests as they come, one after the other. `A` applies one as if it had come over the socket, under the key
/// that it is given: a second time changes nothing, and what it tells as done is durable. `L` names the line that a
/// request stands in, where its order among others counts: one that stays keeps back those behind it in its line.
pub struct Taker<A, L> {
    spool: Spool,
    apply: A,
    line: L,
    bell: Bell,
    pauses: Pauses,
    /// When what stayed is tried again.
    again: Option<Instant>,
    /// Nothing can be taken before that, whatever comes.
    blocked: bool,
}

/// How one look at the spool ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pass {
    /// Requests that were applied.
    pub applied: usize,
    /// Files that went to the quarantine.
    pub refused: usize,
    /// Requests that stay for now.
    pub kept: usize,
    /// It ended early, since nothing can be taken now.
    pub stopped: bool,
}

impl<A, R, L, N> Taker<A, L>
where
    A: Fn(Spooled, String) -> R,
    R: Future<Output = Result<(), Fault>> + Send + 'static,
    L: Fn(Spooled) -> N,
    N: Future<Output = Option<String>>,
{
    /// Takes everything that is there, before the first call is accepted. What cannot be taken now does not keep the
    /// daemon from answering.
    pub async fn start(home: &Home, apply: A, line: L) -> Self {
        let spool = Spool::new(home);
        let bell = Bell::hang(&spool);
        let mut taker = Self { spool, apply, line, bell, pauses: Pauses::new(), again: None, blocked: false };
        let spool = taker.spool.clone();
        if let Err(error) = on_disk(move || spool.sweep()).await {
            tracing::warn!(%error, "the spool was not swept");
        }
        taker.look().await;
        taker
    }

    /// Takes what comes, until it is dropped.
    pub async fn run(mut self) {
        loop {
            self.wait().await;
            self.look().await;
        }
    }

    async fn wait(&mut self) {
        let again = self.again;
        let pause = async {
            match again {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        if self.blocked {
            return pause.await;
        }
        tokio::select! {
            () = self.bell.rings(&self.spool) => {}
            () = pause => {}
        }
    }

    async fn look(&mut self) {
        let pass = self.pass().await;
        if pass.applied + pass.refused > 0 {
            tracing::info!(?pass, "requests that were left were taken");
        }
        self.blocked = pass.stopped;
        self.again = if pass.kept > 0 || pass.stopped {
            Some(Instant::now() + self.pauses.take())
        } else {
            self.pauses = Pauses::new();
            None
        };
    }

    /// One look at all there is, in order.
    async fn pass(&self) -> Pass {
        let mut pass = Pass::default();
        let spool = self.spool.clone();
        let names = match on_disk(move || spool.names()).await {
            Ok(names) => names,
            Err(error) => {
                tracing::warn!(%error, "the spool cannot be read");
                return Pass { stopped: true, ..pass };
            }
        };
        let mut kept = HashSet::new();
        for name in names {
            match self.take(name, &mut kept).await {
                Ok(Verdict::Applied) => pass.applied += 1,
                Ok(Verdict::Refused(_)) => pass.refused += 1,
                Ok(Verdict::Later) => pass.kept += 1,
                Ok(Verdict::Stop) => {
                    pass.stopped = true;
                    break;
                }
                Err(error) => {
                    tracing::warn!(%error, "a request that was left cannot be taken now");
                    pass.kept += 1;
                }
            }
        }
        if pass.applied > 0 {
            let spool = self.spool.clone();
            if let Err(error) = on_disk(move || spool.sync()).await {
                tracing::warn!(%error, "requests that were taken may come back, and are then known by their keys");
            }
        }
        pass
    }

    /// Takes one, unless one before it in its line is kept.
    async fn take(&self, name: String, kept: &mut HashSet<String>) -> Result<Verdict, DiskError> {
        let (spool, file) = (self.spool.clone(), name.clone());
        let verdict = match on_disk(move || spool.read(&file)).await? {
            Content::Request(spooled, key) => {
                if trial::fault("spool-unlinked-first") {
                    let (spool, file) = (self.spool.clone(), name.clone());
                    on_disk(move || spool.remove(&file)).await?;
                }
                reach("spool.before-commit");
                self.in_line(spooled, key, kept).await
            }
            Content::Unfit(why) => Verdict::Refused(why),
            Content::Gone => return Ok(Verdict::Applied),
        };
        let spool = self.spool.clone();
        match &verdict {
            Verdict::Applied => {
                reach("spool.committed");
                on_disk(move || spool.remove(&name)).await?;
                reach("spool.unlinked");
            }
            Verdict::Refused(why) => {
                tracing::warn!(%name, %why, "a request that was left goes to quarantine/");
                let why = why.clone();
                on_disk(move || spool.set_aside(&name, &why)).await?;
            }
            Verdict::Later | Verdict::Stop => {}
        }
        Ok(verdict)
    }

    async fn in_line(&self, spooled: Spooled, key: String, kept: &mut HashSet<String>) -> Verdict {
        // Lines are looked up only where one is kept: that is rare, and costs a look at the store.
        if !kept.is_empty()
            && let Some(line) = (self.line)(spooled.clone()).await
            && kept.contains(&line)
        {
            return Verdict::Later;
        }
        let verdict = self.attempt(spooled.clone(), key).await;
        if verdict == Verdict::Later {
            kept.extend((self.line)(spooled).await);
        }
        verdict
    }

    async fn attempt(&self, spooled: Spooled, key: String) -> Verdict {
        let age = spooled.at.age(Stamp::now());
        // A task of its own: a request that brings down who applies it must not bring down whoever takes it, again and
        // again.
        let outcome = tokio::spawn((self.apply)(spooled, key)).await;
        let outcome =
            outcome.unwrap_or_else(|_| Err(Fault::new(Kind::Internal, "a fault in minder: see its log")));
        judge(&outcome, age)
    }
}

/// Disks may be slow; the other tasks are not to wait for them.
async fn on_disk<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, DiskError> + Send + 'static,
) -> Result<T, DiskError> {
    tokio::task::spawn_blocking(work).await.expect("file operations do not panic, and are not called off")
}

#[cfg(test)]
mod tests;
