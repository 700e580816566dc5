//! Owner references.
//!
//! 1. An object has one controller at most: a second one is refused.
//! 2. An owner in a namespace owns objects of the same namespace only, and none that are cluster-scoped: the garbage
//!    collector would delete them.
//! 3. References to one object, by group, kind and name, are never doubled; the newer one counts.
//!
//! Follows controller-runtime's `controllerutil` (0.25), with its error texts. Beyond it, an owner without a uid is
//! refused: it was never created, and the server would refuse the reference later.
//!
//! ```
//! use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
//! use steersman_runtime::owner::{OwnedBy, OwnerError};
//!
//! fn config_for(deployment: &Deployment) -> Result<ConfigMap, OwnerError> {
//!     let mut config = ConfigMap::default();
//!     config.metadata.name = deployment.metadata.name.clone();
//!     config.metadata.namespace = deployment.metadata.namespace.clone();
//!     config.controlled_by(deployment)
//! }
//! # let mut web = Deployment::default();
//! # web.metadata.name = Some("web".into());
//! # web.metadata.namespace = Some("default".into());
//! # assert!(config_for(&web).is_err());
//! # web.metadata.uid = Some("1-2-3".into());
//! # assert_eq!(config_for(&web).unwrap().metadata.owner_references.unwrap().len(), 1);
//! ```

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::Resource;
use steersman_informer::Typed;
use steersman_model::Kind;

/// An error of an owner reference.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OwnerError {
    /// Another owner controls the object.
    #[error("Object {namespace}/{name} is already owned by another {kind} controller {controller}")]
    AlreadyOwned {
        /// The object's namespace.
        namespace: String,
        /// The object's name.
        name: String,
        /// Kind of the other controller.
        kind: String,
        /// Name of the other controller.
        controller: String,
    },
    /// The object is cluster-scoped, the owner is not.
    #[error("cluster-scoped resource must not have a namespace-scoped owner, owner's namespace {owner}")]
    ClusterScoped {
        /// The owner's namespace.
        owner: String,
    },
    /// The owner is in another namespace.
    #[error("cross-namespace owner references are disallowed, owner's namespace {owner}, obj's namespace {object}")]
    OtherNamespace {
        /// The owner's namespace.
        owner: String,
        /// The object's namespace.
        object: String,
    },
    /// The owner has no uid.
    #[error("{kind} {name:?} has no uid and cannot own anything: create it, and use what the server answers")]
    NoUid {
        /// Kind of the owner.
        kind: String,
        /// Name of the owner.
        name: String,
    },
    /// The object does not refer to this owner, or not as its controller.
    #[error("{object:?} does not have {wanted} for {kind} {owner:?}")]
    NotOwned {
        /// The object's name.
        object: String,
        /// The missing reference.
        wanted: &'static str,
        /// Kind of the owner.
        kind: String,
        /// Name of the owner.
        owner: String,
    },
}

/// An owner: types of kube and `k8s-openapi`, objects of a cached client, views. The parameter distinguishes the
/// implementations apart, and is always inferred.
pub trait Owner<By> {
    /// Returns a reference to the owner, and its namespace.
    fn reference(&self) -> (OwnerReference, String);
}

/// [`Owner`]s that kube knows.
#[doc(hidden)]
#[derive(Debug)]
pub enum ByKube {}
/// [`Owner`]s that come from a cache.
#[doc(hidden)]
#[derive(Debug)]
pub enum ByCache {}
/// [`Owner`]s that are views.
#[doc(hidden)]
#[derive(Debug)]
pub enum ByView {}

/// [`Owner`]s whose resource is chosen at run time.
#[doc(hidden)]
#[derive(Debug)]
pub enum ByResource {}

/// Owner references in one expression.
pub trait OwnedBy: Resource + Sized {
    /// Returns the object, controlled by `owner`.
    ///
    /// # Errors
    /// Another owner controls it already, or this one cannot own it.
    fn controlled_by<By, O: Owner<By>>(mut self, owner: &O) -> Result<Self, OwnerError> {
        set_controller_reference(owner, &mut self)?;
        Ok(self)
    }

    /// Returns the object, owned by `owner` among others.
    ///
    /// # Errors
    /// This owner cannot own it.
    fn owned_by<By, O: Owner<By>>(mut self, owner: &O) -> Result<Self, OwnerError> {
        set_owner_reference(owner, &mut self)?;
        Ok(self)
    }
}

impl<T: Resource> OwnedBy for T {}

/// Makes `owner` the controller of an object, and lets a foreground deletion of the owner wait for the object.
///
/// # Errors
/// Another owner controls it already, or this one cannot own it. The object is unchanged then.
pub fn set_controller_reference<By>(owner: &impl Owner<By>, object: &mut impl Resource) -> Result<(), OwnerError> {
    let (mut reference, namespace) = owner.reference();
    reference.controller = Some(true);
    reference.block_owner_deletion = Some(true);
    let meta = object.meta_mut();
    check(&reference, &namespace, meta)?;
    if let Some(other) = controller_of(meta).filter(|other| !is_same(other, &reference)) {
        return Err(OwnerError::AlreadyOwned {
            namespace: meta.namespace.clone().unwrap_or_default(),
            name: meta.name.clone().unwrap_or_default(),
            kind: other.kind.clone(),
            controller: other.name.clone(),
        });
    }
    upsert(meta, reference);
    Ok(())
}

