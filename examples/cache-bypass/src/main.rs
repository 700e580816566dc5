//! Runs the numbering in the cluster of your kubeconfig: three ConfigMaps get three numbers.

use std::collections::BTreeSet;
use std::error::Error;
use std::time::Duration;

use example_cache_bypass::{SIGNATURE, add_numbering, keep_secrets_out, number};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::json;
use steersman::runtime::{Manager, ManagerOptions, connection};
use tokio_util::sync::CancellationToken;

const PATIENCE: Duration = Duration::from_secs(60);
const POLL_EVERY: Duration = Duration::from_millis(50);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = connection::connect(connection::Options::default()).await?;
    let mut options = ManagerOptions::default();
    keep_secrets_out(&mut options);
    let manager = Manager::new(client.clone(), options)?;
    add_numbering(&manager);
    let stop = CancellationToken::new();
    let running = tokio::spawn({
        let manager = manager.clone();
        let stop = stop.clone();
        async move { manager.run(stop).await }
    });

    let secrets: Api<Secret> = Api::default_namespaced(client.clone());
    let secret = json!({ "metadata": { "name": SIGNATURE }, "stringData": { "key": "secret" } });
    secrets.create(&PostParams::default(), &serde_json::from_value(secret)?).await?;
    let configs: Api<ConfigMap> = Api::default_namespaced(client);
    let mut names = Vec::new();
    for _ in 0..3 {
        let config = json!({ "metadata": { "generateName": "numbered-", "labels": { "numbered": "true" } } });
        let made = configs.create(&PostParams::default(), &serde_json::from_value(config)?).await?;
        names.push(made.metadata.name.unwrap_or_default());
    }
    let numbers = async {
        loop {
            let mut numbers = BTreeSet::new();
            for name in &names {
                numbers.extend(number(&configs.get(name).await?));
            }
            if numbers.len() == names.len() {
                return Ok::<usize, kube::Error>(numbers.len());
            }
            tokio::time::sleep(POLL_EVERY).await;
        }
    };
    println!("{} config maps have a number of their own", tokio::time::timeout(PATIENCE, numbers).await??);

    for name in &names {
        configs.delete(name, &DeleteParams::default()).await?;
    }
    secrets.delete(SIGNATURE, &DeleteParams::default()).await?;
    stop.cancel();
    running.await??;
    Ok(())
}
