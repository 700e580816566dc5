//! Small things that all scenarios use.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};
use steersman_base::{ObjectKey, Resource};
use steersman_runtime::CachedClient;
use steersman_testing::{Failure, TestCluster};

pub(crate) const CAKES: Resource = Resource::namespaced("example.com", "v1", "cakes", "Cake");
pub(crate) const CONFIG_MAPS: Resource = Resource::namespaced("", "v1", "configmaps", "ConfigMap");

/// A cluster without controllers, and the client of its manager, which has started.
pub(crate) async fn start() -> Result<(TestCluster, CachedClient), Failure> {
    started(TestCluster::builder().start().await?).await
}

pub(crate) async fn started(cluster: TestCluster) -> Result<(TestCluster, CachedClient), Failure> {
    cluster.settle().await?;
    let client = cluster.manager().client().clone();
    Ok((cluster, client))
}

/// A config map in a namespace.
pub(crate) fn config(namespace: &str, name: &str, data: &[(&str, &str)]) -> ConfigMap {
    let data: BTreeMap<_, _> = data.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    ConfigMap { metadata: meta(namespace, name), data: Some(data), ..ConfigMap::default() }
}

pub(crate) fn meta(namespace: &str, name: &str) -> ObjectMeta {
    ObjectMeta { namespace: Some(namespace.to_owned()), name: Some(name.to_owned()), ..ObjectMeta::default() }
}

pub(crate) fn key(cluster: &TestCluster, name: &str) -> ObjectKey {
    ObjectKey::new(cluster.namespace(), name)
}

pub(crate) fn datum(config: &ConfigMap, name: &str) -> Option<String> {
    config.data.as_ref()?.get(name).cloned()
}

/// The definition of cakes, of a version.
pub(crate) fn cakes(version: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "cakes.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "cakes", "singular": "cake", "kind": "Cake", "shortNames": ["ck"]},
            "versions": [{
                "name": version, "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    })
}