/// Makes `owner` an owner of an object, among others. An existing reference to it is replaced.
///
/// # Errors
/// This owner cannot own it. The object is unchanged then.
pub fn set_owner_reference<By>(owner: &impl Owner<By>, object: &mut impl Resource) -> Result<(), OwnerError> {
    let (reference, namespace) = owner.reference();
    check(&reference, &namespace, object.meta())?;
    upsert(object.meta_mut(), reference);
    Ok(())
}

/// Removes the reference to an owner.
///
/// # Errors
/// There is no such reference.
pub fn remove_owner_reference<By>(owner: &impl Owner<By>, object: &mut impl Resource) -> Result<(), OwnerError> {
    let (reference, _) = owner.reference();
    remove(object.meta_mut(), &reference, |_| true, "an owner reference")
}

/// Removes the reference to an owner that is the controller.
///
/// # Errors
/// There is no such reference, or that owner is not the controller.
pub fn remove_controller_reference<By>(owner: &impl Owner<By>, object: &mut impl Resource) -> Result<(), OwnerError> {
    let (reference, _) = owner.reference();
    remove(object.meta_mut(), &reference, |held| held.controller == Some(true), "a controller reference")
}

/// Whether an object has a controller.
#[must_use]
pub fn has_controller(object: &impl Resource) -> bool {
    controller_of(object.meta()).is_some()
}

/// Whether an object refers to this owner, by group, kind and name.
#[must_use]
pub fn has_owner<By>(object: &impl Resource, owner: &impl Owner<By>) -> bool {
    let (reference, _) = owner.reference();
    object.meta().owner_references.iter().flatten().any(|held| is_same(held, &reference))
}

/// Returns the controller of an object.
#[must_use]
pub fn controller_of(meta: &ObjectMeta) -> Option<&OwnerReference> {
    meta.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
}

fn check(owner: &OwnerReference, namespace: &str, object: &ObjectMeta) -> Result<(), OwnerError> {
    let object = object.namespace.as_deref().unwrap_or_default();
    if owner.uid.is_empty() {
        return Err(OwnerError::NoUid { kind: owner.kind.clone(), name: owner.name.clone() });
    }
    match (namespace, object) {
        ("", _) => Ok(()),
        (owner, "") => Err(OwnerError::ClusterScoped { owner: owner.to_owned() }),
        (owner, object) if owner != object => {
            Err(OwnerError::OtherNamespace { owner: owner.to_owned(), object: object.to_owned() })
        }
        _ => Ok(()),
    }
}

fn upsert(meta: &mut ObjectMeta, reference: OwnerReference) {
    let owners = meta.owner_references.get_or_insert_default();
    match owners.iter_mut().find(|held| is_same(held, &reference)) {
        Some(held) => *held = reference,
        None => owners.push(reference),
    }
}

fn remove(
    meta: &mut ObjectMeta,
    reference: &OwnerReference,
    is_meant: impl Fn(&OwnerReference) -> bool,
    wanted: &'static str,
) -> Result<(), OwnerError> {
    let owners = meta.owner_references.get_or_insert_default();
    let at = owners.iter().position(|held| is_same(held, reference)).filter(|at| is_meant(&owners[*at]));
    let found = at.map(|at| owners.remove(at));
    if owners.is_empty() {
        meta.owner_references = None;
    }
    found.map(drop).ok_or_else(|| OwnerError::NotOwned {
        object: meta.name.clone().unwrap_or_default(),
        wanted,
        kind: reference.kind.clone(),
        owner: reference.name.clone(),
    })
}

/// Whether both refer to one object. The uid does not count: a recreated owner replaces the first one.
fn is_same(left: &OwnerReference, right: &OwnerReference) -> bool {
    let group = |owner: &OwnerReference| owner.api_version.split_once('/').map(|(group, _)| group.to_owned());
    group(left) == group(right) && left.kind == right.kind && left.name == right.name
}

// === impl Owner ===

impl<K: Resource<DynamicType = ()>> Owner<ByKube> for K {
    fn reference(&self) -> (OwnerReference, String) {
        let meta = self.meta();
        let reference = OwnerReference {
            api_version: K::api_version(&()).into_owned(),
            kind: K::kind(&()).into_owned(),
            name: meta.name.clone().unwrap_or_default(),
            uid: meta.uid.clone().unwrap_or_default(),
            ..OwnerReference::default()
        };
        (reference, meta.namespace.clone().unwrap_or_default())
    }
}

impl<K: Resource<DynamicType = ()>> Owner<ByCache> for Typed<K> {
    fn reference(&self) -> (OwnerReference, String) {
        self.object().reference()
    }
}

impl<V: Kind> Owner<ByView> for V {
    fn reference(&self) -> (OwnerReference, String) {
        let meta = self.meta();
        let reference = OwnerReference {
            api_version: V::RESOURCE.api_version().into_owned(),
            kind: V::RESOURCE.kind.into_owned(),
            name: meta.name.to_string(),
            uid: meta.uid.to_string(),
            ..OwnerReference::default()
        };
        (reference, meta.namespace.to_string())
    }
}

/// An object of a resource that is chosen at run time, as an owner.
impl<T: Resource> Owner<ByResource> for (&steersman_base::Resource, &T) {
    fn reference(&self) -> (OwnerReference, String) {
        let (resource, object) = self;
        let meta = object.meta();
        let reference = OwnerReference {
            api_version: resource.api_version().into_owned(),
            kind: resource.kind.to_string(),
            name: meta.name.clone().unwrap_or_default(),
            uid: meta.uid.clone().unwrap_or_default(),
            ..OwnerReference::default()
        };
        (reference, meta.namespace.clone().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests;
