//! ClusterRoles: `pkg/apis/rbac/validation/validation.go`.

use serde_json::Value;

use super::role::rules;
use super::{STRATEGY, Scope, grants};
use crate::field::{FieldError, Path};
use crate::kinds::shared::check;
use crate::kinds::shared::json::{each, is_set, items};
use crate::kinds::{NameRule, Rules};

/// The rules of ClusterRoles.
pub(crate) static RULES: Rules = Rules::named(NameRule::PathSegment)
    .validated(|new, _, errors| {
        rules(new, Scope::Cluster, errors);
        let aggregation = &new["aggregationRule"];
        if is_set(aggregation) {
            let path = Path::new("aggregationRule").child("clusterRoleSelectors");
            if items(&aggregation["clusterRoleSelectors"]).is_empty() {
                let detail = "at least one clusterRoleSelector required if aggregationRule is non-nil";
                errors.push(FieldError::required(&path, detail));
            }
            each(&aggregation["clusterRoleSelectors"], &path, |it, path| {
                let count = errors.len();
                check::label_selector(it, path, errors);
                if errors.len() > count {
                    errors.push(FieldError::invalid(path, Value::Null, "invalid label selector."));
                }
            });
        }
    })
    .confirmed(grants::of_role)
    .with_strategy(STRATEGY);
