//! The types that a client reads and writes.

use serde::Serialize;
use serde::de::DeserializeOwned;
use steersman_base::ObjectKey;

/// A type with metadata that serde can read and write: `kube::core::DynamicObject`, types of `k8s-openapi`, types that
/// derive `kube::CustomResource`.
pub trait AnyObject: kube::Resource + Serialize + DeserializeOwned + Send + Sync + 'static {}

impl<T: kube::Resource + Serialize + DeserializeOwned + Send + Sync + 'static> AnyObject for T {}

/// An [`AnyObject`] that knows its resource: types of `k8s-openapi`, types that derive `kube::CustomResource`.
pub trait Object: kube::Resource<DynamicType = (), Scope: 'static> + AnyObject {}

impl<K: kube::Resource<DynamicType = (), Scope: 'static> + AnyObject> Object for K {}

/// Returns the key of an object.
pub(crate) fn key_of(object: &impl kube::Resource) -> ObjectKey {
    let text = |part: &Option<String>| part.clone().unwrap_or_default();
    ObjectKey::new(&text(&object.meta().namespace), &text(&object.meta().name))
}
