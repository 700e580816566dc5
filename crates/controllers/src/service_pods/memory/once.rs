//! Warnings that are logged once per object.

use std::collections::BTreeSet;

use parking_lot::Mutex;
use steersman_base::Uid;

/// Objects that were warned about.
#[derive(Debug, Default)]
pub(crate) struct Once(Mutex<BTreeSet<Uid>>);

/// The maximum number of remembered objects; beyond it all are forgotten, and logged again. Such objects are rare.
const REMEMBERED_MAX: usize = 1024;

// === impl Once ===

impl Once {
    /// Whether the object was not seen before; records it.
    pub(crate) fn is_first(&self, uid: &Uid) -> bool {
        let mut said = self.0.lock();
        if said.len() >= REMEMBERED_MAX && !said.contains(uid) {
            said.clear();
        }
        said.insert(uid.clone())
    }
}
