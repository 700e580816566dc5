//! What a StatefulSet promises.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::core::v1::{Event, PersistentVolumeClaim, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use steersman_controllers::statefulset;
use steersman_testing::objects::{self, ObjectBuilder as _, WorkloadBuilder as _};
use steersman_testing::{Builder, Failure, TestCluster, expect, expect_eq};

use crate::scenarios::support::controllers;

scenarios! {
    pods_have_names_hosts_labels_and_claims_of_their_own on with_nodes,
    a_pod_waits_for_those_before_it on cluster,
    parallel_pods_do_not_wait_for_each_other on cluster,
    a_rolling_update_replaces_the_highest_ordinal_first on with_nodes,
    a_template_that_was_used_before_has_its_old_revision on with_nodes,
    a_partition_holds_lower_ordinals_back on with_nodes,
    max_unavailable_is_never_exceeded on with_nodes,
    on_delete_waits_until_pods_are_deleted on with_nodes,
    scaling_down_deletes_the_highest_ordinals_and_keeps_the_claims on with_nodes,
    claims_are_deleted_with_surplus_pods_if_the_policy_says_so on with_collector,
    a_claim_that_another_controller_owns_is_reported on cluster,
    a_pod_that_has_ended_is_replaced_under_its_name on cluster,
    an_orphan_of_the_right_name_is_adopted_and_gets_its_label on cluster,
    ordinals_start_where_they_should on with_nodes,
    revisions_beyond_the_limit_are_deleted on with_nodes,
    a_pod_becomes_available_when_its_time_has_come on with_nodes,
    issue_67250_an_update_waits_for_a_broken_pod_without_our_gate on with_nodes,
    issue_67250_an_update_replaces_a_broken_pod_with_our_gate on replacing_broken_pods,
}

/// Without nodes: pods become ready when the test says so.
pub(crate) fn cluster() -> Builder {
    TestCluster::builder().controllers(&[controllers::STATEFUL_SET])
}

pub(crate) fn with_nodes() -> Builder {
    cluster().nodes(2)
}

pub(crate) fn with_collector() -> Builder {
    TestCluster::builder().controllers(&[controllers::STATEFUL_SET, controllers::GARBAGE_COLLECTOR]).nodes(2)
}

/// `SteersmanReplaceBrokenStatefulSetPods=true`.
pub(crate) fn replacing_broken_pods() -> Builder {
    with_nodes().options(statefulset::Options::default().replace_broken(true))
}

/// A StatefulSet of `web:1`, with this on top of its spec.
#[allow(clippy::needless_pass_by_value, reason = "`json!` makes values")]
pub(crate) fn set(replicas: i32, spec: Value) -> StatefulSet {
    objects::stateful_set("web").replicas(replicas).image("web:1").with(json!({ "spec": spec }))
}

