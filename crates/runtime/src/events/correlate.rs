//! Pure: the correlation of events with earlier ones. client-go's `EventCorrelator`.
//!
//! 1. **Aggregation.** Events that differ only in their text are similar. The tenth different text within ten minutes
//!    of the one before, and every further one, is joined into one event "(combined from similar events): …". While the
//!    sender is behind, the second one is joined already (client-go would drop events after a thousand).
//! 2. **Counting.** A repeated event is not sent again: its count is raised, by a patch.
//! 3. **Spam.** A source may send 25 events of a type about an object at once, and one more every five minutes; further
//!    events are counted, and not sent.

use std::time::Duration;

use serde_json::Value;
use steersman_base::{Bucket, MicroTime};

use super::event::{Event, name};
use super::lru::Lru;

/// Correlates events with earlier ones.
pub(super) struct Correlator {
    alike: Lru<String, Alike>,
    sent: Lru<String, Sent>,
    buckets: Lru<String, Bucket>,
}

/// The request for an event.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Verdict {
    /// None: the source sends too many, or the event was sent already.
    Skip,
    /// A new event.
    Create(Pending),
    /// A repeated event, whose count, time and text change. If it no longer exists, it is created.
    Patch(Pending),
}

/// An event that is to be sent. It is encoded when that happens, because many are merged with a later one before.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pending {
    /// The API.
    pub(super) api: Api,
    /// The event, with its count.
    pub(super) event: Event,
}

/// The API that an event is sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Api {
    /// `v1`.
    Core,
    /// `events.k8s.io/v1`.
    Events,
}

/// Events that differ only in their text.
struct Alike {
    /// The different texts, oldest first; one less than the limit, once it is reached.
    texts: Vec<String>,
    last: MicroTime,
}

/// An event that was sent.
struct Sent {
    name: String,
    first_time: MicroTime,
    count: u32,
}

/// The number of remembered events of each kind: client-go's `maxLruCacheEntries`.
pub(super) const ENTRIES_MAX: usize = 4096;
/// The number of different texts at which similar events are joined: client-go's `defaultAggregateMaxEvents`.
pub(super) const ALIKE_MAX: usize = 10;
/// The same while the sender is behind: every object still gets one event with its own text.
const ALIKE_MAX_BEHIND: usize = 2;
/// The time after which similar events start afresh: client-go's `defaultAggregateIntervalInSeconds`.
pub(super) const ALIKE_WITHIN: Duration = Duration::from_secs(600);
/// The number of events a source may send about an object at once: client-go's `defaultSpamBurst`.
pub(super) const SPAM_BURST: u32 = 25;
/// The time per further event: client-go's `defaultSpamQPS`.
pub(super) const SPAM_EVERY: Duration = Duration::from_secs(300);

const COMBINED: &str = "(combined from similar events): ";

// === impl Correlator ===

impl Correlator {
    /// Returns the request for an event that happened now; `is_behind` if many others have not been sent yet.
    pub(super) fn correlate(&mut self, event: Event, now: MicroTime, is_behind: bool) -> Verdict {
        // The joined event has the same.
        let about = source_and_object(&event);
        let (event, key) = self.aggregate(event, &about, now, is_behind);
        let (event, is_new) = self.count(event, &key);
        if !self.may_send(&event, &about, now) {
            return Verdict::Skip;
        }
        let pending = Pending { api: Api::Core, event };
        if is_new { Verdict::Create(pending) } else { Verdict::Patch(pending) }
    }

    /// Returns the event, or the one that it is joined into, and the key under which it is counted.
    fn aggregate(&mut self, event: Event, about: &str, now: MicroTime, is_behind: bool) -> (Event, String) {
        let alike_key =
            key(&[about, event.type_.as_str(), &event.reason, &event.reporting_component, &event.reporting_instance]);
        let alike = self.alike.get_or_insert_with(&alike_key, || Alike { texts: Vec::new(), last: now });
        if now.since(alike.last) > ALIKE_WITHIN {
            alike.texts.clear();
        }
        alike.last = now;
        let is_new = !alike.texts.contains(&event.message);
        if is_new {
            alike.texts.push(event.message.clone());
        }
        let limit = if is_behind && is_new { ALIKE_MAX_BEHIND } else { ALIKE_MAX };
        if alike.texts.len() < limit {
            let path: &str = &event.involved_object.field_path;
            let event_key = key(&[about, event.type_.as_str(), path, &event.reason, &event.message]);
            return (event, event_key);
        }
        // Upstream drops an arbitrary text; the oldest is the least likely to repeat.
        alike.texts.remove(0);
        let joined = Event {
            name: name(&event.involved_object.name, event.nanos),
            message: format!("{COMBINED}{}", event.message),
            // Upstream's joined event has a source, and leaves the newer fields empty.
            reporting_component: "".into(),
            reporting_instance: "".into(),
            first_time: now,
            last_time: now,
            count: 1,
            ..event
        };
        (joined, alike_key)
    }

    /// Returns the event with its count, name and first time, and whether it is the first.
    fn count(&mut self, event: Event, key: &String) -> (Event, bool) {
        let first = || Sent { name: event.name.clone(), first_time: event.first_time, count: 0 };
        let sent = self.sent.get_or_insert_with(key, first);
        sent.count = sent.count.saturating_add(1);
        let event = Event { name: sent.name.clone(), first_time: sent.first_time, count: sent.count, ..event };
        let is_new = event.count == 1;
        (event, is_new)
    }

    fn may_send(&mut self, event: &Event, about: &str, now: MicroTime) -> bool {
        let spam_key = key(&[about, event.type_.as_str()]);
        let now = now.since_epoch();
        self.buckets.get_or_insert_with(&spam_key, || Bucket::full(SPAM_BURST, SPAM_EVERY, now)).try_take(1, now)
    }
}

impl Default for Correlator {
    fn default() -> Self {
        Self { alike: Lru::new(ENTRIES_MAX), sent: Lru::new(ENTRIES_MAX), buckets: Lru::new(ENTRIES_MAX) }
    }
}

// === impl Verdict ===

impl Verdict {
    /// Returns the event that is to be sent, if one is.
    pub(super) fn pending(&self) -> Option<&Pending> {
        match self {
            Self::Skip => None,
            Self::Create(pending) | Self::Patch(pending) => Some(pending),
        }
    }

    /// Returns the identity of the event; `None` if there is no request.
    pub(super) fn id(&self) -> Option<(Api, &str, &str)> {
        let Pending { api, event } = self.pending()?;
        Some((*api, &event.namespace, &event.name))
    }
}

// === impl Pending ===

impl Pending {
    /// Returns the whole event.
    pub(super) fn body(&self) -> Value {
        match self.api {
            Api::Core => self.event.core_body(),
            Api::Events => self.event.v1_body(),
        }
    }

    /// Returns what a repetition changes.
    pub(super) fn patch(&self) -> Value {
        match self.api {
            Api::Core => self.event.core_patch(),
            Api::Events => self.event.v1_patch(),
        }
    }
}

/// Joins the parts of a key; the separator is in no name and no text that the API allows.
pub(super) fn key(parts: &[&str]) -> String {
    parts.join("\0")
}

/// Returns the source and the object of an event.
fn source_and_object(event: &Event) -> String {
    let object = &event.involved_object;
    let uid = object.uid.to_string();
    key(&[&event.component, &event.host, &object.kind, &object.namespace, &object.name, &uid, &object.api_version])
}
