//! Policies: `validateValidatingAdmissionPolicySpec`, `validateMutatingAdmissionPolicySpec` and what they share.

use serde_json::Value;
use steersman_base::validation::{dns1035_label, dns1123_subdomain};
use steersman_cel::{Composition, Variables};

use super::expressions::Expressions;
use super::match_resources;
use crate::field::{Errors, FieldError, Path};
use crate::kinds::admissionregistration::match_conditions::{self, Before};
use crate::kinds::shared::check::{one_of, problems_joined, required};
use crate::kinds::shared::conditions;
use crate::kinds::shared::json::{each, is_set, items, same, text};
use crate::registry::object_meta::meta_text;

const NOTHING: &str = "validations or auditAnnotations must contain at least one item";

/// Checks a ValidatingAdmissionPolicy.
pub(crate) fn validate_policy(policy: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec = &policy["spec"];
    let path = Path::new("spec");
    let before = before(spec, old, &["validations", "auditAnnotations"]);
    common(spec, &before, &path, errors);
    let has_params = is_set(&spec["paramKind"]);
    let has_variables = !items(&spec["variables"]).is_empty();
    let composition =
        if has_variables { Composition::new(has_params) } else { Composition::without_variables(has_params) };
    let mut expressions = Expressions { composition, before };
    expressions.variables(&spec["variables"], &path.child("variables"), errors);
    if items(&spec["validations"]).is_empty() && items(&spec["auditAnnotations"]).is_empty() {
        for field in ["validations", "auditAnnotations"] {
            errors.push(FieldError::required(&path.child(field), NOTHING));
        }
        return;
    }
    expressions.validations(&spec["validations"], &path.child("validations"), errors);
    let name = meta_text(policy, "name");
    expressions.annotations(&spec["auditAnnotations"], name, &path.child("auditAnnotations"), errors);
}

/// Checks the status of a ValidatingAdmissionPolicy.
pub(crate) fn validate_status(policy: &Value, _: &Value, errors: &mut Errors) {
    let status = &policy["status"];
    let path = Path::new("status");
    let at = path.child("typeChecking").child("expressionWarnings");
    each(&status["typeChecking"]["expressionWarnings"], &at, |warning, path| {
        required(&warning["warning"], &path.child("warning"), errors);
        if text(&warning["fieldRef"]).trim().is_empty() {
            errors.push(FieldError::required(&path.child("fieldRef"), ""));
        }
    });
    conditions::validate(&status["conditions"], &path.child("conditions"), errors);
}

/// Checks what both kinds of policies have, but for the expressions.
pub(super) fn common(spec: &Value, before: &Before<'_>, path: &Path, errors: &mut Errors) {
    one_of(&spec["failurePolicy"], &["Fail", "Ignore"], &path.child("failurePolicy"), errors);
    let has_params = is_set(&spec["paramKind"]);
    if has_params {
        param_kind(&spec["paramKind"], &path.child("paramKind"), errors);
    }
    let at = path.child("matchConstraints");
    let constraints = &spec["matchConstraints"];
    if is_set(constraints) {
        match_resources::validate(constraints, &at, errors);
        if items(&constraints["resourceRules"]).is_empty() {
            errors.push(FieldError::required(&at.child("resourceRules"), ""));
        }
    } else {
        errors.push(FieldError::required(&at, ""));
    }
    let mut variables = Variables::admission().clone();
    if has_params {
        variables = variables.with_dynamic("params");
    }
    let at = path.child("matchConditions");
    match_conditions::validate(&spec["matchConditions"], before, &variables, &at, errors);
}

/// Reads the policy that is replaced; `lists` hold expressions, too.
pub(super) fn before<'a>(spec: &Value, old: Option<&'a Value>, lists: &[&str]) -> Before<'a> {
    let Some(old) = old.map(|old| &old["spec"]) else { return Before::default() };
    let is_same = ["paramKind", "matchConditions"].iter().all(|field| same(&spec[*field], &old[*field]));
    let all = ["matchConditions", "variables"].iter().chain(lists).flat_map(|list| items(&old[*list]));
    let fields = [
        "/expression",
        "/messageExpression",
        "/valueExpression",
        "/jsonPatch/expression",
        "/applyConfiguration/expression",
    ];
    let expressions = all.flat_map(|item| fields.iter().filter_map(|field| item.pointer(field)).map(text));
    Before { is_same, expressions: expressions.filter(|expression| !expression.is_empty()).collect() }
}

fn param_kind(kind: &Value, path: &Path, errors: &mut Errors) {
    let version = text(&kind["apiVersion"]);
    let at = path.child("apiVersion");
    if version.is_empty() {
        errors.push(FieldError::required(&at, ""));
    } else if version.matches('/').count() > 1 {
        errors.push(FieldError::invalid(&at, version, format!("unexpected GroupVersion string: {version}")));
    } else {
        let (group, short) = version.split_once('/').unwrap_or(("", version));
        let problems = if group.is_empty() { Vec::new() } else { dns1123_subdomain(group) };
        problems_joined(group, &problems, &at, errors);
        if short.is_empty() {
            errors.push(FieldError::invalid(&at, version, "version must be specified"));
        } else {
            problems_joined(short, &dns1035_label(short), &at, errors);
        }
    }
    let name = text(&kind["kind"]);
    let at = path.child("kind");
    if name.is_empty() {
        return errors.push(FieldError::required(&at, ""));
    }
    let problems = dns1035_label(&name.to_lowercase());
    if !problems.is_empty() {
        let detail = format!("may have mixed case, but should otherwise match: {}", problems.join(","));
        errors.push(FieldError::invalid(&at, name, detail));
    }
}
