//! Claims of devices: made for pods, reserved, and released.

use k8s_openapi::api::core::v1::{Event, Pod};
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceClaimTemplate};
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use steersman_testing::nodes::DevicesOptions;
use steersman_testing::objects::{self, ObjectBuilder as _, PodBuilder as _};
use steersman_testing::{Builder, Failure, NodesOptions, TestCluster, expect, expect_eq};

use crate::scenarios::protection::end;
use crate::scenarios::support::controllers::{self, Controller};

scenarios! {
    a_pod_gets_the_claim_of_its_template_and_gets_it_back on cluster,
    a_pod_without_its_template_waits_for_it on cluster,
    a_claim_is_released_when_its_pod_is_gone on cluster,
    a_claim_that_is_shared_stays_reserved_for_the_others on cluster,
    a_scheduled_pod_gets_its_reservation on cluster,
    the_claim_of_extended_resources_goes_when_the_pod_has_ended on cluster,
    pods_with_claims_run_when_a_device_is_free on with_devices alone,
}

pub(crate) const CONTROLLERS: &[Controller] = &[controllers::RESOURCE_CLAIM];

/// The finalizer of a claim that a scheduler has allocated.
pub(crate) const FINALIZER: &str = "resource.kubernetes.io/delete-protection";
const ANNOTATION: &str = "resource.kubernetes.io/pod-claim-name";

pub(crate) fn cluster() -> Builder {
    TestCluster::builder().controllers(CONTROLLERS)
}

/// Nodes with a driver that has one device.
pub(crate) fn with_devices() -> Builder {
    let devices = Some(DevicesOptions::default().count(1));
    cluster().nodes_with(NodesOptions::count(2).devices(devices))
}

/// The claim has what the template says and is the pod's; one that is deleted is made again, and the last one goes when the
/// pod has ended.
pub(crate) async fn a_pod_gets_the_claim_of_its_template_and_gets_it_back(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    cluster.create(template("gpus")).await?;
    let pod = cluster.create(pod_with_template("web", "gpus")).await?;
    let name = until_claimed(cluster, "web", None).await?;
    expect(name.starts_with("web-gpu-"), "its name", &name)?;
    let claim = cluster.api::<ResourceClaim>().get(&name).await?;
    let owner = claim.metadata.owner_references.unwrap_or_default();
    expect_eq("its owner", &owner.first().map(|owner| owner.uid.clone()), &pod.metadata.uid)?;
    expect_eq("its annotation", &claim.metadata.annotations.unwrap_or_default()[ANNOTATION], &"gpu".to_owned())?;
    expect_eq("its label", &claim.metadata.labels.unwrap_or_default()["of"], &"template".to_owned())?;
    let devices = claim.spec.and_then(|spec| spec.devices).unwrap_or_default();
    let requests = devices.requests.unwrap_or_default();
    expect_eq("its requests", &requests.len(), &1)?;

    cluster.delete::<ResourceClaim>(&name).await?;
    let second = until_claimed(cluster, "web", Some(&name)).await?;
    expect_eq("there is one claim", &claims(cluster).await?, &vec![second.clone()])?;

    set_phase(cluster, "web", "Succeeded").await?;
    cluster.until_gone::<ResourceClaim>(&second).await?;
    cluster.settle().await?;
    expect_eq("a pod that has ended gets no other", &claims(cluster).await?, &Vec::new())?;
    end(cluster, "web").await
}

