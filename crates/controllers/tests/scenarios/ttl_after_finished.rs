//! Finished Jobs that are kept for a time.

use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use steersman_testing::objects::{self, ObjectBuilder as _};
use steersman_testing::{Builder, Failure, TestCluster, expect};

use crate::scenarios::cronjob::end;
use crate::scenarios::support::controllers;

scenarios! {
    a_finished_job_is_deleted_with_its_pods_when_its_time_is_over on cluster,
    a_job_without_a_time_to_live_stays_until_it_gets_one on cluster,
    a_job_that_runs_is_not_deleted on cluster,
    a_time_to_live_that_is_raised_counts on cluster,
}

pub(crate) fn cluster() -> Builder {
    TestCluster::builder().controllers(&[controllers::TTL_AFTER_FINISHED, controllers::GARBAGE_COLLECTOR])
}

/// Creates a Job with this time to live.
pub(crate) async fn create(cluster: &TestCluster, name: &str, ttl: Value) -> Result<Job, Failure> {
    cluster.create(objects::job(name).with(json!({ "spec": { "ttlSecondsAfterFinished": ttl } }))).await
}

/// Sets the time to live of a Job.
pub(crate) async fn set_ttl(cluster: &TestCluster, name: &str, ttl: Value) -> Result<(), Failure> {
    let patch = Patch::Merge(json!({ "spec": { "ttlSecondsAfterFinished": ttl } }));
    cluster.api::<Job>().patch(name, &PatchParams::default(), &patch).await?;
    Ok(())
}

/// Zero, and a few seconds; whether they have completed or failed. Their pods go first.
pub(crate) async fn a_finished_job_is_deleted_with_its_pods_when_its_time_is_over(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    let now = create(cluster, "now", json!(0)).await?;
    create(cluster, "soon", json!(3)).await?;
    let pod = objects::pod("of-now").owned_by(&now);
    cluster.create(pod).await?;
    end(cluster, "now", "Complete").await?;
    end(cluster, "soon", "Failed").await?;
    cluster.until_gone::<Job>("now").await?;
    cluster.until_gone::<k8s_openapi::api::core::v1::Pod>("of-now").await?;
    cluster.api::<Job>().get("soon").await?;
    cluster.until_gone::<Job>("soon").await
}

/// A time to live may be given to a Job that has finished long ago.
pub(crate) async fn a_job_without_a_time_to_live_stays_until_it_gets_one(cluster: &TestCluster) -> Result<(), Failure> {
    create(cluster, "sums", Value::Null).await?;
    end(cluster, "sums", "Complete").await?;
    cluster.advance(Duration::from_secs(3)).await;
    cluster.api::<Job>().get("sums").await?;
    set_ttl(cluster, "sums", json!(1)).await?;
    cluster.until_gone::<Job>("sums").await
}

/// However short its time to live is.
pub(crate) async fn a_job_that_runs_is_not_deleted(cluster: &TestCluster) -> Result<(), Failure> {
    create(cluster, "sums", json!(0)).await?;
    cluster.advance(Duration::from_secs(3)).await;
    let job = cluster.api::<Job>().get("sums").await?;
    expect(job.metadata.deletion_timestamp.is_none(), "it is not being deleted", &job.metadata)
}

/// Before it is over.
pub(crate) async fn a_time_to_live_that_is_raised_counts(cluster: &TestCluster) -> Result<(), Failure> {
    create(cluster, "sums", json!(4)).await?;
    end(cluster, "sums", "Complete").await?;
    set_ttl(cluster, "sums", json!(4000)).await?;
    cluster.advance(Duration::from_secs(7)).await;
    let job = cluster.api::<Job>().get("sums").await?;
    expect(job.metadata.deletion_timestamp.is_none(), "it is not being deleted", &job.metadata)?;
    set_ttl(cluster, "sums", json!(0)).await?;
    cluster.until_gone::<Job>("sums").await
}
