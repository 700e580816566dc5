//! Writes and subresources.

use std::time::Duration;

use http::StatusCode;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, PodCondition, ServiceAccount};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{DeleteParams, Preconditions};
use secrecy::ExposeSecret as _;
use serde_json::json;
use steersman_runtime::client::{ClientError, Eviction, FieldValidation, Patch, Query, TokenOptions};
use steersman_runtime::{Leadership, LeaseOptions};
use steersman_testing::objects::{self, WorkloadBuilder as _};
use steersman_testing::{Failure, Verb};

use crate::support::{config, datum, key, start};

#[tokio::test(start_paused = true)]
async fn what_is_written_is_what_is_there() -> Result<(), Failure> {
    let (cluster, client) = start().await?;
    let namespace = cluster.namespace().to_owned();
    let a = key(&cluster, "a");
    let mut made = client.objects().create(&config(&namespace, "a", &[("x", "1")])).await?;
    assert!(made.metadata.uid.is_some());
    let error = client.objects().create(&config(&namespace, "a", &[])).await.unwrap_err();
    assert!(error.is_already_exists(), "{error}");

    made.data.get_or_insert_default().insert("x".into(), "2".into());
    let updated = client.objects().update(&made).await?;
    let error = client.objects().update(&made).await.unwrap_err();
    assert!(error.is_conflict(), "made is old by now: {error}");

    let patched: ConfigMap = client.objects().patch(&a, Patch::Merge(&json!({"data": {"y": "3"}}))).await?;
    assert_eq!((datum(&patched, "x").as_deref(), datum(&patched, "y").as_deref()), (Some("2"), Some("3")));
    let labels = json!({"metadata": {"labels": {"app": "web"}}});
    let _: ConfigMap = client.objects().patch(&a, Patch::Strategic(&labels)).await?;
    let test = json!([{"op": "test", "path": "/data/x", "value": "2"}, {"op": "remove", "path": "/data/x"}]);
    let patched: ConfigMap = client.objects().patch(&a, Patch::Json(&test)).await?;
    assert_eq!(datum(&patched, "x"), None);

    let stale = Preconditions { resource_version: updated.metadata.resource_version, uid: None };
    let how = DeleteParams { preconditions: Some(stale), ..DeleteParams::default() };
    let error = client.objects::<ConfigMap>().delete(&a, &how).await.unwrap_err();
    assert!(error.is_conflict(), "{error}");
    client.objects::<ConfigMap>().delete(&a, &DeleteParams::default()).await?;
    let error = client.objects::<ConfigMap>().delete(&a, &DeleteParams::default()).await.unwrap_err();
    assert!(error.is_not_found(), "{error}");
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn collections_are_deleted_by_query() -> Result<(), Failure> {
    let (cluster, client) = start().await?;
    for (name, app) in [("a", "web"), ("b", "db"), ("c", "web")] {
        let mut object = config(cluster.namespace(), name, &[]);
        object.metadata.labels = Some([("app".to_owned(), app.to_owned())].into());
        client.objects().create(&object).await?;
    }
    let here = || Query::namespace(cluster.namespace());
    let nothing = here().selecting(steersman_base::Selector::nothing());
    client.objects::<ConfigMap>().delete_collection(&nothing, &DeleteParams::default()).await?;
    assert_eq!(client.live().list::<ConfigMap>(&here()).await?.len(), 3, "nothing is nothing, not everything");
    client.objects::<ConfigMap>().delete_collection(&here().labels("app=web")?, &DeleteParams::default()).await?;
    let left = client.live().list::<ConfigMap>(&here()).await?;
    assert_eq!(left.iter().filter_map(|left| left.metadata.name.as_deref()).collect::<Vec<_>>(), ["b"]);
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_changes_nothing_and_strict_fields_are_checked() -> Result<(), Failure> {
    let (cluster, client) = start().await?;
    let dry = client.dry_run();
    dry.objects().create(&config(cluster.namespace(), "a", &[])).await?;
    assert!(client.get_opt::<ConfigMap>(&key(&cluster, "a")).await?.is_none());
    client.objects().create(&config(cluster.namespace(), "a", &[])).await?;
    dry.objects::<ConfigMap>().delete(&key(&cluster, "a"), &DeleteParams::default()).await?;
    assert!(client.live().get_opt::<ConfigMap>(&key(&cluster, "a")).await?.is_some());

    let unknown = json!({"dataa": {}});
    let strict = client.with_field_validation(FieldValidation::Strict);
    let error = strict.objects::<ConfigMap>().patch(&key(&cluster, "a"), Patch::Merge(&unknown)).await.unwrap_err();
    assert!(error.to_string().contains("dataa"), "{error}");
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_write_without_an_answer_may_have_been_made_and_is_not_sent_again() -> Result<(), Failure> {
    let (cluster, client) = start().await?;
    cluster.faults().on(Verb::Create, "configmaps").nth(1).lose_reply();
    let error = client.objects().create(&config(cluster.namespace(), "a", &[])).await.unwrap_err();
    assert!(matches!(error, ClientError::NoAnswer { .. }) && error.may_have_been_made(), "{error}");
    assert!(client.live().get_opt::<ConfigMap>(&key(&cluster, "a")).await?.is_some());
    for (code, may_have_been_made) in [(StatusCode::SERVICE_UNAVAILABLE, true), (StatusCode::FORBIDDEN, false)] {
        cluster.faults().heal();
        cluster.faults().on(Verb::Create, "configmaps").nth(1).refuse(code);
        let error = client.objects().create(&config(cluster.namespace(), "b", &[])).await.unwrap_err();
        assert_eq!(error.may_have_been_made(), may_have_been_made, "{error}");
    }
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn without_leadership_the_client_writes_nothing() -> Result<(), Failure> {
    // Nobody runs the elector of this lease: it is never won.
    let (cluster, client) = start().await?;
    let options = LeaseOptions::new(cluster.namespace(), "nobody");
    let elector = steersman_runtime::Elector::new(cluster.client(), options, cluster.clock().clone())?;
    let standby = client.led_by(elector.leadership());
    let error = standby.objects().create(&config(cluster.namespace(), "a", &[])).await.unwrap_err();
    assert!(matches!(error, ClientError::NotLeader(_)), "{error}");
    assert!(standby.get_opt::<ConfigMap>(&key(&cluster, "a")).await?.is_none(), "it may read");
    standby.led_by(Leadership::always()).objects().create(&config(cluster.namespace(), "a", &[])).await?;
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_status_is_written_apart() -> Result<(), Failure> {
    let (cluster, client) = start().await?;
    let mut pod = cluster.create(objects::pod("web")).await?;
    let ready = PodCondition { type_: "Ready".into(), status: "True".into(), ..PodCondition::default() };
    pod.status.get_or_insert_default().conditions = Some(vec![ready]);
    pod.metadata.labels = Some([("app".to_owned(), "other".to_owned())].into());
    let written = client.objects().status().update(&pod).await?;
    assert_eq!(written.status.and_then(|status| status.conditions).map(|conditions| conditions.len()), Some(1));
    let patch = json!({"status": {"phase": "Running"}});
    let written: Pod = client.objects().status().patch(&key(&cluster, "web"), Patch::Merge(&patch)).await?;
    assert_eq!(written.status.and_then(|status| status.phase).as_deref(), Some("Running"));
    let unknown = client.objects::<ConfigMap>().status().get(&key(&cluster, "web")).await.unwrap_err();
    assert!(unknown.is_not_found(), "config maps have no status: {unknown}");
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_scale_is_read_and_set() -> Result<(), Failure> {
    let (cluster, client) = start().await?;
    cluster.create(objects::replica_set("web").replicas(2)).await?;
    let sets = client.objects::<ReplicaSet>();
    let web = key(&cluster, "web");
    let mut scale = sets.scale(&web).await?;
    assert_eq!(scale.spec.as_ref().and_then(|spec| spec.replicas), Some(2));
    scale.spec.get_or_insert_default().replicas = Some(3);
    sets.update_scale(&scale).await?;
    assert!(sets.update_scale(&scale).await.is_err_and(|error| error.is_conflict()));
    sets.set_replicas(&web, 4).await?;
    let read = client.get::<ReplicaSet>(&web).await?;
    assert_eq!(read.spec.replicas, Some(4), "a cached read waits for the scale, too");
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn an_eviction_is_accepted_or_blocked_by_a_budget() -> Result<(), Failure> {
    let (cluster, client) = start().await?;
    for name in ["free", "bound"] {
        cluster.create(objects::pod(name)).await?;
        let running = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
        let _: Pod = client.objects().status().patch(&key(&cluster, name), Patch::Merge(&running)).await?;
    }
    let budget: PodDisruptionBudget = serde_json::from_value(json!({
        "metadata": {"name": "b", "namespace": cluster.namespace()},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "bound"}}},
    }))?;
    client.objects().create(&budget).await?;
    let how = DeleteParams::default();
    assert_eq!(client.evict(&key(&cluster, "free"), &how).await?, Eviction::Accepted);
    let blocked = client.evict(&key(&cluster, "bound"), &how).await?;
    assert!(matches!(blocked, Eviction::Blocked(_)), "{blocked:?}");
    assert!(client.evict(&key(&cluster, "missing"), &how).await.is_err_and(|error| error.is_not_found()));
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_token_of_an_account_is_granted_for_a_while() -> Result<(), Failure> {
    let (cluster, client) = start().await?;
    let metadata = crate::support::meta(cluster.namespace(), "robot");
    client.objects().create(&ServiceAccount { metadata, ..ServiceAccount::default() }).await?;
    let mut options = TokenOptions::default();
    options.expiration_seconds = Some(1200);
    let token = client.token(&key(&cluster, "robot"), &options).await?;
    assert_eq!(token.token.expose_secret().split('.').count(), 3, "a JWT");
    assert_eq!(token.expires.since(cluster.clock().now()), Duration::from_secs(1200));
    assert!(!format!("{token:?}").contains(token.token.expose_secret()));
    let missing = client.token(&key(&cluster, "nobody"), &TokenOptions::default()).await;
    assert!(missing.is_err_and(|error| error.is_not_found()));
    cluster.stop().await
}
