//! Nodes. Follows `ValidateNode` of `pkg/apis/core/validation/validation.go` and the conversion of pod CIDRs, and the plug-in
//! TaintNodesByCondition.

mod table;

use serde_json::{Value, json};
use steersman_base::validation::{label_value, qualified_name};

use crate::field::{Errors, FieldError, Path};
use crate::kinds::core::pod::resources::amount_of;
use crate::kinds::core::pod::validation::taint_effect;
use crate::kinds::shared::check::{self, problems};
use crate::kinds::shared::go;
use crate::kinds::shared::json::{copy, each, entries, is_empty, items, object_mut, set, text, with};
use crate::kinds::shared::meta::validate_meta_update;
use crate::kinds::{NameRule, Rules};
use crate::registry::admission::Admission;
use crate::registry::strategy::{SelectableField, Strategy};

/// The rules of Nodes.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .defaulted(default)
    .prepared(prepare)
    .validated(|new, old, errors| {
        let path = Path::new("metadata").child("taints");
        if let Some(old) = old {
            resources(new, errors);
            update(new, old, errors);
            addresses(new, errors);
            taints(&new["spec"]["taints"], &path, errors);
        } else {
            taints(&new["spec"]["taints"], &path, errors);
            resources(new, errors);
        }
        pod_cidrs(&new["spec"], &Path::new("spec").child("podCIDRs"), errors);
    })
    .status_validated(|new, old, errors| {
        validate_meta_update(new, old, errors);
        resources(new, errors);
        addresses(new, errors);
    })
    .admitted(Admission {
        mutate: |_, new, old| {
            if old.is_none() {
                not_ready_taint(new);
            }
            Ok(())
        },
        ..Admission::NONE
    })
    .with_strategy(Strategy {
        status_on_create: true,
        selectable_fields: &[SelectableField::at("spec.unschedulable").or("false")],
        ..Strategy::DEFAULT
    })
    .etcd_prefix("minions")
    .printed(table::CELLS);

fn default(node: &mut Value) {
    if let Some(spec) = object_mut(node, "spec") {
        let one = text(&spec["podCIDR"]).to_owned();
        let first = text(&spec["podCIDRs"][0]).to_owned();
        if !one.is_empty() && one != first {
            set(spec, "podCIDRs", json!([one]));
        } else if one.is_empty() && !first.is_empty() {
            set(spec, "podCIDR", first);
        }
    }
    if let Some(status) = object_mut(node, "status")
        && status["allocatable"].is_null()
        && !status["capacity"].is_null()
    {
        set(status, "allocatable", status["capacity"].clone());
    }
}

fn prepare(new: &mut Value, old: Option<&Value>) {
    if let Some(old) = old {
        copy(new, old, "status");
    }
}

fn taints(taints: &Value, path: &Path, errors: &mut Errors) {
    let mut seen = Vec::new();
    each(taints, path, |taint, path| {
        let key = text(&taint["key"]);
        let value = text(&taint["value"]);
        let effect = text(&taint["effect"]);
        problems(key, qualified_name(key), &path.child("key"), errors);
        let wrong = label_value(value);
        if !wrong.is_empty() {
            errors.push(FieldError::invalid(&path.child("value"), value, wrong.join(";")));
        }
        if effect.is_empty() {
            errors.push(FieldError::required(&path.child("effect"), ""));
        } else {
            taint_effect(effect, &path.child("effect"), errors);
        }
        if seen.contains(&(key, effect)) {
            let mut error = FieldError::duplicate(path, go::show("Taint", taint));
            error.detail = "taints must be unique by key and effect pair".to_owned();
            errors.push(error);
        }
        seen.push((key, effect));
    });
}

fn resources(node: &Value, errors: &mut Errors) {
    for list in ["capacity", "allocatable"] {
        for (name, amount) in entries(&node["status"][list]) {
            amount_of(name, amount, &Path::new("status").child(list).child(name), errors);
        }
    }
}

fn pod_cidrs(spec: &Value, path: &Path, errors: &mut Errors) {
    each(&spec["podCIDRs"], path, |cidr, path| check::cidr(text(cidr), path, errors));
    let cidrs = items(&spec["podCIDRs"]);
    let is_v6 = |cidr: &Value| text(cidr).contains(':');
    if cidrs.len() > 2 || (cidrs.len() == 2 && is_v6(&cidrs[0]) == is_v6(&cidrs[1])) {
        let detail = "may specify no more than one CIDR for each IP family";
        errors.push(FieldError::invalid(path, spec["podCIDRs"].clone(), detail));
    }
}

fn update(new: &Value, old: &Value, errors: &mut Errors) {
    let spec = &new["spec"];
    let before = &old["spec"];
    let path = Path::new("spec");
    if !is_empty(&before["podCIDRs"]) && items(&before["podCIDRs"]) != items(&spec["podCIDRs"]) {
        let detail = "node updates may not change podCIDR except from \"\" to valid";
        errors.push(FieldError::forbidden(&path.child("podCIDRs"), detail));
    }
    let id = text(&spec["providerID"]);
    let was = text(&before["providerID"]);
    if !was.is_empty() && id != was {
        let done = if id.is_empty() { "cleared" } else { "modified" };
        let detail = format!("field cannot be {done} once set");
        errors.push(FieldError::invalid(&path.child("providerID"), Value::Null, detail));
    }
}

fn addresses(new: &Value, errors: &mut Errors) {
    let mut seen = Vec::new();
    each(&new["status"]["addresses"], &Path::new("status").child("addresses"), |address, path| {
        if seen.contains(&address) {
            errors.push(FieldError::duplicate(path, go::show("NodeAddress", address)));
        }
        seen.push(address);
    });
}

/// Keeps pods off a new node until its controller finds it ready.
fn not_ready_taint(node: &mut Value) {
    let taint = json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"});
    with(node, "spec", |spec| {
        let mut taints = items(&spec["taints"]).to_vec();
        let is_there = |it: &Value| it["key"] == taint["key"] && it["effect"] == taint["effect"];
        if !taints.iter().any(is_there) {
            taints.push(taint.clone());
            set(spec, "taints", taints);
        }
    });
}