/// The pod gets a warning in upstream's words, and its claim when the template comes.
pub(crate) async fn a_pod_without_its_template_waits_for_it(cluster: &TestCluster) -> Result<(), Failure> {
    cluster.create(pod_with_template("web", "gpus")).await?;
    let want = "PodResourceClaim gpu: resource claim template \"gpus\": resourceclaimtemplate.resource.k8s.io \"gpus\" not found";
    let notes = async || {
        let events = cluster.api::<Event>().list(&ListParams::default()).await?.items.into_iter();
        let mut failed = events.filter(|event| event.reason.as_deref() == Some("FailedResourceClaimCreation"));
        Ok(failed.find_map(|event| event.message))
    };
    cluster.until_eq("the pod gets a warning", notes, Some(want.to_owned())).await?;
    cluster.create(template("gpus")).await?;
    until_claimed(cluster, "web", None).await?;
    end(cluster, "web").await?;
    remove_claims(cluster).await
}

/// With the last user go the reservation, the allocation and the finalizer, of a claim that a user has created.
pub(crate) async fn a_claim_is_released_when_its_pod_is_gone(cluster: &TestCluster) -> Result<(), Failure> {
    cluster.create(claim("shared").finalizer(FINALIZER)).await?;
    let pod = cluster.create(pod_with_claim("web", "shared").on_node("somewhere")).await?;
    allocate(cluster, "shared", &[&pod]).await?;
    cluster.settle().await?;
    expect_eq(
        "it is reserved",
        &state(cluster, "shared").await?,
        &State { users: 1, is_allocated: true, is_held: true },
    )?;
    end(cluster, "web").await?;
    let look = async || state(cluster, "shared").await;
    let released = State { users: 0, is_allocated: false, is_held: false };
    cluster.until_eq("it is released", look, released).await?;
    cluster.delete::<ResourceClaim>("shared").await?;
    cluster.until_gone::<ResourceClaim>("shared").await
}

/// Two pods use a claim; one of them ends, and the claim is deleted: it goes with the other.
pub(crate) async fn a_claim_that_is_shared_stays_reserved_for_the_others(cluster: &TestCluster) -> Result<(), Failure> {
    cluster.create(claim("shared").finalizer(FINALIZER)).await?;
    let one = cluster.create(pod_with_claim("one", "shared").on_node("somewhere")).await?;
    let two = cluster.create(pod_with_claim("two", "shared").on_node("somewhere")).await?;
    allocate(cluster, "shared", &[&one, &two]).await?;
    set_phase(cluster, "one", "Failed").await?;
    let look = async || state(cluster, "shared").await;
    let left = State { users: 1, is_allocated: true, is_held: true };
    cluster.until_eq("one is left", look, left).await?;
    cluster.delete::<ResourceClaim>("shared").await?;
    cluster.settle().await?;
    expect_eq("it is kept", &state(cluster, "shared").await?, &State { users: 1, is_allocated: true, is_held: true })?;
    end(cluster, "two").await?;
    cluster.until_gone::<ResourceClaim>("shared").await?;
    end(cluster, "one").await
}

/// A pod that was bound by hand uses a claim that is allocated: it is reserved for the pod.
pub(crate) async fn a_scheduled_pod_gets_its_reservation(cluster: &TestCluster) -> Result<(), Failure> {
    cluster.create(claim("shared").finalizer(FINALIZER)).await?;
    allocate(cluster, "shared", &[]).await?;
    let pod = cluster.create(pod_with_claim("web", "shared").on_node("somewhere")).await?;
    let users = async || {
        let claim = cluster.api::<ResourceClaim>().get("shared").await?;
        let users = claim.status.and_then(|status| status.reserved_for).unwrap_or_default();
        Ok(users.into_iter().map(|user| (user.resource, user.name, user.uid)).collect::<Vec<_>>())
    };
    let want = vec![("pods".to_owned(), "web".to_owned(), pod.metadata.uid.unwrap_or_default())];
    cluster.until_eq("it is reserved", users, want).await?;
    end(cluster, "web").await?;
    let look = async || Ok(state(cluster, "shared").await?.users);
    cluster.until_eq("it is released", look, 0).await?;
    cluster.delete::<ResourceClaim>("shared").await?;
    cluster.until_gone::<ResourceClaim>("shared").await
}

