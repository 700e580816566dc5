//! The body of a response on a simulated connection.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::Frame;
use steersman_apiserver::Body as Answer;
use tokio::time::{Instant, Sleep, sleep_until};
use tower::BoxError;

use super::Line;
use super::shown::Stream;
use crate::faults::About;
use crate::plan::{Fault, Window};

/// The body of a response on a simulated connection.
pub(super) struct Carried {
    line: Line,
    inner: Answer,
    kind: Kind,
}

enum Kind {
    Whole,
    List(About, Stream),
    Watch(Box<Watch>),
}

/// A watch on a simulated connection.
struct Watch {
    about: About,
    stream: Stream,
    /// Whether the server is still sending the initial state.
    is_initial: bool,
    /// Whether what arrives still is what there is: it has shown nothing before it has shown all of it.
    shows_state: bool,
    /// What has been sent and has not arrived.
    held: VecDeque<Held>,
    /// The last lines, for those that come again.
    last: VecDeque<Bytes>,
    /// When it breaks, and how.
    breaks: Option<(Instant, Fault)>,
    /// Until when events are hidden, if some were.
    hidden_until: Option<Instant>,
    timer: Pin<Box<Sleep>>,
    is_over: bool,
    inner_is_over: bool,
}

struct Held {
    due: Instant,
    /// None for the end.
    line: Option<Bytes>,
}

/// How many events come again with each new one.
const REPEATED: usize = 3;
const FAR: Duration = Duration::from_secs(365 * 24 * 3600);

type Polled = Poll<Option<Result<Frame<Bytes>, BoxError>>>;

// === impl Carried ===

impl Carried {
    pub(super) fn whole(line: &Line, inner: Answer) -> Self {
        Self { line: line.clone(), inner, kind: Kind::Whole }
    }

    pub(super) fn list(line: &Line, about: About, stream: Stream, inner: Answer) -> Self {
        Self { line: line.clone(), inner, kind: Kind::List(about, stream) }
    }

    pub(super) fn watch(line: &Line, about: About, stream: Stream, is_initial: bool, inner: Answer) -> Self {
        let faults = &line.0.faults;
        let breaking = |fault| matches!(fault, Fault::WatchCut | Fault::ServerAway | Fault::ListsFromThePast(_));
        let breaks = faults.next_beginning(&about, breaking).map(|(at, fault)| (faults.instant(at), fault));
        let watch = Watch {
            about,
            stream,
            is_initial,
            shows_state: is_initial,
            held: VecDeque::new(),
            last: VecDeque::new(),
            breaks,
            hidden_until: None,
            timer: Box::pin(sleep_until(Instant::now() + FAR)),
            is_over: false,
            inner_is_over: false,
        };
        Self { line: line.clone(), inner, kind: Kind::Watch(Box::new(watch)) }
    }
}

impl http_body::Body for Carried {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled {
        let Self { line, inner, kind } = self.get_mut();
        if line.0.dead.is_cancelled() {
            // The receiver is dropped.
            return Poll::Pending;
        }
        match kind {
            Kind::Watch(watch) => watch.poll(line, inner, cx),
            Kind::Whole => poll_inner(inner, cx).map(|frame| frame.map(Ok)),
            Kind::List(about, stream) => {
                let frame = std::task::ready!(poll_inner(inner, cx));
                let frame = frame.map(|frame| frame.map_data(|bytes| spoiled(line, about, bytes)));
                if let Some(revision) = frame.as_ref().and_then(|frame| revision_of(frame.data_ref()?)) {
                    line.0.sight.lock().listed(stream, revision);
                }
                Poll::Ready(frame.map(Ok))
            }
        }
    }
}

impl std::fmt::Debug for Carried {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Carried").finish_non_exhaustive()
    }
}

// === impl Watch ===

