//! Pure: events of `events.k8s.io/v1` in series. client-go's `tools/events`.
//!
//! 1. The first of equal events is sent. The second makes it a series, which is sent at once; from then on the count is
//!    kept here, and is sent every half an hour and when the series ends.
//! 2. A series ends when its event did not occur for six minutes; a single event is forgotten then.

use std::time::Duration;

use steersman_base::MicroTime;

use super::correlate::{Api, ENTRIES_MAX, Pending, Verdict, key};
use super::event::Event;
use super::lru::Lru;

/// Joins equal events into series.
pub(super) struct Series {
    heard: Lru<String, Heard>,
    looked: Option<MicroTime>,
}

struct Heard {
    event: Event,
    /// The time of the last request.
    sent: MicroTime,
    /// The count in the last request.
    sent_count: u32,
}

/// The time after which a silent series ends: client-go's `finishTime`.
const OVER_AFTER: Duration = Duration::from_secs(6 * 60);
/// The interval at which a running series is sent: client-go's `refreshTime`.
const SEND_EVERY: Duration = Duration::from_secs(30 * 60);

// === impl Series ===

impl Series {
    /// Returns the request for an event that happened now.
    pub(super) fn correlate(&mut self, event: &Event, now: MicroTime) -> Verdict {
        let series_key = series_key(event);
        let mut is_new = false;
        let heard = self.heard.get_or_insert_with(&series_key, || {
            is_new = true;
            Heard { event: event.clone(), sent: now, sent_count: 1 }
        });
        if is_new {
            return Verdict::Create(Pending { api: Api::Events, event: event.clone() });
        }
        heard.event.count = heard.event.count.saturating_add(1);
        heard.event.last_time = now;
        if heard.event.count > 2 {
            return Verdict::Skip;
        }
        heard.send(now)
    }

    /// Returns the time until some series is due.
    pub(super) fn next_look(&self, now: MicroTime) -> Option<Duration> {
        self.heard.iter().next()?;
        // The exact second in which a series ends does not matter.
        let due = self.looked.map_or(now + OVER_AFTER, |looked| looked + OVER_AFTER);
        Some(due.since(now))
    }

    /// Ends the series that are over, and sends the running ones.
    pub(super) fn look(&mut self, now: MicroTime) -> Vec<Verdict> {
        self.looked = Some(now);
        let is_over = |heard: &Heard| now.since(heard.event.last_time) >= OVER_AFTER;
        let is_due = |heard: &Heard| heard.event.count > heard.sent_count && now.since(heard.sent) >= SEND_EVERY;
        let due = self.heard.iter().filter(|(_, heard)| is_over(heard) || is_due(heard));
        let due: Vec<String> = due.map(|(key, _)| key.clone()).collect();
        let mut verdicts = Vec::new();
        for key in due {
            let Some(mut heard) = self.heard.remove(&key) else { continue };
            if heard.event.count > heard.sent_count {
                verdicts.push(heard.send(now));
            }
            if !is_over(&heard) {
                self.heard.get_or_insert_with(&key, || heard);
            }
        }
        verdicts
    }
}

impl Default for Series {
    fn default() -> Self {
        Self { heard: Lru::new(ENTRIES_MAX), looked: None }
    }
}

// === impl Heard ===

impl Heard {
    fn send(&mut self, now: MicroTime) -> Verdict {
        self.sent = now;
        self.sent_count = self.event.count;
        Verdict::Patch(Pending { api: Api::Events, event: self.event.clone() })
    }
}

/// The key of equal events: all but text and time, as in upstream.
fn series_key(event: &Event) -> String {
    let object = &event.involved_object;
    let uid = object.uid.to_string();
    let related = event.related.as_ref().map(|related| format!("{related:?}")).unwrap_or_default();
    key(&[
        &event.action,
        &related,
        event.type_.as_str(),
        &event.reason,
        &event.reporting_component,
        &event.reporting_instance,
        &object.api_version,
        &object.kind,
        &object.namespace,
        &object.name,
        &uid,
        object.resource_version.as_str(),
        &object.field_path,
    ])
}
