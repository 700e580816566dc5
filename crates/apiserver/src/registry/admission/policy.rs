//! Validating admission policies: expressions that a request must satisfy.
//!
//! 1. Policies and bindings are read when they change; a request sees those of its beginning. A policy without a binding decides
//!    nothing.
//! 2. Every policy is evaluated for every binding that the request meets, once for each of the binding's parameters. All failures
//!    count; the first by the policies' names is what the client hears.
//! 3. What cannot be evaluated counts as a failure or is passed over, as `failurePolicy` says.
//!
//! Follows `apiserver/pkg/admission/plugin/policy/{generic,matching,validating}` of Kubernetes 1.37.

mod configuration;
mod evaluation;
mod mutation;
mod params;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value};
use steersman_base::ObjectKey;

use super::attributes::{Attributes, Invocation};
use super::webhook::Session;
use crate::kinds::shared::meta::META_FIELDS;
use crate::registry::Registry;
use crate::registry::list::list_all;
use crate::status::{Cause, Status};

pub(crate) use configuration::Policies;
use configuration::{Binding, Policy};
pub(super) use mutation::Memory;

/// A failed policy, or one that could not be evaluated.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Denial {
    message: String,
    reason: &'static str,
}

// === impl Denial ===

impl Denial {
    fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), reason: "Invalid" }
    }

    /// Returns the answer to a request that a policy has denied.
    fn status(&self, attributes: &Attributes<'_>, policy: &Policy, binding: Option<&Binding>) -> Status {
        let with_binding = binding.map(|binding| format!(" with binding '{}'", binding.name)).unwrap_or_default();
        let message =
            format!("ValidatingAdmissionPolicy '{}'{with_binding} denied request: {}", policy.name, self.message);
        let mut status = attributes.forbidden(&message);
        status.reason = self.reason;
        status.code = match self.reason {
            "Forbidden" => 403,
            "Unauthorized" => 401,
            "RequestEntityTooLarge" => 413,
            _ => 422,
        };
        if let Some(details) = &mut status.details {
            details.causes.push(Cause { reason: "", message, field: String::new() });
        }
        status
    }
}

// === impl Policies ===

impl Policies {
    /// Evaluates the policies that a request meets; an error refuses it.
    pub(super) fn admit(
        &self,
        registry: &Registry,
        session: &Session,
        attributes: &Attributes<'_>,
    ) -> Result<(), Status> {
        let mut verdict = Ok(());
        for policy in self.iter() {
            let invocation = match attributes.invocation(registry, &policy.criteria) {
                Ok(Some(invocation)) => invocation,
                Ok(None) => continue,
                Err(status) => {
                    let denial = Denial::new(format!("failed to configure policy: {}", status.message));
                    verdict = verdict.and(policy.fail(&denial, attributes, None));
                    continue;
                }
            };
            for binding in &policy.bindings {
                let admitted = policy.admit(registry, session, attributes, &invocation, binding);
                verdict = verdict.and(admitted);
            }
        }
        verdict
    }
}

// === impl Policy ===

impl Policy {
    /// Evaluates the policy for one binding. All of it is evaluated, so that all warnings are heard.
    fn admit(
        &self,
        registry: &Registry,
        session: &Session,
        attributes: &Attributes<'_>,
        invocation: &Invocation,
        binding: &Binding,
    ) -> Result<(), Status> {
        let misconfigured = |why: &str| {
            let denial = Denial::new(format!("failed to configure binding: {why}"));
            self.fail(&denial, attributes, Some(binding))
        };
        match attributes.invocation(registry, &binding.criteria) {
            Ok(Some(_)) => {}
            Ok(None) => return Ok(()),
            Err(status) => return misconfigured(&status.message),
        }
        let params = match params::collect(registry, self.param_kind.as_ref(), binding, attributes.namespace()) {
            Ok(params) => params,
            Err(why) => return misconfigured(&why),
        };
        if params.is_empty() {
            return Ok(());
        }
        let seen = match attributes.seen(invocation) {
            Ok(seen) => seen,
            Err(status) => {
                return misconfigured(&format!("failed to convert object version: {}", status.message));
            }
        };
        let namespace = namespace_of(registry, attributes)?;
        let mut verdict = Ok(());
        for param in &params {
            let denials = self.evaluate(registry, attributes, &seen, param, &namespace);
            for denial in &denials.failed {
                if binding.warns {
                    let warning = format!(
                        "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': {}",
                        self.name, binding.name, denial.message
                    );
                    session.warn(vec![warning]);
                }
                if binding.denies && verdict.is_ok() {
                    verdict = Err(denial.status(attributes, self, Some(binding)));
                }
            }
            for denial in &denials.of_annotations {
                verdict = verdict.and(Err(denial.status(attributes, self, Some(binding))));
            }
        }
        verdict
    }

    /// Returns what becomes of a request whose policy cannot be evaluated.
    fn fail(&self, denial: &Denial, attributes: &Attributes<'_>, binding: Option<&Binding>) -> Result<(), Status> {
        if self.is_ignored_on_failure { Ok(()) } else { Err(denial.status(attributes, self, binding)) }
    }
}

/// Returns the namespace of the object as expressions see it; null for what is in none, and for namespaces.
fn namespace_of(registry: &Registry, attributes: &Attributes<'_>) -> Result<Value, Status> {
    let name = &attributes.call.namespace;
    let Some(row) = registry.row("", "v1", "namespaces").filter(|_| !name.is_empty()) else { return Ok(Value::Null) };
    if attributes.call.row.rules.strategy.is_namespace {
        return Ok(Value::Null);
    }
    let Some(stored) = registry.store.get(&row.collection, &ObjectKey::cluster(name)) else {
        return Err(Status::not_found(row.target(), name));
    };
    let mut namespace = stored.parse().map_err(Status::internal)?;
    let metadata = namespace["metadata"].as_object().into_iter().flatten();
    // Upstream's `CreateNamespaceObject` leaves out the owners.
    let is_shown = |field: &str| field != "ownerReferences" && META_FIELDS.contains(&field);
    let shown = metadata.filter(|(field, _)| is_shown(field));
    let shown: Map<String, Value> = shown.map(|(field, value)| (field.clone(), value.clone())).collect();
    namespace["metadata"] = shown.into();
    Ok(namespace)
}

impl Registry {
    /// Reads the admission policies anew, because one or a binding has changed.
    pub(crate) fn policies_changed(&self) {
        let read = |plural: &str| -> Vec<Value> {
            let Some(row) = self.any_version("admissionregistration.k8s.io", plural) else { return Vec::new() };
            list_all(self, &row, "").iter().filter_map(|stored| stored.parse().ok()).collect()
        };
        let kinds = [
            (&self.policies, "validatingadmissionpolicies", "validatingadmissionpolicybindings"),
            (&self.mutating_policies, "mutatingadmissionpolicies", "mutatingadmissionpolicybindings"),
        ];
        for (held, policies, bindings) in kinds {
            // Two that change at once must not overwrite each other's reading.
            let mut held = held.write();
            *held = Policies::read(&read(policies), &read(bindings)).into();
        }
    }
}
