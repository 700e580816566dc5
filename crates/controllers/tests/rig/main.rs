//! The scenarios on a real kube-apiserver: `cargo xtask k8s test`.

mod alone;
#[path = "../support/child.rs"]
mod child;
mod hostile;
mod own;
#[path = "../scenarios/all.rs"]
mod scenarios;
mod takeover;

use std::time::Duration;

use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;
use steersman_testing::{Failure, TestCluster, objects};

use scenarios::*;

/// How long quiet is expected: this is real time.
pub(crate) const LONG: Duration = Duration::from_secs(8);

macro_rules! on_the_rig {
    ($($module:ident :: $scenario:ident on $cluster:path),* $(,)?) => {$(
        #[tokio::test]
        async fn $scenario() -> Result<(), Failure> {
            let cluster = $cluster().start_on_rig().await?;
            $module::$scenario(&cluster).await?;
            cluster.stop().await
        }
    )*};
}

table::scenarios!(on_the_rig);

/// Makes the server refuse pods, or take them again: what these scenarios make is not restricted enough.
async fn refuse_pods(cluster: &TestCluster, refuse: bool) -> Result<(), Failure> {
    let level = if refuse { "restricted" } else { "privileged" };
    let patch = json!({ "metadata": { "labels": { "pod-security.kubernetes.io/enforce": level } } });
    let namespaces = namespace::namespaces(cluster);
    namespaces.patch(cluster.namespace(), &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}

/// The key is the server's own here: it accepts what the controller has signed.
#[tokio::test]
async fn the_server_knows_who_has_a_token_from_a_secret() -> Result<(), Failure> {
    let cluster = setup::tokens().start_on_rig().await?;
    cluster.create(ServiceAccount { metadata: objects::named("robot"), ..ServiceAccount::default() }).await?;
    cluster.create(accounts::token_secret("robot-token", "robot", None)).await?;
    let mut data = accounts::until_filled(&cluster, "robot-token").await?.data.unwrap_or_default();
    let token = data.remove("token").map(|token| String::from_utf8_lossy(&token.0).into_owned()).unwrap_or_default();
    let review = TokenReview { spec: TokenReviewSpec { token, audiences: None }, ..TokenReview::default() };
    let review = Api::<TokenReview>::all(cluster.client()).create(&PostParams::default(), &review).await?;
    let status = review.status.unwrap_or_default();
    let user = status.user.unwrap_or_default().username;
    let want = format!("system:serviceaccount:{}:robot", cluster.namespace());
    if status.authenticated != Some(true) || user.as_deref() != Some(&*want) {
        return Err(Failure::new(format!("{user:?}, {:?}", status.error)));
    }
    cluster.stop().await
}
