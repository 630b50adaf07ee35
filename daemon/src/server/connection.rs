//! One connection: HTTP/1.1 by hyper with jsonrpsee's tower service behind it.
//!
//! The body of a request is read here, under a size and a time of our own, before the service sees it. The connection
//! is served so that a later upgrade to WebSocket is possible; today jsonrpsee refuses one (`http_only`).

use std::convert::Infallible;
use std::os::fd::{AsRawFd, RawFd};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{CONNECTION, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use jsonrpsee::core::middleware::RpcServiceBuilder;
use jsonrpsee::server::{
    BatchRequestConfig, HttpBody, Methods, ServerConfig, ServerHandle, StopHandle, http, stop_channel,
};
use nix::sys::socket::{MsgFlags, recv};
use tokio::net::UnixStream;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tower::Service;

use super::guard::GuardLayer;
use super::stall::Guarded;
use super::{Limits, Peer, Served};

/// What every connection needs; one for the server.
#[derive(Clone, Debug)]
pub struct Shared {
    methods: Methods,
    limits: Arc<Limits>,
    served: Arc<Served>,
    stop: StopHandle,
    /// Dropped, it would stop what `stop` belongs to.
    _running: ServerHandle,
}

impl Shared {
    /// For a server of these methods.
    pub fn new(methods: Methods, limits: Limits, served: Served) -> Self {
        let (stop, running) = stop_channel();
        Self { methods, limits: Arc::new(limits), served: Arc::new(served), stop, _running: running }
    }

    /// The bounds in force.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Serves one connection until it ends. Once `stopping`, it ends after the request that it is at.
    pub async fn run(self, stream: UnixStream, peer: Peer, stopping: CancellationToken) {
        let limits = &*self.limits;
        let config = ServerConfig::builder()
            .http_only()
            .max_request_body_size(limits.request)
            .max_response_body_size(limits.answer)
            .set_batch_request_config(BatchRequestConfig::Limit(limits.batch))
            .build();
        let rpc = jsonrpsee::server::Server::builder()
            .set_config(config)
            .set_rpc_middleware(RpcServiceBuilder::new().layer(GuardLayer::new(limits)))
            .to_service_builder()
            .build(self.methods.clone(), self.stop.clone());

        let activity = Activity::default();
        let serve = service_fn(|request| {
            let (shared, mut rpc, busy) = (self.clone(), rpc.clone(), activity.begin());
            let (stopping, peer) = (stopping.clone(), peer.clone());
            async move {
                let answer = match shared.read(request, peer).await {
                    Ok(request) => {
                        rpc.call(request).await.unwrap_or_else(|_| http::response::internal_error())
                    }
                    Err(refused) => *refused,
                };
                drop(busy);
                Ok::<_, Infallible>(if stopping.is_cancelled() { last(answer) } else { answer })
            }
        });
        let socket = stream.as_raw_fd();
        let stream = TokioIo::new(Guarded::new(stream, limits.stall));
        let mut protocol = http1::Builder::new();
        protocol.timer(TokioTimer::new()).header_read_timeout(limits.head).half_close(false);
        let mut connection = pin!(protocol.serve_connection(stream, serve).with_upgrades());

        let ended = tokio::select! {
            ended = connection.as_mut() => Some(ended),
            () = stopping.cancelled() => None,
        };
        let ended = match ended {
            Some(ended) => ended,
            // What was said before the stop is answered, also where it has not been read yet.
            None if !activity.is_busy() && has_unread(socket) => tokio::select! {
                ended = connection.as_mut() => ended,
                () = activity.begun() => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            },
            None => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            report(&error, &peer);
        }
    }

    /// Reads a request whole, and notes in it who sent it. What cannot be read whole is answered at once.
    async fn read(
        &self,
        request: Request<Incoming>,
        peer: Peer,
    ) -> Result<Request<Full<Bytes>>, Box<Response<HttpBody>>> {
        let (mut head, body) = request.into_parts();
        let limit = self.limits.request;
        if body.size_hint().lower() > u64::from(limit) {
            return Err(Box::new(last(http::response::too_large(limit))));
        }
        let whole = Limited::new(body, limit as usize).collect();
        let body = match tokio::time::timeout(self.limits.body, whole).await {
            Ok(Ok(whole)) => whole.to_bytes(),
            Ok(Err(error)) if error.is::<LengthLimitError>() => {
                return Err(Box::new(last(http::response::too_large(limit))));
            }
            Ok(Err(_)) => return Err(Box::new(last(http::response::malformed()))),
            Err(_) => {
                tracing::warn!(
                    pid = peer.pid,
                    "half a request for {:?}: connection closed",
                    self.limits.body
                );
                let mut late = Response::new(HttpBody::from("the request did not come to its end in time\n"));
                *late.status_mut() = StatusCode::REQUEST_TIMEOUT;
                return Err(Box::new(last(late)));
            }
        };
        head.extensions.insert(peer);
        if let Some(refused) = self.served.check(&head.headers) {
            head.extensions.insert(refused);
        }
        Ok(Request::from_parts(head, Full::new(body)))
    }
}

/// Whether a connection has a request at work.
#[derive(Clone, Debug, Default)]
struct Activity(Arc<(AtomicUsize, Notify)>);

impl Activity {
    /// A request begins; it ends when this is dropped.
    fn begin(&self) -> Busy {
        self.0.0.fetch_add(1, Ordering::Relaxed);
        self.0.1.notify_waiters();
        Busy(self.clone())
    }

    fn is_busy(&self) -> bool {
        self.0.0.load(Ordering::Relaxed) > 0
    }

    /// Waits for the next request to begin.
    async fn begun(&self) {
        self.0.1.notified().await;
    }
}

/// A request at work.
struct Busy(Activity);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether the peer has written something that was not read yet.
fn has_unread(socket: RawFd) -> bool {
    let peek = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
    recv(socket, &mut [0; 1], peek) == Ok(1)
}

/// An answer after which the connection ends: the rest of its request would be taken for another one.
fn last(mut response: Response<HttpBody>) -> Response<HttpBody> {
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// Says why a connection was ended, where it was us who ended it.
fn report(error: &hyper::Error, peer: &Peer) {
    use std::error::Error;
    let reason = error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {source}"));
    let stalled = error
        .source()
        .and_then(|s| s.downcast_ref::<std::io::Error>())
        .is_some_and(|e| e.kind() == std::io::ErrorKind::TimedOut);
    if error.is_timeout() || stalled || error.is_parse() {
        tracing::warn!(pid = peer.pid, "connection closed: {reason}");
    } else {
        // The caller went away: its right.
        tracing::debug!(pid = peer.pid, "connection ended: {reason}");
    }
}
