//! StatefulSets. Follows `pkg/apis/apps/v1/defaults.go` and `ValidateStatefulSet` of `pkg/apis/apps/validation/validation.go`.

use serde_json::{Value, json};
use steersman_base::validation::dns1123_label;

use crate::field::{Errors, FieldError, Path};
use crate::kinds::core::persistent_volume_claim;
use crate::kinds::core::pod;
use crate::kinds::core::pod::defaults::template;
use crate::kinds::core::pod::warnings;
use crate::kinds::shared::check::{self, problems};
use crate::kinds::shared::go;
use crate::kinds::shared::json::{
    default_to, default_zero_to, each, each_mut, is_empty, is_set, items, object_mut, set, text, unset, with,
};
use crate::kinds::shared::meta::{self, validate_meta_update};
use crate::kinds::shared::workload::{
    self, CONTAINERS, IMAGES, READY_OF_REPLICAS, compiled, lasting, selector, template_labels,
};
use crate::kinds::{NameRule, Rules};
use crate::registry::admission::Admission;
use crate::registry::strategy::Strategy;
use crate::table::Cell;

/// The rules of StatefulSets.
pub(crate) static RULES: Rules = Rules::named(NameRule::Label)
    .defaulted(default)
    .prepared(workload::prepare)
    .warned(|new, old, warnings| warnings::template_at("spec.template", &new["spec"]["template"], (new, old), warnings))
    .admitted(Admission::of_template("/spec/template"))
    .validated(|new, old, errors| {
        let path = Path::new("spec");
        spec(&new["spec"], old.is_none(), &path, errors);
        if let Some(old) = old {
            update(&new["spec"], &old["spec"], &path, errors);
        }
    })
    .status_validated(|new, old, errors| {
        validate_meta_update(new, old, errors);
        let counts = [
            "replicas",
            "readyReplicas",
            "currentReplicas",
            "updatedReplicas",
            "availableReplicas",
            "observedGeneration",
            "collisionCount",
        ];
        workload::status_counts(&new["status"], &counts, errors);
        let parts = ["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"];
        workload::replica_counts(&new["status"], &parts, "status.readyReplicas", errors);
        workload::collision_count(new, old, errors);
    })
    .with_strategy(Strategy::GENERATION)
    .printed(&[Cell::Name, READY_OF_REPLICAS, Cell::Age, CONTAINERS, IMAGES]);

fn default(object: &mut Value) {
    with(object, "spec", |spec| {
        default_zero_to(spec, "podManagementPolicy", "OrderedReady");
        with(spec, "updateStrategy", |strategy| {
            if is_empty(&strategy["type"]) {
                set(strategy, "type", "RollingUpdate");
                default_to(strategy, "rollingUpdate", json!({}));
            }
            if text(&strategy["type"]) == "RollingUpdate"
                && let Some(rolling) = object_mut(strategy, "rollingUpdate")
            {
                default_to(rolling, "partition", 0);
                default_to(rolling, "maxUnavailable", 1);
            }
        });
        with(spec, "persistentVolumeClaimRetentionPolicy", |policy| {
            default_zero_to(policy, "whenDeleted", "Retain");
            default_zero_to(policy, "whenScaled", "Retain");
        });
        default_to(spec, "replicas", 1);
        default_to(spec, "revisionHistoryLimit", 10);
        template(spec);
        each_mut(spec, "volumeClaimTemplates", |claim| {
            // Stored with its kind, as conversion writes it.
            default_zero_to(claim, "apiVersion", "v1");
            default_zero_to(claim, "kind", "PersistentVolumeClaim");
            persistent_volume_claim::defaults(claim);
        });
    });
}

fn update(new: &Value, old: &Value, path: &Path, errors: &mut Errors) {
    check::immutable_selector(&new["selector"], &old["selector"], &path.child("selector"), errors);
    let templates = "volumeClaimTemplates";
    check::immutable_struct("[PersistentVolumeClaim", &new[templates], &old[templates], &path.child(templates), errors);
    for field in ["serviceName", "podManagementPolicy"] {
        check::immutable_text(&new[field], &old[field], &path.child(field), errors);
    }
}

