//! Pure: Endpoints → the slices that mirror them: one for each subset and address family.

use std::collections::BTreeMap;
use std::sync::Arc;

use steersman_base::meta::{Owners, RareMeta};
use steersman_base::{Istr, Meta, OwnerRef, StringMap, names};
use steersman_model::core::{EndpointAddress, EndpointSubset, ObjectReference};
use steersman_model::discovery::{Endpoint, EndpointConditions, EndpointPort};
use steersman_model::{EndpointSliceView, EndpointsView, View};

use super::MANAGER;
use crate::endpoints::repack;
use crate::pod;
use crate::service_pods::address::{self, Family};
use crate::service_pods::identity::{Identity, PortSet, Wanted};
use crate::service_pods::with;

/// The actions on the slices of Endpoints.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// New slices; their name is still to be chosen.
    pub(super) create: Vec<EndpointSliceView>,
    pub(super) update: Vec<EndpointSliceView>,
    pub(super) delete: Vec<Arc<EndpointSliceView>>,
    pub(super) skipped: Skipped,
    pub(super) changes: Changes,
    pub(super) groups: Vec<Group>,
}

/// Addresses that are not mirrored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Skipped {
    /// All of them.
    pub(super) all: usize,
    /// Those that are no IP addresses.
    pub(super) invalid: usize,
}

/// The number of changed endpoints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    pub(super) added: usize,
    pub(super) updated: usize,
    pub(super) removed: usize,
}

/// The endpoints with one set of ports and of one family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) endpoints: usize,
    pub(super) slices: usize,
}

/// The wanted endpoints by family and ports.
type ByPorts = BTreeMap<(Family, PortSet), (Vec<EndpointPort>, Wanted)>;

/// Decides about the slices of Endpoints; `slices` are those that mirror them, and `max` is the limit of a subset.
pub(super) fn plan(endpoints: &EndpointsView, mut slices: Vec<Arc<EndpointSliceView>>, max: usize) -> Plan {
    let mut plan = Plan::default();
    let wanted = wanted(&endpoints.subsets, max, &mut plan.skipped);
    slices.sort_by(|left, right| left.meta().name.cmp(&right.meta().name));
    let mut existing: BTreeMap<(Family, PortSet), Vec<Arc<EndpointSliceView>>> = BTreeMap::new();
    for slice in slices {
        match Family::parse(&slice.address_type) {
            Some(family) => existing.entry((family, PortSet::of(&slice.ports))).or_default().push(slice),
            None => plan.delete.push(slice),
        }
    }
    for (key, (ports, wanted)) in wanted {
        let slices = existing.remove(&key).unwrap_or_default();
        plan.group(endpoints, key.0, slices, &ports, wanted, max);
    }
    // Sets of ports that no subset has any more.
    plan.delete.extend(existing.into_values().flatten());
    plan.recycle();
    plan
}

/// Returns the wanted endpoints. Both families of a subset are there, even if one has no addresses.
fn wanted(subsets: &[EndpointSubset], max: usize, skipped: &mut Skipped) -> ByPorts {
    let mut groups = ByPorts::new();
    for subset in repack(subsets) {
        let ports: Vec<EndpointPort> = subset.ports.iter().map(port).collect();
        let set = PortSet::of(&ports);
        for family in [Family::V4, Family::V6] {
            groups.entry((family, set.clone())).or_insert_with(|| (ports.clone(), Wanted::new()));
        }
        let mut added = 0;
        let ready = subset.addresses.iter().map(|address| (address, true));
        for (address, is_ready) in ready.chain(subset.not_ready_addresses.iter().map(|address| (address, false))) {
            if added >= max {
                break;
            }
            let Some((family, endpoint)) = endpoint(address, is_ready) else {
                skipped.invalid += 1;
                continue;
            };
            if let Some((_, wanted)) = groups.get_mut(&(family, set.clone())) {
                wanted.insert(Identity::of(&endpoint), endpoint);
            }
            added += 1;
        }
        skipped.all += subset.addresses.len() + subset.not_ready_addresses.len() - added;
    }
    groups
}

fn port(port: &steersman_model::core::EndpointPort) -> EndpointPort {
    EndpointPort {
        name: Some(port.name.clone()),
        protocol: Some(port.protocol.clone()),
        port: Some(port.port),
        app_protocol: port.app_protocol.clone(),
    }
}

/// Returns the endpoint of an address, and its family; `None` if it is no IP address.
fn endpoint(address: &EndpointAddress, is_ready: bool) -> Option<(Family, Endpoint)> {
    let ip = address::parse(&address.ip)?.to_string();
    let endpoint = Endpoint {
        addresses: [Istr::new(&ip)].into(),
        conditions: EndpointConditions { ready: Some(is_ready), ..EndpointConditions::default() },
        target_ref: address.target_ref.clone(),
        node_name: address.node_name.clone(),
        hostname: Some(address.hostname.clone()).filter(|hostname| !hostname.is_empty()),
        ..Endpoint::default()
    };
    Some((Family::of_text(&ip), endpoint))
}

