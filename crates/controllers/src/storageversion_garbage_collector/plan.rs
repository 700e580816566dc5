//! Pure: what is left of a storage version when API servers are gone.
//!
//! The condition follows `apiserver/pkg/storageversion/updater.go` of Kubernetes 1.37.1.

use serde_json::{Value, json};
use steersman_base::{Meta, ObjectKey, Time};

/// The namespace of the identity Leases.
pub(super) const LEASES_IN: &str = "kube-system";
/// The label of the identity Leases.
pub(super) const IDENTITY_LABEL: &str = "apiserver.kubernetes.io/identity";
/// Its value for API servers of this kind.
pub(super) const KUBE_APISERVER: &str = "kube-apiserver";

const ALL_EQUAL: &str = "AllEncodingVersionsEqual";

/// The action on a storage version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// All its API servers are there.
    Keep,
    /// This is left of it.
    Write(Value),
    /// None of its API servers is left.
    Delete,
}

/// Returns the key of the identity Lease of an API server.
pub(super) fn lease(server: &str) -> ObjectKey {
    ObjectKey::new(LEASES_IN, server)
}

/// Whether this is the identity Lease of an API server.
pub(super) fn is_identity(lease: &Meta) -> bool {
    lease.labels.get(IDENTITY_LABEL).is_some_and(|component| *component == KUBE_APISERVER)
}

/// Returns the API servers that a storage version names, each once.
pub(super) fn servers(version: &Value) -> Vec<String> {
    let mut servers: Vec<_> = reported(version).iter().map(|entry| server_of(entry).to_owned()).collect();
    servers.sort();
    servers.dedup();
    servers
}

/// Returns what is to be done with a storage version without the API servers that are gone.
pub(super) fn plan(version: &Value, is_gone: impl Fn(&str) -> bool, now: Time) -> Plan {
    let all = reported(version);
    let left: Vec<Value> = all.iter().filter(|entry| !is_gone(server_of(entry))).cloned().collect();
    if left.len() == all.len() {
        return Plan::Keep;
    }
    if left.is_empty() {
        return Plan::Delete;
    }
    let mut version = version.clone();
    version["status"]["storageVersions"] = Value::Array(left);
    set_common_version(&mut version, now);
    Plan::Write(version)
}

/// Sets the version that all API servers encode with, and the condition that says whether there is one. The time of the
/// condition changes with its status, and with the version.
fn set_common_version(version: &mut Value, now: Time) {
    let encodings: Vec<String> = reported(version).iter().map(|entry| text(&entry["encodingVersion"]).into()).collect();
    let common = encodings.first().filter(|first| encodings.iter().all(|encoding| encoding == *first)).cloned();
    let before = version["status"]["commonEncodingVersion"].as_str().map(str::to_owned);
    let is_other = before.is_some() && common.is_some() && before != common;
    let reported = match common.is_some() {
        true => ("True", "CommonEncodingVersionSet", "Common encoding version set"),
        false => ("False", "CommonEncodingVersionUnset", "Common encoding version unset"),
    };
    let mut condition = json!({
        "type": ALL_EQUAL, "status": reported.0, "reason": reported.1, "message": reported.2, "lastTransitionTime": now,
    });
    if let Some(generation) = version["metadata"]["generation"].as_i64().filter(|generation| *generation != 0) {
        condition["observedGeneration"] = generation.into();
    }
    let Some(status) = version["status"].as_object_mut() else { return };
    match common {
        Some(common) => status.insert("commonEncodingVersion".into(), common.into()),
        None => status.remove("commonEncodingVersion"),
    };
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Some(conditions) = conditions.as_array_mut() else { return };
    match conditions.iter_mut().find(|held| text(&held["type"]) == ALL_EQUAL) {
        Some(held) => {
            if held["status"] == condition["status"] && !is_other {
                condition["lastTransitionTime"] = held["lastTransitionTime"].clone();
            }
            *held = condition;
        }
        None => conditions.push(condition),
    }
}

fn reported(version: &Value) -> &[Value] {
    version["status"]["storageVersions"].as_array().map_or(&[], Vec::as_slice)
}

fn server_of(entry: &Value) -> &str {
    text(&entry["apiServerID"])
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