/// Checks a spec. Fields that cannot change any more are checked only in a new set.
fn spec(spec: &Value, is_new: bool, path: &Path, errors: &mut Errors) {
    let at = path.child("podManagementPolicy");
    match text(&spec["podManagementPolicy"]) {
        "" => errors.push(FieldError::required(&at, "")),
        "OrderedReady" | "Parallel" => {}
        other => errors.push(FieldError::invalid(&at, other, "must be 'OrderedReady' or 'Parallel'")),
    }
    update_strategy(&spec["updateStrategy"], &path.child("updateStrategy"), errors);
    let retention = &spec["persistentVolumeClaimRetentionPolicy"];
    let at = path.child("persistentVolumeClaimRetentionPolicy");
    for field in ["whenDeleted", "whenScaled"] {
        check::one_of_if_set(&retention[field], &["Retain", "Delete"], &at.child(field), errors);
    }
    if is_new {
        each(&spec["volumeClaimTemplates"], &path.child("volumeClaimTemplates"), |claim, path| {
            persistent_volume_claim::spec(&claim["spec"], &path.child("spec"), errors);
        });
    }
    check::non_negative(&spec["replicas"], &path.child("replicas"), errors);
    check::non_negative(&spec["minReadySeconds"], &path.child("minReadySeconds"), errors);
    check::non_negative(&spec["ordinals"]["start"], &path.child("ordinals.start"), errors);
    let service = text(&spec["serviceName"]);
    if is_new && !service.is_empty() {
        problems(service, dns1123_label(service), &path.child("serviceName"), errors);
    }
    selector(spec, "statefulset", path, errors);
    if let Some(selector) = compiled(spec) {
        template_labels(spec, &selector, path, errors);
        let template = template_to_check(spec);
        let at = path.child("template");
        pod::validation::template(&template, &at, errors);
        meta::validate_template(&template["metadata"], &at, errors);
    } else {
        errors.push(FieldError::invalid(&path.child("selector"), check::shown_selector(&spec["selector"]), ""));
    }
    lasting(spec, "StatefulSet", &path.child("template"), errors);
}

/// The template as the controller makes pods of it: with its own hostname and subdomain, and a volume per claim.
fn template_to_check(spec: &Value) -> Value {
    let mut template = spec["template"].clone();
    let Some(pod) = template.get_mut("spec") else { return template };
    unset(pod, "subdomain");
    unset(pod, "hostname");
    let mut claims: Vec<_> =
        items(&spec["volumeClaimTemplates"]).iter().map(|it| text(&it["metadata"]["name"])).collect();
    claims.sort_unstable();
    claims.dedup();
    if !claims.is_empty() {
        let mut volumes: Vec<_> =
            claims.iter().map(|name| json!({"name": name, "persistentVolumeClaim": {"claimName": name}})).collect();
        let others = items(&pod["volumes"]).iter().filter(|volume| !claims.contains(&text(&volume["name"])));
        volumes.extend(others.cloned());
        set(pod, "volumes", volumes);
    }
    template
}

fn update_strategy(strategy: &Value, path: &Path, errors: &mut Errors) {
    let rolling = &strategy["rollingUpdate"];
    let at = path.child("rollingUpdate");
    match text(&strategy["type"]) {
        "" => errors.push(FieldError::required(path, "")),
        "OnDelete" if is_set(rolling) => {
            let detail = "only allowed for updateStrategy 'RollingUpdate'";
            errors.push(FieldError::invalid(&at, rolling.clone(), detail));
        }
        "OnDelete" => {}
        "RollingUpdate" => {
            check::non_negative(&rolling["partition"], &at.child("partition"), errors);
            let unavailable = &rolling["maxUnavailable"];
            let at = at.child("maxUnavailable");
            if is_set(unavailable) {
                check::number_or_percent(unavailable, &at, errors);
                if check::number_of(unavailable) == 0 {
                    errors.push(FieldError::invalid(&at, unavailable.clone(), "cannot be 0"));
                }
                check::percent_at_most_100(unavailable, &at, errors);
            }
        }
        _ => {
            let shown = go::show("StatefulSetUpdateStrategy", strategy);
            errors.push(FieldError::invalid(path, shown, "must be 'RollingUpdate' or 'OnDelete'"));
        }
    }
}
