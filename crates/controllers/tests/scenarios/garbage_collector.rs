//! What the garbage collector promises.

use std::collections::BTreeSet;
use std::fmt::Debug;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, ReplicationController};
use k8s_openapi::api::rbac::v1::ClusterRole;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use serde_json::json;
use steersman_testing::objects::{self, ObjectBuilder as _, WorkloadBuilder as _};
use steersman_testing::{Builder, Failure, TestCluster, expect_eq};

use crate::scenarios::support::controllers::{self, Controller};

scenarios! {
    background_deletion_deletes_dependents_without_another_owner on alone,
    orphan_deletion_keeps_dependents_and_removes_their_reference on alone,
    dependents_of_an_absent_owner_are_deleted on alone,
    foreground_deletion_waits_for_blocking_dependents on alone,
    a_dependent_with_another_owner_does_not_block_a_waiting_owner on alone,
    owners_in_a_cycle_are_deleted on alone,
    a_dependent_is_deleted_as_its_finalizers_ask on alone,
    dependents_of_a_cluster_scoped_owner_are_deleted on alone,
    custom_resources_are_collected_and_orphaned on alone,
    pods_orphaned_by_kubectl_are_adopted_by_the_next_replica_set on with_sets,
}

/// A finalizer that only the test takes off.
pub(crate) const HOLD: &str = "example.com/hold";
const FOREGROUND: &str = "foregroundDeletion";

pub(crate) const CONTROLLERS: &[Controller] = &[controllers::GARBAGE_COLLECTOR];

/// The garbage collector, and a custom kind.
pub(crate) fn alone() -> Builder {
    with_cakes().controllers(CONTROLLERS)
}

pub(crate) fn with_sets() -> Builder {
    alone().controllers(&[controllers::REPLICA_SET])
}

/// A cluster with a custom kind.
pub(crate) fn with_cakes() -> Builder {
    TestCluster::builder().define(definition_of_cakes())
}

/// Upstream's `TestCascadingDeletion`: a pod whose only owner is deleted goes; one with a second, live owner stays, and
/// one without owner.
pub(crate) async fn background_deletion_deletes_dependents_without_another_owner(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    let deleted = cluster.create(replication_controller("deleted")).await?;
    let remaining = cluster.create(replication_controller("remaining")).await?;
    let gone = owner(&deleted);
    let stays = owner(&remaining);
    for (name, owners) in [("garbage", vec![gone.clone()]), ("shared", vec![gone, stays.clone()]), ("free", vec![])] {
        cluster.create(owners.into_iter().fold(objects::pod(name), Pod::owner)).await?;
    }
    delete::<ReplicationController>(cluster, "deleted", DeleteParams::background()).await?;
    cluster.until_gone::<Pod>("garbage").await?;
    until_owned_by::<Pod>(cluster, "shared", &[stays]).await?;
    cluster.api::<Pod>().get("free").await?;
    Ok(())
}

/// Upstream's `TestOrphaning`: the pods of an owner that is deleted with `Orphan` stay, and lose the reference.
pub(crate) async fn orphan_deletion_keeps_dependents_and_removes_their_reference(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    let set = cluster.create(replication_controller("web")).await?;
    for n in 0..3 {
        cluster.create(objects::pod(&format!("web-{n}")).owner(owner(&set))).await?;
    }
    until_known(cluster, 4).await?;
    delete::<ReplicationController>(cluster, "web", DeleteParams::orphan()).await?;
    cluster.until_gone::<ReplicationController>("web").await?;
    for n in 0..3 {
        let pod = cluster.api::<Pod>().get(&format!("web-{n}")).await?;
        expect_eq(
            "the owner is gone, and so is the reference",
            &pod.metadata.owner_references.unwrap_or_default(),
            &vec![],
        )?;
    }
    Ok(())
}

