//! What a Deployment promises.

use std::collections::BTreeMap;

use futures::TryStreamExt;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::api::{ListParams, ObjectList, Patch, PatchParams, WatchEvent, WatchParams};
use serde_json::{Value, json};
use steersman_testing::objects::{self, ObjectBuilder as _, WorkloadBuilder as _};
use steersman_testing::{Builder, Failure, TestCluster, expect, expect_eq};

use crate::scenarios::support::controllers::{self, Controller};

scenarios! {
    pods_are_created_and_the_status_counts_them on with_nodes,
    a_rollout_stays_within_max_surge_and_max_unavailable on with_nodes,
    scaling_down_with_a_new_image_in_one_patch_keeps_enough_pods_ready on with_nodes,
    going_back_in_the_middle_of_a_rollout_keeps_all_pods_ready on with_nodes,
    a_node_selector_without_a_value_is_rolled_out on cluster,
    recreate_never_runs_pods_of_two_templates on with_nodes,
    a_paused_one_waits_and_goes_on on with_nodes,
    a_rollback_reuses_the_old_replica_set on with_nodes,
    the_rollback_annotation_rolls_back on with_nodes,
    replica_sets_beyond_the_history_limit_are_deleted on with_nodes,
    a_rollout_without_progress_exceeds_its_deadline on cluster,
    a_replica_set_with_another_hash_is_adopted_and_kept on cluster,
    a_name_that_is_taken_counts_as_a_collision on with_nodes,
    scaling_in_the_middle_of_a_rollout_is_proportional on cluster,
}

pub(crate) const REVISION: &str = "deployment.kubernetes.io/revision";
pub(crate) const HISTORY: &str = "deployment.kubernetes.io/revision-history";

/// What stands for no deadline: where pods never become ready, it would pass while quiet is expected.
const NO_DEADLINE: i32 = i32::MAX;

pub(crate) const CONTROLLERS: &[Controller] = &[controllers::DEPLOYMENT, controllers::REPLICA_SET];

/// Without nodes: pods become ready when the test says so.
pub(crate) fn cluster() -> Builder {
    TestCluster::builder().controllers(CONTROLLERS)
}

pub(crate) fn with_nodes() -> Builder {
    cluster().nodes(2)
}

/// A Deployment of `web:1`, with this on top of its spec.
#[allow(clippy::needless_pass_by_value, reason = "`json!` makes values")]
pub(crate) fn deployment(replicas: i32, spec: Value) -> Deployment {
    objects::deployment("web").replicas(replicas).image("web:1").with(json!({ "spec": spec }))
}

/// Three pods come; status, revision, conditions and the event say so.
pub(crate) async fn pods_are_created_and_the_status_counts_them(cluster: &TestCluster) -> Result<(), Failure> {
    let web = cluster.create(deployment(3, json!({ "minReadySeconds": 1 }))).await?;
    let done = until_complete(cluster, 3).await?;
    let status = done.status.unwrap_or_default();
    let said = |type_: &str| {
        let condition = status.conditions.iter().flatten().find(|condition| condition.type_.as_deref() == Some(type_));
        condition.map(|condition| {
            (condition.status.clone().unwrap_or_default(), condition.reason.clone().unwrap_or_default())
        })
    };
    let sets = sets(cluster).await?;
    let set = &sets[0];
    let name = set.metadata.name.clone().unwrap_or_default();
    let annotated = |key: &str| set.metadata.annotations.iter().flatten().find(|(held, _)| *held == key);
    expect_eq("sets", &sets.len(), &1)?;
    expect_eq("Available", &said("Available"), &Some(("True".into(), "MinimumReplicasAvailable".into())))?;
    expect_eq("Progressing", &said("Progressing"), &Some(("True".into(), "NewReplicaSetAvailable".into())))?;
    expect_eq("revision", &done.metadata.annotations.unwrap_or_default().get(REVISION), &Some(&"1".to_owned()))?;
    expect_eq("the set's revision", &annotated(REVISION).map(|(_, value)| &**value), &Some("1"))?;
    let desired = annotated("deployment.kubernetes.io/desired-replicas").map(|(_, value)| &**value);
    expect_eq("sized for", &desired, &Some("3"))?;
    let most = annotated("deployment.kubernetes.io/max-replicas").map(|(_, value)| &**value);
    expect_eq("sized for at most", &most, &Some("4"))?;
    let owner = &set.metadata.owner_references.as_ref().and_then(|owners| owners.first().cloned()).unwrap_or_default();
    expect_eq("owner", &(owner.kind.as_str(), Some(&owner.uid)), &("Deployment", web.metadata.uid.as_ref()))?;
    expect_eq("minReadySeconds", &set.spec.min_ready_seconds, &Some(1))?;
    until_events(cluster, &[("ScalingReplicaSet", &format!("Scaled up replica set {name} from 0 to 3"))]).await
}

