//! Pure: how endpoints with the same ports are packed into slices.
//!
//! 1. Endpoints stay in their slice; those that are no longer wanted are removed from it.
//! 2. New endpoints fill the slices that are written anyway, the fullest first.
//! 3. The rest goes into the one unchanged slice that it fills best, if it fits; otherwise into new slices.
//!
//! So a change needs as few writes as possible, and slices may stay half empty: every write is sent to every node,
//! which costs more than an additional slice. For `n` endpoints at most one slice more is written than they fill.
//!
//! Follows `reconcileByPortMapping` of k8s.io/endpointslice 0.37.1, which adds endpoints in random order; here they are
//! added by name.

use std::sync::Arc;

use steersman_base::StringMap;
use steersman_model::discovery::{Endpoint, EndpointPort};
use steersman_model::{EndpointSliceView, View};

use crate::service_pods::identity::{Identity, Wanted};

/// A slice as it should be.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Draft {
    /// The slice that it replaces; `None` for a new one.
    pub(super) base: Option<Arc<EndpointSliceView>>,
    pub(super) ports: Vec<EndpointPort>,
    pub(super) endpoints: Vec<Endpoint>,
}

/// The result of packing.
#[derive(Clone, Debug, Default)]
pub(super) struct Packed {
    /// Slices to write.
    pub(super) drafts: Vec<Draft>,
    /// Slices that are up to date.
    pub(super) unchanged: Vec<Arc<EndpointSliceView>>,
    /// Slices to delete.
    pub(super) delete: Vec<Arc<EndpointSliceView>>,
    /// The number of new endpoints.
    pub(super) added: usize,
    /// The number of endpoints that are no longer wanted.
    pub(super) removed: usize,
}

/// Packs endpoints into the existing slices, by name, and into new ones. Slices with other labels are written.
pub(super) fn pack(
    existing: Vec<Arc<EndpointSliceView>>,
    mut wanted: Wanted,
    ports: &[EndpointPort],
    labels: &StringMap,
    max: usize,
) -> Packed {
    let mut packed = Packed::default();
    for slice in existing {
        keep_wanted(&mut packed, slice, &mut wanted, labels);
    }
    packed.added = wanted.len();
    fill_written(&mut packed.drafts, &mut wanted, max);
    while !wanted.is_empty() {
        let mut draft = match best_fit(&packed.unchanged, wanted.len(), max) {
            Some(at) => Draft::of(packed.unchanged.remove(at)),
            None => Draft { ports: ports.to_vec(), ..Draft::default() },
        };
        draft.fill(&mut wanted, max);
        packed.drafts.push(draft);
    }
    packed
}

/// Step 1: wanted endpoints stay in their slice, and are updated.
fn keep_wanted(packed: &mut Packed, slice: Arc<EndpointSliceView>, wanted: &mut Wanted, labels: &StringMap) {
    let mut kept = Vec::with_capacity(slice.endpoints.len());
    let mut changed = false;
    for held in &slice.endpoints {
        if let Some(endpoint) = wanted.remove(&Identity::of(held)) {
            changed |= !is_same(held, &endpoint);
            kept.push(endpoint);
        }
    }
    let removed = slice.endpoints.len() - kept.len();
    packed.removed += removed;
    if removed > 0 && kept.is_empty() {
        packed.delete.push(slice);
    } else if changed || removed > 0 {
        packed.drafts.push(Draft { ports: slice.ports.to_vec(), endpoints: kept, base: Some(slice) });
    } else if slice.meta().labels == *labels {
        packed.unchanged.push(slice);
    } else {
        packed.drafts.push(Draft::of(slice));
    }
}

/// Step 2: slices that are written anyway are filled, the fullest first.
fn fill_written(drafts: &mut [Draft], wanted: &mut Wanted, max: usize) {
    let mut order: Vec<usize> = (0..drafts.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(drafts[*at].endpoints.len()));
    for at in order {
        drafts[at].fill(wanted, max);
    }
}

/// Step 3: returns the slice that is closest to full with this many additional endpoints.
fn best_fit(slices: &[Arc<EndpointSliceView>], count: usize, max: usize) -> Option<usize> {
    if count >= max {
        return None;
    }
    let room = |slice: &Arc<EndpointSliceView>| max.checked_sub(slice.endpoints.len() + count);
    let fitting = slices.iter().enumerate().filter_map(|(at, slice)| Some((room(slice)?, at)));
    fitting.min().map(|(_, at)| at)
}

/// Whether an endpoint is unchanged. Hints are decided later.
fn is_same(held: &Endpoint, wanted: &Endpoint) -> bool {
    let same_target = match (&held.target_ref, &wanted.target_ref) {
        (Some(held), Some(wanted)) => {
            // The resourceVersion of the pod does not matter.
            (&held.kind, &held.uid, &held.api_version, &held.field_path)
                == (&wanted.kind, &wanted.uid, &wanted.api_version, &wanted.field_path)
        }
        (held, wanted) => held == wanted,
    };
    same_target
        && held.node_name == wanted.node_name
        && held.zone == wanted.zone
        && held.conditions == wanted.conditions
}

// === impl Draft ===

impl Draft {
    /// Returns the slice as a draft, to be changed.
    pub(super) fn of(slice: Arc<EndpointSliceView>) -> Self {
        Self { ports: slice.ports.to_vec(), endpoints: slice.endpoints.to_vec(), base: Some(slice) }
    }

    fn fill(&mut self, wanted: &mut Wanted, max: usize) {
        while self.endpoints.len() < max {
            let Some((_, endpoint)) = wanted.pop_first() else { return };
            self.endpoints.push(endpoint);
        }
    }
}

// === impl Packed ===

impl Packed {
    /// Combines two results.
    pub(super) fn join(&mut self, other: Self) {
        self.drafts.extend(other.drafts);
        self.unchanged.extend(other.unchanged);
        self.delete.extend(other.delete);
        self.added += other.added;
        self.removed += other.removed;
    }

    /// Lets new drafts replace slices that would be deleted: one write instead of two. Only slices for which `may` is
    /// true are reused.
    pub(super) fn reuse(&mut self, may: impl Fn(&EndpointSliceView) -> bool) {
        for draft in self.drafts.iter_mut().filter(|draft| draft.base.is_none()) {
            let Some(at) = self.delete.iter().position(|slice| may(slice)) else { return };
            draft.base = Some(self.delete.remove(at));
        }
    }
}
