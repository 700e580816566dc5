//! Deletion of namespaces under faults.

use std::time::Duration;

use http::{Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube::client::Body;
use serde_json::{Value, json};
use steersman_controllers::namespace::{self, FIRST_PASS_AFTER};
use steersman_testing::objects::{self, ObjectBuilder as _, PodBuilder as _};
use steersman_testing::{Failure, Fault, TestCluster, Verb};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::scenarios::issues::until_discovery_failure;
use crate::scenarios::namespace::{
    CONTROLLERS, HOLD, conditions, config_map, delete, fill, namespaces, release, reported, until_gone,
};
use crate::scenarios::pod_garbage_collector::names;
use crate::scenarios::support::beside::Beside;
use crate::scenarios::support::crash::{Scene, crash_after_each_write};

async fn until_reported(cluster: &TestCluster, type_: &str, want: [&str; 3]) -> Result<(), Failure> {
    cluster.until_eq(type_, async || reported(cluster, type_).await, want.map(str::to_owned)).await
}

/// A server with a group whose own server is unavailable: as kube-apiserver, it reports the failed discovery.
fn with_broken_group(server: kube::Client, group: &'static str, healed: CancellationToken) -> kube::Client {
    let service = tower::service_fn(move |request: Request<Body>| {
        let server = server.clone();
        let healed = healed.clone();
        async move {
            let is_discovery = request.uri().path() == "/apis";
            let answer = server.send(request).await?;
            if !is_discovery || healed.is_cancelled() {
                return Ok::<_, kube::Error>(answer);
            }
            let (head, body) = answer.into_parts();
            let body = body.collect().await?.to_bytes();
            let mut groups: Value = serde_json::from_slice(&body).map_err(kube::Error::SerdeError)?;
            let items = groups["items"].as_array_mut().expect("aggregated discovery has items");
            let broken = json!({
                "metadata": { "name": group },
                "versions": [{ "version": "v1beta1", "freshness": "Stale" }],
            });
            items.push(broken);
            let mut answer = Response::from_parts(head, Body::from(groups.to_string().into_bytes()));
            answer.headers_mut().remove(http::header::CONTENT_LENGTH);
            Ok(answer)
        }
    });
    kube::Client::new(service, "default")
}

/// Upstream issue 60807: an aggregated API whose server is unavailable blocks the deletion of namespaces. Everything
/// else is deleted at once, the conditions name the failure, and the namespace is deleted within a minute after the API
/// is back, or is removed.
#[tokio::test(start_paused = true)]
async fn issue_60807_failed_discovery_of_one_group_stops_nothing_else_and_is_reported() -> Result<(), Failure> {
    let cluster = TestCluster::builder().start().await?;
    let healed = CancellationToken::new();
    let client = with_broken_group(cluster.client(), "metrics.k8s.io", healed.clone());
    let manager = Beside::start(&cluster, client, CONTROLLERS)?;

    fill(&cluster, 2).await?;
    delete(&cluster).await?;
    until_discovery_failure(&cluster, "metrics.k8s.io/v1beta1").await?;
    let left = cluster.api::<Secret>().list(&Default::default()).await?.items.len();
    assert_eq!((left, names(&cluster).await?.len()), (0, 0), "what can be deleted is");
    assert_eq!(reported(&cluster, "NamespaceContentRemaining").await?[1], "ContentRemoved");

    cluster.advance(Duration::from_secs(600)).await;
    namespaces(&cluster).get(cluster.namespace()).await?;
    healed.cancel();
    let since = Instant::now();
    cluster.advance(Duration::from_secs(30)).await;
    until_gone(&cluster).await?;
    assert!(since.elapsed() <= Duration::from_secs(61), "it took {:?}", since.elapsed());
    manager.stop().await?;
    cluster.stop().await
}

/// A server that refuses one root of discovery, as one that does not know its roles yet.
fn with_refused_root(server: kube::Client, root: &'static str, healed: CancellationToken) -> kube::Client {
    let service = tower::service_fn(move |request: Request<Body>| {
        let server = server.clone();
        let refuses = request.uri().path() == root && !healed.is_cancelled();
        async move {
            if !refuses {
                return server.send(request).await;
            }
            let mut refusal = Response::new(Body::from(b"not yet".to_vec()));
            *refusal.status_mut() = StatusCode::FORBIDDEN;
            Ok(refusal)
        }
    });
    kube::Client::new(service, "default")
}

/// A namespace whose content is not known would be removed, and its content left behind; and without the core group, the
/// network policies of its pods would be deleted before the pods.
#[tokio::test(start_paused = true)]
async fn a_namespace_stays_while_a_root_of_discovery_is_refused() -> Result<(), Failure> {
    for (root, pods_left) in [("/api", 1), ("/apis", 0)] {
        let cluster = TestCluster::builder().start().await?;
        let healed = CancellationToken::new();
        let client = with_refused_root(cluster.client(), root, healed.clone());
        let manager = Beside::start(&cluster, client, CONTROLLERS)?;
        fill(&cluster, 1).await?;
        delete(&cluster).await?;
        until_discovery_failure(&cluster, root).await?;
        cluster.advance(Duration::from_secs(120)).await;
        namespaces(&cluster).get(cluster.namespace()).await?;
        let sets = cluster.api::<ReplicaSet>().list(&Default::default()).await?.items.len();
        assert_eq!((names(&cluster).await?.len(), sets), (pods_left, 1), "{root}");
        healed.cancel();
        cluster.advance(Duration::from_secs(120)).await;
        until_gone(&cluster).await?;
        manager.stop().await?;
        cluster.stop().await?;
    }
    Ok(())
}

/// Upstream treats pods that cannot be listed as absent, and deletes their network policies.
#[tokio::test(start_paused = true)]
async fn pods_that_cannot_be_counted_are_not_taken_for_none() -> Result<(), Failure> {
    let cluster = crate::scenarios::namespace::cluster().start().await?;
    cluster.create(config_map("config")).await?;
    cluster.create(objects::pod("web")).await?;
    cluster.settle().await?;
    cluster.faults().on(Verb::List, "pods").refuse(StatusCode::INTERNAL_SERVER_ERROR);
    delete(&cluster).await?;
    let reported = async || reported(&cluster, "NamespaceDeletionContentFailure").await;
    let is_reported = |reported: &[String; 3]| reported[1] == "ContentDeletionFailed";
    cluster.until_right("it says that it could not be emptied", reported, is_reported).await?;
    cluster.advance(Duration::from_secs(60)).await;
    assert_eq!(
        (names(&cluster).await?.len(), cluster.api::<ConfigMap>().get_opt("config").await?.is_some()),
        (1, true)
    );
    assert!(!conditions(&cluster).await?.iter().any(|said| said.contains(&"ContentRemoved".to_owned())));
    cluster.faults().heal();
    cluster.advance(Duration::from_secs(600)).await;
    until_gone(&cluster).await?;
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn pods_go_first_and_the_rest_when_the_last_one_is_gone() -> Result<(), Failure> {
    let cluster = crate::scenarios::namespace::cluster().start().await?;
    cluster.create(config_map("config")).await?;
    cluster.create(objects::pod("running").on_node("far-away")).await?;
    delete(&cluster).await?;
    let text = "Some resources are remaining: pods. has 1 resource instances";
    until_reported(&cluster, "NamespaceContentRemaining", ["True", "SomeResourcesRemain", text]).await?;
    cluster.advance(Duration::from_secs(10)).await;
    cluster.api::<ConfigMap>().get("config").await?;
    assert_eq!(names(&cluster).await?, ["running"], "it has 30 s to end");

    // The kubelet says that it has ended: the next look would be after 16 s.
    let at_once = kube::api::DeleteParams { grace_period_seconds: Some(0), ..Default::default() };
    cluster.api::<Pod>().delete("running", &at_once).await?;
    let since = Instant::now();
    until_gone(&cluster).await?;
    assert!(since.elapsed() < Duration::from_secs(1), "it took {:?}", since.elapsed());
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_does_not_end_in_its_time_is_reported_as_a_failure() -> Result<(), Failure> {
    let cluster = crate::scenarios::namespace::cluster().start().await?;
    cluster.create(objects::pod("running").on_node("far-away")).await?;
    delete(&cluster).await?;
    cluster.advance(Duration::from_secs(35)).await;
    let text = format!(
        "Failed to delete all resource types, 1 remaining: unexpected items still remain in namespace: {} for gvr: /v1, \
         Resource=pods",
        cluster.namespace()
    );
    until_reported(&cluster, "NamespaceDeletionContentFailure", ["True", "ContentDeletionFailed", &text]).await?;
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_cannot_be_deleted_stops_no_other_and_is_reported() -> Result<(), Failure> {
    let cluster = crate::scenarios::namespace::cluster().start().await?;
    cluster.faults().on(Verb::DeleteCollection, "configmaps").refuse(StatusCode::SERVICE_UNAVAILABLE);
    fill(&cluster, 2).await?;
    delete(&cluster).await?;
    let text = "Failed to delete all resource types, 1 remaining: refused with 503 Service Unavailable, on purpose";
    until_reported(&cluster, "NamespaceDeletionContentFailure", ["True", "ContentDeletionFailed", text]).await?;
    assert_eq!(cluster.api::<Secret>().list(&Default::default()).await?.items.len(), 0, "others are gone");
    cluster.faults().heal();
    cluster.advance(Duration::from_secs(60)).await;
    until_gone(&cluster).await?;
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn where_collections_cannot_be_deleted_objects_are_one_by_one() -> Result<(), Failure> {
    let cluster = crate::scenarios::namespace::cluster().start().await?;
    cluster.faults().on(Verb::DeleteCollection, "configmaps").refuse(StatusCode::METHOD_NOT_ALLOWED);
    cluster.faults().on(Verb::DeleteCollection, "pods").refuse(StatusCode::NOT_FOUND);
    fill(&cluster, 3).await?;
    delete(&cluster).await?;
    until_gone(&cluster).await?;
    cluster.settle().await?;
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn who_was_first_with_a_change_is_no_obstacle() -> Result<(), Failure> {
    let cluster = crate::scenarios::namespace::cluster().start().await?;
    cluster.faults().on(Verb::Update, "namespaces/finalize").next(3).refuse(StatusCode::CONFLICT);
    cluster.faults().on(Verb::Update, "namespaces/status").next(1).refuse(StatusCode::CONFLICT);
    fill(&cluster, 1).await?;
    delete(&cluster).await?;
    until_gone(&cluster).await?;
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_lost_reply_and_a_lagging_cache_change_nothing() -> Result<(), Failure> {
    for (verb, resource) in [
        (Verb::DeleteCollection, "pods"),
        (Verb::DeleteCollection, "secrets"),
        (Verb::Update, "namespaces/status"),
        (Verb::Update, "namespaces/finalize"),
    ] {
        let cluster = crate::scenarios::namespace::cluster().start().await?;
        cluster.faults().on(Verb::Watch, "namespaces").happens(Fault::Lag(Duration::from_secs(2)));
        cluster.faults().on(verb, resource).nth(1).lose_reply();
        fill(&cluster, 2).await?;
        delete(&cluster).await?;
        cluster.advance(Duration::from_secs(10)).await;
        until_gone(&cluster).await?;
        cluster.settle().await?;
        cluster.expect_quiet(Duration::from_secs(600)).await?;
        cluster.stop().await?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn while_others_finish_nothing_is_asked_twice() -> Result<(), Failure> {
    let cluster = crate::scenarios::namespace::cluster().start().await?;
    cluster.create(config_map("held").finalizer(HOLD)).await?;
    delete(&cluster).await?;
    cluster.settle().await?;
    cluster.expect_quiet(Duration::from_secs(600)).await?;
    release::<ConfigMap>(&cluster, "held").await?;
    let since = Instant::now();
    until_gone(&cluster).await?;
    assert!(since.elapsed() <= Duration::from_secs(9), "it is looked at every 8 s: {:?}", since.elapsed());
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn custom_resources_go_too() -> Result<(), Failure> {
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "lamps.example.dev" },
        "spec": {
            "group": "example.dev", "scope": "Namespaced",
            "names": { "plural": "lamps", "singular": "lamp", "kind": "Lamp", "listKind": "LampList" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } },
            }],
        },
    });
    let cluster = TestCluster::builder().define(definition).controllers(CONTROLLERS).start().await?;
    let lamps = format!("/apis/example.dev/v1/namespaces/{}/lamps", cluster.namespace());
    let lamp = json!({
        "apiVersion": "example.dev/v1", "kind": "Lamp", "metadata": { "name": "desk", "finalizers": [HOLD] },
    });
    let create = Request::post(&lamps).body(lamp.to_string().into_bytes()).map_err(kube::Error::HttpError)?;
    cluster.client().request::<Value>(create).await?;
    delete(&cluster).await?;
    let text = "Some resources are remaining: lamps.example.dev has 1 resource instances";
    until_reported(&cluster, "NamespaceContentRemaining", ["True", "SomeResourcesRemain", text]).await?;
    let patch = json!({ "metadata": { "finalizers": null } }).to_string().into_bytes();
    let release = Request::patch(format!("{lamps}/desk")).header("content-type", "application/merge-patch+json");
    cluster.client().request::<Value>(release.body(patch).map_err(kube::Error::HttpError)?).await?;
    until_gone(&cluster).await?;
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn with_several_api_servers_a_deleted_namespace_is_left_alone_first() -> Result<(), Failure> {
    let options = namespace::Options::default().first_pass_after(FIRST_PASS_AFTER);
    let cluster = crate::scenarios::namespace::cluster().options(options).start().await?;
    fill(&cluster, 1).await?;
    cluster.settle().await?;
    delete(&cluster).await?;
    // Even if its last pod goes.
    cluster.delete::<Pod>("pod-0").await?;
    cluster.expect_quiet(FIRST_PASS_AFTER - Duration::from_millis(100)).await?;
    until_gone(&cluster).await?;
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_crash_after_any_write_of_a_namespace_changes_nothing() -> Result<(), Failure> {
    let story = async |scene: &Scene<'_>| {
        let cluster = scene.cluster();
        fill(cluster, 2).await?;
        cluster.create(config_map("held").finalizer(HOLD)).await?;
        delete(cluster).await?;
        scene.rest().await?;
        release::<ConfigMap>(cluster, "held").await?;
        // It is looked at again after a while.
        cluster.advance(Duration::from_secs(10)).await;
        Ok(())
    };
    let world = async |cluster: &TestCluster| {
        let namespace = namespaces(cluster).get_opt(cluster.namespace()).await?;
        Ok(vec![format!("{:?}", namespace.map(|namespace| namespace.status))])
    };
    crash_after_each_write(TestCluster::builder, CONTROLLERS, story, world).await?;
    Ok(())
}
