//! What the controller remembers between passes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use parking_lot::Mutex;
use steersman_base::{Meta, ObjectKey, Uid};

use super::backoff::Record;

/// The state that the controller keeps: the failures of each running Job, and Jobs that the server reported as gone.
#[derive(Default)]
pub(super) struct Memory {
    records: Mutex<BTreeMap<ObjectKey, (Uid, Record)>>,
    gone: Mutex<Gone>,
}

/// Jobs that are gone, by uid. A uid never comes back.
#[derive(Default)]
struct Gone {
    uids: BTreeSet<Uid>,
    order: VecDeque<Uid>,
}

/// Enough for the Jobs whose pods are released at the same time; for others the server is asked again.
const GONE_MAX: usize = 500;

// === impl Memory ===

impl Memory {
    /// Returns the failures of a Job; `None` if nothing is known, as after a restart.
    pub(super) fn record(&self, job: &Meta) -> Option<Record> {
        let records = self.records.lock();
        records.get(&job.key()).filter(|(uid, _)| *uid == job.uid).map(|(_, record)| *record)
    }

    /// Remembers the failures of a Job.
    pub(super) fn keep(&self, job: &Meta, record: Record) {
        self.records.lock().insert(job.key(), (job.uid.clone(), record));
    }

    /// Forgets a Job that has finished, or is gone.
    pub(super) fn forget(&self, key: &ObjectKey) {
        self.records.lock().remove(key);
    }

    /// Whether the server reported this Job as gone.
    pub(super) fn is_gone(&self, job: &Uid) -> bool {
        self.gone.lock().uids.contains(job)
    }

    /// Remembers that the server reported this Job as gone.
    pub(super) fn gone(&self, job: &Uid) {
        let mut gone = self.gone.lock();
        if gone.uids.insert(job.clone()) {
            gone.order.push_back(job.clone());
        }
        if gone.order.len() > GONE_MAX
            && let Some(oldest) = gone.order.pop_front()
        {
            gone.uids.remove(&oldest);
        }
    }
}
