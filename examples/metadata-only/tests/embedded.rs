//! The labeller in a test cluster.

use std::time::Duration;

use example_metadata_only::{TEAM, add_labeller};
use k8s_openapi::api::core::v1::Secret;
use steersman::testing::{Failure, TestCluster, objects};

#[tokio::test(start_paused = true)]
async fn every_secret_gets_a_team_once() -> Result<(), Failure> {
    let cluster = TestCluster::builder().with(|manager| drop(add_labeller(manager))).start().await?;
    cluster.create(Secret { metadata: objects::named("orphan"), ..Secret::default() }).await?;
    let mut ours = objects::named("ours");
    ours.labels = Some([(TEAM.to_owned(), "us".to_owned())].into());
    cluster.create(Secret { metadata: ours, ..Secret::default() }).await?;
    cluster.settle().await?;
    for (name, team) in [("orphan", "nobody"), ("ours", "us")] {
        let secret = cluster.api::<Secret>().get(name).await?;
        assert_eq!(secret.metadata.labels.unwrap_or_default()[TEAM], team, "{name}");
    }
    cluster.expect_quiet(Duration::from_secs(600)).await?;
    cluster.stop().await
}
