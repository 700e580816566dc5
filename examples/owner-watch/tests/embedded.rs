//! What a Pod owns, in a test cluster.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use example_owner_watch::add_belongings;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Resource;
use steersman::testing::{Failure, TestCluster, objects};

#[tokio::test(start_paused = true)]
async fn a_pod_is_notified_of_the_config_maps_that_it_owns() -> Result<(), Failure> {
    let seen = Arc::new(Mutex::new(BTreeMap::new()));
    let diary = Arc::clone(&seen);
    let cluster = TestCluster::builder()
        .with(move |manager| {
            let diary = Arc::clone(&diary);
            add_belongings(manager, move |key, owned| {
                diary.lock().unwrap().insert(key.name.to_string(), owned);
            });
        })
        .start()
        .await?;
    let expect = async |want: &[&str]| {
        cluster.settle().await?;
        assert_eq!(seen.lock().unwrap()["web"], want);
        Ok::<(), Failure>(())
    };
    let pod = cluster.create(objects::pod("web")).await?;
    expect(&[]).await?;

    let mut mine = objects::named("mine");
    mine.owner_references = Some(vec![pod.owner_ref(&()).unwrap_or_default()]);
    cluster.create(ConfigMap { metadata: mine, ..ConfigMap::default() }).await?;
    cluster.create(ConfigMap { metadata: objects::named("nobodys"), ..ConfigMap::default() }).await?;
    expect(&["mine"]).await?;

    cluster.delete::<ConfigMap>("mine").await?;
    expect(&[]).await?;
    cluster.stop().await
}
