//! Watches: streams of changes.
//!
//! 1. A watch from a version sends everything after it, once and in order; from no version, or from `0`, it sends the
//!    current state first.
//! 2. An object that enters the selection is `ADDED`, one that leaves it is `DELETED`.
//! 3. A watcher has no buffer: it reads the store's history at its own pace, and holds pointers to what it has yet to
//!    send, its initial state included. A line is encoded when the client reads it. A watcher that falls behind the
//!    history gets `410` and is dropped, at no cost to others.
//! 4. An event is encoded once, when it is written; all watchers of the whole object send the same bytes.
//! 5. A client that requests bookmarks gets one about once a minute, and at the end of the initial events if it
//!    requested them. Bookmarks and the end of a watch do not wait for a pause between events.
//! 6. A watch of a custom resource ends when its definition is deleted, or is changed so that it is served differently:
//!    kube-apiserver ends it with the storage. All events have been sent by then.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, Stream};
use serde_json::{Value, json};
use steersman_base::Clock;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::http::negotiate::{Accepted, Encoding, Shape};
use crate::registry::list::Filter;
use crate::registry::query::ListOptions;
use crate::registry::{Call, Registry, Row, convert};
use crate::status::Status;
use crate::store::{Event, EventKind, Object, Range, Storage, Unavailable, Wanted};
use crate::table::{self, IncludeObject};
use crate::webhook::{Line, on_line};

/// The number of events read from the history at a time.
const BATCH_EVENTS: usize = 256;
/// The period of bookmarks.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// The default duration of a watch: between once and twice this, so that not all end together.
const TIMEOUT_SECONDS_MIN: u64 = 1800;

/// One watch.
pub(crate) struct Watch {
    row: Arc<Row>,
    store: Arc<dyn Storage>,
    clock: Clock,
    filter: Filter,
    shape: Shape,
    include: IncludeObject,
    signal: steersman_base::watch::Receiver<u64>,
    /// Everything up to here has been sent.
    reached: u64,
    /// The initial state that has not been sent.
    initial: std::vec::IntoIter<Arc<Object>>,
    /// Events that have been read and not been sent.
    pending: VecDeque<Pending>,
    /// Cancelled when the resource is no longer served this way; never for built-in ones.
    withdrawn: CancellationToken,
    bookmarks: bool,
    next_bookmark: Instant,
    ends: Instant,
    has_columns: bool,
    is_over: bool,
}

/// A pending event.
enum Pending {
    /// A line that is made already.
    Line(Bytes),
    /// A state of an object.
    State(EventKind, Arc<Object>),
    /// An object has left the selection: its last state within it, at the revision that took it out.
    Left(Arc<Object>, u64),
}

impl Watch {
    /// Begins a watch.
    ///
    /// # Errors
    /// If the options make no sense, or name a version that is yet to come.
    pub(crate) fn begin(
        registry: &Registry,
        call: &Call,
        options: &ListOptions,
        accepted: Accepted,
        include: IncludeObject,
    ) -> Result<Self, Status> {
        if accepted.encoding != Encoding::Json {
            return Err(Status::not_acceptable());
        }
        let row = Arc::clone(&call.row);
        let filter = Filter::new(&row, &call.namespace, options)?;
        let seconds = options.timeout_seconds.filter(|seconds| *seconds > 0);
        let seconds = seconds.unwrap_or_else(|| TIMEOUT_SECONDS_MIN + fastrand::u64(..TIMEOUT_SECONDS_MIN));
        let now = Instant::now();
        let mut watch = Self {
            signal: registry.store.changes(&row.collection),
            withdrawn: registry.withdrawal_of(&row),
            row,
            store: Arc::clone(&registry.store),
            clock: registry.clock.clone(),
            filter,
            shape: accepted.shape,
            include,
            reached: 0,
            initial: Vec::new().into_iter(),
            pending: VecDeque::new(),
            bookmarks: options.allow_bookmarks,
            next_bookmark: now + BOOKMARK_EVERY,
            // A far end is as good as none, and cannot overflow.
            ends: now + Duration::from_secs(seconds.min(u64::from(u32::MAX))),
            has_columns: false,
            is_over: false,
        };
        watch.start(options)?;
        Ok(watch)
    }

