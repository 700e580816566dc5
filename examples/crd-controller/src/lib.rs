//! A controller of one's own kind, in thirty lines: every `Cake` has a `ConfigMap` with its recipe.
//!
//! `cargo run -p example-crd-controller --bin bakery` runs it against the cluster of your kubeconfig, with leader election, until
//! Ctrl-C. Without `--bin bakery`, the program orders a cake, waits for its recipe, and ends. The test beside it runs the
//! controller in a test cluster.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::CustomResource;
use kube::api::ObjectMeta;
use serde::{Deserialize, Serialize};
use steersman::prelude::*;

/// What somebody wants to eat.
#[derive(CustomResource, Clone, Debug, Serialize, Deserialize)]
#[kube(group = "bakery.example.dev", version = "v1", kind = "Cake", namespaced, schema = "disabled")]
pub struct CakeSpec {
    /// How many candles it has.
    pub candles: u32,
}

reasons! {
    /// Why the bakery writes.
    pub enum Why {
        /// A cake was ordered.
        CakeNeedsRecipe => "the cake has no recipe" event "Baked" |recipe| "Wrote recipe {recipe}",
    }
}

/// The controller: what it reads from.
pub struct Bakery {
    cakes: Lister<Cake>,
}

impl Bakery {
    /// A controller that reads from the manager's caches.
    #[must_use]
    pub fn new(manager: &Manager) -> Self {
        Self { cakes: manager.lister() }
    }
}

impl Reconciler for Bakery {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let Some(cake) = self.cakes.get(key) else { return Ok(Action::Done) };
        let recipe = recipe_for(&cake).controlled_by(&*cake)?;
        cx.writer.on_behalf_of(&*cake).create_or_patch(&recipe, Why::CakeNeedsRecipe).await?;
        Ok(Action::After(Duration::from_secs(300)))
    }
}

/// The recipe of a cake: what its `ConfigMap` should be.
#[must_use]
pub fn recipe_for(cake: &Cake) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: cake.metadata.name.as_ref().map(|name| format!("{name}-recipe")),
            namespace: cake.metadata.namespace.clone(),
            ..ObjectMeta::default()
        },
        data: Some([("candles".to_owned(), cake.spec.candles.to_string())].into()),
        ..ConfigMap::default()
    }
}

/// Adds the controller to a manager.
pub fn add_bakery(manager: &Manager) -> Controller {
    manager.controller::<Cake>("bakery").owns::<ConfigMap>().workers(2).reconcile_with(Bakery::new(manager))
}

/// The definition of the kind, as `kubectl apply` takes it.
#[must_use]
pub fn definition() -> serde_json::Value {
    serde_json::json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "cakes.bakery.example.dev" },
        "spec": {
            "group": "bakery.example.dev",
            "scope": "Namespaced",
            "names": { "kind": "Cake", "plural": "cakes", "singular": "cake", "listKind": "CakeList" },
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": { "openAPIV3Schema": {
                    "type": "object",
                    "properties": { "spec": {
                        "type": "object",
                        "properties": { "candles": { "type": "integer", "minimum": 0 } }
                    } }
                } }
            }]
        }
    })
}

/// The code of the README must compile.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// The code of the guide must compile.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/framework.md")]
struct Guide;
