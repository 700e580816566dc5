//! Admission webhooks: mutating, then validating.
//!
//! 1. Which webhooks a request asks is fixed when it begins ([`Session`]); without any that could be asked, nothing of this
//!    runs.
//! 2. Mutating webhooks are asked one after the other, in the order of their configurations' names, and again if their policy
//!    says so and another changed the object ([`mutating`]). Validating ones are asked all at once ([`validating`]).
//! 3. A webhook that cannot be asked, or answers nonsense, refuses the request or is passed over, as its `failurePolicy` says;
//!    a webhook that says no refuses it always.
//! 4. Configurations of admission are exempt, and so are reviews: no webhook can lock the cluster.
//!
//! Follows `apiserver/pkg/admission/plugin/webhook` of Kubernetes 1.37.

mod asking;
mod configuration;
mod mutating;
mod review;
#[cfg(test)]
mod tests;
mod validating;

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use steersman_cel::Binding;
use tokio_util::sync::CancellationToken;

use super::super::list::list_all;
use super::super::{Call, Registry};
use super::attributes::{Attributes, Invocation};
use super::conditions::{Match, RequestAuthorizer};
use super::policy::Policies;
use crate::status::Status;
use crate::webhook::Line;

pub(crate) use configuration::{Hook, Hooks};

/// The state of a request that may call webhooks.
#[derive(Debug)]
pub(crate) struct Session {
    hooks: Arc<Hooks>,
    pub(super) policies: Arc<Policies>,
    mutating_policies: Arc<Policies>,
    pub(crate) line: Arc<Line>,
    warnings: Mutex<Vec<String>>,
}

/// Why a webhook did not let a request pass.
#[derive(Debug)]
enum Failure {
    /// It could not be asked, or its answer makes no sense: its `failurePolicy` decides. The rest of the sentence.
    Calling(String),
    /// The request is refused.
    Refused(Status),
}

// === impl Session ===

impl Session {
    /// Returns what a request has that begins now.
    pub(crate) fn new(
        hooks: Arc<Hooks>,
        policies: Arc<Policies>,
        mutating_policies: Arc<Policies>,
        line: Line,
    ) -> Self {
        Self { hooks, policies, mutating_policies, line: Arc::new(line), warnings: Mutex::default() }
    }

    /// Whether there is anybody who could change an object.
    fn mutates(&self) -> bool {
        !self.hooks.mutating.is_empty() || !self.mutating_policies.is_empty()
    }

    /// Takes the warnings of the webhooks that have been asked.
    pub(crate) fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut *self.warnings.lock())
    }

    /// Adds warnings to the answer of the request.
    pub(crate) fn warn(&self, warnings: Vec<String>) {
        self.warnings.lock().extend(warnings);
    }

    /// Returns what becomes of a request when a webhook has failed it; an error ends it.
    fn judge(&self, hook: &Hook, failure: Failure) -> Result<(), Status> {
        let why = match failure {
            Failure::Refused(status) => return Err(status),
            Failure::Calling(why) => format!("failed calling webhook {:?}: {why}", hook.name),
        };
        if !hook.is_ignored_on_failure {
            tracing::warn!(webhook = hook.name, why, "a webhook failed, and with it the request");
            return Err(Status::internal(why));
        }
        tracing::warn!(webhook = hook.name, why, "a webhook failed, and was passed over");
        if self.line.is_over() {
            return Err(Status::timed_out());
        }
        Ok(())
    }
}

/// Reads the answer of a webhook to the question with the uid `u`, and applies its patch to an object.
#[cfg(fuzzing)]
pub fn fuzz_answer(version: &str, is_mutating: bool, body: &[u8], object: &Value) {
    let of = if is_mutating { review::Of::Mutating } else { review::Of::Validating };
    let Ok(answer) = review::read(version, "u", of, body) else { return };
    let _ = review::denial("fuzz.example.com", &answer.result).to_json().to_string();
    assert!(is_mutating || answer.patch.is_empty(), "a validating webhook changes nothing");
    let shown = || Ok(Some(object.clone()));
    if let Ok(Some(patched)) = mutating::patched("fuzz.example.com", &answer.patch, &answer.patch_type, shown) {
        let _ = patched.to_string();
    }
}

