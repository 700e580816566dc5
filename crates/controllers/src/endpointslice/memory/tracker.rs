//! What we did to slices ourselves, so that the news of it wakes nobody.
//!
//! Whether the caches show it yet is the consistency book's business; this only spares a look for each write.

use std::collections::HashMap;

use parking_lot::Mutex;
use steersman_base::{Meta, ResourceVersion, Uid};

/// Slices by what we did to them last. An entry goes with its slice.
#[derive(Debug, Default)]
pub(in crate::endpointslice) struct Tracker(Mutex<HashMap<Uid, Did>>);

#[derive(Debug)]
enum Did {
    Wrote(ResourceVersion),
    Deleted,
}

// === impl Tracker ===

impl Tracker {
    /// We wrote a slice, and the server says that this is it now.
    pub(in crate::endpointslice) fn wrote(&self, slice: &Meta) {
        // Nothing was written in shadow mode.
        if !slice.uid.is_empty() {
            self.0.lock().insert(slice.uid.clone(), Did::Wrote(slice.resource_version.clone()));
        }
    }

    /// We deleted a slice.
    pub(in crate::endpointslice) fn deleted(&self, uid: &Uid) {
        self.0.lock().insert(uid.clone(), Did::Deleted);
    }

    /// Whether this state of a slice comes from somebody else: it is newer than what we wrote.
    pub(in crate::endpointslice) fn is_news(&self, slice: &Meta) -> bool {
        match self.0.lock().get(&slice.uid) {
            Some(Did::Wrote(version)) => !version.has_reached(&slice.resource_version),
            // It goes as we wanted.
            Some(Did::Deleted) => false,
            None => true,
        }
    }

    /// A slice is gone. Answers whether that was our doing.
    pub(in crate::endpointslice) fn gone(&self, uid: &Uid) -> bool {
        matches!(self.0.lock().remove(uid), Some(Did::Deleted))
    }
}
