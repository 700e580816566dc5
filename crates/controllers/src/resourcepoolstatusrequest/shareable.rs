//! Pure: the capacity of devices that several claims may share.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use steersman_base::quantity::Format;
use steersman_base::{Istr, Quantity};

use super::partitions::ENTRIES_MAX;
use super::pools::Pool;

/// Returns the capacity of the shareable devices of a pool; `None` if it has none.
///
/// # Errors
/// There is more than the API takes: the text is upstream's.
pub(super) fn summary(pool: &Pool<'_>) -> Result<Option<Value>, String> {
    let shareable: Vec<_> = pool.devices().filter(|device| device.allow_multiple_allocations == Some(true)).collect();
    if shareable.is_empty() {
        return Ok(None);
    }
    let used = shareable.iter().filter(|device| pool.usage.devices.contains(&device.name)).count();
    let mut total: BTreeMap<&Istr, Quantity> = BTreeMap::new();
    for (name, capacity) in shareable.iter().flat_map(|device| device.capacity.iter()) {
        match total.get_mut(name) {
            Some(sum) => *sum += capacity.value,
            None => drop(total.insert(name, capacity.value)),
        }
    }
    if total.len() > ENTRIES_MAX {
        return Err(format!(
            "ShareableSummaryOverCap: pool {}/{} has {} shareable capacity keys, exceeding the maximum of {ENTRIES_MAX}",
            pool.driver,
            pool.name,
            total.len()
        ));
    }
    let capacity = total.iter().map(|(name, total)| {
        let consumed = pool.usage.capacity.get(*name).copied().unwrap_or_default();
        // More than there is can be in use when a driver has published less than before.
        let available = (*total - consumed).max(Quantity::new(0, Format::DecimalSi));
        json!({ "name": name, "total": total, "consumed": consumed, "available": available })
    });
    let capacity: Vec<_> = capacity.collect();
    let mut summary = json!({
        "fullyAvailableDevices": shareable.len() - used, "partiallyAvailableDevices": used,
    });
    if !capacity.is_empty() {
        summary["capacity"] = json!(capacity);
    }
    Ok(Some(summary))
}
