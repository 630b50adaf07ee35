//! The one layer around every method: a panic becomes an answer with the right id, and a connection has a bounded
//! number of requests in flight.
//!
//! It covers single calls, each call of a batch, and notifications (which jsonrpsee acknowledges without running
//! anything).

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use jsonrpsee::core::middleware::{Batch, BatchEntry, Notification, Request, RpcServiceT};
use jsonrpsee::core::server::{BatchResponseBuilder, MethodResponse};
use tokio::sync::Semaphore;

use super::version::Refused;
use super::{Limits, method};
use crate::faults;
use minder_proto::error::{Fault, Kind};

/// Makes the guard of one connection.
#[derive(Clone, Debug)]
pub struct GuardLayer {
    slots: Arc<Semaphore>,
    in_flight: usize,
    answer: usize,
}

impl GuardLayer {
    /// A guard with nothing in flight.
    pub fn new(limits: &Limits) -> Self {
        let slots = Arc::new(Semaphore::new(limits.in_flight));
        Self { slots, in_flight: limits.in_flight, answer: limits.answer as usize }
    }
}

impl<S> tower::Layer<S> for GuardLayer {
    type Service = Guard<S>;

    fn layer(&self, inner: S) -> Guard<S> {
        Guard { inner, limits: self.clone() }
    }
}

/// A service with the guard around it.
#[derive(Clone, Debug)]
pub struct Guard<S> {
    inner: S,
    limits: GuardLayer,
}

/// What every service that the guard can stand around answers with.
trait Answers:
    RpcServiceT<
        MethodResponse = MethodResponse,
        BatchResponse = MethodResponse,
        NotificationResponse = MethodResponse,
    > + Clone
    + Send
    + Sync
    + 'static
{
}

impl<S> Answers for S where
    S: RpcServiceT<
            MethodResponse = MethodResponse,
            BatchResponse = MethodResponse,
            NotificationResponse = MethodResponse,
        > + Clone
        + Send
        + Sync
        + 'static
{
}

#[allow(private_bounds, reason = "an alias for the bounds, not an interface")]
impl<S: Answers> Guard<S> {
    async fn answer(self, request: Request<'_>) -> MethodResponse {
        let id = request.id().into_owned();
        if let Some(Refused(why)) = request.extensions().get::<Refused>() {
            return MethodResponse::error(id, method::error(why));
        }
        let Ok(_slot) = self.limits.slots.try_acquire() else {
            return MethodResponse::error(id, method::error(&busy(self.limits.in_flight)));
        };
        let method = request.method_name().to_owned();
        match caught(|| self.inner.call(request)).await {
            Ok(answer) => answer,
            Err(payload) => {
                tracing::error!(?method, %id, "a method panicked: {}", faults::message(&*payload));
                MethodResponse::error(id, method::error(&broken(&method)))
            }
        }
    }
}

impl<S: Answers> RpcServiceT for Guard<S> {
    type MethodResponse = MethodResponse;
    type NotificationResponse = MethodResponse;
    type BatchResponse = MethodResponse;

    fn call<'a>(&self, request: Request<'a>) -> impl Future<Output = MethodResponse> + Send + 'a {
        self.clone().answer(request)
    }

    fn batch<'a>(&self, batch: Batch<'a>) -> impl Future<Output = MethodResponse> + Send + 'a {
        let guard = self.clone();
        async move {
            let mut answers = BatchResponseBuilder::new_with_limit(guard.limits.answer);
            let mut notified = false;
            for entry in batch {
                let answer = match entry {
                    Ok(BatchEntry::Call(request)) => guard.clone().answer(request).await,
                    Ok(BatchEntry::Notification(_)) => {
                        notified = true;
                        continue;
                    }
                    Err(error) => {
                        let (error, id) = error.into_parts();
                        MethodResponse::error(id, error)
                    }
                };
                if let Err(too_large) = answers.append(answer) {
                    return too_large;
                }
            }
            if answers.is_empty() && notified {
                return MethodResponse::notification();
            }
            // An empty batch is an invalid request, which is what this becomes.
            MethodResponse::from_batch(answers.finish())
        }
    }

    fn notification<'a>(
        &self,
        notification: Notification<'a>,
    ) -> impl Future<Output = MethodResponse> + Send + 'a {
        let guard = self.clone();
        async move {
            let method = notification.method_name().to_owned();
            match caught(|| guard.inner.notification(notification)).await {
                Ok(answer) => answer,
                Err(payload) => {
                    tracing::error!(?method, "a notification panicked: {}", faults::message(&*payload));
                    MethodResponse::notification()
                }
            }
        }
    }
}

fn busy(limit: usize) -> Fault {
    Fault::new(Kind::Busy, format!("this connection has {limit} requests in flight already"))
}

fn broken(method: &str) -> Fault {
    Fault::new(Kind::Internal, format!("a fault in minder: {method} failed; the log has more"))
        .hint("minder daemon logs")
}

/// Runs a future to its end or its panic, which may also come while it is made.
async fn caught<F: Future>(make: impl FnOnce() -> F) -> Result<F::Output, Box<dyn Any + Send>> {
    // Unwind safety: nothing that the future owned is used after a panic, and shared state is behind the owner tasks.
    let mut future = pin!(catch_unwind(AssertUnwindSafe(make))?);
    poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
        Err(payload) => Poll::Ready(Err(payload)),
    })
    .await
}
