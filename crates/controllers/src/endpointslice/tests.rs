//! Table tests of the pure functions.

mod hints;
mod packing;

use std::sync::Arc;

use serde_json::{Value, json};
use steersman_base::{Istr, ObjectKey};
use steersman_informer::{Change, End};
use steersman_model::core::{NodeView, PodView, ServiceView};
use steersman_model::{EndpointSliceView, View};

use super::packing::Packed;
use super::plan::{NodeSeen, Observed, Plan};
use super::{asks_for_topology_hints, endpoint, map};
use crate::service_pods::address::Family;
use crate::service_pods::memory::Tracker;
use crate::service_pods::tests::{decode, merged, not_ready, pod, service, terminating, with_ips};

/// Plans with all pods on a node without zone, and slices of at most this many endpoints.
fn plan(service: &ServiceView, pods: &[Arc<PodView>], slices: &[Arc<EndpointSliceView>], max: usize) -> Plan {
    let labels = endpoint::labels(service);
    let seen = Observed { service, pods, labels: &labels, endpoints_per_slice_max: max };
    super::plan::plan(&seen, Family::V4, slices.to_vec(), |_| NodeSeen::Is(None))
}

/// Returns the slices after a plan is carried out. New ones get names.
fn carried_out(service: &ServiceView, mut packed: Packed) -> Vec<Arc<EndpointSliceView>> {
    packed.reuse(|slice| endpoint::is_owned(slice, service));
    let labels = endpoint::labels(service);
    let mut slices = packed.unchanged;
    for (number, draft) in packed.drafts.into_iter().enumerate() {
        let mut slice = endpoint::slice(draft, service, Family::V4, &labels, None);
        if slice.metadata.name.is_empty() {
            slice.metadata.name = Istr::new(&format!("new-{number}-{}", slices.len()));
            slice.metadata.uid = steersman_base::Uid::new(&slice.metadata.name);
        }
        slices.push(Arc::new(slice));
    }
    slices.sort_by(|left, right| left.meta().name.cmp(&right.meta().name));
    slices
}

/// Counts the slices that a plan creates, updates and deletes.
fn writes(service: &ServiceView, packed: &Packed) -> (usize, usize, usize) {
    let mut packed = packed.clone();
    packed.reuse(|slice| endpoint::is_owned(slice, service));
    let creates = packed.drafts.iter().filter(|draft| draft.base.is_none()).count();
    (creates, packed.drafts.len() - creates, packed.delete.len())
}

fn node(name: &str, more: Value) -> Arc<NodeView> {
    let base = json!({
        "metadata": { "name": name, "labels": { "topology.kubernetes.io/zone": "zone-a" } },
        "status": { "allocatable": { "cpu": "1" }, "conditions": [{ "type": "Ready", "status": "True" }] },
    });
    Arc::new(decode(merged(base, more)))
}

#[test]
fn an_endpoint_says_what_may_be_sent_to_it() {
    let check = |name: &str, pod_more: Value, publish_all: bool, want: (bool, bool, bool)| {
        let service = service(json!({ "spec": { "publishNotReadyAddresses": publish_all } }));
        let conditions = endpoint::endpoint(&pod(1, pod_more), None, &service, Family::V4).unwrap().conditions;
        let got = (conditions.ready.unwrap(), conditions.serving.unwrap(), conditions.terminating.unwrap());
        assert_eq!(got, want, "{name}: ready, serving, terminating");
    };
    let both = || merged(not_ready(), terminating());
    check("ready", json!({}), false, (true, true, false));
    check("not ready", not_ready(), false, (false, false, false));
    check("about to go, and serving still", terminating(), false, (false, true, true));
    check("about to go", both(), false, (false, false, true));
    check("all are published", not_ready(), true, (true, false, false));
    check("all are published, about to go", both(), true, (true, false, true));
}

