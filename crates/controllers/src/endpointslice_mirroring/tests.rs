//! Tables of the decisions.

use std::sync::Arc;

use serde_json::{Value, json};
use steersman_informer::{Change, End};
use steersman_model::core::ServiceView;
use steersman_model::{EndpointSliceView, EndpointsView, View, object_body};

use super::map;
use super::plan::{Changes, Plan, Skipped, plan};
use crate::service_pods::memory::Tracker;
use crate::test_objects::{decode, merged};

const MAX: usize = 3;

#[allow(clippy::needless_pass_by_value, reason = "`json!` makes values")]
fn endpoints(subsets: Value, more: Value) -> EndpointsView {
    let base = json!({
        "metadata": { "name": "db", "namespace": "default", "uid": "e", "labels": { "app": "db" } },
        "subsets": subsets,
    });
    decode(merged(base, more))
}

fn subset(ready: &[&str], not_ready: &[&str], port: i32) -> Value {
    let addresses = |ips: &[&str]| ips.iter().map(|ip| json!({ "ip": ip })).collect::<Vec<_>>();
    json!({ "addresses": addresses(ready), "notReadyAddresses": addresses(not_ready), "ports": [{ "port": port }] })
}

/// The slices as the server has them after a plan was carried out.
fn stored(plan: &Plan) -> Vec<Arc<EndpointSliceView>> {
    let named = plan.create.iter().enumerate().map(|(at, slice)| {
        let object: Value = serde_json::from_slice(&object_body(slice)).unwrap();
        let name =
            json!({ "metadata": { "name": format!("db-{at}"), "uid": format!("s{at}"), "resourceVersion": "1" } });
        Arc::new(decode(merged(object, name)))
    });
    named.chain(plan.update.iter().map(|slice| Arc::new(slice.clone()))).collect()
}

fn shape(slices: &[EndpointSliceView]) -> Vec<String> {
    let shape = |slice: &EndpointSliceView| {
        let addresses: Vec<String> = slice
            .endpoints
            .iter()
            .map(|endpoint| {
                let is_ready = endpoint.conditions.ready == Some(true);
                format!("{}{}", endpoint.addresses[0], if is_ready { "" } else { "?" })
            })
            .collect();
        let ports: Vec<String> = slice.ports.iter().filter_map(|port| port.port).map(|port| port.to_string()).collect();
        format!("{} {} {}", slice.address_type, ports.join(","), addresses.join(" "))
    };
    slices.iter().map(shape).collect()
}

#[test]
fn each_subset_has_a_slice_per_family_ready_addresses_first() {
    let check = |name: &str, subsets: Value, want: &[&str], skipped: Skipped| {
        let plan = plan(&endpoints(subsets, json!({})), Vec::new(), MAX);
        assert_eq!(shape(&plan.create), want, "{name}");
        assert_eq!(plan.skipped, skipped, "{name}");
        assert!(plan.update.is_empty() && plan.delete.is_empty(), "{name}");
    };
    let none = Skipped::default();
    check("nothing", json!([]), &[], none);
    check("one", json!([subset(&["10.0.0.1"], &["10.0.0.2"], 80)]), &["IPv4 80 10.0.0.1 10.0.0.2?"], none);
    check(
        "two families",
        json!([subset(&["10.0.0.1", "2001:db8::1"], &[], 80)]),
        &["IPv4 80 10.0.0.1", "IPv6 80 2001:db8::1"],
        none,
    );
    check(
        "two subsets",
        json!([subset(&["10.0.0.1"], &[], 80), subset(&["10.0.0.2"], &[], 90)]),
        &["IPv4 80 10.0.0.1", "IPv4 90 10.0.0.2"],
        none,
    );
    check(
        "equal ports",
        json!([subset(&["10.0.0.1"], &[], 80), subset(&["10.0.0.2"], &[], 80)]),
        &["IPv4 80 10.0.0.1 10.0.0.2"],
        none,
    );
    check(
        "no address",
        json!([subset(&["db.example.com", "010.0.0.1"], &[], 80)]),
        &["IPv4 80 10.0.0.1"],
        Skipped { all: 1, invalid: 1 },
    );
    check(
        "too many",
        json!([subset(&["10.0.0.1", "10.0.0.2"], &["10.0.0.3", "10.0.0.4"], 80)]),
        &["IPv4 80 10.0.0.1 10.0.0.2 10.0.0.3?"],
        Skipped { all: 1, invalid: 0 },
    );
}

