//! Table tests of the pure functions.

use std::sync::Arc;

use serde_json::{Value, json};
use steersman_base::{Istr, ObjectKey, Time};
use steersman_informer::{Change, End};
use steersman_model::View;
use steersman_model::core::{EndpointSubset, EndpointsView, PodView, ServiceView};

use super::ADDRESSES_MAX;
use super::map;
use super::plan::{Plan, plan};
use super::subsets::{repack, subsets, truncate};
use crate::service_pods::tests::{NOW, decode, merged, not_ready, pod, service, terminating, with_ips};

/// Formats subsets as `ready/not ready:ports`, addresses by the last byte.
fn described(subsets: &[EndpointSubset]) -> Vec<String> {
    let addresses = |addresses: &[steersman_model::core::EndpointAddress]| {
        let ends: Vec<_> = addresses.iter().filter_map(|address| address.ip.rsplit(['.', ':']).next()).collect();
        ends.join(",")
    };
    let ports = |subset: &EndpointSubset| {
        let ports: Vec<_> = subset.ports.iter().map(|port| format!("{}={}", port.name, port.port)).collect();
        ports.join(",")
    };
    let one = |subset: &EndpointSubset| {
        format!("{}/{}:{}", addresses(&subset.addresses), addresses(&subset.not_ready_addresses), ports(subset))
    };
    subsets.iter().map(one).collect()
}

fn named_ports(number: i32) -> Value {
    let port = json!([{ "name": "http", "containerPort": number }]);
    json!({ "spec": { "containers": [{ "name": "main", "ports": port }] } })
}

#[test]
fn subsets_are_the_addresses_of_pods_by_their_ports() {
    let check = |name: &str, service_more: Value, pods: &[Arc<PodView>], want: &[&str]| {
        assert_eq!(described(&subsets(&service(service_more), pods)), want, "{name}");
    };
    let two_ports = || {
        json!({ "spec": { "ports": [
            { "name": "https", "protocol": "TCP", "port": 443, "targetPort": 8443 },
            { "name": "http", "protocol": "TCP", "port": 80, "targetPort": "http" },
        ] } })
    };
    let by_name =
        || json!({ "spec": { "ports": [{ "name": "http", "protocol": "TCP", "port": 80, "targetPort": "http" }] } });
    let headless = || json!({ "spec": { "clusterIP": "None", "ports": null } });
    check("nobody", json!({}), &[], &[]);
    check("ready and not", json!({}), &[pod(1, json!({})), pod(2, not_ready())], &["2/3:http=8080"]);
    check("none ready", json!({}), &[pod(1, not_ready())], &["/2:http=8080"]);
    check("about to go", json!({}), &[pod(1, terminating())], &[]);
    check("ended", json!({}), &[pod(1, json!({ "status": { "phase": "Succeeded" } }))], &[]);
    let all = || json!({ "spec": { "publishNotReadyAddresses": true } });
    check("all are published", all(), &[pod(1, not_ready()), pod(2, terminating())], &["2,3/:http=8080"]);
    let pods = [pod(1, named_ports(8080)), pod(2, named_ports(9090)), pod(3, named_ports(8080))];
    check("named ports", by_name(), &pods, &["2,4/:http=8080", "3/:http=9090"]);
    check("two ports, both had", two_ports(), &pods[..1], &["2/:http=8080,https=8443"]);
    let pods = [pod(1, named_ports(8080)), pod(2, json!({}))];
    check("two ports, one had", two_ports(), &pods, &["2/:http=8080", "2,3/:https=8443"]);
    check("no such port", by_name(), &[pod(1, json!({}))], &[]);
    check("headless without ports", headless(), &[pod(1, json!({})), pod(2, not_ready())], &["2/3:"]);
    check("without ports", json!({ "spec": { "ports": null } }), &[pod(1, json!({}))], &[]);
    check("no valid address", json!({}), &[pod(1, with_ips(&["nonsense"]))], &[]);
    let both = || pod(1, with_ips(&["10.0.0.9", "fd00::7"]));
    let families = |families: Value| json!({ "spec": { "ipFamilies": families } });
    check("the first family", families(json!(["IPv6", "IPv4"])), &[both()], &["7/:http=8080"]);
    check("an address of the other family", families(json!(["IPv6"])), &[pod(1, json!({}))], &[]);
    check("no family: the service's", families(json!(null)), &[both()], &["9/:http=8080"]);
    let old_headless = json!({ "spec": { "ipFamilies": null, "clusterIP": "None" } });
    check("no family, headless: the pod's", old_headless, &[pod(1, with_ips(&["fd00::7"]))], &["7/:http=8080"]);
}