#[test]
fn an_endpoint_says_whose_it_is_and_where() {
    let host = json!({ "spec": { "hostname": "first", "subdomain": "web" } });
    let pod = pod(1, merged(host, with_ips(&["10.0.0.9", "fd00::9"])));
    let zone = Istr::new("zone-a");
    let service = service(json!({}));
    let got = endpoint::endpoint(&pod, Some(&zone), &service, Family::V6).unwrap();
    assert_eq!(got.addresses, ["fd00::9".into()].into());
    assert_eq!((got.hostname.as_deref(), got.node_name.as_deref()), (Some("first"), Some("node-1")));
    assert_eq!(got.zone.as_deref(), Some("zone-a"));
    let target = got.target_ref.unwrap();
    assert_eq!((&*target.kind, &*target.name, target.uid.to_string()), ("Pod", "pod-0001", "uid-0001".to_owned()));
    assert!(endpoint::endpoint(&super::tests::pod(1, json!({})), None, &service, Family::V6).is_none());
}

#[test]
fn a_service_has_slices_of_the_families_it_declares() {
    let check = |name: &str, spec: Value, want: &[Family]| {
        assert_eq!(endpoint::families(&service(json!({ "spec": spec }))), want, "{name}");
    };
    check("one", json!({ "ipFamilies": ["IPv6"] }), &[Family::V6]);
    check("both, in one order", json!({ "ipFamilies": ["IPv6", "IPv4"] }), &[Family::V4, Family::V6]);
    check("none: that of its address", json!({ "ipFamilies": null }), &[Family::V4]);
    check("none: that of its address", json!({ "ipFamilies": null, "clusterIP": "fd00::1" }), &[Family::V6]);
    check("none, headless", json!({ "ipFamilies": null, "clusterIP": "None" }), &[Family::V4, Family::V6]);
}

#[test]
fn slices_have_the_labels_of_their_service_but_for_what_says_whose_they_are() {
    let labels = |more: Value| {
        let labels = endpoint::labels(&service(more));
        labels.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>()
    };
    let manager = "endpointslice.kubernetes.io/managed-by=endpointslice-controller.k8s.io";
    let name = "kubernetes.io/service-name=web";
    assert_eq!(labels(json!({})), [manager, name]);
    let odd = json!({ "metadata": { "labels": {
        "kubernetes.io/service-name": "bad", "endpointslice.kubernetes.io/managed-by": "actor",
        "service.kubernetes.io/headless": "invalid", "team": "a",
    } } });
    assert_eq!(labels(odd), [manager, name, "team=a"]);
    let headless = json!({ "spec": { "clusterIP": "None" } });
    assert_eq!(labels(headless), [manager, name, "service.kubernetes.io/headless="]);
}

#[test]
fn a_pod_whose_node_nobody_knows_is_left_out_unless_all_are_published() {
    let pods = [pod(1, json!({})), pod(2, json!({ "spec": { "nodeName": "gone" } }))];
    let check = |publish_all: bool, endpoints: usize, nodeless: usize| {
        let service = service(json!({ "spec": { "publishNotReadyAddresses": publish_all } }));
        let labels = endpoint::labels(&service);
        let seen = Observed { service: &service, pods: &pods, labels: &labels, endpoints_per_slice_max: 100 };
        let plan = super::plan::plan(&seen, Family::V4, Vec::new(), |name| {
            if *name == "gone" { NodeSeen::Missing } else { NodeSeen::Is(Some("zone-a".into())) }
        });
        assert_eq!(plan.packed.drafts[0].endpoints.len(), endpoints, "published: {publish_all}");
        assert_eq!(plan.nodeless.len(), nodeless, "published: {publish_all}");
        assert_eq!(plan.packed.drafts[0].endpoints[0].zone.as_deref(), Some("zone-a"));
    };
    check(false, 1, 1);
    check(true, 2, 0);
}

