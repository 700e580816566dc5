//! Runs the controller in the cluster of your kubeconfig: a Pod gets a ConfigMap, and the controller is notified.

use std::error::Error;
use std::time::Duration;

use example_owner_watch::add_belongings;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Resource};
use serde_json::json;
use steersman::runtime::{Manager, ManagerOptions, connection};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = connection::connect(connection::Options::default()).await?;
    let manager = Manager::new(client.clone(), ManagerOptions::default())?;
    let (report, mut hears) = mpsc::unbounded_channel();
    add_belongings(&manager, move |key, owned| {
        // Nobody listens any more when the program ends.
        let _ = report.send((key.name.to_string(), owned));
    });
    let stop = CancellationToken::new();
    let running = tokio::spawn({
        let manager = manager.clone();
        let stop = stop.clone();
        async move { manager.run(stop).await }
    });

    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let pod: Pod = serde_json::from_value(json!({
        "metadata": { "generateName": "owner-" },
        "spec": { "containers": [{ "name": "main", "image": "example/main:1" }] },
    }))?;
    let pod = pods.create(&PostParams::default(), &pod).await?;
    let name = pod.metadata.name.clone().unwrap_or_default();
    let mut map: ConfigMap = serde_json::from_value(json!({ "metadata": { "name": name } }))?;
    map.metadata.owner_references = pod.owner_ref(&()).map(|owner| vec![owner]);
    maps.create(&PostParams::default(), &map).await?;
    let owned = async {
        loop {
            match hears.recv().await {
                Some((owner, owned)) if owner == name && !owned.is_empty() => return owned,
                Some(_) => {}
                None => return Vec::new(),
            }
        }
    };
    let owned = tokio::time::timeout(PATIENCE, owned).await?;
    println!("a pod owns {} config map", owned.len());

    maps.delete(&name, &DeleteParams::default()).await?;
    pods.delete(&name, &DeleteParams::default().grace_period(0)).await?;
    stop.cancel();
    running.await??;
    Ok(())
}
