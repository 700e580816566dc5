//! The IPAddresses behind Services: each address that a Service has is an object that names the Service.
//!
//! 1. The object is created after the Service has been stored, and deleted after the Service has given the address up;
//!    meanwhile the allocator holds the address.
//! 2. A server that starts creates the objects that are missing: the process may have ended between the two writes.
//!
//! Follows `pkg/registry/core/service/ipallocator/ipallocator.go`, which creates the object first.

use std::net::IpAddr;
use std::sync::Arc;

use serde_json::{Value, json};
use steersman_base::ObjectKey;
use steersman_base::names::labels::{IPADDRESS_FAMILY, IPADDRESS_MANAGED_BY};

use super::allocator::{Kept, ips_of};
use crate::decode::ContentType;
use crate::registry::delete::DeleteOptions;
use crate::registry::object_meta::meta_text;
use crate::registry::{Call, Registry, Row};

/// The manager of these objects, in their label.
const ALLOCATOR: &str = "ipallocator.k8s.io";

impl Kept {
    /// Creates the objects of the addresses that a Service has got, and deletes those of the ones that it has given up.
    pub(crate) fn publish(self, registry: &Registry, service: &Value) {
        self.taken.into_iter().for_each(|ip| create(registry, service, ip));
        self.freed.into_iter().for_each(|ip| delete(registry, ip));
    }
}

/// Deletes the objects of a Service that is gone.
pub(super) fn withdraw(registry: &Registry, service: &Value) {
    ips_of(service).into_iter().for_each(|ip| delete(registry, ip));
}

/// Creates the objects of a stored Service that are missing.
pub(crate) fn repair(registry: &Registry, service: &Value) {
    let Some(row) = row(registry) else { return };
    let is_missing = |ip: &IpAddr| registry.store.get(&row.collection, &ObjectKey::cluster(&ip.to_string())).is_none();
    ips_of(service).into_iter().filter(is_missing).for_each(|ip| create(registry, service, ip));
}

fn row(registry: &Registry) -> Option<Arc<Row>> {
    registry.row("networking.k8s.io", "v1", "ipaddresses")
}

fn create(registry: &Registry, service: &Value, ip: IpAddr) {
    let Some(row) = row(registry) else { return };
    let object = json!({
        "metadata": {
            "name": ip.to_string(),
            "labels": {
                IPADDRESS_FAMILY: if ip.is_ipv4() { "IPv4" } else { "IPv6" }, IPADDRESS_MANAGED_BY: ALLOCATOR,
            },
        },
        "spec": {"parentRef": {
            "resource": "services", "namespace": meta_text(service, "namespace"), "name": meta_text(service, "name"),
        }},
    });
    let call = Call::by_server(row, "", "", "");
    if let Err(refused) = registry.create(&call, object.to_string().as_bytes(), ContentType::Json) {
        tracing::warn!(%ip, reason = refused.message, "the address of a Service could not be published");
    }
}

fn delete(registry: &Registry, ip: IpAddr) {
    let Some(row) = row(registry) else { return };
    let key = ObjectKey::cluster(&ip.to_string());
    // Whoever deleted it before has done the same.
    let _ = registry.delete_object(&row, &key, &DeleteOptions::default(), false, None);
}
