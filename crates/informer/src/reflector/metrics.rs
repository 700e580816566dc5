//! The metrics interface of a reflector.

use std::time::Duration;

use steersman_base::{Resource, ResourceVersion};

/// A receiver of a reflector's metrics. Every method does nothing by default; calls come from the reflector's task, and
/// should return at once.
///
/// client-go has the same measures (`reflector_lists_total`, …) and registers none of them since 1.10; upstream's
/// `informer_*` metrics are the store's.
pub trait ReflectorMetrics: Send + Sync {
    /// Called when a list is complete.
    fn listed(&self, kind: ListKind, items: usize, took: Duration) {
        let _ = (kind, items, took);
    }

    /// Called when a list failed.
    fn list_failed(&self, kind: ListKind) {
        let _ = kind;
    }

    /// Called when a watch was requested.
    fn watch_started(&self) {}

    /// Called when a watch has ended, after this many events.
    fn watch_ended(&self, end: WatchEnd, events: u64, lived: Duration) {
        let _ = (end, events, lived);
    }

    /// Called with the version that was handed to the sink last.
    fn reached(&self, version: &ResourceVersion) {
        let _ = version;
    }

    /// Called when an object of this resource could not be decoded, in a list or in an event, and was skipped.
    fn unreadable_object(&self, resource: &Resource) {
        let _ = resource;
    }

    /// Called when an event was older than the known state of its object, and dropped.
    fn stale_event(&self) {}
}

/// The way of listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ListKind {
    /// As the beginning of a watch.
    Streamed,
    /// In pages.
    Paged,
}

/// The end of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WatchEnd {
    /// The server closed it in time.
    Graceful,
    /// The server closed it at once and without an event.
    Short,
    /// It broke, or could not be decoded.
    Failed,
    /// It was ended here, because it did not show a known write.
    Stale,
}

/// A receiver that ignores everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoMetrics;

impl ReflectorMetrics for NoMetrics {}
