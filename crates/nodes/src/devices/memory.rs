//! What the driver remembers between passes: devices of allocations that the cache does not show yet.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;
use steersman_base::{Istr, ObjectKey, ResourceVersion, Uid};
use steersman_model::View;
use steersman_model::resource::ResourceClaimView;

use super::plan::{Picked, is_waiting, used};

/// Devices that were given to claims; an entry goes when the cache shows the claim as it was written, or gone.
#[derive(Default)]
pub(super) struct Taken(Mutex<BTreeMap<Istr, Given>>);

/// The claim that a device was given to.
struct Given {
    claim: Uid,
    /// The version of the claim with the device; `None` while it is being written, or if the outcome is unknown.
    written: Option<ResourceVersion>,
}

// === impl Taken ===

impl Taken {
    /// Returns devices for a claim: `pick` is given those that are in use. `has_user`: whether a pod uses the claim of a name.
    pub(super) fn take(
        &self,
        claim: &Uid,
        all: &[Arc<ResourceClaimView>],
        has_user: impl Fn(&ObjectKey) -> bool,
        pick: impl FnOnce(&BTreeSet<Istr>) -> Option<Vec<Picked>>,
    ) -> Option<Vec<Picked>> {
        let mut taken = self.0.lock();
        taken.retain(|_, given| {
            let shown = all.iter().find(|other| other.meta().uid == given.claim);
            given.claim != *claim && shown.is_some_and(|shown| given.is_pending(shown, &has_user))
        });
        let mut used = used(all.iter().map(|claim| &**claim));
        used.extend(taken.keys().cloned());
        let picked = pick(&used)?;
        let given = || Given { claim: claim.clone(), written: None };
        taken.extend(picked.iter().map(|(_, device)| (device.clone(), given())));
        Some(picked)
    }

    /// Records that the devices of a claim were written in this version.
    pub(super) fn written(&self, claim: &Uid, version: &ResourceVersion) {
        for given in self.0.lock().values_mut().filter(|given| given.claim == *claim) {
            given.written = Some(version.clone());
        }
    }
}

// === impl Given ===

impl Given {
    /// Whether the cache, which shows the claim like this, does not show the device yet. A claim whose devices were freed again waits as
    /// it did before; its version tells the two apart.
    fn is_pending(&self, shown: &ResourceClaimView, has_user: impl Fn(&ObjectKey) -> bool) -> bool {
        match &self.written {
            Some(version) => !shown.meta().resource_version.has_reached(version),
            None => is_waiting(shown) && has_user(&shown.meta().key()),
        }
    }
}