/// A scheduler has made a claim for the extended resources of a pod.
pub(crate) async fn the_claim_of_extended_resources_goes_when_the_pod_has_ended(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    let resources = json!({ "requests": { "example.com/gpu": "1" }, "limits": { "example.com/gpu": "1" } });
    let container = json!({ "name": "main", "image": objects::IMAGE, "resources": resources });
    let pod = objects::pod("web").with(json!({ "spec": { "containers": [container] } }));
    let pod = cluster.create(pod.on_node("somewhere")).await?;
    let of_pod = claim("web-extended").owned_by(&pod).finalizer(FINALIZER);
    cluster.create(of_pod.annotation("resource.kubernetes.io/extended-resource-claim", "true")).await?;
    allocate(cluster, "web-extended", &[&pod]).await?;
    let mapping = json!({ "containerName": "main", "resourceName": "example.com/gpu", "requestName": "gpu" });
    let status = json!({ "extendedResourceClaimStatus": {
        "resourceClaimName": "web-extended", "requestMappings": [mapping],
    } });
    patch_status::<Pod>(cluster, "web", &json!({ "status": status })).await?;
    cluster.settle().await?;
    cluster.api::<ResourceClaim>().get("web-extended").await?;
    set_phase(cluster, "web", "Succeeded").await?;
    cluster.until_gone::<ResourceClaim>("web-extended").await?;
    end(cluster, "web").await
}

/// Two pods want the only device: the second one waits, and runs when the first is gone.
pub(crate) async fn pods_with_claims_run_when_a_device_is_free(cluster: &TestCluster) -> Result<(), Failure> {
    let request = json!({ "name": "gpu", "exactly": { "deviceClassName": "simulated.steersman.dev" } });
    let spec = json!({ "spec": { "spec": { "devices": { "requests": [request] } } } });
    cluster.create(template("simulated").with(spec)).await?;
    cluster.create(pod_with_template("one", "simulated")).await?;
    let phase = async |name: &str| {
        let pod = cluster.api::<Pod>().get(name).await?;
        Ok(pod.status.and_then(|status| status.phase))
    };
    cluster.until_eq("it runs", async || phase("one").await, Some("Running".to_owned())).await?;
    let claim = until_claimed(cluster, "one", None).await?;
    let reserved = State { users: 1, is_allocated: true, is_held: true };
    expect_eq("its claim", &state(cluster, &claim).await?, &reserved)?;

    cluster.create(pod_with_template("two", "simulated")).await?;
    let message = async || {
        let pod = cluster.api::<Pod>().get("two").await?;
        let conditions = pod.status.and_then(|status| status.conditions).unwrap_or_default();
        let scheduled = conditions.into_iter().find(|condition| condition.type_ == "PodScheduled");
        Ok(scheduled.and_then(|scheduled| scheduled.message))
    };
    cluster.until_eq("the other waits", message, Some("cannot allocate all claims".to_owned())).await?;
    cluster.delete::<Pod>("one").await?;
    cluster.until_eq("it runs, too", async || phase("two").await, Some("Running".to_owned())).await?;
    end(cluster, "two").await?;
    remove_claims(cluster).await
}

/// What is looked at of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) users: usize,
    pub(crate) is_allocated: bool,
    pub(crate) is_held: bool,
}

pub(crate) async fn state(cluster: &TestCluster, name: &str) -> Result<State, Failure> {
    let claim = cluster.api::<ResourceClaim>().get(name).await?;
    let status = claim.status.unwrap_or_default();
    Ok(State {
        users: status.reserved_for.unwrap_or_default().len(),
        is_allocated: status.allocation.is_some(),
        is_held: claim.metadata.finalizers.unwrap_or_default().iter().any(|held| held == FINALIZER),
    })
}

/// The names of the claims, in order.
pub(crate) async fn claims(cluster: &TestCluster) -> Result<Vec<String>, Failure> {
    let claims = cluster.api::<ResourceClaim>().list(&ListParams::default()).await?.items.into_iter();
    Ok(claims.filter_map(|claim| claim.metadata.name).collect())
}

