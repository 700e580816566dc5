//! Watches: what happens to objects, as it happens.
//!
//! 1. A watch from a version tells of everything behind it, once and in order; from no version, or from `0`, it tells of
//!    what there is first.
//! 2. An object that enters the selection is `ADDED`, one that leaves it is `DELETED`.
//! 3. A watcher has no buffer: it reads the store's history at its own pace. One that falls behind the history hears
//!    `410` and is dropped; it cost nobody anything.
//! 4. An event is encoded once, when it is written; all who see the whole object send the same bytes.
//! 5. Whoever asks for bookmarks gets one about once a minute, and at the end of the initial events if it asked for them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, Stream};
use serde_json::{Value, json};
use steersman_base::Clock;
use tokio::time::Instant;

use crate::http::negotiate::{Accepted, Encoding, Shape};
use crate::registry::list::Filter;
use crate::registry::query::ListOptions;
use crate::registry::{Call, Registry, Row, convert};
use crate::status::Status;
use crate::store::{Event, EventKind, Object, Range, Storage, Unavailable};
use crate::table::{self, IncludeObject};

/// How many events are taken from the history at a time.
const BATCH_EVENTS: usize = 256;
/// How often a watcher hears how far it has come.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// How long a watch lasts that does not say: between once and twice this, so that not all end together.
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
    /// Everything up to here has been told.
    reached: u64,
    /// What has been read and not been sent.
    pending: VecDeque<Bytes>,
    bookmarks: bool,
    next_bookmark: Instant,
    ends: Instant,
    has_columns: bool,
    is_over: bool,
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
            signal: registry.store.changes(&row.shelf),
            row,
            store: Arc::clone(&registry.store),
            clock: registry.clock.clone(),
            filter,
            shape: accepted.shape,
            include,
            reached: 0,
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
            self.tell_state();
            if options.send_initial_events == Some(true) && self.bookmarks {
                let line = self.bookmark(true);
                self.pending.push_back(line);
            }
        } else if version == 0 {
            self.reached = current;
        } else {
            self.reached = version;
        }
        Ok(())
    }

    fn tell_state(&mut self) {
        let wanted = |object: &Object| self.filter.matches(object);
        match self.store.list(&self.row.shelf, &Range::default(), &wanted) {
            Ok(page) => {
                self.reached = page.revision;
                for object in page.objects {
                    let line = self.line(EventKind::Added, &object);
                    self.pending.push_back(line);
                }
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
            if let Some(line) = self.pending.pop_front() {
                return Some(line);
            }
            if self.is_over {
                return None;
            }
            self.signal.mark_unchanged();
            self.read();
            if !self.pending.is_empty() {
                continue;
            }
            tokio::select! {
                biased;
                changed = self.signal.changed() => if changed.is_err() { return None },
                () = tokio::time::sleep_until(self.ends) => return None,
                () = tokio::time::sleep_until(self.next_bookmark) => {
                    self.next_bookmark += BOOKMARK_EVERY;
                    // Reading also moves `reached` on, and lets objects go whose time is over.
                    self.read();
                    if self.bookmarks && !self.is_over {
                        let line = self.bookmark(false);
                        self.pending.push_back(line);
                    }
                }
            }
        }
    }

    /// Takes what has happened since from the history.
    fn read(&mut self) {
        match self.store.events(&self.row.shelf, self.reached, BATCH_EVENTS) {
            Ok(events) => {
                for event in &events.events {
                    self.tell(event);
                }
                self.reached = events.reached;
            }
            Err(unavailable) => self.fail(unavailable),
        }
    }

    fn tell(&mut self, event: &Event) {
        let is_wanted = event.kind != EventKind::Deleted && self.filter.matches(&event.object);
        let was_wanted = event.before.as_ref().is_some_and(|before| self.filter.matches(before));
        let (kind, object) = match (was_wanted, is_wanted) {
            (false, false) => return,
            (false, true) => (EventKind::Added, Arc::clone(&event.object)),
            (true, true) => (EventKind::Modified, Arc::clone(&event.object)),
            (true, false) if event.kind == EventKind::Deleted => (EventKind::Deleted, Arc::clone(&event.object)),
            // It has left the selection: its last state within it, at the version that took it out.
            (true, false) => match &event.before {
                Some(before) => (EventKind::Deleted, Arc::new(before.buried(event.revision))),
                None => return,
            },
        };
        let line = self.line(kind, &object);
        self.pending.push_back(line);
    }

    fn line(&mut self, kind: EventKind, object: &Object) -> Bytes {
        match self.shape {
            Shape::Full if convert::is_storage_version(&self.row) => {
                if let Some(line) = object.line(kind) {
                    return line;
                }
                [kind.opening().as_bytes(), &object.bytes(), b"}\n"].concat().into()
            }
            Shape::Full => match object.parse() {
                Ok(value) => event_line(kind, &convert::to_version(&self.row, value)),
                Err(error) => error_line(&Status::internal(error)),
            },
            Shape::Metadata | Shape::MetadataList => {
                let head = b"{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":";
                [kind.opening().as_bytes(), head, &object.metadata(), b"}}\n"].concat().into()
            }
            Shape::Table => match object.parse() {
                Ok(value) => event_line(kind, &self.table(&convert::to_version(&self.row, value))),
                Err(error) => error_line(&Status::internal(error)),
            },
        }
    }

    /// A table of one row; only the first has columns.
    fn table(&mut self, object: &Value) -> Value {
        let resource = &self.row.resource;
        let metadata = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
        let (group, version, plural) = (&resource.group, &resource.version, &resource.plural);
        let now = self.clock.now();
        let mut table = table::render(group, version, plural, &[object], &metadata, self.include, now);
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
        self.pending.push_back(error_line(&status));
        self.is_over = true;
    }
}

fn event_line(kind: EventKind, object: &Value) -> Bytes {
    format!("{}{object}}}\n", kind.opening()).into()
}

fn error_line(status: &Status) -> Bytes {
    format!("{{\"type\":\"ERROR\",\"object\":{}}}\n", status.to_json()).into()
}
