//! How to test code that talks to Kubernetes: `cargo test -p example-test-cluster`.
//!
//! The code under test takes a `kube::Client` and knows nothing of tests. The test gives it one of a cluster that lives in
//! the test's own process: no download, no port, and a clock that the test moves.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client};

/// Marks every ConfigMap of a namespace that has no data, and answers how many there were.
///
/// # Errors
/// The server refuses.
pub async fn mark_empty_config_maps(client: Client, namespace: &str) -> kube::Result<usize> {
    let maps: Api<ConfigMap> = Api::namespaced(client, namespace);
    let all = maps.list(&ListParams::default()).await?;
    let mut marked = 0;
    for map in all.items.iter().filter(|map| map.data.as_ref().is_none_or(std::collections::BTreeMap::is_empty)) {
        let patch = ConfigMap {
            metadata: kube::api::ObjectMeta {
                annotations: Some([("example.dev/empty".to_owned(), "true".to_owned())].into()),
                ..kube::api::ObjectMeta::default()
            },
            ..ConfigMap::default()
        };
        let name = map.metadata.name.as_deref().unwrap_or_default();
        maps.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
        marked += 1;
    }
    Ok(marked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use steersman::testing::{Failure, TestCluster};

    fn config_map(name: &str, data: &[(&str, &str)]) -> ConfigMap {
        ConfigMap {
            metadata: kube::api::ObjectMeta { name: Some(name.into()), ..kube::api::ObjectMeta::default() },
            data: Some(data.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()),
            ..ConfigMap::default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn only_empty_config_maps_are_marked() -> Result<(), Failure> {
        let cluster = TestCluster::builder().start().await?;
        cluster.create(config_map("full", &[("a", "1")])).await?;
        cluster.create(config_map("empty", &[])).await?;

        assert_eq!(mark_empty_config_maps(cluster.client(), cluster.namespace()).await?, 1);

        let maps: Api<ConfigMap> = cluster.api();
        let marks = |map: ConfigMap| map.metadata.annotations.unwrap_or_default().contains_key("example.dev/empty");
        assert!(marks(maps.get("empty").await?));
        assert!(!marks(maps.get("full").await?));
        cluster.stop().await
    }
}
