//! What a `TestCluster` promises to tests.

use std::time::Duration;

use futures::future::try_join_all;
use http::StatusCode;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use steersman_testing::{Failure, TestCluster, Verb, objects};

#[tokio::test(start_paused = true)]
async fn hundreds_of_clusters_live_in_one_process_and_know_nothing_of_each_other() -> Result<(), Failure> {
    let clusters = try_join_all((0..300).map(|number| async move {
        let cluster = TestCluster::builder().start().await?;
        cluster.create(objects::pod(&format!("pod-{number}"), "web")).await?;
        Ok::<_, Failure>(cluster)
    }))
    .await?;
    for (number, cluster) in clusters.iter().enumerate() {
        let pods = cluster.api::<Pod>().list(&ListParams::default()).await?;
        let names: Vec<_> = pods.items.iter().filter_map(|pod| pod.metadata.name.clone()).collect();
        assert_eq!(names, [format!("pod-{number}")]);
    }
    try_join_all(clusters.into_iter().map(TestCluster::stop)).await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn time_is_the_tests_own() -> Result<(), Failure> {
    let cluster = TestCluster::builder().start().await?;
    let (before, started) = (cluster.clock().now(), tokio::time::Instant::now());
    cluster.advance(Duration::from_secs(86_400)).await;
    let pod = cluster.create(objects::pod("late", "web")).await?;
    assert_eq!(cluster.clock().now().since(before), Duration::from_secs(86_400));
    assert_eq!(started.elapsed(), Duration::from_secs(86_400), "timers and the clock agree");
    let created = pod.metadata.creation_timestamp.map(|time| time.0.as_second());
    assert_eq!(created, Some(cluster.clock().now().unix()), "and so does the server");
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn faults_never_happen_to_the_tests_own_requests() -> Result<(), Failure> {
    let cluster = TestCluster::builder().start().await?;
    cluster.faults().on(Verb::Create, "pods").refuse(StatusCode::INTERNAL_SERVER_ERROR);
    cluster.create(objects::pod("web", "web")).await?;
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_failure_shows_the_world() -> Result<(), Failure> {
    let cluster = TestCluster::builder().start().await?;
    cluster.create(objects::pod("lonely", "web")).await?;
    let never = cluster.until("a miracle", || async { Ok(Err::<(), _>("nothing".to_owned())) }).await;
    let text = format!("{:?}", never.err().ok_or_else(|| Failure::new("there are no miracles"))?);
    assert!(text.contains("never happened: a miracle; seen last: nothing"), "{text}");
    assert!(text.contains("lonely"), "{text}");
    cluster.stop().await
}
