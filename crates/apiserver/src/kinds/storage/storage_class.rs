//! StorageClasses: `pkg/apis/storage/v1/defaults.go` and `pkg/apis/storage/validation/validation.go`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use steersman_base::validation::qualified_name;

use crate::field::{Errors, FieldError, Path};
use crate::kinds::shared::check::{self, one_of_if_set, problems, required};
use crate::kinds::shared::json::{default_to, each, entries, is_empty, items, text};
use crate::kinds::{NameRule, Rules};
use crate::registry::strategy::Strategy;
use crate::table::{Cell, TableRow, cell};

/// The rules of StorageClasses.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .defaulted(|class| {
        default_to(class, "reclaimPolicy", "Delete");
        default_to(class, "volumeBindingMode", "Immediate");
    })
    .validated(|new, old, errors| {
        let path = Path::new("provisioner");
        if required(&new["provisioner"], &path, errors) {
            let name = text(&new["provisioner"]).to_lowercase();
            problems(&name, qualified_name(&name), &path, errors);
        }
        for (key, _) in entries(&new["parameters"]).into_iter().filter(|(key, _)| key.is_empty()) {
            errors.push(FieldError::invalid(&Path::new("parameters"), key, "field can not be empty."));
        }
        if !is_empty(&new["reclaimPolicy"]) {
            one_of_if_set(&new["reclaimPolicy"], &["Delete", "Retain"], &Path::new("reclaimPolicy"), errors);
        }
        let modes = &["Immediate", "WaitForFirstConsumer"];
        one_of_if_set(&new["volumeBindingMode"], modes, &Path::new("volumeBindingMode"), errors);
        topologies(&new["allowedTopologies"], &Path::new("allowedTopologies"), errors);
        if let Some(old) = old {
            for field in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
                check::immutable_unshown(&new[field], &old[field], &Path::new(field), errors);
            }
        }
    })
    .with_strategy(Strategy::RETURNS_DELETED)
    .printed(&[
        Cell::Made(class_name),
        Cell::Text("/provisioner"),
        Cell::TextOr("/reclaimPolicy", "Delete"),
        Cell::TextOr("/volumeBindingMode", "Immediate"),
        Cell::Bool("/allowVolumeExpansion", false),
        Cell::Age,
    ]);

/// The cell text of the name. In a list, the default class is marked: the newest of those that are annotated so, then the
/// first by name.
fn class_name(row: &TableRow<'_>) -> String {
    let name = row.text("/metadata/name");
    let is_default = |class: &&&Value| {
        ["storageclass.kubernetes.io~1is-default-class", "storageclass.beta.kubernetes.io~1is-default-class"]
            .iter()
            .any(|annotation| {
                let annotation = class.pointer(&format!("/metadata/annotations/{annotation}"));
                annotation.and_then(Value::as_str) == Some("true")
            })
    };
    let rank = |class: &&&Value| {
        let of_class = |path: &str| class.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        let created = cell::seconds_of(&of_class("/metadata/creationTimestamp")).unwrap_or_default();
        (std::cmp::Reverse(created), of_class("/metadata/name"))
    };
    let default = row.list.iter().filter(is_default).min_by_key(rank);
    let is_it = default.and_then(|class| class.pointer("/metadata/name")).and_then(Value::as_str) == Some(name);
    if is_it { format!("{name} (default)") } else { name.to_owned() }
}

/// Checks where volumes of a class may be: labels and values once each, and no term twice.
fn topologies(terms: &Value, path: &Path, errors: &mut Errors) {
    let mut seen: Vec<BTreeMap<&str, BTreeSet<&str>>> = Vec::new();
    each(terms, path, |term, at| {
        let mut wanted: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        let at = at.child("matchLabelExpressions");
        each(&term["matchLabelExpressions"], &at, |expression, at| {
            let key = text(&expression["key"]);
            let mut values = BTreeSet::new();
            if items(&expression["values"]).is_empty() {
                errors.push(FieldError::required(&at.child("values"), ""));
            }
            each(&expression["values"], &at.child("values"), |value, at| {
                if !values.insert(text(value)) {
                    errors.push(FieldError::duplicate(at, text(value)));
                }
            });
            problems(key, qualified_name(key), &at.child("key"), errors);
            if wanted.insert(key, values).is_some() {
                errors.push(FieldError::duplicate(&at.child("key"), key));
            }
        });
        // Upstream takes a term that says nothing for a repetition.
        if wanted.is_empty() || seen.contains(&wanted) {
            errors.push(FieldError::duplicate(&at, ""));
        }
        seen.push(wanted);
    });
}