impl Attributes<'_> {
    /// Returns how a webhook is asked about this, or none if it is not.
    fn asked_of(&self, registry: &Registry, hook: &Hook) -> Result<Option<Invocation>, Status> {
        let Some(invocation) = self.invocation(registry, &hook.criteria)? else { return Ok(None) };
        Ok(self.conditions_match(registry, hook, &invocation)?.then_some(invocation))
    }

    /// Whether the match conditions of a webhook hold. An error refuses the request, or passes the webhook over.
    fn conditions_match(&self, registry: &Registry, hook: &Hook, invocation: &Invocation) -> Result<bool, Status> {
        if hook.conditions.is_empty() {
            return Ok(true);
        }
        let seen = self.seen(invocation)?;
        let authorizer = RequestAuthorizer { registry, user: &self.call.user };
        match hook.conditions.decide(&seen.bindings(Binding::Null, &authorizer, self.resource_check())) {
            Match::Yes => Ok(true),
            Match::No => Ok(false),
            Match::Failed(_) if hook.is_ignored_on_failure => Ok(false),
            Match::Failed(why) => {
                tracing::warn!(webhook = hook.name, why, "match conditions failed, and with them the request");
                Err(self.forbidden(&why))
            }
        }
    }
}

impl Registry {
    /// Reads the configurations of webhooks anew, because one has changed.
    pub(crate) fn webhooks_changed(&self) {
        let read = |plural: &str| -> Vec<Value> {
            let Some(row) = self.any_version("admissionregistration.k8s.io", plural) else { return Vec::new() };
            // They are listed in the order of their names.
            list_all(self, &row, "").iter().filter_map(|stored| stored.parse().ok()).collect()
        };
        // Two that change at once must not overwrite each other's reading.
        let mut held = self.webhooks.write();
        let mutating = read("mutatingwebhookconfigurations");
        let validating = read("validatingwebhookconfigurations");
        *held = Arc::new(Hooks::read(&mutating, &validating));
    }

    /// Returns what a request needs to ask webhooks and policies; none if there is nobody it could ask. Called within a runtime.
    pub(crate) fn session(&self, is_write: bool, is_converted: bool, ended: CancellationToken) -> Option<Arc<Session>> {
        let hooks = if is_write { Arc::clone(&self.webhooks.read()) } else { Arc::default() };
        let policies = if is_write { Arc::clone(&self.policies.read()) } else { Arc::default() };
        let mutating = if is_write { Arc::clone(&self.mutating_policies.read()) } else { Arc::default() };
        let has_any = is_converted || !hooks.is_empty() || !policies.is_empty() || !mutating.is_empty();
        has_any.then(|| Arc::new(Session::new(hooks, policies, mutating, Line::new(ended))))
    }

    /// Asks the mutating policies, then the mutating webhooks, about an object that is written. `in_tree` runs the mutating
    /// plug-ins of the kind before them, and again if one has changed the object.
    pub(crate) fn ask_mutating(
        &self,
        call: &Call,
        attributes: &mut Attributes<'_>,
        in_tree: &mut dyn FnMut(&mut Value) -> Result<(), Status>,
    ) -> Result<(), Status> {
        match &call.session {
            Some(session) if !call.row.rules.admission.is_exempt && session.mutates() => {
                mutating::admit(self, session, attributes, in_tree)
            }
            _ => Ok(()),
        }
    }

    /// Asks the validating policies, then the validating webhooks, about an object that is written.
    pub(crate) fn ask_validating(&self, call: &Call, attributes: &Attributes<'_>) -> Result<(), Status> {
        let Some(session) = call.session.as_ref().filter(|_| !call.row.rules.admission.is_exempt) else {
            return Ok(());
        };
        session.policies.admit(self, session, attributes)?;
        if session.hooks.validating.is_empty() {
            return Ok(());
        }
        validating::admit(self, session, attributes)
    }

    /// Asks all webhooks about a body that is not stored as it is: a binding, an eviction, a request for a token, a scale.
    /// Returns what they make of it.
    pub(crate) fn ask_about_body(&self, call: &Call, body: Value, old: Option<&Value>) -> Result<Value, Status> {
        if call.session.is_none() {
            return Ok(body);
        }
        let mut attributes = Attributes::written(call, body, old.cloned());
        self.ask_mutating(call, &mut attributes, &mut |_| Ok(()))?;
        self.ask_validating(call, &attributes)?;
        Ok(attributes.object.unwrap_or_default())
    }
}
