//! ResourceClaims: `pkg/apis/resource/{v1/defaults.go,validation/validation.go}`.

use serde_json::Value;

use super::{claim_spec, claim_status};
use crate::field::Path;
use crate::kinds::shared::check::immutable_unshown;
use crate::kinds::shared::json::{default_zero_to, each_mut, object_mut, text};
use crate::kinds::{NameRule, Rules};
use crate::registry::admission::Admission;
use crate::registry::strategy::{Strategy, USER_METADATA};
use crate::table::{Cell, TableRow};

/// The rules of ResourceClaims.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .admitted(Admission { is_counted: Admission::COUNTED_ALWAYS, ..Admission::NONE })
    .defaulted(|object| {
        if let Some(spec) = object_mut(object, "spec") {
            device_requests(spec);
        }
    })
    .rechecked()
    .validated(|claim, old, errors| {
        let path = Path::new("spec");
        match old {
            Some(old) => immutable_unshown(&claim["spec"], &old["spec"], &path, errors),
            None => claim_spec::validate(&claim["spec"], &path, errors),
        }
    })
    .status_prepared(claim_status::prepare)
    .status_validated(claim_status::validate)
    .status_resets(&["metadata", "spec"])
    .with_strategy(Strategy { status_keeps_metadata: USER_METADATA, ..Strategy::RETURNS_DELETED })
    .printed(&[Cell::Name, Cell::Made(claim_state), Cell::Age]);

/// Sets the defaults of the device requests in the spec of a claim.
pub(crate) fn device_requests(spec: &mut Value) {
    let exactly = |request: &mut Value| {
        default_zero_to(request, "allocationMode", "ExactCount");
        if text(&request["allocationMode"]) == "ExactCount" {
            default_zero_to(request, "count", 1);
        }
    };
    let Some(devices) = object_mut(spec, "devices") else { return };
    each_mut(devices, "requests", |request| {
        if let Some(request) = object_mut(request, "exactly") {
            exactly(request);
        }
        each_mut(request, "firstAvailable", exactly);
    });
}

fn claim_state(row: &TableRow<'_>) -> String {
    let is_allocated = row.at("/status/allocation").is_some();
    let states = [
        (row.is_terminating(), "deleted"),
        (!is_allocated && !row.is_terminating(), "pending"),
        (is_allocated, "allocated"),
        (is_allocated && row.count("/status/reservedFor") > 0, "reserved"),
    ];
    states.iter().filter(|(holds, _)| *holds).map(|(_, state)| *state).collect::<Vec<_>>().join(",")
}
