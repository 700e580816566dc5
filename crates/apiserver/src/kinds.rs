//! The built-in kinds: one folder per API group, one file per kind.
//!
//! What is special about a kind is in its file, as one [`Rules`] value: defaults, validation, strategy, rules of the status,
//! admission, subresources, cells of tables. A [`Row`](crate::registry::Row) holds the rules of its kind, so that they are
//! looked up once. When each rule runs is written in [`registry::write`](crate::registry::write).
//!
//! Upstream is Kubernetes 1.37.1: `pkg/apis/*/v1/defaults.go`, `pkg/apis/*/validation`, `pkg/registry/*/strategy.go`,
//! `plugin/pkg/admission`, `pkg/printers/internalversion`.

mod admissionregistration;
mod apiextensions;
mod apiregistration;
mod apps;
mod authentication;
mod authorization;
mod autoscaling;
mod batch;
mod certificates;
mod coordination;
pub(crate) mod core;
mod discovery;
mod events;
mod flowcontrol;
pub(crate) mod networking;
mod node;
mod policy;
mod rbac;
mod resource;
mod rules;
mod scheduling;
pub(crate) mod shared;
mod storage;
mod storagemigration;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use certificates::test_request;
pub(crate) use rules::{Handler, PartRules, Resets, Rules, StoredAs};
pub(crate) use shared::meta::NameRule;

/// The kinds of an API group, each with its rules.
type Kinds = &'static [(&'static str, &'static Rules)];

/// The API groups, each with its kinds.
static GROUPS: &[(&str, Kinds)] = &[
    ("", core::KINDS),
    ("admissionregistration.k8s.io", admissionregistration::KINDS),
    ("apiextensions.k8s.io", apiextensions::KINDS),
    ("apiregistration.k8s.io", apiregistration::KINDS),
    ("apps", apps::KINDS),
    ("authentication.k8s.io", authentication::KINDS),
    ("authorization.k8s.io", authorization::KINDS),
    ("autoscaling", autoscaling::KINDS),
    ("batch", batch::KINDS),
    ("certificates.k8s.io", certificates::KINDS),
    ("coordination.k8s.io", coordination::KINDS),
    ("discovery.k8s.io", discovery::KINDS),
    ("events.k8s.io", events::KINDS),
    ("flowcontrol.apiserver.k8s.io", flowcontrol::KINDS),
    ("networking.k8s.io", networking::KINDS),
    ("node.k8s.io", node::KINDS),
    ("policy", policy::KINDS),
    ("rbac.authorization.k8s.io", rbac::KINDS),
    ("resource.k8s.io", resource::KINDS),
    ("scheduling.k8s.io", scheduling::KINDS),
    ("storage.k8s.io", storage::KINDS),
    ("storagemigration.k8s.io", storagemigration::KINDS),
];

/// Returns the rules of a built-in kind; none if it has no file.
pub(crate) fn rules(group: &str, kind: &str) -> Option<&'static Rules> {
    let (_, kinds) = GROUPS.iter().find(|(name, _)| *name == group)?;
    kinds.iter().find(|(name, _)| *name == kind).map(|(_, rules)| *rules)
}
