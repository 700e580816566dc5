//! What every cluster has before anybody asks: namespaces, roles, priority classes, and the server's own Service.
//!
//! 1. It costs next to nothing: the roles are stored as they were recorded, not made one by one.
//! 2. What is there already, in a storage that outlives the process, stays as it is.
//! 3. What depends on the address of the server comes when it [listens](publish).

#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use steersman_base::ObjectKey;

use crate::aggregated;
use crate::decode::ContentType;
use crate::kinds::core::service::allocator::DEFAULT_RANGE;
use crate::kinds::networking::service_cidr;
use crate::registry::checked::Checked;
use crate::registry::object_meta::{meta_text, metadata, new_uid};
use crate::registry::write::{Computed, Part, new_state};
use crate::registry::{Call, Registry, Row, built_in};
use crate::schema;
use crate::store::{Change, Expect};

/// The namespaces that every cluster has.
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];
/// Roles, bindings and priority classes as kube-apiserver makes them, complete but for uid, version and time.
const OBJECTS: &str = include_str!("../data/bootstrap.jsonl");
/// The objects that controllers within kube-apiserver create: APIServices, flow control, and the statuses of components
/// that do not run; complete but for uid, version and times.
const OF_CONTROLLERS: &str = include_str!("../data/new-cluster.jsonl");
/// The port that the Service leads to until the server listens somewhere.
const PORT_UNKNOWN: u16 = 6443;
/// The name of the server's own Service, and of its endpoints.
const SERVICE: &str = "kubernetes";
/// The ConfigMap from which components that delegate authentication read the trusted certificate authorities.
const AUTHENTICATION: (&str, &str) = ("kube-system", "extension-apiserver-authentication");

const TOKEN_TRACKING: &str = "kube-apiserver-legacy-service-account-token-tracking";

/// Makes what every cluster has.
pub(crate) fn seed(registry: &Registry) {
    for name in NAMESPACES {
        create(registry, "namespaces", "", &json!({"metadata": {"name": name}}));
    }
    for line in OBJECTS.lines().chain(OF_CONTROLLERS.lines()) {
        if let Ok(object) = serde_json::from_str::<Value>(line) {
            let kind = object["kind"].as_str().unwrap_or_default();
            let row = built_in().iter().find(|row| *row.resource.kind == *kind && *row.resource.version == *"v1");
            if let Some(row) = row {
                store(registry, row, object);
            }
        }
    }
    if let Some(row) = registry.row("apiregistration.k8s.io", "v1", "apiservices") {
        let services = registry.aggregated.iter().flat_map(|source| aggregated::api_services(&**source));
        services.for_each(|service| store(registry, &row, service));
    }
    let service = json!({
        "metadata": {"name": SERVICE, "labels": {"component": "apiserver", "provider": "kubernetes"}},
        "spec": {
            "clusterIP": registry.services.first_address(),
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": PORT_UNKNOWN}],
        },
    });
    create(registry, "services", "default", &service);
    default_range(registry);
    let (namespace, name) = AUTHENTICATION;
    create(registry, "configmaps", namespace, &json!({"metadata": {"name": name}}));
    // The cleaner of old service account tokens wants to know since when their use is noted.
    let today = registry.clock.now().to_string();
    let since = today.split('T').next().unwrap_or_default();
    let tracking = json!({"metadata": {"name": TOKEN_TRACKING}, "data": {"since": since}});
    create(registry, "configmaps", namespace, &tracking);
}

/// Makes the range that addresses of Services come from, unless there is one. Upstream does so every ten seconds.
pub(crate) fn default_range(registry: &Registry) {
    let managed = |manager: &str, operation: &str, part: &str, fields: Value| {
        let mut entry = json!({
            "apiVersion": "networking.k8s.io/v1", "fieldsType": "FieldsV1", "fieldsV1": fields,
            "manager": manager, "operation": operation,
        });
        if !part.is_empty() {
            entry["subresource"] = part.into();
        }
        entry
    };
    let ready = json!({".": {}, "f:lastTransitionTime": {}, "f:message": {}, "f:status": {}, "f:type": {}});
    let status = json!({"f:status": {"f:conditions": {"k:{\"type\":\"Ready\"}": ready}}});
    let range = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR",
        "metadata": {"name": DEFAULT_RANGE, "managedFields": [
            managed("kubernetes-service-cidr-controller", "Apply", "status", status),
            managed("kube-apiserver", "Update", "", json!({"f:spec": {"f:cidrs": {}}})),
        ]},
        "spec": {"cidrs": registry.services.ranges()},
        "status": {"conditions": [{
            "type": "Ready", "status": "True", "reason": "", "message": "Kubernetes default Service CIDR is ready",
        }]},
    });
    let Some(row) = registry.row("networking.k8s.io", "v1", "servicecidrs") else { return };
    let key = ObjectKey::cluster(DEFAULT_RANGE);
    if registry.store.get(&row.collection, &key).is_none() {
        store(registry, &row, range.clone());
        service_cidr::update_allocator(registry, &range);
    }
}

