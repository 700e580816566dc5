//! A server in the same process that sends one list, again and again, and watches on which nothing happens.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures::{FutureExt, StreamExt, future, stream};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use http_body_util::combinators::UnsyncBoxBody;
use kube::Client;
use kube::client::Body;
use tokio::sync::Notify;

use crate::bodies::ListBody;

#[derive(Clone)]
pub(crate) struct Server(Arc<State>);

struct State {
    bytes: Bytes,
    content_type: &'static str,
    lists: AtomicUsize,
    watches: AtomicUsize,
    expire: Notify,
}

/// What a connection hands over at once, about.
const CHUNK: usize = 64 << 10;

type Stream = UnsyncBoxBody<Bytes, Infallible>;

impl Server {
    pub(crate) fn new(body: &ListBody) -> Self {
        Self(Arc::new(State {
            bytes: body.bytes.clone(),
            content_type: body.content_type,
            lists: AtomicUsize::new(0),
            watches: AtomicUsize::new(0),
            expire: Notify::new(),
        }))
    }

    pub(crate) fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let answer = server.answer(&request);
            async move { Ok::<_, Infallible>(answer) }
        });
        Client::new(service, "default")
    }

    /// How many lists were asked for.
    pub(crate) fn lists(&self) -> usize {
        self.0.lists.load(Ordering::Relaxed)
    }

    /// How many watches were asked for since the last list began.
    pub(crate) fn watches_after_last_list(&self) -> usize {
        self.0.watches.load(Ordering::Relaxed)
    }

    /// Ends the watch that is open: its version is too old, so that a list must follow.
    pub(crate) fn expire(&self) {
        self.0.expire.notify_one();
    }

    fn answer(&self, request: &Request<Body>) -> Response<Stream> {
        if request.uri().query().is_some_and(|query| query.contains("watch=true")) {
            self.0.watches.fetch_add(1, Ordering::Relaxed);
            let state = Arc::clone(&self.0);
            let gone = async move {
                state.expire.notified().await;
                let status = r#"{"kind":"Status","apiVersion":"v1","code":410,"reason":"Expired"}"#;
                Ok(Frame::data(format!("{{\"type\":\"ERROR\",\"object\":{status}}}\n").into()))
            };
            return respond("application/json", gone.into_stream().chain(stream::pending()));
        }
        self.0.lists.fetch_add(1, Ordering::Relaxed);
        self.0.watches.store(0, Ordering::Relaxed);
        let bytes = self.0.bytes.clone();
        let chunks = (0..bytes.len()).step_by(CHUNK).map(move |at| bytes.slice(at..bytes.len().min(at + CHUNK)));
        let frames = stream::iter(chunks).then(|chunk| future::ready(Ok(Frame::data(chunk))));
        respond(self.0.content_type, frames)
    }
}

fn respond(
    content_type: &str,
    frames: impl stream::Stream<Item = Result<Frame<Bytes>, Infallible>> + Send + 'static,
) -> Response<Stream> {
    let body = UnsyncBoxBody::new(StreamBody::new(frames));
    Response::builder().header("content-type", content_type).body(body).expect("a response")
}