fn with_claims() -> Value {
    let spec = json!({ "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } });
    json!({ "volumeClaimTemplates": [{ "metadata": { "name": "data" }, "spec": spec }] })
}

fn image_of(image: &str) -> Value {
    json!({ "spec": { "template": { "spec": { "containers": [{ "name": "main", "image": image }] } } } })
}

pub(crate) async fn patch(cluster: &TestCluster, patch: Value) -> Result<(), Failure> {
    cluster.api::<StatefulSet>().patch("web", &PatchParams::default(), &Patch::Strategic(patch)).await?;
    Ok(())
}

pub(crate) async fn roll(cluster: &TestCluster, image: &str) -> Result<(), Failure> {
    patch(cluster, image_of(image)).await
}

/// Name and image of each pod, by name.
pub(crate) async fn images(cluster: &TestCluster) -> Result<BTreeMap<String, String>, Failure> {
    let pods = cluster.api::<Pod>().list(&ListParams::default()).await?;
    let image = |pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.containers[0].image.clone()).unwrap_or_default();
    Ok(pods.items.iter().map(|pod| (pod.metadata.name.clone().unwrap_or_default(), image(pod))).collect())
}

fn of(images: &[(&str, &str)]) -> BTreeMap<String, String> {
    images.iter().map(|(pod, image)| ((*pod).to_owned(), (*image).to_owned())).collect()
}

async fn claims(cluster: &TestCluster) -> Result<Vec<String>, Failure> {
    let claims = cluster.api::<PersistentVolumeClaim>().list(&ListParams::default()).await?;
    let mut names: Vec<_> = claims.items.into_iter().filter_map(|claim| claim.metadata.name).collect();
    names.sort();
    Ok(names)
}

/// Revision numbers and the images in their data.
pub(crate) async fn revisions(cluster: &TestCluster) -> Result<Vec<(i64, String)>, Failure> {
    let revisions = cluster.api::<ControllerRevision>().list(&ListParams::default()).await?;
    let mut reported: Vec<_> = revisions
        .items
        .into_iter()
        .map(|revision| {
            let data = revision.data.0;
            let image = data.pointer("/spec/template/spec/containers/0/image").and_then(Value::as_str);
            (revision.revision.unwrap_or(0), image.unwrap_or_default().to_owned())
        })
        .collect();
    reported.sort();
    Ok(reported)
}

/// Waits until all pods are ready, and of the update revision.
pub(crate) async fn until_complete(cluster: &TestCluster, replicas: i32) -> Result<StatefulSet, Failure> {
    let look = async || Ok(cluster.api::<StatefulSet>().get("web").await?);
    let is_complete = |set: &StatefulSet| {
        let status = set.status.clone().unwrap_or_default();
        let counts = [Some(status.replicas), status.ready_replicas, status.updated_replicas, status.current_replicas];
        counts.iter().all(|count| count.unwrap_or(0) == replicas)
            && status.observed_generation == set.metadata.generation
            && status.current_revision == status.update_revision
    };
    cluster.until_right("all pods are ready and updated", look, is_complete).await?;
    look().await
}

/// Three pods come one after the other, each with what makes it itself; status and events say so.
pub(crate) async fn pods_have_names_hosts_labels_and_claims_of_their_own(cluster: &TestCluster) -> Result<(), Failure> {
    let web = cluster.create(set(3, with_claims())).await?;
    let done = until_complete(cluster, 3).await?;
    let mut pods = cluster.pods_of(&web).list().await?;
    pods.sort_by_key(|pod| pod.metadata.name.clone());
    let status = done.status.unwrap_or_default();
    let revision = status.update_revision.clone().unwrap_or_default();
    for (ordinal, pod) in pods.iter().enumerate() {
        let name = format!("web-{ordinal}");
        let spec = pod.spec.clone().unwrap_or_default();
        let label = |key: &str| pod.metadata.labels.as_ref().and_then(|labels| labels.get(key).cloned());
        expect_eq("name", &pod.metadata.name, &Some(name.clone()))?;
        expect_eq("host", &(spec.hostname, spec.subdomain), &(Some(name.clone()), Some("web".to_owned())))?;
        expect_eq("own name", &label("statefulset.kubernetes.io/pod-name"), &Some(name.clone()))?;
        expect_eq("index", &label("apps.kubernetes.io/pod-index"), &Some(ordinal.to_string()))?;
        expect_eq("revision", &label("controller-revision-hash"), &Some(revision.clone()))?;
        let claimed = spec.volumes.iter().flatten().find_map(|volume| volume.persistent_volume_claim.clone());
        expect_eq("claim", &claimed.map(|claim| claim.claim_name), &Some(format!("data-{name}")))?;
    }
    expect_eq("pods", &pods.len(), &3)?;
    expect_eq(
        "claims",
        &claims(cluster).await?,
        &["data-web-0", "data-web-1", "data-web-2"].map(String::from).to_vec(),
    )?;
    let counts = (status.available_replicas, status.collision_count, status.observed_generation);
    expect_eq("status", &counts, &(Some(3), Some(0), Some(1)))?;
    let reported = |ordinal: usize| {
        [
            format!("Create Claim data-web-{ordinal} Pod web-{ordinal} in StatefulSet web success"),
            format!("Create Pod web-{ordinal} in StatefulSet web successful"),
        ]
    };
    let mut want: Vec<_> = (0..3).flat_map(reported).map(|text| ("SuccessfulCreate".to_owned(), text)).collect();
    want.sort();
    cluster.until_eq("events", || events(cluster), want).await
}

/// The retention policy does not apply to the claim of another, and an event says so, in upstream's words.
pub(crate) async fn a_claim_that_another_controller_owns_is_reported(cluster: &TestCluster) -> Result<(), Failure> {
    let keeper = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "keeper", "uid": "k", "controller": true });
    let claim = json!({
        "metadata": { "name": "data-web-0", "ownerReferences": [keeper] },
        "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } },
    });
    let claim: PersistentVolumeClaim =
        serde_json::from_value(claim).map_err(|error| Failure::new(error.to_string()))?;
    cluster.create(claim).await?;
    let policy = json!({ "persistentVolumeClaimRetentionPolicy": { "whenScaled": "Retain", "whenDeleted": "Delete" } });
    cluster.create(set(1, objects::merged(with_claims(), policy))).await?;
    let text = "PersistentVolumeClaim data-web-0 has a conflicting OwnerReference that acts as a manging \
        controller, the retention policy is ignored for this claim";
    let conflicts = async || {
        let reported = events(cluster).await?.into_iter();
        Ok(reported.filter(|(reason, _)| reason == "ConflictingController").map(|(_, text)| text).collect::<Vec<_>>())
    };
    cluster.until_eq("events", conflicts, vec![text.to_owned()]).await
}

