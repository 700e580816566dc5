//! A volume is one claim's, whatever happens to the binder; and many claims find their volumes quickly.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;
use steersman_testing::objects::merged;
use steersman_testing::{Failure, Fault, Faults, TestCluster, Verb};

use crate::quiet;
use crate::scenarios::persistentvolume_binder::{CONTROLLERS, bound_volume, claim, end_claim, end_volume, volume};
use crate::scenarios::support::crash::{Scene, crash_after_each_write};

fn volumes(cluster: &TestCluster) -> Api<PersistentVolume> {
    Api::all(cluster.client())
}

/// Returns phase and claim of each volume, and phase and volume of each claim.
async fn world(cluster: &TestCluster) -> Result<Vec<String>, Failure> {
    let mut seen = Vec::new();
    for volume in volumes(cluster).list(&ListParams::default()).await?.items {
        let claim = volume.spec.and_then(|spec| spec.claim_ref).and_then(|claim| claim.name);
        let phase = volume.status.and_then(|status| status.phase);
        let marks = volume.metadata.annotations.unwrap_or_default();
        seen.push(format!("{:?} {phase:?} {claim:?} {marks:?}", volume.metadata.name));
    }
    for claim in cluster.api::<PersistentVolumeClaim>().list(&ListParams::default()).await?.items {
        let volume = claim.spec.and_then(|spec| spec.volume_name);
        let status = claim.status.unwrap_or_default();
        let marks = claim.metadata.annotations.unwrap_or_default();
        seen.push(format!("{:?} {:?} {volume:?} {:?} {marks:?}", claim.metadata.name, status.phase, status.capacity));
    }
    // The names of volumes begin with that of the test's namespace.
    Ok(seen.into_iter().map(|line| line.replace(cluster.namespace(), "test")).collect())
}

#[tokio::test(start_paused = true)]
async fn a_crash_after_any_write_of_the_binder_changes_nothing() -> Result<(), Failure> {
    let story = async |scene: &Scene<'_>| {
        let cluster = scene.cluster();
        volume(cluster, "small", "1Gi", json!({})).await?;
        let reserved = json!({ "spec": { "claimRef": { "namespace": cluster.namespace(), "name": "mine" } } });
        volume(cluster, "reserved", "1Gi", reserved).await?;
        scene.rest().await?;
        claim(cluster, "mine", json!({})).await?;
        claim(cluster, "data", json!({})).await?;
        scene.rest().await?;
        volume(cluster, "next", "1Gi", json!({})).await?;
        end_claim(cluster, "mine").await?;
        scene.rest().await?;
        claim(cluster, "mine", json!({})).await?;
        Ok(())
    };
    let deaths = crash_after_each_write(TestCluster::builder, CONTROLLERS, story, world).await?;
    assert!(deaths >= 12, "{deaths} writes: there are three bindings, of four writes each");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_volume_is_not_bound_to_a_claim_that_is_gone() -> Result<(), Failure> {
    let faults = Faults::default();
    faults.on(Verb::Watch, "persistentvolumeclaims").happens(Fault::Lag(Duration::from_secs(20)));
    let cluster = TestCluster::builder().controllers(CONTROLLERS).faults(&faults).start().await?;
    claim(&cluster, "data", json!({})).await?;
    cluster.settle().await?;
    end_claim(&cluster, "data").await?;
    // The cache shows the claim for a while; its volume would be released, and perhaps deleted.
    let name = volume(&cluster, "disk", "1Gi", json!({})).await?;
    cluster.advance(Duration::from_secs(60)).await;
    let held = volumes(&cluster).get(&name).await?;
    assert_eq!(held.status.and_then(|status| status.phase).as_deref(), Some("Available"));
    assert!(held.spec.is_some_and(|spec| spec.claim_ref.is_none()));
    end_volume(&cluster, &name).await?;
    quiet(cluster).await
}

#[tokio::test(start_paused = true)]
async fn a_volume_is_not_released_before_the_cache_shows_its_claim() -> Result<(), Failure> {
    let faults = Faults::default();
    faults.on(Verb::Watch, "persistentvolumeclaims").happens(Fault::Lag(Duration::from_secs(20)));
    let cluster = TestCluster::builder().controllers(CONTROLLERS).faults(&faults).start().await?;
    let made = claim(&cluster, "data", json!({})).await?;
    let reference = json!({ "namespace": cluster.namespace(), "name": "data", "uid": made.metadata.uid });
    let name = volume(&cluster, "disk", "1Gi", json!({ "spec": { "claimRef": reference } })).await?;
    cluster.advance(Duration::from_secs(10)).await;
    let phase = volumes(&cluster).get(&name).await?.status.and_then(|status| status.phase);
    assert_ne!(phase.as_deref(), Some("Released"), "the server has its claim");
    assert_eq!(bound_volume(&cluster, "data").await?, name);
    end_claim(&cluster, "data").await?;
    end_volume(&cluster, &name).await?;
    quiet(cluster).await
}

