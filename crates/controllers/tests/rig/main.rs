//! The scenarios on a real kube-apiserver: `cargo xtask k8s test`.

#[macro_use]
#[path = "../scenarios/all.rs"]
mod scenarios;

mod broken_apis;
mod gated;
mod hostile;
mod own;
mod signing;
mod takeover;
mod takeover_apis;
mod takeover_nodes;
mod takeover_storage;
mod takeover_workloads;

use std::time::Duration;

use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;
use steersman_testing::{Builder, Failure, TestCluster, objects};

/// How long quiet is expected: this is real time.
pub(crate) const LONG: Duration = Duration::from_secs(8);

macro_rules! on_the_rig {
    ($file:ident::$scenario:ident on $cluster:ident) => {
        on_the_rig! { $file::$scenario $cluster run }
    };
    ($file:ident::$scenario:ident on $cluster:ident alone) => {
        on_the_rig! { $file::$scenario $cluster run_alone }
    };
    ($file:ident::$scenario:ident $cluster:ident $run:ident) => {
        #[tokio::test]
        async fn $scenario() -> Result<(), steersman_testing::Failure> {
            use crate::scenarios::$file;
            crate::$run($file::$cluster(), stringify!($scenario), $file::$scenario).await
        }
    };
}

tests_of_all!(on_the_rig);

/// Runs a scenario on the server that all share.
async fn run(
    cluster: Builder,
    _name: &str,
    scenario: impl AsyncFnOnce(&TestCluster) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let cluster = cluster.start_on_rig().await?;
    scenario(&cluster).await?;
    cluster.stop().await
}

/// Runs a scenario on a server of its own, which serves every API that one of the 49 controllers needs.
async fn run_alone(
    cluster: Builder,
    name: &str,
    scenario: impl AsyncFnOnce(&TestCluster) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let rig = own::start(name).await?;
    let cluster = cluster.start_on(rig.kubeconfig()).await?;
    scenario(&cluster).await?;
    cluster.stop().await
}

/// Makes the server refuse pods, or take them again: what these scenarios make is not restricted enough.
async fn refuse_pods(cluster: &TestCluster, refuse: bool) -> Result<(), Failure> {
    let level = if refuse { "restricted" } else { "privileged" };
    let patch = json!({ "metadata": { "labels": { "pod-security.kubernetes.io/enforce": level } } });
    let namespaces = scenarios::namespace::namespaces(cluster);
    namespaces.patch(cluster.namespace(), &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}

/// The key is the server's own here: it accepts what the controller has signed.
#[tokio::test]
async fn the_server_knows_who_has_a_token_from_a_secret() -> Result<(), Failure> {
    let cluster = scenarios::accounts::tokens().start_on_rig().await?;
    cluster.create(objects::service_account("robot")).await?;
    cluster.create(scenarios::accounts::token_secret("robot-token", "robot", None)).await?;
    let mut data = scenarios::accounts::until_filled(&cluster, "robot-token").await?.data.unwrap_or_default();
    let token = data.remove("token").map(|token| String::from_utf8_lossy(&token.0).into_owned()).unwrap_or_default();
    // The server knows accounts and Secrets from watches of its own, which may be a moment behind.
    let reviews = Api::<TokenReview>::all(cluster.client());
    let reviewed = async || {
        let spec = TokenReviewSpec { token: token.clone(), audiences: None };
        let review = TokenReview { spec, ..TokenReview::default() };
        let status = reviews.create(&PostParams::default(), &review).await?.status.unwrap_or_default();
        Ok((status.user.unwrap_or_default().username, status.error, status.authenticated))
    };
    let want = format!("system:serviceaccount:{}:robot", cluster.namespace());
    cluster.until_eq("user and error", reviewed, (Some(want), None, Some(true))).await?;
    cluster.stop().await
}
