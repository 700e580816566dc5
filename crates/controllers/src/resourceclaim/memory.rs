//! What the controller remembers between passes: users of claims that are gone.

use std::collections::{HashSet, VecDeque};

use parking_lot::Mutex;
use steersman_base::Uid;

/// The pods and pod groups with claims that were deleted last: their reservations are removed without asking the server.
#[derive(Default)]
pub(super) struct Gone(Mutex<Last>);

#[derive(Default)]
struct Last {
    order: VecDeque<Uid>,
    known: HashSet<Uid>,
}

/// Upstream's figure. The server is asked about those that are forgotten.
const REMEMBERED_MAX: usize = 500;

// === impl Gone ===

impl Gone {
    /// Remembers that an object was deleted.
    pub(super) fn add(&self, uid: &Uid) {
        let mut last = self.0.lock();
        if !last.known.insert(uid.clone()) {
            return;
        }
        last.order.push_back(uid.clone());
        if last.order.len() > REMEMBERED_MAX
            && let Some(oldest) = last.order.pop_front()
        {
            last.known.remove(&oldest);
        }
    }

    /// Whether an object is known to be deleted.
    pub(super) fn has(&self, uid: &Uid) -> bool {
        self.0.lock().known.contains(uid)
    }
}
