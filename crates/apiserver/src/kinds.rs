//! What is special about each kind: its defaults and its validation, one small file each.
//!
//! An object goes through this on its way into the store: decoded → patched → pruned and type-checked by schema →
//! [`default`] → metadata filled in (name, namespace, `uid`, `creationTimestamp`) → [`admission::admit`] → status dropped or
//! kept → [`prepare`] → addresses of services ([`service::Allocator`]) → [`validate`] → encoded once → stored. A status that
//! is written alone goes through [`prepare_status`] and [`validate_status`] instead.
//!
//! Contracts:
//! 1. Every function is pure over JSON and takes objects of any shape: what has the wrong type counts as absent, because
//!    the schema has refused it before.
//! 2. [`default`] is idempotent; it runs on creates, updates and after patches, as upstream's decoding does.
//! 3. [`prepare`] of a create sees `metadata.uid` and `metadata.creationTimestamp`.
//! 4. [`validate`] reports in upstream's order and words, metadata first.
//!
//! Upstream is Kubernetes 1.37.1: `pkg/apis/*/v1/defaults.go`, `pkg/apis/*/validation`, `pkg/registry/*/strategy.go`.

pub mod admission;
mod batch;
mod certificates;
mod check;
mod core;
mod extensions;
mod go;
mod json;
pub mod meta;
mod networking;
mod pod;
mod policy;
pub mod service;
mod status;
mod storage;
#[cfg(test)]
mod tests;
mod workload;

use serde_json::Value;

use crate::field::Errors;

#[cfg(test)]
pub(crate) use certificates::test_request;
pub use meta::{NameRule, validate_meta};
pub use pod::update::{validate_ephemeral_containers, validate_pod_status};

/// What is special about a kind. A kind without rules has those of its schema alone.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// What its objects may be called.
    pub name: NameRule,
    /// Whether an update checks all of the metadata that a create checks.
    pub rechecks_meta: bool,
    /// Fills in what the object leaves open and the schema does not say.
    pub default: fn(&mut Value),
    /// What a create or an update does to the object before it is validated: fields that users do not set, are kept from
    /// the old object, or are dropped.
    pub prepare: fn(new: &mut Value, old: Option<&Value>),
    /// What is wrong with the object, and with the change from the old one; metadata is checked apart.
    pub validate: fn(new: &Value, old: Option<&Value>, errors: &mut Errors),
}

/// The rules of a kind, if it has any of its own.
#[must_use]
pub fn rules(group: &str, kind: &str) -> Option<&'static Rules> {
    match group {
        "" => core::rules(kind),
        "apps" => workload::rules(kind),
        "batch" => batch::rules(kind),
        "autoscaling" | "policy" | "coordination.k8s.io" | "scheduling.k8s.io" | "node.k8s.io" => {
            policy::rules(group, kind)
        }
        "events.k8s.io" => core::event_rules(kind),
        "networking.k8s.io" | "discovery.k8s.io" => networking::rules(kind),
        "storage.k8s.io" => storage::rules(kind),
        "certificates.k8s.io" => certificates::rules(kind),
        "rbac.authorization.k8s.io"
        | "apiextensions.k8s.io"
        | "admissionregistration.k8s.io"
        | "flowcontrol.apiserver.k8s.io"
        | "resource.k8s.io" => extensions::rules(kind),
        _ => None,
    }
}

/// Fills in what the object leaves open.
pub fn default(group: &str, kind: &str, object: &mut Value) {
    if let Some(rules) = rules(group, kind) {
        (rules.default)(object);
    }
}

/// What a create (`old` is none) or an update does to the object before it is validated.
pub fn prepare(group: &str, kind: &str, new: &mut Value, old: Option<&Value>) {
    if let Some(rules) = rules(group, kind) {
        (rules.prepare)(new, old);
    }
}