/// Upstream's `TestCreateWithNonExistentOwner`; and an owner that was made anew under the old name is another one.
pub(crate) async fn dependents_of_an_absent_owner_are_deleted(cluster: &TestCluster) -> Result<(), Failure> {
    let again = cluster.create(config_map("again", vec![])).await?;
    let before = OwnerReference { uid: "8d3b9f5e-0000-4000-8000-000000000001".into(), ..owner(&again) };
    let nobody = OwnerReference { name: "nobody".into(), ..before.clone() };
    cluster.create(config_map("of-nobody", vec![nobody])).await?;
    cluster.create(config_map("of-the-one-before", vec![before.clone()])).await?;
    cluster.create(config_map("of-both", vec![before, owner(&again)])).await?;
    cluster.until_gone::<ConfigMap>("of-nobody").await?;
    cluster.until_gone::<ConfigMap>("of-the-one-before").await?;
    until_owned_by::<ConfigMap>(cluster, "of-both", &[owner(&again)]).await?;
    cluster.api::<ConfigMap>().get("again").await?;
    Ok(())
}

/// An owner that is deleted in the foreground goes after those dependents that block it, and not after others.
pub(crate) async fn foreground_deletion_waits_for_blocking_dependents(cluster: &TestCluster) -> Result<(), Failure> {
    let parent = cluster.create(config_map("parent", vec![])).await?;
    let free = OwnerReference { block_owner_deletion: Some(false), ..owner(&parent) };
    cluster.create(held(config_map("blocking", vec![owner(&parent)]))).await?;
    cluster.create(held(config_map("not-blocking", vec![free]))).await?;
    let grandchild = owner(&cluster.api::<ConfigMap>().get("blocking").await?);
    cluster.create(config_map("grandchild", vec![grandchild])).await?;
    until_known(cluster, 4).await?;
    delete::<ConfigMap>(cluster, "parent", DeleteParams::foreground()).await?;
    cluster.until_gone::<ConfigMap>("grandchild").await?;
    until_terminating(cluster, "blocking", &[HOLD]).await?;
    until_terminating(cluster, "not-blocking", &[HOLD]).await?;
    until_terminating(cluster, "parent", &[FOREGROUND]).await?;
    release(cluster, "blocking").await?;
    cluster.until_gone::<ConfigMap>("blocking").await?;
    cluster.until_gone::<ConfigMap>("parent").await?;
    until_terminating(cluster, "not-blocking", &[HOLD]).await?;
    release(cluster, "not-blocking").await?;
    cluster.until_gone::<ConfigMap>("not-blocking").await
}

/// Upstream's `TestSolidOwnerDoesNotBlockWaitingOwner`: a dependent with another owner stays, and lets the waiting one go.
pub(crate) async fn a_dependent_with_another_owner_does_not_block_a_waiting_owner(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    let waiting = cluster.create(config_map("waiting", vec![])).await?;
    let solid = cluster.create(config_map("solid", vec![])).await?;
    cluster.create(config_map("child", vec![owner(&waiting), owner(&solid)])).await?;
    until_known(cluster, 3).await?;
    delete::<ConfigMap>(cluster, "waiting", DeleteParams::foreground()).await?;
    cluster.until_gone::<ConfigMap>("waiting").await?;
    until_owned_by::<ConfigMap>(cluster, "child", &[owner(&solid)]).await
}

/// Objects that own each other, or themselves, wait for nobody: all of them go.
pub(crate) async fn owners_in_a_cycle_are_deleted(cluster: &TestCluster) -> Result<(), Failure> {
    for (case, length) in [("self", 1), ("pair", 2), ("ring", 5)] {
        own_each_other(cluster, case, length).await?;
        until_known_edges(cluster, length).await?;
        delete::<ConfigMap>(cluster, &format!("{case}-0"), DeleteParams::foreground()).await?;
        for n in 0..length {
            cluster.until_gone::<ConfigMap>(&format!("{case}-{n}")).await?;
        }
    }
    Ok(())
}

