//! What is said of an object once, however often it is looked at.

use std::collections::BTreeSet;

use parking_lot::Mutex;
use steersman_base::Uid;

/// Objects of which something was said.
#[derive(Debug, Default)]
pub(crate) struct Once(Mutex<BTreeSet<Uid>>);

/// So many objects are remembered; beyond that all are forgotten, and said again. Objects that need saying are rare.
const REMEMBERED_MAX: usize = 1024;

// === impl Once ===

impl Once {
    /// Whether it was not said of this object yet; from now on, it was.
    pub(crate) fn is_first(&self, uid: &Uid) -> bool {
        let mut said = self.0.lock();
        if said.len() >= REMEMBERED_MAX && !said.contains(uid) {
            said.clear();
        }
        said.insert(uid.clone())
    }
}
