//! CustomResourceDefinitions: defaults, stored versions and names; [`versions`] has the rest. Follows
//! `apiextensions-apiserver/pkg/apis/apiextensions/v1/defaults.go`, `…/registry/customresourcedefinition/strategy.go` and
//! `…/apiextensions/validation/validation.go`.

mod rules;
mod versions;

use serde_json::{Value, json};
use steersman_base::Time;
use steersman_base::validation::{dns1035_label, dns1123_subdomain};

use crate::field::{Errors, FieldError, Path};
use crate::kinds::shared::check::{self, problems};
use crate::kinds::shared::json::{
    copy, default_to, default_zero_to, each, flag, is_empty, is_set, items, object_mut, set, text, with,
};
use crate::kinds::{NameRule, Rules};
use crate::registry::Registry;
use crate::registry::crd::{self, APPROVAL, claims_built_in, set_condition};
use crate::registry::delete::{DeleteOptions, Deletion};
use crate::registry::object_meta::metadata;
use crate::registry::query::strings;
use crate::registry::strategy::{Strategy, USER_METADATA};
use crate::table::{Cell, TableRow, cell};
use steersman_base::names::finalizers::CUSTOM_RESOURCE_CLEANUP;

/// The rules of CustomResourceDefinitions.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .defaulted(default)
    .prepared(prepare)
    .validated(|new, old, errors| {
        if old.is_none() {
            name(new, errors);
        }
        approval(new, old, errors);
        let keeps_unknown = |definition: &Value| flag(&definition["spec"]["preserveUnknownFields"]);
        if keeps_unknown(new) && !old.is_some_and(keeps_unknown) {
            let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
                          spec.versions[*].schema instead";
            errors.push(FieldError::invalid(&Path::new("spec").child("preserveUnknownFields"), true, detail));
        }
        spec(&new["spec"], &Path::new("spec"), errors);
        versions::validate(&new["spec"], old.map(|old| &old["spec"]), &Path::new("spec"), errors);
        if is_empty(&new["status"]["storedVersions"]) {
            let path = Path::new("status").child("storedVersions");
            errors.push(FieldError::invalid(&path, Value::Null, "must have at least one stored version"));
        }
        match old {
            Some(old) => update(new, old, errors),
            None => errors.extend(claims_built_in(new)),
        }
    })
    .with_strategy(Strategy {
        returns_deleted: true,
        unconditional_update: false,
        status_keeps_metadata: USER_METADATA,
        begin_deletion,
        ..Strategy::GENERATION
    })
    // Rules are compiled, and run on defaults.
    .heavy()
    .etcd_prefix("apiextensions.k8s.io/customresourcedefinitions")
    .after_write(|registry, stored| {
        if let Ok(definition) = stored.parse() {
            registry.definition_changed(definition, stored.revision);
        }
    })
    .after_delete(Registry::withdraw)
    .printed(&[
        Cell::Name,
        Cell::Text("/spec/scope"),
        Cell::Made(served_versions),
        Cell::Text("/metadata/creationTimestamp"),
        Cell::Text("/spec/group"),
        Cell::Text("/spec/names/kind"),
        Cell::Joined("/spec/names/shortNames", ""),
        Cell::Value(|row| {
            let established = row.condition("/status/conditions", "Established");
            established.is_some_and(|condition| cell::text(condition, "status") == "True").into()
        }),
    ]);

/// Marks a definition as terminating: it waits until its objects are deleted.
fn begin_deletion(definition: &mut Value, _: &DeleteOptions, now: Time) -> Deletion {
    if !definition["metadata"]["deletionTimestamp"].is_null() {
        return Deletion::Immediate;
    }
    let now = now.to_string();
    let mut names: Vec<String> =
        strings(&definition["metadata"]["finalizers"]).into_iter().map(str::to_owned).collect();
    if !names.iter().any(|name| name == CUSTOM_RESOURCE_CLEANUP) {
        names.push(CUSTOM_RESOURCE_CLEANUP.to_owned());
    }
    metadata(definition).insert("finalizers".into(), names.into());
    metadata(definition).insert("deletionTimestamp".into(), now.clone().into());
    let message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
    set_condition(definition, "Terminating", "True", "InstanceDeletionPending", message, &now);
    Deletion::Marked
}

