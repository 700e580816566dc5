//! Calls of webhooks, for admission and for conversion.
//!
//! 1. A call is one POST over TLS on a connection of its own. It ends at its deadline, when the request it is made for ends,
//!    or when the answer is larger than [`answer_bytes_max`].
//! 2. Requests that may call webhooks run on threads that may block, at most [`CALLERS_MAX`] of them: the write path waits
//!    for answers, the runtime does the I/O. Waiting is in real time, so a paused clock cannot hold a request forever.
//! 3. What goes wrong is worded as Go's HTTP client and client-go word it.
//!
//! Follows `apiserver/pkg/util/webhook/client.go` and `client-go/rest/request.go` of Kubernetes 1.37.

mod endpoint;
mod exchange;
mod trust;

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::decode::{self, ContentType};

pub(crate) use endpoint::{ClientConfig, Endpoint};

/// The maximum number of requests that wait for webhooks at a time, each on a thread; more wait for a place. It is well
/// below the number of blocking threads that a runtime has by default, and above the number of writes that clients
/// usually have in flight.
pub(crate) const CALLERS_MAX: usize = 128;
/// The time limit of all calls of one request together: upstream's `requestTimeoutUpperBound`.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(34);
/// The largest answer to a small question: a patch that replaces the largest object, as base64, and room beside it.
const ANSWER_BYTES_MIN: usize = 8 << 20;

/// The maximum number of conversions that a request remembers: of the old object and of the new one, to and fro.
const CONVERTED_MAX: usize = 4;

/// The means of a request to call webhooks: the runtime that does the I/O, and the deadline.
#[derive(Debug)]
pub(crate) struct Line {
    runtime: Handle,
    ended: CancellationToken,
    deadline: Instant,
    /// The last conversions: the version that was asked for, the object, and what became of it.
    converted: Mutex<Vec<(String, Value, Value)>>,
}

thread_local! {
    /// The means of the request that this thread works on, if it may block.
    static LINE: RefCell<Option<Arc<Line>>> = const { RefCell::new(None) };
}

/// A call that has been made.
pub(crate) struct Pending {
    answers: Receiver<Result<Bytes, CallError>>,
    task: AbortHandle,
    deadline: Instant,
    url: String,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct CallError(pub(crate) String);

/// Works on a request, on a thread that may block.
pub(crate) fn on_line<T>(line: Arc<Line>, work: impl FnOnce() -> T) -> T {
    /// Takes the line away again, whatever happens to the work.
    struct Guard;
    impl Drop for Guard {
        fn drop(&mut self) {
            LINE.with(|held| held.borrow_mut().take());
        }
    }
    LINE.with(|held| held.borrow_mut().replace(line));
    let _guard = Guard;
    work()
}

/// Returns what the request needs that this thread works on; none if the thread may not block.
pub(crate) fn line_of_thread() -> Option<Arc<Line>> {
    LINE.with(|held| held.borrow().clone())
}

/// Reads the body of an answer: what does not begin as a JSON object is taken for YAML, as upstream's decoder does.
///
/// # Errors
/// It cannot be read, in upstream's words.
pub(crate) fn decode_answer(body: &[u8]) -> Result<Value, String> {
    let is_json = body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
    let content_type = if is_json { ContentType::Json } else { ContentType::Yaml };
    decode::object(body, content_type).map(|decoded| decoded.value).map_err(|error| error.to_string())
}

/// Returns the largest answer that is read: converted objects may grow, but not without bound.
pub(crate) fn answer_bytes_max(question_bytes: usize) -> usize {
    ANSWER_BYTES_MIN.max(question_bytes.saturating_mul(4))
}

// === impl Line ===

impl Line {
    /// Returns what a request needs that begins now, within a runtime. It may call until `ended` is cancelled.
    pub(crate) fn new(ended: CancellationToken) -> Self {
        let deadline = Instant::now() + REQUEST_TIME_MAX;
        Self { runtime: Handle::current(), ended, deadline, converted: Mutex::default() }
    }

    /// Returns what became of an object that this request has converted before.
    pub(crate) fn converted(&self, to: &str, object: &Value) -> Option<Value> {
        let held = self.converted.lock();
        held.iter().find(|(version, from, _)| version == to && from == object).map(|(.., into)| into.clone())
    }

    /// Remembers what became of an object.
    pub(crate) fn remember(&self, to: &str, object: Value, converted: Value) {
        let mut held = self.converted.lock();
        if held.len() >= CONVERTED_MAX {
            held.remove(0);
        }
        held.push((to.to_owned(), object, converted));
    }

    /// Whether the request has ended, or has had its time.
    pub(crate) fn is_over(&self) -> bool {
        self.ended.is_cancelled() || Instant::now() >= self.deadline
    }

    /// Returns how long a call with this time limit may take.
    pub(crate) fn time_for(&self, limit: Duration) -> Duration {
        limit.min(self.deadline.saturating_duration_since(Instant::now()))
    }

    /// Makes a call. Calls that have been made before go on meanwhile.
    pub(crate) fn start(&self, endpoint: Arc<Endpoint>, question: Bytes, limit: Duration) -> Pending {
        let (send, answers): (SyncSender<_>, _) = sync_channel(1);
        let ended = self.ended.clone();
        let url = endpoint.url.clone();
        let work = async move {
            let answered = tokio::select! {
                biased;
                () = ended.cancelled() => Err(CallError(format!("Post {:?}: context canceled", endpoint.url))),
                answered = exchange::post(&endpoint, question) => answered,
            };
            // Nobody waits any more if the time is over.
            let _ = send.send(answered);
        };
        let task = self.runtime.spawn(work).abort_handle();
        Pending { answers, task, deadline: Instant::now() + self.time_for(limit), url }
    }
}

// === impl Pending ===

impl Pending {
    /// Waits for the answer, until the time limit of the call. Blocks the thread.
    pub(crate) fn wait(self) -> Result<Bytes, CallError> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        match self.answers.recv_timeout(left) {
            Ok(answered) => answered,
            Err(RecvTimeoutError::Timeout) => {
                self.task.abort();
                Err(CallError(format!("Post {:?}: context deadline exceeded", self.url)))
            }
            Err(RecvTimeoutError::Disconnected) => Err(CallError(format!("Post {:?}: context canceled", self.url))),
        }
    }
}