#[test]
fn a_slice_that_is_right_is_left_alone_and_another_is_updated() {
    let before = endpoints(json!([subset(&["10.0.0.1", "10.0.0.2"], &[], 80)]), json!({}));
    let slices = stored(&plan(&before, Vec::new(), MAX));
    let check = |name: &str, now: &EndpointsView, want: (usize, usize, usize), changes: (usize, usize, usize)| {
        let plan = plan(now, slices.clone(), MAX);
        assert_eq!((plan.create.len(), plan.update.len(), plan.delete.len()), want, "{name}");
        let (added, updated, removed) = changes;
        assert_eq!(plan.changes, Changes { added, updated, removed }, "{name}");
    };
    let of = |subsets: Value| endpoints(subsets, json!({}));
    check("the same", &before, (0, 0, 0), (0, 0, 0));
    check("another address", &of(json!([subset(&["10.0.0.1", "10.0.0.3"], &[], 80)])), (0, 1, 0), (1, 0, 1));
    check("not ready any more", &of(json!([subset(&["10.0.0.1"], &["10.0.0.2"], 80)])), (0, 1, 0), (0, 1, 0));
    check("no addresses", &of(json!([])), (0, 0, 1), (0, 0, 0));
    check("another port: the slice is used again", &of(json!([subset(&["10.0.0.1"], &[], 90)])), (0, 1, 0), (1, 0, 0));
    check("another family", &of(json!([subset(&["2001:db8::1"], &[], 80)])), (1, 0, 1), (1, 0, 2));
    let labelled = json!({ "metadata": { "labels": { "tier": "data" } } });
    let labelled = endpoints(json!([subset(&["10.0.0.1", "10.0.0.2"], &[], 80)]), labelled);
    check("another label", &labelled, (0, 1, 0), (0, 0, 0));
    let replaced = json!({ "metadata": { "uid": "another" } });
    let replaced = endpoints(json!([subset(&["10.0.0.1", "10.0.0.2"], &[], 80)]), replaced);
    check("other Endpoints of the name", &replaced, (0, 1, 0), (0, 0, 0));
    let ignored = json!({ "metadata": { "annotations": {
        "endpoints.kubernetes.io/last-change-trigger-time": "2026-11-15T12:00:00Z",
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
    } } });
    let ignored = endpoints(json!([subset(&["10.0.0.1", "10.0.0.2"], &[], 80)]), ignored);
    check("annotations that are not mirrored", &ignored, (0, 0, 0), (0, 0, 0));
}

#[test]
fn an_update_keeps_the_name_and_the_version_and_a_second_slice_goes() {
    let before = endpoints(json!([subset(&["10.0.0.1"], &[], 80)]), json!({}));
    let mut slices = stored(&plan(&before, Vec::new(), MAX));
    let mut second = (*slices[0]).clone();
    second.metadata.name = "db-z".into();
    slices.push(Arc::new(second));
    let now = endpoints(json!([subset(&["10.0.0.2"], &[], 80)]), json!({}));
    let plan = plan(&now, slices, MAX);
    assert_eq!(plan.update.len(), 1);
    let meta = plan.update[0].meta();
    assert_eq!((&*meta.name, meta.resource_version.to_string().as_str()), ("db-0", "1"));
    assert_eq!(plan.delete.iter().map(|slice| &*slice.meta().name).collect::<Vec<_>>(), ["db-z"]);
    let labels: Vec<_> = meta.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let want = [
        "app=db",
        "endpointslice.kubernetes.io/managed-by=endpointslicemirroring-controller.k8s.io",
        "kubernetes.io/service-name=db",
    ];
    assert_eq!(labels, want);
}

