//! What a ResourceQuota promises: the API server admits by what the controller counts.

use std::collections::BTreeMap;
use std::fmt::Debug;

use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::{ConfigMap, LimitRange, PersistentVolumeClaim, Pod, ResourceQuota, Service};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use steersman_testing::objects::{self, ObjectBuilder as _, WorkloadBuilder as _};
use steersman_testing::{Builder, Failure, TestCluster, expect, expect_eq};

use crate::scenarios::garbage_collector::{cake, cakes, definition_of_cakes};
use crate::scenarios::support::controllers;

scenarios! {
    what_exceeds_a_quota_is_refused_until_something_is_freed on cluster,
    the_usage_of_all_kinds_is_counted on cluster,
    objects_of_any_resource_are_counted on with_cakes,
    a_quota_counts_what_is_in_its_scopes on cluster,
    a_pod_that_has_ended_is_free on cluster,
    a_dry_run_is_checked_and_not_charged on cluster,
    an_update_is_charged_for_what_it_adds_and_what_it_frees_is_counted on cluster,
    containers_must_say_what_a_quota_counts on cluster,
    a_limit_range_fills_in_and_refuses on cluster,
    a_raised_quota_lets_a_refused_replica_set_go_on on with_replica_sets,
    issue_65107_deleted_objects_are_not_counted on cluster,
    issue_94313_a_fraction_of_a_byte_is_counted_as_a_byte on cluster,
}

pub(crate) fn cluster() -> Builder {
    TestCluster::builder().controllers(&[controllers::RESOURCE_QUOTA])
}

pub(crate) fn with_cakes() -> Builder {
    cluster().define(definition_of_cakes())
}

pub(crate) fn with_replica_sets() -> Builder {
    TestCluster::builder().controllers(&[controllers::RESOURCE_QUOTA, controllers::REPLICA_SET])
}

/// Creates a quota, and waits until it is enforced.
pub(crate) async fn quota(cluster: &TestCluster, name: &str, spec: Value) -> Result<(), Failure> {
    let quota: ResourceQuota = serde_json::from_value(json!({ "metadata": { "name": name }, "spec": spec }))?;
    let limits = quota.spec.as_ref().and_then(|spec| spec.hard.clone()).unwrap_or_default().len();
    cluster.create(quota).await?;
    let is_counted = |used: &BTreeMap<String, String>| used.len() == limits;
    cluster.until_right("it is counted", async || used(cluster, name).await, is_counted).await.map(drop)
}

pub(crate) async fn used(cluster: &TestCluster, name: &str) -> Result<BTreeMap<String, String>, Failure> {
    let used = cluster.api::<ResourceQuota>().get(name).await?.status.unwrap_or_default().used.unwrap_or_default();
    Ok(used.into_iter().map(|(name, quantity)| (name, quantity.0)).collect())
}

pub(crate) async fn until_used(cluster: &TestCluster, name: &str, want: &[(&str, &str)]) -> Result<(), Failure> {
    let want: BTreeMap<String, String> = want.iter().map(|(name, used)| ((*name).into(), (*used).into())).collect();
    cluster.until_eq("the usage", async || used(cluster, name).await, want).await
}

/// Changes a limit of a quota.
pub(crate) async fn set_hard(cluster: &TestCluster, name: &str, hard: Value) -> Result<(), Failure> {
    let patch = Patch::Merge(json!({ "spec": { "hard": hard } }));
    cluster.api::<ResourceQuota>().patch(name, &PatchParams::default(), &patch).await?;
    Ok(())
}

/// Returns a pod whose container asks for this much cpu.
pub(crate) fn pod(name: &str, cpu: &str) -> Pod {
    let container = json!({ "name": "main", "image": "example/main", "resources": { "requests": { "cpu": cpu } } });
    objects::pod(name).with(json!({ "spec": { "containers": [container] } }))
}

/// Checks that a create is refused, and returns the message.
pub(crate) async fn refused<K>(api: &Api<K>, object: &K) -> Result<String, Failure>
where
    K: DeserializeOwned + Serialize + Clone + Debug,
{
    match api.create(&PostParams::default(), object).await {
        Err(kube::Error::Api(status)) => {
            expect_eq("the code", &(status.code, &*status.reason), &(403, "Forbidden"))?;
            Ok(status.message)
        }
        other => expect(false, "it is refused", &other).map(|()| String::new()),
    }
}

