//! A claim, a volume or a class is not released on the word of a stale cache.

use std::time::Duration;

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::VolumeAttributesClass;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::json;
use steersman_testing::objects::{self, ObjectBuilder as _, PodBuilder as _};
use steersman_testing::{Failure, Fault, Faults, TestCluster, Verb};

use crate::quiet;
use crate::scenarios::protection::{CONTROLLERS, claim, end, pod_with};
use crate::scenarios::support::crash::{Scene, crash_after_each_write};

#[tokio::test(start_paused = true)]
async fn a_claim_stays_if_the_server_has_a_pod_of_it_that_the_cache_has_not() -> Result<(), Failure> {
    let faults = Faults::default();
    faults.on(Verb::Watch, "pods").happens(Fault::Lag(Duration::from_secs(20)));
    let cluster = TestCluster::builder().controllers(CONTROLLERS).faults(&faults).start().await?;
    cluster.create(claim("data")).await?;
    cluster.settle().await?;
    cluster.create(pod_with("web", "data").on_node("somewhere")).await?;
    cluster.delete::<PersistentVolumeClaim>("data").await?;
    cluster.advance(Duration::from_secs(10)).await;
    cluster.api::<PersistentVolumeClaim>().get("data").await?;
    // It ends before the cache has ever shown it.
    end(&cluster, "web").await?;
    cluster.until_gone::<PersistentVolumeClaim>("data").await?;
    quiet(cluster).await
}

#[tokio::test(start_paused = true)]
async fn one_list_of_pods_serves_all_claims_of_a_namespace() -> Result<(), Failure> {
    const CLAIMS: usize = 50;
    let cluster = TestCluster::builder().controllers(CONTROLLERS).start().await?;
    for at in 0..CLAIMS {
        cluster.create(claim(&format!("data-{at}")).finalizer("example.com/hold")).await?;
    }
    cluster.create(pod_with("web", "data-7").on_node("somewhere")).await?;
    cluster.settle().await?;
    let lists = cluster.done(Verb::List, "pods");
    cluster.faults().on(Verb::List, "pods").nth(1).delay(Duration::from_secs(5));
    cluster.api::<PersistentVolumeClaim>().delete_collection(&DeleteParams::default(), &Default::default()).await?;
    cluster.settle().await?;
    let lists = cluster.done(Verb::List, "pods") - lists;
    assert!(lists <= 3, "{lists} lists for {CLAIMS} claims");
    let claims = cluster.api::<PersistentVolumeClaim>().list(&Default::default()).await?.items;
    let protected = |claim: &PersistentVolumeClaim| claim.metadata.finalizers.as_ref().is_some_and(|all| all.len() > 1);
    let protected: Vec<_> = claims.iter().filter(|claim| protected(claim)).collect();
    assert_eq!(protected.len(), 1, "only the pod's own is kept: {protected:?}");
    quiet(cluster).await
}

#[tokio::test(start_paused = true)]
async fn a_class_stays_if_the_server_has_a_claim_of_it_that_the_cache_has_not() -> Result<(), Failure> {
    let faults = Faults::default();
    faults.on(Verb::Watch, "persistentvolumeclaims").happens(Fault::Lag(Duration::from_secs(20)));
    let cluster = TestCluster::builder().controllers(CONTROLLERS).faults(&faults).start().await?;
    let classes: Api<VolumeAttributesClass> = Api::all(cluster.client());
    let gold = VolumeAttributesClass {
        metadata: objects::named("gold"),
        driver_name: "csi.example.com".into(),
        parameters: Some([("iops".to_owned(), "100".to_owned())].into()),
    };
    classes.create(&PostParams::default(), &gold).await?;
    cluster.settle().await?;
    cluster.create(claim("data").with(json!({ "spec": { "volumeAttributesClassName": "gold" } }))).await?;
    classes.delete("gold", &DeleteParams::default()).await?;
    cluster.advance(Duration::from_secs(10)).await;
    classes.get("gold").await?;
    cluster.delete::<PersistentVolumeClaim>("data").await?;
    let exists = async || Ok(classes.get_opt("gold").await?.is_some());
    cluster.until_eq("the class goes", exists, false).await?;
    quiet(cluster).await
}

#[tokio::test(start_paused = true)]
async fn a_crash_after_any_write_of_the_protection_changes_nothing() -> Result<(), Failure> {
    let story = async |scene: &Scene<'_>| {
        let cluster = scene.cluster();
        for name in ["used", "free"] {
            cluster.create(claim(name)).await?;
        }
        cluster.create(pod_with("web", "used").on_node("somewhere")).await?;
        scene.rest().await?;
        for name in ["used", "free"] {
            cluster.delete::<PersistentVolumeClaim>(name).await?;
        }
        scene.rest().await?;
        cluster.api::<Pod>().delete("web", &DeleteParams::default().grace_period(0)).await?;
        cluster.create(claim("next")).await?;
        Ok(())
    };
    let world = async |cluster: &TestCluster| {
        let claims = cluster.api::<PersistentVolumeClaim>().list(&Default::default()).await?.items.into_iter();
        Ok(claims.map(|claim| format!("{:?} {:?}", claim.metadata.name, claim.metadata.finalizers)).collect())
    };
    crash_after_each_write(TestCluster::builder, CONTROLLERS, story, world).await?;
    Ok(())
}
