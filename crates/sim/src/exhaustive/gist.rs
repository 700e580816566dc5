//! What an object says, without what differs from run to run: uids, versions, times, generated names.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::server::Objects;

/// Objects by resource and name, or by the prefix of a generated name.
pub(super) type Gists = BTreeMap<String, Vec<String>>;

/// Metadata that says nothing about what controllers have done.
const IGNORED: [&str; 6] =
    ["uid", "resourceVersion", "generation", "managedFields", "creationTimestamp", "deletionTimestamp"];
/// Versions that objects name in other places.
const VERSIONS: [&str; 2] = ["observedGeneration", "resourceVersion"];
/// A uid has this length.
const UID_LENGTH: usize = 36;

/// Returns the gists of the objects of these resources.
pub(super) fn of(objects: &Objects, resources: &[&str]) -> Gists {
    let mut gists = Gists::new();
    for ((resource, key), (_, object)) in objects.iter().filter(|((resource, _), _)| resources.contains(&&**resource)) {
        let generated = object["metadata"]["generateName"].as_str();
        let name = generated.map_or_else(|| plain(&key.to_string()), |prefix| format!("{}/{prefix}*", key.namespace));
        gists.entry(format!("{resource} {name}")).or_default().push(of_object(resource, object).to_string());
    }
    gists.values_mut().for_each(|alike| alike.sort());
    gists
}

/// Returns the first difference between two ends.
pub(super) fn difference(wanted: &Gists, found: &Gists) -> Option<String> {
    let none = Vec::new();
    let names = wanted.keys().chain(found.keys());
    let mut all = names.map(|name| (name, wanted.get(name).unwrap_or(&none), found.get(name).unwrap_or(&none)));
    let (name, wanted, found) = all.find(|(_, wanted, found)| wanted != found)?;
    Some(format!("{name} ends as {found:?}, and as {wanted:?} without a fault"))
}

fn of_object(resource: &str, object: &Value) -> Value {
    let mut gist = object.clone();
    if let Some(metadata) = gist["metadata"].as_object_mut() {
        metadata.retain(|name, _| !IGNORED.contains(&name.as_str()));
        if metadata.contains_key("generateName") {
            metadata.remove("name");
        }
    }
    if let Some(fields) = gist.as_object_mut() {
        match resource {
            // Ranges, addresses and heartbeats are those of the moment.
            "nodes" => fields.retain(|name, _| name == "metadata"),
            "secrets" => drop(fields.remove("data")),
            "certificatesigningrequests.certificates.k8s.io" => drop(fields.remove("spec")),
            _ => {}
        }
    }
    // Whoever allocates a claim sets its finalizer before: one that is left by a crash is not taken off, as upstream.
    if resource == "resourceclaims.resource.k8s.io" && gist["status"]["allocation"].is_null() {
        gist["metadata"].as_object_mut().map(|metadata| metadata.remove("finalizers"));
    }
    simplify(&mut gist);
    gist
}

fn simplify(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            let taken = std::mem::take(fields);
            let simplified =
                taken.into_iter().filter(|(name, _)| !VERSIONS.contains(&name.as_str())).map(|(name, mut value)| {
                    simplify(&mut value);
                    (name, value)
                });
            *fields = simplified.collect::<Map<_, _>>();
        }
        Value::Array(items) => items.iter_mut().for_each(simplify),
        Value::String(text) => *text = plain(text),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns a text with its uids and times replaced.
fn plain(text: &str) -> String {
    if text.parse::<steersman_base::MicroTime>().is_ok() || text.parse::<steersman_base::Time>().is_ok() {
        return "TIME".to_owned();
    }
    let bytes = text.as_bytes();
    let mut simplified = String::new();
    let mut at = 0;
    while at < text.len() {
        if bytes.get(at..at + UID_LENGTH).is_some_and(is_uid) {
            simplified.push_str("UID");
            at += UID_LENGTH;
        } else {
            let next = text[at..].chars().next().map_or(1, char::len_utf8);
            simplified.push_str(&text[at..at + next]);
            at += next;
        }
    }
    simplified
}

fn is_uid(bytes: &[u8]) -> bool {
    let is_dash = |place: usize| matches!(place, 8 | 13 | 18 | 23);
    bytes.iter().enumerate().all(|(place, byte)| if is_dash(place) { *byte == b'-' } else { byte.is_ascii_hexdigit() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_differs_from_run_to_run_is_left_out_and_the_rest_counts() {
        let object = |uid: &str, at: &str, phase: &str| {
            of_object(
                "persistentvolumeclaims",
                &json!({
                    "metadata": {"name": "data", "uid": uid, "creationTimestamp": at},
                    "spec": {"volumeName": format!("pvc-{uid}")},
                    "status": {"phase": phase, "conditions": [{"lastTransitionTime": at}]},
                }),
            )
        };
        let one = object("0b9d3f44-1111-4222-8333-123456789abc", "2026-11-15T12:00:00Z", "Bound");
        let other = object("ffffffff-1111-4222-8333-123456789abc", "2026-11-15T13:07:00Z", "Bound");
        assert_eq!(one, other);
        assert_eq!(one["spec"]["volumeName"], "pvc-UID");
        let volume = |version: &str| {
            of_object("persistentvolumes", &json!({"spec": {"claimRef": {"name": "data", "resourceVersion": version}}}))
        };
        assert_eq!(volume("7"), volume("8"));
        assert_eq!(volume("7")["spec"]["claimRef"]["name"], "data");
        assert_ne!(one, object("ffffffff-1111-4222-8333-123456789abc", "2026-11-15T13:07:00Z", "Lost"));
    }
}