#[tokio::test(start_paused = true)]
async fn a_claim_is_not_lost_before_the_cache_shows_its_volume() -> Result<(), Failure> {
    let faults = Faults::default();
    faults.on(Verb::Watch, "persistentvolumes").happens(Fault::Lag(Duration::from_secs(20)));
    let cluster = TestCluster::builder().controllers(CONTROLLERS).faults(&faults).start().await?;
    // Bound by another manager, and the cache of volumes lags.
    let completed = json!({ "metadata": { "annotations": { "pv.kubernetes.io/bind-completed": "yes" } } });
    let named = json!({ "spec": { "volumeName": format!("{}-disk", cluster.namespace()) } });
    let name = volume(&cluster, "disk", "1Gi", json!({})).await?;
    let made = claim(&cluster, "data", merged(named, completed)).await?;
    let bound =
        json!({ "status": { "phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": { "storage": "1Gi" } } });
    let claims = cluster.api::<PersistentVolumeClaim>();
    claims.patch_status("data", &PatchParams::default(), &Patch::Merge(bound)).await?;
    cluster.advance(Duration::from_secs(10)).await;
    let phase = claims.get("data").await?.status.and_then(|status| status.phase);
    assert_ne!(phase.as_deref(), Some("Lost"), "the server has its volume");
    cluster.settle().await?;
    let reference = volumes(&cluster).get(&name).await?.spec.and_then(|spec| spec.claim_ref);
    assert_eq!(reference.and_then(|claim| claim.uid), made.metadata.uid);
    end_claim(&cluster, "data").await?;
    end_volume(&cluster, &name).await?;
    quiet(cluster).await
}

#[tokio::test(start_paused = true)]
async fn replies_that_are_lost_give_no_claim_two_volumes() -> Result<(), Failure> {
    let faults = Faults::default();
    for resource in ["persistentvolumes", "persistentvolumeclaims"] {
        for at in [2, 5, 8, 11] {
            faults.on(Verb::Update, resource).nth(at).happens(Fault::LoseReply);
        }
        for at in [3, 9, 13] {
            faults
                .on(Verb::Update, resource)
                .nth(at)
                .happens(Fault::DoThenRefuse(http::StatusCode::INTERNAL_SERVER_ERROR));
        }
    }
    let cluster = TestCluster::builder().controllers(CONTROLLERS).faults(&faults).start().await?;
    for at in 0..6 {
        volume(&cluster, &format!("disk-{at}"), "1Gi", json!({})).await?;
        claim(&cluster, &format!("data-{at}"), json!({})).await?;
    }
    for at in 0..6 {
        bound_volume(&cluster, &format!("data-{at}")).await?;
    }
    cluster.faults().heal();
    assert_eq!(one_to_one(&cluster).await?, 6);
    quiet(cluster).await
}

/// Returns the number of claims that are bound to a volume that is bound to them.
async fn one_to_one(cluster: &TestCluster) -> Result<usize, Failure> {
    let volumes = volumes(cluster).list(&ListParams::default()).await?.items.into_iter();
    let owners: BTreeMap<_, _> =
        volumes.filter_map(|volume| Some((volume.metadata.name?, volume.spec?.claim_ref?.uid?))).collect();
    let claims = cluster.api::<PersistentVolumeClaim>().list(&ListParams::default()).await?.items;
    let is_bound = |claim: &PersistentVolumeClaim| {
        let phase = claim.status.as_ref().and_then(|status| status.phase.as_deref());
        let volume = claim.spec.as_ref().and_then(|spec| spec.volume_name.as_ref());
        phase == Some("Bound") && volume.is_some_and(|volume| owners.get(volume) == claim.metadata.uid.as_ref())
    };
    Ok(claims.iter().filter(|claim| is_bound(claim)).count())
}

/// The cost of a binding does not depend on their number. `STEERSMAN_BINDINGS=10000` measures with more than the suite does.
#[tokio::test(start_paused = true)]
async fn many_claims_find_many_volumes_with_few_requests_each() -> Result<(), Failure> {
    const COUNT: usize = 300;
    let count = std::env::var("STEERSMAN_BINDINGS").ok().and_then(|count| count.parse().ok()).unwrap_or(COUNT);
    let cluster = TestCluster::builder().controllers(CONTROLLERS).start().await?;
    for at in 0..count {
        claim(&cluster, &format!("data-{at}"), json!({})).await?;
    }
    for at in 0..count {
        volume(&cluster, &format!("disk-{at}"), "1Gi", json!({})).await?;
    }
    let bound = async || one_to_one(&cluster).await;
    cluster.until_eq("all are bound", bound, count).await?;
    let writes = cluster.done(Verb::Update, "persistentvolumes") + cluster.done(Verb::Update, "persistentvolumeclaims");
    let reads = cluster.done(Verb::Get, "persistentvolumes") + cluster.done(Verb::Get, "persistentvolumeclaims");
    // Available, four writes of a binding, and two reads before them.
    assert!(writes <= 6 * count as u64, "{writes} writes for {count} bindings");
    assert!(reads <= 3 * count as u64, "{reads} reads for {count} bindings");
    quiet(cluster).await
}