/// Reason and text of the events about the StatefulSet.
pub(crate) async fn events(cluster: &TestCluster) -> Result<Vec<(String, String)>, Failure> {
    let about = ListParams::default().fields("involvedObject.kind=StatefulSet,involvedObject.name=web");
    let events = cluster.api::<Event>().list(&about).await?.items;
    let reported = |event: Event| (event.reason.unwrap_or_default(), event.message.unwrap_or_default());
    let mut reported: Vec<_> = events.into_iter().map(reported).collect();
    reported.sort();
    Ok(reported)
}

/// Each pod is created when the one before it is ready, and not earlier.
pub(crate) async fn a_pod_waits_for_those_before_it(cluster: &TestCluster) -> Result<(), Failure> {
    let web = cluster.create(set(3, json!({}))).await?;
    for count in 1..=3 {
        cluster.pods_of(&web).until_count(count).await?;
        let status = async || Ok(cluster.api::<StatefulSet>().get("web").await?.status.unwrap_or_default().replicas);
        cluster.until_eq("status", status, i32::try_from(count).unwrap_or_default()).await?;
        let names: Vec<_> = images(cluster).await?.into_keys().collect();
        let want: Vec<_> = (0..count).map(|ordinal| format!("web-{ordinal}")).collect();
        expect_eq("pods", &names, &want)?;
        cluster.pods_of(&web).make_ready().await?;
    }
    until_complete(cluster, 3).await.map(drop)
}

/// With `Parallel`, all pods come and go at once.
pub(crate) async fn parallel_pods_do_not_wait_for_each_other(cluster: &TestCluster) -> Result<(), Failure> {
    let web = cluster.create(set(7, json!({ "podManagementPolicy": "Parallel" }))).await?;
    cluster.pods_of(&web).until_count(7).await?;
    patch(cluster, json!({ "spec": { "replicas": 2 } })).await?;
    cluster.pods_of(&web).until_count(2).await?;
    let names: Vec<_> = images(cluster).await?.into_keys().collect();
    expect_eq("what is left", &names, &vec!["web-0".to_owned(), "web-1".to_owned()])
}

