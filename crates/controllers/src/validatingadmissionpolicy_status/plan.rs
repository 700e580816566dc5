//! Pure: the warnings about the types of a policy's expressions.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use steersman_cel::{KnownType, Schema, TypeCheck};
use steersman_model::admissionregistration::ValidatingAdmissionPolicyView;
use steersman_model::{Kind, View};

use super::kinds::{PolicySpec, VersionKind};

/// A warning about an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Warning {
    pub(super) field: String,
    pub(super) text: String,
}

/// The schemas of kinds. A kind without one is not checked.
pub(super) type Schemas = BTreeMap<VersionKind, Schema>;

/// Returns the warnings about a policy: about its validations and their messages, for each of these kinds.
pub(super) fn warnings<'a>(
    spec: &PolicySpec,
    kinds: impl IntoIterator<Item = &'a VersionKind>,
    schemas: &Schemas,
) -> Vec<Warning> {
    let param_kind = spec.param_kind.as_ref().and_then(super::kinds::ParamKind::version_kind);
    let params = match &param_kind {
        None => KnownType::Absent,
        Some(kind) => schemas.get(kind).map_or(KnownType::Any, |schema| KnownType::Of(&kind.kind, schema)),
    };
    let checks: Vec<_> = kinds
        .into_iter()
        .filter_map(|kind| {
            let mut check = TypeCheck::new(KnownType::Of(&kind.kind, schemas.get(kind)?), params);
            spec.variables.iter().for_each(|variable| check.declare(&variable.name, &variable.expression));
            Some((kind, check))
        })
        .collect();
    let mut warnings = Vec::new();
    let mut judge = |field: String, expression: &str| {
        let wrong = checks.iter().filter_map(|(kind, check)| Some((kind, check.check(expression).err()?)));
        let texts: Vec<_> = wrong.map(|(kind, issues)| format!("{kind}: {issues}\n")).collect();
        if !texts.is_empty() {
            warnings.push(Warning { field, text: texts.join("\n") });
        }
    };
    for (index, validation) in spec.validations.iter().enumerate() {
        judge(format!("spec.validations[{index}].expression"), &validation.expression);
        if !validation.message_expression.is_empty() {
            judge(format!("spec.validations[{index}].messageExpression"), &validation.message_expression);
        }
    }
    warnings
}

/// Returns the status that this controller applies. The uid is the condition that it is still the same policy.
pub(super) fn applied(policy: &ValidatingAdmissionPolicyView, warnings: &[Warning]) -> Value {
    let resource = &ValidatingAdmissionPolicyView::RESOURCE;
    let meta = policy.meta();
    let mut checking = json!({});
    if !warnings.is_empty() {
        let warnings = warnings.iter().map(|it| json!({ "fieldRef": it.field, "warning": it.text }));
        checking["expressionWarnings"] = warnings.collect();
    }
    json!({
        "apiVersion": resource.api_version(),
        "kind": resource.kind,
        "metadata": { "name": meta.name, "uid": meta.uid },
        "status": { "observedGeneration": meta.generation, "typeChecking": checking },
    })
}
