//! ReplicaSets and ReplicationControllers: `ValidateReplicaSet` of `pkg/apis/apps/validation/validation.go` and
//! `ValidateReplicationController` of `pkg/apis/core/validation/validation.go`.

use serde_json::Value;
use steersman_base::Selector;

use super::{compiled, defaults, lasting_template, selector, template_labels};
use crate::field::{FieldError, Path};
use crate::kinds::check::{self, Errors};
use crate::kinds::json::is_set;
use crate::kinds::{NameRule, Rules};

pub(super) static REPLICA_SET: Rules =
    Rules::named(NameRule::Subdomain).defaulted(defaults::replica_set).validated(|new, old, errors| {
        let path = Path::new("spec");
        replica_set(&new["spec"], &path, errors);
        if let Some(old) = old {
            let at = path.child("selector");
            check::immutable_selector(&new["spec"]["selector"], &old["spec"]["selector"], &at, errors);
        }
    });

/// ReplicationController.
pub(in crate::kinds) static REPLICATION_CONTROLLER: Rules =
    Rules::named(NameRule::Subdomain).defaulted(defaults::replication_controller).validated(|new, _, errors| {
        replication_controller(&new["spec"], &Path::new("spec"), errors);
    });

fn replica_set(spec: &Value, path: &Path, errors: &mut Errors) {
    check::non_negative(&spec["replicas"], &path.child("replicas"), errors);
    check::non_negative(&spec["minReadySeconds"], &path.child("minReadySeconds"), errors);
    // The name of the kind is upstream's slip.
    selector(spec, "deployment", path, errors);
    if let Some(selector) = compiled(spec) {
        template_labels(spec, &selector, path, errors);
        lasting_template(spec, "ReplicaSet", path, errors);
    } else {
        let shown = check::shown_selector(&spec["selector"]);
        errors.push(FieldError::invalid(&path.child("selector"), shown, "invalid label selector"));
    }
}

fn replication_controller(spec: &Value, path: &Path, errors: &mut Errors) {
    let labels = check::string_map(&spec["selector"]);
    if labels.is_empty() {
        errors.push(FieldError::required(&path.child("selector"), ""));
    }
    if is_set(&spec["template"]) {
        template_labels(spec, &Selector::from_labels(&labels), path, errors);
        lasting_template(spec, "ReplicationController", path, errors);
    } else {
        errors.push(FieldError::required(&path.child("template"), ""));
    }
    // Checked declaratively upstream, after what is checked by hand.
    check::non_negative(&spec["replicas"], &path.child("replicas"), errors);
    check::non_negative(&spec["minReadySeconds"], &path.child("minReadySeconds"), errors);
}
