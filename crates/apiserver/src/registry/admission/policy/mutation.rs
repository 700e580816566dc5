//! Mutating admission policies: expressions that make patches of the objects of requests.
//!
//! 1. Which policies, bindings and parameters a request meets is decided before the first of them changes its object.
//! 2. A policy is evaluated once for each binding and parameter, its mutations one after the other, each with what the one before has
//!    made of the object. Those with `reinvocationPolicy: IfNeeded` are evaluated once more if the object has changed since.
//! 3. What cannot be evaluated or applied refuses the request, or is passed over, as `failurePolicy` says. A JSON patch whose result
//!    cannot be read refuses it always, as upstream.
//!
//! Follows `apiserver/pkg/admission/plugin/policy/{generic,mutating}` of Kubernetes 1.37.

use std::collections::BTreeSet;

use serde_json::Value;
use steersman_cel::{Binding as Bound, Mutation, MutationError};
use steersman_structured_merge::Duplicates;

use super::super::attributes::{Attributes, Invocation};
use super::super::conditions::{Match, OUT_OF_BUDGET, RequestAuthorizer};
use super::configuration::{Binding, Policies, Policy};
use super::evaluation::{BUDGET, Compiling};
use super::{namespace_of, params};
use crate::patch::{Patch, PatchType};
use crate::registry::Registry;
use crate::registry::object_meta::meta_text;
use crate::status::{Cause, Status};

/// A policy, a binding and a parameter: what is evaluated together.
type Key = (String, String, String, String);

/// The results of the rounds of one request.
#[derive(Debug, Default)]
pub(in super::super) struct Memory {
    /// Whether there was a first round.
    is_again: bool,
    /// Evaluated since the object last changed, and to be evaluated again if it does.
    evaluated: BTreeSet<Key>,
    /// To be evaluated again.
    again: BTreeSet<Key>,
    /// The object after the last round.
    last: Option<Value>,
}

/// A policy with its binding and parameter, evaluated for a request.
struct Evaluated<'a> {
    policy: &'a Policy,
    binding: &'a Binding,
    param: Value,
    invocation: Invocation,
}

/// The failure of a policy.
struct Refusal {
    message: String,
    reason: &'static str,
}

/// Why a patch was not applied.
enum Failure {
    /// The policy's `failurePolicy` decides.
    Mutation(String),
    /// The request is refused.
    Refused(Status),
}

// === impl Policies ===

impl Policies {
    /// Changes the object of a request as the policies say that it meets. Returns whether one has had its say.
    pub(in super::super) fn mutate(
        &self,
        registry: &Registry,
        attributes: &mut Attributes<'_>,
        memory: &mut Memory,
    ) -> Result<bool, Status> {
        if self.is_empty() || attributes.object.is_none() {
            return Ok(false);
        }
        if memory.is_again && attributes.object != memory.last {
            memory.object_changed();
        }
        let mut refusals = Vec::new();
        let all = self.evaluated(registry, attributes, &mut refusals);
        let mut has_changed = false;
        if !all.is_empty() {
            let namespace = namespace_of(registry, attributes)?;
            for one in &all {
                has_changed |= one.evaluate(registry, attributes, &namespace, memory, &mut refusals)?;
            }
        }
        if has_changed {
            memory.object_changed();
        }
        memory.is_again = true;
        memory.last = attributes.object.clone();
        refused(attributes, &refusals).map_or(Ok(has_changed), Err)
    }

