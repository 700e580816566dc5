//! A controller of one's own kind, in thirty lines: every `Cake` has a `ConfigMap` with its recipe.
//!
//! `cargo run -p example-crd-controller` runs it against the cluster of your kubeconfig, with leader election; the test
//! beside it runs it in a test cluster.

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

impl Reconciler for Bakery {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let Some(cake) = self.cakes.get(key) else { return Ok(Action::Done) };
        let metadata = ObjectMeta {
            name: Some(format!("{}-recipe", key.name)),
            namespace: Some(key.namespace.to_string()),
            ..ObjectMeta::default()
        };
        let data = Some([("candles".to_owned(), cake.spec.candles.to_string())].into());
        let recipe = ConfigMap { metadata, data, ..ConfigMap::default() }.controlled_by(&*cake)?;
        cx.writer.on_behalf_of(&*cake).create_or_patch(&recipe, Why::CakeNeedsRecipe).await?;
        Ok(Action::After(Duration::from_secs(300)))
    }
}

/// Adds the controller to a manager.
pub fn add_bakery(manager: &Manager) -> Controller {
    let bakery = Bakery { cakes: manager.lister() };
    manager.controller::<Cake>("bakery").owns::<ConfigMap>().workers(2).reconcile_with(bakery)
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
