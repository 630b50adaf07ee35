//! A stream whose reader may stop, but not for ever: when the peer has taken no byte for a while although there is
//! something to take, writing fails, which ends the connection. Without it one frozen client would hold its connection,
//! its memory and every orderly stop of the daemon.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// A stream that gives up on a peer that takes nothing.
#[derive(Debug)]
pub struct Guarded<S> {
    stream: S,
    patience: Duration,
    /// Runs from the first write that found no room until one finds some.
    stalled: Pin<Box<Sleep>>,
    waiting: bool,
}

impl<S> Guarded<S> {
    /// Wraps `stream`; a write that makes no progress for `patience` fails with `TimedOut`.
    pub fn new(stream: S, patience: Duration) -> Self {
        Self { stream, patience, stalled: Box::pin(tokio::time::sleep(Duration::ZERO)), waiting: false }
    }

    fn watch<T>(&mut self, cx: &mut Context<'_>, progress: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if progress.is_ready() {
            self.waiting = false;
            return progress;
        }
        if !self.waiting {
            self.waiting = true;
            self.stalled.as_mut().reset(Instant::now() + self.patience);
        }
        ready!(self.stalled.as_mut().poll(cx));
        let message = format!("the peer took nothing for {:?}", self.patience);
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, message)))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Guarded<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Guarded<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let progress = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.watch(cx, progress)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let progress = Pin::new(&mut self.stream).poll_write_vectored(cx, bytes);
        self.watch(cx, progress)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // A Unix stream has nothing of its own to flush; a flush that found no room would hide a stalled write.
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);

    #[tokio::test(flavor = "current_thread", start_paused = true)]
    async fn a_peer_that_takes_nothing_is_given_up() {
        let (near, _far) = tokio::io::duplex(8);
        let begun = Instant::now();
        let error = Guarded::new(near, PATIENCE).write_all(&[0; 64]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(begun.elapsed().as_secs(), PATIENCE.as_secs());
    }

    #[tokio::test(flavor = "current_thread", start_paused = true)]
    async fn a_slow_peer_is_not() {
        let (near, mut far) = tokio::io::duplex(8);
        let writer = tokio::spawn(async move { Guarded::new(near, PATIENCE).write_all(&[7; 64]).await });
        let begun = Instant::now();
        let mut byte = [0; 1];
        for _ in 0..64 {
            tokio::time::advance(PATIENCE.mul_f32(0.9)).await;
            far.read_exact(&mut byte).await.unwrap();
            tokio::task::yield_now().await;
        }
        writer.await.unwrap().unwrap();
        assert!(begun.elapsed() > PATIENCE * 5);
    }
}
