//! What a Deployment promises.

use std::collections::BTreeMap;

use futures::TryStreamExt;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::api::{ListParams, ObjectList, Patch, PatchParams, WatchEvent, WatchParams};
use serde_json::{Value, json};
use steersman_controllers::{deployment, replicaset};
use steersman_runtime::Descriptor;
use steersman_testing::{Builder, Failure, TestCluster};

pub(crate) const REVISION: &str = "deployment.kubernetes.io/revision";
pub(crate) const HISTORY: &str = "deployment.kubernetes.io/revision-history";

/// What stands for no deadline: where pods never become ready, it would pass while quiet is expected.
const NO_DEADLINE: i32 = i32::MAX;

pub(crate) const CONTROLLERS: &[Descriptor] = &[deployment::DESCRIPTOR, replicaset::DESCRIPTOR];

/// Without nodes: pods become ready when the test says so.
pub(crate) fn cluster() -> Builder {
    TestCluster::builder().controllers(CONTROLLERS)
}

pub(crate) fn with_nodes() -> Builder {
    cluster().nodes(2)
}

/// A Deployment of `web:1`, with this on top of its spec.
pub(crate) fn deployment(replicas: i32, spec: Value) -> Deployment {
    let mut object = json!({
        "metadata": { "name": "web" },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "main", "image": "web:1" }] },
            },
        },
    });
    if let (Value::Object(base), Value::Object(more)) = (&mut object["spec"], spec) {
        base.extend(more);
    }
    serde_json::from_value(object).expect("it is a Deployment")
}