impl Watch {
    fn poll(&mut self, line: &Line, inner: &mut Answer, cx: &mut Context<'_>) -> Polled {
        let faults = &line.0.faults;
        loop {
            if self.is_over {
                return Poll::Ready(None);
            }
            let now = Instant::now();
            if self.hidden_until.is_some_and(|until| until <= now) {
                return self.expire();
            }
            if let Some((at, fault)) = self.breaks
                && at <= now
            {
                faults.acted(fault);
                if matches!(fault, Fault::ListsFromThePast(_)) {
                    return self.expire();
                }
                self.is_over = true;
                return Poll::Ready(Some(Err("the watch was cut, on purpose".into())));
            }
            while !self.inner_is_over
                && let Poll::Ready(frame) = poll_inner(inner, cx)
            {
                self.take(line, frame.and_then(|frame| frame.into_data().ok()));
            }
            let stands_until = self.stands_until(line);
            if let Some(held) = self.held.front()
                && held.due <= now
                && stands_until.is_none()
            {
                let Some(bytes) = self.held.pop_front().and_then(|held| held.line) else {
                    self.is_over = true;
                    return Poll::Ready(None);
                };
                self.show(line, &bytes);
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
            let due = self.held.front().map(|held| held.due.max(stands_until.unwrap_or(held.due)));
            let next = [due, self.hidden_until, self.breaks.map(|(at, _)| at)].into_iter().flatten().min();
            self.timer.as_mut().reset(next.unwrap_or(now + FAR));
            std::task::ready!(Future::poll(self.timer.as_mut(), cx));
        }
    }

    /// Until when nothing arrives, if nothing does.
    fn stands_until(&self, line: &Line) -> Option<Instant> {
        let faults = &line.0.faults;
        let silent =
            faults.open(&self.about).filter(|window| window.fault == Fault::ServerSilent).map(|window| window.to);
        silent.chain(faults.frozen_until(self.about.manager)).max().map(|at| faults.instant(at))
    }

    /// Takes a line from the server; none is the end.
    fn take(&mut self, line: &Line, bytes: Option<Bytes>) {
        let faults = &line.0.faults;
        let latency = Duration::from_millis(line.0.random.lock().u64(..=line.0.latency_max));
        let mut due = Instant::now() + latency;
        let Some(bytes) = bytes else {
            self.inner_is_over = true;
            self.hold(due, None);
            return;
        };
        let bytes = spoiled(line, &self.about, bytes);
        if self.is_initial {
            self.is_initial = memchr::memmem::find(&bytes, b"k8s.io/initial-events-end").is_none();
            self.hold(due, Some(bytes));
            return;
        }
        let windows: Vec<Window> = faults.open(&self.about).cloned().collect();
        let mut repeats = false;
        for window in windows {
            let end = faults.instant(window.to);
            match window.fault {
                Fault::WatchLate(by) => due = due.max((Instant::now() + Duration::from_millis(by)).min(end)),
                Fault::WatchStill | Fault::ListsFromThePast(_) => due = due.max(end),
                Fault::WatchHides => {
                    faults.acted(window.fault);
                    self.hidden_until = Some(self.hidden_until.map_or(end, |until| until.max(end)));
                    return;
                }
                Fault::WatchRepeats => repeats = true,
                _ => continue,
            }
            faults.acted(window.fault);
        }
        if self.hidden_until.is_some() {
            // What comes behind something hidden is not shown either: the order of events is sacred.
            return;
        }
        if repeats {
            for again in self.last.clone() {
                self.hold(due, Some(again));
            }
        }
        let is_bookmark = bytes.starts_with(b"{\"type\":\"BOOKMARK\"");
        if !is_bookmark {
            if self.last.len() == REPEATED {
                self.last.pop_front();
            }
            self.last.push_back(bytes.clone());
        }
        self.hold(due, Some(bytes));
    }

    /// What was sent later arrives later.
    fn hold(&mut self, due: Instant, line: Option<Bytes>) {
        let due = self.held.back().map_or(due, |last| last.due.max(due));
        self.held.push_back(Held { due, line });
    }

    fn show(&mut self, line: &Line, bytes: &Bytes) {
        let is_whole = self.shows_state && is_end_of_state(bytes);
        if self.shows_state && !is_whole {
            return;
        }
        self.shows_state = false;
        if let Some(revision) = revision_of(bytes) {
            let mut sight = line.0.sight.lock();
            // A list may go back in time; events do not.
            if is_whole { sight.listed(&self.stream, revision) } else { sight.reached(&self.stream, revision) }
        }
    }

    /// The revision of the watch has expired on the server.
    fn expire(&mut self) -> Polled {
        self.is_over = true;
        let status = r#"{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version, on purpose","reason":"Expired","code":410}}"#;
        Poll::Ready(Some(Ok(Frame::data(format!("{status}\n").into()))))
    }
}

/// What a line says, with the bystander (`plan::BYSTANDER`) as nobody can read it: its label is no text.
fn spoiled(line: &Line, about: &About, bytes: Bytes) -> Bytes {
    const LABEL: &[u8] = b"\"app\":\"bystander\"";
    let faults = &line.0.faults;
    if about.manager.is_none() || !faults.open(about).any(|window| window.fault == Fault::Unreadable) {
        return bytes;
    }
    let Some(at) = memchr::memmem::find(&bytes, LABEL) else { return bytes };
    faults.acted(Fault::Unreadable);
    let mut spoiled = bytes[..at].to_vec();
    spoiled.extend_from_slice(b"\"app\":[1]");
    spoiled.extend_from_slice(&bytes[at + LABEL.len()..]);
    spoiled.into()
}

fn poll_inner(inner: &mut Answer, cx: &mut Context<'_>) -> Poll<Option<Frame<Bytes>>> {
    let frame = std::task::ready!(http_body::Body::poll_frame(Pin::new(inner), cx));
    Poll::Ready(frame.map(|frame| frame.unwrap_or_else(|never: Infallible| match never {})))
}

fn is_end_of_state(line: &Bytes) -> bool {
    line.starts_with(b"{\"type\":\"BOOKMARK\"") && memchr::memmem::find(line, b"k8s.io/initial-events-end").is_some()
}

/// The revision in the metadata that comes first. Within a text its quotation marks would be escaped.
fn revision_of(bytes: &Bytes) -> Option<u64> {
    const NAME: &[u8] = b"\"resourceVersion\":\"";
    let digits = &bytes[memchr::memmem::find(bytes, NAME)? + NAME.len()..];
    let end = memchr::memchr(b'"', digits)?;
    std::str::from_utf8(&digits[..end]).ok()?.parse().ok()
}
