//! The status of claims: `validateResourceClaimStatusUpdate`.

use serde_json::{Value, json};

use super::claim_spec::{request_name, request_names};
use super::device::{
    CONFIGS_MAX, allocated_pool_name, binding_conditions, bounded, configuration, label, pool_name, raw, tolerations,
    unique, uuid,
};
use crate::field::{Errors, FieldError, Path};
use crate::kinds::core::pod::affinity::node_selector;
use crate::kinds::shared::check::{one_of, required};
use crate::kinds::shared::conditions;
use crate::kinds::shared::json::{each, is_set, items, same, text};
use crate::kinds::shared::meta::validate_meta_update;
use crate::kinds::storage::driver_name;

const CONSUMERS_MAX: usize = 256;
const RESULTS_MAX: usize = 32;
const CONDITIONS_MAX: usize = 8;
const DATA_BYTES_MAX: usize = 10 * 1024;
const IPS_MAX: usize = 16;
const INTERFACE_BYTES_MAX: usize = 256;
const HARDWARE_BYTES_MAX: usize = 128;

/// Drops the status of devices that are not allocated any more.
pub(super) fn prepare(new: &mut Value, _: &Value, _: &str) {
    let allocated: Vec<[String; 4]> =
        items(&new["status"]["allocation"]["devices"]["results"]).iter().map(id).collect();
    let Some(status) = new.get_mut("status").and_then(Value::as_object_mut) else { return };
    if let Some(devices) = status.get_mut("devices").and_then(Value::as_array_mut) {
        let before = devices.len();
        devices.retain(|device| allocated.contains(&id(device)));
        if before > 0 && devices.is_empty() {
            status.remove("devices");
        }
    }
}

fn id(device: &Value) -> [String; 4] {
    ["driver", "pool", "device", "shareID"].map(|field| text(&device[field]).to_owned())
}

/// Checks a changed status.
pub(super) fn validate(new: &Value, old: &Value, errors: &mut Errors) {
    validate_meta_update(new, old, errors);
    let status = &new["status"];
    let path = Path::new("status");
    consumers(status, &old["status"], is_set(&new["metadata"]["deletionTimestamp"]), &path, errors);
    let devices = &new["spec"]["devices"];
    let allocation = &status["allocation"];
    let before = &old["status"]["allocation"];
    let at = path.child("allocation");
    if is_set(before) && is_set(allocation) {
        if !same(before, allocation) {
            errors.push(FieldError::invalid(&at, Value::Null, "field cannot be modified once set"));
        }
    } else if is_set(allocation) {
        allocated(allocation, devices, &at, errors);
    }
}

fn consumers(status: &Value, old: &Value, is_terminating: bool, path: &Path, errors: &mut Errors) {
    let reserved = &status["reservedFor"];
    let at = path.child("reservedFor");
    let is_bounded = items(reserved).len() <= CONSUMERS_MAX;
    bounded(reserved, CONSUMERS_MAX, &at, errors, |consumer, path, errors| {
        for field in ["resource", "name", "uid"] {
            required(&consumer[field], &path.child(field), errors);
        }
    });
    if is_bounded {
        let mut seen: Vec<&str> = Vec::new();
        each(reserved, &at, |consumer, path| {
            let uid = text(&consumer["uid"]);
            if seen.contains(&uid) {
                errors.push(FieldError::duplicate(path, json!({"uid": uid})));
            }
            seen.push(uid);
        });
    }
    device_statuses(status, path, errors);
    if items(reserved).is_empty() {
        return;
    }
    if !is_set(&status["allocation"]) {
        let detail = "may not be specified when `allocated` is not set";
        errors.push(FieldError::forbidden(&at, detail));
    } else if is_terminating && items(reserved).iter().any(|consumer| !items(&old["reservedFor"]).contains(consumer)) {
        let detail = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set";
        errors.push(FieldError::forbidden(&at, detail));
    }
}

fn device_statuses(status: &Value, path: &Path, errors: &mut Errors) {
    let allocated: Vec<_> = items(&status["allocation"]["devices"]["results"]).iter().map(id).collect();
    each(&status["devices"], &path.child("devices"), |device, path| {
        driver_name(text(&device["driver"]), &path.child("driver"), errors);
        pool_name(text(&device["pool"]), &path.child("pool"), errors);
        label(text(&device["device"]), &path.child("device"), errors);
        if is_set(&device["shareID"]) {
            uuid(text(&device["shareID"]), &path.child("shareID"), errors);
        }
        if !allocated.contains(&id(device)) {
            let shown = id(device)[..3].join("/");
            errors.push(FieldError::invalid(path, shown, "must be an allocated device in the claim"));
        }
        let count = items(&device["conditions"]).len();
        if count > CONDITIONS_MAX {
            errors.push(FieldError::too_many(&path.child("conditions"), count, CONDITIONS_MAX));
        }
        conditions::validate(&device["conditions"], &path.child("conditions"), errors);
        if is_set(&device["data"]) {
            raw(&device["data"], DATA_BYTES_MAX, &path.child("data"), errors);
        }
        network(&device["networkData"], &path.child("networkData"), errors);
    });
}

fn network(data: &Value, path: &Path, errors: &mut Errors) {
    for (field, max) in [("interfaceName", INTERFACE_BYTES_MAX), ("hardwareAddress", HARDWARE_BYTES_MAX)] {
        if text(&data[field]).len() > max {
            errors.push(FieldError::too_long(&path.child(field), max));
        }
    }
    let at = path.child("ips");
    bounded(&data["ips"], IPS_MAX, &at, errors, |address, path, errors| {
        let address = text(address);
        match address.parse::<ipnet::IpNet>() {
            Ok(net) if net.to_string() == address => {}
            Ok(net) => {
                let detail = format!("must be in canonical form ({:?})", net.to_string());
                errors.push(FieldError::invalid(path, address, detail));
            }
            Err(_) => {
                let detail = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)";
                errors.push(FieldError::invalid(path, address, detail));
            }
        }
    });
    unique(&data["ips"], &at, errors, text);
}

fn allocated(allocation: &Value, devices: &Value, path: &Path, errors: &mut Errors) {
    let at = path.child("devices");
    let results = &allocation["devices"]["results"];
    bounded(results, RESULTS_MAX, &at.child("results"), errors, |result, path, errors| {
        request_name(text(&result["request"]), devices, &path.child("request"), errors);
        driver_name(text(&result["driver"]), &path.child("driver"), errors);
        allocated_pool_name(text(&result["pool"]), &path.child("pool"), errors);
        label(text(&result["device"]), &path.child("device"), errors);
        binding_conditions(result, path, errors);
        tolerations(&result["tolerations"], &path.child("tolerations"), errors);
        if is_set(&result["shareID"]) {
            uuid(text(&result["shareID"]), &path.child("shareID"), errors);
        }
    });
    let configs = &allocation["devices"]["config"];
    bounded(configs, 2 * CONFIGS_MAX, &at.child("config"), errors, |config, path, errors| {
        one_of(&config["source"], &["FromClaim", "FromClass"], &path.child("source"), errors);
        request_names(&config["requests"], devices, &path.child("requests"), errors);
        configuration(config, path, errors);
    });
    if is_set(&allocation["nodeSelector"]) {
        node_selector(&allocation["nodeSelector"], &path.child("nodeSelector"), errors);
    }
}
