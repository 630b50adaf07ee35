//! Sleeping until the feed rings: one watch of the kernel on the feed, and under it a floor. A sleep is one system
//! call; nothing is asked of any session.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::signals::{Signal, Signals};
use super::watch::{Rung, Watch};

/// The floor where the kernel watches nothing.
const BLIND_FLOOR: Duration = Duration::from_millis(250);

/// Why a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woke {
    /// The feed was written.
    Written,
    /// Another feed is there, or the other folder's files changed.
    Rung,
    /// The kernel dropped notices.
    Lost,
    /// The time was up: the floor's, or that of the sleep.
    Time,
    /// Somebody ends this process.
    Signal(Signal),
    /// Nobody reads standard output any more.
    Unread,
}

/// The bell of one follower.
#[derive(Debug)]
pub struct Bell {
    feed: PathBuf,
    also: Option<PathBuf>,
    watch: Option<Watch>,
    floor: Duration,
    floor_at: Instant,
    signals: Signals,
}

impl Bell {
    /// Watches a feed, and `also` another folder. `floor` is `follow.backstop`.
    pub fn new(feed: &Path, also: Option<PathBuf>, floor: Duration) -> Self {
        let watch = Watch::on(feed, also.as_deref()).ok();
        let mut bell = Self {
            feed: feed.to_owned(),
            also,
            watch,
            floor,
            floor_at: Instant::now(),
            signals: Signals::default(),
        };
        bell.floor_at += bell.floor();
        bell
    }

    /// How often the follower looks by itself.
    pub fn floor(&self) -> Duration {
        if self.is_blind() { self.floor.min(BLIND_FLOOR) } else { self.floor }
    }

    /// True if the kernel may not tell what changes.
    pub fn is_blind(&self) -> bool {
        self.watch.as_ref().is_none_or(Watch::may_miss)
    }

    /// The feed is another file now: watch that one.
    pub fn rewatch(&mut self) {
        let feed = &self.feed;
        let again = match &mut self.watch {
            Some(watch) => watch.feed_again(feed),
            None => Watch::on(feed, self.also.as_deref()).map(|w| self.watch = Some(w)),
        };
        if again.is_err() {
            self.watch = None;
        }
    }

    /// Sleeps until something rings, the floor is reached, or `until`. With `output`, also until its reader goes.
    pub fn sleep(&mut self, until: Option<Instant>, output: Option<BorrowedFd>) -> io::Result<Woke> {
        self.signals.hold_back()?;
        let wake_at = until.map_or(self.floor_at, |u| u.min(self.floor_at));
        let woke = loop {
            let now = Instant::now();
            if now >= wake_at {
                break Woke::Time;
            }
            if let Some(woke) = self.poll(wake_at - now, output)? {
                break woke;
            }
        };
        let now = Instant::now();
        if now >= self.floor_at {
            self.floor_at = now + self.floor();
        }
        Ok(woke)
    }

    /// From here to the next sleep a signal ends the process at once, as everywhere else: what is printed then may
    /// block for as long as its reader likes.
    pub fn awake(&mut self) {
        self.signals.let_through();
    }

    fn poll(&mut self, time: Duration, output: Option<BorrowedFd>) -> io::Result<Option<Woke>> {
        // The kernel counts whole milliseconds; to wake early would be to sleep twice.
        let millis = time.as_nanos().div_ceil(1_000_000);
        let time = PollTimeout::try_from(millis).unwrap_or(PollTimeout::MAX);
        let signals = self.signals.as_fd();
        let watch = self.watch.as_ref().map(AsFd::as_fd);
        // Asked for nothing, it still tells that the other end is gone.
        let sources =
            [(signals, PollFlags::POLLIN), (watch, PollFlags::POLLIN), (output, PollFlags::empty())];
        let mut fds: Vec<PollFd> =
            sources.iter().filter_map(|(fd, flags)| Some(PollFd::new((*fd)?, *flags))).collect();
        match poll(&mut fds, time) {
            Ok(0) | Err(Errno::EINTR) => return Ok(None),
            Ok(_) => {}
            Err(e) => return Err(e.into()),
        }
        let mut ready =
            fds.iter().map(|fd| fd.revents().is_some_and(|r| !r.is_empty())).collect::<Vec<_>>().into_iter();
        let mut next = |there: bool| there && ready.next().unwrap_or(false);
        let (signal, rung, unread) = (next(signals.is_some()), next(watch.is_some()), next(output.is_some()));
        drop(fds);
        if signal && let Some(signal) = self.signals.take() {
            return Ok(Some(Woke::Signal(signal)));
        }
        if unread {
            return Ok(Some(Woke::Unread));
        }
        if rung && let Some(watch) = &mut self.watch {
            return Ok(match watch.read() {
                Ok(Rung::Nothing) => None,
                Ok(Rung::Written) => Some(Woke::Written),
                Ok(Rung::Other) => Some(Woke::Rung),
                Ok(Rung::Lost) => Some(Woke::Lost),
                Err(_) => {
                    self.watch = None;
                    Some(Woke::Lost)
                }
            });
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_write_rings_and_silence_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let feed = dir.path().join("feed.jsonl");
        let mut file = std::fs::File::create(&feed).unwrap();
        let mut bell = Bell::new(&feed, None, Duration::from_millis(30));
        assert_eq!(bell.sleep(None, None).unwrap(), Woke::Time);
        file.write_all(b"x").unwrap();
        let soon = Instant::now() + Duration::from_secs(10);
        bell.floor_at = soon;
        assert_eq!(bell.sleep(Some(soon), None).unwrap(), Woke::Written);
    }

    #[test]
    fn a_feed_that_comes_or_is_replaced_rings() {
        let dir = tempfile::tempdir().unwrap();
        let feed = dir.path().join("feed.jsonl");
        let mut bell = Bell::new(&feed, None, Duration::from_secs(60));
        let mut file = std::fs::File::create(&feed).unwrap();
        assert_eq!(bell.sleep(None, None).unwrap(), Woke::Rung);
        bell.rewatch();
        file.write_all(b"x").unwrap();
        assert_eq!(bell.sleep(None, None).unwrap(), Woke::Written);
        std::fs::rename(&feed, dir.path().join("feed.jsonl.1")).unwrap();
        let mut new = std::fs::File::create(&feed).unwrap();
        assert_eq!(bell.sleep(None, None).unwrap(), Woke::Rung);
        bell.rewatch();
        // What rang before is taken: after this only a watch on the new file can ring.
        while bell.sleep(Some(Instant::now() + Duration::from_millis(1)), None).unwrap() != Woke::Time {}
        new.write_all(b"x").unwrap();
        assert_eq!(bell.sleep(None, None).unwrap(), Woke::Written);
    }

    #[test]
    fn nothing_to_watch_is_a_shorter_floor() {
        let bell = Bell::new(Path::new("/nowhere/feed.jsonl"), None, Duration::from_secs(2));
        assert_eq!(bell.floor(), BLIND_FLOOR);
    }

    #[test]
    fn a_reader_that_goes_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let (theirs, ours) = nix::unistd::pipe().unwrap();
        let mut bell = Bell::new(&dir.path().join("feed.jsonl"), None, Duration::from_secs(60));
        drop(theirs);
        assert_eq!(bell.sleep(None, Some(ours.as_fd())).unwrap(), Woke::Unread);
    }
}
