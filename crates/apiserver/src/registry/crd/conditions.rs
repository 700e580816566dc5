//! The names that a definition gets, and its conditions, as functions of definitions.
//!
//! Follows `apiextensions-apiserver/pkg/controller/{status,nonstructuralschema,apiapproval}` of Kubernetes 1.37.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use steersman_base::validation::{FieldError, FieldErrors};
use steersman_structural_schema::{Schema, structural_problems};

use crate::kinds::shared::json::{items, text};
use crate::registry::query::strings;

/// A condition that a definition gets.
struct Condition {
    kind: &'static str,
    status: &'static str,
    reason: &'static str,
    message: String,
}

/// The approval of a definition of a group of the Kubernetes project: reason of the condition, status, explanation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Approval {
    pub(crate) reason: &'static str,
    pub(crate) status: &'static str,
    pub(crate) message: String,
}

/// The annotation that approves.
pub(crate) const APPROVAL: &str = "api-approved.kubernetes.io";

/// The names that definitions of a group have.
#[derive(Debug, Default)]
pub(super) struct UsedNames {
    resources: BTreeSet<String>,
    kinds: BTreeSet<String>,
}

/// The names that must be free, and the reason if they are not; of several reasons the last one counts.
const NAMES: [(&str, &str); 5] = [
    ("plural", "PluralConflict"),
    ("singular", "SingularConflict"),
    ("shortNames", "ShortNamesConflict"),
    ("kind", "KindConflict"),
    ("listKind", "ListKindConflict"),
];

/// Accepts the names of a definition that no other definition has, and says so in its conditions.
pub(super) fn accept_names(definition: &mut Value, used: &UsedNames, now: &str) {
    if !definition["status"].is_object() {
        definition["status"] = json!({});
    }
    let wanted = definition["spec"]["names"].clone();
    let mut accepted = match &definition["status"]["acceptedNames"] {
        names @ Value::Object(_) => names.clone(),
        _ => json!({}),
    };
    let mut conflict = None;
    for (field, reason) in NAMES {
        let taken = used.taken(field, &wanted[field], &accepted[field]);
        if !taken.is_empty() {
            conflict = Some((reason, taken.join(", ")));
        } else if wanted[field].is_null() {
            accepted.as_object_mut().map(|names| names.remove(field));
        } else {
            accepted[field] = wanted[field].clone();
        }
    }
    match &wanted["categories"] {
        Value::Null => drop(accepted.as_object_mut().map(|names| names.remove("categories"))),
        categories => accepted["categories"] = categories.clone(),
    }
    definition["status"]["acceptedNames"] = accepted;
    let is_accepted = conflict.is_none();
    match conflict {
        None => set_condition(definition, "NamesAccepted", "True", "NoConflicts", "no conflicts found", now),
        Some((reason, message)) => set_condition(definition, "NamesAccepted", "False", reason, &message, now),
    }
    if is_accepted && !is_true(definition, "Established") {
        let message = "the initial names have been accepted";
        set_condition(definition, "Established", "False", "Installing", message, now);
    } else if !has_condition(definition, "Established") {
        set_condition(definition, "Established", "False", "NotAccepted", "not all names are accepted", now);
    }
}

/// Sets or removes the conditions that follow from the definition alone.
pub(super) fn set_derived(definition: &mut Value, now: &str) {
    match non_structural(definition) {
        Some(Condition { kind, status, reason, message }) => {
            set_condition(definition, kind, status, reason, &message, now);
        }
        None => {
            if let Some(conditions) = definition["status"]["conditions"].as_array_mut() {
                conditions.retain(|held| held["type"] != "NonStructuralSchema");
            }
        }
    }
    if let Some(Approval { reason, status, message }) = approval(definition) {
        set_condition(definition, "KubernetesAPIApprovalPolicyConformant", status, reason, &message, now);
    }
}

