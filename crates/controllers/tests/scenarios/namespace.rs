//! What the deletion of a namespace promises.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use steersman_testing::objects::{self, ObjectBuilder as _, WorkloadBuilder as _};
use steersman_testing::{Builder, Failure, TestCluster, expect};

use crate::scenarios::support::controllers::{self, Controller};

scenarios! {
    a_deleted_namespace_is_emptied_and_then_removed on cluster,
    a_finalizer_holds_the_namespace_and_its_conditions_say_so on cluster,
}

/// Something nobody but the test takes off.
pub(crate) const HOLD: &str = "example.com/hold";

pub(crate) const CONTROLLERS: &[Controller] = &[controllers::NAMESPACE];

pub(crate) fn cluster() -> Builder {
    TestCluster::builder().controllers(CONTROLLERS)
}

/// What is in a namespace goes with it, whatever it is.
pub(crate) async fn a_deleted_namespace_is_emptied_and_then_removed(cluster: &TestCluster) -> Result<(), Failure> {
    fill(cluster, 3).await?;
    delete(cluster).await?;
    until_gone(cluster).await
}

/// A finalizer keeps an object, that keeps the namespace, and the conditions report which and how many.
pub(crate) async fn a_finalizer_holds_the_namespace_and_its_conditions_say_so(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    fill(cluster, 1).await?;
    for name in ["held-1", "held-2"] {
        cluster.create(config_map(name).finalizer(HOLD)).await?;
    }
    delete(cluster).await?;
    let want = [
        ("NamespaceDeletionDiscoveryFailure", "False", "ResourcesDiscovered", "All resources successfully discovered"),
        (
            "NamespaceDeletionGroupVersionParsingFailure",
            "False",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        (
            "NamespaceDeletionContentFailure",
            "False",
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
        (
            "NamespaceContentRemaining",
            "True",
            "SomeResourcesRemain",
            "Some resources are remaining: configmaps. has 2 resource instances",
        ),
        (
            "NamespaceFinalizersRemaining",
            "True",
            "SomeFinalizersRemain",
            "Some content in the namespace has finalizers remaining: example.com/hold in 2 resource instances",
        ),
    ];
    let want: Vec<_> =
        want.map(|(type_, status, reason, text)| [type_, status, reason, text].map(str::to_owned)).into();
    until_conditions(cluster, &want).await?;
    let left = cluster.api::<Secret>().get_opt("secret-0").await?;
    expect(left.is_none(), "what nothing holds is gone", &left)?;
    for name in ["held-1", "held-2"] {
        release::<ConfigMap>(cluster, name).await?;
    }
    until_gone(cluster).await
}

/// Pods, and whatever else a namespace has.
pub(crate) async fn fill(cluster: &TestCluster, count: usize) -> Result<(), Failure> {
    for number in 0..count {
        cluster.create(config_map(&format!("config-{number}"))).await?;
        cluster.create(objects::secret(&format!("secret-{number}"))).await?;
        cluster.create(objects::pod(&format!("pod-{number}")).app("web")).await?;
        cluster.create(objects::service_account(&format!("account-{number}"))).await?;
        let without_selector = json!({ "spec": { "selector": null } });
        cluster.create(objects::service(&format!("service-{number}")).with(without_selector)).await?;
    }
    cluster.create(objects::replica_set("set").replicas(0)).await?;
    Ok(())
}

pub(crate) fn config_map(name: &str) -> ConfigMap {
    objects::config_map(name).with(json!({ "data": { "key": "value" } }))
}

/// Asks for the deletion of the test's namespace.
pub(crate) async fn delete(cluster: &TestCluster) -> Result<(), Failure> {
    namespaces(cluster).delete(cluster.namespace(), &DeleteParams::default()).await?;
    Ok(())
}

/// Takes all finalizers off an object.
pub(crate) async fn release<K>(cluster: &TestCluster, name: &str) -> Result<(), Failure>
where
    K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>
        + serde::de::DeserializeOwned
        + Clone
        + std::fmt::Debug,
{
    let patch = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    cluster.api::<K>().patch(name, &PatchParams::default(), &patch).await?;
    Ok(())
}

/// Waits until the test's namespace is gone.
pub(crate) async fn until_gone(cluster: &TestCluster) -> Result<(), Failure> {
    let namespace = async || Ok(namespaces(cluster).get_opt(cluster.namespace()).await?);
    cluster.until_right("the namespace is gone", namespace, Option::is_none).await.map(drop)
}

/// Waits until the namespace has these conditions: type, status, reason, text.
pub(crate) async fn until_conditions(cluster: &TestCluster, want: &[[String; 4]]) -> Result<(), Failure> {
    cluster.until_eq("the conditions of the namespace", async || conditions(cluster).await, want).await
}

/// The conditions of the namespace: type, status, reason, text.
pub(crate) async fn conditions(cluster: &TestCluster) -> Result<Vec<[String; 4]>, Failure> {
    let namespace = namespaces(cluster).get(cluster.namespace()).await?;
    let conditions = namespace.status.and_then(|status| status.conditions).unwrap_or_default();
    let reported = conditions.into_iter().map(|it| {
        let [reason, text] = [it.reason, it.message].map(Option::unwrap_or_default);
        [it.type_, it.status, reason, text]
    });
    Ok(reported.collect())
}

/// Makes a namespace with something in it that cannot go; answers its name.
pub(crate) async fn with_what_is_held(cluster: &TestCluster) -> Result<String, Failure> {
    let name = format!("{}-held", cluster.namespace());
    namespaces(cluster).create(&PostParams::default(), &objects::namespace(&name)).await?;
    let held = config_map("held").finalizer(HOLD);
    Api::<ConfigMap>::namespaced(cluster.client(), &name).create(&PostParams::default(), &held).await?;
    Ok(name)
}

pub(crate) fn namespaces(cluster: &TestCluster) -> Api<Namespace> {
    Api::all(cluster.client())
}

/// The text of one condition of the namespace.
pub(crate) async fn reported(cluster: &TestCluster, type_: &str) -> Result<[String; 3], Failure> {
    let found = conditions(cluster).await?.into_iter().find(|condition| condition[0] == type_);
    Ok(found.map(|[_, status, reason, text]| [status, reason, text]).unwrap_or_default())
}
