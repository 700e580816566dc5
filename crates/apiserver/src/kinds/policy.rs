//! Small kinds of small groups: disruption budgets, autoscalers, leases, priority and runtime classes.

mod autoscaler;

use serde_json::Value;
use steersman_base::validation::{dns1123_label, path_segment};

use super::check::{self, Errors, forbid_if, one_of, one_of_if_set, problems};
use super::json::{default_to, is_empty, is_set, items, number, same, text};
use super::pod::resources::overhead;
use super::pod::validation::tolerations;
use super::{NameRule, Rules, go};
use crate::field::{FieldError, Path};

/// The rules of a kind of one of these groups.
pub(super) fn rules(group: &str, kind: &str) -> Option<&'static Rules> {
    Some(match (group, kind) {
        ("policy", "PodDisruptionBudget") => &BUDGET,
        ("autoscaling", "HorizontalPodAutoscaler") => &autoscaler::AUTOSCALER,
        ("coordination.k8s.io", "Lease") => &LEASE,
        ("scheduling.k8s.io", "PriorityClass") => &PRIORITY_CLASS,
        ("node.k8s.io", "RuntimeClass") => &RUNTIME_CLASS,
        _ => return None,
    })
}

/// Follows `pkg/apis/policy/validation/validation.go`.
static BUDGET: Rules = Rules::named(NameRule::PathSegment).validated(|new, _, errors| {
    let (spec, path) = (&new["spec"], Path::new("spec"));
    if is_set(&spec["minAvailable"]) && is_set(&spec["maxUnavailable"]) {
        let shown = go::show("PodDisruptionBudgetSpec", spec);
        errors.push(FieldError::invalid(&path, shown, "minAvailable and maxUnavailable cannot be both set"));
    }
    for field in ["minAvailable", "maxUnavailable"] {
        if is_set(&spec[field]) {
            check::number_or_percent(&spec[field], &path.child(field), errors);
            check::percent_at_most_100(&spec[field], &path.child(field), errors);
        }
    }
    check::label_selector(&spec["selector"], &path.child("selector"), errors);
    one_of_if_set(
        &spec["unhealthyPodEvictionPolicy"],
        &["AlwaysAllow", "IfHealthyBudget"],
        &path.child("unhealthyPodEvictionPolicy"),
        errors,
    );
});

/// Follows `pkg/apis/coordination/validation/validation.go`.
static LEASE: Rules = Rules::named(NameRule::Subdomain).validated(|new, _, errors| {
    let (spec, path) = (&new["spec"], Path::new("spec"));
    if is_set(&spec["leaseDurationSeconds"]) {
        let (seconds, at) = (number(&spec["leaseDurationSeconds"]), path.child("leaseDurationSeconds"));
        if seconds <= 0 {
            errors.push(FieldError::invalid(&at, seconds, "must be greater than 0"));
        }
    }
    check::non_negative(&spec["leaseTransitions"], &path.child("leaseTransitions"), errors);
    forbid_if(
        !is_empty(&spec["preferredHolder"]) && is_empty(&spec["strategy"]),
        "may only be specified if `strategy` is defined",
        &path.child("preferredHolder"),
        errors,
    );
});

/// Follows `pkg/apis/scheduling/v1/defaults.go` and `pkg/apis/scheduling/validation/validation.go`.
static PRIORITY_CLASS: Rules = Rules::named(NameRule::Subdomain)
    .defaulted(|class| default_to(class, "preemptionPolicy", "PreemptLowerPriority"))
    .validated(|new, old, errors| {
        if let Some(old) = old {
            let detail = "may not be changed in an update.";
            forbid_if(number(&new["value"]) != number(&old["value"]), detail, &Path::new("value"), errors);
            let path = Path::new("preemptionPolicy");
            check::immutable(&new["preemptionPolicy"], &old["preemptionPolicy"], &path, errors);
        } else {
            priority_class(new, errors);
        }
    });

fn priority_class(class: &Value, errors: &mut Errors) {
    const USER_PRIORITY_MAX: i64 = 1_000_000_000;
    let (name, value) = (text(&class["metadata"]["name"]), number(&class["value"]));
    if name.starts_with("system-") {
        let known = [("system-node-critical", 2_000_001_000), ("system-cluster-critical", 2_000_000_000)];
        let path = Path::new("metadata").child("name");
        let why = match known.iter().find(|(known, _)| *known == name) {
            None => format!("{name} is not a known system priority class"),
            Some((_, want)) if *want != value => format!("value of {name} PriorityClass must be {want}"),
            Some(_) => return,
        };
        let detail =
            format!("priority class names with 'system-' prefix are reserved for system use only. error: {why}");
        errors.push(FieldError::forbidden(&path, detail));
    } else if value > USER_PRIORITY_MAX {
        let detail = format!("maximum allowed value of a user defined priority is {USER_PRIORITY_MAX}");
        errors.push(FieldError::forbidden(&Path::new("value"), detail));
    }
    if is_set(&class["preemptionPolicy"]) {
        let policies = &["PreemptLowerPriority", "Never"];
        one_of(&class["preemptionPolicy"], policies, &Path::new("preemptionPolicy"), errors);
    }
}

/// Follows `pkg/apis/node/validation/validation.go`.
static RUNTIME_CLASS: Rules = Rules::named(NameRule::Subdomain).validated(|new, old, errors| {
    let (handler, path) = (text(&new["handler"]), Path::new("handler"));
    if handler.is_empty() {
        errors.push(FieldError::required(&path, ""));
    } else {
        // Checked declaratively upstream, which counts bytes.
        let wrong = dns1123_label(handler).into_iter().map(|problem| problem.replace("63 characters", "63 bytes"));
        problems(handler, wrong.collect(), &path, errors);
    }
    if is_set(&new["overhead"]) {
        overhead(&new["overhead"]["podFixed"], &Path::new("overhead"), errors);
    }
    let scheduling = Path::new("scheduling");
    check::labels(&new["scheduling"]["nodeSelector"], &scheduling.child("nodeSelector"), errors);
    let at = scheduling.child("tolerations");
    let given = items(&new["scheduling"]["tolerations"]);
    for (index, toleration) in given.iter().enumerate() {
        if given[..index].iter().any(|other| same(other, toleration)) {
            errors.push(FieldError::duplicate(&at.index(index), go::show("Toleration", toleration)));
        }
    }
    tolerations(&new["scheduling"]["tolerations"], &at, errors);
    if let Some(old) = old.filter(|old| !same(&old["handler"], &new["handler"])) {
        check::immutable(&new["handler"], &old["handler"], &path, errors);
    }
});

/// A reference to an object of any version: `ValidateCrossVersionObjectReference`.
fn reference(reference: &Value, path: &Path, errors: &mut Errors) {
    for field in ["kind", "name"] {
        let value = text(&reference[field]);
        if value.is_empty() {
            errors.push(FieldError::required(&path.child(field), ""));
        } else {
            problems(value, path_segment(value), &path.child(field), errors);
        }
    }
}
