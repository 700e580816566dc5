//! Runs the labeller in the cluster of your kubeconfig: a Secret without a team gets one.

use std::error::Error;
use std::time::Duration;

use example_metadata_only::{TEAM, add_labeller};
use k8s_openapi::api::core::v1::Secret;
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
    let manager = Manager::new(client.clone(), ManagerOptions::default())?;
    add_labeller(&manager);
    let stop = CancellationToken::new();
    let running = tokio::spawn({
        let manager = manager.clone();
        let stop = stop.clone();
        async move { manager.run(stop).await }
    });

    let secrets: Api<Secret> = Api::default_namespaced(client);
    let secret: Secret = serde_json::from_value(json!({ "metadata": { "generateName": "orphan-" } }))?;
    let name = secrets.create(&PostParams::default(), &secret).await?.metadata.name.unwrap_or_default();
    let team = async {
        loop {
            let labels = secrets.get(&name).await?.metadata.labels.unwrap_or_default();
            if let Some(team) = labels.get(TEAM) {
                return Ok::<String, kube::Error>(team.clone());
            }
            tokio::time::sleep(POLL_EVERY).await;
        }
    };
    let team = tokio::time::timeout(PATIENCE, team).await??;
    println!("the secret is of team {team}");

    secrets.delete(&name, &DeleteParams::default()).await?;
    stop.cancel();
    running.await??;
    Ok(())
}