#[test]
fn a_slices_change_concerns_its_service_unless_we_made_it() {
    let labels = |service: &str, manager: &str| json!({ "kubernetes.io/service-name": service, "endpointslice.kubernetes.io/managed-by": manager });
    let slice = |version: &str, labels: Value| {
        let metadata = json!({ "name": "web-1", "namespace": "default", "uid": "slice", "resourceVersion": version, "labels": labels });
        Arc::new(decode::<EndpointSliceView>(json!({ "metadata": metadata, "addressType": "IPv4" })))
    };
    let ours = |version: &str| slice(version, labels("web", super::MANAGER.0));
    let check = |name: &str, did: Option<&str>, change: Change<EndpointSliceView>, want: &[&str]| {
        let tracker = Tracker::default();
        match did {
            Some("deleted") => {
                tracker.wrote(ours("1").meta());
                tracker.deleted(&ours("1").meta().uid);
            }
            Some(version) => tracker.wrote(ours(version).meta()),
            None => {}
        }
        let want: Vec<_> = want.iter().map(|name| ObjectKey::new("default", name)).collect();
        assert_eq!(super::MANAGER.services_of(&change, &tracker), want, "{name}");
    };
    let five = ours("5");
    let six = ours("6");
    let others = slice("6", labels("web", "somebody"));
    check("the state it began with", None, Change::Added { new: five.clone(), initial: true }, &[]);
    check("unknown", None, Change::Added { new: five.clone(), initial: false }, &["web"]);
    check("we made it", Some("5"), Change::Added { new: five.clone(), initial: false }, &[]);
    check("somebody else's", None, Change::Added { new: others.clone(), initial: false }, &[]);
    check("we wrote it", Some("6"), Change::Updated { old: five.clone(), new: six.clone() }, &[]);
    check("we wrote it again since", Some("7"), Change::Updated { old: five.clone(), new: six.clone() }, &[]);
    check("somebody wrote it", Some("5"), Change::Updated { old: five.clone(), new: six.clone() }, &["web"]);
    check("it is not ours any more", Some("5"), Change::Updated { old: five.clone(), new: others.clone() }, &["web"]);
    let moved = slice("6", labels("api", super::MANAGER.0));
    check("another service's", Some("6"), Change::Updated { old: five.clone(), new: moved.clone() }, &["web", "api"]);
    check("we deleted it", Some("deleted"), Change::Deleted { last: five.clone(), end: End::Observed }, &[]);
    check("it goes as we wanted", Some("deleted"), Change::Updated { old: five.clone(), new: six.clone() }, &[]);
    check("somebody deleted it", Some("5"), Change::Deleted { last: five.clone(), end: End::Observed }, &["web"]);
    check("it was there before us", None, Change::Deleted { last: five.clone(), end: End::Missed }, &["web"]);
}

#[test]
fn a_nodes_change_matters_if_its_zone_or_readiness_changed() {
    let check = |name: &str, new: Value, want: bool| {
        let change = Change::Updated { old: node("a", json!({})), new: node("a", new) };
        assert_eq!(map::changes_zones(&change), want, "{name}");
    };
    check("a heartbeat", json!({ "metadata": { "resourceVersion": "2" } }), false);
    check("another zone", json!({ "metadata": { "labels": { "topology.kubernetes.io/zone": "zone-b" } } }), true);
    check("not ready", json!({ "status": { "conditions": [{ "type": "Ready", "status": "Unknown" }] } }), true);
}

#[test]
fn topology_hints_are_asked_for_by_either_annotation_and_the_older_one_counts() {
    let check = |annotations: Value, want: bool| {
        let service = service(json!({ "metadata": { "annotations": annotations } }));
        assert_eq!(asks_for_topology_hints(&service), want, "{annotations}");
    };
    let old = "service.kubernetes.io/topology-aware-hints";
    let new = "service.kubernetes.io/topology-mode";
    check(json!({}), false);
    check(json!({ new: "Auto" }), true);
    check(json!({ old: "auto" }), true);
    check(json!({ new: "auto", old: "Disabled" }), false);
    check(json!({ new: "AUTO" }), false);
}
