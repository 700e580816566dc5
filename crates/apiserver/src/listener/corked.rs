//! Answers of one connection that are ready together leave together.
//!
//! HTTP/2 flushes after every response: a TLS record, a system call, and a wake of the client for each. Under load, many requests of
//! a connection wait for a thread at the same time, and the task of the connection runs after each of them.
//!
//! 1. Nothing is written while the task of the connection runs, unless it is more than [`BYTES_MAX`]; when it has run, all is
//!    written.
//! 2. If requests of the connection are still being answered, it waits for one turn of the scheduler first: what can be answered at once
//!    is answered by then. A request that takes longer delays nobody.
//! 3. A connection that answers one request at a time writes as it would without this.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The bytes that are kept back at most: what one TLS record holds.
const BYTES_MAX: usize = 16 << 10;

/// A connection whose writes are kept back while its task runs.
pub(super) struct Corked<S> {
    stream: Arc<Mutex<Held<S>>>,
    is_vectored: bool,
}

/// The other end: runs the task of the connection.
pub(super) struct Cork<S> {
    stream: Arc<Mutex<Held<S>>>,
    answering: Answering,
}

/// The number of requests of a connection that are being answered.
#[derive(Clone, Debug, Default)]
pub(super) struct Answering(Arc<AtomicUsize>);

/// One of them, until it is dropped.
#[derive(Debug)]
pub(super) struct Answer(Answering);

/// The task of a connection.
pub(super) struct Run<'a, S, F> {
    cork: &'a Cork<S>,
    connection: Pin<&'a mut F>,
    has_waited: bool,
}

struct Held<S> {
    stream: S,
    /// The bytes that have not been written yet.
    buffer: Vec<u8>,
    is_held: bool,
    /// Whether something has been written since the last flush.
    is_dirty: bool,
    /// Why what was kept back could not be written.
    failed: Option<io::ErrorKind>,
}

/// Returns a connection whose writes are kept back, and what runs its task.
pub(super) fn corked<S: AsyncWrite>(stream: S) -> (Corked<S>, Cork<S>) {
    let is_vectored = stream.is_write_vectored();
    let held = Held { stream, buffer: Vec::new(), is_held: false, is_dirty: false, failed: None };
    let stream = Arc::new(Mutex::new(held));
    (Corked { stream: Arc::clone(&stream), is_vectored }, Cork { stream, answering: Answering::default() })
}

// === impl Cork ===

impl<S: AsyncWrite + Unpin> Cork<S> {
    /// Returns the requests of the connection that are being answered.
    pub(super) fn answering(&self) -> Answering {
        self.answering.clone()
    }

    /// Runs the task of the connection to its end.
    pub(super) fn run<'a, F: Future>(&'a self, connection: Pin<&'a mut F>) -> Run<'a, S, F> {
        Run { cork: self, connection, has_waited: false }
    }
}

// === impl Run ===

impl<S: AsyncWrite + Unpin, F: Future> Future for Run<'_, S, F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let me = &mut *self;
        me.cork.stream.lock().is_held = true;
        let polled = me.connection.as_mut().poll(cx);
        let mut held = me.cork.stream.lock();
        held.is_held = false;
        if !held.is_dirty {
            return polled;
        }
        if polled.is_pending() && !me.has_waited && me.cork.answering.is_any() {
            // A task that wakes itself runs after those that wait already.
            me.has_waited = true;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        me.has_waited = false;
        match held.poll_flush(cx) {
            // The rest is written when there is room, by the same task.
            Poll::Pending | Poll::Ready(Ok(())) => polled,
            Poll::Ready(Err(error)) => {
                held.failed = Some(error.kind());
                drop(held);
                // The connection meets the error when it flushes.
                if polled.is_pending() { me.connection.as_mut().poll(cx) } else { polled }
            }
        }
    }
}

// === impl Answering ===

impl Answering {
    /// Counts one more until the result is dropped.
    pub(super) fn begin(&self) -> Answer {
        self.0.fetch_add(1, Ordering::Relaxed);
        Answer(self.clone())
    }