/// A dependent is deleted in the way that its own finalizers ask for.
pub(crate) async fn a_dependent_is_deleted_as_its_finalizers_ask(cluster: &TestCluster) -> Result<(), Failure> {
    let top = cluster.create(config_map("top", vec![])).await?;
    let middle = cluster.create(config_map("middle", vec![owner(&top)]).finalizer("orphan")).await?;
    cluster.create(config_map("bottom", vec![owner(&middle)])).await?;
    until_known(cluster, 3).await?;
    delete::<ConfigMap>(cluster, "top", DeleteParams::background()).await?;
    cluster.until_gone::<ConfigMap>("middle").await?;
    until_owned_by::<ConfigMap>(cluster, "bottom", &[]).await
}

/// Objects in namespaces can belong to one of the whole cluster.
pub(crate) async fn dependents_of_a_cluster_scoped_owner_are_deleted(cluster: &TestCluster) -> Result<(), Failure> {
    let roles = Api::<ClusterRole>::all(cluster.client());
    let name = format!("{}-owner", cluster.namespace());
    let role = ClusterRole { metadata: objects::named(&name), ..ClusterRole::default() };
    let role = roles.create(&PostParams::default(), &role).await?;
    cluster.create(config_map("child", vec![owner(&role)])).await?;
    until_known(cluster, 2).await?;
    cluster.api::<ConfigMap>().get("child").await?;
    roles.delete(&name, &DeleteParams::background()).await?;
    cluster.until_gone::<ConfigMap>("child").await
}

/// Custom resources own and are owned as any other, and are left behind too, though their lists cannot be merged.
pub(crate) async fn custom_resources_are_collected_and_orphaned(cluster: &TestCluster) -> Result<(), Failure> {
    let cakes = cakes(cluster);
    let owned = cluster.create(config_map("owner-of-cake", vec![])).await?;
    cakes.create(&PostParams::default(), &cake("owned", vec![owner(&owned)])).await?;
    let first = cakes.create(&PostParams::default(), &cake("owner", vec![])).await?;
    let reference = OwnerReference { uid: first.metadata.uid.unwrap_or_default(), ..cake_owner("owner") };
    cluster.create(config_map("of-cake", vec![reference.clone()])).await?;
    cakes.create(&PostParams::default(), &cake("cake-of-cake", vec![reference.clone()])).await?;
    let both = vec![reference.clone(), owner(&owned)];
    cakes.create(&PostParams::default(), &cake("of-both", both)).await?;
    until_known(cluster, 6).await?;

    cakes.delete("owner", &DeleteParams::orphan()).await?;
    cluster.until_eq("the cake is gone", async || Ok(cakes.get_opt("owner").await?.is_none()), true).await?;
    until_owned_by::<ConfigMap>(cluster, "of-cake", &[]).await?;
    let left = cakes.get("cake-of-cake").await?.metadata.owner_references.unwrap_or_default();
    expect_eq("the reference is gone", &left, &vec![])?;
    let left = cakes.get("of-both").await?.metadata.owner_references.unwrap_or_default();
    expect_eq("the other reference stays", &left, &vec![owner(&owned)])?;

    delete::<ConfigMap>(cluster, "owner-of-cake", DeleteParams::background()).await?;
    for name in ["owned", "of-both"] {
        cluster.until_eq("the owned cake is gone", async || Ok(cakes.get_opt(name).await?.is_none()), true).await?;
    }
    Ok(())
}

