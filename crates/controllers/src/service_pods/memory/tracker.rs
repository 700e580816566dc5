//! The controller's own writes to slices, so that their events trigger no pass.
//!
//! Whether the caches show them yet is up to the consistency book; this only saves a pass per write.

use std::collections::HashMap;

use parking_lot::Mutex;
use steersman_base::{Meta, ResourceVersion, Uid};

/// Slices by our last write. An entry is removed with its slice.
#[derive(Debug, Default)]
pub(crate) struct Tracker(Mutex<HashMap<Uid, Did>>);

#[derive(Debug)]
enum Did {
    Wrote(ResourceVersion),
    Deleted,
}

// === impl Tracker ===

impl Tracker {
    /// Records a write, with the object that the server returned.
    pub(crate) fn wrote(&self, slice: &Meta) {
        // Nothing was written in shadow mode.
        if !slice.uid.is_empty() {
            self.0.lock().insert(slice.uid.clone(), Did::Wrote(slice.resource_version.clone()));
        }
    }

    /// Records a delete of a slice that is known: of another one, the event may have come already, and nothing would remove its
    /// entry. Its event costs a pass.
    pub(crate) fn deleted(&self, uid: &Uid) {
        if let Some(did) = self.0.lock().get_mut(uid) {
            *did = Did::Deleted;
        }
    }

    /// Whether this state of a slice comes from another writer: it is newer than our last write.
    pub(crate) fn is_foreign(&self, slice: &Meta) -> bool {
        match self.0.lock().get(&slice.uid) {
            Some(Did::Wrote(version)) => !version.has_reached(&slice.resource_version),
            // It is being deleted as requested.
            Some(Did::Deleted) => false,
            None => true,
        }
    }

    /// Records that a slice is deleted. Returns whether we deleted it.
    pub(crate) fn take_deleted(&self, uid: &Uid) -> bool {
        matches!(self.0.lock().remove(uid), Some(Did::Deleted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delete_whose_event_came_first_leaves_no_entry() {
        let slice = Meta { uid: "1".into(), resource_version: "5".into(), ..Meta::default() };
        let tracker = Tracker::default();
        tracker.wrote(&slice);
        tracker.deleted(&slice.uid);
        assert!(tracker.take_deleted(&slice.uid), "we deleted it");

        tracker.wrote(&slice);
        assert!(!tracker.take_deleted(&slice.uid), "the response has not come yet");
        tracker.deleted(&slice.uid);
        assert!(tracker.0.lock().is_empty());
    }
}