/// At every moment, new pods are those of the highest ordinals.
pub(crate) async fn a_rolling_update_replaces_the_highest_ordinal_first(cluster: &TestCluster) -> Result<(), Failure> {
    cluster.create(set(3, json!({}))).await?;
    let before = until_complete(cluster, 3).await?.status.unwrap_or_default().current_revision;
    roll(cluster, "web:2").await?;
    let want = of(&[("web-0", "web:2"), ("web-1", "web:2"), ("web-2", "web:2")]);
    let look = async || {
        let images = images(cluster).await?;
        let is_new = |pod: &str| images.get(pod).is_none_or(|image| image == "web:2");
        let is_ordered = (!is_new("web-0") || is_new("web-1")) && (!is_new("web-1") || is_new("web-2"));
        expect(is_ordered && images.len() >= 2, "one after the other, highest first", &images)?;
        Ok(images)
    };
    cluster.until_eq("all are new", look, want).await?;
    let after = until_complete(cluster, 3).await?.status.unwrap_or_default().current_revision;
    expect(before != after, "the current revision is another", &after)
}

/// A roll-back adds no revision: the old one becomes the newest.
pub(crate) async fn a_template_that_was_used_before_has_its_old_revision(cluster: &TestCluster) -> Result<(), Failure> {
    cluster.create(set(1, json!({}))).await?;
    let first = until_complete(cluster, 1).await?.status.unwrap_or_default().update_revision;
    roll(cluster, "web:2").await?;
    until_complete(cluster, 1).await?;
    expect_eq("two", &revisions(cluster).await?, &vec![(1, "web:1".to_owned()), (2, "web:2".to_owned())])?;
    roll(cluster, "web:1").await?;
    cluster.until_eq("the old pod is back", || images(cluster), of(&[("web-0", "web:1")])).await?;
    let last = until_complete(cluster, 1).await?.status.unwrap_or_default().update_revision;
    expect_eq("the old name", &last, &first)?;
    expect_eq("renumbered", &revisions(cluster).await?, &vec![(2, "web:2".to_owned()), (3, "web:1".to_owned())])
}

/// Ordinals below the partition keep the current revision, also when their pods are created again.
pub(crate) async fn a_partition_holds_lower_ordinals_back(cluster: &TestCluster) -> Result<(), Failure> {
    let strategy = json!({ "type": "RollingUpdate", "rollingUpdate": { "partition": 2 } });
    cluster.create(set(3, json!({ "updateStrategy": strategy }))).await?;
    until_complete(cluster, 3).await?;
    roll(cluster, "web:2").await?;
    let want = of(&[("web-0", "web:1"), ("web-1", "web:1"), ("web-2", "web:2")]);
    let counts = async || {
        let status = cluster.api::<StatefulSet>().get("web").await?.status.unwrap_or_default();
        Ok((status.ready_replicas, status.updated_replicas, status.current_replicas))
    };
    cluster.until_eq("one is new", || images(cluster), want.clone()).await?;
    cluster.until_eq("counts", counts, (Some(3), Some(1), Some(2))).await?;
    let uid = async || Ok(cluster.api::<Pod>().get_opt("web-1").await?.and_then(|pod| pod.metadata.uid));
    let before = uid().await?;
    cluster.delete::<Pod>("web-1").await?;
    cluster.until_right("another web-1", uid, |now| now.is_some() && *now != before).await?;
    cluster.until_eq("still of the current revision", || images(cluster), want).await?;
    cluster.until_eq("counts again", counts, (Some(3), Some(1), Some(2))).await?;
    patch(cluster, json!({ "spec": { "updateStrategy": { "rollingUpdate": { "partition": 0 } } } })).await?;
    until_complete(cluster, 3).await.map(drop)
}

