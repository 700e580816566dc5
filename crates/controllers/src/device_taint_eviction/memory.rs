//! What the controller remembers between passes: pods that are to be evicted, and how many each rule has evicted.

use std::collections::HashMap;

use parking_lot::Mutex;
use steersman_base::Uid;

use crate::eviction::PlannedPods;

/// The state that is kept between passes.
#[derive(Default)]
pub(super) struct Memory {
    pub(super) pods: PlannedPods,
    /// By rule; an entry goes with its rule.
    evicted: Mutex<HashMap<Uid, u64>>,
}

// === impl Memory ===

impl Memory {
    /// Counts the eviction of a pod for the rules that it was evicted by.
    pub(super) fn evicted_by(&self, rules: &[Uid]) {
        let mut evicted = self.evicted.lock();
        for rule in rules {
            *evicted.entry(rule.clone()).or_default() += 1;
        }
    }

    /// Returns the number of pods that a rule has evicted.
    pub(super) fn evicted(&self, rule: &Uid) -> u64 {
        self.evicted.lock().get(rule).copied().unwrap_or_default()
    }

    /// Forgets a rule.
    pub(super) fn forget_rule(&self, rule: &Uid) {
        self.evicted.lock().remove(rule);
    }
}