fn default(object: &mut Value) {
    with(object, "spec", |spec| {
        with(spec, "names", |names| {
            let kind = text(&names["kind"]).to_owned();
            if !kind.is_empty() {
                default_zero_to(names, "singular", kind.to_lowercase());
                default_zero_to(names, "listKind", format!("{kind}List"));
            }
        });
        default_to(spec, "conversion", json!({"strategy": "None"}));
        let webhook = object_mut(spec, "conversion").and_then(|it| object_mut(it, "webhook"));
        let config = webhook.and_then(|it| object_mut(it, "clientConfig"));
        if let Some(service) = config.and_then(|it| object_mut(it, "service")) {
            default_to(service, "port", 443);
        }
    });
}

/// The version that is stored is among those that were ever stored.
fn prepare(new: &mut Value, old: Option<&Value>) {
    match old {
        Some(old) => copy(new, old, "status"),
        None => set(
            new,
            "status",
            json!({"acceptedNames": {"kind": "", "plural": ""}, "conditions": null, "storedVersions": []}),
        ),
    }
    let versions = items(&new["spec"]["versions"]);
    let Some(stored) = versions.iter().find(|version| flag(&version["storage"])).map(|it| it["name"].clone()) else {
        return;
    };
    with(new, "status", |status| {
        let mut names = items(&status["storedVersions"]).to_vec();
        if !names.contains(&stored) {
            names.push(stored);
            set(status, "storedVersions", names);
        }
    });
}

/// The name is made of the plural and the group.
fn name(new: &Value, errors: &mut Errors) {
    let plural = text(&new["spec"]["names"]["plural"]);
    let group = text(&new["spec"]["group"]);
    let name = text(&new["metadata"]["name"]);
    let want = format!("{plural}.{group}");
    if name != want && !name.is_empty() {
        let detail = "must be spec.names.plural+\".\"+spec.group";
        errors.push(FieldError::invalid(&Path::new("metadata").child("name"), name, detail));
    }
}

/// Groups of the Kubernetes project are given out by it (`validateAPIApproval`); an update may leave that as it is.
fn approval(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let Some(approval) = crd::approval(new) else { return };
    if old.and_then(crd::approval).is_some_and(|before| before.reason == approval.reason) {
        return;
    }
    let path = Path::new("metadata").child("annotations").key(APPROVAL);
    match approval.reason {
        "MissingAnnotation" => errors.push(FieldError::required(&path, approval.message)),
        "InvalidAnnotation" => {
            let held = text(&new["metadata"]["annotations"][APPROVAL]);
            errors.push(FieldError::invalid(&path, held, approval.message));
        }
        _ => {}
    }
}

fn spec(spec: &Value, path: &Path, errors: &mut Errors) {
    let group = text(&spec["group"]);
    let at = path.child("group");
    if group.is_empty() {
        errors.push(FieldError::required(&at, ""));
    } else {
        problems(group, dns1123_subdomain(group), &at, errors);
        if dns1123_subdomain(group).is_empty() && !group.contains('.') {
            errors.push(FieldError::invalid(&at, group, "should be a domain with at least one dot"));
        }
    }
    check::one_of(&spec["scope"], &["Cluster", "Namespaced"], &path.child("scope"), errors);
    version_names(spec, path, errors);
    if let Some(first) = items(&spec["versions"]).first() {
        // The version of old, which is the first of the list.
        let name = text(&first["name"]);
        problems(name, dns1035_label(name), &path.child("version"), errors);
    }
    names(&spec["names"], &path.child("names"), errors);
}