#[test]
fn changes_concern_endpoints_that_are_mirrored_or_were() {
    let plain = Arc::new(endpoints(json!([]), json!({})));
    let skip = |value: &str| json!({ "metadata": { "labels": { "endpointslice.kubernetes.io/skip-mirror": value } } });
    let skipped = Arc::new(endpoints(json!([]), skip("true")));
    let not_skipped = Arc::new(endpoints(json!([]), skip("false")));
    let leader = json!({ "metadata": { "annotations": { "control-plane.alpha.kubernetes.io/leader": "" } } });
    let leader = Arc::new(endpoints(json!([]), leader));
    let added = |new: &Arc<EndpointsView>| Change::Added { new: Arc::clone(new), initial: false };
    let is_enqueued = |change: &Change<EndpointsView>| map::endpoints(change).is_some();
    assert_eq!(
        [&plain, &skipped, &not_skipped, &leader].map(|new| is_enqueued(&added(new))),
        [true, false, true, false]
    );
    let changed = Change::Updated { old: Arc::clone(&plain), new: Arc::clone(&skipped) };
    assert!(is_enqueued(&changed));
    assert!(!is_enqueued(&Change::Updated { old: Arc::clone(&skipped), new: Arc::clone(&leader) }));

    let service = |selector: Value| -> Arc<ServiceView> {
        Arc::new(decode(json!({ "metadata": { "name": "db", "namespace": "a" }, "spec": { "selector": selector } })))
    };
    let free = service(json!(null));
    let bound = service(json!({ "app": "db" }));
    let concerns = |change: Change<ServiceView>| map::endpoints_of_service(&change).is_some();
    assert!(concerns(Change::Added { new: Arc::clone(&free), initial: true }));
    assert!(!concerns(Change::Added { new: Arc::clone(&bound), initial: true }));
    assert!(concerns(Change::Updated { old: Arc::clone(&free), new: Arc::clone(&bound) }));
    assert!(!concerns(Change::Updated { old: Arc::clone(&free), new: Arc::clone(&free) }));
    assert!(concerns(Change::Deleted { last: free, end: End::Observed }));
    assert!(!concerns(Change::Deleted { last: bound, end: End::Observed }));
}

/// Endpoints that ceased to be mirrored while no controller ran enqueue nothing themselves.
#[test]
fn slices_that_exist_at_the_start_concern_their_endpoints() {
    let tracker = Tracker::default();
    let slice = |manager: &str| -> Arc<EndpointSliceView> {
        let labels = json!({ "kubernetes.io/service-name": "db", "endpointslice.kubernetes.io/managed-by": manager });
        let metadata =
            json!({ "name": "db-0", "namespace": "a", "uid": "s", "resourceVersion": "7", "labels": labels });
        Arc::new(decode(json!({ "metadata": metadata, "addressType": "IPv4" })))
    };
    let ours = slice("endpointslicemirroring-controller.k8s.io");
    let concerned = |change: Change<EndpointSliceView>| {
        let keys = map::endpoints_of_slice(&change, &tracker);
        keys.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let added = |slice: &Arc<EndpointSliceView>, initial| Change::Added { new: Arc::clone(slice), initial };
    assert_eq!(concerned(added(&ours, true)), ["a/db"]);
    assert_eq!(concerned(added(&slice("endpointslice-controller.k8s.io"), true)), [""; 0], "another manager's");
    tracker.wrote(ours.meta());
    assert_eq!(concerned(added(&ours, false)), [""; 0], "our own write");
    assert_eq!(concerned(Change::Deleted { last: ours, end: End::Observed }), ["a/db"], "somebody deleted it");
}