    /// Returns what is evaluated for a request, in the order of the policies' and bindings' names.
    fn evaluated<'a>(
        &'a self,
        registry: &Registry,
        attributes: &Attributes<'_>,
        refusals: &mut Vec<Refusal>,
    ) -> Vec<Evaluated<'a>> {
        let mut all = Vec::new();
        for policy in self.iter() {
            match attributes.invocation(registry, &policy.criteria) {
                Ok(Some(_)) => {}
                Ok(None) => continue,
                Err(status) => {
                    let why = format!("failed to configure policy: {}", status.message);
                    refusals.extend(policy.refusal(None, &why, "Forbidden"));
                    continue;
                }
            }
            for binding in &policy.bindings {
                let chosen = match attributes.invocation(registry, &binding.criteria) {
                    Ok(Some(_)) => {
                        params::collect(registry, policy.param_kind.as_ref(), binding, attributes.namespace())
                    }
                    Ok(None) => continue,
                    Err(status) => Err(status.message),
                };
                match chosen {
                    Ok(params) => all.extend(params.into_iter().filter_map(|param| {
                        let invocation = attributes.invocation(registry, &policy.criteria).ok().flatten()?;
                        Some(Evaluated { policy, binding, param, invocation })
                    })),
                    Err(why) => {
                        let why = format!("failed to configure binding: {why}");
                        refusals.extend(policy.refusal(Some(binding), &why, "Forbidden"));
                    }
                }
            }
        }
        all
    }
}

// === impl Policy ===

impl Policy {
    /// Returns what is wrong, unless the policy says that it does not matter.
    fn refusal(&self, binding: Option<&Binding>, why: &str, reason: &'static str) -> Option<Refusal> {
        let message = match binding {
            Some(binding) => format!("policy '{}' with binding '{}' denied request: {why}", self.name, binding.name),
            None => format!("policy {:?} denied request: {why}", self.name),
        };
        (!self.is_ignored_on_failure).then_some(Refusal { message, reason })
    }
}

// === impl Evaluated ===

impl Evaluated<'_> {
    fn key(&self) -> Key {
        let param = |field: &str| meta_text(&self.param, field).to_owned();
        (self.policy.name.clone(), self.binding.name.clone(), param("namespace"), param("name"))
    }

    /// Evaluates the policy. Returns whether a mutation was applied, even if it changes nothing.
    fn evaluate(
        &self,
        registry: &Registry,
        attributes: &mut Attributes<'_>,
        namespace: &Value,
        memory: &mut Memory,
        refusals: &mut Vec<Refusal>,
    ) -> Result<bool, Status> {
        let compiled = self.policy.compiled();
        let mut refuse = |why: String| refusals.extend(self.policy.refusal(Some(self.binding), &why, "Invalid"));
        let seen = attributes.seen(&self.invocation)?;
        let authorizer = RequestAuthorizer { registry, user: &attributes.call.user };
        let bindings = seen.bindings(Bound::Null, &authorizer, attributes.resource_check());
        match compiled.matches(&compiled.start(bindings, &self.param)) {
            Match::Yes => {}
            Match::No => return Ok(false),
            Match::Failed(why) => {
                refuse(why);
                return Ok(false);
            }
        }
        let key = self.key();
        if memory.is_again && !memory.again.contains(&key) {
            return Ok(false);
        }
        let before = attributes.object.clone();
        let mut is_applied = false;
        for mutation in &compiled.mutations {
            match self.apply(mutation, registry, attributes, namespace) {
                Ok(()) => is_applied = true,
                Err(Failure::Mutation(why)) => refuse(why),
                Err(Failure::Refused(status)) => return Err(status),
            }
        }
        if attributes.object != before {
            memory.object_changed();
        }
        if self.policy.is_reinvoked {
            memory.evaluated.insert(key);
        }
        Ok(is_applied)
    }

    /// Evaluates one mutation, and applies the patch that it makes.
    fn apply(
        &self,
        mutation: &Compiling,
        registry: &Registry,
        attributes: &mut Attributes<'_>,
        namespace: &Value,
    ) -> Result<(), Failure> {
        let program = mutation.program.as_ref();
        let program = program.map_err(|error| Failure::Mutation(format!("compilation error: {error}")))?;
        let seen = attributes.seen(&self.invocation).map_err(Failure::Refused)?;
        let authorizer = RequestAuthorizer { registry, user: &attributes.call.user };
        let shown = if namespace.is_null() { Bound::Null } else { Bound::Json(namespace) };
        let bindings = seen.bindings(shown, &authorizer, attributes.resource_check());
        let run = self.policy.compiled().start(bindings, &self.param).mutate(program);
        if run.cost > BUDGET {
            return Err(Failure::Mutation(OUT_OF_BUDGET.to_owned()));
        }
        let patch = run.outcome.map_err(|error| match error {
            MutationError::Evaluation(why) => {
                Failure::Mutation(format!("expression '{}' resulted in error: {why}", mutation.text))
            }
            MutationError::Value(why) => Failure::Mutation(why),
        })?;
        let patched = match patch {
            Mutation::Configuration(config) => self.merged(attributes, &seen.object, config)?,
            Mutation::Operations(operations) => {
                let Some(patched) = patched(seen.object.clone(), operations)? else { return Ok(()) };
                attributes.check_strictly(&self.invocation, &patched).map_err(Failure::Refused)?;
                patched
            }
        };
        attributes.take_patched(&self.invocation, patched).map_err(Failure::Refused)?;
        Ok(())
    }

    /// Returns an object to which a configuration was applied.
    fn merged(&self, attributes: &Attributes<'_>, live: &Value, mut config: Value) -> Result<Value, Failure> {
        let failed = |why: String| Failure::Mutation(format!("error applying patch: {why}"));
        if let Some(fields) = config.as_object_mut() {
            for field in ["apiVersion", "kind"] {
                fields.insert(field.to_owned(), live[field].clone());
            }
        }
        let patch = |why: String| failed(format!("failed to convert patch object to typed object: {why}"));
        let Some(types) = attributes.field_types(&self.invocation) else {
            let word = |field: &str| live[field].as_str().unwrap_or_default();
            return Err(patch(format!("no corresponding type for {}, Kind={}", word("apiVersion"), word("kind"))));
        };
        if let Some(path) = null_in(&config, "", 0) {
            return Err(patch(format!("{path}: expected a value, got null")));
        }
        types.validate(&config, Duplicates::Refused).map_err(|errors| patch(errors.to_string()))?;
        let atomics = types.atomics(&config);
        if !atomics.is_empty() {
            let paths = atomics.join(", ");
            return Err(failed(format!(
                "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {paths}"
            )));
        }
        types.merge(live, &config).map_err(|errors| failed(format!("failed to merge patch: {errors}")))
    }
}