fn version_names(spec: &Value, path: &Path, errors: &mut Errors) {
    let versions = items(&spec["versions"]);
    let at = path.child("versions");
    for (index, version) in versions.iter().enumerate() {
        let name = text(&version["name"]);
        let path = at.index(index);
        if versions[..index].iter().any(|other| text(&other["name"]) == name) {
            let detail = "must contain unique version names";
            errors.push(FieldError::invalid(&at, spec["versions"].clone(), detail));
        }
        problems(name, dns1035_label(name), &path.child("name"), errors);
        if !is_set(&version["schema"]["openAPIV3Schema"]) {
            errors.push(FieldError::required(&path.child("schema").child("openAPIV3Schema"), ""));
        }
    }
    let stored = versions.iter().filter(|version| flag(&version["storage"])).count();
    if stored != 1 {
        let detail = "must have exactly one version marked as storage version";
        errors.push(FieldError::invalid(&at, spec["versions"].clone(), detail));
    }
}

fn names(names: &Value, path: &Path, errors: &mut Errors) {
    for field in ["plural", "singular", "kind", "listKind"] {
        let name = text(&names[field]);
        let at = path.child(field);
        if name.is_empty() {
            errors.push(FieldError::required(&at, ""));
        } else if matches!(field, "kind" | "listKind") {
            let wrong = dns1035_label(&name.to_lowercase());
            let mixed = |problem: String| format!("may have mixed case, but should otherwise match: {problem}");
            problems(name, wrong.into_iter().map(mixed).collect(), &at, errors);
        } else {
            problems(name, dns1035_label(name), &at, errors);
        }
    }
    each(&names["shortNames"], &path.child("shortNames"), |name, path| {
        problems(text(name), dns1035_label(text(name)), path, errors);
    });
    each(&names["categories"], &path.child("categories"), |name, path| {
        problems(text(name), dns1035_label(text(name)), path, errors);
    });
    let kind = text(&names["kind"]);
    let list = text(&names["listKind"]);
    if !kind.is_empty() && kind == list {
        let detail = "kind and listKind may not be the same";
        errors.push(FieldError::invalid(&path.child("listKind"), list, detail));
    }
}

fn update(new: &Value, old: &Value, errors: &mut Errors) {
    let is_established = items(&old["status"]["conditions"])
        .iter()
        .any(|it| text(&it["type"]) == "Established" && text(&it["status"]) == "True");
    let spec = &new["spec"];
    let before = &old["spec"];
    let path = Path::new("spec");
    check::immutable(&spec["group"], &before["group"], &path.child("group"), errors);
    check::immutable(
        &spec["names"]["plural"],
        &before["names"]["plural"],
        &path.child("names").child("plural"),
        errors,
    );
    if is_established {
        check::immutable(&spec["scope"], &before["scope"], &path.child("scope"), errors);
        check::immutable(&spec["names"]["kind"], &before["names"]["kind"], &path.child("names").child("kind"), errors);
    }
    each(&old["status"]["storedVersions"], &Path::new("status").child("storedVersions"), |name, path| {
        if !items(&spec["versions"]).iter().any(|version| version["name"] == *name) {
            let name = text(name);
            let detail = format!(
                "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions \
                 until a storage migration ensures no data remains persisted in {name} and removes {name} from \
                 status.storedVersions"
            );
            errors.push(FieldError::invalid(path, name, detail));
        }
    });
}

fn served_versions(row: &TableRow<'_>) -> String {
    let is = |version: &Value, field: &str| version.get(field).and_then(Value::as_bool) == Some(true);
    let served = row.list_at("/spec/versions").iter().filter(|version| is(version, "served"));
    let mut versions: Vec<String> = served
        .map(|version| {
            format!("{}{}", cell::text(version, "name"), if is(version, "storage") { "(storage)" } else { "" })
        })
        .collect();
    versions.sort_unstable();
    versions.join(",")
}
