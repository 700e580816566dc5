//! The types that a program knows.

use std::any::{TypeId, type_name};
use std::collections::BTreeMap;

use steersman_base::Resource;
use steersman_informer::resource_of;

use crate::client::Object;

/// Types and their kinds. Built once, then read.
#[derive(Clone, Debug, Default)]
pub struct Scheme {
    by_type: BTreeMap<TypeId, Resource>,
    by_kind: BTreeMap<KindKey, (Resource, &'static str)>,
}

/// Group, version and kind.
type KindKey = (String, String, String);

/// Two types for one kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} of {api_version} is {held} already, and cannot be {refused} too")]
#[non_exhaustive]
pub struct SchemeError {
    kind: String,
    api_version: String,
    held: &'static str,
    refused: &'static str,
}

// === impl Scheme ===

impl Scheme {
    /// Creates an empty scheme.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a type. Adding it again changes nothing.
    ///
    /// # Errors
    /// Another type has this kind.
    pub fn add<K: Object>(&mut self) -> Result<&mut Self, SchemeError> {
        let resource = resource_of::<K>();
        let key = key(&resource.group, &resource.version, &resource.kind);
        if let Some((held, name)) = self.by_kind.get(&key)
            && self.by_type.get(&TypeId::of::<K>()) != Some(held)
        {
            return Err(SchemeError {
                kind: held.kind.to_string(),
                api_version: held.api_version().into_owned(),
                held: name,
                refused: type_name::<K>(),
            });
        }
        self.by_type.insert(TypeId::of::<K>(), resource.clone());
        self.by_kind.insert(key, (resource, type_name::<K>()));
        Ok(self)
    }

    /// Returns the resource of a type, if it was added.
    #[must_use]
    pub fn resource_of<K: Object>(&self) -> Option<&Resource> {
        self.by_type.get(&TypeId::of::<K>())
    }

    /// Returns the resource of a kind, if a type of it was added.
    #[must_use]
    pub fn resource_for(&self, group: &str, version: &str, kind: &str) -> Option<&Resource> {
        self.by_kind.get(&key(group, version, kind)).map(|(resource, _)| resource)
    }

    /// Returns the name of the type of a kind, for display.
    #[must_use]
    pub fn type_for(&self, group: &str, version: &str, kind: &str) -> Option<&'static str> {
        self.by_kind.get(&key(group, version, kind)).map(|(_, name)| *name)
    }

    /// Returns the known versions of a kind.
    pub fn versions<'a>(&'a self, group: &'a str, kind: &'a str) -> impl Iterator<Item = &'a str> {
        let is = move |resource: &&Resource| resource.group == group && resource.kind == kind;
        self.resources().filter(is).map(|resource| &*resource.version)
    }

    /// Returns every known resource, sorted by group, version and kind.
    pub fn resources(&self) -> impl Iterator<Item = &Resource> {
        self.by_kind.values().map(|(resource, _)| resource)
    }
}

fn key(group: &str, version: &str, kind: &str) -> KindKey {
    (group.to_owned(), version.to_owned(), kind.to_owned())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::Deployment;
    use k8s_openapi::api::core::v1::{Node, Pod};
    use steersman_base::Scope;

    use super::*;

    #[test]
    fn types_and_kinds_find_each_other() {
        let mut scheme = Scheme::new();
        scheme.add::<Pod>().unwrap().add::<Deployment>().unwrap().add::<Pod>().unwrap();
        assert_eq!(scheme.resource_of::<Pod>().map(|resource| &*resource.plural), Some("pods"));
        assert_eq!(scheme.resource_of::<Node>(), None);
        let deployments = scheme.resource_for("apps", "v1", "Deployment").unwrap();
        assert_eq!((&*deployments.plural, deployments.scope), ("deployments", Scope::Namespaced));
        assert_eq!(scheme.resource_for("apps", "v2", "Deployment"), None);
        assert_eq!(scheme.type_for("", "v1", "Pod"), Some(type_name::<Pod>()));
        assert_eq!(scheme.versions("apps", "Deployment").collect::<Vec<_>>(), ["v1"]);
        assert_eq!(scheme.resources().count(), 2);
    }

    #[test]
    fn a_kind_has_one_type() {
        // The same kind, as another type would have it.
        #[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
        struct MyPod {
            metadata: kube::core::ObjectMeta,
        }
        impl kube::Resource for MyPod {
            type DynamicType = ();
            type Scope = k8s_openapi::NamespaceResourceScope;
            fn kind((): &()) -> std::borrow::Cow<'_, str> {
                "Pod".into()
            }
            fn group((): &()) -> std::borrow::Cow<'_, str> {
                "".into()
            }
            fn version((): &()) -> std::borrow::Cow<'_, str> {
                "v1".into()
            }
            fn plural((): &()) -> std::borrow::Cow<'_, str> {
                "pods".into()
            }
            fn meta(&self) -> &kube::core::ObjectMeta {
                &self.metadata
            }
            fn meta_mut(&mut self) -> &mut kube::core::ObjectMeta {
                &mut self.metadata
            }
        }
        let mut scheme = Scheme::new();
        scheme.add::<Pod>().unwrap();
        let error = scheme.add::<MyPod>().unwrap_err().to_string();
        assert!(error.starts_with("Pod of v1 is k8s_openapi::"), "{error}");
    }
}