/// The classic story: two fit, the third does not, until one is gone.
pub(crate) async fn what_exceeds_a_quota_is_refused_until_something_is_freed(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    quota(cluster, "team", json!({ "hard": { "pods": "2", "requests.cpu": "1" } })).await?;
    let pods = cluster.api::<Pod>();
    cluster.create(pod("a", "300m")).await?;
    let want = "pods \"b\" is forbidden: exceeded quota: team, requested: requests.cpu=800m, used: requests.cpu=300m, \
                limited: requests.cpu=1";
    expect_eq("too much", &&*refused(&pods, &pod("b", "800m")).await?, &want)?;
    cluster.create(pod("b", "700m")).await?;
    until_used(cluster, "team", &[("pods", "2"), ("requests.cpu", "1")]).await?;
    let want = "pods \"c\" is forbidden: exceeded quota: team, requested: pods=1,requests.cpu=100m, used: \
                pods=2,requests.cpu=1, limited: pods=2,requests.cpu=1";
    expect_eq("too many", &&*refused(&pods, &pod("c", "100m")).await?, &want)?;
    pods.delete("b", &DeleteParams::default().grace_period(0)).await?;
    until_used(cluster, "team", &[("pods", "1"), ("requests.cpu", "300m")]).await?;
    cluster.create(pod("c", "700m")).await?;
    until_used(cluster, "team", &[("pods", "2"), ("requests.cpu", "1")]).await
}

/// Services, claims and core objects.
pub(crate) async fn the_usage_of_all_kinds_is_counted(cluster: &TestCluster) -> Result<(), Failure> {
    // These are counted though they were there before the quota.
    let ports = json!([{ "name": "a", "port": 80 }, { "name": "b", "port": 81 }]);
    let web = objects::service("web").with(json!({ "spec": { "type": "NodePort", "ports": ports } }));
    cluster.create(web).await?;
    cluster.create(claim("data", "1Gi", Some("gold"))).await?;
    cluster.create(objects::config_map("one")).await?;
    let gold = "gold.storageclass.storage.k8s.io/requests.storage";
    let hard = json!({
        "services": "5", "services.nodeports": "2", "services.loadbalancers": "0", "persistentvolumeclaims": "2",
        "requests.storage": "3Gi", gold: "1Gi", "count/configmaps": "9", "secrets": "9",
    });
    quota(cluster, "all", json!({ "hard": hard })).await?;
    let config_maps = cluster.api::<ConfigMap>().list(&Default::default()).await?.items.len().to_string();
    let want = [
        ("count/configmaps", &*config_maps),
        (gold, "1Gi"),
        ("persistentvolumeclaims", "1"),
        ("requests.storage", "1Gi"),
        ("secrets", "0"),
        ("services", "1"),
        ("services.loadbalancers", "0"),
        ("services.nodeports", "2"),
    ];
    until_used(cluster, "all", &want).await?;
    let balanced = objects::service("balanced").with(json!({ "spec": { "type": "LoadBalancer" } }));
    let message = refused(&cluster.api::<Service>(), &balanced).await?;
    let want = "requested: services.loadbalancers=1,services.nodeports=1, used: \
                services.loadbalancers=0,services.nodeports=2, limited: services.loadbalancers=0,services.nodeports=2";
    expect(message.ends_with(want), "what is exceeded", &message)?;
    let message = refused(&cluster.api::<PersistentVolumeClaim>(), &claim("more", "1Gi", Some("gold"))).await?;
    let want = format!("exceeded quota: all, requested: {gold}=1Gi, used: {gold}=1Gi, limited: {gold}=1Gi");
    expect(message.ends_with(&want), "the storage of the class is exceeded", &message)?;
    cluster.create(claim("more", "2Gi", Some("tin"))).await?;
    Ok(())
}

/// Returns a claim of storage.
pub(crate) fn claim(name: &str, storage: &str, class: Option<&str>) -> PersistentVolumeClaim {
    let spec = json!({
        "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": storage } }, "storageClassName": class,
    });
    let claim = json!({ "metadata": { "name": name }, "spec": spec });
    serde_json::from_value(claim).unwrap_or_default()
}