    fn is_any(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

// === impl Corked ===

impl<S: AsyncRead + Unpin> AsyncRead for Corked<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream.lock().stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Corked<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let held = &mut *self.stream.lock();
        match held.room_for(bytes.len(), cx) {
            Poll::Ready(Ok(true)) => {
                held.buffer.extend_from_slice(bytes);
                Poll::Ready(Ok(bytes.len()))
            }
            Poll::Ready(Ok(false)) => Pin::new(&mut held.stream).poll_write(cx, bytes),
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => Poll::Pending,
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let held = &mut *self.stream.lock();
        let length = bytes.iter().map(|part| part.len()).sum();
        match held.room_for(length, cx) {
            Poll::Ready(Ok(true)) => {
                bytes.iter().for_each(|part| held.buffer.extend_from_slice(part));
                Poll::Ready(Ok(length))
            }
            Poll::Ready(Ok(false)) => Pin::new(&mut held.stream).poll_write_vectored(cx, bytes),
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => Poll::Pending,
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.is_vectored
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut held = self.stream.lock();
        match held.failed {
            Some(kind) => Poll::Ready(Err(kind.into())),
            None if held.is_held => Poll::Ready(Ok(())),
            None => held.poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut held = self.stream.lock();
        ready!(held.poll_empty(cx))?;
        Pin::new(&mut held.stream).poll_shutdown(cx)
    }
}

// === impl Held ===

impl<S: AsyncWrite + Unpin> Held<S> {
    /// Whether so many bytes are to be kept back; others are written, behind those that have been.
    fn room_for(&mut self, bytes: usize, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        if let Some(kind) = self.failed {
            return Poll::Ready(Err(kind.into()));
        }
        self.is_dirty = true;
        if !self.is_held && self.buffer.is_empty() {
            return Poll::Ready(Ok(false));
        }
        if self.buffer.len() + bytes > BYTES_MAX {
            ready!(self.poll_empty(cx))?;
        }
        Poll::Ready(Ok(bytes < BYTES_MAX))
    }

    /// Writes what is kept back.
    fn poll_empty(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut written = 0;
        let outcome = loop {
            if written == self.buffer.len() {
                break Poll::Ready(Ok(()));
            }
            match Pin::new(&mut self.stream).poll_write(cx, &self.buffer[written..]) {
                Poll::Ready(Ok(0)) => break Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(more)) => written += more,
                Poll::Ready(Err(error)) => break Poll::Ready(Err(error)),
                Poll::Pending => break Poll::Pending,
            }
        };
        self.buffer.drain(..written);
        outcome
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_empty(cx))?;
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        self.is_dirty = false;
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::task::{Wake, Waker};

    use super::*;

    /// A socket that notes each write.
    #[derive(Clone, Debug, Default)]
    struct Socket(Arc<Mutex<Noted>>);

    #[derive(Debug, Default)]
    struct Noted {
        writes: Vec<Vec<u8>>,
        /// The number of bytes that it takes at once; all if unset.
        takes: Option<usize>,
        is_full: bool,
        is_broken: bool,
    }

    impl AsyncWrite for Socket {
        fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            let mut noted = self.0.lock();
            if noted.is_full {
                return Poll::Pending;
            }
            if noted.is_broken {
                return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
            }
            let taken = bytes.len().min(noted.takes.unwrap_or(usize::MAX));
            noted.writes.push(bytes[..taken].to_vec());
            Poll::Ready(Ok(taken))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[derive(Default)]
    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    /// A task that writes and flushes these parts whenever it runs, until there are none; it ends with the first error.
    struct Task {
        stream: Corked<Socket>,
        parts: Vec<Vec<u8>>,
    }

    impl Future for Task {
        type Output = io::ErrorKind;

        fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::ErrorKind> {
            let Self { stream, parts } = &mut *self;
            while let Some(part) = parts.first_mut() {
                match Pin::new(&mut *stream).poll_write(cx, part) {
                    Poll::Ready(Ok(written)) => drop(part.drain(..written)),
                    Poll::Ready(Err(error)) => return Poll::Ready(error.kind()),
                    Poll::Pending => return Poll::Pending,
                }
                if part.is_empty() {
                    parts.remove(0);
                }
                if let Poll::Ready(Err(error)) = Pin::new(&mut *stream).poll_flush(cx) {
                    return Poll::Ready(error.kind());
                }
            }
            match Pin::new(&mut *stream).poll_flush(cx) {
                Poll::Ready(Err(error)) => Poll::Ready(error.kind()),
                _ => Poll::Pending,
            }
        }
    }

    struct Rig {
        socket: Socket,
        cork: Cork<Socket>,
        task: Pin<Box<Task>>,
    }

    impl Rig {
        fn new(parts: &[usize]) -> Self {
            let socket = Socket::default();
            let (stream, cork) = corked(socket.clone());
            let parts = parts.iter().zip(b'a'..).map(|(length, letter)| vec![letter; *length]).collect();
            Self { socket, cork, task: Box::pin(Task { stream, parts }) }
        }

        /// Runs the task as often as it wakes itself; returns how often, and how it ended.
        fn run(&mut self) -> (usize, Poll<io::ErrorKind>) {
            let woken = Arc::new(Woken::default());
            let waker = Waker::from(Arc::clone(&woken));
            let mut run = std::pin::pin!(self.cork.run(self.task.as_mut()));
            for turn in 1.. {
                let polled = run.as_mut().poll(&mut Context::from_waker(&waker));
                if polled.is_ready() || !woken.0.swap(false, Ordering::Relaxed) {
                    return (turn, polled);
                }
            }
            unreachable!("a task that wakes itself for ever")
        }

        fn writes(&self) -> Vec<String> {
            let noted = self.socket.0.lock();
            let shown = |write: &Vec<u8>| format!("{}{}", char::from(write[0]), write.len());
            noted.writes.iter().map(shown).collect()
        }
    }

    #[test]
    fn what_is_ready_together_is_written_together() {
        for (parts, want) in [
            (&[100, 200, 300][..], &["a600"][..]),
            // More than a record: what was before goes first.
            (&[100, BYTES_MAX, 50], &["a100", "b16384", "c50"]),
            (&[BYTES_MAX - 1, 1, 1], &["a16384", "c1"]),
            (&[BYTES_MAX * 3], &["a49152"]),
            (&[], &[]),
        ] {
            let mut rig = Rig::new(parts);
            assert_eq!(rig.run(), (1, Poll::Pending), "{parts:?}");
            assert_eq!(rig.writes(), want, "{parts:?}");
        }
    }

    #[test]
    fn while_others_are_answered_it_waits_for_one_turn_and_no_longer() {
        let mut rig = Rig::new(&[100, 200]);
        let answer = rig.cork.answering().begin();
        assert_eq!(rig.run(), (2, Poll::Pending));
        assert_eq!(rig.writes(), ["a300"]);
        drop(answer);
        rig.task.parts = vec![b"x".to_vec()];
        assert_eq!(rig.run(), (1, Poll::Pending), "nobody is answered any more");
        assert_eq!(rig.writes(), ["a300", "x1"]);
    }

    #[test]
    fn a_socket_that_is_full_gets_the_rest_later() {
        let mut rig = Rig::new(&[100, 200]);
        rig.socket.0.lock().is_full = true;
        assert_eq!(rig.run(), (1, Poll::Pending));
        assert_eq!(rig.writes(), [""; 0]);
        let mut noted = rig.socket.0.lock();
        (noted.is_full, noted.takes) = (false, Some(150));
        drop(noted);
        assert_eq!(rig.run(), (1, Poll::Pending));
        assert_eq!(rig.writes(), ["a150", "b150"]);
    }

    #[test]
    fn a_broken_socket_ends_the_connection() {
        let mut rig = Rig::new(&[100]);
        rig.socket.0.lock().is_broken = true;
        assert_eq!(rig.run(), (1, Poll::Ready(io::ErrorKind::BrokenPipe)));
    }
}
