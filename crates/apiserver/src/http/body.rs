//! Bodies of responses: bytes, or a stream of chunks.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::stream::Stream;
use http_body::{Frame, SizeHint};

/// The body of a response.
pub struct Body(Kind);

enum Kind {
    Whole(Option<Bytes>),
    Chunks(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
}

// === impl Body ===

impl Body {
    /// Returns a complete body.
    #[must_use]
    pub fn whole(bytes: impl Into<Bytes>) -> Self {
        Self(Kind::Whole(Some(bytes.into())))
    }

    /// Returns a streamed body; each chunk is sent as it arrives.
    #[must_use]
    pub fn chunks(chunks: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self(Kind::Chunks(Box::pin(chunks)))
    }
}

impl Default for Body {
    fn default() -> Self {
        Self(Kind::Whole(None))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.get_mut().0 {
            Kind::Whole(bytes) => {
                Poll::Ready(bytes.take().filter(|bytes| !bytes.is_empty()).map(|bytes| Ok(Frame::data(bytes))))
            }
            Kind::Chunks(chunks) => {
                chunks.as_mut().poll_next(context).map(|chunk| chunk.map(|chunk| Ok(Frame::data(chunk))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.0, Kind::Whole(bytes) if bytes.as_ref().is_none_or(Bytes::is_empty))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Kind::Chunks(_) => SizeHint::default(),
        }
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Kind::Whole(bytes) => f.debug_tuple("Body").field(&bytes.as_ref().map_or(0, Bytes::len)).finish(),
            Kind::Chunks(_) => f.write_str("Body(..)"),
        }
    }
}