/// Roll-outs with room in one direction or the other: never too many pods wanted, never too few available.
pub(crate) async fn a_rollout_stays_within_max_surge_and_max_unavailable(cluster: &TestCluster) -> Result<(), Failure> {
    let variants = [(json!(1), json!(0), 1, 0), (json!(0), json!(1), 0, 1), (json!("50%"), json!("25%"), 2, 1)];
    cluster.create(deployment(4, json!({}))).await?;
    until_complete(cluster, 4).await?;
    for (round, (max_surge, max_unavailable, surge, unavailable)) in variants.into_iter().enumerate() {
        let rolling = json!({ "maxSurge": max_surge, "maxUnavailable": max_unavailable });
        let strategy = json!({ "type": "RollingUpdate", "rollingUpdate": rolling });
        let image = format!("web:{}", round + 2);
        patch(cluster, json!({ "spec": { "strategy": strategy, "template": image_of(&image) } })).await?;
        let look = async || {
            let sets = sets(cluster).await?;
            let wanted: i32 = sets.iter().map(|set| set.spec.replicas.unwrap_or(1)).sum();
            let ready = ready_pods(cluster).await?;
            if wanted > 4 + surge || ready < 4 - unavailable {
                return Err(Failure::new(format!("{wanted} are wanted, {ready} are ready, with {rolling}")));
            }
            web(cluster).await
        };
        let what = format!("rollout {round} is complete");
        cluster.until_right(&what, look, |web| is_complete(web, 4)).await?;
        let sets = sets(cluster).await?;
        expect_eq("sets", &sets.len(), &(round + 2))?;
        let left: Vec<_> = sets.iter().filter(|set| set.spec.replicas != Some(0)).map(image_in).collect();
        expect_eq("images that are left", &left, &vec![image])?;
    }
    let web = cluster.api::<Deployment>().get("web").await?;
    expect_eq("revision", &web.metadata.annotations.unwrap_or_default().get(REVISION), &Some(&"4".to_owned()))
}

/// Fewer replicas and a new image in one patch: the pods that the smaller number condemns are no reason to take others.
pub(crate) async fn scaling_down_with_a_new_image_in_one_patch_keeps_enough_pods_ready(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    cluster.create(deployment(20, json!({}))).await?;
    until_complete(cluster, 20).await?;
    let before = pods(cluster).await?;
    patch(cluster, json!({ "spec": { "replicas": 8, "template": image_of("web:2") } })).await?;
    until_complete(cluster, 8).await?;
    let least = least_ready(cluster, before).await?;
    expect(least >= 6, "of 8 that are ready, a quarter may be missing", &least)
}

