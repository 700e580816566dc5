//! Quotas and claims of devices as invariants read them.

use std::collections::BTreeMap;

use serde_json::Value;
use steersman_base::{Istr, Quantity, Uid};

use super::parse::{list, text};

/// A ResourceQuota.
#[derive(Clone, Debug)]
pub struct Quota {
    /// `spec.hard`.
    pub hard: BTreeMap<Istr, i64>,
    /// `status.hard`.
    pub status_hard: BTreeMap<Istr, i64>,
    /// `status.used`.
    used: BTreeMap<Istr, i64>,
}

/// A ResourceClaim.
#[derive(Clone, Debug)]
pub struct DeviceClaim {
    /// The uids of `status.reservedFor`.
    pub reserved: Vec<Uid>,
    /// Whether it has devices.
    pub is_allocated: bool,
}

// === impl Quota ===

impl Quota {
    pub(super) fn parse(value: &Value) -> Self {
        let status = &value["status"];
        Self {
            hard: quantities(&value["spec"]["hard"]),
            status_hard: quantities(&status["hard"]),
            used: quantities(&status["used"]),
        }
    }

    /// How much of a resource is used; none if the status does not say.
    #[must_use]
    pub fn used(&self, name: &str) -> Option<i64> {
        self.used.get(name).copied()
    }
}

fn quantities(value: &Value) -> BTreeMap<Istr, i64> {
    let quantity = |value: &Value| Some(value.as_str()?.parse::<Quantity>().ok()?.milli_value() / 1000);
    let fields = value.as_object().into_iter().flatten();
    fields.filter_map(|(name, value)| Some((Istr::new(name), quantity(value)?))).collect()
}

// === impl DeviceClaim ===

impl DeviceClaim {
    pub(super) fn parse(value: &Value) -> Self {
        let status = &value["status"];
        Self {
            reserved: list(&status["reservedFor"]).filter_map(|user| user["uid"].as_str()).map(Uid::new).collect(),
            is_allocated: status["allocation"].is_object(),
        }
    }
}

/// How many claims a pod has by templates, and the names of those that were made for it.
pub(super) fn device_claims_of_pod(value: &Value) -> (usize, Vec<Istr>) {
    let by_template =
        list(&value["spec"]["resourceClaims"]).filter(|claim| claim["resourceClaimTemplateName"].is_string());
    let made = list(&value["status"]["resourceClaimStatuses"]).map(|status| text(&status["resourceClaimName"]));
    (by_template.count(), made.collect())
}