/// Custom resources too, by `count/RESOURCE.GROUP`.
pub(crate) async fn objects_of_any_resource_are_counted(cluster: &TestCluster) -> Result<(), Failure> {
    const CAKES: &str = "count/cakes.garbage.example.com";
    let cakes = cakes(cluster);
    cakes.create(&PostParams::default(), &cake("a", vec![])).await?;
    quota(cluster, "cakes", json!({ "hard": { CAKES: "2" } })).await?;
    until_used(cluster, "cakes", &[(CAKES, "1")]).await?;
    cakes.create(&PostParams::default(), &cake("b", vec![])).await?;
    let want = format!(
        "cakes.garbage.example.com \"c\" is forbidden: exceeded quota: cakes, requested: {CAKES}=1, used: {CAKES}=2, \
         limited: {CAKES}=2"
    );
    expect_eq("one too many", &refused(&cakes, &cake("c", vec![])).await?, &want)?;
    cakes.delete("a", &DeleteParams::default()).await?;
    until_used(cluster, "cakes", &[(CAKES, "1")]).await?;
    cakes.create(&PostParams::default(), &cake("c", vec![])).await?;
    for name in ["b", "c"] {
        cakes.delete(name, &DeleteParams::default()).await?;
    }
    until_used(cluster, "cakes", &[(CAKES, "0")]).await
}

/// Each pod is charged to the quotas of its scopes.
pub(crate) async fn a_quota_counts_what_is_in_its_scopes(cluster: &TestCluster) -> Result<(), Failure> {
    let scoped = |scope: &str| json!({ "hard": { "pods": "1" }, "scopes": [scope] });
    quota(cluster, "best-effort", scoped("BestEffort")).await?;
    quota(cluster, "ending", scoped("Terminating")).await?;
    let classes = json!([{ "scopeName": "PriorityClass", "operator": "In", "values": ["system-node-critical"] }]);
    quota(cluster, "other", json!({ "hard": { "pods": "0" }, "scopeSelector": { "matchExpressions": classes } }))
        .await?;
    cluster.create(objects::pod("plain")).await?;
    cluster.create(pod("asks", "1")).await?;
    let ending = |name: &str| pod(name, "1").with(json!({ "spec": { "activeDeadlineSeconds": 600 } }));
    cluster.create(ending("ending")).await?;
    until_used(cluster, "best-effort", &[("pods", "1")]).await?;
    until_used(cluster, "ending", &[("pods", "1")]).await?;
    let pods = cluster.api::<Pod>();
    let message = refused(&pods, &objects::pod("plain-2")).await?;
    expect(message.contains("exceeded quota: best-effort"), "by its scope", &message)?;
    let message = refused(&pods, &ending("ending-2")).await?;
    expect(message.contains("exceeded quota: ending"), "by its scope", &message)?;
    // Into another scope.
    let patch = Patch::Merge(json!({ "spec": { "activeDeadlineSeconds": 600 } }));
    let refused = pods.patch("asks", &PatchParams::default(), &patch).await;
    let is_refused =
        matches!(&refused, Err(kube::Error::Api(status)) if status.message.contains("exceeded quota: ending"));
    expect(is_refused, "an update into a full scope is refused", &refused)?;
    cluster.create(pod("asks-2", "1")).await?;
    Ok(())
}

/// Its cpu can be used again, though the object is there.
pub(crate) async fn a_pod_that_has_ended_is_free(cluster: &TestCluster) -> Result<(), Failure> {
    quota(cluster, "team", json!({ "hard": { "pods": "1", "requests.cpu": "1", "count/pods": "5" } })).await?;
    cluster.create(pod("a", "1")).await?;
    refused(&cluster.api::<Pod>(), &pod("b", "1")).await?;
    let patch = Patch::Merge(json!({ "status": { "phase": "Succeeded" } }));
    cluster.api::<Pod>().patch_status("a", &PatchParams::default(), &patch).await?;
    until_used(cluster, "team", &[("count/pods", "1"), ("pods", "0"), ("requests.cpu", "0")]).await?;
    cluster.create(pod("b", "1")).await?;
    until_used(cluster, "team", &[("count/pods", "2"), ("pods", "1"), ("requests.cpu", "1")]).await
}

