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

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Waker};

    use jsonrpsee::types::Id;
    use tower::Layer;

    use super::*;

    /// Answers when it is let go.
    #[derive(Clone)]
    struct Slow(Arc<Semaphore>);

    impl RpcServiceT for Slow {
        type MethodResponse = MethodResponse;
        type NotificationResponse = MethodResponse;
        type BatchResponse = MethodResponse;

        fn call<'a>(&self, request: Request<'a>) -> impl Future<Output = MethodResponse> + Send + 'a {
            let gate = Arc::clone(&self.0);
            async move {
                gate.acquire().await.expect("the gate is open or shut, never gone").forget();
                MethodResponse::error(
                    request.id().into_owned(),
                    method::error(&Fault::new(Kind::Gone, "let go")),
                )
            }
        }

        fn batch<'a>(&self, _: Batch<'a>) -> impl Future<Output = MethodResponse> + Send + 'a {
            std::future::pending()
        }

        fn notification<'a>(&self, _: Notification<'a>) -> impl Future<Output = MethodResponse> + Send + 'a {
            std::future::ready(MethodResponse::notification())
        }
    }

    fn request(id: u64) -> Request<'static> {
        Request::owned("m".to_owned(), None, Id::Number(id))
    }

    /// The code of a call's answer, if it is answered by now.
    fn code(call: &mut Pin<Box<impl Future<Output = MethodResponse>>>) -> Option<i32> {
        match call.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answer) => answer.as_error_code(),
            Poll::Pending => None,
        }
    }

    #[test]
    fn p2_requests_in_flight_are_bounded_for_each_connection() {
        let gate = Arc::new(Semaphore::new(0));
        let connection = || GuardLayer::new(&Limits::default()).layer(Slow(Arc::clone(&gate)));
        let (guard, other) = (connection(), connection());
        let mut running: Vec<_> = (0..64).map(|id| Box::pin(guard.call(request(id)))).collect();
        assert!(running.iter_mut().all(|call| code(call).is_none()));
        assert_eq!(code(&mut Box::pin(guard.call(request(64)))), Some(Kind::Busy.code()));
        assert_eq!(code(&mut Box::pin(other.call(request(65)))), None, "another connection is not concerned");
        // One ends and one is dropped with its caller: two places.
        gate.add_permits(1);
        assert_eq!(code(&mut running[0]), Some(Kind::Gone.code()));
        drop(running.split_off(63));
        let mut more: Vec<_> = (66..69).map(|id| Box::pin(guard.call(request(id)))).collect();
        let codes: Vec<_> = more.iter_mut().map(code).collect();
        assert_eq!(codes, [None, None, Some(Kind::Busy.code())]);
    }
}
