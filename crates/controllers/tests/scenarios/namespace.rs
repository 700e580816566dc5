//! What the deletion of a namespace promises.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret, Service, ServiceAccount, ServicePort, ServiceSpec};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use steersman_controllers::namespace;
use steersman_runtime::Descriptor;
use steersman_testing::{Builder, Failure, TestCluster, objects};

/// Something nobody but the test takes off.
pub(crate) const HOLD: &str = "example.com/hold";

pub(crate) const CONTROLLERS: &[Descriptor] = &[namespace::DESCRIPTOR];

pub(crate) fn cluster() -> Builder {
    TestCluster::builder().controllers(CONTROLLERS)
}

/// What is in a namespace goes with it, whatever it is.
pub(crate) async fn everything_in_a_deleted_namespace_goes_and_then_it_does(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    fill(cluster, 3).await?;
    delete(cluster).await?;
    until_gone(cluster).await
}

/// A finalizer keeps an object, that keeps the namespace, and the conditions tell which and how many.
pub(crate) async fn a_finalizer_holds_the_namespace_and_its_conditions_say_so(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    fill(cluster, 1).await?;
    for name in ["held-1", "held-2"] {
        let mut held = config_map(name);
        held.metadata.finalizers = Some(vec![HOLD.into()]);
        cluster.create(held).await?;
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
    if left.is_some() {
        return Err(Failure::new("what nothing holds is still there"));
    }
    for name in ["held-1", "held-2"] {
        release::<ConfigMap>(cluster, name).await?;
    }
    until_gone(cluster).await
}

/// Pods, and whatever else a namespace has.
pub(crate) async fn fill(cluster: &TestCluster, count: usize) -> Result<(), Failure> {
    for number in 0..count {
        cluster.create(config_map(&format!("config-{number}"))).await?;
        let secret = Secret { metadata: objects::named(&format!("secret-{number}")), ..Secret::default() };
        cluster.create(secret).await?;
        cluster.create(objects::pod(&format!("pod-{number}"), "web")).await?;
        let account = ServiceAccount { metadata: objects::named(&format!("account-{number}")), ..Default::default() };
        cluster.create(account).await?;
        let port = ServicePort { port: 80, ..ServicePort::default() };
        let spec = ServiceSpec { ports: Some(vec![port]), ..ServiceSpec::default() };
        let metadata = objects::named(&format!("service-{number}"));
        cluster.create(Service { metadata, spec: Some(spec), ..Service::default() }).await?;
    }
    cluster.create(objects::replica_set("set", 0)).await?;
    Ok(())
}

pub(crate) fn config_map(name: &str) -> ConfigMap {
    let data = BTreeMap::from([("key".to_owned(), "value".to_owned())]);
    ConfigMap { metadata: objects::named(name), data: Some(data), ..ConfigMap::default() }
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
    cluster
        .until("the namespace is gone", async || {
            let namespace = namespaces(cluster).get_opt(cluster.namespace()).await?;
            Ok(namespace.map_or(Ok(()), |namespace| Err(format!("{:?} {:?}", namespace.spec, namespace.status))))
        })
        .await
}

/// Waits until the namespace has these conditions: type, status, reason, text.
pub(crate) async fn until_conditions(cluster: &TestCluster, want: &[[String; 4]]) -> Result<(), Failure> {
    cluster
        .until("the conditions of the namespace", async || {
            let seen = conditions(cluster).await?;
            Ok(if seen == want { Ok(()) } else { Err(format!("{seen:#?}")) })
        })
        .await
}

/// The conditions of the namespace: type, status, reason, text.
pub(crate) async fn conditions(cluster: &TestCluster) -> Result<Vec<[String; 4]>, Failure> {
    let namespace = namespaces(cluster).get(cluster.namespace()).await?;
    let conditions = namespace.status.and_then(|status| status.conditions).unwrap_or_default();
    let told = conditions.into_iter().map(|it| {
        let [reason, text] = [it.reason, it.message].map(Option::unwrap_or_default);
        [it.type_, it.status, reason, text]
    });
    Ok(told.collect())
}

/// Makes a namespace with something in it that cannot go; answers its name.
pub(crate) async fn with_what_is_held(cluster: &TestCluster) -> Result<String, Failure> {
    let name = format!("{}-held", cluster.namespace());
    let namespace = Namespace { metadata: objects::named(&name), ..Namespace::default() };
    namespaces(cluster).create(&PostParams::default(), &namespace).await?;
    let mut held = config_map("held");
    held.metadata.finalizers = Some(vec![HOLD.into()]);
    Api::<ConfigMap>::namespaced(cluster.client(), &name).create(&PostParams::default(), &held).await?;
    Ok(name)
}

pub(crate) fn namespaces(cluster: &TestCluster) -> Api<Namespace> {
    Api::all(cluster.client())
}

/// The text of one condition of the namespace.
pub(crate) async fn told(cluster: &TestCluster, type_: &str) -> Result<[String; 3], Failure> {
    let found = conditions(cluster).await?.into_iter().find(|condition| condition[0] == type_);
    Ok(found.map(|[_, status, reason, text]| [status, reason, text]).unwrap_or_default())
}
