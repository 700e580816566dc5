//! Additional HTTP/2 connections when one is full.
//!
//! hyper's pool keeps one HTTP/2 connection per server, and a request beyond the server's limit of streams waits until
//! another one ends. A watch ends after minutes; with a hundred of them, a write would wait as long. So requests are
//! spread over *lanes*, each a pool of its own, and a new lane is opened before the last one is full. HTTP/1.1 has a
//! connection per request anyway; lanes do no harm there.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body::{Body as HttpBody, Frame, SizeHint};
use parking_lot::Mutex;
use tower::Service;

/// Spreads requests over lanes.
pub(super) struct Lanes<S> {
    make: Arc<dyn Fn() -> S + Send + Sync>,
    lanes: Arc<Mutex<Vec<Lane<S>>>>,
}

struct Lane<S> {
    service: S,
    /// Shared with every response that is not read to its end: the number of owners is the number of streams.
    streams: Arc<()>,
}

/// A response body that occupies its lane until it is dropped.
pub(super) struct Occupying<B> {
    body: B,
    _stream: Arc<()>,
}

/// kube-apiserver allows 100 streams (`secure_serving.go`, 0.37); some are left for requests that are being sent.
const STREAMS_MAX: usize = 80;
/// A bound that should never be reached: 32 lanes carry 2,560 watches. Beyond, requests share lanes and may wait.
const LANES_MAX: usize = 32;

// === impl Lanes ===

impl<S: Clone> Lanes<S> {
    pub(super) fn new(make: impl Fn() -> S + Send + Sync + 'static) -> Self {
        Self { make: Arc::new(make), lanes: Arc::default() }
    }

    /// Sends nothing more on the current lanes. Running requests are not disturbed, and the lanes end with them.
    pub(super) fn abandon(&self) {
        self.lanes.lock().clear();
    }

    /// Returns the first lane with room, so that few connections are in use, and a token that occupies it.
    fn pick(&self) -> (S, Arc<()>) {
        let mut lanes = self.lanes.lock();
        let taken = |lane: &Lane<S>| Arc::strong_count(&lane.streams) - 1;
        if lanes.iter().all(|lane| taken(lane) >= STREAMS_MAX) && lanes.len() < LANES_MAX {
            lanes.push(Lane { service: (self.make)(), streams: Arc::new(()) });
        }
        let free = lanes.iter().position(|lane| taken(lane) < STREAMS_MAX);
        let least = || (0..lanes.len()).min_by_key(|&at| taken(&lanes[at])).unwrap_or(0);
        let lane = &lanes[free.unwrap_or_else(least)];
        (lane.service.clone(), Arc::clone(&lane.streams))
    }
}

impl<S> Clone for Lanes<S> {
    fn clone(&self) -> Self {
        Self { make: Arc::clone(&self.make), lanes: Arc::clone(&self.lanes) }
    }
}

impl<S, Q, B> Service<Request<Q>> for Lanes<S>
where
    S: Service<Request<Q>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    Q: Send + 'static,
{
    type Response = Response<Occupying<B>>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Self::Response, S::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        // A pool of connections is always ready; the request waits.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Q>) -> Self::Future {
        let (mut service, stream) = self.pick();
        Box::pin(async move {
            futures::future::poll_fn(|cx| service.poll_ready(cx)).await?;
            let response = service.call(request).await?;
            Ok(response.map(|body| Occupying { body, _stream: stream }))
        })
    }
}

// === impl Occupying ===

impl<B: HttpBody<Data = Bytes> + Unpin> HttpBody for Occupying<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[tokio::test]
    async fn a_full_lane_opens_another_and_room_is_used_again() {
        let made = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&made);
        let mut lanes = Lanes::new(move || {
            let lane = counted.fetch_add(1, Ordering::Relaxed);
            tower::service_fn(move |_: Request<()>| async move {
                Ok::<_, Infallible>(
                    Response::builder().header("lane", lane).body(http_body_util::Empty::<Bytes>::new()).unwrap(),
                )
            })
        });
        let mut open = Vec::new();
        let lane_of = |response: &Response<_>| response.headers()["lane"].to_str().unwrap().to_owned();
        for _ in 0..=STREAMS_MAX {
            open.push(lanes.call(Request::new(())).await.unwrap());
        }
        assert_eq!(lane_of(&open[0]), "0");
        assert_eq!(lane_of(&open[STREAMS_MAX]), "1", "the first is full");
        drop(open.remove(0));
        assert_eq!(lane_of(&lanes.call(Request::new(())).await.unwrap()), "0", "the first has room again");
        drop(open);
        for _ in 0..3 {
            drop(lanes.call(Request::new(())).await.unwrap());
        }
        assert_eq!(made.load(Ordering::Relaxed), 2);
    }
}
