//! What the driver remembers between passes: devices of allocations that the cache does not show yet.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;
use steersman_base::{Istr, Uid};

use super::plan::Picked;

/// Devices that were given to claims; an entry goes when the cache shows the claim allocated, or gone.
#[derive(Default)]
pub(super) struct Taken(Mutex<BTreeMap<Istr, Uid>>);

// === impl Taken ===

impl Taken {
    /// Returns devices for a claim: `pick` is given those that are in use.
    pub(super) fn take(
        &self,
        claim: &Uid,
        in_cache: BTreeSet<Istr>,
        is_pending: impl Fn(&Uid) -> bool,
        pick: impl FnOnce(&BTreeSet<Istr>) -> Option<Vec<Picked>>,
    ) -> Option<Vec<Picked>> {
        let mut taken = self.0.lock();
        taken.retain(|_, other| other != claim && is_pending(other));
        let mut used = in_cache;
        used.extend(taken.keys().cloned());
        let picked = pick(&used)?;
        taken.extend(picked.iter().map(|(_, device)| (device.clone(), claim.clone())));
        Some(picked)
    }
}
