//! What a reflector can have counted.

use std::time::Duration;

use steersman_base::{Resource, ResourceVersion};

/// Counts what a reflector does. Every method does nothing unless written; calls come from the reflector's task, and
/// should return at once.
///
/// client-go has the same measures (`reflector_lists_total`, …) and registers none of them since 1.10; upstream's
/// `informer_*` metrics are the store's.
pub trait ReflectorMetrics: Send + Sync {
    /// A list is complete.
    fn listed(&self, kind: ListKind, items: usize, took: Duration) {
        let _ = (kind, items, took);
    }

    /// A list failed.
    fn list_failed(&self, kind: ListKind) {
        let _ = kind;
    }

    /// A watch was asked for.
    fn watch_started(&self) {}

    /// A watch is over, after so many events.
    fn watch_ended(&self, end: WatchEnd, events: u64, lived: Duration) {
        let _ = (end, events, lived);
    }

    /// The version that was handed to the sink last.
    fn reached(&self, version: &ResourceVersion) {
        let _ = version;
    }

    /// An object of this resource could not be read, in a list or in an event, and was skipped.
    fn unreadable_object(&self, resource: &Resource) {
        let _ = resource;
    }

    /// An event was older than what is known of its object, and dropped.
    fn stale_event(&self) {}
}

/// How a list was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ListKind {
    /// As the beginning of a watch.
    Streamed,
    /// In pages.
    Paged,
}

/// How a watch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WatchEnd {
    /// The server closed it, as it should in the end.
    Graceful,
    /// The server closed it at once and without an event.
    Short,
    /// It broke, or could not be read.
    Failed,
    /// It was ended here, because it did not show what the server was known to have.
    Stale,
}

/// Counts nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoMetrics;

impl ReflectorMetrics for NoMetrics {}
