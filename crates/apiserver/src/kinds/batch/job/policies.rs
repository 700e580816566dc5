//! The policies of a Job for failed and succeeded pods: `validatePodFailurePolicy` and `validateSuccessPolicy` of
//! `pkg/apis/batch/validation/validation.go`.

use serde_json::Value;
use steersman_base::validation::qualified_name;

use super::index;
use crate::field::{Errors, FieldError, Path};
use crate::kinds::shared::check::{self, problems};
use crate::kinds::shared::go;
use crate::kinds::shared::json::{each, is_set, items, number, text};

pub(super) fn failure_policy(spec: &Value, path: &Path, errors: &mut Errors) {
    const RULES_MAX: usize = 20;
    const PATTERNS_MAX: usize = 20;
    const ACTIONS: &[&str] = &["Count", "FailIndex", "FailJob", "Ignore"];
    let rules = &spec["podFailurePolicy"]["rules"];
    if items(rules).len() > RULES_MAX {
        errors.push(FieldError::too_many(path, items(rules).len(), RULES_MAX));
    }
    each(rules, path, |rule, path| {
        let at = path.child("action");
        match text(&rule["action"]) {
            "" => {
                let detail = "valid values: [\"Count\" \"FailIndex\" \"FailJob\" \"Ignore\"]";
                errors.push(FieldError::required(&at, detail));
            }
            "FailIndex" if !is_set(&spec["backoffLimitPerIndex"]) => {
                let detail = "requires the backoffLimitPerIndex to be set";
                errors.push(FieldError::invalid(&at, "FailIndex", detail));
            }
            action if !ACTIONS.contains(&action) => errors.push(FieldError::not_supported(&at, action, ACTIONS)),
            _ => {}
        }
        if is_set(&rule["onExitCodes"]) {
            exit_codes(spec, &rule["onExitCodes"], &path.child("onExitCodes"), errors);
        }
        let conditions = items(&rule["onPodConditions"]);
        let at = path.child("onPodConditions");
        if conditions.len() > PATTERNS_MAX {
            errors.push(FieldError::too_many(&at, conditions.len(), PATTERNS_MAX));
        }
        each(&rule["onPodConditions"], &at, |pattern, path| {
            let name = text(&pattern["type"]);
            problems(name, qualified_name(name), &path.child("type"), errors);
            let known = &["False", "True", "Unknown"];
            if !known.contains(&text(&pattern["status"])) {
                errors.push(FieldError::not_supported(&path.child("status"), text(&pattern["status"]), known));
            }
        });
        let detail = match (is_set(&rule["onExitCodes"]), conditions.is_empty()) {
            (true, false) => "specifying both OnExitCodes and OnPodConditions is not supported",
            (false, true) => "specifying one of OnExitCodes and OnPodConditions is required",
            _ => return,
        };
        errors.push(FieldError { value: None, ..FieldError::invalid(path, "", detail) });
    });
}

fn exit_codes(spec: &Value, codes: &Value, path: &Path, errors: &mut Errors) {
    const VALUES_MAX: usize = 255;
    let operator = text(&codes["operator"]);
    if operator.is_empty() {
        errors.push(FieldError::required(&path.child("operator"), "valid values: [\"In\" \"NotIn\"]"));
    } else if !matches!(operator, "In" | "NotIn") {
        errors.push(FieldError::not_supported(&path.child("operator"), operator, &["In", "NotIn"]));
    }
    let pod = &spec["template"]["spec"];
    if let Some(name) = codes["containerName"].as_str() {
        let mut containers = items(&pod["containers"]).iter().chain(items(&pod["initContainers"]));
        if !containers.any(|container| text(&container["name"]) == name) {
            let detail = "must be one of the container or initContainer names in the pod template";
            errors.push(FieldError::invalid(&path.child("containerName"), name, detail));
        }
    }
    let values = items(&codes["values"]);
    let at = path.child("values");
    if values.is_empty() {
        errors.push(FieldError::invalid(&at, codes["values"].clone(), "at least one value is required"));
    } else if values.len() > VALUES_MAX {
        errors.push(FieldError::too_many(&at, values.len(), VALUES_MAX));
    }
    for (index, value) in values.iter().enumerate() {
        if operator == "In" && number(value) == 0 {
            let detail = "must not be 0 for the In operator";
            errors.push(FieldError::invalid(&at.index(index), value.clone(), detail));
        }
        if values[..index].contains(value) {
            errors.push(FieldError::duplicate(&at.index(index), value.clone()));
        }
    }
    if values.windows(2).any(|pair| number(&pair[0]) > number(&pair[1])) {
        errors.push(FieldError::invalid(&at, codes["values"].clone(), "must be ordered"));
    }
}

pub(super) fn success_policy(spec: &Value, path: &Path, errors: &mut Errors) {
    const RULES_MAX: usize = 20;
    let policy = &spec["successPolicy"];
    if !is_set(policy) {
        return;
    }
    if text(&spec["completionMode"]) != "Indexed" {
        let shown = go::show("SuccessPolicy", policy);
        errors.push(FieldError::invalid(path, shown, "requires indexed completion mode"));
        return;
    }
    let rules = items(&policy["rules"]);
    let path = path.child("rules");
    if rules.is_empty() {
        let detail = "at least one rules must be specified when the successPolicy is specified";
        errors.push(FieldError::required(&path, detail));
    }
    if rules.len() > RULES_MAX {
        errors.push(FieldError::too_many(&path, rules.len(), RULES_MAX));
    }
    each(&policy["rules"], &path, |rule, path| {
        if !is_set(&rule["succeededCount"]) && !is_set(&rule["succeededIndexes"]) {
            let detail = "at least one of succeededCount or succeededIndexes must be specified";
            errors.push(FieldError::required(path, detail));
        }
        let completions = number(&spec["completions"]);
        let mut total = None;
        if let Some(indexes) = rule["succeededIndexes"].as_str() {
            let counted = index::count(indexes, completions);
            total = Some(*counted.as_ref().unwrap_or(&0));
            if let Err(why) = counted {
                let detail = format!("error parsing succeededIndexes: {why}");
                errors.push(FieldError::invalid(&path.child("succeededIndexes"), indexes, detail));
            }
        }
        let Some(count) = rule["succeededCount"].as_i64() else { return };
        let at = path.child("succeededCount");
        check::non_negative(&rule["succeededCount"], &at, errors);
        if count > completions {
            let detail = format!("must be less than or equal to {completions} (the number of specified completions)");
            errors.push(FieldError::invalid(&at, count, detail));
        }
        if let Some(total) = total.filter(|total| count > *total) {
            let detail = format!(
                "must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
            );
            errors.push(FieldError::invalid(&at, count, detail));
        }
    });
}
