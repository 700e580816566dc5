//! Whole typed objects as views: for users' own kinds, and for built-in ones that are rare.
//!
//! A [`Typed<K>`] keeps all of `K`, which costs about twenty times the memory of a view made for the purpose; fine for a
//! thousand objects, not for all pods of a large cluster.

use std::any::TypeId;
use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use kube::core::{ClusterResourceScope, Resource as Named};
use serde::de::DeserializeOwned;
use steersman_base::{Meta, ObjectKey, Resource, Scope};
use steersman_model::{DecodeError, Encoded, Kind, View};

/// Any type that serde can read, with its metadata beside it: types of `k8s-openapi`, types that derive
/// `kube::CustomResource`, `kube::core::DynamicObject`, `serde_json::Value`.
#[derive(Clone)]
pub struct Typed<K> {
    meta: Meta,
    object: K,
}

/// A view that knows the resource of its objects: every [`Kind`], and [`Typed`] objects of types that know theirs.
pub trait HasResource: View {
    /// Returns the resource.
    fn resource() -> Resource;
}

/// Returns the resource of a type that knows its names.
#[must_use]
pub fn resource_of<K>() -> Resource
where
    K: Named<DynamicType = ()>,
    K::Scope: 'static,
{
    let is_cluster = TypeId::of::<K::Scope>() == TypeId::of::<ClusterResourceScope>();
    Resource {
        group: Cow::Owned(K::group(&()).into_owned()),
        version: Cow::Owned(K::version(&()).into_owned()),
        plural: Cow::Owned(K::plural(&()).into_owned()),
        kind: Cow::Owned(K::kind(&()).into_owned()),
        scope: if is_cluster { Scope::Cluster } else { Scope::Namespaced },
    }
}

/// Removes `metadata.managedFields`, often half of an object, before a cache holds it:
/// `informer.transform(strip_managed_fields)`.
pub fn strip_managed_fields<K: Named>(object: &mut Typed<K>) {
    object.object.meta_mut().managed_fields = None;
}

// === impl Typed ===

impl<K> Typed<K> {
    /// Creates an object with its metadata.
    pub fn new(meta: Meta, object: K) -> Self {
        Self { meta, object }
    }

    /// Returns the object.
    pub fn object(&self) -> &K {
        &self.object
    }

    /// Returns the object, to change it before a cache holds it: see [`SharedInformer::transform`](crate::SharedInformer::transform).
    ///
    /// What [`meta`](Self::meta) and [`key`](Self::key) return stays as it was read.
    pub fn object_mut(&mut self) -> &mut K {
        &mut self.object
    }

    /// Returns the metadata of the object, in the compact form of the caches.
    ///
    /// An inherent method, so that `object.meta()` is unambiguous where both [`View`] and [`kube::Resource`](Named) are in
    /// scope. The `ObjectMeta` of Kubernetes is `object.object().meta()`.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// Returns the key of the object, such as a handler returns it.
    pub fn key(&self) -> ObjectKey {
        self.meta.key()
    }
}

impl<K: DeserializeOwned + Send + Sync + 'static> View for Typed<K> {
    fn meta(&self) -> &Meta {
        &self.meta
    }

    fn decode(body: Encoded<'_>) -> Result<Self, DecodeError> {
        let Encoded::Json(json) = body else { return Err(DecodeError::JsonOnly { kind: std::any::type_name::<K>() }) };
        Ok(Self { meta: Meta::decode(body)?, object: serde_json::from_slice(json)? })
    }
}

impl<V: Kind> HasResource for V {
    fn resource() -> Resource {
        V::RESOURCE
    }
}

impl<K> HasResource for Typed<K>
where
    K: Named<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
    K::Scope: 'static,
{
    fn resource() -> Resource {
        resource_of::<K>()
    }
}

impl<K> Deref for Typed<K> {
    type Target = K;
    fn deref(&self) -> &K {
        &self.object
    }
}

impl<K: fmt::Debug> fmt::Debug for Typed<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.object.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::sink::{Sink as _, WatchEvent};
    use crate::{SharedInformer, Target};

    #[tokio::test(start_paused = true)]
    async fn a_cache_of_typed_objects_can_drop_managed_fields_and_keeps_the_key() {
        let stop = CancellationToken::new();
        let informer = SharedInformer::<Typed<ConfigMap>>::new(Target::all(resource_of::<ConfigMap>()), stop.clone());
        informer.transform(strip_managed_fields).unwrap();
        let running = tokio::spawn({
            let informer = informer.clone();
            let stop = stop.clone();
            async move { informer.run(&stop).await }
        });
        let read = |version: &str| {
            let body = format!(
                r#"{{"metadata":{{"name":"a","namespace":"ns","resourceVersion":"{version}","managedFields":[{{"manager":"me"}}]}}}}"#
            );
            std::sync::Arc::new(Typed::<ConfigMap>::decode(Encoded::Json(body.as_bytes())).unwrap())
        };
        let mut sink = informer.sink();
        sink.listing();
        sink.replace(vec![read("1")], "1".into());
        sink.apply(WatchEvent::Modified(read("2")));
        informer.synced().await;
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        let stored = informer.lister().list().remove(0);
        assert_eq!(stored.key(), ObjectKey::new("ns", "a"));
        assert_eq!(stored.metadata.resource_version.as_deref(), Some("2"));
        assert_eq!(stored.metadata.managed_fields, None);
        stop.cancel();
        running.await.unwrap();
    }
}
