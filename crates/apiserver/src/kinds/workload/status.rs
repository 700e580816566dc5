//! What controllers may report of workloads: the `…Status…` checks of `pkg/apis/apps/validation/validation.go`.

use serde_json::Value;

use crate::field::{FieldError, Path};
use crate::kinds::check::{self, Errors};
use crate::kinds::json::number;

/// What is wrong with a changed status of a workload.
pub(in crate::kinds) fn validate(kind: &str, new: &Value, old: &Value, errors: &mut Errors) {
    let counts: &[&str] = match kind {
        "Deployment" => &[
            "observedGeneration",
            "replicas",
            "updatedReplicas",
            "readyReplicas",
            "availableReplicas",
            "unavailableReplicas",
            "terminatingReplicas",
            "collisionCount",
        ],
        "ReplicaSet" => &[
            "replicas",
            "fullyLabeledReplicas",
            "readyReplicas",
            "availableReplicas",
            "observedGeneration",
            "terminatingReplicas",
        ],
        "ReplicationController" => {
            &["replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration"]
        }
        "StatefulSet" => &[
            "replicas",
            "readyReplicas",
            "currentReplicas",
            "updatedReplicas",
            "availableReplicas",
            "observedGeneration",
            "collisionCount",
        ],
        "DaemonSet" => &[
            "currentNumberScheduled",
            "numberMisscheduled",
            "desiredNumberScheduled",
            "numberReady",
            "observedGeneration",
            "updatedNumberScheduled",
            "numberAvailable",
            "numberUnavailable",
            "collisionCount",
        ],
        _ => return,
    };
    let (status, path) = (&new["status"], Path::new("status"));
    for field in counts {
        check::non_negative(&status[*field], &path.child(field), errors);
    }
    if kind != "DaemonSet" {
        let parts =
            ["fullyLabeledReplicas", "currentReplicas", "updatedReplicas", "readyReplicas", "availableReplicas"];
        for field in counts.iter().filter(|field| parts.contains(field)) {
            check::at_most(status, field, "replicas", "cannot be greater than status.replicas", &path, errors);
        }
        let bound = if kind == "StatefulSet" { "status.readyReplicas" } else { "readyReplicas" };
        let detail = format!("cannot be greater than {bound}");
        check::at_most(status, "availableReplicas", "readyReplicas", &detail, &path, errors);
    }
    let (now, before) = (number(&status["collisionCount"]), number(&old["status"]["collisionCount"]));
    if counts.contains(&"collisionCount") && now < before {
        errors.push(FieldError::invalid(&path.child("collisionCount"), now, "cannot be decremented"));
    }
}
