//! PriorityClasses: `pkg/apis/scheduling/v1/defaults.go` and `pkg/apis/scheduling/validation/validation.go`.

use serde_json::Value;

use crate::field::{Errors, FieldError, Path};
use crate::kinds::shared::check::{self, forbid_if, one_of};
use crate::kinds::shared::json::{default_to, flag, is_set, number, text};
use crate::kinds::{NameRule, Rules};
use crate::registry::admission::{Admission, Lookup, Refused};
use crate::registry::strategy::{Generation, Strategy};
use crate::table::Cell;

/// The rules of PriorityClasses.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
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
    })
    .admitted(Admission {
        validate: |registry, call, new, old| match &*call.subresource {
            "" => only_default(registry, new, old),
            _ => Ok(()),
        },
        ..Admission::NONE
    })
    .with_strategy(Strategy { generation: Generation::Once, ..Strategy::DEFAULT })
    .printed(&[
        Cell::Name,
        Cell::Int("/value"),
        Cell::Bool("/globalDefault", false),
        Cell::Age,
        Cell::Text("/preemptionPolicy"),
    ]);

/// The classes that every cluster has, with their values.
pub(crate) const SYSTEM_CLASSES: [(&str, i64); 2] =
    [("system-node-critical", 2_000_001_000), ("system-cluster-critical", 2_000_000_000)];

/// Refuses a second class that is the default of the cluster: the plug-in Priority.
pub(in crate::kinds) fn only_default(lookup: &dyn Lookup, new: &Value, old: Option<&Value>) -> Result<(), Refused> {
    if !flag(&new["globalDefault"]) {
        return Ok(());
    }
    let Some(default) = global_default(lookup) else { return Ok(()) };
    let name = text(&default["metadata"]["name"]);
    if old.is_some() && name == text(&new["metadata"]["name"]) {
        return Ok(());
    }
    Err(Refused::because(format!("PriorityClass {name} is already marked as default. Only one default can exist")))
}

/// Returns the class of pods that name none: of several, the one with the lowest value.
pub(crate) fn global_default(lookup: &dyn Lookup) -> Option<Value> {
    let classes = lookup.list_flagged("scheduling.k8s.io", "priorityclasses", "globalDefault").into_iter();
    classes.filter(|class| flag(&class["globalDefault"])).min_by_key(|class| number(&class["value"]))
}

fn priority_class(class: &Value, errors: &mut Errors) {
    const USER_PRIORITY_MAX: i64 = 1_000_000_000;
    let name = text(&class["metadata"]["name"]);
    let value = number(&class["value"]);
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
