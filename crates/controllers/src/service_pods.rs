//! Pure: which pods a service selects, and which services select a pod. Shared by endpoints and endpointslices.
//!
//! 1. No lookup iterates over a namespace: pods are found by a label, services by one label that their selector
//!    requires. Pods with more than [`LABELS_INDEXED_MAX`] labels are the exception: they are found by their namespace.
//! 2. A pod's event concerns services only if it changes what is published of the pod: its existence, its addresses,
//!    whether it is ready or terminating, and its labels.
//! 3. The initial list of pods triggers nothing: every service is reconciled once at the start anyway.
//!
//! Follows `staging/src/k8s.io/endpointslice/util` of Kubernetes 1.37.1.

use std::hash::BuildHasher;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use foldhash::fast::RandomState;
use steersman_base::{Istr, Meta, ObjectKey, Selector, StringMap, Time, names};
use steersman_informer::{Change, Index, Lister, SharedInformer};
use steersman_model::View;
use steersman_model::core::{ObjectReference, PodView, ServiceView};
use steersman_runtime::handler::{Handler, Keys};

use crate::pod;

pub(crate) mod address;
pub(crate) mod identity;
pub(crate) mod managed;
pub(crate) mod memory;
pub(crate) mod ports;
#[cfg(test)]
pub(crate) mod tests;

/// The key by which pods and services find each other: namespace, key and value of a label.
///
/// Only a hash of the three is kept, because every label of every pod is indexed. Hashes may collide, so matches are
/// verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct LabelHash(u64);

/// The pods of services.
#[derive(Clone, Debug)]
pub(crate) struct ServicePods {
    by_label: Index<LabelHash, PodView>,
    by_selector: Index<LabelHash, ServiceView>,
}

/// The pods that selectors match.
#[derive(Clone, Debug)]
pub(crate) struct SelectedPods {
    pods: Lister<PodView>,
    by_label: Index<LabelHash, PodView>,
}

/// Users choose labels: the seed differs per process, or labels could be chosen that all collide. Hashes are compared
/// within one process only, and their order is not observable.
static HASHER: LazyLock<RandomState> = LazyLock::new(RandomState::default);
/// A pod with more labels is not indexed by each of them: a server allows as many as fit into a megabyte, and readers
/// of the cache wait while they are indexed. Real pods have fewer.
const LABELS_INDEXED_MAX: usize = 64;
/// The cluster IP of a headless service.
const HEADLESS: &str = "None";

// === impl LabelHash ===

impl LabelHash {
    fn new(namespace: &str, key: &str, value: &str) -> Self {
        Self(HASHER.hash_one((namespace, key, value)))
    }

    /// The key for pods with too many labels, and for all services with a selector.
    fn any(namespace: &str) -> Self {
        Self(HASHER.hash_one(namespace))
    }
}

// === impl ServicePods ===

impl ServicePods {
    /// Finds pods by their labels and services by their selectors; the indexes are shared.
    pub(crate) fn new(services: &SharedInformer<ServiceView>, pods: &SharedInformer<PodView>) -> Self {
        Self { by_label: pods.shared_index(pod_hashes), by_selector: services.shared_index(selector_hashes) }
    }

    /// Returns a handler for the services that a change of a pod concerns, after this delay.
    pub(crate) fn services_of_pod(&self, delay: Duration) -> impl Handler<PodView> + use<> {
        let by_selector = self.by_selector.clone();
        move |change: &Change<PodView>| Keys::after(services_of(change, |hash| by_selector.get(hash)), delay)
    }

