//! Endpoints that somebody writes, as slices.

use k8s_openapi::api::core::v1::{Endpoints, Event, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use steersman_testing::{Builder, Failure, TestCluster, expect_eq};

use crate::scenarios::support::controllers::{self, Controller};

scenarios! {
    endpoints_of_a_service_without_a_selector_are_mirrored on cluster,
    endpoints_that_are_not_to_be_mirrored_are_not on cluster,
    more_addresses_than_fit_are_left_out_and_reported on cluster,
}

pub(crate) const CONTROLLERS: &[Controller] = &[controllers::ENDPOINT_SLICE_MIRRORING];

pub(crate) fn cluster() -> Builder {
    TestCluster::builder().controllers(CONTROLLERS)
}

/// Slices follow the Endpoints: addresses, ports, labels; and go with them.
pub(crate) async fn endpoints_of_a_service_without_a_selector_are_mirrored(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    cluster.create(service()).await?;
    cluster.create(endpoints(json!([subset(&["192.0.2.1", "192.0.2.2"], 80)]))).await?;
    until_slices(cluster, &["IPv4 80 192.0.2.1 192.0.2.2"]).await?;
    set_subsets(cluster, json!([subset(&["192.0.2.2", "2001:db8::2"], 80)])).await?;
    until_slices(cluster, &["IPv4 80 192.0.2.2", "IPv6 80 2001:db8::2"]).await?;
    set_subsets(cluster, json!([subset(&["192.0.2.2"], 90)])).await?;
    until_slices(cluster, &["IPv4 90 192.0.2.2"]).await?;
    let patch = Patch::Merge(json!({ "metadata": { "labels": { "tier": "data" } } }));
    cluster.api::<Endpoints>().patch("db", &PatchParams::default(), &patch).await?;
    let labels = async || {
        let slices = cluster.api::<EndpointSlice>().list(&ListParams::default()).await?.items;
        let labels = slices.into_iter().filter_map(|slice| slice.metadata.labels?.remove("tier"));
        Ok(labels.collect::<Vec<_>>())
    };
    cluster.until_eq("the slice has the label", labels, ["data"]).await?;
    cluster.delete::<Endpoints>("db").await?;
    until_slices(cluster, &[]).await
}

/// Slices that mirrored them go.
pub(crate) async fn endpoints_that_are_not_to_be_mirrored_are_not(cluster: &TestCluster) -> Result<(), Failure> {
    cluster.create(endpoints(json!([subset(&["192.0.2.1"], 80)]))).await?;
    cluster.settle().await?;
    until_slices(cluster, &[]).await?;
    cluster.create(service()).await?;
    until_slices(cluster, &["IPv4 80 192.0.2.1"]).await?;
    let skip = async |value: Value| {
        let patch = json!({ "metadata": { "labels": { "endpointslice.kubernetes.io/skip-mirror": value } } });
        cluster.api::<Endpoints>().patch("db", &PatchParams::default(), &Patch::Merge(patch)).await
    };
    skip(json!("true")).await?;
    until_slices(cluster, &[]).await?;
    skip(json!(null)).await?;
    until_slices(cluster, &["IPv4 80 192.0.2.1"]).await?;
    let patch = Patch::Merge(json!({ "spec": { "selector": { "app": "db" } } }));
    cluster.api::<Service>().patch("db", &PatchParams::default(), &patch).await?;
    until_slices(cluster, &[]).await?;
    cluster.delete::<Endpoints>("db").await
}

/// Only so many addresses of a subset are mirrored.
pub(crate) async fn more_addresses_than_fit_are_left_out_and_reported(cluster: &TestCluster) -> Result<(), Failure> {
    cluster.create(service()).await?;
    let many: Vec<String> = (0..1001).map(|at| format!("10.0.{}.{}", at / 250, at % 250 + 1)).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    cluster.create(endpoints(json!([subset(&many, 80)]))).await?;
    let count = async || {
        let slices = cluster.api::<EndpointSlice>().list(&ListParams::default()).await?.items;
        Ok(slices.into_iter().map(|slice| slice.endpoints.unwrap_or_default().len()).collect::<Vec<_>>())
    };
    cluster.until_eq("as many as fit", count, [1000]).await?;
    let notes = async || {
        let events = cluster.api::<Event>().list(&ListParams::default()).await?.items.into_iter();
        let of_reason = events.filter(|event| event.reason.as_deref() == Some("TooManyAddressesToMirror"));
        Ok(of_reason.filter_map(|event| event.message).next())
    };
    let want =
        "A max of 1000 addresses can be mirrored to EndpointSlices per Endpoints subset. 1 addresses were skipped";
    cluster.until_eq("the warning", notes, Some(want.to_owned())).await?;
    cluster.delete::<Endpoints>("db").await?;
    until_slices(cluster, &[]).await?;
    let held = cluster.api::<Service>().get_opt("db").await?.is_some();
    expect_eq("the service stays", &held, &true)
}

pub(crate) fn service() -> Service {
    let service = json!({ "metadata": { "name": "db" }, "spec": { "ports": [{ "port": 80 }] } });
    serde_json::from_value(service).expect("it is a service")
}

#[allow(clippy::needless_pass_by_value, reason = "`json!` makes values")]
pub(crate) fn endpoints(subsets: Value) -> Endpoints {
    serde_json::from_value(json!({ "metadata": { "name": "db" }, "subsets": subsets })).expect("it is endpoints")
}

pub(crate) fn subset(ips: &[&str], port: i32) -> Value {
    let addresses: Vec<_> = ips.iter().map(|ip| json!({ "ip": ip })).collect();
    json!({ "addresses": addresses, "ports": [{ "port": port }] })
}

#[allow(clippy::needless_pass_by_value, reason = "`json!` makes values")]
pub(crate) async fn set_subsets(cluster: &TestCluster, subsets: Value) -> Result<(), Failure> {
    let patch = Patch::Merge(json!({ "subsets": subsets }));
    cluster.api::<Endpoints>().patch("db", &PatchParams::default(), &patch).await?;
    Ok(())
}

pub(crate) async fn until_slices(cluster: &TestCluster, want: &[&str]) -> Result<(), Failure> {
    let slices = async || {
        let slices = cluster.api::<EndpointSlice>().list(&ListParams::default()).await?.items;
        let mut shapes: Vec<String> = slices.iter().map(shape).collect();
        shapes.sort();
        Ok(shapes)
    };
    let want: Vec<String> = want.iter().map(ToString::to_string).collect();
    cluster.until_eq("the slices", slices, want).await
}

fn shape(slice: &EndpointSlice) -> String {
    let ports: Vec<String> =
        slice.ports.iter().flatten().filter_map(|port| port.port).map(|port| port.to_string()).collect();
    let mut addresses: Vec<&str> =
        slice.endpoints.iter().flatten().flat_map(|endpoint| &endpoint.addresses).map(String::as_str).collect();
    addresses.sort_unstable();
    format!("{} {} {}", slice.address_type, ports.join(","), addresses.join(" "))
}
