//! Admission: what stands between a well-formed write and the store.
//!
//! The plug-ins of a kind are part of its [rule set](crate::kinds::Rules); those of all kinds are here. [`mutate`] and
//! [`validate`] are the two chains of a write, [`delete`] that of a deletion. [`write`](super::write) says when they run.
//!
//! Follows the plug-ins of `plugin/pkg/admission` that an embedded server needs: NamespaceLifecycle, PodSecurity and ResourceQuota here, and Priority,
//! DefaultTolerationSeconds, LimitRanger, TaintNodesByCondition, DefaultStorageClass, StorageObjectInUseProtection,
//! DefaultIngressClass, PersistentVolumeClaimResize, PodResizeValidator, PodTopologyLabels, ClusterTrustBundleAttest, and CertificateApproval,
//! -Signing and -SubjectRestriction in the files of their kinds. [`policy`] evaluates the admission policies, [`webhook`] asks the webhooks that are configured.

mod attributes;
mod conditions;
mod matching;
mod namespace_lifecycle;
pub(crate) mod pod_security;
pub(crate) mod policy;
mod quota;
pub(crate) mod webhook;

use std::sync::Arc;

use serde_json::Value;
use steersman_base::ObjectKey;

use super::list::list_all;
use super::object_meta::meta_text;
use super::{Call, Registry};
use crate::status::{Cause, Status};
use crate::store::Object;

pub(crate) use attributes::Attributes;
pub(super) use namespace_lifecycle::check_namespace;

/// The admission plug-ins of a kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Admission {
    /// Changes a new object or an update, after defaults and before the strategy's `prepare`.
    pub(crate) mutate: fn(&dyn Lookup, new: &mut Value, old: Option<&Value>) -> Result<(), Refused>,
    /// Refuses a write, after validation.
    pub(crate) validate: fn(&Registry, &Call, new: &Value, old: Option<&Value>) -> Result<(), Refused>,
    /// Refuses a DELETE of one object.
    pub(crate) delete: fn(&Call) -> Result<(), Refused>,
    /// Whether a write of the object, or of this subresource, may count for quotas. By default, a new object does.
    pub(crate) is_counted: fn(subresource: &str, new: &Value, old: Option<&Value>) -> bool,
    /// The part of the object that the plug-in PodSecurity looks at.
    pub(crate) pod_security: pod_security::Subject,
    /// Whether no webhook is asked: what configures admission cannot be locked by it.
    pub(crate) is_exempt: bool,
}

/// The objects that plug-ins read besides the one they are given.
pub(crate) trait Lookup {
    /// Returns the object with this name; the namespace is empty for cluster-wide objects.
    fn get(&self, group: &str, resource: &str, namespace: &str, name: &str) -> Option<Value>;
    /// Returns all objects of a namespace, or of the cluster, ordered by name.
    fn list(&self, group: &str, resource: &str, namespace: &str) -> Vec<Value>;
    /// Returns those objects of [`list`](Self::list) of which a field is true, and maybe others: for plug-ins of every pod, which
    /// need none of them most of the time.
    fn list_flagged(&self, group: &str, resource: &str, _field: &str) -> Vec<Value> {
        self.list(group, resource, "")
    }
    /// Whether claims and volumes get the finalizers that protect them while they are in use.
    fn protects_storage(&self) -> bool {
        true
    }
}

/// Why a plug-in refuses a request: 403 `Forbidden`, with this as the end of the message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub(crate) struct Refused {
    why: String,
    /// The cause that the details name, for machines.
    cause: Option<&'static str>,
}

/// Runs the mutating plug-ins.
pub(super) fn mutate(registry: &Registry, call: &Call, object: &mut Value, old: Option<&Value>) -> Result<(), Status> {
    let admitted = (call.row.rules.admission.mutate)(registry, object, old);
    admitted.map_err(|refused| forbidden(call, meta_text(object, "name"), &refused))
}

/// Runs the validating plug-ins.
pub(super) fn validate(
    registry: &Registry,
    call: &Call,
    object: &Value,
    old: Option<&Value>,
    warnings: &mut Vec<String>,
) -> Result<(), Status> {
    let admitted = (call.row.rules.admission.validate)(registry, call, object, old);
    admitted.map_err(|refused| forbidden(call, meta_text(object, "name"), &refused))?;
    pod_security::check(registry, call, object, old, warnings)
}

/// Runs the plug-ins of a DELETE of one object.
pub(super) fn delete(call: &Call) -> Result<(), Status> {
    (call.row.rules.admission.delete)(call).map_err(|refused| forbidden(call, &call.name, &refused))
}

fn forbidden(call: &Call, name: &str, refused: &Refused) -> Status {
    let mut status = Status::forbidden(call.row.target(), name, &refused.why);
    if let (Some(details), Some(reason)) = (&mut status.details, refused.cause) {
        details.causes.push(Cause { reason, message: String::new(), field: String::new() });
    }
    status
}

// === impl Refused ===

impl Refused {
    /// A refusal with this as the end of the message.
    pub(crate) fn because(why: impl Into<String>) -> Self {
        Self { why: why.into(), cause: None }
    }

    /// Names the cause, too.
    pub(crate) fn caused_by(mut self, cause: &'static str) -> Self {
        self.cause = Some(cause);
        self
    }
}

// === impl Admission ===

impl Admission {
    /// No plug-ins.
    pub(crate) const NONE: Self = Self {
        mutate: |_, _, _| Ok(()),
        validate: |_, _, _, _| Ok(()),
        delete: |_| Ok(()),
        is_counted: |subresource, _, old| subresource.is_empty() && old.is_none(),
        pod_security: pod_security::Subject::None,
        is_exempt: false,
    };

    /// No plug-ins but PodSecurity, which warns about the template at this JSON pointer.
    pub(crate) const fn of_template(pointer: &'static str) -> Self {
        Self { pod_security: pod_security::Subject::Template(pointer), ..Self::NONE }
    }

    /// For [`is_counted`](Self::is_counted): a new object and each of its updates.
    pub(crate) const COUNTED_ALWAYS: fn(&str, &Value, Option<&Value>) -> bool =
        |subresource, _, _| subresource.is_empty();
}

// === impl Lookup ===

impl Lookup for Registry {
    fn get(&self, group: &str, resource: &str, namespace: &str, name: &str) -> Option<Value> {
        let row = self.any_version(group, resource)?;
        self.store.get(&row.collection, &ObjectKey::new(namespace, name))?.parse().ok()
    }

    fn list(&self, group: &str, resource: &str, namespace: &str) -> Vec<Value> {
        let Some(row) = self.any_version(group, resource) else { return Vec::new() };
        list_all(self, &row, namespace).iter().filter_map(|stored| stored.parse().ok()).collect()
    }

    fn list_flagged(&self, group: &str, resource: &str, field: &str) -> Vec<Value> {
        let Some(row) = self.any_version(group, resource) else { return Vec::new() };
        // As the store encodes it. Who has the text elsewhere is parsed in vain.
        let flag = format!("\"{field}\":true");
        let has_flag =
            |stored: &Arc<Object>| std::str::from_utf8(&stored.bytes()).is_ok_and(|text| text.contains(&flag));
        let flagged = list_all(self, &row, "").into_iter().filter(has_flag);
        flagged.filter_map(|stored| stored.parse().ok()).collect()
    }

    fn protects_storage(&self) -> bool {
        !self.unprotected_storage
    }
}