/// `kubectl delete rs web --cascade=orphan`, and again `kubectl create`: the pods are the same.
pub(crate) async fn pods_orphaned_by_kubectl_are_adopted_by_the_next_replica_set(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    use k8s_openapi::api::apps::v1::ReplicaSet;
    let web = cluster.create(objects::replica_set("web").replicas(3)).await?;
    let names = |pods: Vec<Pod>| pods.into_iter().filter_map(|pod| pod.metadata.name).collect::<BTreeSet<_>>();
    let before = names(cluster.pods_of(&web).until_count(3).await?);
    until_known_edges(cluster, 3).await?;
    delete::<ReplicaSet>(cluster, "web", DeleteParams::orphan()).await?;
    cluster.until_gone::<ReplicaSet>("web").await?;
    expect_eq(
        "all pods stay",
        &names(cluster.api::<Pod>().list(&ListParams::default()).await?.items),
        &before.clone(),
    )?;
    let again = cluster.create(objects::replica_set("web").replicas(3)).await?;
    expect_eq("the same pods", &names(cluster.pods_of(&again).until_count(3).await?), &before)?;
    delete::<ReplicaSet>(cluster, "web", DeleteParams::background()).await?;
    cluster
        .until_eq(
            "no pod is left",
            async || Ok(cluster.api::<Pod>().list(&ListParams::default()).await?.items.is_empty()),
            true,
        )
        .await
}

// Objects and waits.

/// A CustomResourceDefinition of cakes.
pub(crate) fn definition_of_cakes() -> serde_json::Value {
    let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "cakes.garbage.example.com" },
        "spec": {
            "group": "garbage.example.com", "scope": "Namespaced",
            "names": { "plural": "cakes", "singular": "cake", "kind": "Cake", "listKind": "CakeList" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } }],
        },
    })
}

fn cake_kind() -> ApiResource {
    let gvk = kube::api::GroupVersionKind::gvk("garbage.example.com", "v1", "Cake");
    ApiResource::from_gvk_with_plural(&gvk, "cakes")
}

pub(crate) fn cakes(cluster: &TestCluster) -> Api<DynamicObject> {
    Api::namespaced_with(cluster.client(), cluster.namespace(), &cake_kind())
}

pub(crate) fn cake(name: &str, owners: Vec<OwnerReference>) -> DynamicObject {
    let mut cake = DynamicObject::new(name, &cake_kind());
    cake.metadata.owner_references = Some(owners);
    cake
}

pub(crate) fn cake_owner(name: &str) -> OwnerReference {
    OwnerReference {
        api_version: "garbage.example.com/v1".into(),
        kind: "Cake".into(),
        name: name.into(),
        ..OwnerReference::default()
    }
}

pub(crate) fn config_map(name: &str, owners: Vec<OwnerReference>) -> ConfigMap {
    owners.into_iter().fold(objects::config_map(name), ConfigMap::owner)
}

/// Makes so many ConfigMaps, of which each owns the next, and the last one the first.
pub(crate) async fn own_each_other(cluster: &TestCluster, case: &str, length: usize) -> Result<(), Failure> {
    let name = |n: usize| format!("{case}-{}", n % length);
    let mut owners = Vec::new();
    for n in 0..length {
        owners.push(owner(&cluster.create(config_map(&name(n), vec![])).await?));
    }
    for (n, reference) in owners.into_iter().enumerate() {
        let patch = json!({ "metadata": { "ownerReferences": [reference] } });
        cluster.api::<ConfigMap>().patch(&name(n + 1), &PatchParams::default(), &Patch::Merge(patch)).await?;
    }
    Ok(())
}

pub(crate) fn held(object: ConfigMap) -> ConfigMap {
    object.finalizer(HOLD)
}

fn replication_controller(name: &str) -> ReplicationController {
    objects::replication_controller(name).replicas(0)
}

/// A reference that blocks the deletion of its owner.
pub(crate) fn owner<K: Resource<DynamicType = ()>>(owner: &K) -> OwnerReference {
    OwnerReference { controller: None, block_owner_deletion: Some(true), ..owner.owner_ref(&()).unwrap_or_default() }
}

/// A reference to an object that there is not.
pub(crate) fn reference(api_version: &str, kind: &str, name: &str, uid: u32) -> OwnerReference {
    OwnerReference {
        api_version: api_version.into(),
        kind: kind.into(),
        name: name.into(),
        uid: format!("8d3b9f5e-0000-4000-8000-{uid:012}"),
        ..OwnerReference::default()
    }
}