    fn start(&mut self, options: &ListOptions) -> Result<(), Status> {
        let current = self.store.revision();
        let version = options.resource_version.unwrap_or(0);
        if version > current {
            return Err(Status::future_version(version, current));
        }
        let wants_state = match options.send_initial_events {
            Some(wanted) => wanted,
            None => version == 0,
        };
        if wants_state {
            self.queue_state();
            if options.send_initial_events == Some(true) && self.bookmarks {
                let line = self.bookmark(true);
                self.pending.push_back(Pending::Line(line));
            }
        } else if version == 0 {
            self.reached = current;
        } else {
            self.reached = version;
        }
        Ok(())
    }

    fn queue_state(&mut self) {
        let matches = |object: &Object| self.filter.matches(object);
        let wanted: Option<&Wanted<'_>> = if self.filter.is_everything() { None } else { Some(&matches) };
        let range = Range { namespace: self.filter.namespace(), ..Range::default() };
        match self.store.list(&self.row.collection, &range, wanted) {
            Ok(page) => {
                self.reached = page.revision;
                self.initial = page.objects.into_iter();
            }
            Err(unavailable) => self.fail(unavailable),
        }
    }

    /// The lines of the watch, each as soon as there is one.
    pub(crate) fn lines(self) -> impl Stream<Item = Bytes> + Send {
        stream::unfold(self, |mut watch| async move { watch.next().await.map(|line| (line, watch)) })
    }

    async fn next(&mut self) -> Option<Bytes> {
        loop {
            // The time counts whether or not there are always events to send.
            let now = Instant::now();
            if now >= self.ends {
                return None;
            }
            if let Some(object) = self.initial.next() {
                return Some(self.converted_line(EventKind::Added, object).await);
            }
            if let Some(pending) = self.pending.pop_front() {
                return Some(match pending {
                    Pending::Line(line) => line,
                    Pending::State(kind, object) => self.converted_line(kind, object).await,
                    Pending::Left(before, revision) => {
                        self.converted_line(EventKind::Deleted, Arc::new(before.deleted_at(revision))).await
                    }
                });
            }
            if self.is_over {
                return None;
            }
            self.signal.mark_unchanged();
            let is_withdrawn = self.withdrawn.is_cancelled();
            let has_more = self.read();
            if now >= self.next_bookmark {
                self.next_bookmark = now + BOOKMARK_EVERY;
                if self.bookmarks && !self.is_over {
                    let line = self.bookmark(false);
                    self.pending.push_back(Pending::Line(line));
                }
            }
            if !self.pending.is_empty() {
                continue;
            }
            if has_more {
                // None of the events was wanted, and there are others: they must not keep a thread to themselves.
                tokio::task::yield_now().await;
                continue;
            }
            if is_withdrawn {
                return None;
            }
            tokio::select! {
                biased;
                () = tokio::time::sleep_until(self.ends) => return None,
                // What follows is done above; reading also lets objects go whose time is over.
                () = tokio::time::sleep_until(self.next_bookmark) => {}
                changed = self.signal.changed() => if changed.is_err() { return None },
                () = self.withdrawn.cancelled() => {}
            }
        }
    }

    /// Takes what has happened since from the history; answers whether there was anything.
    fn read(&mut self) -> bool {
        match self.store.events(&self.row.collection, self.reached, BATCH_EVENTS) {
            Ok(events) => {
                for event in &events.events {
                    self.queue(event);
                }
                self.reached = events.reached;
                !events.events.is_empty()
            }
            Err(unavailable) => {
                self.fail(unavailable);
                true
            }
        }
    }

    fn queue(&mut self, event: &Event) {
        let is_wanted = event.kind != EventKind::Deleted && self.filter.matches(&event.object);
        let was_wanted = event.before.as_ref().is_some_and(|before| self.filter.matches(before));
        let state = |kind| Pending::State(kind, Arc::clone(&event.object));
        let pending = match (was_wanted, is_wanted) {
            (false, false) => return,
            (false, true) => state(EventKind::Added),
            (true, true) => state(EventKind::Modified),
            (true, false) if event.kind == EventKind::Deleted => state(EventKind::Deleted),
            (true, false) => match &event.before {
                Some(before) => Pending::Left(Arc::clone(before), event.revision),
                None => return,
            },
        };
        self.pending.push_back(pending);
    }