/// Returns an object to which a JSON patch was applied; none if a test in it fails.
fn patched(object: Value, operations: Vec<Value>) -> Result<Option<Value>, Failure> {
    let patch = Patch::read(PatchType::Json, Value::Array(operations).to_string().as_bytes());
    let patch = patch.map_err(|error| Failure::Mutation(format!("JSON Patch: {}", error.message)))?;
    match patch.apply_json(object) {
        Ok(patched) => Ok(Some(patched)),
        Err(why) if why.ends_with(": test failed") => Ok(None),
        Err(why) => Err(Failure::Mutation(format!("JSON Patch: {why}"))),
    }
}

/// Returns the path of a `null`, which is no value of any type upstream.
fn null_in(value: &Value, path: &str, depth: usize) -> Option<String> {
    match value {
        _ if depth > crate::store::DEPTH_MAX => None,
        Value::Null => Some(path.to_owned()),
        Value::Object(fields) => {
            fields.iter().find_map(|(name, value)| null_in(value, &format!("{path}.{name}"), depth + 1))
        }
        Value::Array(items) => {
            items.iter().enumerate().find_map(|(index, item)| null_in(item, &format!("{path}[{index}]"), depth + 1))
        }
        _ => None,
    }
}

/// Returns the answer to a request that policies have refused: the first speaks, all are named.
fn refused(attributes: &Attributes<'_>, refusals: &[Refusal]) -> Option<Status> {
    let first = refusals.first()?;
    let mut status = attributes.forbidden("");
    status.message = first.message.clone();
    status.reason = first.reason;
    if let Some(details) = &mut status.details {
        let cause = |refusal: &Refusal| Cause { reason: "", message: refusal.message.clone(), field: String::new() };
        details.causes.extend(refusals.iter().map(cause));
    }
    Some(status)
}

// === impl Memory ===

impl Memory {
    /// Remembers that all that was evaluated so far has seen another object.
    fn object_changed(&mut self) {
        self.again.append(&mut self.evaluated);
    }
}
