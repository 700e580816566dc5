//! Discovery and the REST mapper.

use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, StatusCode};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::DeleteParams;
use kube::client::Body;
use steersman_apiserver::ApiServer;
use steersman_base::{ObjectKey, Scope};
use steersman_informer::InformerFactory;
use steersman_runtime::__internal::mapper::{REFRESH_BURST, REFRESH_EVERY};
use steersman_runtime::mapper::{MapperError, RestMapper};
use steersman_testing::{Failure, TestCluster};
use tower::{BoxError, ServiceExt as _};

use crate::support::{cakes, start, started};

async fn define(cluster: &TestCluster, version: &str) -> Result<(), Failure> {
    let definition: CustomResourceDefinition = serde_json::from_value(cakes(version))?;
    kube::Api::all(cluster.client()).create(&kube::api::PostParams::default(), &definition).await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn kinds_names_scopes_and_verbs_are_known() -> Result<(), Failure> {
    let (cluster, _) = start().await?;
    let mapper = cluster.manager().mapper();
    let deployments = mapper.resource_for("apps", None, "Deployment").await?;
    assert_eq!((&*deployments.resource.plural, &*deployments.resource.version), ("deployments", "v1"));
    assert!(deployments.is_namespaced() && deployments.supports(&["delete", "list", "watch"]));
    assert!(deployments.subresource("scale").is_some_and(|scale| scale.kind.2 == "Scale"));
    assert_eq!(mapper.find("no").await?.resource.scope, Scope::Cluster);
    assert_eq!(mapper.find("po").await?.resource.kind, "Pod");
    assert_eq!(mapper.find("deployments.apps").await?.resource, deployments.resource);

    let known = mapper.resources().await?;
    assert!(known.failures().is_empty());
    let deletable = known.supporting(&["delete", "list", "watch"]);
    assert!(deletable.iter().any(|found| found.resource.plural == "pods"));
    assert!(!deletable.iter().any(|found| found.resource.plural == "bindings"));
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_comes_later_is_asked_for_again_but_not_for_ever() -> Result<(), Failure> {
    let (cluster, _) = start().await?;
    let mapper = cluster.manager().mapper();
    let error = mapper.resource_for("example.com", Some("v1"), "Cake").await.unwrap_err();
    assert_eq!(error.to_string(), r#"no matches for kind "Cake" in version "example.com/v1""#);
    define(&cluster, "v1").await?;
    assert_eq!(mapper.resource_for("example.com", None, "Cake").await?.resource.plural, "cakes");
    assert_eq!(mapper.find("ck").await?.singular, "cake");

    let mut known = mapper.subscribe();
    let mut asked = 0;
    for _ in 0..20 {
        known.mark_unchanged();
        let error = mapper.find("nothing").await.unwrap_err();
        assert!(matches!(error, MapperError::NoResource { .. }), "{error}");
        asked += u32::from(known.has_changed().unwrap_or_default());
    }
    assert_eq!(asked, REFRESH_BURST - 1, "one was used above");
    cluster.advance(REFRESH_EVERY).await;
    known.mark_unchanged();
    assert!(mapper.find("nothing").await.is_err());
    assert!(known.has_changed().unwrap_or_default(), "later it is asked for again");
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn concurrent_requests_share_one_answer() -> Result<(), Failure> {
    let (cluster, _) = start().await?;
    let mapper = cluster.manager().mapper();
    let answers = futures::future::try_join_all((0..50).map(|_| mapper.refresh())).await?;
    let same = |left, right| Arc::ptr_eq(left, right);
    assert!(answers[2..].iter().all(|answer| same(answer, &answers[1])), "who waited shares what was asked for after");
    assert!(!same(&answers[0], &answers[1]), "and not what was asked for before");
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_change_of_definitions_is_seen_without_being_asked_for() -> Result<(), Failure> {
    let cluster = TestCluster::builder().start().await?;
    let (cluster, client) = started(cluster).await?;
    let mapper = cluster.manager().mapper().clone();
    let subscriptions = mapper.watch(client.informers()).await?;
    assert_eq!(subscriptions.len(), 2, "definitions and API services");
    client.informers().start();
    client.informers().synced().await?;
    let mut known = mapper.subscribe();
    let began = tokio::time::Instant::now();
    define(&cluster, "v1").await?;
    drop(known.wait_for(|known| known.as_ref().is_some_and(|known| known.find("cakes").is_some())).await?);
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    client
        .objects::<CustomResourceDefinition>()
        .delete(&ObjectKey::cluster("cakes.example.com"), &DeleteParams::default())
        .await?;
    drop(known.wait_for(|known| known.as_ref().is_some_and(|known| known.find("cakes").is_none())).await?);
    drop(subscriptions);
    cluster.stop().await
}

/// A server of which some paths fail, and that may know only the lists of old.
fn broken(server: &ApiServer, path: &'static str, old: bool) -> kube::Client {
    let server = server.clone();
    let service = tower::service_fn(move |mut request: Request<Body>| {
        let server = server.clone();
        async move {
            if request.uri().path() == path {
                let mut refusal = http::Response::new(steersman_apiserver::Body::whole("down".to_owned()));
                *refusal.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
                return Ok::<_, BoxError>(refusal);
            }
            if old {
                request.headers_mut().insert(http::header::ACCEPT, http::HeaderValue::from_static("application/json"));
            }
            Ok(server.oneshot(request).await?)
        }
    });
    kube::Client::new(service, "default")
}

#[tokio::test(start_paused = true)]
async fn discovery_of_old_says_the_same_as_the_aggregated_one() -> Result<(), Failure> {
    let server = ApiServer::new(steersman_apiserver::Options::default());
    let new = RestMapper::new(broken(&server, "", false)).resources().await?;
    let old = RestMapper::new(broken(&server, "", true)).resources().await?;
    let names = |known: &steersman_runtime::mapper::Discovered| -> Vec<_> {
        known
            .resources()
            .map(|found| (found.resource.clone(), found.verbs.clone(), found.short_names.clone()))
            .collect()
    };
    assert!(names(&new).len() > 50);
    assert_eq!(names(&old), names(&new));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_document_that_has_not_changed_is_not_sent_again() -> Result<(), Failure> {
    let server = ApiServer::new(steersman_apiserver::Options::default());
    let sent = Arc::new(Mutex::new(Vec::new()));
    let counted = {
        let server = server.clone();
        let sent = Arc::clone(&sent);
        tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            let sent = Arc::clone(&sent);
            async move {
                let path = request.uri().path().to_owned();
                let response = server.oneshot(request).await?;
                sent.lock().unwrap().push((path, response.status().as_u16()));
                Ok::<_, BoxError>(response)
            }
        })
    };
    let mapper = RestMapper::new(kube::Client::new(counted, "default"));
    let requests = || {
        let mut requests = std::mem::take(&mut *sent.lock().unwrap());
        requests.sort();
        requests
    };
    let both = |core, groups| vec![("/api".to_owned(), core), ("/apis".to_owned(), groups)];
    let first = mapper.refresh().await?;
    assert_eq!(requests(), both(200, 200));
    let second = mapper.refresh().await?;
    assert_eq!(requests(), both(304, 304));
    assert_eq!(first, second);
    assert!(first.find("pods").is_some() && first.find("cakes").is_none());

    let definitions = kube::Api::all(kube::Client::new(server, "default"));
    let definition: CustomResourceDefinition = serde_json::from_value(cakes("v1"))?;
    definitions.create(&kube::api::PostParams::default(), &definition).await?;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let third = mapper.refresh().await?;
    assert_eq!(requests(), both(304, 200));
    assert!(third.find("cakes").is_some());
    assert!(third.groups()[0].name.is_empty() && third.find("pods").is_some(), "the core group is kept");
    assert_eq!(mapper.refresh().await?, third);
    assert_eq!(requests(), both(304, 304));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_group_that_fails_is_reported_and_the_others_are_known() -> Result<(), Failure> {
    let server = ApiServer::new(steersman_apiserver::Options::default());
    let mapper = RestMapper::new(broken(&server, "/apis/batch/v1", true));
    let known = mapper.resources().await?;
    assert!(known.find("pods").is_some() && known.find("deployments").is_some());
    assert_eq!(known.failures().iter().map(|failure| &*failure.what).collect::<Vec<_>>(), ["batch/v1"]);
    let error = mapper.find("jobs").await.unwrap_err().to_string();
    assert!(error.contains("batch/v1: 503"), "{error}");
    let all = RestMapper::new(broken(&server, "/apis", false)).resources().await?;
    assert!(all.find("pods").is_some() && all.find("deployments").is_none());
    assert_eq!(all.failures().len(), 1);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn followers_of_discovery_learn_that_a_root_did_not_answer() -> Result<(), Failure> {
    let server = ApiServer::new(steersman_apiserver::Options::default());
    for root in ["/api", "/apis"] {
        let client = broken(&server, root, false);
        let informers = InformerFactory::new(client.clone());
        let Err(error) = RestMapper::new(client).watch(&informers).await else {
            panic!("{root} did not answer, and nobody noticed");
        };
        assert!(error.to_string().contains(&format!("{root}: 503")), "{error}");
    }
    let client = broken(&server, "", false);
    let informers = InformerFactory::new(client.clone());
    assert_eq!(RestMapper::new(client).watch(&informers).await?.len(), 2, "definitions and APIServices");
    Ok(())
}

/// A server that was just started refuses what it does not know the roles of yet, and a proxy without a server knows no
/// path: neither says that all kinds of the root are gone.
#[tokio::test(start_paused = true)]
async fn a_root_that_is_refused_or_not_found_is_a_failure_and_its_kinds_are_kept() -> Result<(), Failure> {
    for (root, code) in [("/api", 403), ("/api", 404), ("/apis", 403), ("/apis", 404)] {
        let server = ApiServer::new(steersman_apiserver::Options::default());
        let refusal = Arc::new(AtomicU16::new(0));
        let client = {
            let refusal = Arc::clone(&refusal);
            let service = tower::service_fn(move |request: Request<Body>| {
                let server = server.clone();
                let code = StatusCode::from_u16(refusal.load(Ordering::Relaxed)).ok();
                let code = code.filter(|_| request.uri().path() == root);
                async move {
                    let Some(code) = code else { return Ok::<_, BoxError>(server.oneshot(request).await?) };
                    let mut refused = http::Response::new(steersman_apiserver::Body::whole("no".to_owned()));
                    *refused.status_mut() = code;
                    Ok(refused)
                }
            });
            kube::Client::new(service, "default")
        };
        let mapper = RestMapper::new(client);
        let complete = mapper.refresh().await?;
        refusal.store(code, Ordering::Relaxed);
        for round in 0..2 {
            let known = mapper.refresh().await?;
            let failed: Vec<_> = known.failures().iter().map(|failure| &*failure.what).collect();
            assert_eq!(failed, [root], "{code}, round {round}");
            let is_stale = |name| known.find(name).map(|found| found.is_stale);
            let want = (Some(root == "/api"), Some(root == "/apis"));
            assert_eq!((is_stale("pods"), is_stale("deployments")), want, "{root} {code}, round {round}");
        }
        refusal.store(0, Ordering::Relaxed);
        assert_eq!(mapper.refresh().await?, complete, "{root} {code}");
    }
    Ok(())
}