    /// Returns the pods that the service selects, by name.
    pub(crate) fn of(&self, service: &ServiceView) -> Vec<Arc<PodView>> {
        let namespace = &service.meta().namespace;
        let selector = &service.spec.selector;
        let hashes = selector.iter().map(|(key, value)| LabelHash::new(namespace, key, value));
        // The rarest label of the selector leads to the fewest pods that do not match the others.
        let Some(rarest) = hashes.min_by_key(|hash| self.by_label.count(hash)) else { return Vec::new() };
        let mut pods = self.by_label.get(&rarest);
        pods.extend(self.by_label.get(&LabelHash::any(namespace)));
        pods.retain(|pod| pod.meta().namespace == *namespace && selects(selector, &pod.meta().labels));
        pods.sort_by(|left, right| left.meta().name.cmp(&right.meta().name));
        pods
    }
}

// === impl SelectedPods ===

impl SelectedPods {
    /// Finds pods by their labels; the index is shared.
    pub(crate) fn new(pods: &SharedInformer<PodView>) -> Self {
        Self { pods: pods.lister(), by_label: pods.shared_index(pod_hashes) }
    }

    /// Returns the pods of a namespace that a selector matches. Only a selector that requires no label with one certain value
    /// leads through the whole namespace.
    pub(crate) fn of(&self, namespace: &str, selector: &Selector) -> Vec<Arc<PodView>> {
        let hashes = selector.exact_matches().map(|(key, value)| LabelHash::new(namespace, key, value));
        let Some(rarest) = hashes.min_by_key(|hash| self.by_label.count(hash)) else {
            return self.pods.namespace(namespace).select(selector);
        };
        let mut pods = self.by_label.get(&rarest);
        pods.extend(self.by_label.get(&LabelHash::any(namespace)));
        pods.retain(|pod| pod.meta().namespace == *namespace && selector.matches(&pod.meta().labels));
        pods
    }
}

/// Whether a selector of a service matches these labels. An empty one matches nothing.
pub(crate) fn selects(selector: &StringMap, labels: &StringMap) -> bool {
    !selector.is_empty() && selector.iter().all(|(key, value)| labels.get(key) == Some(value))
}

/// Whether we manage the endpoints of the service: not without a selector, and not for type `ExternalName`.
pub(crate) fn has_endpoints(service: &ServiceView) -> bool {
    service.spec.type_ != "ExternalName" && !service.spec.selector.is_empty()
}

/// Whether the service has no cluster IP.
pub(crate) fn is_headless(service: &ServiceView) -> bool {
    matches!(&*service.spec.cluster_ip, HEADLESS | "")
}

/// Whether the service is headless: then it may have no ports.
pub(crate) fn is_headless_on_purpose(service: &ServiceView) -> bool {
    service.spec.cluster_ip == HEADLESS
}

/// Index function: one label that the service's selector requires, and the namespace, for pods with too many labels.
pub(crate) fn selector_hashes(service: &ServiceView) -> Vec<LabelHash> {
    let namespace = &service.meta().namespace;
    let first = service.spec.selector.iter().next().filter(|_| has_endpoints(service));
    first.map_or_else(Vec::new, |(key, value)| vec![LabelHash::new(namespace, key, value), LabelHash::any(namespace)])
}

/// Index function: the labels of a pod. Whoever selects pods shares it.
fn pod_hashes(pod: &PodView) -> Vec<LabelHash> {
    label_hashes(pod.meta())
}

fn label_hashes(pod: &Meta) -> Vec<LabelHash> {
    if pod.labels.len() > LABELS_INDEXED_MAX {
        return vec![LabelHash::any(&pod.namespace)];
    }
    pod.labels.iter().map(|(key, value)| LabelHash::new(&pod.namespace, key, value)).collect()
}

/// Whether the pod is published: it has an address, and has not ended. A terminating one is published if `terminating`
/// says so.
pub(crate) fn is_published(pod: &PodView, terminating: bool) -> bool {
    let has_address = !pod.status.pod_ip.is_empty() || !pod.status.more_pod_ips.is_empty();
    has_address && !pod::has_ended(pod) && (terminating || !pod.meta().is_terminating())
}

/// Returns the reference of an endpoint to its pod.
pub(crate) fn target_ref(pod: &PodView) -> ObjectReference {
    ObjectReference {
        kind: Istr::interned("Pod"),
        namespace: pod.meta().namespace.clone(),
        name: pod.meta().name.clone(),
        uid: pod.meta().uid.clone(),
        ..ObjectReference::default()
    }
}

