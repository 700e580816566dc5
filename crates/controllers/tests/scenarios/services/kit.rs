//! What scenarios of services are made of: nodes, pods, and looks at their endpoints.

use k8s_openapi::api::core::v1::{Endpoints, Event, Node, Pod, Service};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use steersman_testing::objects::{self, ObjectBuilder as _, PodBuilder as _};
use steersman_testing::{Failure, TestCluster};

/// A service that selects `app=web`, with one port.
pub(crate) fn service(name: &str, more: Value) -> Service {
    let ports = json!([{ "name": "http", "port": 80, "targetPort": 8080 }]);
    let web = objects::service(name).with(json!({ "spec": { "selector": { objects::APP: "web" }, "ports": ports } }));
    web.with(more)
}

pub(crate) fn object<K: serde::de::DeserializeOwned>(json: Value) -> Result<K, Failure> {
    serde_json::from_value(json).map_err(|error| Failure::new(error.to_string()))
}

/// A node of the test's own that is ready; answers its name.
pub(crate) async fn add_node(cluster: &TestCluster, name: &str, zone: Option<&str>) -> Result<String, Failure> {
    let name = format!("{}-{name}", cluster.namespace());
    let labels = zone.map_or(json!({}), |zone| json!({ "topology.kubernetes.io/zone": zone }));
    let node: Node = object(json!({
        "metadata": { "name": name, "labels": labels },
        "status": { "allocatable": { "cpu": "4" }, "conditions": [{ "type": "Ready", "status": "True" }] },
    }))?;
    Api::<Node>::all(cluster.client()).create(&PostParams::default(), &node).await?;
    Ok(name)
}

pub(crate) async fn remove_node(cluster: &TestCluster, name: &str) -> Result<(), Failure> {
    Api::<Node>::all(cluster.client()).delete(name, &DeleteParams::default()).await?;
    Ok(())
}

/// A pod of `app=web` that runs, has an address and is ready.
pub(crate) async fn run_pod(cluster: &TestCluster, name: &str, node: &str, ip: &str) -> Result<(), Failure> {
    bind_pod(cluster, name, node).await?;
    say_running(cluster, name, &[ip], true).await
}

pub(crate) async fn bind_pod(cluster: &TestCluster, name: &str, node: &str) -> Result<(), Failure> {
    cluster.create(objects::pod(name).app("web").on_node(node)).await?;
    Ok(())
}

/// Says of a pod what its kubelet would.
pub(crate) async fn say_running(cluster: &TestCluster, name: &str, ips: &[&str], ready: bool) -> Result<(), Failure> {
    let all: Vec<_> = ips.iter().map(|ip| json!({ "ip": ip })).collect();
    let status = json!({ "phase": "Running", "podIP": ips[0], "podIPs": all, "conditions": [readiness(ready)] });
    patch_status(cluster, name, &json!({ "status": status })).await
}

pub(crate) async fn set_ready(cluster: &TestCluster, name: &str, ready: bool) -> Result<(), Failure> {
    patch_status(cluster, name, &json!({ "status": { "conditions": [readiness(ready)] } })).await
}

fn readiness(ready: bool) -> Value {
    let status = if ready { "True" } else { "False" };
    json!({ "type": "Ready", "status": status, "lastTransitionTime": "2026-11-15T12:00:00Z" })
}

pub(crate) async fn patch_status(cluster: &TestCluster, name: &str, patch: &Value) -> Result<(), Failure> {
    cluster.api::<Pod>().patch_status(name, &PatchParams::default(), &Patch::Strategic(patch)).await?;
    Ok(())
}

pub(crate) async fn kill_pod(cluster: &TestCluster, name: &str) -> Result<(), Failure> {
    cluster.api::<Pod>().delete(name, &DeleteParams::default().grace_period(0)).await?;
    Ok(())
}

pub(crate) async fn relabel(cluster: &TestCluster, name: &str, app: &str) -> Result<(), Failure> {
    let patch = json!({ "metadata": { "labels": { objects::APP: app } } });
    cluster.api::<Pod>().patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
    Ok(())
}

pub(crate) async fn set_spec(cluster: &TestCluster, name: &str, spec: &Value) -> Result<(), Failure> {
    let patch = json!({ "spec": spec });
    cluster.api::<Service>().patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
    Ok(())
}

pub(crate) async fn slices_of(cluster: &TestCluster, service: &str) -> Result<Vec<EndpointSlice>, Failure> {
    let ours = "endpointslice.kubernetes.io/managed-by=endpointslice-controller.k8s.io";
    let params = ListParams::default().labels(&format!("kubernetes.io/service-name={service},{ours}"));
    Ok(cluster.api::<EndpointSlice>().list(&params).await?.items)
}

