//! Pure: how endpoints with the same ports are packed into slices.
//!
//! 1. Endpoints that are in a slice stay in it; those that are not wanted any more leave it.
//! 2. New ones fill the slices that are written anyway, the fullest first.
//! 3. What is left goes into the one untouched slice that it fills best, if it fits; else into new ones.
//!
//! So a change costs as few writes as can be, and slices may stay half empty: a pod that comes is far more often told to
//! every node than a slice more is missed. Of `n` endpoints at most one slice more is written than they fill.
//!
//! Follows `reconcileByPortMapping` of k8s.io/endpointslice 0.37.1; where that takes any endpoint, this takes them by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use steersman_base::{Istr, StringMap};
use steersman_model::discovery::{Endpoint, EndpointPort};
use steersman_model::{EndpointSliceView, View};

use crate::service_pods::ports::DEFAULT_PROTOCOL;

/// A slice as it should be.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Draft {
    /// The slice it takes the place of; a new one, if there is none.
    pub(super) base: Option<Arc<EndpointSliceView>>,
    pub(super) ports: Vec<EndpointPort>,
    pub(super) endpoints: Vec<Endpoint>,
}

/// What becomes of slices.
#[derive(Clone, Debug, Default)]
pub(super) struct Packed {
    /// Those to be written.
    pub(super) drafts: Vec<Draft>,
    /// Those that are as they should be.
    pub(super) unchanged: Vec<Arc<EndpointSliceView>>,
    /// Those that are to go.
    pub(super) delete: Vec<Arc<EndpointSliceView>>,
    /// How many endpoints are new.
    pub(super) added: usize,
    /// How many endpoints are not wanted any more.
    pub(super) removed: usize,
}

/// By what an endpoint is recognised, whatever else changes about it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Identity {
    name: Istr,
    addresses: Box<[Istr]>,
    hostname: Istr,
    namespace: Istr,
}

/// By what sets of ports are recognised: in no order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PortSet(Vec<(Istr, Istr, Option<i32>, Option<Istr>)>);

/// Endpoints that are wanted, all with the same ports.
pub(super) type Wanted = BTreeMap<Identity, Endpoint>;

// === impl Identity ===

impl Identity {
    pub(super) fn of(endpoint: &Endpoint) -> Self {
        let target = endpoint.target_ref.as_ref();
        let mut addresses = endpoint.addresses.clone();
        addresses.sort();
        Self {
            name: target.map(|target| target.name.clone()).unwrap_or_default(),
            addresses,
            hostname: endpoint.hostname.clone().unwrap_or_default(),
            namespace: target.map(|target| target.namespace.clone()).unwrap_or_default(),
        }
    }
}

// === impl PortSet ===

impl PortSet {
    pub(super) fn of(ports: &[EndpointPort]) -> Self {
        let mut set: Vec<_> = ports
            .iter()
            .map(|port| {
                let protocol = port.protocol.clone().unwrap_or_else(|| Istr::interned(DEFAULT_PROTOCOL));
                (port.name.clone().unwrap_or_default(), protocol, port.port, port.app_protocol.clone())
            })
            .collect();
        set.sort();
        Self(set)
    }
}

/// Packs endpoints into the slices there are, by name, and into new ones. Slices have these labels, or are written.
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

/// Step 1: what is wanted stays where it is, and is as it should be.
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

/// Step 2: slices that are written anyway take what they can, the fullest first.
fn fill_written(drafts: &mut [Draft], wanted: &mut Wanted, max: usize) {
    let mut order: Vec<usize> = (0..drafts.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(drafts[*at].endpoints.len()));
    for at in order {
        drafts[at].fill(wanted, max);
    }
}

/// Step 3: the slice that is closest to full with so many endpoints more.
fn best_fit(slices: &[Arc<EndpointSliceView>], count: usize, max: usize) -> Option<usize> {
    if count >= max {
        return None;
    }
    let room = |slice: &Arc<EndpointSliceView>| max.checked_sub(slice.endpoints.len() + count);
    let fitting = slices.iter().enumerate().filter_map(|(at, slice)| Some((room(slice)?, at)));
    fitting.min().map(|(_, at)| at)
}

/// Whether nothing changed about an endpoint. Hints are decided on later.
fn is_same(held: &Endpoint, wanted: &Endpoint) -> bool {
    let same_target = match (&held.target_ref, &wanted.target_ref) {
        (Some(held), Some(wanted)) => {
            // Which version of the pod was seen, does not matter.
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
    /// The slice as it is, to be changed.
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
    /// Both.
    pub(super) fn join(&mut self, other: Self) {
        self.drafts.extend(other.drafts);
        self.unchanged.extend(other.unchanged);
        self.delete.extend(other.delete);
        self.added += other.added;
        self.removed += other.removed;
    }

    /// Lets drafts without a slice of their own take the place of slices that would go: one write in place of two. Only
    /// those that `may` be taken are.
    pub(super) fn reuse(&mut self, may: impl Fn(&EndpointSliceView) -> bool) {
        for draft in self.drafts.iter_mut().filter(|draft| draft.base.is_none()) {
            let Some(at) = self.delete.iter().position(|slice| may(slice)) else { return };
            draft.base = Some(self.delete.remove(at));
        }
    }
}
