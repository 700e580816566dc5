//! Ranges of Service addresses are ready, and stay while addresses depend on them.
//!
//! Each scenario is alone on the rig: Services of others would get addresses of these ranges.

use std::time::Duration;

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::networking::v1::{IPAddress, ServiceCIDR};
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::json;
use steersman_testing::{Builder, Failure, TestCluster, expect, expect_eq};

use crate::scenarios::support::controllers;

scenarios! {
    a_range_is_ready_and_goes_ten_seconds_after_its_deletion on cluster alone,
    a_range_stays_while_a_service_has_an_address_of_it on cluster alone,
    two_terminating_ranges_do_not_release_each_other on cluster alone,
}

const FINALIZER: &str = "networking.k8s.io/service-cidr-finalizer";
const BLOCKED: &str =
    "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR";

pub(crate) fn cluster() -> Builder {
    TestCluster::builder().controllers(&[controllers::SERVICE_CIDR])
}

/// The default range and a new one are ready and protected; addresses come from the new one; without any, it goes.
pub(crate) async fn a_range_is_ready_and_goes_ten_seconds_after_its_deletion(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    create_range(cluster, "more", "10.250.0.0/24").await?;
    for name in ["kubernetes", "more"] {
        cluster.until_eq("it is ready", || ready(cluster, name), is_ready()).await?;
        let finalizers = ranges(cluster).get(name).await?.metadata.finalizers.unwrap_or_default();
        expect_eq("its finalizers", &finalizers, &vec![FINALIZER.to_owned()])?;
    }
    ranges(cluster).delete("more", &DeleteParams::default()).await?;
    cluster.advance(Duration::from_secs(5)).await;
    let held = ranges(cluster).get("more").await?;
    expect(held.metadata.deletion_timestamp.is_some(), "API servers may still allocate from it", &held.metadata)?;
    until_gone(cluster, "more").await
}

/// An address of a Service keeps its range. The Service goes, then the address, then the range.
pub(crate) async fn a_range_stays_while_a_service_has_an_address_of_it(cluster: &TestCluster) -> Result<(), Failure> {
    create_range(cluster, "more", "10.250.0.0/24").await?;
    cluster.until_eq("it is ready", || ready(cluster, "more"), is_ready()).await?;
    create_service(cluster, "web", "10.250.0.9").await?;
    let addresses: Api<IPAddress> = Api::all(cluster.client());
    let address = addresses.get("10.250.0.9").await?;
    let parent = serde_json::to_value(address.spec.parent_ref).unwrap_or_default();
    let want = json!({ "resource": "services", "namespace": cluster.namespace(), "name": "web" });
    expect_eq("the parent of the address", &parent, &want)?;
    ranges(cluster).delete("more", &DeleteParams::default()).await?;
    cluster.until_eq("it says why it stays", || ready(cluster, "more"), is_blocked()).await?;
    // Longer than what allocators need to learn of the deletion.
    cluster.advance(Duration::from_secs(15)).await;
    ranges(cluster).get("more").await?;
    cluster.delete::<Service>("web").await?;
    let exists = async || Ok(addresses.get_opt("10.250.0.9").await?.is_some());
    cluster.until_eq("the address goes with its Service", exists, false).await?;
    until_gone(cluster, "more").await
}

/// Both cover the same address, and both are deleted: one that stays releases them.
pub(crate) async fn two_terminating_ranges_do_not_release_each_other(cluster: &TestCluster) -> Result<(), Failure> {
    for name in ["one", "other"] {
        create_range(cluster, name, "10.250.0.0/24").await?;
        cluster.until_eq("it is ready", || ready(cluster, name), is_ready()).await?;
    }
    create_service(cluster, "web", "10.250.0.9").await?;
    for name in ["one", "other"] {
        ranges(cluster).delete(name, &DeleteParams::default()).await?;
    }
    for name in ["one", "other"] {
        cluster.until_eq("it says why it stays", || ready(cluster, name), is_blocked()).await?;
    }
    cluster.advance(Duration::from_secs(12)).await;
    for name in ["one", "other"] {
        ranges(cluster).get(name).await?;
    }
    create_range(cluster, "larger", "10.250.0.0/16").await?;
    for name in ["one", "other"] {
        until_gone(cluster, name).await?;
    }
    cluster.delete::<Service>("web").await?;
    ranges(cluster).delete("larger", &DeleteParams::default()).await?;
    until_gone(cluster, "larger").await
}

/// Status, reason and message of the condition `Ready`.
pub(crate) type Ready = Option<(String, String, String)>;

pub(crate) fn is_ready() -> Ready {
    Some(("True".into(), String::new(), "Kubernetes Service CIDR is ready".into()))
}

pub(crate) fn is_blocked() -> Ready {
    Some(("False".into(), "Terminating".into(), BLOCKED.into()))
}

pub(crate) async fn ready(cluster: &TestCluster, name: &str) -> Result<Ready, Failure> {
    let status = ranges(cluster).get(name).await?.status.unwrap_or_default();
    let mut conditions = status.conditions.unwrap_or_default().into_iter();
    let ready = conditions.find(|condition| condition.type_ == "Ready");
    Ok(ready.map(|ready| (ready.status, ready.reason, ready.message)))
}

pub(crate) fn ranges(cluster: &TestCluster) -> Api<ServiceCIDR> {
    Api::all(cluster.client())
}

pub(crate) async fn create_range(cluster: &TestCluster, name: &str, range: &str) -> Result<(), Failure> {
    let object = json!({ "metadata": { "name": name }, "spec": { "cidrs": [range] } });
    let object = serde_json::from_value(object).map_err(Failure::new)?;
    ranges(cluster).create(&PostParams::default(), &object).await?;
    Ok(())
}

/// Creates a Service with this address. The allocator of a real server learns of a range a moment after it is ready.
pub(crate) async fn create_service(cluster: &TestCluster, name: &str, address: &str) -> Result<(), Failure> {
    let object = json!({
        "metadata": { "name": name }, "spec": { "clusterIP": address, "ports": [{ "port": 80 }] },
    });
    let service: Service = serde_json::from_value(object).map_err(Failure::new)?;
    let created = async || {
        let created = cluster.api::<Service>().create(&PostParams::default(), &service).await;
        Ok(created.map(drop).map_err(|error| error.to_string()))
    };
    cluster.until("the Service has its address", created).await
}

async fn until_gone(cluster: &TestCluster, name: &str) -> Result<(), Failure> {
    let exists = async || Ok(ranges(cluster).get_opt(name).await?.is_some());
    cluster.until_eq("the range goes", exists, false).await
}
