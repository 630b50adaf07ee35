//! What is kept of failed turns, until it is too old or too much. An empty shelf costs nothing.

use std::time::{Duration, SystemTime};

use super::{Turns, place};

/// Most folders of failed turns that are kept, whatever their age.
const FAILED_MAX: usize = 256;

impl Turns {
    /// Removes them in time, for as long as the daemon lives.
    pub async fn run_keeper(self) {
        loop {
            let this = self.clone();
            let next =
                tokio::task::spawn_blocking(move || this.sweep(SystemTime::now())).await.unwrap_or(None);
            let wait = async {
                match next {
                    Some(left) => tokio::time::sleep(left).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.0.kept.notified() => {}
                () = wait => {}
            }
        }
    }

    /// Removes what is too old by now, and gives when there will be something again.
    fn sweep(&self, now: SystemTime) -> Option<Duration> {
        let keep = self.0.store.config().turn.keep_failed.0;
        let folders = place::list(self.0.store.home()).unwrap_or_default();
        let mut kept: Vec<_> =
            folders.into_iter().filter_map(|(_, folder)| Some((place::written(&folder)?, folder))).collect();
        kept.sort();
        let surplus = kept.len().saturating_sub(FAILED_MAX);
        let mut next = None;
        for (n, (at, folder)) in kept.into_iter().enumerate() {
            // A file of the future counts from now.
            let age = now.duration_since(at).unwrap_or_default();
            if n < surplus || age >= keep {
                if let Err(error) = place::remove(&folder) {
                    tracing::warn!("{}: {error}", folder.display());
                }
            } else {
                next = next.or(keep.checked_sub(age));
            }
        }
        next
    }
}