/// An endpoint in words: its address, and what may be sent to it.
fn in_words(endpoint: &Endpoint) -> String {
    let conditions = endpoint.conditions.clone().unwrap_or_default();
    let ready = conditions.ready == Some(true);
    let serving = conditions.serving == Some(true);
    let mut words = endpoint.addresses.join("+");
    words += if ready { " ready" } else { " not ready" };
    match (ready, serving) {
        (false, true) => words += " serving",
        (true, false) => words += " not serving",
        _ => {}
    }
    if conditions.terminating == Some(true) {
        words += " terminating";
    }
    words
}

/// All endpoints of slices.
pub(crate) fn all(slices: &[EndpointSlice]) -> impl Iterator<Item = &Endpoint> {
    slices.iter().flat_map(|slice| slice.endpoints.iter().flatten())
}

/// How many endpoints a slice has.
pub(crate) fn size(slice: &EndpointSlice) -> usize {
    slice.endpoints.as_ref().map_or(0, Vec::len)
}

/// All endpoints of a service's slices, in words.
pub(crate) fn endpoints_in_words(slices: &[EndpointSlice]) -> Vec<String> {
    let mut words: Vec<_> = all(slices).map(in_words).collect();
    words.sort();
    words
}

/// Waits until the slices of a service have these endpoints and no others, and answers them.
pub(crate) async fn until_slices(
    cluster: &TestCluster,
    service: &str,
    want: &[&str],
) -> Result<Vec<EndpointSlice>, Failure> {
    let slices = async || slices_of(cluster, service).await;
    let is_so = |slices: &Vec<EndpointSlice>| endpoints_in_words(slices) == *want && !slices.is_empty();
    cluster.until_right(&format!("slices of {service} with {want:?}"), slices, is_so).await
}

/// Waits until the slices of a service have endpoints with these hints.
pub(crate) async fn until_hints(cluster: &TestCluster, service: &str, want: &[&str]) -> Result<(), Failure> {
    let words = |endpoint: &Endpoint| {
        let mut words = endpoint.addresses.join("+");
        let hints = endpoint.hints.clone().unwrap_or_default();
        hints.for_zones.iter().flatten().for_each(|zone| words += &format!(" for {}", zone.name));
        hints.for_nodes.iter().flatten().for_each(|node| words += &format!(" on {}", node.name));
        words
    };
    let hints = async || {
        let slices = slices_of(cluster, service).await?;
        let mut hints: Vec<_> = all(&slices).map(words).collect();
        hints.sort();
        Ok(hints)
    };
    cluster.until_eq(&format!("hints of {service}: {want:?}"), hints, want).await
}

/// All addresses of an Endpoints object, in words.
pub(crate) fn addresses_in_words(endpoints: &Endpoints) -> Vec<String> {
    let mut words = Vec::new();
    for subset in endpoints.subsets.iter().flatten() {
        words.extend(subset.addresses.iter().flatten().map(|address| format!("{} ready", address.ip)));
        words.extend(subset.not_ready_addresses.iter().flatten().map(|address| format!("{} not ready", address.ip)));
    }
    words.sort();
    words
}

/// Waits until the Endpoints of a service have these addresses and no others.
pub(crate) async fn until_endpoints(cluster: &TestCluster, service: &str, want: &[&str]) -> Result<(), Failure> {
    let want: Vec<_> = want.iter().map(|text| (*text).to_owned()).collect();
    until_of(cluster, service, addresses_in_words, want).await
}

pub(crate) async fn until_of<T: PartialEq + std::fmt::Debug>(
    cluster: &TestCluster,
    name: &str,
    look: impl Fn(&Endpoints) -> T,
    want: T,
) -> Result<(), Failure> {
    let seen = async || Ok(cluster.api::<Endpoints>().get_opt(name).await?.map(|endpoints| look(&endpoints)));
    cluster.until_eq(&format!("endpoints {name} with {want:?}"), seen, Some(want)).await
}

/// Waits until an event says this about a service.
pub(crate) async fn until_event(cluster: &TestCluster, name: &str, reason: &str, text: &str) -> Result<(), Failure> {
    let about = ListParams::default().fields(&format!("involvedObject.name={name}"));
    let events = async || {
        let events = cluster.api::<Event>().list(&about).await?.items.into_iter();
        Ok(events.map(|event| (event.reason, event.message)).collect::<Vec<_>>())
    };
    let reported = (Some(reason.to_owned()), Some(text.to_owned()));
    cluster.until_right(&format!("event {reason}: {text}"), events, |events| events.contains(&reported)).await.map(drop)
}
