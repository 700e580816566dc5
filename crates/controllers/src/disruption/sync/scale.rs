//! The scale of pods' owners: from the caches, or from the `scale` subresource of any kind.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use steersman_base::{ObjectKey, OwnerRef, Uid};
use steersman_informer::Lister;
use steersman_model::View;
use steersman_model::apps::{DeploymentView, ReplicaSetView, StatefulSetView};
use steersman_model::core::{PodView, ReplicationControllerView};
use steersman_runtime::mapper::RestMapper;
use steersman_runtime::{Context, Error};

use crate::scale;

/// The reader of the scale of owners.
pub(in crate::disruption) struct Scales {
    pub(in crate::disruption) controllers: Lister<ReplicationControllerView>,
    pub(in crate::disruption) sets: Lister<ReplicaSetView>,
    pub(in crate::disruption) deployments: Lister<DeploymentView>,
    pub(in crate::disruption) stateful: Lister<StatefulSetView>,
    pub(in crate::disruption) mapper: RestMapper,
}

/// The scale of all owners of some pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::disruption) struct Scale {
    pub(in crate::disruption) sum: i32,
    /// Whether there are pods without an owner.
    pub(in crate::disruption) has_unmanaged: bool,
}

/// An owner, and its scale.
type Owner = (Uid, i32);

/// The number of pods of an owner that does not say.
const REPLICAS_DEFAULT: i32 = 1;

// === impl Scales ===

impl Scales {
    /// Returns the sum of the scales of the pods' owners, each counted once.
    ///
    /// # Errors
    /// The scale of an owner is not known.
    pub(in crate::disruption) async fn of(&self, cx: &Context, pods: &[Arc<PodView>]) -> Result<Scale, Error> {
        let mut seen: BTreeSet<&Uid> = BTreeSet::new();
        let mut scales: BTreeMap<Uid, i32> = BTreeMap::new();
        let mut scale = Scale::default();
        for pod in pods {
            let Some(owner) = pod.meta().controller() else {
                scale.has_unmanaged = true;
                continue;
            };
            if seen.contains(&owner.uid) {
                continue;
            }
            let found = self.of_owner(cx, owner, &pod.meta().namespace).await?;
            let missing = || Error::message(format_args!("found no controllers for pod {:?}", pod.meta().name));
            let (uid, count) = found.ok_or_else(missing)?;
            seen.insert(&owner.uid);
            scales.insert(uid, count);
        }
        scale.sum = scales.into_values().fold(0, i32::saturating_add);
        Ok(scale)
    }

    async fn of_owner(&self, cx: &Context, owner: &OwnerRef, namespace: &str) -> Result<Option<Owner>, Error> {
        let cached = match (owner.group(), &*owner.kind) {
            ("", "ReplicationController") => {
                let found = self.controllers.namespace(namespace).get(&owner.name);
                let found = found.filter(|found| found.meta().uid == owner.uid);
                found.map(|found| (owner.uid.clone(), found.spec.replicas.unwrap_or(REPLICAS_DEFAULT)))
            }
            ("apps" | "extensions", "ReplicaSet") => self.of_set(owner, namespace),
            ("apps", "StatefulSet") => {
                let found = self.stateful.namespace(namespace).get(&owner.name);
                let found = found.filter(|found| found.meta().uid == owner.uid);
                found.map(|found| (owner.uid.clone(), found.spec.replicas.unwrap_or(REPLICAS_DEFAULT)))
            }
            _ => None,
        };
        match cached {
            Some(found) => Ok(Some(found)),
            // A kind without a cache; or the cache is stale.
            None => self.on_server(cx, owner, namespace).await,
        }
    }

    /// Returns the scale of a ReplicaSet, or of its Deployment.
    fn of_set(&self, owner: &OwnerRef, namespace: &str) -> Option<Owner> {
        let set = self.sets.namespace(namespace).get(&owner.name).filter(|set| set.meta().uid == owner.uid)?;
        let Some(deployment) = set.meta().controller().filter(|owner| owner.kind == "Deployment") else {
            return Some((owner.uid.clone(), set.spec.replicas.unwrap_or(REPLICAS_DEFAULT)));
        };
        if !matches!(deployment.group(), "apps" | "extensions") {
            return None;
        }
        let found = self.deployments.namespace(namespace).get(&deployment.name);
        let found = found.filter(|found| found.meta().uid == deployment.uid)?;
        Some((deployment.uid.clone(), found.spec.replicas.unwrap_or(REPLICAS_DEFAULT)))
    }

    /// Returns the scale that the server returns; `None` if there is no such owner.
    async fn on_server(&self, cx: &Context, owner: &OwnerRef, namespace: &str) -> Result<Option<Owner>, Error> {
        let version = owner.api_version.rsplit('/').next();
        let found = self.mapper.resource_for(owner.group(), version, &owner.kind).await?;
        let key = ObjectKey { namespace: namespace.into(), name: owner.name.clone() };
        let Some(scale) = cx.live.get_subresource_json(&found.resource, &key, "scale").await? else {
            if found.subresource("scale").is_none() {
                let resource = found.resource.group_resource();
                return Err(Error::message(format_args!("{resource} does not implement the scale subresource")));
            }
            return Ok(None);
        };
        scale::check(&scale).map_err(Error::message)?;
        let is_meant = scale["metadata"]["uid"] == serde_json::json!(owner.uid);
        let replicas = scale["spec"]["replicas"].as_i64().unwrap_or_default();
        Ok(is_meant.then(|| (owner.uid.clone(), i32::try_from(replicas).unwrap_or(i32::MAX))))
    }
}