/// Three pods come; status, revision, conditions and the event say so.
pub(crate) async fn pods_come_and_status_tells_it(cluster: &TestCluster) -> Result<(), Failure> {
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
pub(crate) async fn a_roll_out_stays_within_its_limits(cluster: &TestCluster) -> Result<(), Failure> {
    let variants = [(json!(1), json!(0), 1, 0), (json!(0), json!(1), 0, 1), (json!("50%"), json!("25%"), 2, 1)];
    cluster.create(deployment(4, json!({}))).await?;
    until_complete(cluster, 4).await?;
    for (round, (max_surge, max_unavailable, surge, unavailable)) in variants.into_iter().enumerate() {
        let rolling = json!({ "maxSurge": max_surge, "maxUnavailable": max_unavailable });
        let strategy = json!({ "type": "RollingUpdate", "rollingUpdate": rolling });
        let image = format!("web:{}", round + 2);
        patch(cluster, json!({ "spec": { "strategy": strategy, "template": image_of(&image) } })).await?;
        cluster
            .until(&format!("roll-out {round} is through"), || async {
                let sets = sets(cluster).await?;
                let wanted: i32 = sets.iter().map(|set| set.spec.replicas.unwrap_or(1)).sum();
                let ready = ready_pods(cluster).await?;
                if wanted > 4 + surge || ready < 4 - unavailable {
                    return Err(Failure::new(format!("{wanted} are wanted, {ready} are ready, with {rolling}")));
                }
                look_complete(cluster, 4).await
            })
            .await?;
        let sets = sets(cluster).await?;
        expect_eq("sets", &sets.len(), &(round + 2))?;
        let left: Vec<_> = sets.iter().filter(|set| set.spec.replicas != Some(0)).map(image_in).collect();
        expect_eq("images that are left", &left, &vec![image])?;
    }
    let web = cluster.api::<Deployment>().get("web").await?;
    expect_eq("revision", &web.metadata.annotations.unwrap_or_default().get(REVISION), &Some(&"4".to_owned()))
}

/// Fewer replicas and a new image in one patch: the pods that the smaller number condemns are no reason to take others.
pub(crate) async fn a_smaller_number_and_a_new_image_in_one_patch(cluster: &TestCluster) -> Result<(), Failure> {
    cluster.create(deployment(20, json!({}))).await?;
    until_complete(cluster, 20).await?;
    let before = pods(cluster).await?;
    patch(cluster, json!({ "spec": { "replicas": 8, "template": image_of("web:2") } })).await?;
    until_complete(cluster, 8).await?;
    let least = least_ready(cluster, before).await?;
    if least >= 6 { Ok(()) } else { Err(Failure::new(format!("{least} of 8 were ready, a quarter may be missing"))) }
}

/// Whole roll-outs, forth and back in the middle: at no moment fewer pods are ready than there should be.
pub(crate) async fn going_back_in_the_middle_misses_nobody(cluster: &TestCluster) -> Result<(), Failure> {
    let rolling = json!({ "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 2, "maxUnavailable": 0 } });
    cluster.create(deployment(6, json!({ "strategy": rolling }))).await?;
    until_complete(cluster, 6).await?;
    let before = pods(cluster).await?;
    for image in ["web:2", "web:1", "web:3", "web:2"] {
        patch(cluster, json!({ "spec": { "template": image_of(image) } })).await?;
        cluster
            .until("it has begun", || async {
                let size = sizes(cluster).await?.get(image).copied().unwrap_or(0);
                Ok(if size >= 3 { Ok(()) } else { Err(format!("{size} of {image}")) })
            })
            .await?;
    }
    until_complete(cluster, 6).await?;
    let least = least_ready(cluster, before).await?;
    if least >= 6 { Ok(()) } else { Err(Failure::new(format!("{least} of 6 were ready, none may be missing"))) }
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
pub(crate) async fn a_recreated_one_never_runs_both(cluster: &TestCluster) -> Result<(), Failure> {
    cluster.create(deployment(3, json!({ "strategy": { "type": "Recreate" } }))).await?;
    until_complete(cluster, 3).await?;
    patch(cluster, json!({ "spec": { "template": image_of("web:2") } })).await?;
    cluster
        .until("the recreation is through", || async {
            let pods = cluster.api::<Pod>().list(&ListParams::default()).await?;
            let images: std::collections::BTreeSet<_> = pods.iter().filter_map(pod_image).collect();
            if images.len() > 1 {
                return Err(Failure::new(format!("pods of two templates: {images:?}")));
            }
            look_complete(cluster, 3).await
        })
        .await?;
    expect_eq("sets", &sizes(cluster).await?, &BTreeMap::from([("web:1".into(), 0), ("web:2".into(), 3)]))
}

/// A paused Deployment is scaled but not rolled out; resumed, it goes on.
pub(crate) async fn a_paused_one_waits_and_goes_on(cluster: &TestCluster) -> Result<(), Failure> {
    cluster.create(deployment(2, json!({}))).await?;
    until_complete(cluster, 2).await?;
    patch(cluster, json!({ "spec": { "paused": true, "replicas": 3, "template": image_of("web:2") } })).await?;
    until_reason(cluster, "Progressing", "DeploymentPaused").await?;
    cluster
        .until("the old one is scaled", || async {
            let sizes = sizes(cluster).await?;
            Ok(if sizes == BTreeMap::from([("web:1".into(), 3)]) { Ok(()) } else { Err(format!("{sizes:?}")) })
        })
        .await?;
    patch(cluster, json!({ "spec": { "paused": false } })).await?;
    until_complete(cluster, 3).await?;
    expect_eq("sizes", &sizes(cluster).await?, &BTreeMap::from([("web:1".into(), 0), ("web:2".into(), 3)]))
}

/// `kubectl rollout undo` puts the old template back: the old ReplicaSet comes back with a new revision, and remembers.
pub(crate) async fn going_back_takes_the_old_replica_set(cluster: &TestCluster) -> Result<(), Failure> {
    cluster.create(deployment(2, json!({}))).await?;
    until_complete(cluster, 2).await?;
    for image in ["web:2", "web:1"] {
        patch(cluster, json!({ "spec": { "template": image_of(image) } })).await?;
        until_complete(cluster, 2).await?;
    }
    let sets = sets(cluster).await?;
    let told: Vec<_> =
        sets.iter().map(|set| (image_in(set), annotation(set, REVISION), annotation(set, HISTORY))).collect();
    let row = |image: &str, revision: &str, history: &str| (image.into(), revision.into(), history.into());
    expect_eq("sets", &told, &vec![row("web:1", "3", "1"), row("web:2", "2", "")])
}

/// Clients from before `kubectl rollout undo` ask for it with an annotation.
pub(crate) async fn an_annotation_rolls_back(cluster: &TestCluster) -> Result<(), Failure> {
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
pub(crate) async fn history_beyond_its_limit_is_forgotten(cluster: &TestCluster) -> Result<(), Failure> {
    cluster.create(deployment(1, json!({ "revisionHistoryLimit": 1 }))).await?;
    until_complete(cluster, 1).await?;
    for image in ["web:2", "web:3", "web:4"] {
        patch(cluster, json!({ "spec": { "template": image_of(image) } })).await?;
        until_complete(cluster, 1).await?;
    }
    let want = BTreeMap::from([("web:3".to_owned(), 0), ("web:4".to_owned(), 1)]);
    cluster
        .until("one old one is left", || async {
            let sizes = sizes(cluster).await?;
            Ok(if sizes == want { Ok(()) } else { Err(format!("{sizes:?}")) })
        })
        .await
}

/// A roll-out whose pods never become ready times out, says so, and leaves what works alone; pods that come late mend it.
pub(crate) async fn a_roll_out_that_gets_nowhere_says_so(cluster: &TestCluster) -> Result<(), Failure> {
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
pub(crate) async fn a_replica_set_with_another_hash_is_kept(cluster: &TestCluster) -> Result<(), Failure> {
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
    let web = cluster
        .until("the Deployment has seen it", || async {
            let found = cluster.api::<Deployment>().get("web").await?;
            let revision = found.metadata.annotations.clone().unwrap_or_default().remove(REVISION);
            Ok(if revision.as_deref() == Some("7") { Ok(web.clone()) } else { Err(format!("{revision:?}")) })
        })
        .await?;
    let sets = sets(cluster).await?;
    expect_eq("sets", &sets.len(), &1)?;
    expect_eq("uid", &sets[0].metadata.uid, &set.metadata.uid)?;
    let owner = sets[0].metadata.owner_references.clone().unwrap_or_default();
    expect_eq("owner", &owner.first().map(|owner| &owner.uid), &web.metadata.uid.as_ref())
}

/// A ReplicaSet that is relabelled is let go; its name stays taken, so the next one has another.
pub(crate) async fn a_name_that_is_taken_makes_another(cluster: &TestCluster) -> Result<(), Failure> {
    cluster.create(deployment(1, json!({}))).await?;
    until_complete(cluster, 1).await?;
    let name = sets(cluster).await?[0].metadata.name.clone().unwrap_or_default();
    let relabel = json!({ "metadata": { "labels": { "app": "other" } } });
    cluster.api::<ReplicaSet>().patch(&name, &PatchParams::default(), &Patch::Merge(relabel)).await?;
    cluster
        .until("another one in its place", || async {
            let sets = sets(cluster).await?;
            let owned = |set: &&ReplicaSet| set.metadata.owner_references.is_some();
            let names: Vec<_> = sets.iter().filter(owned).filter_map(|set| set.metadata.name.clone()).collect();
            Ok(if names.len() == 1 && names[0] != name { Ok(()) } else { Err(format!("{names:?}")) })
        })
        .await?;
    let web = until_complete(cluster, 1).await?;
    expect_eq("collisions", &web.status.and_then(|status| status.collision_count), &Some(1))?;
    let let_go = cluster.api::<ReplicaSet>().get(&name).await?;
    expect_eq("owners of the one that was let go", &let_go.metadata.owner_references.unwrap_or_default().len(), &0)
}

/// Scaling in the middle of a roll-out that hangs scales both ReplicaSets.
pub(crate) async fn scaling_in_the_middle_is_proportional(cluster: &TestCluster) -> Result<(), Failure> {
    let rolling = json!({ "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 2, "maxUnavailable": 2 } });
    cluster.create(deployment(6, json!({ "strategy": rolling, "progressDeadlineSeconds": NO_DEADLINE }))).await?;
    cluster
        .until("the first one", || async { Ok(sets(cluster).await?.pop().ok_or_else(|| "none".to_owned())) })
        .await?;
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
    cluster
        .until(&format!("{want} ReplicaSets"), || async {
            let sets = sets(cluster).await?;
            let selectors = || sets.iter().map(|set| set.spec.template.as_ref()?.spec.as_ref()?.node_selector.clone());
            Ok(if sets.len() == want { Ok(()) } else { Err(format!("{:?}", selectors().collect::<Vec<_>>())) })
        })
        .await
}

pub(crate) async fn until_sizes<const N: usize>(cluster: &TestCluster, want: [(&str, i32); N]) -> Result<(), Failure> {
    let want: BTreeMap<_, _> = want.into_iter().map(|(image, size)| (image.to_owned(), size)).collect();
    cluster
        .until(&format!("sizes {want:?}"), || async {
            let sizes = sizes(cluster).await?;
            Ok(if sizes == want { Ok(()) } else { Err(format!("{sizes:?}")) })
        })
        .await
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

/// What `kubectl rollout status` waits for.
async fn look_complete(cluster: &TestCluster, replicas: i32) -> Result<Result<Deployment, String>, Failure> {
    let web = cluster.api::<Deployment>().get("web").await?;
    let status = web.status.clone().unwrap_or_default();
    let counts = [status.replicas, status.updated_replicas, status.available_replicas].map(Option::unwrap_or_default);
    let complete = status.observed_generation == web.metadata.generation && counts == [replicas; 3];
    Ok(if complete { Ok(web) } else { Err(format!("{status:?}")) })
}

pub(crate) async fn until_complete(cluster: &TestCluster, replicas: i32) -> Result<Deployment, Failure> {
    cluster.until(&format!("{replicas} are updated and available"), || look_complete(cluster, replicas)).await
}

pub(crate) async fn until_reason(cluster: &TestCluster, type_: &str, reason: &str) -> Result<Deployment, Failure> {
    cluster
        .until(&format!("{type_} because of {reason}"), || async {
            let web = cluster.api::<Deployment>().get("web").await?;
            let conditions = web.status.clone().unwrap_or_default().conditions.unwrap_or_default();
            let mut found = conditions.iter().filter(|condition| condition.type_.as_deref() == Some(type_));
            let is_so = found.any(|condition| condition.reason.as_deref() == Some(reason));
            Ok(if is_so { Ok(web) } else { Err(format!("{conditions:?}")) })
        })
        .await
}

/// Waits until there are events of these reasons and texts about the Deployment, all from its controller.
pub(crate) async fn until_events(cluster: &TestCluster, want: &[(&str, &str)]) -> Result<(), Failure> {
    let about = ListParams::default().fields("involvedObject.kind=Deployment,involvedObject.name=web");
    cluster
        .until(&format!("the events {want:?}"), || async {
            let events = cluster.api::<Event>().list(&about).await?.items;
            let texts: Vec<_> = events
                .iter()
                .filter(|event| event.reporting_component.as_deref() == Some("deployment-controller"))
                .map(|event| {
                    (event.reason.as_deref().unwrap_or_default(), event.message.as_deref().unwrap_or_default())
                })
                .collect();
            let all = want.iter().all(|row| texts.contains(row));
            Ok(if all { Ok(()) } else { Err(format!("{texts:?}")) })
        })
        .await
}

pub(crate) fn expect_eq<T: PartialEq + std::fmt::Debug>(what: &str, got: &T, want: &T) -> Result<(), Failure> {
    if got == want { Ok(()) } else { Err(Failure::new(format!("{what}: {got:?} instead of {want:?}"))) }
}