/// Returns the host name of the pod, if it has one in the subdomain of this service.
pub(crate) fn hostname<'a>(pod: &'a PodView, service: &ServiceView) -> Option<&'a Istr> {
    let hostname = &pod.spec.hostname;
    let domain = &pod.spec.subdomain;
    (!hostname.is_empty() && *domain == service.meta().name).then_some(hostname)
}

/// Returns the services that a change of a pod concerns. `services_under` finds those that require a label.
pub(crate) fn services_of(
    change: &Change<PodView>,
    services_under: impl Fn(&LabelHash) -> Vec<Arc<ServiceView>>,
) -> Vec<ObjectKey> {
    let services = |pod: &PodView| -> Vec<ObjectKey> {
        let labels = &pod.meta().labels;
        let found = label_hashes(pod.meta()).into_iter().flat_map(|hash| services_under(&hash));
        let ours = |service: &Arc<ServiceView>| {
            service.meta().namespace == pod.meta().namespace && selects(&service.spec.selector, labels)
        };
        found.filter(ours).map(|service| service.meta().key()).collect()
    };
    match change {
        Change::Added { initial: true, .. } => Vec::new(),
        Change::Added { new: pod, .. } | Change::Deleted { last: pod, .. } if is_published(pod, true) => services(pod),
        Change::Added { .. } | Change::Deleted { .. } => Vec::new(),
        Change::Updated { old, new } => {
            let changed = is_published_otherwise(old, new);
            let relabelled = old.meta().labels != new.meta().labels;
            match (changed, relabelled) {
                (false, false) => Vec::new(),
                (true, false) => services(new),
                (true, true) => union(services(old), services(new)),
                (false, true) if is_published(new, true) => difference(&services(old), services(new)),
                (false, true) => Vec::new(),
            }
        }
    }
}

/// Whether the published part of the pod has changed.
fn is_published_otherwise(old: &PodView, new: &PodView) -> bool {
    match (is_published(old, true), is_published(new, true)) {
        (false, false) => false,
        (true, true) => {
            old.meta().is_terminating() != new.meta().is_terminating()
                || pod::is_ready(old) != pod::is_ready(new)
                || !old.status.pod_ips().eq(new.status.pod_ips())
                || old.spec.node_name != new.spec.node_name
                || old.spec.hostname != new.spec.hostname
                || old.spec.subdomain != new.spec.subdomain
        }
        _ => true,
    }
}

fn union(mut left: Vec<ObjectKey>, right: Vec<ObjectKey>) -> Vec<ObjectKey> {
    left.extend(right);
    left.sort();
    left.dedup();
    left
}

/// Returns the symmetric difference: services that selected the pod before or now, but not both.
fn difference(left: &[ObjectKey], right: Vec<ObjectKey>) -> Vec<ObjectKey> {
    let lost: Vec<_> = left.iter().filter(|key| !right.contains(key)).cloned().collect();
    let won = right.into_iter().filter(|key| !left.contains(key));
    lost.into_iter().chain(won).collect()
}

/// Returns annotations with the trigger time, or without one.
pub(crate) fn triggered_at(annotations: &StringMap, time: Option<Time>) -> StringMap {
    let name = names::annotations::ENDPOINTS_LAST_CHANGE_TRIGGER_TIME;
    with(annotations, name, time.map(|time| Istr::new(&time.to_string())))
}

/// Returns the map with this key set or removed.
pub(crate) fn with(map: &StringMap, key: &str, value: Option<Istr>) -> StringMap {
    let others = map.iter().filter(|(held, _)| **held != *key);
    let mut pairs: Vec<_> = others.map(|(held, value)| (held.clone(), value.clone())).collect();
    pairs.extend(value.map(|value| (Istr::interned(key), value)));
    StringMap::new(pairs)
}
