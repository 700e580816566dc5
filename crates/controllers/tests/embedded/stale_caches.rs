//! The garbage collector does not trust caches: a cached state may be stale, and absence of one object says nothing
//! about another.

use std::time::Duration;

use http::StatusCode;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use steersman_testing::objects::{self, WorkloadBuilder as _};
use steersman_testing::{Failure, Fault, Faults, TestCluster, Verb, expect_eq};

use crate::collection::start;
use crate::quiet;
use crate::scenarios::garbage_collector::{
    self as scenarios, CONTROLLERS, config_map, definition_of_cakes, delete, held, owner, until_known,
    until_known_edges, until_owned_by,
};

#[tokio::test(start_paused = true)]
async fn an_object_that_changes_all_the_time_goes_nevertheless() -> Result<(), Failure> {
    let cluster = start().await?;
    let parent = cluster.create(config_map("parent", vec![])).await?;
    cluster.create(config_map("child", vec![owner(&parent)])).await?;
    until_known(&cluster, 2).await?;
    // The read state is stale by the time of the deletion.
    cluster.faults().on(Verb::Delete, "configmaps").nth(1).delay(Duration::from_secs(1));
    delete::<ConfigMap>(&cluster, "parent", DeleteParams::background()).await?;
    cluster.advance(Duration::from_millis(500)).await;
    let patch = serde_json::json!({ "data": { "is": "changed" } });
    let configs = cluster.api::<ConfigMap>();
    configs.patch("child", &PatchParams::default(), &Patch::Merge(patch)).await?;
    cluster.until_gone::<ConfigMap>("child").await?;
    quiet(cluster).await
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_adopted_at_the_last_moment_stays() -> Result<(), Failure> {
    let cluster = start().await?;
    let parent = cluster.create(config_map("parent", vec![])).await?;
    let other = cluster.create(config_map("other", vec![])).await?;
    cluster.create(config_map("child", vec![owner(&parent)])).await?;
    until_known(&cluster, 2).await?;
    cluster.faults().on(Verb::Delete, "configmaps").nth(1).delay(Duration::from_secs(1));
    delete::<ConfigMap>(&cluster, "parent", DeleteParams::background()).await?;
    cluster.advance(Duration::from_millis(500)).await;
    let patch = serde_json::json!({ "metadata": { "ownerReferences": [owner(&parent), owner(&other)] } });
    let configs = cluster.api::<ConfigMap>();
    configs.patch("child", &PatchParams::default(), &Patch::Merge(patch)).await?;
    until_owned_by::<ConfigMap>(&cluster, "child", &[owner(&other)]).await?;
    quiet(cluster).await
}

/// The cached version is the condition of the deletion, not a fact.
#[tokio::test(start_paused = true)]
async fn an_object_that_was_adopted_behind_the_back_of_a_cache_stays() -> Result<(), Failure> {
    let faults = Faults::default();
    faults.on(Verb::Watch, "configmaps").happens(Fault::Lag(Duration::from_secs(5)));
    let cluster = TestCluster::builder().controllers(CONTROLLERS).faults(&faults).start().await?;
    let parent = cluster.create(objects::replica_set("parent").replicas(0)).await?;
    let other = cluster.create(objects::replica_set("other").replicas(0)).await?;
    let free = cluster.create(config_map("free", vec![owner(&parent)])).await?;
    cluster.create(config_map("child", vec![owner(&parent)])).await?;
    until_known_edges(&cluster, 2).await?;
    let patch = serde_json::json!({ "metadata": { "ownerReferences": [owner(&parent), owner(&other)] } });
    let configs = cluster.api::<ConfigMap>();
    configs.patch("child", &PatchParams::default(), &Patch::Merge(patch)).await?;
    let patch = serde_json::json!({ "metadata": { "ownerReferences": null } });
    configs.patch("free", &PatchParams::default(), &Patch::Merge(patch)).await?;
    delete::<ReplicaSet>(&cluster, "parent", DeleteParams::background()).await?;
    until_owned_by::<ConfigMap>(&cluster, "child", &[owner(&other)]).await?;
    cluster.advance(Duration::from_secs(60)).await;
    assert_eq!(configs.get("free").await?.metadata.uid, free.metadata.uid);
    quiet(cluster).await
}

/// A dependent is deleted with the policy of its finalizers, even if they were set a moment before: its own dependents
/// may rely on it.
#[tokio::test(start_paused = true)]
async fn finalizers_that_were_set_behind_the_back_of_a_cache_count() -> Result<(), Failure> {
    for (finalizer, bottom_stays) in [("orphan", true), ("foregroundDeletion", false)] {
        let faults = Faults::default();
        faults.on(Verb::Watch, "configmaps").happens(Fault::Lag(Duration::from_secs(5)));
        let cluster = TestCluster::builder().controllers(CONTROLLERS).faults(&faults).start().await?;
        let top = cluster.create(objects::replica_set("top").replicas(0)).await?;
        let middle = cluster.create(config_map("middle", vec![owner(&top)])).await?;
        let bottom = cluster.create(held(config_map("bottom", vec![owner(&middle)]))).await?;
        until_known_edges(&cluster, 2).await?;
        let patch = serde_json::json!({ "metadata": { "finalizers": [finalizer] } });
        let configs = cluster.api::<ConfigMap>();
        configs.patch("middle", &PatchParams::default(), &Patch::Merge(patch)).await?;
        delete::<ReplicaSet>(&cluster, "top", DeleteParams::background()).await?;
        if bottom_stays {
            cluster.until_gone::<ConfigMap>("middle").await?;
            until_owned_by::<ConfigMap>(&cluster, "bottom", &[]).await?;
            expect_eq("who is left behind", &configs.get("bottom").await?.metadata.uid, &bottom.metadata.uid)?;
        } else {
            cluster.advance(Duration::from_secs(60)).await;
            let waits = configs.get("middle").await?.metadata;
            expect_eq("what the middle waits with", &waits.finalizers, &Some(vec![finalizer.to_owned()]))?;
            scenarios::release(&cluster, "bottom").await?;
            cluster.until_gone::<ConfigMap>("middle").await?;
        }
        quiet(cluster).await?;
    }
    Ok(())
}

/// The absence of an owner says nothing about another object of its name, nor about other references to its uid.
#[tokio::test(start_paused = true)]
async fn what_is_known_of_an_owner_holds_for_no_other() -> Result<(), Failure> {
    let cluster = start().await?;
    let before = owner(&cluster.create(config_map("parent", vec![])).await?);
    cluster.create(config_map("child", vec![before.clone()])).await?;
    until_known(&cluster, 2).await?;
    delete::<ConfigMap>(&cluster, "parent", DeleteParams::background()).await?;
    cluster.until_gone::<ConfigMap>("child").await?;
    let again = owner(&cluster.create(config_map("parent", vec![])).await?);
    let elsewhere = objects::namespace("elsewhere");
    Api::<Namespace>::all(cluster.client()).create(&PostParams::default(), &elsewhere).await?;
    let there = Api::<ConfigMap>::namespaced(cluster.client(), "elsewhere");
    there.create(&PostParams::default(), &config_map("of-again", vec![again.clone()])).await?;
    let wrong_kind = |of: &OwnerReference| OwnerReference { kind: "Secret".into(), ..of.clone() };
    let wrong_name = |of: &OwnerReference| OwnerReference { name: "other".into(), ..of.clone() };
    let born = [
        ("of-before", vec![before.clone()], None),
        ("of-a-wrong-kind-before", vec![wrong_kind(&before)], None),
        ("of-a-wrong-kind", vec![wrong_kind(&again)], None),
        ("of-a-wrong-name", vec![wrong_name(&again)], None),
        ("of-both", vec![before.clone(), again.clone()], Some(vec![again.clone()])),
        ("of-again", vec![again.clone()], Some(vec![again.clone()])),
    ];
    for (name, owners, left) in born {
        cluster.create(config_map(name, owners)).await?;
        match left {
            Some(left) => until_owned_by::<ConfigMap>(&cluster, name, &left).await?,
            None => cluster.until_gone::<ConfigMap>(name).await?,
        }
    }
    assert!(there.get_opt("of-again").await?.is_none(), "its owner is in another namespace");
    cluster.advance(Duration::from_secs(60)).await;
    until_owned_by::<ConfigMap>(&cluster, "of-again", &[again]).await?;
    quiet(cluster).await
}

/// An object is checked while it is still known under a version that is not watched any more, and the cache of the new
/// version is syncing.
#[tokio::test(start_paused = true)]
async fn a_look_at_what_is_not_watched_any_more_begins_no_watch() -> Result<(), Failure> {
    let cluster = scenarios::alone().start().await?;
    let parent = cluster.create(config_map("parent", vec![])).await?;
    let cakes = scenarios::cakes(&cluster);
    cakes.create(&PostParams::default(), &scenarios::cake("child", vec![owner(&parent)])).await?;
    until_known(&cluster, 2).await?;
    for verb in [Verb::List, Verb::Watch] {
        cluster.faults().on(verb, "cakes").refuse(StatusCode::INTERNAL_SERVER_ERROR);
    }
    let mut definition = definition_of_cakes();
    let mut newer = definition["spec"]["versions"][0].clone();
    newer["name"] = "v2".into();
    definition["spec"]["versions"][0]["storage"] = false.into();
    let versions = [newer, definition["spec"]["versions"][0].clone()];
    let patch = serde_json::json!({ "spec": { "versions": versions } });
    let definitions = Api::<CustomResourceDefinition>::all(cluster.client());
    definitions.patch("cakes.garbage.example.com", &PatchParams::default(), &Patch::Merge(patch)).await?;
    let watched = |plural: &str| {
        let all = cluster.manager().inspection().informers();
        let resources = all.iter().map(|running| &running.informer.target.resource);
        resources.filter(|resource| resource.plural == plural).map(|it| it.version.to_string()).collect::<Vec<_>>()
    };
    cluster.until_eq("the new version is watched", async || Ok(watched("cakes") == ["v2"]), true).await?;
    delete::<ConfigMap>(&cluster, "parent", DeleteParams::background()).await?;
    cluster.until_eq("the cake is gone", async || Ok(cakes.get_opt("child").await?.is_none()), true).await?;
    // All other new resources start.
    let pies = definition_of_cakes().to_string().replace("cake", "pie").replace("Cake", "Pie");
    definitions.create(&PostParams::default(), &serde_json::from_str(&pies)?).await?;
    cluster.until_eq("pies are watched", async || Ok(watched("pies") == ["v1"]), true).await?;
    assert_eq!(watched("cakes"), ["v2"]);
    cluster.stop().await
}
