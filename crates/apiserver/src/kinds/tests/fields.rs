//! Rules of fields that no recorded answer has: the words are those of upstream's validation.

use serde_json::{Value, json};

use super::judged;

/// Checks that an object is refused for these reasons, in this order.
#[track_caller]
fn refused(object: &Value, want: &[&str]) {
    let errors: Vec<String> = judged(object.clone()).0.iter().map(ToString::to_string).collect();
    assert_eq!(errors, want, "{object}");
}

fn pod(spec: Value) -> Value {
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec});
    if pod["spec"]["containers"].is_null() {
        pod["spec"]["containers"] = json!([{"name": "c", "image": "i"}]);
    }
    pod
}

#[test]
fn the_end_of_a_container_may_restart_it_or_all_of_its_pod() {
    let rules =
        |action: &str, operator: &str| json!([{"action": action, "exitCodes": {"operator": operator, "values": [42]}}]);
    let with = |list: &str, policy: Value, rules: Value| {
        let container = json!({"name": "d", "image": "i", "restartPolicy": policy, "restartPolicyRules": rules});
        let mut pod = pod(json!({}));
        pod["spec"][list] = json!([container]);
        pod
    };
    for list in ["containers", "initContainers"] {
        for policy in ["Always", "Never", "OnFailure"] {
            refused(&with(list, policy.into(), rules("Restart", "In")), &[]);
            refused(&with(list, policy.into(), rules("RestartAllContainers", "NotIn")), &[]);
            let action = format!(
                "spec.{list}[0].restartPolicyRules[0].action: Unsupported value: \"Stop\": supported values: \"Restart\", \
                 \"RestartAllContainers\""
            );
            let operator = format!(
                "spec.{list}[0].restartPolicyRules[0].exitCodes.operator: Unsupported value: \"Is\": supported values: \
                 \"In\", \"NotIn\""
            );
            refused(&with(list, policy.into(), rules("Stop", "Is")), &[&action, &operator]);
        }
        let missing = format!(
            "spec.{list}[0].restartPolicy: Required value: must specify restartPolicy when restart rules are used"
        );
        refused(&with(list, Value::Null, rules("RestartAllContainers", "In")), &[&missing]);
    }
}
