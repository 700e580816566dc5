//! Cached and live reads.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube::api::PostParams;
use steersman_apiserver::ApiServer;
use steersman_base::{Meta, Resource};
use steersman_informer::{FactoryOptions, InformerFactory, Selection, Typed};
use steersman_model::{PodView, View};
use steersman_runtime::client::{CacheMiss, CachedClient, ClientError, ClientOptions, Query};
use steersman_runtime::wait::{WaitError, wait_until};

use steersman_testing::objects::{self, ObjectBuilder as _};
use steersman_testing::{Failure, Fault, TestCluster, Verb};

use crate::support::{CAKES, CONFIG_MAPS, config, datum, key, start, started};

/// How often a resource was listed or watched.
fn watched(client: &CachedClient, resource: &Resource) -> usize {
    client.informers().running().iter().filter(|running| running.informer.target.resource == *resource).count()
}

#[tokio::test(start_paused = true)]
async fn an_informer_starts_with_the_first_read_and_is_shared_by_all() -> Result<(), Failure> {
    let (cluster, client) = start().await?;
    cluster.create(config(cluster.namespace(), "a", &[("x", "1")])).await?;
    assert_eq!(watched(&client, &CONFIG_MAPS), 0, "nobody asked yet");
    let read = client.get::<ConfigMap>(&key(&cluster, "a")).await?;
    assert_eq!(datum(&read, "x").as_deref(), Some("1"));
    let again = cluster.manager().client().get::<ConfigMap>(&key(&cluster, "a")).await?;
    assert!(std::sync::Arc::ptr_eq(&read, &again), "a cached object is shared");
    assert_eq!(watched(&client, &CONFIG_MAPS), 1);
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn what_is_not_there_is_not_found() -> Result<(), Failure> {
    let (cluster, client) = start().await?;
    let missing = key(&cluster, "missing");
    for client in [client.clone(), client.live()] {
        assert!(client.get_opt::<ConfigMap>(&missing).await?.is_none());
        let error = client.get::<ConfigMap>(&missing).await.unwrap_err();
        assert!(error.is_not_found());
        let want = format!("cannot get configmaps {missing}: configmaps \"missing\" not found (404 NotFound)");
        assert_eq!(error.to_string(), want);
    }
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn reads_of_undeclared_kinds_can_be_forbidden() -> Result<(), Failure> {
    let cluster = TestCluster::builder()
        .manager_options(|options| options.client.on_miss = CacheMiss::Forbidden)
        .with(|manager| drop(manager.informers().typed::<ConfigMap>(Selection::everything())))
        .start()
        .await?;
    let (cluster, client) = started(cluster).await?;
    assert!(client.get_opt::<ConfigMap>(&key(&cluster, "a")).await?.is_none(), "config maps are declared");
    let error = client.get::<Secret>(&key(&cluster, "a")).await.unwrap_err();
    assert!(matches!(&error, ClientError::NotCached { resource, .. } if resource.plural == "secrets"), "{error}");
    let error = client.metadata(CONFIG_MAPS).get(&key(&cluster, "a")).await.unwrap_err();
    assert!(matches!(error, ClientError::NotCached { .. }), "another view is another watch");
    assert!(client.live().get_opt::<Secret>(&key(&cluster, "a")).await?.is_none(), "the server can be asked");
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn caches_are_not_read_before_they_are_started() -> Result<(), Failure> {
    let client = kube::Client::new(ApiServer::new(steersman_apiserver::Options::default()), "default");
    let informers = InformerFactory::new(client.clone());
    let client = CachedClient::new(client, informers.clone(), ClientOptions::default());
    let error = client.list::<Pod>(&Query::all()).await.unwrap_err();
    assert!(matches!(error, ClientError::NotStarted { .. }), "{error}");
    informers.start();
    assert!(client.list::<Pod>(&Query::all()).await?.is_empty());
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_cache_that_cannot_be_filled_is_named_with_the_reason() -> Result<(), Failure> {
    let (cluster, client) = start().await?;
    let began = tokio::time::Instant::now();
    let error = client.dynamic(CAKES).get(&key(&cluster, "a")).await.unwrap_err();
    assert!(matches!(error, ClientError::NotSynced(_)), "{error}");
    let text = error.to_string();
    assert!(text.contains("cakes.example.com: ") && text.contains("404"), "{text}");
    assert_eq!(began.elapsed(), ClientOptions::default().synced_within);
    assert!(client.list::<ConfigMap>(&Query::all()).await.is_ok(), "others are not stalled");
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn live_reads_go_round_a_cache_that_lags() -> Result<(), Failure> {
    let (cluster, client) = start().await?;
    cluster.faults().on(Verb::Watch, "configmaps").happens(Fault::Lag(Duration::from_secs(5)));
    assert!(client.list::<ConfigMap>(&Query::namespace(cluster.namespace())).await?.is_empty());
    // Somebody else writes.
    cluster.create(config(cluster.namespace(), "a", &[])).await?;
    assert!(client.get_opt::<ConfigMap>(&key(&cluster, "a")).await?.is_none(), "the cache lags");
    assert!(client.live().get_opt::<ConfigMap>(&key(&cluster, "a")).await?.is_some());
    assert_eq!(client.live().list::<ConfigMap>(&Query::namespace(cluster.namespace())).await?.len(), 1);
    cluster.advance(Duration::from_secs(6)).await;
    assert!(client.get_opt::<ConfigMap>(&key(&cluster, "a")).await?.is_some());
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn kinds_can_be_kept_out_of_the_cache() -> Result<(), Failure> {
    let cluster = TestCluster::builder()
        .manager_options(|options| options.client.never_cached = vec![CONFIG_MAPS])
        .start()
        .await?;
    let (cluster, client) = started(cluster).await?;
    client.objects().create(&config(cluster.namespace(), "a", &[])).await?;
    assert!(client.get::<ConfigMap>(&key(&cluster, "a")).await.is_ok());
    assert_eq!(client.list::<ConfigMap>(&Query::namespace(cluster.namespace())).await?.len(), 1);
    assert_eq!(watched(&client, &CONFIG_MAPS), 0, "nobody watches them");
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_client_reads_its_own_writes_from_a_cache_that_lags() -> Result<(), Failure> {
    for own in [true, false] {
        let cluster = TestCluster::builder()
            .manager_options(move |options| options.client.read_your_writes = own)
            .start()
            .await?;
        let (cluster, client) = started(cluster).await?;
        cluster.faults().on(Verb::Watch, "configmaps").happens(Fault::Lag(Duration::from_secs(5)));
        assert!(client.list::<ConfigMap>(&Query::namespace(cluster.namespace())).await?.is_empty());
        let began = tokio::time::Instant::now();
        client.objects().create(&config(cluster.namespace(), "a", &[("x", "1")])).await?;
        let read = client.get_opt::<ConfigMap>(&key(&cluster, "a")).await?;
        assert_eq!(read.is_some(), own);
        assert_eq!(began.elapsed() >= Duration::from_secs(5), own, "it waited for the cache");
        cluster.stop().await?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_cache_that_never_shows_a_write_is_passed_by() -> Result<(), Failure> {
    let (cluster, client) = start().await?;
    client.list::<ConfigMap>(&Query::all()).await?;
    cluster.faults().on(Verb::Watch, "configmaps").happens(Fault::Lag(Duration::from_secs(3600)));
    // The watch that runs is cut at its timeout; the next one says nothing for an hour.
    cluster.advance(Duration::from_secs(700)).await;
    client.objects().create(&config(cluster.namespace(), "a", &[])).await?;
    let began = tokio::time::Instant::now();
    assert!(client.get_opt::<ConfigMap>(&key(&cluster, "a")).await?.is_some());
    assert_eq!(began.elapsed(), ClientOptions::default().synced_within);
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn one_client_reads_types_views_metadata_and_what_is_learned_at_run_time() -> Result<(), Failure> {
    let cluster = TestCluster::builder().define(crate::support::cakes("v1")).start().await?;
    let (cluster, client) = started(cluster).await?;
    let mut pod = objects::pod("web");
    pod.metadata.annotations = Some([("note".to_owned(), "kept".to_owned())].into());
    cluster.create(pod).await?;
    let web = key(&cluster, "web");
    let pods = Resource::namespaced("", "v1", "pods", "Pod");
    for client in [client.clone(), client.live()] {
        assert_eq!(client.get::<Pod>(&web).await?.object().metadata.name.as_deref(), Some("web"));
        assert_eq!(client.views::<PodView>().get(&web).await?.meta().name, "web");
        let meta: std::sync::Arc<Meta> = client.metadata(pods.clone()).get(&web).await?;
        assert_eq!(meta.annotations.get("note").map(|note| &**note), Some("kept"), "metadata is whole");
        let dynamic = client.dynamic(pods.clone()).get(&web).await?;
        assert_eq!(dynamic.data["spec"]["containers"][0]["name"], "main");
    }
    let mut cake = kube::core::DynamicObject {
        types: None,
        metadata: crate::support::meta(cluster.namespace(), "plum"),
        data: serde_json::json!({"spec": {"layers": 3}}),
    };
    cake = client.dynamic(CAKES).create(&cake).await?;
    let read = client.dynamic(CAKES).get(&key(&cluster, "plum")).await?;
    assert_eq!(read.data["spec"]["layers"], 3);
    assert_eq!(read.metadata.uid, cake.metadata.uid);
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_cache_answers_queries_as_the_server_does() -> Result<(), Failure> {
    let (cluster, client) = start().await?;
    for (name, app) in [("c", "web"), ("a", "web"), ("b", "db")] {
        cluster.create(objects::pod(name).app(app)).await?;
    }
    let here = || Query::namespace(cluster.namespace());
    let queries = [
        (here(), vec!["a", "b", "c"]),
        (here().labels("app=web")?, vec!["a", "c"]),
        (here().labels("app notin (web)")?, vec!["b"]),
        (here().fields("metadata.name=b")?, vec!["b"]),
        (here().selecting(steersman_base::Selector::nothing()), vec![]),
        (Query::namespace("elsewhere"), vec![]),
    ];
    for (query, want) in queries {
        for client in [client.clone(), client.live()] {
            let found = client.list::<Pod>(&query).await?;
            let names: Vec<_> = found.iter().map(|pod| &*pod.meta().name).collect();
            assert_eq!(names, want, "{query:?} {client:?}");
        }
    }
    let by_node = here().fields("spec.nodeName=n")?;
    let error = client.list::<Pod>(&by_node).await.unwrap_err();
    assert!(matches!(&error, ClientError::FieldNotCached { field, .. } if field == "spec.nodeName"), "{error}");
    assert!(client.live().list::<Pod>(&by_node).await?.is_empty());
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_cache_of_one_namespace_says_that_it_holds_no_other() -> Result<(), Failure> {
    let server = kube::Client::new(ApiServer::new(steersman_apiserver::Options::default()), "default");
    let made = kube::Api::<ConfigMap>::namespaced(server.clone(), "default");
    made.create(&PostParams::default(), &config("default", "a", &[])).await?;
    let mut options = FactoryOptions::default();
    options.namespace = Some("default".into());
    let informers = InformerFactory::with_options(server.clone(), options);
    informers.start();
    let client = CachedClient::new(server, informers, ClientOptions::default());
    assert_eq!(client.list::<ConfigMap>(&Query::namespace("default")).await?.len(), 1);
    for query in [Query::all(), Query::namespace("kube-system")] {
        let error = client.list::<ConfigMap>(&query).await.unwrap_err();
        assert!(matches!(error, ClientError::OtherNamespace { .. }), "{error}");
    }
    let elsewhere = steersman_base::ObjectKey::new("kube-system", "a");
    let is_missing = |object: Option<&ConfigMap>| object.is_none();
    let error = wait_until(&client, &elsewhere, is_missing, Duration::from_secs(9)).await.unwrap_err();
    assert!(matches!(error, WaitError::Client(ClientError::OtherNamespace { .. })), "not seen is not missing: {error}");
    // A write elsewhere is not waited for.
    client.objects().create(&config("kube-system", "b", &[])).await?;
    let began = tokio::time::Instant::now();
    let _: std::sync::Arc<Typed<ConfigMap>> = client.get(&steersman_base::ObjectKey::new("default", "a")).await?;
    assert!(began.elapsed() < Duration::from_secs(1));
    Ok(())
}