/// Two of five may be missing, and never more are.
pub(crate) async fn max_unavailable_is_never_exceeded(cluster: &TestCluster) -> Result<(), Failure> {
    for (round, policy) in ["OrderedReady", "Parallel"].into_iter().enumerate() {
        let strategy = json!({ "type": "RollingUpdate", "rollingUpdate": { "maxUnavailable": "40%" } });
        cluster.create(set(5, json!({ "updateStrategy": strategy, "podManagementPolicy": policy }))).await?;
        until_complete(cluster, 5).await?;
        roll(cluster, "web:2").await?;
        let look = async || {
            let pods = cluster.api::<Pod>().list(&ListParams::default()).await?.items;
            let is_ready = |pod: &&Pod| {
                let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
                pod.metadata.deletion_timestamp.is_none()
                    && conditions.into_iter().any(|held| held.type_ == "Ready" && held.status == "True")
            };
            let ready = pods.iter().filter(is_ready).count();
            expect(ready >= 3, "ready pods", &(round, ready))?;
            images(cluster).await
        };
        let is_done = |images: &BTreeMap<String, String>| images.len() == 5 && images.values().all(|it| it == "web:2");
        cluster.until_right("all are new", look, is_done).await?;
        until_complete(cluster, 5).await?;
        patch(cluster, json!({ "spec": { "replicas": 0 } })).await?;
        cluster.until_eq("none is left", || images(cluster), BTreeMap::new()).await?;
        cluster.delete::<StatefulSet>("web").await?;
        cluster.until_gone::<StatefulSet>("web").await?;
        cluster.api::<ControllerRevision>().delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
    }
    Ok(())
}

/// With `OnDelete`, a new template concerns only pods that are deleted by others.
pub(crate) async fn on_delete_waits_until_pods_are_deleted(cluster: &TestCluster) -> Result<(), Failure> {
    cluster.create(set(2, json!({ "updateStrategy": { "type": "OnDelete" } }))).await?;
    until_complete(cluster, 2).await?;
    roll(cluster, "web:2").await?;
    let updated = async || {
        let status = cluster.api::<StatefulSet>().get("web").await?.status.unwrap_or_default();
        Ok((status.observed_generation, status.updated_replicas.unwrap_or(0)))
    };
    cluster.until_eq("it is seen", updated, (Some(2), 0)).await?;
    expect_eq("nothing changes", &images(cluster).await?, &of(&[("web-0", "web:1"), ("web-1", "web:1")]))?;
    cluster.delete::<Pod>("web-0").await?;
    let want = of(&[("web-0", "web:2"), ("web-1", "web:1")]);
    cluster.until_eq("the deleted one is new", || images(cluster), want).await?;
    cluster.until_eq("status", updated, (Some(2), 1)).await
}

/// The highest ordinals go; their claims stay, and serve the pods that come again.
pub(crate) async fn scaling_down_deletes_the_highest_ordinals_and_keeps_the_claims(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    cluster.create(set(3, with_claims())).await?;
    until_complete(cluster, 3).await?;
    patch(cluster, json!({ "spec": { "replicas": 1 } })).await?;
    cluster.until_eq("one is left", || images(cluster), of(&[("web-0", "web:1")])).await?;
    until_complete(cluster, 1).await?;
    expect_eq("claims", &claims(cluster).await?.len(), &3)?;
    patch(cluster, json!({ "spec": { "replicas": 2 } })).await?;
    until_complete(cluster, 2).await?;
    expect_eq("claims", &claims(cluster).await?.len(), &3)
}

