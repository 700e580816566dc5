//! What services promise: endpoints and slices, by two controllers side by side.

use std::collections::BTreeMap;

use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::{Endpoints, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;
use steersman_testing::objects::{self, ObjectBuilder as _, PodBuilder as _};
use steersman_testing::{Builder, Failure, TestCluster, expect};

use crate::scenarios::support::controllers::{self, Controller};

mod kit;

pub(crate) use kit::*;

scenarios! {
    endpoints_follow_their_pods on cluster,
    a_named_port_is_looked_up_on_each_pod on cluster,
    a_terminating_pod_is_serving_and_not_ready on cluster,
    services_without_selector_are_left_to_others on cluster,
    hints_follow_the_traffic_distribution on cluster,
    more_than_a_thousand_pods_fill_slices_and_overflow_endpoints on cluster,
    changes_of_others_to_slices_and_endpoints_are_undone on cluster,
    a_pod_on_an_unknown_node_becomes_an_endpoint_when_the_node_comes on cluster,
    endpoints_are_deleted_with_their_service on cluster,
    topology_hints_come_and_go_with_an_event on cluster alone,
    a_pod_with_addresses_of_two_families_has_endpoints_in_both on with_two_families alone,
}

/// How many requests of a test are under way at once.
pub(crate) const AT_ONCE: usize = 16;

pub(crate) const CONTROLLERS: &[Controller] = &[controllers::ENDPOINTS, controllers::ENDPOINT_SLICE];

pub(crate) fn cluster() -> Builder {
    TestCluster::builder().controllers(CONTROLLERS)
}

pub(crate) fn with_two_families() -> Builder {
    cluster().dual_stack()
}

/// The classic story: endpoints come with their pods, follow their readiness, and go with them.
pub(crate) async fn endpoints_follow_their_pods(cluster: &TestCluster) -> Result<(), Failure> {
    let node = add_node(cluster, "a", Some("zone-a")).await?;
    cluster.create(service("web", json!({ "metadata": { "labels": { "team": "blue" } } }))).await?;
    until_endpoints(cluster, "web", &[]).await?;
    let empty = until_slices(cluster, "web", &[]).await?;
    expect(
        empty.len() == 1 && empty[0].ports.as_ref().is_none_or(Vec::is_empty),
        "one slice says that there are none",
        &empty,
    )?;

    run_pod(cluster, "one", &node, "10.1.0.1").await?;
    run_pod(cluster, "two", &node, "10.1.0.2").await?;
    until_endpoints(cluster, "web", &["10.1.0.1 ready", "10.1.0.2 ready"]).await?;
    let slices = until_slices(cluster, "web", &["10.1.0.1 ready", "10.1.0.2 ready"]).await?;
    expect(slices.len() == 1 && slices[0].metadata.name == empty[0].metadata.name, "it is the same slice", &slices)?;
    check_labels(cluster, &slices[0]).await?;
    let Some(endpoint) = all(&slices).next() else { return Err(Failure::new("there is none")) };
    let placed = endpoint.node_name.as_deref() == Some(&*node) && endpoint.zone.as_deref() == Some("zone-a");
    expect(placed, "the endpoint says where it is", endpoint)?;

    set_ready(cluster, "one", false).await?;
    until_endpoints(cluster, "web", &["10.1.0.1 not ready", "10.1.0.2 ready"]).await?;
    until_slices(cluster, "web", &["10.1.0.1 not ready", "10.1.0.2 ready"]).await?;
    relabel(cluster, "two", "other").await?;
    until_endpoints(cluster, "web", &["10.1.0.1 not ready"]).await?;
    until_slices(cluster, "web", &["10.1.0.1 not ready"]).await?;
    relabel(cluster, "two", "web").await?;
    until_slices(cluster, "web", &["10.1.0.1 not ready", "10.1.0.2 ready"]).await?;

    for pod in ["one", "two"] {
        kill_pod(cluster, pod).await?;
    }
    until_endpoints(cluster, "web", &[]).await?;
    let left = until_slices(cluster, "web", &[]).await?;
    expect(left.len() == 1, "one slice says that there are none", &left)?;
    remove_node(cluster, &node).await
}

async fn check_labels(cluster: &TestCluster, slice: &EndpointSlice) -> Result<(), Failure> {
    let labels = slice.metadata.labels.clone().unwrap_or_default();
    let want = [
        ("endpointslice.kubernetes.io/managed-by", "endpointslice-controller.k8s.io"),
        ("kubernetes.io/service-name", "web"),
        ("team", "blue"),
    ];
    expect(labels == map(&want), "the slice says whose it is", &labels)?;
    expect(slice.metadata.generate_name.as_deref() == Some("web-"), "its name comes from the service", slice)?;
    let annotations = slice.metadata.annotations.clone().unwrap_or_default();
    let time = annotations.get("endpoints.kubernetes.io/last-change-trigger-time");
    expect(time.is_some(), "it says since when", &annotations)?;
    let endpoints = cluster.api::<Endpoints>().get("web").await?;
    let labels = endpoints.metadata.labels.unwrap_or_default();
    let want = [("endpoints.kubernetes.io/managed-by", "endpoint-controller"), ("team", "blue")];
    expect(labels == map(&want), "the endpoints say whose they are", &labels)
}

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// One name, another number on each pod: each has slices and subsets of its own, and a headless service says that it is one.
pub(crate) async fn a_named_port_is_looked_up_on_each_pod(cluster: &TestCluster) -> Result<(), Failure> {
    let node = add_node(cluster, "a", None).await?;
    let port = json!([{ "name": "http", "port": 80, "targetPort": "web" }]);
    cluster.create(service("web", json!({ "spec": { "clusterIP": "None", "ports": port } }))).await?;
    for (pod, number, ip) in [("one", 8080, "10.1.0.1"), ("two", 9090, "10.1.0.2"), ("three", 8080, "10.1.0.3")] {
        let port = json!({ "name": "web", "containerPort": number });
        let containers = json!([{ "name": "main", "image": objects::IMAGE, "ports": [port] }]);
        let object = objects::pod(pod).app("web").on_node(&node);
        cluster.create(object.with(json!({ "spec": { "containers": containers } }))).await?;
        say_running(cluster, pod, &[ip], true).await?;
    }
    until_endpoints(cluster, "web", &["10.1.0.1 ready", "10.1.0.2 ready", "10.1.0.3 ready"]).await?;
    let slices = until_slices(cluster, "web", &["10.1.0.1 ready", "10.1.0.2 ready", "10.1.0.3 ready"]).await?;
    let mut ports: Vec<_> =
        slices.iter().map(|slice| (slice.ports.as_ref().and_then(|ports| ports.first()?.port), size(slice))).collect();
    ports.sort();
    expect(ports == [(Some(8080), 2), (Some(9090), 1)], "a slice for each number", &ports)?;
    let endpoints = cluster.api::<Endpoints>().get("web").await?;
    let subsets = endpoints.subsets.clone().unwrap_or_default();
    expect(subsets.len() == 2, "a subset for each number", &subsets)?;
    for labels in [endpoints.metadata.labels, slices[0].metadata.labels.clone()] {
        let labels = labels.unwrap_or_default();
        expect(labels.get("service.kubernetes.io/headless").is_some_and(String::is_empty), "it is headless", &labels)?;
    }
    remove_node(cluster, &node).await
}

/// A pod that is about to go takes no new requests, and slices say whether it still answers; Endpoints do not have it.
pub(crate) async fn a_terminating_pod_is_serving_and_not_ready(cluster: &TestCluster) -> Result<(), Failure> {
    let node = add_node(cluster, "a", None).await?;
    cluster.create(service("web", json!({}))).await?;
    cluster.create(service("all", json!({ "spec": { "publishNotReadyAddresses": true } }))).await?;
    run_pod(cluster, "one", &node, "10.1.0.1").await?;
    until_slices(cluster, "web", &["10.1.0.1 ready"]).await?;
    cluster.delete::<Pod>("one").await?;
    until_slices(cluster, "web", &["10.1.0.1 not ready serving terminating"]).await?;
    until_slices(cluster, "all", &["10.1.0.1 ready terminating"]).await?;
    until_endpoints(cluster, "web", &[]).await?;
    until_endpoints(cluster, "all", &["10.1.0.1 ready"]).await?;
    set_ready(cluster, "one", false).await?;
    until_slices(cluster, "web", &["10.1.0.1 not ready terminating"]).await?;
    until_slices(cluster, "all", &["10.1.0.1 ready not serving terminating"]).await?;
    let ended = json!({ "status": { "phase": "Succeeded" } });
    patch_status(cluster, "one", &ended).await?;
    until_slices(cluster, "all", &[]).await?;
    until_endpoints(cluster, "all", &[]).await?;
    remove_node(cluster, &node).await
}

/// Endpoints of a service without selector are its owner's business; `ExternalName` has none.
pub(crate) async fn services_without_selector_are_left_to_others(cluster: &TestCluster) -> Result<(), Failure> {
    let manual = json!({ "spec": { "selector": null } });
    cluster.create(service("manual", manual)).await?;
    let external = json!({ "spec": { "type": "ExternalName", "externalName": "example.dev", "clusterIP": null } });
    cluster.create(service("external", external)).await?;
    let subsets = json!([{ "addresses": [{ "ip": "192.0.2.1" }], "ports": [{ "port": 80 }] }]);
    let own: Endpoints = object(json!({ "metadata": { "name": "manual" }, "subsets": subsets }))?;
    cluster.create(own).await?;
    cluster.create(service("web", json!({}))).await?;
    until_endpoints(cluster, "web", &[]).await?;
    until_slices(cluster, "web", &[]).await?;
    let slices = cluster.api::<EndpointSlice>().list(&ListParams::default()).await?.items;
    expect(slices.len() == 1, "only the third has a slice", &slices)?;
    until_endpoints(cluster, "manual", &["192.0.2.1 ready"]).await?;
    let external = cluster.api::<Endpoints>().get_opt("external").await?;
    expect(external.is_none(), "it has no endpoints", &external)
}

/// Hints follow `trafficDistribution`, and go when it does.
pub(crate) async fn hints_follow_the_traffic_distribution(cluster: &TestCluster) -> Result<(), Failure> {
    let a = add_node(cluster, "a", Some("zone-a")).await?;
    let b = add_node(cluster, "b", Some("zone-b")).await?;
    let near = json!({ "spec": { "trafficDistribution": "PreferSameZone" } });
    cluster.create(service("web", near)).await?;
    run_pod(cluster, "one", &a, "10.1.0.1").await?;
    run_pod(cluster, "two", &b, "10.1.0.2").await?;
    until_hints(cluster, "web", &["10.1.0.1 for zone-a", "10.1.0.2 for zone-b"]).await?;
    set_spec(cluster, "web", &json!({ "trafficDistribution": "PreferSameNode" })).await?;
    let want = [format!("10.1.0.1 for zone-a on {a}"), format!("10.1.0.2 for zone-b on {b}")];
    until_hints(cluster, "web", &[&want[0], &want[1]]).await?;
    set_spec(cluster, "web", &json!({ "trafficDistribution": null })).await?;
    until_hints(cluster, "web", &["10.1.0.1", "10.1.0.2"]).await?;
    remove_node(cluster, &a).await?;
    remove_node(cluster, &b).await
}

/// More pods than an Endpoints object holds: slices of a hundred have them all, and the object says that it does not.
pub(crate) async fn more_than_a_thousand_pods_fill_slices_and_overflow_endpoints(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    const PODS: usize = 1050;
    let node = add_node(cluster, "a", None).await?;
    let ip = |number: usize| format!("10.1.{}.{}", number / 250, number % 250 + 1);
    let pods = (0..PODS).map(|number| {
        let node = &node;
        async move { run_pod(cluster, &format!("pod-{number:04}"), node, &ip(number)).await }
    });
    stream::iter(pods).buffer_unordered(AT_ONCE).try_collect::<()>().await?;
    cluster.create(service("web", json!({}))).await?;
    let lengths = |slices: &[EndpointSlice]| {
        let mut lengths: Vec<_> = slices.iter().map(size).collect();
        lengths.sort_unstable();
        lengths
    };
    let full = [&[50][..], &[100; 10]].concat();
    cluster
        .until_eq(
            "ten full slices and a half one",
            || async {
                let got = lengths(&slices_of(cluster, "web").await?);
                Ok(got)
            },
            full,
        )
        .await?;
    let count = |endpoints: &Endpoints| {
        let subsets = endpoints.subsets.iter().flatten();
        subsets.map(|subset| subset.addresses.as_ref().map_or(0, Vec::len)).sum::<usize>()
    };
    let over = |endpoints: &Endpoints| {
        let annotations = endpoints.metadata.annotations.as_ref();
        annotations.and_then(|held| held.get("endpoints.kubernetes.io/over-capacity").cloned())
    };
    until_of(cluster, "web", |endpoints| (count(endpoints), over(endpoints)), (1000, Some("truncated".to_owned())))
        .await?;

    let victims = (0..60).map(|number| async move { kill_pod(cluster, &format!("pod-{number:04}")).await });
    stream::iter(victims).buffer_unordered(AT_ONCE).try_collect::<()>().await?;
    until_of(cluster, "web", |endpoints| (count(endpoints), over(endpoints)), (990, None)).await?;
    let sizes = async || Ok(lengths(&slices_of(cluster, "web").await?));
    let is_rest = |sizes: &Vec<usize>| sizes.iter().sum::<usize>() == PODS - 60;
    cluster.until_right("the others are still in their slices", sizes, is_rest).await?;
    remove_node(cluster, &node).await
}

/// What others do to our slices and endpoints is undone.
pub(crate) async fn changes_of_others_to_slices_and_endpoints_are_undone(cluster: &TestCluster) -> Result<(), Failure> {
    let node = add_node(cluster, "a", None).await?;
    cluster.create(service("web", json!({}))).await?;
    run_pod(cluster, "one", &node, "10.1.0.1").await?;
    let slice = until_slices(cluster, "web", &["10.1.0.1 ready"]).await?.remove(0);
    let name = slice.metadata.name.clone().unwrap_or_default();
    let wrong = json!({ "endpoints": [{ "addresses": ["10.9.9.9"] }], "metadata": { "labels": { "odd": "yes" } } });
    cluster.api::<EndpointSlice>().patch(&name, &PatchParams::default(), &Patch::Merge(&wrong)).await?;
    let mended = until_slices(cluster, "web", &["10.1.0.1 ready"]).await?.remove(0);
    expect(mended.metadata.labels == slice.metadata.labels, "the labels are ours again", &mended.metadata)?;
    cluster.delete::<EndpointSlice>(&name).await?;
    let made = until_slices(cluster, "web", &["10.1.0.1 ready"]).await?.remove(0);
    expect(made.metadata.uid != slice.metadata.uid, "it is another one", &made.metadata)?;
    let label = json!({ "metadata": { "labels": { "odd": "yes" } } });
    let name = made.metadata.name.clone().unwrap_or_default();
    cluster.api::<EndpointSlice>().patch(&name, &PatchParams::default(), &Patch::Merge(&label)).await?;
    let labels = async || Ok(cluster.api::<EndpointSlice>().get(&name).await?.metadata.labels.unwrap_or_default());
    cluster.until_right("a label alone is removed, too", labels, |labels| !labels.contains_key("odd")).await?;
    let before = cluster.until_exists::<Endpoints>("web").await?;
    cluster.delete::<Endpoints>("web").await?;
    let now = async || Ok(cluster.api::<Endpoints>().get_opt("web").await?);
    let is_another = |now: &Option<Endpoints>| now.as_ref().is_some_and(|it| it.metadata.uid != before.metadata.uid);
    cluster.until_right("the endpoints are there again", now, is_another).await?;
    remove_node(cluster, &node).await
}

/// A pod whose node nobody knows is left out, and is reported; when the node comes, so does the endpoint.
pub(crate) async fn a_pod_on_an_unknown_node_becomes_an_endpoint_when_the_node_comes(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    let late = format!("{}-late", cluster.namespace());
    cluster.create(service("web", json!({}))).await?;
    run_pod(cluster, "one", &late, "10.1.0.1").await?;
    until_endpoints(cluster, "web", &["10.1.0.1 ready"]).await?;
    let namespace = cluster.namespace();
    let text = format!(
        "Error updating Endpoint Slices for Service {namespace}/web: skipping Pod one for Service {namespace}/web: \
         Node {late} Not Found"
    );
    until_event(cluster, "web", "FailedToUpdateEndpointSlices", &text).await?;
    until_slices(cluster, "web", &[]).await?;
    add_node(cluster, "late", Some("zone-a")).await?;
    until_slices(cluster, "web", &["10.1.0.1 ready"]).await?;
    remove_node(cluster, &late).await
}

/// With its service, an Endpoints object goes; slices are the garbage collector's business.
pub(crate) async fn endpoints_are_deleted_with_their_service(cluster: &TestCluster) -> Result<(), Failure> {
    cluster.create(service("web", json!({}))).await?;
    until_endpoints(cluster, "web", &[]).await?;
    cluster.delete::<Service>("web").await?;
    cluster.until_gone::<Endpoints>("web").await
}

/// Hints of the mode `Auto` come when there are enough endpoints for all zones, follow the zones, and go with the mode;
/// events report it.
pub(crate) async fn topology_hints_come_and_go_with_an_event(cluster: &TestCluster) -> Result<(), Failure> {
    let a = add_node(cluster, "a", Some("zone-a")).await?;
    let b = add_node(cluster, "b", Some("zone-b")).await?;
    let auto = json!({ "metadata": { "annotations": { "service.kubernetes.io/topology-mode": "Auto" } } });
    cluster.create(service("web", auto)).await?;
    run_pod(cluster, "one", &a, "10.1.0.1").await?;
    let few = "Insufficient number of endpoints (1 endpoints, 2 zones), addressType: IPv4";
    until_event(cluster, "web", "TopologyAwareHintsDisabled", few).await?;
    until_hints(cluster, "web", &["10.1.0.1"]).await?;

    run_pod(cluster, "two", &a, "10.1.0.2").await?;
    until_hints(cluster, "web", &["10.1.0.1 for zone-b", "10.1.0.2 for zone-a"]).await?;
    let enabled = "Topology Aware Hints has been enabled, addressType: IPv4";
    until_event(cluster, "web", "TopologyAwareHintsEnabled", enabled).await?;
    for (name, ip) in [("three", "10.1.0.3"), ("four", "10.1.0.4"), ("five", "10.1.0.5"), ("six", "10.1.0.6")] {
        run_pod(cluster, name, &b, ip).await?;
    }
    cluster.settle().await?;

    // A third zone has no endpoints at all: the service is looked at, and gives it some of the others.
    let c = add_node(cluster, "c", Some("zone-c")).await?;
    cluster.settle().await?;
    let slices = slices_of(cluster, "web").await?;
    let zones = all(&slices).filter_map(|endpoint| endpoint.hints.clone());
    let zones: Vec<_> = zones.flat_map(|hints| hints.for_zones.unwrap_or_default()).map(|zone| zone.name).collect();
    expect(zones.contains(&"zone-c".to_owned()), "somebody is for the third zone", &zones)?;

    let off = json!({ "metadata": { "annotations": { "service.kubernetes.io/topology-mode": null } } });
    cluster.api::<Service>().patch("web", &PatchParams::default(), &Patch::Merge(&off)).await?;
    until_hints(cluster, "web", &["10.1.0.1", "10.1.0.2", "10.1.0.3", "10.1.0.4", "10.1.0.5", "10.1.0.6"]).await?;
    let disabled = "Topology Aware Hints has been disabled, addressType: IPv4";
    until_event(cluster, "web", "TopologyAwareHintsDisabled", disabled).await?;
    for node in [a, b, c] {
        remove_node(cluster, &node).await?;
    }
    Ok(())
}

/// A pod with addresses of both families has endpoints in slices of both; a service of one family has one.
pub(crate) async fn a_pod_with_addresses_of_two_families_has_endpoints_in_both(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    let node = add_node(cluster, "a", None).await?;
    bind_pod(cluster, "one", &node).await?;
    say_running(cluster, "one", &["10.1.0.1", "fd00::1"], true).await?;
    run_pod(cluster, "two", &node, "10.1.0.2").await?;
    cluster.create(service("web", json!({ "spec": { "ipFamilyPolicy": "RequireDualStack" } }))).await?;
    let slices = until_slices(cluster, "web", &["10.1.0.1 ready", "10.1.0.2 ready", "fd00::1 ready"]).await?;
    let mut types: Vec<_> = slices.iter().map(|slice| (slice.address_type.clone(), size(slice))).collect();
    types.sort();
    expect(types == [("IPv4".to_owned(), 2), ("IPv6".to_owned(), 1)], "a slice for each family", &types)?;
    until_endpoints(cluster, "web", &["10.1.0.1 ready", "10.1.0.2 ready"]).await?;

    set_spec(cluster, "web", &json!({ "ipFamilyPolicy": "SingleStack" })).await?;
    until_slices(cluster, "web", &["10.1.0.1 ready", "10.1.0.2 ready"]).await?;
    cluster.settle().await?;
    let slices = slices_of(cluster, "web").await?;
    expect(slices.len() == 1, "the slice of the other family is gone", &slices)?;
    remove_node(cluster, &node).await
}
