//! What the controller remembers between passes: free volumes, waiting claims, the times at which operations began, and the
//! recyclers that it created.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use steersman_base::{Istr, MicroTime, ObjectKey, ResourceVersion, Uid};
use steersman_informer::Change;
use steersman_model::View;
use steersman_model::core::{PersistentVolumeClaimView, PersistentVolumeView};

use super::matching::Wanted;
use super::metrics::Metrics;
use super::shelf::Shelf;

/// The memory of both queues.
pub(super) struct Memory {
    shelf: Mutex<Shelf>,
    /// The operations under way, by claim or volume.
    begun: Mutex<HashMap<ObjectKey, Begun>>,
    /// The uids of the recyclers that this process created, by the uid of the volume.
    recyclers: Mutex<HashMap<Uid, Uid>>,
    pub(super) metrics: Metrics,
}

struct Begun {
    plugin: String,
    operation: &'static str,
    at: MicroTime,
}

// === impl Memory ===

impl Memory {
    pub(super) fn new(metrics: Metrics) -> Self {
        Self { shelf: Mutex::default(), begun: Mutex::default(), recyclers: Mutex::default(), metrics }
    }

    /// Notes a change of a volume. Returns the waiting claim that may have it, if it is free now.
    pub(super) fn note(
        &self,
        change: &Change<PersistentVolumeView>,
        claim: impl Fn(&ObjectKey) -> Option<Arc<PersistentVolumeClaimView>>,
    ) -> Option<ObjectKey> {
        let volume = change.object();
        let mut shelf = self.shelf.lock();
        if matches!(change, Change::Deleted { .. }) {
            shelf.forget(&volume.meta().name);
            return None;
        }
        if shelf.note(volume) { shelf.wake(volume, claim) } else { None }
    }

    /// Returns the free volume that suits a claim best. If there is none, the claim waits for one from now on.
    pub(super) fn find_or_wait(
        &self,
        key: &ObjectKey,
        wanted: &Wanted,
        may_have: impl Fn(&PersistentVolumeView) -> bool,
    ) -> Option<Arc<PersistentVolumeView>> {
        let mut shelf = self.shelf.lock();
        let found = shelf.find(wanted, may_have);
        if found.is_some() {
            shelf.leave(key);
        } else {
            shelf.wait(key, wanted);
        }
        found
    }

    /// Notes that a claim waits for no volume any more.
    pub(super) fn leave(&self, key: &ObjectKey) {
        self.shelf.lock().leave(key);
    }

    /// Notes that a volume was given to a claim.
    pub(super) fn give(&self, volume: &Istr, version: ResourceVersion) {
        self.shelf.lock().give(volume, version);
    }

    /// Notes the beginning of an operation, unless it is under way.
    pub(super) fn begin(&self, key: &ObjectKey, plugin: &str, operation: &'static str, now: MicroTime) {
        let mut begun = self.begun.lock();
        begun.entry(key.clone()).or_insert_with(|| Begun { plugin: plugin.to_owned(), operation, at: now });
    }

    /// Notes the failure of an operation that is under way.
    pub(super) fn fail(&self, key: &ObjectKey) {
        if let Some(begun) = self.begun.lock().get(key) {
            self.metrics.failed(&begun.plugin, begun.operation);
        }
    }

    /// Notes the end of an operation, if one is under way.
    pub(super) fn end(&self, key: &ObjectKey, now: MicroTime) {
        if let Some(begun) = self.begun.lock().remove(key) {
            self.metrics.done(&begun.plugin, begun.operation, now.since(begun.at).as_secs_f64());
        }
    }

    /// Forgets an operation of a claim that is gone.
    pub(super) fn forget(&self, key: &ObjectKey) {
        self.begun.lock().remove(key);
        self.leave(key);
    }

    /// Returns the recycler that was created for a volume.
    pub(super) fn recycler(&self, volume: &Uid) -> Option<Uid> {
        self.recyclers.lock().get(volume).cloned()
    }

    /// Notes the recycler that was created for a volume, or that there is none any more.
    pub(super) fn set_recycler(&self, volume: &Uid, pod: Option<Uid>) {
        let mut recyclers = self.recyclers.lock();
        match pod {
            Some(pod) => recyclers.insert(volume.clone(), pod),
            None => recyclers.remove(volume),
        };
    }
}
