//! The policies and their bindings, read once for all requests.

use std::sync::OnceLock;

use serde_json::Value;
use steersman_base::Selector;

use super::super::matching::Criteria;
use super::evaluation::Compiled;
use crate::kinds::shared::check::selector_of;
use crate::kinds::shared::json::{is_set, items, text};
use crate::registry::object_meta::meta_text;
use crate::registry::query::strings;

/// The policies that have bindings, in the order of their names.
#[derive(Debug, Default)]
pub(crate) struct Policies(Vec<Policy>);

/// A policy and its bindings.
#[derive(Debug)]
pub(super) struct Policy {
    pub(super) name: String,
    pub(super) criteria: Criteria,
    /// `failurePolicy: Ignore`
    pub(super) is_ignored_on_failure: bool,
    /// `reinvocationPolicy: IfNeeded`
    pub(super) is_reinvoked: bool,
    pub(super) param_kind: Option<ParamKind>,
    pub(super) bindings: Vec<Binding>,
    spec: Value,
    compiled: OnceLock<Compiled>,
}

/// The kind of a policy's parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ParamKind {
    pub(super) api_version: String,
    pub(super) kind: String,
}

/// A binding of a policy.
#[derive(Debug)]
pub(super) struct Binding {
    pub(super) name: String,
    pub(super) criteria: Criteria,
    pub(super) param_ref: Option<ParamRef>,
    /// Whether a failure refuses the request.
    pub(super) denies: bool,
    /// Whether a failure is a warning.
    pub(super) warns: bool,
}

/// The parameters that a binding chooses.
#[derive(Debug)]
pub(super) struct ParamRef {
    /// Empty if they are chosen by labels.
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) selector: Result<Selector, String>,
    /// `parameterNotFoundAction: Deny`
    pub(super) denies_without: bool,
}

// === impl Policies ===

impl Policies {
    /// Reads stored policies and bindings, both ordered by name.
    pub(crate) fn read(policies: &[Value], bindings: &[Value]) -> Self {
        let policies = policies.iter().map(|policy| Policy::read(policy, bindings));
        Self(policies.filter(|policy| !policy.bindings.is_empty()).collect())
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Policy> {
        self.0.iter()
    }
}

// === impl Policy ===

impl Policy {
    fn read(policy: &Value, bindings: &[Value]) -> Self {
        let name = meta_text(policy, "name");
        let spec = &policy["spec"];
        let own = bindings.iter().filter(|binding| binding["spec"]["policyName"] == name);
        let kind = &spec["paramKind"];
        Self {
            name: name.to_owned(),
            criteria: Criteria::of_policy(&spec["matchConstraints"]),
            is_ignored_on_failure: spec["failurePolicy"] == "Ignore",
            is_reinvoked: spec["reinvocationPolicy"] == "IfNeeded",
            param_kind: is_set(kind).then(|| ParamKind {
                api_version: text(&kind["apiVersion"]).to_owned(),
                kind: text(&kind["kind"]).to_owned(),
            }),
            bindings: own.map(Binding::read).collect(),
            spec: spec.clone(),
            compiled: OnceLock::new(),
        }
    }

    /// Returns the expressions, which are compiled when they are first used.
    pub(super) fn compiled(&self) -> &Compiled {
        self.compiled.get_or_init(|| Compiled::new(&self.spec))
    }
}

// === impl Binding ===

impl Binding {
    fn read(binding: &Value) -> Self {
        let spec = &binding["spec"];
        let actions = strings(&spec["validationActions"]);
        let chosen = &spec["paramRef"];
        Self {
            name: meta_text(binding, "name").to_owned(),
            criteria: Criteria::of_policy(&spec["matchResources"]),
            param_ref: is_set(chosen).then(|| ParamRef::read(chosen)),
            denies: actions.contains(&"Deny"),
            warns: actions.contains(&"Warn"),
        }
    }
}

// === impl ParamRef ===

impl ParamRef {
    fn read(chosen: &Value) -> Self {
        Self {
            name: text(&chosen["name"]).to_owned(),
            namespace: text(&chosen["namespace"]).to_owned(),
            selector: selector_of(&chosen["selector"]).compile().map_err(|errors| errors.to_string()),
            denies_without: chosen["parameterNotFoundAction"] == "Deny",
        }
    }
}

/// The items of a list in a spec, with a field that is text.
pub(super) fn texts<'a>(spec: &'a Value, list: &str, field: &'a str) -> impl Iterator<Item = (&'a Value, &'a str)> {
    items(&spec[list]).iter().map(move |item| (item, text(&item[field])))
}