pub(crate) async fn a_dry_run_is_checked_and_not_charged(cluster: &TestCluster) -> Result<(), Failure> {
    quota(cluster, "team", json!({ "hard": { "pods": "1" } })).await?;
    let pods = cluster.api::<Pod>();
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    for _ in 0..3 {
        pods.create(&dry, &objects::pod("a")).await?;
    }
    until_used(cluster, "team", &[("pods", "0")]).await?;
    cluster.create(objects::pod("a")).await?;
    let refused = pods.create(&dry, &objects::pod("b")).await;
    let is_refused = matches!(&refused, Err(kube::Error::Api(status)) if status.code == 403);
    expect(is_refused, "a dry run is refused, too", &refused)
}

pub(crate) async fn an_update_is_charged_for_what_it_adds_and_what_it_frees_is_counted(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    quota(cluster, "team", json!({ "hard": { "services.nodeports": "2" } })).await?;
    let ports =
        |count: i32| (0..count).map(|at| json!({ "name": format!("p{at}"), "port": 80 + at })).collect::<Vec<_>>();
    let web = objects::service("web").with(json!({ "spec": { "type": "NodePort", "ports": ports(1) } }));
    cluster.create(web).await?;
    until_used(cluster, "team", &[("services.nodeports", "1")]).await?;
    let set_ports = async |count: i32| {
        let patch = Patch::Merge(json!({ "spec": { "ports": ports(count) } }));
        cluster.api::<Service>().patch("web", &PatchParams::default(), &patch).await
    };
    set_ports(2).await?;
    until_used(cluster, "team", &[("services.nodeports", "2")]).await?;
    let refused = set_ports(3).await;
    let want = "requested: services.nodeports=1, used: services.nodeports=2, limited: services.nodeports=2";
    let is_refused = matches!(&refused, Err(kube::Error::Api(status)) if status.message.ends_with(want));
    expect(is_refused, "one port too many", &refused)?;
    set_ports(1).await?;
    until_used(cluster, "team", &[("services.nodeports", "1")]).await?;
    let patch = Patch::Merge(
        json!({ "spec": { "type": "ClusterIP", "ports": [{ "name": "p0", "port": 80, "nodePort": null }] } }),
    );
    cluster.api::<Service>().patch("web", &PatchParams::default(), &patch).await?;
    until_used(cluster, "team", &[("services.nodeports", "0")]).await
}

pub(crate) async fn containers_must_say_what_a_quota_counts(cluster: &TestCluster) -> Result<(), Failure> {
    quota(cluster, "team", json!({ "hard": { "limits.memory": "1Gi", "requests.cpu": "1" } })).await?;
    let message = refused(&cluster.api::<Pod>(), &pod("a", "1")).await?;
    let want = "pods \"a\" is forbidden: failed quota: team: must specify limits.memory for: main";
    expect_eq("what is missing", &&*message, &want)
}

/// Defaults make pods fit a quota; bounds are enforced.
pub(crate) async fn a_limit_range_fills_in_and_refuses(cluster: &TestCluster) -> Result<(), Failure> {
    quota(cluster, "team", json!({ "hard": { "requests.cpu": "1" } })).await?;
    let limit = json!({
        "type": "Container", "defaultRequest": { "cpu": "200m" }, "default": { "cpu": "400m" }, "max": { "cpu": "500m" },
        "min": { "cpu": "100m" }, "maxLimitRequestRatio": { "cpu": "4" },
    });
    let claims = json!({ "type": "PersistentVolumeClaim", "max": { "storage": "1Gi" } });
    let range: LimitRange =
        serde_json::from_value(json!({ "metadata": { "name": "bounds" }, "spec": { "limits": [limit, claims] } }))?;
    cluster.create(range).await?;
    let plain = objects::pod("plain");
    // A server's cache may take a moment to know the range.
    let create = async || Ok(cluster.api::<Pod>().create(&PostParams::default(), &plain).await.is_ok());
    cluster.until_eq("the defaults are known", create, true).await?;
    let made = cluster.api::<Pod>().get("plain").await?;
    let note = made.metadata.annotations.unwrap_or_default().remove("kubernetes.io/limit-ranger").unwrap_or_default();
    expect(note.starts_with("LimitRanger plugin set: cpu request for container"), "the annotation", &note)?;
    until_used(cluster, "team", &[("requests.cpu", "200m")]).await?;
    let of = |requests: &str, limits: &str| {
        let resources = json!({ "requests": { "cpu": requests }, "limits": { "cpu": limits } });
        objects::pod("b")
            .with(json!({ "spec": { "containers": [{ "name": "main", "image": "i", "resources": resources }] } }))
    };
    let pods = cluster.api::<Pod>();
    for (pod, want) in [
        (of("200m", "600m"), "maximum cpu usage per Container is 500m, but limit is 600m"),
        (of("50m", "100m"), "minimum cpu usage per Container is 100m, but request is 50m"),
        (of("100m", "450m"), "cpu max limit to request ratio per Container is 4, but provided ratio is 4.500000"),
    ] {
        let want = format!("pods \"b\" is forbidden: {want}");
        expect_eq("out of bounds", &refused(&pods, &pod).await?, &want)?;
    }
    cluster.create(of("200m", "500m")).await?;
    let message = refused(&cluster.api::<PersistentVolumeClaim>(), &claim("data", "2Gi", None)).await?;
    let want = "persistentvolumeclaims \"data\" is forbidden: maximum storage usage per PersistentVolumeClaim is 1Gi, \
                but request is 2Gi";
    expect_eq("a claim out of bounds", &&*message, &want)
}