/// Says where the server listens, and who signs the certificates of its clients.
pub(crate) fn publish(registry: &Registry, address: SocketAddr, authority_pem: &str) {
    let port = address.port();
    let (namespace, name) = AUTHENTICATION;
    change(registry, "configmaps", namespace, name, &mut |map| {
        let data = json!({
            "client-ca-file": authority_pem,
            "requestheader-allowed-names": "[\"front-proxy-client\"]",
            "requestheader-client-ca-file": authority_pem,
            "requestheader-extra-headers-prefix": "[\"X-Remote-Extra-\"]",
            "requestheader-group-headers": "[\"X-Remote-Group\"]",
            "requestheader-uid-headers": "[\"X-Remote-Uid\"]",
            "requestheader-username-headers": "[\"X-Remote-User\"]",
        });
        map.insert("data".to_owned(), data);
    });
    change(registry, "services", "default", SERVICE, &mut |service| {
        let ports = service.get_mut("spec").and_then(|spec| spec["ports"].as_array_mut());
        ports.into_iter().flatten().for_each(|held| held["targetPort"] = port.into());
    });
    let ports = json!([{"name": "https", "port": port, "protocol": "TCP"}]);
    let ip = address.ip().to_string();
    let endpoints = json!({
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {
            "name": SERVICE, "namespace": "default", "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"},
        },
        "subsets": [{"addresses": [{"ip": ip}], "ports": ports}],
    });
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": SERVICE, "namespace": "default", "labels": {"kubernetes.io/service-name": SERVICE}, "generation": 1,
        },
        "addressType": if address.is_ipv4() { "IPv4" } else { "IPv6" },
        "endpoints": [{"addresses": [ip], "conditions": {"ready": true}}],
        "ports": ports,
    });
    for (group, plural, object) in [("", "endpoints", endpoints), ("discovery.k8s.io", "endpointslices", slice)] {
        if let Some(row) = registry.row(group, "v1", plural) {
            // A loopback address is none that validation lets through, but it is where this server is.
            replace(registry, &row, object);
        }
    }
}

fn call(row: Arc<Row>, namespace: &str, name: &str) -> Call {
    Call::by_server(row, namespace, name, "")
}

/// Makes an object of the core group as a client would.
fn create(registry: &Registry, plural: &str, namespace: &str, object: &Value) {
    let Some(row) = registry.row("", "v1", plural) else { return };
    // A storage that outlives the process has it already.
    let _ = registry.create(&call(row, namespace, ""), object.to_string().as_bytes(), ContentType::Json);
}

/// Changes an object of the core group as a client would.
fn change(
    registry: &Registry,
    plural: &str,
    namespace: &str,
    name: &str,
    change: &mut dyn FnMut(&mut Map<String, Value>),
) {
    let Some(row) = registry.row("", "v1", plural) else { return };
    let call = call(row, namespace, name);
    let changed = registry.update(&call, Part::Whole, &mut |old| {
        let mut object = old.cloned().unwrap_or_default();
        if let Some(map) = object.as_object_mut() {
            change(map);
        }
        Ok(Computed::from(Checked::composed(&call.row, object)?))
    });
    if let Err(refused) = changed {
        tracing::warn!(namespace, name, plural, reason = refused.message, "the server could not describe itself");
    }
}

/// Stores a complete object, unless there is one of this name.
fn store(registry: &Registry, row: &Row, mut object: Value) {
    // What nobody manages, such as the status of a component, was not created either.
    if object["metadata"].get("managedFields").is_some() {
        begin(registry, &mut object);
    }
    let key = ObjectKey::new(meta_text(&object, "namespace"), meta_text(&object, "name"));
    let _ = registry.store.commit(&row.collection, &key, Expect::Absent, Change::Put(new_state(row, &object)));
}

/// Stores an object in place of the one of this name.
fn replace(registry: &Registry, row: &Arc<Row>, mut object: Value) {
    let key = ObjectKey::new(meta_text(&object, "namespace"), meta_text(&object, "name"));
    let held = registry.store.get(&row.collection, &key);
    let expect = held.as_ref().map_or(Expect::Absent, |held| Expect::Revision(held.revision));
    begin(registry, &mut object);
    // It is still the same object.
    let before: Value = held.and_then(|held| held.parse().ok()).unwrap_or_default();
    for field in ["uid", "creationTimestamp"] {
        if let Some(value) = before["metadata"].get(field) {
            metadata(&mut object).insert(field.to_owned(), value.clone());
        }
    }
    let stored = before.is_object().then_some(&before);
    // No kind that every cluster has is converted by a webhook.
    let _ = registry.record_owners(&call(Arc::clone(row), &key.namespace, &key.name), Part::Whole, stored, &mut object);
    schema::complete(&row.resource.group, &row.resource.version, &row.resource.kind, &mut object);
    // Whoever was faster has listened later, or is a client who knows better.
    let _ = registry.store.commit(&row.collection, &key, expect, Change::Put(new_state(row, &object)));
}

fn begin(registry: &Registry, object: &mut Value) {
    let now = registry.clock.now().to_string();
    let meta = metadata(object);
    meta.insert("uid".to_owned(), new_uid().into());
    for entry in meta.get_mut("managedFields").and_then(Value::as_array_mut).into_iter().flatten() {
        entry["time"] = now.clone().into();
    }
    meta.insert("creationTimestamp".to_owned(), now.clone().into());
    if let Some(conditions) = object.pointer_mut("/status/conditions").and_then(Value::as_array_mut) {
        conditions.iter_mut().for_each(|condition| condition["lastTransitionTime"] = now.clone().into());
    }
}
