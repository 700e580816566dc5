//! The client and the REST mapper on a real kube-apiserver: what the embedded one does not have, or may have wrong.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, ServiceAccount};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::DeleteParams;
use kube::core::DynamicObject;
use serde_json::{Value, json};
use steersman_base::{Clock, ObjectKey, Resource};
use steersman_informer::__internal::consistency::Book;
use steersman_informer::resource_of;
use steersman_informer::{InformerFactory, Typed};
use steersman_model::{PodView, View};
use steersman_runtime::client::{
    CachedClient, ClientError, ClientOptions, Ensured, FieldManager, Patch, Query, TokenOptions,
};
use steersman_runtime::events::Recorder;
use steersman_runtime::finalizer::{Event, finalizer};
use steersman_runtime::mapper::RestMapper;
use steersman_runtime::wait::{conditions, wait_until};
use steersman_runtime::{Action, Context, Writer};

use super::{Outcome, PATIENCE, Place};

impl Place {
    fn cached(&self) -> CachedClient {
        let informers = InformerFactory::new(self.client.clone());
        informers.start();
        CachedClient::new(self.client.clone(), informers, ClientOptions::default())
    }

    fn key(&self, name: &str) -> ObjectKey {
        ObjectKey::new(&self.namespace, name)
    }

    fn config(&self, name: &str, data: &[(&str, &str)]) -> ConfigMap {
        let data: BTreeMap<_, _> = data.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let mut config = ConfigMap { data: Some(data), ..ConfigMap::default() };
        config.metadata.namespace = Some(self.namespace.clone());
        config.metadata.name = Some(name.to_owned());
        config
    }
}

fn data(config: &ConfigMap) -> BTreeMap<String, String> {
    config.data.clone().unwrap_or_default()
}

#[tokio::test]
async fn applied_fields_have_managers_who_conflict_unless_forced() -> Outcome {
    let place = Place::new("client-apply").await?;
    let client = place.cached();
    let one = FieldManager::named("one");
    let two = FieldManager::named("two");
    let applied = client.objects().apply(&place.config("a", &[("x", "1"), ("y", "1")]), &one).await?;
    assert_eq!(data(&applied).len(), 2, "apply creates what is not there");

    let theirs = place.config("a", &[("x", "2")]);
    let error = client.objects().apply(&theirs, &two).await.unwrap_err();
    assert!(error.is_conflict(), "{error}");
    let causes =
        error.status().and_then(|status| status.details.clone()).map(|details| details.causes).unwrap_or_default();
    assert!(causes.iter().any(|cause| cause.field == ".data.x" && cause.message.contains("one")), "{causes:?}");
    let forced = client.objects().apply(&theirs, &two.clone().force()).await?;
    assert_eq!(data(&forced), [("x", "2"), ("y", "1")].map(|(name, value)| (name.into(), value.into())).into());

    // What was read back can be applied: managedFields are left out. What is no longer said goes.
    let mut mine = client.get::<ConfigMap>(&place.key("a")).await?.object().clone();
    assert!(mine.metadata.managed_fields.is_some());
    mine.metadata.resource_version = None;
    mine.data = Some([("x".to_owned(), "2".to_owned())].into());
    let applied = client.objects().apply(&mine, &one.force()).await?;
    assert_eq!(data(&applied).keys().collect::<Vec<_>>(), ["x"]);
    let mut managers: Vec<_> =
        applied.metadata.managed_fields.into_iter().flatten().filter_map(|entry| entry.manager).collect();
    // The server sorts them by the second of their last change first.
    managers.sort();
    assert_eq!(managers, ["one", "two"]);
    Ok(())
}

#[tokio::test]
async fn a_client_of_a_real_server_reads_what_it_wrote() -> Outcome {
    let place = Place::new("client-own").await?;
    let client = place.cached();
    client.list::<ConfigMap>(&Query::namespace(&place.namespace)).await?;
    for number in 0..50 {
        let name = format!("c{number}");
        client.objects().create(&place.config(&name, &[])).await?;
        assert!(client.get_opt::<ConfigMap>(&place.key(&name)).await?.is_some(), "{name}");
    }
    for (step, want) in [("1", Ensured::Updated), ("1", Ensured::Unchanged), ("2", Ensured::Updated)] {
        let objects = client.objects();
        let ensured = objects.create_or_patch(place.config("c0", &[]), |config| {
            config.data.get_or_insert_default().insert("step".into(), step.into());
            Ok(())
        });
        assert_eq!(ensured.await?.1, want, "{step}");
    }
    let stale = client.live().get::<ConfigMap>(&place.key("c1")).await?.object().clone();
    let _: ConfigMap = client.objects().patch(&place.key("c1"), Patch::Merge(&json!({"data": {"x": "1"}}))).await?;
    assert!(client.objects().update(&stale).await.is_err_and(|error| error.is_conflict()));
    assert!(
        client.objects().create(&stale).await.is_err_and(|error| !error.is_already_exists()),
        "with a version it is a bad request"
    );
    Ok(())
}