/// Waits until the status of a pod names a claim other than this, and answers it.
pub(crate) async fn until_claimed(cluster: &TestCluster, pod: &str, other: Option<&str>) -> Result<String, Failure> {
    let look = async || {
        let pod = cluster.api::<Pod>().get(pod).await?;
        let statuses = pod.status.and_then(|status| status.resource_claim_statuses).unwrap_or_default();
        let named = statuses.into_iter().next().and_then(|status| status.resource_claim_name);
        Ok(named.filter(|name| Some(name.as_str()) != other).ok_or_else(|| "it does not".to_owned()))
    };
    cluster.until("the pod's status names its claim", look).await
}

/// What the garbage collector would do.
pub(crate) async fn remove_claims(cluster: &TestCluster) -> Result<(), Failure> {
    for claim in claims(cluster).await? {
        cluster.delete::<ResourceClaim>(&claim).await?;
        cluster.until_gone::<ResourceClaim>(&claim).await?;
    }
    Ok(())
}

/// Allocates a claim and reserves it for pods, as a scheduler does.
pub(crate) async fn allocate(cluster: &TestCluster, claim: &str, pods: &[&Pod]) -> Result<(), Failure> {
    let result = json!({ "request": "gpu", "driver": "gpu.example.com", "pool": "node", "device": "gpu-0" });
    allocate_device(cluster, claim, &result, pods).await
}

/// As [`allocate`], a device of one's own.
pub(crate) async fn allocate_device(
    cluster: &TestCluster,
    claim: &str,
    result: &Value,
    pods: &[&Pod],
) -> Result<(), Failure> {
    let user = |pod: &&Pod| json!({ "resource": "pods", "name": pod.metadata.name, "uid": pod.metadata.uid });
    let users: Vec<_> = pods.iter().map(user).collect();
    let status = json!({ "allocation": { "devices": { "results": [result] } }, "reservedFor": users });
    patch_status::<ResourceClaim>(cluster, claim, &json!({ "status": status })).await
}

pub(crate) async fn set_phase(cluster: &TestCluster, pod: &str, phase: &str) -> Result<(), Failure> {
    patch_status::<Pod>(cluster, pod, &json!({ "status": { "phase": phase } })).await
}

async fn patch_status<K>(cluster: &TestCluster, name: &str, patch: &Value) -> Result<(), Failure>
where
    K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>
        + serde::de::DeserializeOwned
        + Clone
        + std::fmt::Debug,
{
    cluster.api::<K>().patch_status(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}

pub(crate) fn template(name: &str) -> ResourceClaimTemplate {
    let metadata = objects::named(name);
    let template = json!({ "metadata": { "labels": { "of": "template" } }, "spec": spec() });
    ResourceClaimTemplate { metadata, ..ResourceClaimTemplate::default() }.with(json!({ "spec": template }))
}

pub(crate) fn claim(name: &str) -> ResourceClaim {
    let metadata = objects::named(name);
    ResourceClaim { metadata, ..ResourceClaim::default() }.with(json!({ "spec": spec() }))
}

fn spec() -> Value {
    json!({ "devices": { "requests": [{ "name": "gpu", "exactly": { "deviceClassName": "gpu.example.com" } }] } })
}

pub(crate) fn pod_with_template(name: &str, template: &str) -> Pod {
    pod_with(name, &json!({ "name": "gpu", "resourceClaimTemplateName": template }))
}

pub(crate) fn pod_with_claim(name: &str, claim: &str) -> Pod {
    pod_with(name, &json!({ "name": "gpu", "resourceClaimName": claim }))
}

fn pod_with(name: &str, claim: &Value) -> Pod {
    objects::pod(name).with(json!({ "spec": { "resourceClaims": [claim] } }))
}
