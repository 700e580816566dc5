//! The deletion of a Namespace: it is marked, and deleted once its `spec.finalizers` are gone. Follows
//! `pkg/registry/core/namespace/storage/storage.go`, and the plug-in NamespaceLifecycle.

use serde_json::Value;
use steersman_base::Time;

use crate::kinds::shared::json::{items, set, with};
use crate::registry::Call;
use crate::registry::admission::Refused;
use crate::registry::delete::{DeleteOptions, Deletion, set_policy_finalizers};
use crate::registry::object_meta::metadata;

/// The namespaces that cannot be deleted.
const IMMORTAL: [&str; 3] = ["default", "kube-public", "kube-system"];

/// Refuses to delete the namespaces that every cluster needs.
pub(crate) fn may_delete(call: &Call) -> Result<(), Refused> {
    if IMMORTAL.contains(&call.name.as_str()) {
        return Err(Refused::because("this namespace may not be deleted".to_owned()));
    }
    Ok(())
}

/// Marks a namespace as terminating.
pub(crate) fn begin(namespace: &mut Value, options: &DeleteOptions, now: Time) -> Deletion {
    let is_first = namespace["metadata"]["deletionTimestamp"].is_null();
    if !is_first {
        let is_held = !items(&namespace["spec"]["finalizers"]).is_empty();
        return if is_held { Deletion::Pending } else { Deletion::Immediate };
    }
    let policy = options.policy_of_namespace(namespace);
    set_policy_finalizers(namespace, policy);
    metadata(namespace).insert("deletionTimestamp".into(), now.to_string().into());
    with(namespace, "status", |status| set(status, "phase", "Terminating"));
    Deletion::Marked
}