fn non_structural(definition: &Value) -> Option<Condition> {
    let condition = |status, reason, message| Condition { kind: "NonStructuralSchema", status, reason, message };
    let mut errors = Vec::new();
    if definition["spec"]["preserveUnknownFields"] == Value::Bool(true) {
        errors.push(FieldError::invalid("spec.preserveUnknownFields", true, "must be false"));
    }
    for (index, version) in items(&definition["spec"]["versions"]).iter().enumerate() {
        match Schema::parse(&version["schema"]["openAPIV3Schema"]) {
            Ok(schema) => {
                let path = format!("spec.versions[{index}].schema.openAPIV3Schema");
                errors.extend(structural_problems(&schema, &path));
            }
            Err(error) => {
                let name = text(&version["name"]);
                let message = format!("failed to check validation schema for version {name}: {error}");
                return Some(condition("Unknown", "StructuralError", message));
            }
        }
    }
    let errors = FieldErrors::check(errors).err()?;
    Some(condition("True", "Violations", errors.to_string()))
}

/// Whether a definition is approved; none if it needs no approval.
pub(crate) fn approval(definition: &Value) -> Option<Approval> {
    const SEE: &str = "see https://github.com/kubernetes/enhancements/pull/1111";
    let group = text(&definition["spec"]["group"]);
    let is_within =
        |domain: &str| group.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    if !is_within("k8s.io") && !is_within("kubernetes.io") {
        return None;
    }
    let approved = text(&definition["metadata"]["annotations"][APPROVAL]);
    let is_url = approved.split_once("://").is_some_and(|(scheme, rest)| {
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        !scheme.is_empty() && !host.is_empty() && !approved.contains(char::is_whitespace)
    });
    let must = format!("protected groups must have approval annotation {APPROVAL:?}");
    let (reason, status, message) = if approved.is_empty() {
        ("MissingAnnotation", "False", format!("{must}, {SEE}"))
    } else if approved.starts_with("unapproved") {
        ("UnapprovedAnnotation", "False", format!("not approved: {approved:?}"))
    } else if is_url {
        ("ApprovedAnnotation", "True", format!("approved in {approved}"))
    } else {
        let either = "with either a URL or a reason starting with \"unapproved\"";
        ("InvalidAnnotation", "False", format!("{must} {either}, {SEE}"))
    };
    Some(Approval { reason, status, message })
}

/// Whether a condition of a definition is true.
pub(super) fn is_true(definition: &Value, condition: &str) -> bool {
    items(&definition["status"]["conditions"]).iter().any(|held| held["type"] == condition && held["status"] == "True")
}

fn has_condition(definition: &Value, condition: &str) -> bool {
    items(&definition["status"]["conditions"]).iter().any(|held| held["type"] == condition)
}

/// Sets a condition of a definition.
pub(crate) fn set_condition(definition: &mut Value, kind: &str, status: &str, reason: &str, message: &str, now: &str) {
    if !definition["status"]["conditions"].is_array() {
        definition["status"]["conditions"] = json!([]);
    }
    let Some(conditions) = definition["status"]["conditions"].as_array_mut() else { return };
    let held = conditions.iter_mut().find(|held| held["type"] == kind);
    let since = match &held {
        Some(held) if held["status"] == status => held["lastTransitionTime"].clone(),
        _ => now.into(),
    };
    let condition = json!({
        "type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since,
    });
    match held {
        Some(held) => *held = condition,
        None => conditions.push(condition),
    }
}

// === impl UsedNames ===

impl UsedNames {
    /// Adds the accepted names of a definition.
    pub(super) fn add(&mut self, accepted: &Value) {
        let named = |fields: [&str; 2]| fields.map(|field| text(&accepted[field]).to_owned());
        self.resources.extend(named(["plural", "singular"]));
        self.resources.extend(strings(&accepted["shortNames"]).into_iter().map(str::to_owned));
        self.kinds.extend(named(["kind", "listKind"]));
    }

    /// Why the wanted names of a field cannot be accepted: they are others than now, and used.
    fn taken(&self, field: &str, wanted: &Value, accepted: &Value) -> Vec<String> {
        let used = if matches!(field, "kind" | "listKind") { &self.kinds } else { &self.resources };
        let held = strings_or_one(accepted);
        let wanted = strings_or_one(wanted);
        let taken = wanted.into_iter().filter(|name| !held.contains(name) && used.contains(*name));
        taken.map(|name| format!("{name:?} is already in use")).collect()
    }
}

fn strings_or_one(value: &Value) -> Vec<&str> {
    value.as_str().map_or_else(|| strings(value), |one| vec![one])
}