    /// Returns the line of a state, which a webhook may have to convert: then the watch waits for it, not the thread. A watch
    /// whose events cannot be converted ends with the reason.
    async fn converted_line(&mut self, kind: EventKind, object: Arc<Object>) -> Bytes {
        let is_converted = self.row.custom.as_ref().is_some_and(|custom| custom.conversion.is_some());
        if !is_converted || matches!(self.shape, Shape::Metadata | Shape::MetadataList) {
            return self.line(kind, &object);
        }
        let row = Arc::clone(&self.row);
        let line = Arc::new(Line::new(CancellationToken::new()));
        let work = move || on_line(line, || convert::to_version(&row, object.parse().map_err(Status::internal)?));
        let converted = tokio::task::spawn_blocking(work).await;
        match converted.unwrap_or_else(|_| Err(Status::internal("the server is stopping"))) {
            Ok(value) if self.shape == Shape::Table => event_line(kind, &self.table(&value)),
            Ok(value) => event_line(kind, &value),
            Err(status) => {
                self.initial = Vec::new().into_iter();
                self.pending.clear();
                self.is_over = true;
                error_line(&status)
            }
        }
    }

    fn line(&mut self, kind: EventKind, object: &Object) -> Bytes {
        match self.shape {
            Shape::Full if convert::is_storage_version(&self.row) => {
                if let Some(line) = object.line(kind) {
                    return line;
                }
                [kind.opening().as_bytes(), &object.bytes(), b"}\n"].concat().into()
            }
            Shape::Full => match self.shown(object) {
                Ok(value) => event_line(kind, &value),
                Err(status) => error_line(&status),
            },
            Shape::Metadata | Shape::MetadataList => {
                let head = b"{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":";
                [kind.opening().as_bytes(), head, &object.metadata(), b"}}\n"].concat().into()
            }
            Shape::Table => match self.shown(object) {
                Ok(value) => event_line(kind, &self.table(&value)),
                Err(status) => error_line(&status),
            },
        }
    }

    fn shown(&self, object: &Object) -> Result<Value, Status> {
        convert::to_version(&self.row, object.parse().map_err(Status::internal)?)
    }

    /// A table of one row; only the first has columns.
    fn table(&mut self, object: &Value) -> Value {
        let metadata = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
        let Row { resource, rules, .. } = &*self.row;
        let now = self.clock.now();
        let declared = self.row.declared_columns();
        let mut table = table::render(resource, &rules.printer, declared, &[object], &metadata, self.include, now);
        if std::mem::replace(&mut self.has_columns, true) {
            table["columnDefinitions"] = Value::Null;
        }
        table
    }

    fn bookmark(&self, is_end_of_initial: bool) -> Bytes {
        let (kind, version) = match self.shape {
            Shape::Metadata | Shape::MetadataList => ("PartialObjectMetadata", "meta.k8s.io/v1".into()),
            Shape::Full | Shape::Table => (&*self.row.resource.kind, self.row.resource.api_version()),
        };
        let mut object =
            json!({"kind": kind, "apiVersion": version, "metadata": {"resourceVersion": self.reached.to_string()}});
        if is_end_of_initial {
            object["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        format!("{{\"type\":\"BOOKMARK\",\"object\":{object}}}\n").into()
    }

    fn fail(&mut self, unavailable: Unavailable) {
        let status = match unavailable {
            Unavailable::Compacted { oldest } => {
                Status::expired(format!("too old resource version: {} ({oldest})", self.reached))
            }
            Unavailable::Future { current } => Status::future_version(self.reached, current),
        };
        self.pending.push_back(Pending::Line(error_line(&status)));
        self.is_over = true;
    }
}

fn event_line(kind: EventKind, object: &Value) -> Bytes {
    format!("{}{object}}}\n", kind.opening()).into()
}

fn error_line(status: &Status) -> Bytes {
    format!("{{\"type\":\"ERROR\",\"object\":{}}}\n", status.to_json()).into()
}