/// A surplus pod's claim is deleted with it; the others belong to the StatefulSet.
pub(crate) async fn claims_are_deleted_with_surplus_pods_if_the_policy_says_so(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    let policy = json!({ "persistentVolumeClaimRetentionPolicy": { "whenScaled": "Delete", "whenDeleted": "Delete" } });
    let web = cluster.create(set(2, objects::merged(with_claims(), policy))).await?;
    until_complete(cluster, 2).await?;
    let owners = async || {
        let claims = cluster.api::<PersistentVolumeClaim>().list(&ListParams::default()).await?.items;
        let owner = |claim: PersistentVolumeClaim| {
            // Nothing removes the finalizer here.
            let owners = claim.metadata.owner_references.unwrap_or_default();
            let kinds: Vec<_> = owners.into_iter().map(|owner| format!("{} {}", owner.kind, owner.name)).collect();
            (claim.metadata.name.unwrap_or_default(), kinds.join(","), claim.metadata.deletion_timestamp.is_some())
        };
        Ok(claims.into_iter().map(owner).collect::<Vec<_>>())
    };
    let of_set = |name: &str| (name.to_owned(), "StatefulSet web".to_owned(), false);
    cluster.until_eq("owners", owners, vec![of_set("data-web-0"), of_set("data-web-1")]).await?;
    patch(cluster, json!({ "spec": { "replicas": 1 } })).await?;
    cluster.pods_of(&web).until_count(1).await?;
    let is_deleted = |held: &Vec<(String, String, bool)>| {
        let other = held.iter().find(|(name, ..)| name == "data-web-1");
        held.contains(&of_set("data-web-0")) && other.is_none_or(|(.., is_terminating)| *is_terminating)
    };
    cluster.until_right("the claim goes with its pod", owners, is_deleted).await?;
    let no_finalizers = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    let all = cluster.api::<PersistentVolumeClaim>();
    if all.get_opt("data-web-1").await?.is_some() {
        all.patch("data-web-1", &PatchParams::default(), &no_finalizers).await?;
    }
    cluster.until_gone::<PersistentVolumeClaim>("data-web-1").await
}

/// A failed or evicted pod is deleted, and comes again.
pub(crate) async fn a_pod_that_has_ended_is_replaced_under_its_name(cluster: &TestCluster) -> Result<(), Failure> {
    let web = cluster.create(set(1, json!({}))).await?;
    for phase in ["Failed", "Succeeded"] {
        let pods = cluster.pods_of(&web).until_count(1).await?;
        let before = pods[0].metadata.uid.clone();
        let ended = Patch::Merge(json!({ "status": { "phase": phase } }));
        cluster.api::<Pod>().patch_status("web-0", &PatchParams::default(), &ended).await?;
        let uid = async || Ok(cluster.api::<Pod>().get_opt("web-0").await?.and_then(|pod| pod.metadata.uid));
        cluster.until_right("another web-0", uid, |now| now.is_some() && *now != before).await?;
    }
    Ok(())
}

/// Names count: `web-0` is adopted and gets its label, `other` is left alone.
pub(crate) async fn an_orphan_of_the_right_name_is_adopted_and_gets_its_label(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    for name in ["web-0", "other"] {
        cluster.create(objects::pod(name).app("web")).await?;
    }
    let web = cluster.create(set(2, json!({}))).await?;
    cluster.pods_of(&web).until_count(1).await?;
    cluster.pods_of(&web).make_ready().await?;
    cluster.pods_of(&web).until_count(2).await?;
    let label = async || {
        let pod = cluster.api::<Pod>().get("web-0").await?;
        Ok(pod.metadata.labels.unwrap_or_default().get("statefulset.kubernetes.io/pod-name").cloned())
    };
    cluster.until_eq("its label", label, Some("web-0".to_owned())).await?;
    let other = cluster.api::<Pod>().get("other").await?;
    expect_eq("the other has no owner", &other.metadata.owner_references.unwrap_or_default().len(), &0)
}

