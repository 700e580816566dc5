//! The bakery in a test cluster: in this process, under a virtual clock.

use example_crd_controller::{Cake, CakeSpec, add_bakery, definition};
use k8s_openapi::api::core::v1::{ConfigMap, Event};
use kube::api::{ListParams, Patch, PatchParams};
use steersman::runtime::LeaseOptions;
use steersman::testing::{Failure, TestCluster};

#[tokio::test(start_paused = true)]
async fn every_cake_has_a_recipe_that_comes_back_when_it_is_deleted() -> Result<(), Failure> {
    let cluster = TestCluster::builder()
        .with(|manager| drop(add_bakery(manager)))
        .manager_options(|options| options.lease = Some(LeaseOptions::new("default", "bakery")))
        .define(definition())
        .start()
        .await?;
    let cake = cluster.create(Cake::new("sponge", CakeSpec { candles: 7 })).await?;
    let recipe = cluster.until_exists::<ConfigMap>("sponge-recipe").await?;
    assert_eq!(recipe.data.unwrap_or_default()["candles"], "7");
    assert_eq!(recipe.metadata.owner_references.unwrap_or_default()[0].uid, cake.metadata.uid.unwrap_or_default());

    cluster.delete::<ConfigMap>("sponge-recipe").await?;
    cluster.until_exists::<ConfigMap>("sponge-recipe").await?;

    let eight = serde_json::json!({ "spec": { "candles": 8 } });
    cluster.api::<Cake>().patch("sponge", &PatchParams::default(), &Patch::Merge(eight)).await?;
    let candles = async || {
        let recipe = cluster.api::<ConfigMap>().get("sponge-recipe").await?;
        Ok(recipe.data.unwrap_or_default()["candles"].clone())
    };
    cluster.until_eq("the recipe follows", candles, "8").await?;

    cluster.settle().await?;
    let events = cluster.api::<Event>().list(&ListParams::default()).await?;
    let notes: Vec<_> = events.items.iter().filter_map(|event| event.message.as_deref()).collect();
    assert!(notes.contains(&"Wrote recipe sponge-recipe"), "{notes:?}");
    cluster.stop().await
}
