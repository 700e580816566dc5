//! Pure: what the driver writes.

use serde_json::{Value, json};
use steersman_base::Istr;

use super::{CLASS, DRIVER};

/// The only pool.
pub(super) const POOL: &str = "simulated";
/// The finalizer of allocated claims.
pub(super) const FINALIZER: &str = "resource.kubernetes.io/delete-protection";

/// Returns the name of a device.
pub(super) fn device(number: usize) -> Istr {
    Istr::from(format!("device-{number}"))
}

/// Returns the class of the devices.
pub(super) fn class() -> Value {
    json!({
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": { "name": CLASS },
        "spec": { "selectors": [{ "cel": { "expression": format!("device.driver == {DRIVER:?}") } }] },
    })
}

/// Returns the slice with all devices.
pub(super) fn slice(count: usize) -> Value {
    let devices: Vec<_> = (0..count).map(|number| json!({ "name": device(number) })).collect();
    json!({
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": { "name": DRIVER },
        "spec": {
            "driver": DRIVER,
            "pool": { "name": POOL, "generation": 1, "resourceSliceCount": 1 },
            "allNodes": true,
            "devices": devices,
        },
    })
}
