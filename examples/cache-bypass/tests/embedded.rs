//! The example on the embedded cluster, whose caches lag.

use std::collections::BTreeSet;
use std::time::Duration;

use example_cache_bypass::{NUMBERED, add_numbering, keep_secrets_out, number};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::ListParams;
use serde_json::json;
use steersman::testing::{Failure, Fault, Faults, TestCluster, Verb};

#[tokio::test(start_paused = true)]
async fn every_object_gets_a_number_of_its_own_though_the_cache_lags() -> Result<(), Failure> {
    let faults = Faults::default();
    faults.on(Verb::Watch, "configmaps").happens(Fault::Lag(Duration::from_millis(200)));
    let cluster = TestCluster::builder()
        .faults(&faults)
        .manager_options(keep_secrets_out)
        .with(|manager| drop(add_numbering(manager)))
        .start()
        .await?;
    let secret = json!({"metadata": {"name": "signature"}, "stringData": {"key": "secret"}});
    cluster.create(serde_json::from_value::<Secret>(secret)?).await?;
    for name in ["a", "b", "c", "d", "e"] {
        let config = json!({"metadata": {"name": name, "labels": {"numbered": "true"}}});
        cluster.create(serde_json::from_value::<ConfigMap>(config)?).await?;
    }
    let numbers = async || {
        let configs = cluster.api::<ConfigMap>().list(&ListParams::default().labels(NUMBERED)).await?;
        Ok(configs.iter().filter_map(number).collect::<BTreeSet<_>>())
    };
    let numbers = cluster.until_right("five numbers", numbers, |numbers| numbers.len() == 5);
    assert_eq!(numbers.await?, BTreeSet::from([1, 2, 3, 4, 5]));
    let secrets = |running: &steersman::informer::RunningInformer| running.informer.target.resource.plural == "secrets";
    assert!(!cluster.manager().informers().running().iter().any(secrets), "nobody watches Secrets");
    cluster.stop().await
}