#[tokio::test]
async fn one_pod_is_read_as_type_view_metadata_and_dynamic() -> Outcome {
    let place = Place::new("client-views").await?;
    let client = place.cached();
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": "web", "namespace": place.namespace, "annotations": {"note": "kept"}},
        "spec": {"containers": [{"name": "main", "image": "example/main:1"}]},
    }))?;
    client.objects().create(&pod).await?;
    let web = place.key("web");
    let pods = Resource::namespaced("", "v1", "pods", "Pod");
    for client in [client.clone(), client.live()] {
        assert_eq!(client.get::<Pod>(&web).await?.object().metadata.name.as_deref(), Some("web"));
        // Views are decoded from protobuf by the cache, and from JSON when they are read live.
        assert_eq!(client.views::<PodView>().get(&web).await?.meta().name, "web");
        let meta = client.metadata(pods.clone()).get(&web).await?;
        assert_eq!(meta.annotations.get("note").map(|note| &**note), Some("kept"));
        assert_eq!(client.dynamic(pods.clone()).get(&web).await?.data["spec"]["containers"][0]["name"], "main");
        assert_eq!(client.list::<Pod>(&Query::namespace(&place.namespace)).await?.len(), 1);
    }
    let how = DeleteParams::default().grace_period(0);
    let _ = client.evict(&web, &how).await?;
    assert!(client.live().get_opt::<Pod>(&web).await?.is_none());
    Ok(())
}

#[tokio::test]
async fn scale_status_and_token_of_a_real_server() -> Outcome {
    let place = Place::new("client-parts").await?;
    let client = place.cached();
    let deployment: Deployment = serde_json::from_value(json!({
        "metadata": {"name": "web", "namespace": place.namespace},
        "spec": {
            "replicas": 2, "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "main", "image": "example/main:1"}]},
            },
        },
    }))?;
    client.objects().create(&deployment).await?;
    let deployments = client.objects::<Deployment>();
    let web = place.key("web");
    let mut scale = deployments.scale(&web).await?;
    scale.spec.get_or_insert_default().replicas = Some(5);
    deployments.update_scale(&scale).await?;
    assert!(deployments.update_scale(&scale).await.is_err_and(|error| error.is_conflict()));
    assert_eq!(deployments.set_replicas(&web, 7).await?.spec.and_then(|spec| spec.replicas), Some(7));
    assert_eq!(client.get::<Deployment>(&web).await?.spec.replicas, Some(7));
    let available = json!({"status": {
        "observedGeneration": 9, "conditions": [{"type": "Available", "status": "True"}],
    }});
    let status = deployments.status();
    let (waited, patched) = futures::join!(
        wait_until(&client, &web, conditions::is_deployment_available, PATIENCE),
        status.patch(&web, Patch::Merge(&available)),
    );
    patched?;
    assert!(waited?.is_some());

    let account = client.get::<ServiceAccount>(&place.key("default")).await?;
    let mut options = TokenOptions::default();
    options.expiration_seconds = Some(600);
    let token = client.token(&place.key("default"), &options).await?;
    assert!(token.expires.unix() > 0 && account.object().metadata.uid.is_some());
    options.expiration_seconds = Some(1);
    let error = client.token(&place.key("default"), &options).await;
    assert!(error.as_ref().is_err_and(|error| matches!(error, ClientError::Invalid(_))), "{error:?}");
    Ok(())
}