/// The first ordinal moves: pods below it go, others come.
pub(crate) async fn ordinals_start_where_they_should(cluster: &TestCluster) -> Result<(), Failure> {
    cluster.create(set(2, json!({ "ordinals": { "start": 5 } }))).await?;
    until_complete(cluster, 2).await?;
    let names = async || Ok(images(cluster).await?.into_keys().collect::<Vec<_>>());
    expect_eq("names", &names().await?, &vec!["web-5".to_owned(), "web-6".to_owned()])?;
    patch(cluster, json!({ "spec": { "ordinals": { "start": 6 } } })).await?;
    cluster.until_eq("names", names, vec!["web-6".to_owned(), "web-7".to_owned()]).await?;
    until_complete(cluster, 2).await.map(drop)
}

/// Of revisions without pods, as many are kept as the limit says.
pub(crate) async fn revisions_beyond_the_limit_are_deleted(cluster: &TestCluster) -> Result<(), Failure> {
    cluster.create(set(1, json!({ "revisionHistoryLimit": 1 }))).await?;
    for image in ["web:2", "web:3", "web:4"] {
        until_complete(cluster, 1).await?;
        roll(cluster, image).await?;
        cluster.until_eq("the pod is new", || images(cluster), of(&[("web-0", image)])).await?;
    }
    until_complete(cluster, 1).await?;
    let want = vec![(3, "web:3".to_owned()), (4, "web:4".to_owned())];
    cluster.until_eq("revisions", || revisions(cluster), want).await
}

/// A pod that is ready counts as available after `minReadySeconds`, and then the next one comes.
pub(crate) async fn a_pod_becomes_available_when_its_time_has_come(cluster: &TestCluster) -> Result<(), Failure> {
    cluster.create(set(2, json!({ "minReadySeconds": 2 }))).await?;
    let available = async || {
        let status = cluster.api::<StatefulSet>().get("web").await?.status.unwrap_or_default();
        Ok((status.ready_replicas.unwrap_or(0), status.available_replicas.unwrap_or(0)))
    };
    cluster.until_eq("ready, and not available", available, (1, 0)).await?;
    expect_eq("the next one waits", &images(cluster).await?.len(), &1)?;
    cluster.until_eq("available", available, (2, 2)).await
}

/// 67250: as upstream, what was rolled out with a broken image and taken back waits for the broken pod.
pub(crate) async fn issue_67250_an_update_waits_for_a_broken_pod_without_our_gate(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    mend_a_broken_update(cluster).await?;
    let is_observed = async || {
        let set = cluster.api::<StatefulSet>().get("web").await?;
        Ok(set.status.and_then(|status| status.observed_generation) == set.metadata.generation)
    };
    cluster.until_eq("the controller has seen the mended template", is_observed, true).await?;
    expect_eq("the pods", &images(cluster).await?, &of(&[("web-0", "web:1"), ("web-1", "web:broken")]))
}

/// 67250: with our gate, the broken pod is replaced.
pub(crate) async fn issue_67250_an_update_replaces_a_broken_pod_with_our_gate(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    mend_a_broken_update(cluster).await?;
    until_complete(cluster, 2).await?;
    expect_eq("the pods", &images(cluster).await?, &of(&[("web-0", "web:3"), ("web-1", "web:3")]))
}

/// Rolls out pods that never become ready, and then a template that works.
async fn mend_a_broken_update(cluster: &TestCluster) -> Result<(), Failure> {
    const NEVER_READY: &str = "nodes.steersman.dev/never-ready";
    cluster.create(set(2, json!({}))).await?;
    until_complete(cluster, 2).await?;
    let template = |image: &str, never_ready: Value| {
        let annotations = json!({ "annotations": { NEVER_READY: never_ready } });
        let spec = json!({ "containers": [{ "name": "main", "image": image }] });
        json!({ "spec": { "template": { "metadata": annotations, "spec": spec } } })
    };
    patch(cluster, template("web:broken", json!("true"))).await?;
    let broken = of(&[("web-0", "web:1"), ("web-1", "web:broken")]);
    cluster.until_eq("one pod is broken", || images(cluster), broken).await?;
    patch(cluster, template("web:3", Value::Null)).await
}
