//! Waiting for a disk that refuses: growing pauses, and a mutation that is tried until it is taken.

use std::time::Duration;

use minder_proto::error::{Fault, Kind};

use super::{Settled, Store, Txn};

/// Growing pauses between attempts: 1 s doubling to 60 s, without end.
#[derive(Clone, Debug)]
pub struct Pauses(Duration);

impl Pauses {
    const FIRST: Duration = Duration::from_secs(1);
    const LAST: Duration = Duration::from_secs(60);

    /// From the shortest on.
    pub fn new() -> Self {
        Self(Self::FIRST)
    }

    /// The next one.
    pub fn take(&mut self) -> Duration {
        let pause = self.0;
        self.0 = (pause * 2).min(Self::LAST);
        pause
    }
}

impl Default for Pauses {
    fn default() -> Self {
        Self::new()
    }
}

impl Store {
    /// Runs a mutation that nobody waits for, as often as it takes until the disk lets it. What it is decided on is
    /// judged anew each time. Any other refusal is final.
    pub async fn write_patiently<T: Send + 'static>(
        &self,
        run: impl Fn(&mut Txn<'_>) -> Result<T, Fault> + Clone + Send + 'static,
    ) -> Result<T, Fault> {
        patiently(|| self.write(run.clone())).await
    }

    /// The same for a mutation that reads files.
    pub async fn write_on_files_patiently<T: Send + 'static>(
        &self,
        run: impl Fn(&mut Txn<'_>, Settled<'_>) -> Result<T, Fault> + Clone + Send + 'static,
    ) -> Result<T, Fault> {
        patiently(|| self.write_on_files(run.clone())).await
    }
}

async fn patiently<T, R: Future<Output = Result<T, Fault>>>(
    mut attempt: impl FnMut() -> R,
) -> Result<T, Fault> {
    let mut pauses = Pauses::new();
    loop {
        match attempt().await {
            Err(fault) if fault.kind == Kind::ReadOnly => tokio::time::sleep(pauses.take()).await,
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[test]
    fn pauses_grow_to_a_minute() {
        let mut pauses = Pauses::new();
        let found: Vec<u64> = (0..9).map(|_| pauses.take().as_secs()).collect();
        assert_eq!(found, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
    }

    #[test]
    fn only_a_disk_that_refuses_is_waited_for() {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let run = async |outcomes: &[Result<u8, Kind>]| {
                let begun = Instant::now();
                let mut left = outcomes.iter();
                let result = patiently(|| {
                    let next = *left.next().expect("it ends before this");
                    async move { next.map_err(|kind| Fault::new(kind, "no")) }
                });
                (result.await.map_err(|f| f.kind), begun.elapsed().as_secs())
            };
            assert_eq!(run(&[Ok(1)]).await, (Ok(1), 0));
            assert_eq!(run(&[Err(Kind::ReadOnly), Err(Kind::ReadOnly), Ok(2)]).await, (Ok(2), 3));
            assert_eq!(run(&[Err(Kind::ReadOnly), Err(Kind::Gone)]).await, (Err(Kind::Gone), 1));
            assert_eq!(run(&[Err(Kind::Unavailable)]).await, (Err(Kind::Unavailable), 0));
        });
    }
}
