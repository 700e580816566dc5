//! Packing. The figures are those of upstream's `reconciler_test.go`.

use std::sync::Arc;

use serde_json::{Value, json};
use steersman_base::Uid;
use steersman_model::core::PodView;
use steersman_model::{EndpointSliceView, View};

use super::super::endpoint;
use super::super::packing::Draft;
use super::super::plan::by_family;
use super::{carried_out, plan, writes};
use crate::service_pods::address::Family;
use crate::service_pods::tests::{not_ready, pod, service};

const MAX: usize = 100;

fn pods(numbers: impl IntoIterator<Item = usize>) -> Vec<Arc<PodView>> {
    numbers.into_iter().map(|number| pod(number, json!({}))).collect()
}

/// Returns a slice of the service with these pods.
fn slice(name: &str, of: &[Arc<PodView>]) -> Arc<EndpointSliceView> {
    let service = service(json!({}));
    let draft = Draft {
        base: None,
        ports: endpoint::endpoint_ports(&service, &of[0]),
        endpoints: of.iter().filter_map(|pod| endpoint::endpoint(pod, None, &service, Family::V4)).collect(),
    };
    let mut slice = endpoint::slice(draft, &service, Family::V4, &endpoint::labels(&service), None);
    slice.metadata.name = name.into();
    slice.metadata.uid = Uid::new(name);
    Arc::new(slice)
}

fn lengths(slices: &[Arc<EndpointSliceView>]) -> Vec<usize> {
    let mut lengths: Vec<_> = slices.iter().map(|slice| slice.endpoints.len()).collect();
    lengths.sort_unstable();
    lengths
}

/// Plans, and checks the writes, the lengths, and that a second plan writes nothing.
fn check(
    name: &str,
    service_more: Value,
    pods: &[Arc<PodView>],
    slices: &[Arc<EndpointSliceView>],
    want_writes: (usize, usize, usize),
    want_lengths: &[usize],
) -> Vec<Arc<EndpointSliceView>> {
    let service = service(service_more);
    let planned = plan(&service, pods, slices, MAX);
    assert_eq!(writes(&service, &planned.packed), want_writes, "{name}: created, updated, deleted");
    let after = carried_out(&service, planned.packed);
    assert_eq!(lengths(&after), want_lengths, "{name}: endpoints per slice");
    let again = plan(&service, pods, &after, MAX);
    assert_eq!(writes(&service, &again.packed), (0, 0, 0), "{name}: once more");
    after
}

#[test]
fn endpoints_fill_slices_in_as_few_writes_as_can_be() {
    check("many, and no slice yet", json!({}), &pods(0..250), &[], (3, 0, 0), &[50, 100, 100]);
    check("as many as fit", json!({}), &pods(0..100), &[], (1, 0, 0), &[100]);

    let all = pods(0..250);
    let one = pods((1..246).step_by(4));
    let two = pods((3..246).step_by(4));
    let slices = [slice("a", &one), slice("b", &two)];
    check("a quarter in each of two", json!({}), &all, &slices, (1, 1, 0), &[61, 89, 100]);

    let all = pods(0..300);
    let one = pods((1..296).step_by(4));
    let two = pods((3..296).step_by(4));
    let slices = [slice("a", &one), slice("b", &two)];
    check("what is left fits nowhere", json!({}), &all, &slices, (2, 0, 0), &[52, 74, 74, 100]);
}

#[test]
fn new_endpoints_go_into_the_fullest_slice_that_is_written_anyway() {
    let one = pods(0..80);
    let two = pods(100..120);
    let slices = [slice("a", &one), slice("b", &two)];
    let changed = |(at, pod): (usize, &Arc<PodView>)| {
        let number: usize = pod.meta().name.trim_start_matches("pod-").parse().unwrap();
        if at % 10 == 0 { super::pod(number, not_ready()) } else { Arc::clone(pod) }
    };
    let mut all: Vec<_> = one.iter().chain(&two).enumerate().map(changed).collect();
    all.extend(pods(200..215));
    check("some are not ready any more, and some are new", json!({}), &all, &slices, (0, 2, 0), &[20, 95]);
}

#[test]
fn the_slice_is_filled_that_is_filled_best() {
    let slices = [slice("a", &pods(0..20)), slice("b", &pods(100..190)), slice("c", &pods(200..295))];
    let all = pods((0..20).chain(100..190).chain(200..295).chain(400..410));
    let after = check("ten more", json!({}), &all, &slices, (0, 1, 0), &[20, 95, 100]);
    assert_eq!(after[1].endpoints.len(), 100, "they fit into the second one exactly");
}

#[test]
fn slices_are_never_repacked_for_order_alone() {
    let slices: Vec<_> = (0..10).map(|at| slice(&format!("s{at}"), &pods(at * 30..at * 30 + 30))).collect();
    let all = pods(0..300);
    check("ten slices of thirty", json!({}), &all, &slices, (0, 0, 0), &[30; 10]);
    let port = json!({ "spec": { "ports": [{ "name": "http", "protocol": "TCP", "port": 80, "targetPort": 81 }] } });
    check("another port: all are written, so three do", port, &all, &slices, (0, 3, 7), &[100, 100, 100]);
}

