//! Request bodies that are not sent after the deadline.
//!
//! A connection pulls the bytes of a body when it is about to write them: behind queues, limits and handshakes. There
//! the body checks once more. A server that received the head of a request and not all of its body does nothing.

use std::future::ready;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Frame, SizeHint};
use kube::client::Body;
use tower::BoxError;

use super::{Leadership, NotLeader};

struct Guarded {
    leadership: Leadership,
    left: Bytes,
    refusal: Refusal,
}

/// The reason for which a body was held back.
type Refusal = Arc<OnceLock<NotLeader>>;

/// A body is sent in pieces of one HTTP/2 frame, each checked: a server's window may hold a large body back, and the
/// last piece decides.
const PIECE_BYTES: usize = 16 << 10;

impl Leadership {
    /// Sends a request if this process leads, and stops sending it at the deadline: its body runs
    /// [`check`](Self::check) again whenever bytes of it are pulled, so that a process that was stopped after its
    /// decision sends nothing after its deadline.
    ///
    /// An empty body has no bytes to hold back.
    ///
    /// # Errors
    /// As [`kube::Client::send`]. If the request was held back, [`NotLeader::cause_of`] finds the reason, and the
    /// server has done nothing.
    #[doc(hidden)]
    pub async fn send(
        &self,
        client: &kube::Client,
        request: Request<impl Into<Bytes>>,
    ) -> Result<Response<Body>, kube::Error> {
        let held_back = |refusal: NotLeader| kube::Error::Service(Box::new(refusal));
        let (head, bytes) = request.into_parts();
        let refusal = Refusal::default();
        let body = self.guarded(bytes.into(), &refusal).await.map_err(held_back)?;
        let outcome = client.send(Request::from_parts(head, body)).await;
        // HTTP/2 reports a stream that was reset, and not why; an in-process server answers that the body is broken.
        match refusal.get() {
            Some(refusal) => Err(held_back(refusal.clone())),
            None => outcome,
        }
    }

    /// Returns the body of such a request, for other ways of sending it. HTTP/1.1 then reports that it was held back
    /// (among the causes of the error); HTTP/2 does not, because the stream is reset: prefer [`send`](Self::send).
    ///
    /// # Errors
    /// This process does not lead.
    #[doc(hidden)]
    pub async fn guard(&self, bytes: impl Into<Bytes>) -> Result<Body, NotLeader> {
        self.guarded(bytes.into(), &Refusal::default()).await
    }

    async fn guarded(&self, left: Bytes, refusal: &Refusal) -> Result<Body, NotLeader> {
        self.check()?;
        if !self.is_leased() || left.is_empty() {
            return Ok(Body::from(left));
        }
        // kube wraps foreign bodies only in responses, not in requests: so ours is the response of a client of its own,
        // which costs a task that runs once.
        let mut body = Some(Guarded { leadership: self.clone(), left, refusal: Arc::clone(refusal) });
        let answer = tower::service_fn(move |_: Request<Body>| {
            ready(body.take().map(Response::new).ok_or_else(|| BoxError::from("a body is made once")))
        });
        match kube::Client::new(answer, "").send(Request::new(Body::empty())).await {
            Ok(answer) => Ok(answer.into_body()),
            // Tasks no longer run: neither will the request.
            Err(_) => Err(self.ending()),
        }
    }
}

impl http_body::Body for Guarded {
    type Data = Bytes;
    type Error = NotLeader;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, NotLeader>>> {
        if self.left.is_empty() {
            return Poll::Ready(None);
        }
        if let Err(refusal) = self.leadership.check() {
            return Poll::Ready(Some(Err(self.refusal.get_or_init(|| refusal).clone())));
        }
        let piece = self.left.len().min(PIECE_BYTES);
        Poll::Ready(Some(Ok(Frame::data(self.left.split_to(piece)))))
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_empty()
    }

    /// Exact, so that the request has a content-length.
    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http_body::Body as _;
    use http_body_util::BodyExt;
    use tokio::time::sleep;

    use super::*;
    use crate::lease::LeaseOptions;

    fn leading() -> Leadership {
        let leadership = Leadership::waiting(&LeaseOptions::new("kube-system", "test"), "me".into());
        leadership.renewed(leadership.moment());
        leadership
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_passes_whole_with_its_length() {
        for length in [1, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES] {
            let bytes: Vec<u8> = (0..length).map(|at| at as u8).collect();
            for leadership in [leading(), Leadership::always()] {
                let body = leadership.guard(bytes.clone()).await.unwrap();
                assert_eq!(body.size_hint().exact(), Some(length as u64));
                assert!(!body.is_end_stream());
                assert_eq!(body.collect_bytes().await.unwrap(), bytes);
            }
        }
        assert_eq!(leading().guard(Vec::new()).await.unwrap().size_hint().exact(), Some(0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_is_pulled_after_the_deadline_stays() {
        let leadership = leading();
        let body = leadership.guard(b"{}".to_vec()).await.unwrap();
        sleep(Duration::from_secs(60)).await;
        let error = body.collect_bytes().await.unwrap_err();
        assert_eq!(NotLeader::cause_of(&error), leadership.check().err().as_ref());
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_is_half_sent_at_the_deadline_is_not_completed() {
        let mut body = leading().guard(vec![b' '; PIECE_BYTES + 1]).await.unwrap();
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap().len(), PIECE_BYTES);
        sleep(Duration::from_secs(60)).await;
        assert!(NotLeader::cause_of(&body.frame().await.unwrap().unwrap_err()).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn the_reason_for_a_withheld_body_survives_every_transport() {
        let leadership = leading();
        let slow = |resets: bool| {
            let server = tower::service_fn(move |request: Request<Body>| async move {
                sleep(Duration::from_secs(60)).await;
                let whole = request.into_body().collect_bytes().await.is_ok();
                if resets && !whole { Err("stream reset") } else { Ok(Response::new(Body::empty())) }
            });
            kube::Client::new(server, "")
        };
        for resets in [true, false] {
            leadership.renewed(leadership.moment());
            let error = leadership.send(&slow(resets), Request::new(b"{}".to_vec())).await.unwrap_err();
            assert!(NotLeader::cause_of(&error).is_some(), "{error}");
            let error = leadership.send(&slow(resets), Request::new(b"{}".to_vec())).await.unwrap_err();
            assert!(NotLeader::cause_of(&error).is_some(), "{error}");
            Leadership::always().send(&slow(resets), Request::new(b"{}".to_vec())).await.unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn without_leadership_the_body_is_withheld() {
        let leadership = leading();
        leadership.end();
        assert!(leadership.guard(b"{}".to_vec()).await.is_err());
    }
}
