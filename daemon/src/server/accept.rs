//! The accepting loop: bounded, patient when descriptors run out, and orderly at a stop.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use nix::libc::{EMFILE, ENFILE, ENOBUFS, ENOMEM};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::connection::Shared;
use super::peer::Door;
use super::{Limits, Methods, Served, Socket};

/// Why waiting for a slot cannot fail.
const NEVER_CLOSED: &str = "the slots are never closed";

/// Serves `methods` on the socket until `stop`: then accepts no more, answers what runs for at most the grace, and
/// aborts the rest. Returns when the last connection is gone.
pub async fn serve(
    socket: Socket,
    methods: impl Into<Methods>,
    limits: Limits,
    served: Served,
    stop: CancellationToken,
) -> io::Result<()> {
    serve_and_tell(socket, methods, limits, served, stop, Arc::new(|_| ())).await
}

/// Told the number of each connection that has ended.
pub type Ended = Arc<dyn Fn(u64) + Send + Sync>;

/// The same; `ended` is told of each connection's end.
pub async fn serve_and_tell(
    socket: Socket,
    methods: impl Into<Methods>,
    limits: Limits,
    served: Served,
    stop: CancellationToken,
    ended: Ended,
) -> io::Result<()> {
    let listener = UnixListener::from_std(socket.listener()?)?;
    let mut this = Server {
        slots: Arc::new(Semaphore::new(limits.sockets)),
        shared: Shared::new(methods.into(), limits, served),
        door: Door::new(),
        connections: TaskTracker::new(),
        stop,
        abort: CancellationToken::new(),
        accepted: 0,
        ended,
    };
    this.accept_until_stop(&listener, &socket).await;
    this.close(listener, socket)?;
    this.finish().await;
    Ok(())
}

struct Server {
    shared: Shared,
    door: Door,
    slots: Arc<Semaphore>,
    connections: TaskTracker,
    stop: CancellationToken,
    abort: CancellationToken,
    accepted: u64,
    ended: Ended,
}

impl Server {
    async fn accept_until_stop(&mut self, listener: &UnixListener, socket: &Socket) {
        let limits = self.shared.limits().clone();
        let stop = self.stop.clone();
        let mut exhausted = false;
        let mut refresh = tokio::time::interval_at(Instant::now() + limits.refresh, limits.refresh);
        refresh.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                _ = refresh.tick() => {
                    socket.refresh();
                    continue;
                }
                accepted = self.accept(listener) => accepted,
            };
            match accepted {
                Ok((stream, slot)) => {
                    exhausted = false;
                    self.take(stream, Some(slot));
                }
                Err(error) if is_exhaustion(&error) => {
                    if !exhausted {
                        tracing::error!("no connection can be accepted: {error}; trying again");
                    }
                    exhausted = true;
                    self.pause(limits.exhausted).await;
                }
                // The peer was gone before it was accepted.
                Err(error) => tracing::debug!("accept: {error}"),
            }
        }
    }

    /// A place first, then a connection: what has no place waits in the kernel, unread.
    async fn accept(&self, listener: &UnixListener) -> io::Result<(UnixStream, OwnedSemaphorePermit)> {
        let slot = Arc::clone(&self.slots).acquire_owned().await.expect(NEVER_CLOSED);
        let (stream, _) = listener.accept().await?;
        Ok((stream, slot))
    }

    async fn pause(&self, time: Duration) {
        tokio::select! {
            () = self.stop.cancelled() => {}
            () = tokio::time::sleep(time) => {}
        }
    }

    /// Serves a connection in a task of its own, once it has a place.
    fn take(&mut self, stream: UnixStream, slot: Option<OwnedSemaphorePermit>) {
        self.accepted += 1;
        let peer = match self.door.check(&stream, self.accepted) {
            Ok(Some(peer)) => peer,
            Ok(None) => return,
            Err(error) => return tracing::debug!("no credentials: {error}"),
        };
        let (shared, stop, abort) = (self.shared.clone(), self.stop.clone(), self.abort.clone());
        let slots = Arc::clone(&self.slots);
        let ended = Arc::clone(&self.ended);
        self.connections.spawn(async move {
            let serve = async {
                let _slot = match slot {
                    Some(slot) => slot,
                    None => slots.acquire_owned().await.expect(NEVER_CLOSED),
                };
                peer.look();
                shared.run(stream, peer.clone(), stop).await;
            };
            tokio::select! {
                () = abort.cancelled() => tracing::warn!(pid = peer.pid, "a call was cut off by the stop"),
                () = serve => {}
            }
            ended(peer.conn);
        });
    }

    /// Closes the door without losing who stands in it: first nobody can come any more, then those who connected
    /// before are taken in. A socket that was passed to us stays, and its queue is the next daemon's.
    fn close(&mut self, listener: UnixListener, socket: Socket) -> io::Result<()> {
        if socket.is_passed() {
            return Ok(());
        }
        socket.remove();
        let listener = listener.into_std()?;
        while let Ok((stream, _)) = listener.accept() {
            stream.set_nonblocking(true)?;
            self.take(UnixStream::from_std(stream)?, None);
        }
        Ok(())
    }

    async fn finish(&self) {
        self.connections.close();
        if tokio::time::timeout(self.shared.limits().grace, self.connections.wait()).await.is_err() {
            self.abort.cancel();
            self.connections.wait().await;
        }
    }
}

fn is_exhaustion(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(EMFILE | ENFILE | ENOBUFS | ENOMEM))
}
