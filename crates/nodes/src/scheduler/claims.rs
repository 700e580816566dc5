//! Pure: what the claims of a pod mean for its scheduling.
//!
//! Follows `pkg/scheduler/framework/plugins/volumebinding` of Kubernetes 1.37.1, for volumes that every node can reach.

use std::sync::Arc;

use steersman_base::names::annotations;
use steersman_base::{Istr, ObjectKey};
use steersman_model::View;
use steersman_model::core::PersistentVolumeClaimView;
use steersman_model::storage::StorageClassView;

use crate::view::SimPodView;

/// The meaning of the claims of a pod for its scheduling.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Verdict {
    /// All are bound.
    Bound,
    /// These wait until a node is chosen for the pod, and the pod until they are bound.
    Select(Vec<Arc<PersistentVolumeClaimView>>),
    /// The pod cannot be scheduled, for this reason.
    Refused(String),
}

/// Index function: the claims of a pod.
pub(super) fn keys(pod: &SimPodView) -> Vec<ObjectKey> {
    let meta = &pod.metadata;
    let name = |claim: &crate::view::PodClaim| match claim.is_ephemeral {
        true => Istr::new(&format!("{}-{}", meta.name, claim.name)),
        false => claim.name.clone(),
    };
    pod.spec.claims.iter().map(|claim| ObjectKey { namespace: meta.namespace.clone(), name: name(claim) }).collect()
}

/// Returns the meaning of the claims of a pod for its scheduling.
pub(super) fn verdict(
    pod: &SimPodView,
    claim: impl Fn(&ObjectKey) -> Option<Arc<PersistentVolumeClaimView>>,
    class: impl Fn(&ObjectKey) -> Option<Arc<StorageClassView>>,
) -> Verdict {
    let mut to_select = Vec::new();
    let mut is_unbound = false;
    for key in keys(pod) {
        let name = key.name.as_str();
        let Some(claim) = claim(&key) else {
            return Verdict::Refused(format!("persistentvolumeclaim {name:?} not found"));
        };
        if claim.status.phase == "Lost" {
            let volume = claim.spec.volume_name.as_str();
            return Verdict::Refused(format!(
                "persistentvolumeclaim {name:?} bound to non-existent persistentvolume {volume:?}"
            ));
        }
        if claim.meta().is_terminating() {
            return Verdict::Refused(format!("persistentvolumeclaim {name:?} is being deleted"));
        }
        if !claim.spec.volume_name.is_empty() && claim.meta().annotations.contains_key(annotations::PV_BIND_COMPLETED) {
            continue;
        }
        let class_name = claim.spec.storage_class_name.clone().unwrap_or_default();
        let class = class(&ObjectKey { namespace: Istr::default(), name: class_name });
        match class.is_some_and(|class| class.volume_binding_mode == "WaitForFirstConsumer") {
            true => to_select.push(claim),
            false => is_unbound = true,
        }
    }
    if is_unbound {
        return Verdict::Refused("pod has unbound immediate PersistentVolumeClaims".to_owned());
    }
    if to_select.is_empty() { Verdict::Bound } else { Verdict::Select(to_select) }
}

/// Whether a claim names a node already.
pub(super) fn has_node(claim: &PersistentVolumeClaimView) -> bool {
    claim.meta().annotations.contains_key(annotations::SELECTED_NODE)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use steersman_model::Encoded;

    use super::*;

    fn view<V: View>(object: &Value) -> V {
        V::decode(Encoded::Json(object.to_string().as_bytes())).expect("it is one")
    }

    #[test]
    fn a_pod_waits_for_its_claims() {
        let pod: SimPodView = view(&json!({
            "metadata": { "name": "web", "namespace": "shop" },
            "spec": { "volumes": [
                { "name": "none", "emptyDir": {} },
                { "name": "v", "persistentVolumeClaim": { "claimName": "data" } },
                { "name": "scratch", "ephemeral": { "volumeClaimTemplate": { "spec": {} } } },
            ] },
        }));
        let names: Vec<_> = keys(&pod).iter().map(ToString::to_string).collect();
        assert_eq!(names, ["shop/data", "shop/web-scratch"]);
        let check = |data: Option<Value>, want: &str| {
            let bound = json!({
                "metadata": { "name": "web-scratch", "annotations": { "pv.kubernetes.io/bind-completed": "yes" } },
                "spec": { "volumeName": "b" },
            });
            let claim = |key: &ObjectKey| match key.name.as_str() {
                "data" => data.as_ref().map(|data| Arc::new(view(data))),
                _ => Some(Arc::new(view(&bound))),
            };
            let class = |key: &ObjectKey| {
                let late = json!({ "metadata": { "name": "late" }, "volumeBindingMode": "WaitForFirstConsumer" });
                (key.name == "late").then(|| Arc::new(view(&late)))
            };
            let got = match verdict(&pod, claim, class) {
                Verdict::Bound => "bound".to_owned(),
                Verdict::Select(claims) => format!("select {}", claims.len()),
                Verdict::Refused(why) => why,
            };
            assert_eq!(got, want, "{data:?}");
        };
        check(None, "persistentvolumeclaim \"data\" not found");
        check(Some(json!({ "spec": { "storageClassName": "late" } })), "select 1");
        check(
            Some(json!({ "spec": { "storageClassName": "now" } })),
            "pod has unbound immediate PersistentVolumeClaims",
        );
        check(Some(json!({ "spec": {} })), "pod has unbound immediate PersistentVolumeClaims");
        let terminating = json!({ "metadata": { "deletionTimestamp": "2026-11-15T12:00:00Z" } });
        check(Some(terminating), "persistentvolumeclaim \"data\" is being deleted");
        let lost = json!({ "spec": { "volumeName": "a" }, "status": { "phase": "Lost" } });
        check(Some(lost), "persistentvolumeclaim \"data\" bound to non-existent persistentvolume \"a\"");
        let bound = json!({
            "metadata": { "annotations": { "pv.kubernetes.io/bind-completed": "yes" } }, "spec": { "volumeName": "a" },
        });
        check(Some(bound), "bound");
    }
}