#[test]
fn a_slice_without_endpoints_goes_unless_it_is_the_last() {
    let slices = [slice("a", &pods(0..10)), slice("b", &pods(20..30))];
    check("all pods of one are gone", json!({}), &pods(0..10), &slices, (0, 0, 1), &[10]);
    check("all pods of one are gone, others came", json!({}), &pods((0..10).chain(50..55)), &slices, (0, 1, 1), &[15]);
    let after = check("all pods are gone", json!({}), &[], &slices, (0, 1, 1), &[0]);
    assert!(after[0].ports.is_empty(), "what says that there are none has no ports");
    check("and come back", json!({}), &pods(0..3), &after, (0, 1, 0), &[3]);
    check("there never were any", json!({}), &[], &[], (1, 0, 0), &[0]);
}

#[test]
fn slices_follow_the_labels_of_their_service() {
    let slices = [slice("a", &pods(0..100)), slice("b", &pods(100..150))];
    let labelled = json!({ "metadata": { "labels": { "team": "a" } } });
    check("another label", labelled, &pods(0..150), &slices, (0, 2, 0), &[50, 100]);
    let reserved = json!({ "metadata": { "labels": { "kubernetes.io/service-name": "bad" } } });
    check("a label that says whose they are", reserved, &pods(0..150), &slices, (0, 0, 0), &[50, 100]);
}

#[test]
fn slices_of_an_earlier_service_of_that_name_are_replaced_and_not_reused() {
    let slices = [slice("a", &pods(0..10))];
    let other = json!({ "metadata": { "uid": "another" } });
    check("with pods", other.clone(), &pods(0..10), &slices, (1, 0, 1), &[10]);
    check("without", other, &[], &slices, (1, 0, 1), &[0]);
}

#[test]
fn each_set_of_ports_has_slices_of_its_own() {
    let by_name = json!({ "spec": { "ports": [
        { "name": "http", "protocol": "TCP", "port": 80, "targetPort": "http" },
    ] } });
    let with_port = |number: usize| {
        let port = json!([{ "name": "http", "containerPort": 8080 + number % 5 }]);
        pod(number, json!({ "spec": { "containers": [{ "name": "main", "ports": port }] } }))
    };
    let all: Vec<_> = (0..300).map(with_port).collect();
    let after = check("five numbers of one name", by_name, &all, &[], (5, 0, 0), &[60; 5]);
    let mut numbers: Vec<_> = after.iter().map(|slice| slice.ports[0].port.unwrap()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [8080, 8081, 8082, 8083, 8084]);
}

#[test]
fn a_headless_service_without_ports_has_endpoints_without_ports() {
    let headless = json!({ "spec": { "clusterIP": "None", "ports": null } });
    let after = check("with pods", headless.clone(), &pods(0..2), &[], (1, 0, 0), &[2]);
    assert!(after[0].ports.is_empty());
    let none = check("without", headless.clone(), &[], &[], (1, 0, 0), &[0]);
    check("the empty slice is filled", headless, &pods(0..2), &none, (0, 1, 0), &[2]);
}

#[test]
fn ports_in_another_order_are_the_same_set() {
    let two = || {
        json!({ "spec": { "ports": [
        { "name": "b", "protocol": "TCP", "port": 2, "targetPort": 2 },
        { "name": "a", "protocol": "TCP", "port": 1, "targetPort": 1 },
    ] } })
    };
    let mut after = carried_out(&service(two()), plan(&service(two()), &pods(0..3), &[], MAX).packed);
    Arc::make_mut(&mut after[0]).ports.reverse();
    check("the other way round", two(), &pods(0..3), &after, (0, 0, 0), &[3]);
}

#[test]
fn hundreds_of_random_changes_end_in_the_endpoints_that_are_wanted() {
    // A generator with a fixed seed, so that a failure is reproducible.
    let mut seed = 7_u64;
    let mut random = move |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).unwrap() % below
    };
    let service = service(json!({}));
    let mut slices = Vec::new();
    let mut wanted = std::collections::BTreeSet::new();
    for step in 0..150 {
        for _ in 0..random(30) {
            let number = random(150);
            if !wanted.remove(&number) {
                wanted.insert(number);
            }
        }
        let now = pods(wanted.iter().copied());
        let before: usize = slices.len();
        let planned = plan(&service, &now, &slices, 20);
        let (creates, ..) = writes(&service, &planned.packed);
        assert!(
            creates <= planned.packed.added.div_ceil(20).max(1),
            "step {step}: {creates} slices more than {before}"
        );
        slices = carried_out(&service, planned.packed);
        let names = slices.iter().flat_map(|slice| &slice.endpoints);
        let mut names: Vec<_> = names.map(|endpoint| endpoint.target_ref.as_ref().unwrap().name.clone()).collect();
        names.sort();
        let want: Vec<_> = now.iter().map(|pod| pod.meta().name.clone()).collect();
        assert_eq!(names, want, "step {step}: each endpoint once, and no other");
        assert!(slices.iter().all(|slice| slice.endpoints.len() <= 20), "step {step}");
        assert_eq!(writes(&service, &plan(&service, &now, &slices, 20).packed), (0, 0, 0), "step {step}");
    }
}

#[test]
fn slices_are_separated_by_family_and_others_go() {
    let of = |name: &str, type_: &str| {
        let mut slice = slice(name, &pods(0..1));
        Arc::make_mut(&mut slice).address_type = type_.into();
        slice
    };
    let (ours, others) =
        by_family(vec![of("c", "IPv4"), of("a", "IPv4"), of("b", "IPv6"), of("d", "FQDN")], &[Family::V4]);
    let names = |slices: &[Arc<EndpointSliceView>]| {
        slices.iter().map(|slice| slice.meta().name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(names(&ours[&Family::V4]), ["a", "c"]);
    assert_eq!(names(&others), ["b", "d"]);
}
