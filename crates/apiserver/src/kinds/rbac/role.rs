//! Roles, and the rules of both kinds of roles: `pkg/apis/rbac/validation/validation.go`.

use serde_json::Value;

use super::{STRATEGY, Scope, grants};
use crate::field::{Errors, FieldError, Path};
use crate::kinds::shared::json::{each, is_empty};
use crate::kinds::{NameRule, Rules};

/// The rules of Roles.
pub(crate) static RULES: Rules = Rules::named(NameRule::PathSegment)
    .validated(|new, _, errors| rules(new, Scope::Namespace, errors))
    .confirmed(grants::of_role)
    .with_strategy(STRATEGY);

pub(crate) fn rules(role: &Value, scope: Scope, errors: &mut Errors) {
    rules_by_hand(role, scope, errors);
    // Checked declaratively upstream, after what is checked by hand; so are the names in bindings.
    each(&role["rules"], &Path::new("rules"), |rule, path| {
        if is_empty(&rule["verbs"]) {
            errors.push(FieldError::required(&path.child("verbs"), ""));
        }
    });
}

fn rules_by_hand(role: &Value, scope: Scope, errors: &mut Errors) {
    each(&role["rules"], &Path::new("rules"), |rule, path| {
        let urls = &rule["nonResourceURLs"];
        let at = path.child("nonResourceURLs");
        if !is_empty(urls) {
            if scope == Scope::Namespace {
                let detail = "namespaced rules cannot apply to non-resource URLs";
                errors.push(FieldError::invalid(&at, urls.clone(), detail));
            }
            if ["apiGroups", "resources", "resourceNames"].iter().any(|field| !is_empty(&rule[*field])) {
                let detail = "rules cannot apply to both regular resources and non-resource URLs";
                errors.push(FieldError::invalid(&at, urls.clone(), detail));
            }
            return;
        }
        for (field, what) in [("apiGroups", "api group"), ("resources", "resource")] {
            if is_empty(&rule[field]) {
                let detail = format!("resource rules must supply at least one {what}");
                errors.push(FieldError::required(&path.child(field), detail));
            }
        }
    });
}