/// All that is wrong with an object, or with the change from the old one: its metadata, then what its kind checks. Without
/// a kind, the metadata of a custom resource.
#[must_use]
pub fn validate(group: &str, kind: &str, new: &Value, old: Option<&Value>) -> Errors {
    let mut errors = Errors::default();
    if kind.is_empty() {
        meta::validate_custom(new, old, &mut errors);
        return errors;
    }
    let rules = rules(group, kind);
    let name_rule = rules.map_or(NameRule::default(), |rules| rules.name);
    validate_meta(new, old, name_rule, &mut errors);
    if old.is_some() && rules.is_some_and(|rules| rules.rechecks_meta) {
        validate_meta(new, None, name_rule, &mut errors);
    }
    if let Some(rules) = rules {
        (rules.validate)(new, old, &mut errors);
    }
    errors.without_repeats()
}

/// All that is wrong with a changed status: the object's metadata, then what its kind checks.
#[must_use]
pub fn validate_status(group: &str, kind: &str, new: &Value, old: &Value) -> Errors {
    let mut errors = Errors::default();
    status::validate(group, kind, new, old, &mut errors);
    errors.without_repeats()
}

/// What a write of the status does to the object before it is validated; `now` is the time of the write.
pub fn prepare_status(group: &str, kind: &str, new: &mut Value, old: &Value, now: &str) {
    status::prepare(group, kind, new, old, now);
}

/// Writes down who asks for a certificate.
pub(crate) fn set_requester(request: &mut Value, user: &Value) {
    certificates::set_requester(request, user);
}

/// The organizations that a certificate request asks for; none if it cannot be read.
pub(crate) fn organizations(request: &Value) -> Option<Vec<String>> {
    certificates::organizations(request)
}

/// What a write of the approval does to a certificate request before it is validated; `now` is the time of the write.
pub(crate) fn prepare_approval(new: &mut Value, old: &Value, now: &str) {
    certificates::prepare_approval(new, old, now);
}

/// All that is wrong with a changed approval of a certificate request.
pub(crate) fn validate_approval(new: &Value, old: &Value) -> Errors {
    let mut errors = Errors::default();
    certificates::validate_approval(new, old, &mut errors);
    errors.without_repeats()
}

/// All that is wrong with a part of a pod's spec that has been changed through its subresource.
pub(crate) fn validate_pod_part(subresource: &str, new: &Value, old: &Value) -> Errors {
    let mut errors = Errors::default();
    validate_meta(new, Some(old), NameRule::default(), &mut errors);
    match subresource {
        "ephemeralcontainers" => validate_ephemeral_containers(new, old, &mut errors),
        _ => pod::resize::validate(new, old, &mut errors),
    }
    errors.without_repeats()
}

/// All that is wrong with what the server has made of an object on behalf of a subresource: a binding, the mark of an
/// eviction, the finalizers of a namespace. What may change is the subresource's to say; what comes out must be valid.
pub(crate) fn validate_server(group: &str, kind: &str, new: &Value, old: &Value) -> Errors {
    let mut errors = Errors::default();
    let name_rule = rules(group, kind).map_or(NameRule::default(), |rules| rules.name);
    validate_meta(new, Some(old), name_rule, &mut errors);
    match (group, kind) {
        ("", "Pod") => pod::validation::pod_spec_of(new, &mut errors),
        ("", "Namespace") => core::validate_finalizers(new, &mut errors),
        _ => {}
    }
    errors.without_repeats()
}

// === impl Rules ===

impl Rules {
    /// The rules of a kind about which only the name is special.
    const fn named(name: NameRule) -> Self {
        Self { name, rechecks_meta: false, default: |_| (), prepare: |_, _| (), validate: |_, _, _| () }
    }

    const fn rechecked(mut self) -> Self {
        self.rechecks_meta = true;
        self
    }

    const fn defaulted(mut self, default: fn(&mut Value)) -> Self {
        self.default = default;
        self
    }

    const fn prepared(mut self, prepare: fn(&mut Value, Option<&Value>)) -> Self {
        self.prepare = prepare;
        self
    }

    const fn validated(mut self, validate: fn(&Value, Option<&Value>, &mut Errors)) -> Self {
        self.validate = validate;
        self
    }
}