#[test]
fn an_address_says_whose_it_is_and_where() {
    let host = json!({ "spec": { "hostname": "first", "subdomain": "web" } });
    let address = subsets(&service(json!({})), &[pod(1, host)])[0].addresses[0].clone();
    let target = address.target_ref.unwrap();
    assert_eq!((&*target.kind, &*target.namespace, &*target.name), ("Pod", "default", "pod-0001"));
    assert_eq!((target.uid.to_string(), target.resource_version.is_empty()), ("uid-0001".to_owned(), true));
    assert_eq!((&*address.hostname, address.node_name.as_deref()), ("first", Some("node-1")));
}

#[test]
fn subsets_in_another_order_are_the_same() {
    let service = service(json!({ "spec": { "ports": [
        { "name": "a", "protocol": "TCP", "port": 1, "targetPort": 1 },
        { "name": "b", "protocol": "TCP", "port": 2, "targetPort": 2, "appProtocol": "h2c" },
    ] } }));
    let pods: Vec<_> =
        (0..5).map(|number| pod(number, if number % 2 == 0 { not_ready() } else { json!({}) })).collect();
    let wanted = subsets(&service, &pods);
    let mut other = wanted.clone();
    for subset in &mut other {
        subset.addresses.reverse();
        subset.not_ready_addresses.reverse();
        subset.ports.reverse();
        for address in &mut subset.addresses {
            address.target_ref.as_mut().unwrap().resource_version = "77".into();
        }
    }
    assert_ne!(other, wanted);
    assert_eq!(repack(&other), wanted);

    // Split into a subset for each port: no controller writes that, but people do.
    let apart: Vec<_> = wanted[0]
        .ports
        .iter()
        .map(|port| EndpointSubset { ports: [port.clone()].into(), ..wanted[0].clone() })
        .collect();
    assert_eq!(repack(&apart), wanted);
}

#[test]
fn an_address_that_is_listed_both_ways_is_not_ready() {
    let once = subsets(&service(json!({})), &[pod(1, json!({}))]).remove(0);
    let twice = EndpointSubset { not_ready_addresses: once.addresses.clone(), ..once };
    assert_eq!(described(&repack(&[twice])), ["/2:http=8080"]);
}

#[test]
fn too_many_addresses_are_cut_in_proportion_and_ready_ones_last() {
    let check = |name: &str, before: &[(usize, usize)], want: Option<&[(usize, usize)]>| {
        let address = |number: usize| subsets(&service(json!({})), &[pod(number, json!({}))])[0].addresses[0].clone();
        let one = address(1);
        let many = |count: usize| vec![one.clone(); count].into_boxed_slice();
        let mut subsets: Vec<_> = before
            .iter()
            .map(|(ready, not_ready)| EndpointSubset {
                addresses: many(*ready),
                not_ready_addresses: many(*not_ready),
                ..EndpointSubset::default()
            })
            .collect();
        let cut = truncate(&mut subsets);
        let got: Vec<_> =
            subsets.iter().map(|subset| (subset.addresses.len(), subset.not_ready_addresses.len())).collect();
        assert_eq!((cut, &*got), (want.is_some(), want.unwrap_or(before)), "{name}");
    };
    check("not too many", &[(ADDRESSES_MAX, 0)], None);
    check("not too many, in two", &[(500, 100), (300, 100)], None);
    check("one too many", &[(ADDRESSES_MAX, 1)], Some(&[(1000, 0)]));
    check("ready ones alone are too many", &[(1100, 400)], Some(&[(1000, 0)]));
    check("some that are not ready fit", &[(900, 200)], Some(&[(900, 100)]));
    check("in proportion", &[(400, 200), (400, 600)], Some(&[(400, 50), (400, 150)]));
    check("rounded up, the last gets less", &[(501, 0), (501, 0), (501, 0)], Some(&[(334, 0), (334, 0), (332, 0)]));
    check("a subset without any goes", &[(1001, 0), (0, 50)], Some(&[(1000, 0)]));
}

fn endpoints(service: &ServiceView, pods: &[Arc<PodView>]) -> EndpointsView {
    match plan(service, pods, None, None) {
        Plan::Create(endpoints) => endpoints,
        other => panic!("there are none yet: {other:?}"),
    }
}

#[test]
fn endpoints_are_written_only_if_they_are_not_what_they_should_be() {
    let pods = [pod(1, json!({})), pod(2, not_ready())];
    let check = |name: &str, service_more: Value, now: &[Arc<PodView>], writes: bool| {
        let labelled = || json!({ "metadata": { "labels": { "team": "a" } } });
        let current = endpoints(&service(labelled()), &pods);
        let got = plan(&service(merged(labelled(), service_more)), now, Some(&current), None);
        assert_eq!(got != Plan::Nothing, writes, "{name}: {got:?}");
    };
    check("nothing changed", json!({}), &pods, false);
    check("pods in another order", json!({}), &[Arc::clone(&pods[1]), Arc::clone(&pods[0])], false);
    check("a pod less", json!({}), &pods[..1], true);
    check("a pod is ready", json!({}), &[pod(1, json!({})), pod(2, json!({}))], true);
    check(
        "another pod of that address",
        json!({}),
        &[pod(1, json!({ "metadata": { "uid": "other" } })), Arc::clone(&pods[1])],
        true,
    );
    check("another label", json!({ "metadata": { "labels": { "team": "b" } } }), &pods, true);
    check("headless", json!({ "spec": { "clusterIP": "None" } }), &pods, true);
}

