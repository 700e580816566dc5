//! Time limits of clients, without disconnecting idle ones.
//!
//! 1. The first bytes of a connection arrive within the limit, whatever the protocol.
//! 2. The headers of an HTTP/1.1 request arrive within the limit, counted from their first byte.
//! 3. A connection between two requests is kept for [`IDLE_MAX`], as kube-apiserver does: clients reuse connections,
//!    and a closed one looks like a reset to them.
//!
//! hyper has one time for the last two, counted from the end of the request before. It asks a [`Timer`] for it whenever it
//! begins to wait for headers, so a timer that also knows when bytes came can distinguish the two.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::rt::{Sleep, Timer};
use parking_lot::Mutex;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, BufReader, ReadBuf};
use tokio::time::Instant;

/// The time limit of a connection between two requests: kube-apiserver's `IdleTimeout`.
pub(super) const IDLE_MAX: Duration = Duration::from_secs(90);

/// Enough to see that something came; larger reads go past this buffer.
const FIRST_BYTES: usize = 16;

/// A connection that records when bytes arrive.
pub(super) struct Heard<S> {
    stream: BufReader<S>,
    head: Arc<Mutex<Head>>,
}

/// The timer that hyper uses while it waits for headers.
pub(super) struct HeadTimer {
    patience: Duration,
    head: Arc<Mutex<Head>>,
}

/// The state of the awaited headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Head {
    /// The first headers: they are arriving since then, and are not awaited yet.
    First { since: Instant },
    /// None of them have arrived.
    Awaited,
    /// They are arriving since then.
    Coming { since: Instant },
}

/// The time limit of headers.
struct HeadSleep {
    /// The time at which the connection has been idle for too long.
    idle_until: Instant,
    patience: Duration,
    head: Arc<Mutex<Head>>,
    sleep: Pin<Box<tokio::time::Sleep>>,
}

// === impl Heard ===

impl<S: AsyncRead + AsyncWrite + Unpin> Heard<S> {
    /// Waits for the first bytes; `None` if they do not arrive in time.
    pub(super) async fn first_bytes(stream: S, patience: Duration) -> Option<Self> {
        let mut stream = BufReader::with_capacity(FIRST_BYTES, stream);
        let came = tokio::time::timeout(patience, stream.fill_buf()).await.ok()?;
        if came.ok()?.is_empty() {
            return None;
        }
        Some(Self { stream, head: Arc::new(Mutex::new(Head::First { since: Instant::now() })) })
    }

    /// Returns the timer for its headers.
    pub(super) fn timer(&self, patience: Duration) -> HeadTimer {
        HeadTimer { patience, head: Arc::clone(&self.head) }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Heard<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        if buffer.filled().len() > before {
            self.head.lock().bytes_came();
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Heard<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

// === impl HeadTimer ===

impl Timer for HeadTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until((Instant::now() + duration).into_std())
    }

    fn sleep_until(&self, deadline: std::time::Instant) -> Pin<Box<dyn Sleep>> {
        self.head.lock().is_awaited();
        let idle_until = Instant::from_std(deadline);
        Box::pin(HeadSleep {
            idle_until,
            patience: self.patience,
            head: Arc::clone(&self.head),
            sleep: Box::pin(tokio::time::sleep_until(idle_until)),
        })
    }

    fn now(&self) -> std::time::Instant {
        Instant::now().into_std()
    }
}

// === impl Head ===

impl Head {
    fn is_awaited(&mut self) {
        *self = match *self {
            Self::First { since } => Self::Coming { since },
            Self::Awaited | Self::Coming { .. } => Self::Awaited,
        };
    }

    fn bytes_came(&mut self) {
        if *self == Self::Awaited {
            *self = Self::Coming { since: Instant::now() };
        }
    }
}

// === impl HeadSleep ===

impl Sleep for HeadSleep {}

impl Future for HeadSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // hyper asks again whenever bytes have arrived and the headers are not complete.
        let head = *self.head.lock();
        let until = match head {
            Head::Awaited => self.idle_until,
            Head::First { since } | Head::Coming { since } => self.idle_until.min(since + self.patience),
        };
        if self.sleep.deadline() != until {
            self.sleep.as_mut().reset(until);
        }
        self.sleep.as_mut().poll(cx)
    }
}
