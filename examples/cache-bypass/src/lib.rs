//! The way round the cache: every ConfigMap labelled `numbered=true` gets a number of its own, signed with a Secret.
//!
//! Three kinds of reads, side by side:
//! 1. Is there something to do? A cached read: costs the server nothing, and if it is old, the news leads here again.
//! 2. Which numbers are taken? A live read, per call: from a cache that lags two objects could get one number.
//! 3. With what is it signed? Secrets are never cached here, per type: no copy of them stays in this process.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::json;
use steersman::base::{ObjectKey, Resource};
use steersman::runtime::client::{CachedClient, Query};
use steersman::runtime::{Action, Context, Controller, Error, Manager, ManagerOptions, Patch, Reconciler};

/// The annotation that holds the number.
pub const NUMBER: &str = "example.com/number";
/// The label of those that want one.
pub const NUMBERED: &str = "numbered=true";
/// The Secret whose `key` signs.
pub const SIGNATURE: &str = "signature";

const CONFIG_MAPS: Resource = Resource::namespaced("", "v1", "configmaps", "ConfigMap");

/// The controller: what it reads through. It writes with the writer of the pass.
pub struct Numbering {
    client: CachedClient,
}

impl Reconciler for Numbering {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let Some(config) = self.client.get_opt::<ConfigMap>(key).await? else { return Ok(Action::Done) };
        let wants = config.metadata.labels.as_ref().and_then(|labels| labels.get("numbered")).is_some();
        if !wants || number(&config).is_some() {
            return Ok(Action::Done);
        }
        let everybody = self.client.live().list::<ConfigMap>(&Query::all().labels(NUMBERED)?).await?;
        let next = everybody.iter().filter_map(|other| number(other)).max().unwrap_or(0) + 1;
        let secret = self.client.get::<Secret>(&ObjectKey::new(&key.namespace, SIGNATURE)).await?;
        let signed = secret.data.iter().flatten().map(|(_, value)| value.0.len()).sum::<usize>();
        // The version makes sure that the object is still the one that was read; a conflict is retried.
        let patch = json!({"metadata": {
            "resourceVersion": config.metadata.resource_version,
            "annotations": {NUMBER: next.to_string(), "example.com/signed-with": format!("{signed} bytes")},
        }});
        let write = cx.writer.on_behalf_of(&*config);
        write.patch(&CONFIG_MAPS, key, Patch::Merge(&patch), &"the ConfigMap has no number").await?;
        Ok(Action::Done)
    }
}

/// The number of an object, if it has one.
#[must_use]
pub fn number(config: &ConfigMap) -> Option<u32> {
    config.metadata.annotations.as_ref()?.get(NUMBER)?.parse().ok()
}

/// Keeps Secrets out of the caches of a manager.
pub fn keep_secrets_out(options: &mut ManagerOptions) {
    options.client.never_cached = vec![Resource::namespaced("", "v1", "secrets", "Secret")];
}

/// Adds the controller to a manager. One worker: two could see the same numbers.
pub fn add_numbering(manager: &Manager) -> Controller {
    let numbering = Numbering { client: manager.client().clone() };
    manager.controller::<ConfigMap>("numbering").workers(1).reconcile_with(numbering)
}
