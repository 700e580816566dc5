//! Pure: a service and its pods → the slices of one address family.

use std::collections::BTreeMap;
use std::sync::Arc;

use steersman_base::{Istr, StringMap};
use steersman_model::core::{PodView, ServiceView};
use steersman_model::discovery::EndpointPort;
use steersman_model::{EndpointSliceView, View};

use super::endpoint;
use super::packing::{Draft, Packed, pack};
use crate::service_pods;
use crate::service_pods::address::Family;
use crate::service_pods::identity::{Identity, PortSet, Wanted};

/// The observed state.
pub(super) struct Observed<'a> {
    pub(super) service: &'a ServiceView,
    /// The pods that the service selects.
    pub(super) pods: &'a [Arc<PodView>],
    /// The labels of its slices.
    pub(super) labels: &'a StringMap,
    pub(super) endpoints_per_slice_max: usize,
}

/// The observed state of a pod's node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NodeSeen {
    /// The node exists, with this zone, if it has one.
    Is(Option<Istr>),
    /// There is no such node.
    Missing,
}

/// The plan for the slices of one family.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) packed: Packed,
    /// Pods that are left out, because their node is unknown.
    pub(super) nodeless: Vec<Arc<PodView>>,
    /// The number of endpoints and of slices per set of ports.
    pub(super) groups: Vec<Group>,
}

/// The endpoints with one set of ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) endpoints: usize,
    pub(super) slices: usize,
}

/// Decides about the slices of one family.
pub(super) fn plan(
    seen: &Observed<'_>,
    family: Family,
    slices: Vec<Arc<EndpointSliceView>>,
    node: impl Fn(&Istr) -> NodeSeen,
) -> Plan {
    let mut plan = Plan::default();
    let count = slices.len();
    let mut by_ports: BTreeMap<PortSet, Vec<Arc<EndpointSliceView>>> = BTreeMap::new();
    for slice in slices {
        if endpoint::is_owned(&slice, seen.service) {
            by_ports.entry(PortSet::of(&slice.ports)).or_default().push(slice);
        } else {
            // Slices of a previous service of the same name.
            plan.packed.delete.push(slice);
        }
    }
    for (set, (ports, wanted)) in wanted(seen, family, node, &mut plan.nodeless) {
        let existing = by_ports.remove(&set).unwrap_or_default();
        let endpoints = wanted.len();
        let before = existing.len();
        let packed = pack(existing, wanted, &ports, seen.labels, seen.endpoints_per_slice_max);
        let new = packed.drafts.iter().filter(|draft| draft.base.is_none()).count();
        plan.groups.push(Group { endpoints, slices: before + new - packed.delete.len() });
        plan.packed.join(packed);
    }
    // Sets of ports that no endpoint has any more.
    plan.packed.delete.extend(by_ports.into_values().flatten());
    plan.keep_one(seen, count);
    plan
}

type ByPorts = BTreeMap<PortSet, (Vec<EndpointPort>, Wanted)>;

/// Returns the wanted endpoints, by their ports.
fn wanted(
    seen: &Observed<'_>,
    family: Family,
    node: impl Fn(&Istr) -> NodeSeen,
    nodeless: &mut Vec<Arc<PodView>>,
) -> ByPorts {
    let mut groups = ByPorts::new();
    for pod in seen.pods.iter().filter(|pod| service_pods::is_published(pod, true)) {
        let ports = endpoint::endpoint_ports(seen.service, pod);
        let (_, wanted) = groups.entry(PortSet::of(&ports)).or_insert_with(|| (ports, Wanted::new()));
        let zone = match node(&pod.spec.node_name) {
            NodeSeen::Is(zone) => zone,
            // `publishNotReadyAddresses` also publishes pods that are not ready.
            NodeSeen::Missing if seen.service.spec.publish_not_ready_addresses => None,
            NodeSeen::Missing => {
                nodeless.push(Arc::clone(pod));
                continue;
            }
        };
        if let Some(endpoint) = endpoint::endpoint(pod, zone.as_ref(), seen.service, family) {
            wanted.insert(Identity::of(&endpoint), endpoint);
        }
    }
    groups
}

// === impl Plan ===

impl Plan {
    /// If no slice would be left, keeps or creates an empty one as a placeholder.
    fn keep_one(&mut self, seen: &Observed<'_>, before: usize) {
        let packed = &mut self.packed;
        let creates = packed.drafts.iter().any(|draft| draft.base.is_none());
        if packed.delete.len() != before || creates {
            return;
        }
        match &*packed.delete {
            [only] if endpoint::is_placeholder(only, seen.service, seen.labels) => {
                packed.unchanged.append(&mut packed.delete);
            }
            _ => packed.drafts.push(Draft::default()),
        }
        self.groups.push(Group { endpoints: 0, slices: 1 });
    }
}

/// Slices by address family.
pub(super) type ByFamily = BTreeMap<Family, Vec<Arc<EndpointSliceView>>>;

/// Groups slices by family; slices of families that the service does not have any more are returned separately.
pub(super) fn by_family(
    slices: Vec<Arc<EndpointSliceView>>,
    families: &[Family],
) -> (ByFamily, Vec<Arc<EndpointSliceView>>) {
    let mut sorted = slices;
    sorted.sort_by(|left, right| left.meta().name.cmp(&right.meta().name));
    let mut ours = BTreeMap::new();
    let mut others = Vec::new();
    for family in families {
        ours.insert(*family, Vec::new());
    }
    for slice in sorted {
        match Family::parse(&slice.address_type).and_then(|family| ours.get_mut(&family)) {
            Some(slices) => slices.push(slice),
            None => others.push(slice),
        }
    }
    (ours, others)
}