/// Whole roll-outs, forth and back in the middle: at no moment fewer pods are ready than there should be.
pub(crate) async fn going_back_in_the_middle_of_a_rollout_keeps_all_pods_ready(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    let rolling = json!({ "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 2, "maxUnavailable": 0 } });
    cluster.create(deployment(6, json!({ "strategy": rolling }))).await?;
    until_complete(cluster, 6).await?;
    let before = pods(cluster).await?;
    for image in ["web:2", "web:1", "web:3", "web:2"] {
        patch(cluster, json!({ "spec": { "template": image_of(image) } })).await?;
        let size = async || Ok(sizes(cluster).await?.get(image).copied().unwrap_or(0));
        cluster.until_right(&format!("the rollout of {image} has begun"), size, |size| *size >= 3).await?;
    }
    until_complete(cluster, 6).await?;
    let least = least_ready(cluster, before).await?;
    expect(least >= 6, "of 6 that are ready, none may be missing", &least)
}

/// Labels of node roles have no value: another role is another template.
pub(crate) async fn a_node_selector_without_a_value_is_rolled_out(cluster: &TestCluster) -> Result<(), Failure> {
    cluster.create(deployment(1, json!({ "progressDeadlineSeconds": NO_DEADLINE }))).await?;
    // A template that is changed before the controller has looked at it never gets a ReplicaSet.
    until_sets(cluster, 1).await?;
    for (round, roles) in [
        json!({ "node-role.kubernetes.io/worker": "" }),
        json!({ "node-role.kubernetes.io/worker": null, "node-role.kubernetes.io/control-plane": "" }),
    ]
    .into_iter()
    .enumerate()
    {
        patch(cluster, json!({ "spec": { "template": { "spec": { "nodeSelector": roles } } } })).await?;
        until_sets(cluster, round + 2).await?;
    }
    Ok(())
}

/// With `Recreate`, pods of two templates never run at the same time.
pub(crate) async fn recreate_never_runs_pods_of_two_templates(cluster: &TestCluster) -> Result<(), Failure> {
    cluster.create(deployment(3, json!({ "strategy": { "type": "Recreate" } }))).await?;
    until_complete(cluster, 3).await?;
    patch(cluster, json!({ "spec": { "template": image_of("web:2") } })).await?;
    let look = async || {
        let pods = cluster.api::<Pod>().list(&ListParams::default()).await?;
        let images: std::collections::BTreeSet<_> = pods.iter().filter_map(pod_image).collect();
        if images.len() > 1 {
            return Err(Failure::new(format!("pods of two templates: {images:?}")));
        }
        web(cluster).await
    };
    cluster.until_right("the recreation is complete", look, |web| is_complete(web, 3)).await?;
    expect_eq("sets", &sizes(cluster).await?, &BTreeMap::from([("web:1".into(), 0), ("web:2".into(), 3)]))
}

/// A paused Deployment is scaled but not rolled out; resumed, it goes on.
pub(crate) async fn a_paused_one_waits_and_goes_on(cluster: &TestCluster) -> Result<(), Failure> {
    cluster.create(deployment(2, json!({}))).await?;
    until_complete(cluster, 2).await?;
    patch(cluster, json!({ "spec": { "paused": true, "replicas": 3, "template": image_of("web:2") } })).await?;
    until_reason(cluster, "Progressing", "DeploymentPaused").await?;
    cluster
        .until_eq("the old one is scaled", async || sizes(cluster).await, BTreeMap::from([("web:1".into(), 3)]))
        .await?;
    patch(cluster, json!({ "spec": { "paused": false } })).await?;
    until_complete(cluster, 3).await?;
    expect_eq("sizes", &sizes(cluster).await?, &BTreeMap::from([("web:1".into(), 0), ("web:2".into(), 3)]))
}

/// `kubectl rollout undo` puts the old template back: the old ReplicaSet comes back with a new revision, and remembers.
pub(crate) async fn a_rollback_reuses_the_old_replica_set(cluster: &TestCluster) -> Result<(), Failure> {
    cluster.create(deployment(2, json!({}))).await?;
    until_complete(cluster, 2).await?;
    for image in ["web:2", "web:1"] {
        patch(cluster, json!({ "spec": { "template": image_of(image) } })).await?;
        until_complete(cluster, 2).await?;
    }
    let sets = sets(cluster).await?;
    let reported: Vec<_> =
        sets.iter().map(|set| (image_in(set), annotation(set, REVISION), annotation(set, HISTORY))).collect();
    let row = |image: &str, revision: &str, history: &str| (image.into(), revision.into(), history.into());
    expect_eq("sets", &reported, &vec![row("web:1", "3", "1"), row("web:2", "2", "")])
}

/// Clients from before `kubectl rollout undo` ask for it with an annotation.
pub(crate) async fn the_rollback_annotation_rolls_back(cluster: &TestCluster) -> Result<(), Failure> {
    cluster.create(deployment(1, json!({}))).await?;
    until_complete(cluster, 1).await?;
    patch(cluster, json!({ "spec": { "template": image_of("web:2") } })).await?;
    until_complete(cluster, 1).await?;
    let ask = |to: &str| json!({ "metadata": { "annotations": { "deprecated.deployment.rollback.to": to } } });
    for (to, reason, text) in [
        ("1", "DeploymentRollback", "Rolled back deployment \"web\" to revision 1"),
        (
            "3",
            "DeploymentRollbackTemplateUnchanged",
            "The rollback revision contains the same template as current deployment \"web\"",
        ),
        ("9", "DeploymentRollbackRevisionNotFound", "Unable to find the revision to rollback to."),
    ] {
        patch(cluster, ask(to)).await?;
        until_events(cluster, &[(reason, text)]).await?;
        let web = until_complete(cluster, 1).await?;
        let wish = web.metadata.annotations.unwrap_or_default().remove("deprecated.deployment.rollback.to");
        expect_eq("the wish", &wish, &None)?;
    }
    expect_eq("sizes", &sizes(cluster).await?, &BTreeMap::from([("web:1".into(), 1), ("web:2".into(), 0)]))
}

/// Old ReplicaSets beyond `revisionHistoryLimit` go.
pub(crate) async fn replica_sets_beyond_the_history_limit_are_deleted(cluster: &TestCluster) -> Result<(), Failure> {
    cluster.create(deployment(1, json!({ "revisionHistoryLimit": 1 }))).await?;
    until_complete(cluster, 1).await?;
    for image in ["web:2", "web:3", "web:4"] {
        patch(cluster, json!({ "spec": { "template": image_of(image) } })).await?;
        until_complete(cluster, 1).await?;
    }
    let want = BTreeMap::from([("web:3".to_owned(), 0), ("web:4".to_owned(), 1)]);
    cluster.until_eq("one old one is left", async || sizes(cluster).await, want).await
}

/// A roll-out whose pods never become ready times out, says so, and leaves what works alone; pods that come late mend it.
pub(crate) async fn a_rollout_without_progress_exceeds_its_deadline(cluster: &TestCluster) -> Result<(), Failure> {
    cluster.create(deployment(2, json!({ "progressDeadlineSeconds": 3 }))).await?;
    until_reason(cluster, "Progressing", "ProgressDeadlineExceeded").await?;
    for set in sets(cluster).await? {
        cluster.pods_of(&set).until_count(2).await?;
        cluster.pods_of(&set).make_ready().await?;
    }
    until_complete(cluster, 2).await?;
    until_reason(cluster, "Progressing", "NewReplicaSetAvailable").await?;
    patch(cluster, json!({ "spec": { "template": image_of("web:2") } })).await?;
    until_reason(cluster, "Progressing", "ProgressDeadlineExceeded").await?;
    let want = BTreeMap::from([("web:1".into(), 2), ("web:2".into(), 1)]);
    expect_eq("the old pods stay", &sizes(cluster).await?, &want)
}

/// A ReplicaSet that another controller manager made, with a hash of its own, is adopted and is the new one.
pub(crate) async fn a_replica_set_with_another_hash_is_adopted_and_kept(cluster: &TestCluster) -> Result<(), Failure> {
    let labels = json!({ "app": "web", "pod-template-hash": "5d78c9869d" });
    let set: ReplicaSet = serde_json::from_value(json!({
        "metadata": { "name": "web-5d78c9869d", "labels": labels, "annotations": { REVISION: "7" } },
        "spec": {
            "replicas": 1,
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": { "containers": [{ "name": "main", "image": "web:1" }] },
            },
        },
    }))?;
    let set = cluster.create(set).await?;
    let web = cluster.create(deployment(1, json!({ "progressDeadlineSeconds": NO_DEADLINE }))).await?;
    let revision = async || {
        let found = cluster.api::<Deployment>().get("web").await?;
        Ok(found.metadata.annotations.unwrap_or_default().remove(REVISION))
    };
    cluster.until_eq("the Deployment has seen it", revision, Some("7".to_owned())).await?;
    let sets = sets(cluster).await?;
    expect_eq("sets", &sets.len(), &1)?;
    expect_eq("uid", &sets[0].metadata.uid, &set.metadata.uid)?;
    let owner = sets[0].metadata.owner_references.clone().unwrap_or_default();
    expect_eq("owner", &owner.first().map(|owner| &owner.uid), &web.metadata.uid.as_ref())
}

/// A ReplicaSet that is relabelled is let go; its name stays taken, so the next one has another.
pub(crate) async fn a_name_that_is_taken_counts_as_a_collision(cluster: &TestCluster) -> Result<(), Failure> {
    cluster.create(deployment(1, json!({}))).await?;
    until_complete(cluster, 1).await?;
    let name = sets(cluster).await?[0].metadata.name.clone().unwrap_or_default();
    let relabel = json!({ "metadata": { "labels": { "app": "other" } } });
    cluster.api::<ReplicaSet>().patch(&name, &PatchParams::default(), &Patch::Merge(relabel)).await?;
    let owned = async || {
        let sets = sets(cluster).await?;
        let owned = sets.into_iter().filter(|set| set.metadata.owner_references.is_some());
        Ok(owned.filter_map(|set| set.metadata.name).collect::<Vec<_>>())
    };
    cluster.until_right("another one in its place", owned, |names| names.len() == 1 && names[0] != name).await?;
    let web = until_complete(cluster, 1).await?;
    expect_eq("collisions", &web.status.and_then(|status| status.collision_count), &Some(1))?;
    let let_go = cluster.api::<ReplicaSet>().get(&name).await?;
    expect_eq("owners of the one that was let go", &let_go.metadata.owner_references.unwrap_or_default().len(), &0)
}

/// Scaling in the middle of a roll-out that hangs scales both ReplicaSets.
pub(crate) async fn scaling_in_the_middle_of_a_rollout_is_proportional(cluster: &TestCluster) -> Result<(), Failure> {
    let rolling = json!({ "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 2, "maxUnavailable": 2 } });
    cluster.create(deployment(6, json!({ "strategy": rolling, "progressDeadlineSeconds": NO_DEADLINE }))).await?;
    cluster.until_right("the first one", async || sets(cluster).await, |sets| !sets.is_empty()).await?;
    let first = sets(cluster).await?.remove(0);
    cluster.pods_of(&first).until_count(6).await?;
    cluster.pods_of(&first).make_ready().await?;
    until_complete(cluster, 6).await?;
    patch(cluster, json!({ "spec": { "template": image_of("web:2") } })).await?;
    until_sizes(cluster, [("web:1", 4), ("web:2", 4)]).await?;
    patch(cluster, json!({ "spec": { "replicas": 12 } })).await?;
    until_sizes(cluster, [("web:1", 7), ("web:2", 7)]).await
}

pub(crate) async fn patch(cluster: &TestCluster, patch: Value) -> Result<(), Failure> {
    cluster.api::<Deployment>().patch("web", &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}

/// The part of a template that says which image.
pub(crate) fn image_of(image: &str) -> Value {
    json!({ "spec": { "containers": [{ "name": "main", "image": image }] } })
}

pub(crate) async fn sets(cluster: &TestCluster) -> Result<Vec<ReplicaSet>, Failure> {
    let mut sets = cluster.api::<ReplicaSet>().list(&ListParams::default()).await?.items;
    sets.sort_by_key(image_in);
    Ok(sets)
}

pub(crate) fn image_in(set: &ReplicaSet) -> String {
    let spec = set.spec.template.as_ref().and_then(|template| template.spec.as_ref());
    spec.and_then(|spec| spec.containers[0].image.clone()).unwrap_or_default()
}

fn pod_image(pod: &Pod) -> Option<String> {
    pod.spec.as_ref()?.containers.first()?.image.clone()
}

fn annotation(set: &ReplicaSet, name: &str) -> String {
    set.metadata.annotations.as_ref().and_then(|map| map.get(name).cloned()).unwrap_or_default()
}

/// What each image's ReplicaSet wants.
async fn sizes(cluster: &TestCluster) -> Result<BTreeMap<String, i32>, Failure> {
    Ok(sets(cluster).await?.iter().map(|set| (image_in(set), set.spec.replicas.unwrap_or(1))).collect())
}

/// Waits until there are so many ReplicaSets.
async fn until_sets(cluster: &TestCluster, want: usize) -> Result<(), Failure> {
    let selector = |set: ReplicaSet| set.spec.template?.spec?.node_selector;
    let selectors = async || Ok(sets(cluster).await?.into_iter().map(selector).collect::<Vec<_>>());
    cluster.until_right(&format!("{want} ReplicaSets"), selectors, |sets| sets.len() == want).await.map(drop)
}

pub(crate) async fn until_sizes<const N: usize>(cluster: &TestCluster, want: [(&str, i32); N]) -> Result<(), Failure> {
    let want: BTreeMap<_, _> = want.into_iter().map(|(image, size)| (image.to_owned(), size)).collect();
    cluster.until_eq(&format!("sizes {want:?}"), async || sizes(cluster).await, want).await
}

async fn ready_pods(cluster: &TestCluster) -> Result<i32, Failure> {
    let pods = cluster.api::<Pod>().list(&ListParams::default()).await?;
    Ok(i32::try_from(pods.iter().filter(|pod| is_ready(pod)).count())?)
}

/// Whether a pod is ready and nobody has asked it to end.
fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let mut ready = conditions.filter(|condition| condition.type_ == "Ready" && condition.status == "True");
    pod.metadata.deletion_timestamp.is_none() && ready.next().is_some()
}

/// The pods that there are, for [`least_ready`].
pub(crate) async fn pods(cluster: &TestCluster) -> Result<ObjectList<Pod>, Failure> {
    Ok(cluster.api::<Pod>().list(&ListParams::default()).await?)
}

/// How many pods were ready at the worst moment since this list: every change is looked at, in order.
pub(crate) async fn least_ready(cluster: &TestCluster, since: ObjectList<Pod>) -> Result<usize, Failure> {
    let version = since.metadata.resource_version.clone().unwrap_or_default();
    let name = |pod: &Pod| pod.metadata.name.clone().unwrap_or_default();
    let mut ready: BTreeMap<_, _> = since.iter().map(|pod| (name(pod), is_ready(pod))).collect();
    let count = |ready: &BTreeMap<String, bool>| ready.values().filter(|is_ready| **is_ready).count();
    let mut least = count(&ready);
    let until_now = WatchParams::default().timeout(1);
    let changes = cluster.api::<Pod>().watch(&until_now, &version).await?;
    let changes: Vec<_> = changes.try_collect().await?;
    for change in changes {
        match change {
            WatchEvent::Added(pod) | WatchEvent::Modified(pod) => drop(ready.insert(name(&pod), is_ready(&pod))),
            WatchEvent::Deleted(pod) => drop(ready.remove(&name(&pod))),
            WatchEvent::Bookmark(_) => {}
            WatchEvent::Error(error) => return Err(Failure::new(format!("the watch of pods ended: {error:?}"))),
        }
        least = least.min(count(&ready));
    }
    Ok(least)
}

/// The Deployment `web`, as it is now.
async fn web(cluster: &TestCluster) -> Result<Deployment, Failure> {
    Ok(cluster.api::<Deployment>().get("web").await?)
}

/// What `kubectl rollout status` waits for.
pub(crate) fn is_complete(web: &Deployment, replicas: i32) -> bool {
    let status = web.status.clone().unwrap_or_default();
    let counts = [status.replicas, status.updated_replicas, status.available_replicas].map(Option::unwrap_or_default);
    status.observed_generation == web.metadata.generation && counts == [replicas; 3]
}

pub(crate) async fn until_complete(cluster: &TestCluster, replicas: i32) -> Result<Deployment, Failure> {
    let what = format!("{replicas} are updated and available");
    cluster.until_right(&what, async || web(cluster).await, |web| is_complete(web, replicas)).await
}

pub(crate) async fn until_reason(cluster: &TestCluster, type_: &str, reason: &str) -> Result<Deployment, Failure> {
    let is_so = |web: &Deployment| {
        let conditions = web.status.iter().flat_map(|status| status.conditions.iter().flatten());
        let mut found = conditions.filter(|condition| condition.type_.as_deref() == Some(type_));
        found.any(|condition| condition.reason.as_deref() == Some(reason))
    };
    cluster.until_right(&format!("{type_} because of {reason}"), async || web(cluster).await, is_so).await
}

/// Waits until there are events of these reasons and texts about the Deployment, all from its controller.
pub(crate) async fn until_events(cluster: &TestCluster, want: &[(&str, &str)]) -> Result<(), Failure> {
    let about = ListParams::default().fields("involvedObject.kind=Deployment,involvedObject.name=web");
    let texts = async || {
        let events = cluster.api::<Event>().list(&about).await?.items.into_iter();
        let ours = events.filter(|event| event.reporting_component.as_deref() == Some("deployment-controller"));
        let texts = ours.map(|event| (event.reason.unwrap_or_default(), event.message.unwrap_or_default()));
        Ok(texts.collect::<Vec<_>>())
    };
    let has = |texts: &[(String, String)], row: &(&str, &str)| texts.iter().any(|text| (&*text.0, &*text.1) == *row);
    let all = |texts: &Vec<_>| want.iter().all(|row| has(texts, row));
    cluster.until_right(&format!("the events {want:?}"), texts, all).await.map(drop)
}