#[test]
fn endpoints_have_the_labels_of_their_service_and_keep_their_annotations() {
    let labels = |service_more: Value| {
        let endpoints = endpoints(&service(service_more), &[]);
        let pairs = endpoints.metadata.labels.iter().map(|(key, value)| format!("{key}={value}"));
        pairs.collect::<Vec<_>>()
    };
    let ours = "endpoints.kubernetes.io/managed-by=endpoint-controller";
    assert_eq!(labels(json!({})), [ours]);
    let team = json!({ "metadata": { "labels": { "team": "a" } }, "spec": { "clusterIP": "None" } });
    assert_eq!(labels(team), [ours, "service.kubernetes.io/headless=", "team=a"]);

    let service = service(json!({}));
    let mut current = endpoints(&service, &[]);
    current.metadata.annotations = decode::<EndpointsView>(json!({ "metadata": { "annotations": {
        "example.dev/note": "kept", "endpoints.kubernetes.io/over-capacity": "truncated",
        "endpoints.kubernetes.io/last-change-trigger-time": "2020-01-01T00:00:00Z",
    } } }))
    .metadata
    .annotations;
    let update = |time: Option<Time>| match plan(&service, &[], Some(&current), time) {
        Plan::Update(endpoints) => {
            let pairs = endpoints.metadata.annotations.iter().map(|(key, value)| format!("{key}={value}"));
            pairs.collect::<Vec<_>>()
        }
        other => panic!("it claims to be cut: {other:?}"),
    };
    let described = format!("endpoints.kubernetes.io/last-change-trigger-time={NOW}");
    assert_eq!(update(Some(NOW.parse().unwrap())), [described.as_str(), "example.dev/note=kept"]);
    assert_eq!(update(None), ["example.dev/note=kept"]);
}

#[test]
fn endpoints_that_are_cut_stay_as_they_are_while_nothing_changes() {
    let pods: Vec<_> = (0..ADDRESSES_MAX + 50).map(|number| pod(number, json!({}))).collect();
    let current = endpoints(&service(json!({})), &pods);
    assert_eq!(current.subsets[0].addresses.len(), ADDRESSES_MAX);
    let annotation = current.meta().annotations.get("endpoints.kubernetes.io/over-capacity");
    assert_eq!(annotation.map(Istr::as_str), Some("truncated"));
    assert_eq!(
        plan(&service(json!({})), &pods, Some(&current), None),
        Plan::Nothing,
        "upstream writes here, again and again"
    );
    assert!(matches!(plan(&service(json!({})), &pods[..9], Some(&current), None), Plan::Update(_)));
}

#[test]
fn a_change_of_endpoints_concerns_the_service_they_miss() {
    let object = |more: Value| {
        let base = json!({ "metadata": { "name": "web", "namespace": "default" } });
        Arc::new(decode::<EndpointsView>(merged(base, more)))
    };
    let check = |name: &str, change: Change<EndpointsView>, service_exists: bool, want: bool| {
        let key = map::service_of(&change, |_| service_exists);
        assert_eq!(key, want.then(|| ObjectKey::new("default", "web")), "{name}");
    };
    let plain = object(json!({}));
    let ours =
        object(json!({ "metadata": { "labels": { "endpoints.kubernetes.io/managed-by": "endpoint-controller" } } }));
    let lock = object(json!({ "metadata": { "annotations": { "control-plane.alpha.kubernetes.io/leader": "{}" } } }));
    check("left behind", Change::Added { new: plain.clone(), initial: true }, false, true);
    check("a lock", Change::Added { new: lock.clone(), initial: true }, false, false);
    check("its service is looked at anyway", Change::Added { new: plain.clone(), initial: true }, true, false);
    check("somebody made them", Change::Added { new: plain.clone(), initial: false }, false, false);
    check("we made them too late", Change::Added { new: ours.clone(), initial: false }, false, true);
    check("we made them", Change::Added { new: ours.clone(), initial: false }, true, false);
    check("changed", Change::Updated { old: plain.clone(), new: ours.clone() }, true, false);
    check("gone", Change::Deleted { last: plain.clone(), end: End::Observed }, true, true);
}
