//! Quotas, claims of devices, and times to live of Jobs.

use serde_json::{Value, json};

use crate::plan::{Edit, OWNERS, OwnerKind};

/// The template of the claims of [`OwnerKind::DeviceSet`].
const TEMPLATE: &str = "devices";
/// The claim that pods share.
const SHARED: &str = "shared-device";
/// The class of the devices of simulated nodes.
const CLASS: &str = steersman_nodes::devices::CLASS;
/// More than there ever are of what quotas count but do not limit.
const ENOUGH: u32 = 10_000;

/// What a new object has beside its name.
pub(super) fn body_of(owner: usize, template: &Value) -> Value {
    let name = OWNERS[owner].name;
    match OWNERS[owner].kind {
        OwnerKind::Quota => json!({"spec": {"hard": {
            "pods": ENOUGH.to_string(), "configmaps": ENOUGH.to_string(), "persistentvolumeclaims": ENOUGH.to_string(),
        }}}),
        OwnerKind::DeviceSet => {
            let mut template = template.clone();
            template["spec"]["resourceClaims"] = json!([{"name": "device", "resourceClaimTemplateName": TEMPLATE}]);
            json!({"spec": {"selector": {"matchLabels": {"app": name}}, "template": template}})
        }
        OwnerKind::DeviceClaim => json!({"spec": devices()}),
        _ => json!({"spec": {
            "restartPolicy": "Never", "containers": [{"name": "main", "image": "image:0"}],
            "resourceClaims": [{"name": "device", "resourceClaimName": SHARED}],
        }}),
    }
}

/// The part of a patch for a change that only these kinds know.
pub(super) fn part_of(kind: OwnerKind, change: &Edit) -> Option<Value> {
    Some(match (kind, change) {
        (OwnerKind::Job, Edit::TimeToLive(seconds)) => json!({"spec": {"ttlSecondsAfterFinished": seconds}}),
        (OwnerKind::Quota, Edit::PodsMax(count)) => json!({"spec": {"hard": {"pods": count.to_string()}}}),
        (OwnerKind::DeviceUser, Edit::Ends { seconds, code }) => json!({"metadata": {"annotations": {
            "nodes.steersman.dev/run-time": format!("{seconds}s"), "nodes.steersman.dev/exit-code": code.to_string(),
        }}}),
        _ => return None,
    })
}

fn devices() -> Value {
    json!({"devices": {"requests": [{"name": "device", "exactly": {"deviceClassName": CLASS}}]}})
}

/// Returns the template of claims of devices.
pub(in crate::users) fn claim_template() -> Value {
    json!({"metadata": {"name": TEMPLATE}, "spec": {"spec": devices()}})
}

/// Returns the change with which a quota refuses nothing any more.
pub(in crate::users) fn no_limit() -> Edit {
    Edit::PodsMax(ENOUGH)
}
