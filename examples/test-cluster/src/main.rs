//! Marks the empty ConfigMaps of your current namespace, after adding one.

use std::error::Error;

use example_test_cluster::mark_empty_config_maps;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ObjectMeta, PostParams};
use kube::{Api, Client};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = Client::try_default().await?;
    let namespace = client.default_namespace().to_owned();
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let metadata = ObjectMeta { generate_name: Some("empty-".into()), ..ObjectMeta::default() };
    let empty = maps.create(&PostParams::default(), &ConfigMap { metadata, ..ConfigMap::default() }).await?;
    let marked = mark_empty_config_maps(client, &namespace).await?;
    let name = empty.metadata.name.unwrap_or_default();
    let is_marked = maps.get(&name).await?.metadata.annotations.is_some();
    println!("marked: {}", is_marked && marked > 0);
    maps.delete(&name, &DeleteParams::default()).await?;
    Ok(())
}