pub(crate) async fn delete<K>(cluster: &TestCluster, name: &str, how: DeleteParams) -> Result<(), Failure>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + DeserializeOwned + Clone + Debug,
{
    cluster.api::<K>().delete(name, &how).await?;
    Ok(())
}

/// Takes the test's own finalizer off.
pub(crate) async fn release(cluster: &TestCluster, name: &str) -> Result<(), Failure> {
    let patch = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    cluster.api::<ConfigMap>().patch(name, &PatchParams::default(), &patch).await?;
    Ok(())
}

pub(crate) async fn until_owned_by<K>(cluster: &TestCluster, name: &str, want: &[OwnerReference]) -> Result<(), Failure>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + DeserializeOwned + Clone + Debug,
{
    cluster
        .until_eq(
            &format!("{name} has {} owners", want.len()),
            async || {
                let owners = cluster.api::<K>().get(name).await?.meta().owner_references.clone().unwrap_or_default();
                Ok(owners)
            },
            want,
        )
        .await
}

async fn until_terminating(cluster: &TestCluster, name: &str, finalizers: &[&str]) -> Result<(), Failure> {
    let what = format!("{name} is being deleted, and held by {finalizers:?}");
    let object = async || Ok(cluster.api::<ConfigMap>().get(name).await?.metadata);
    let is_so = |meta: &ObjectMeta| {
        meta.deletion_timestamp.is_some() && meta.finalizers.clone().unwrap_or_default() == finalizers
    };
    cluster.until_right(&what, object, is_so).await.map(drop)
}

/// The graph as the admin port shows it.
pub(crate) async fn graph(cluster: &TestCluster) -> Result<serde_json::Value, Failure> {
    let path = "/debug/controllers/garbage-collector-controller/graph.json";
    let request = http::Request::get(path).body(Vec::new().into()).map_err(kube::Error::HttpError)?;
    Ok(serde_json::from_slice(cluster.manager().admin().respond(request).await.body())?)
}

/// Waits until the graph shows so many objects of the test that own or are owned: a dependent that is not known yet cannot
/// be waited for, or left behind. Upstream's tests wait for the same.
pub(crate) async fn until_known(cluster: &TestCluster, nodes: usize) -> Result<(), Failure> {
    until_graph(cluster, "nodes", nodes).await
}

pub(crate) async fn until_known_edges(cluster: &TestCluster, edges: usize) -> Result<(), Failure> {
    until_graph(cluster, "edges", edges).await
}

async fn until_graph(cluster: &TestCluster, what: &str, count: usize) -> Result<(), Failure> {
    let namespace = cluster.namespace();
    let seen = async || {
        let graph = graph(cluster).await?;
        let none = Vec::new();
        let nodes = graph["nodes"].as_array().unwrap_or(&none);
        let near = |node: &&serde_json::Value| {
            let is_own =
                node["namespace"] == namespace || node["name"].as_str().is_some_and(|name| name.contains(namespace));
            is_own && node["virtual"] == false
        };
        let own: BTreeSet<&str> = nodes.iter().filter(near).filter_map(|node| node["uid"].as_str()).collect();
        let edges = graph["edges"].as_array().unwrap_or(&none);
        let edges = edges.iter().filter(|edge| edge["dependent"].as_str().is_some_and(|uid| own.contains(uid))).count();
        Ok(if what == "nodes" { own.len() } else { edges })
    };
    cluster.until_eq(&format!("the graph has {count} {what}"), seen, count).await
}

/// How often an object was looked at so far.
pub(crate) fn looks(cluster: &TestCluster) -> u64 {
    let all = cluster.manager().inspection().controllers();
    let all = all.iter().filter(|controller| controller.name().starts_with("garbage-collector"));
    all.map(|controller| controller.queue().stats().worked.count()).sum()
}
