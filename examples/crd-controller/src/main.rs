//! Runs the bakery against the cluster of your kubeconfig: orders a cake, and waits for its recipe.

use std::error::Error;
use std::time::Duration;

use example_crd_controller::{Cake, CakeSpec, add_bakery, definition as cake_definition};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use steersman::prelude::*;
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = connection::connect(connection::Options::default()).await?;
    definition::install_value(&client, &cake_definition()).await?;

    let lease = LeaseOptions::new("default", "bakery").release_on_exit();
    let manager = Manager::new(client.clone(), ManagerOptions::default().lease(lease))?;
    add_bakery(&manager);
    let stop = CancellationToken::new();
    let running = tokio::spawn({
        let manager = manager.clone();
        let stop = stop.clone();
        async move { manager.run(stop).await }
    });

    let cakes = Api::<Cake>::default_namespaced(client.clone());
    let cake = cakes.create(&PostParams::default(), &Cake::new("sponge", CakeSpec { candles: 7 })).await?;
    println!("ordered cake {}", cake.metadata.name.unwrap_or_default());
    let recipes = Api::<ConfigMap>::default_namespaced(client);
    let recipe = tokio::time::timeout(Duration::from_secs(60), async {
        loop {
            if let Ok(Some(recipe)) = recipes.get_opt("sponge-recipe").await {
                return recipe;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
    println!("its recipe: {:?}", recipe.await?.data.unwrap_or_default());

    cakes.delete("sponge", &DeleteParams::default()).await?;
    stop.cancel();
    running.await??;
    println!("the lease is given back");
    Ok(())
}