/// 136853, on every server: pods come soon after the quota is raised.
pub(crate) async fn a_raised_quota_lets_a_refused_replica_set_go_on(cluster: &TestCluster) -> Result<(), Failure> {
    quota(cluster, "team", json!({ "hard": { "pods": "1" } })).await?;
    let web = cluster.create(objects::replica_set("web").replicas(3)).await?;
    cluster.pods_of(&web).until_count(1).await?;
    let failure = async || {
        let status = cluster.api::<ReplicaSet>().get("web").await?.status.unwrap_or_default();
        let conditions = status.conditions.unwrap_or_default();
        let message =
            conditions.into_iter().find(|it| it.type_.as_deref() == Some("ReplicaFailure")).and_then(|it| it.message);
        Ok(message.unwrap_or_default())
    };
    let is_reported =
        |message: &String| message.contains("exceeded quota: team, requested: pods=1, used: pods=1, limited: pods=1");
    cluster.until_right("the refusal is in the status", failure, is_reported).await?;
    set_hard(cluster, "team", json!({ "pods": "3" })).await?;
    cluster.pods_of(&web).until_count(3).await?;
    until_used(cluster, "team", &[("pods", "3")]).await
}

/// 65107: deletions were not counted, so that quotas filled up for ever.
pub(crate) async fn issue_65107_deleted_objects_are_not_counted(cluster: &TestCluster) -> Result<(), Failure> {
    quota(cluster, "team", json!({ "hard": { "pods": "20", "services": "20", "count/configmaps": "30" } })).await?;
    let before = used(cluster, "team").await?;
    for round in 0..3 {
        for at in 0..5 {
            cluster.create(objects::pod(&format!("p-{round}-{at}"))).await?;
            cluster.create(objects::service(&format!("s-{round}-{at}"))).await?;
            cluster.create(objects::config_map(&format!("c-{round}-{at}"))).await?;
        }
        for at in 0..5 {
            let now = DeleteParams::default().grace_period(0);
            cluster.api::<Pod>().delete(&format!("p-{round}-{at}"), &now).await?;
            cluster.api::<Service>().delete(&format!("s-{round}-{at}"), &now).await?;
            cluster.api::<ConfigMap>().delete(&format!("c-{round}-{at}"), &now).await?;
        }
        cluster.until_eq("the usage", async || used(cluster, "team").await, before.clone()).await?;
    }
    Ok(())
}

/// 94313: usage with a fraction of a byte did not pass validation, and the quota was never written again.
pub(crate) async fn issue_94313_a_fraction_of_a_byte_is_counted_as_a_byte(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    quota(cluster, "team", json!({ "hard": { "requests.storage": "1Ki" } })).await?;
    cluster.create(claim("half", "500m", None)).await?;
    until_used(cluster, "team", &[("requests.storage", "1")]).await?;
    cluster.create(claim("more", "3", None)).await?;
    until_used(cluster, "team", &[("requests.storage", "4")]).await
}