// === impl Plan ===

impl Plan {
    /// Decides about the slices of one set of ports and one family: there is one, or none if there are no endpoints.
    fn group(
        &mut self,
        endpoints: &EndpointsView,
        family: Family,
        slices: Vec<Arc<EndpointSliceView>>,
        ports: &[EndpointPort],
        wanted: Wanted,
        max: usize,
    ) {
        if wanted.is_empty() {
            self.changes.removed += slices.iter().map(|slice| slice.endpoints.len()).sum::<usize>();
            self.delete.extend(slices);
            return;
        }
        self.groups.push(Group { endpoints: wanted.len(), slices: 1 });
        let mut slices = slices.into_iter();
        let first = slices.next();
        self.delete.extend(slices);
        let Some(first) = first else {
            self.changes.added += wanted.len();
            self.create.push(slice(endpoints, None, family, ports, wanted, max));
            return;
        };
        let changes = Changes::between(&first, &wanted);
        let is_ours = first.meta().owner_references.iter().any(|owner| owner.uid == endpoints.meta().uid);
        let is_right = first.meta().labels == labels(endpoints) && first.meta().annotations == annotations(endpoints);
        self.changes.added += changes.added;
        self.changes.updated += changes.updated;
        self.changes.removed += changes.removed;
        if changes != Changes::default() || !is_ours || !is_right {
            self.update.push(slice(endpoints, Some(first.meta()), family, ports, wanted, max));
        }
    }

    /// Replaces creates by updates of slices of the same family that would be deleted.
    fn recycle(&mut self) {
        for new in std::mem::take(&mut self.create) {
            match self.delete.iter().position(|old| old.address_type == new.address_type) {
                Some(at) => {
                    let old = self.delete.remove(at);
                    let EndpointSliceView { metadata: Meta { labels, annotations, owner_references, .. }, .. } =
                        new.clone();
                    let metadata = Meta { labels, annotations, owner_references, ..old.meta().clone() };
                    self.update.push(EndpointSliceView { metadata, ..new });
                }
                None => self.create.push(new),
            }
        }
    }
}

// === impl Changes ===

impl Changes {
    fn between(slice: &EndpointSliceView, wanted: &Wanted) -> Self {
        let mut changes = Self::default();
        let mut kept = 0;
        for held in &slice.endpoints {
            match wanted.get(&Identity::of(held)) {
                None => changes.removed += 1,
                Some(want) => {
                    kept += 1;
                    changes.updated += usize::from(!is_same(want, held));
                }
            }
        }
        changes.added = wanted.len().saturating_sub(kept);
        changes
    }
}

/// Whether endpoints of one identity are equal. The version of the target does not count.
fn is_same(left: &Endpoint, right: &Endpoint) -> bool {
    let target = |endpoint: &Endpoint| {
        let target = endpoint.target_ref.as_deref().cloned();
        target.map(|target| ObjectReference { resource_version: Istr::default(), ..target })
    };
    left.node_name == right.node_name
        && left.zone == right.zone
        && left.conditions == right.conditions
        && target(left) == target(right)
}

/// Returns the slice of these endpoints; `base` is the metadata of the slice that it replaces.
fn slice(
    endpoints: &EndpointsView,
    base: Option<&Meta>,
    family: Family,
    ports: &[EndpointPort],
    wanted: Wanted,
    max: usize,
) -> EndpointSliceView {
    let owner = OwnerRef::controller_of("v1", "Endpoints", endpoints.meta());
    let new = || Meta {
        namespace: endpoints.meta().namespace.clone(),
        rare: Some(Box::new(RareMeta {
            generate_name: Istr::new(&pod::name_prefix(&endpoints.meta().name)),
            ..RareMeta::default()
        })),
        ..Meta::default()
    };
    let metadata = Meta {
        labels: labels(endpoints),
        annotations: annotations(endpoints),
        owner_references: Owners::new(vec![owner]),
        ..base.cloned().unwrap_or_else(new)
    };
    EndpointSliceView {
        metadata,
        address_type: Istr::interned(family.as_str()),
        endpoints: wanted.into_values().take(max).collect(),
        ports: ports.into(),
    }
}

fn labels(endpoints: &EndpointsView) -> StringMap {
    let meta = endpoints.meta();
    let labels = with(&meta.labels, names::labels::SERVICE_NAME, Some(meta.name.clone()));
    with(&labels, names::labels::ENDPOINTSLICE_MANAGED_BY, Some(Istr::interned(MANAGER.0)))
}

fn annotations(endpoints: &EndpointsView) -> StringMap {
    let annotations = with(&endpoints.meta().annotations, names::annotations::ENDPOINTS_LAST_CHANGE_TRIGGER_TIME, None);
    with(&annotations, names::annotations::LAST_APPLIED_CONFIGURATION, None)
}