#[tokio::test]
async fn a_finalizer_holds_an_object_on_a_real_server() -> Outcome {
    let place = Place::new("client-final").await?;
    let client = place.cached();
    let a = place.key("a");
    client.objects().create(&place.config("a", &[])).await?;
    let book = Book::new(client.informers());
    let writer = Writer::new(place.client.clone(), book);
    let writer = writer.bound_to("test", resource_of::<ConfigMap>(), Recorder::nowhere());
    let cx = &Context::new(writer, Clock::system(), Recorder::nowhere());
    let seen = async |config: Arc<Typed<ConfigMap>>| {
        let mut events = Vec::new();
        let noted = &mut events;
        let outcome = finalizer(cx, "example.com/x", &*config, |event| async move {
            noted.push(matches!(event, Event::Cleanup(_)));
            Ok(Action::Done)
        });
        outcome.await.map(|action| (action, events)).map_err(|error| error.to_string())
    };
    let made = client.live().get::<ConfigMap>(&a).await?;
    assert_eq!(seen(made.clone()).await?, (Action::Again, vec![]), "the finalizer first");
    assert_eq!(seen(made).await?, (Action::Again, vec![]), "a conflict: it was seen in another state");
    assert_eq!(seen(client.live().get(&a).await?).await?, (Action::Done, vec![false]));
    let going = client.objects::<ConfigMap>().delete(&a, &DeleteParams::default()).await?;
    assert!(going.is_some_and(|going| going.metadata.deletion_timestamp.is_some()));
    assert_eq!(seen(client.live().get(&a).await?).await?, (Action::Done, vec![true]));
    assert!(client.live().get_opt::<ConfigMap>(&a).await?.is_none());
    Ok(())
}

/// The definition of a kind that no other test has.
fn definition(group: &str) -> Value {
    json!({
        "metadata": {"name": format!("cakes.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": "cakes", "singular": "cake", "kind": "Cake", "shortNames": ["ck"]},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    })
}

#[tokio::test]
async fn a_kind_that_is_defined_is_found_used_and_gone_again() -> Outcome {
    let place = Place::new("client-mapper").await?;
    let client = place.cached();
    let mapper = RestMapper::new(place.client.clone());
    let known = mapper.resources().await?;
    assert!(known.failures().is_empty(), "{:?}", known.failures());
    assert!(known.supporting(&["delete", "list", "watch"]).len() > 30);
    assert_eq!(mapper.find("deploy").await?.resource.api_version(), "apps/v1");
    let subscriptions = mapper.watch(client.informers()).await?;
    assert_eq!(subscriptions.len(), 2);
    client.informers().start();
    client.informers().synced_within(PATIENCE).await?;

    let group = format!("g{}.example.com", std::process::id());
    let crd: CustomResourceDefinition = serde_json::from_value(definition(&group))?;
    let name = ObjectKey::cluster(&format!("cakes.{group}"));
    client.objects().create(&crd).await?;
    wait_until(&client, &name, conditions::is_crd_established, PATIENCE).await?;
    // The server updates discovery a moment after it serves.
    let found = async {
        loop {
            if let Ok(found) = mapper.resource_for(&group, None, "Cake").await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    let found = tokio::time::timeout(PATIENCE, found).await?;
    assert!(found.is_namespaced() && found.subresource("status").is_some());
    let cake = DynamicObject {
        types: None,
        metadata: place.config("plum", &[]).metadata,
        data: json!({"spec": {"layers": 3}}),
    };
    let cakes = client.dynamic(found.resource.clone());
    cakes.create(&cake).await?;
    assert_eq!(cakes.get(&place.key("plum")).await?.data["spec"]["layers"], 3);
    let status = json!({"status": {"baked": true}});
    assert_eq!(cakes.status().patch(&place.key("plum"), Patch::Merge(&status)).await?.data["status"]["baked"], true);

    client.objects::<CustomResourceDefinition>().delete(&name, &DeleteParams::default()).await?;
    let gone = async {
        while mapper.resource_for(&group, None, "Cake").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    tokio::time::timeout(PATIENCE, gone).await?;
    drop(subscriptions);
    Ok(())
}

#[tokio::test]
async fn discovery_of_old_says_the_same_on_a_real_server() -> Outcome {
    let place = Place::new("client-old").await?;
    let inner = place.client.clone();
    let old = tower::service_fn(move |mut request: http::Request<kube::client::Body>| {
        let inner = inner.clone();
        request.headers_mut().insert(http::header::ACCEPT, http::HeaderValue::from_static("application/json"));
        async move { inner.send(request).await }
    });
    let old = RestMapper::new(kube::Client::new(old, "default")).resources().await?;
    let new = RestMapper::new(place.client.clone()).resources().await?;
    let names = |known: &steersman_runtime::mapper::Discovered| {
        // Other tests define kinds meanwhile.
        let ours = known.resources().filter(|found| !found.resource.group.ends_with("example.com"));
        let mut names: Vec<_> = ours.map(|found| (found.resource.clone(), found.singular.clone())).collect();
        names.sort();
        names
    };
    assert!(names(&new).len() > 50);
    assert_eq!(names(&old), names(&new));
    Ok(())
}
