//! The plug-in LimitRanger, for the kinds that LimitRanges bound: pods and claims of storage. Follows
//! `plugin/pkg/admission/limitranger` of Kubernetes 1.37.1.

use serde::Deserialize;
use serde_json::Value;
use steersman_base::quota::limits::LimitRange;
use steersman_base::quota::{Pod, VolumeClaim};

use super::json::is_set;
use crate::registry::admission::{Lookup, Refused};
use crate::registry::{Call, Registry};

/// Refuses a new pod, or one of other size, that is out of the bounds of its namespace.
pub(crate) fn check_pod(registry: &Registry, call: &Call, new: &Value, old: Option<&Value>) -> Result<(), Refused> {
    // The resources of a pod do not change in any other way.
    let is_bounded = matches!((&*call.subresource, old), ("", None) | ("resize", Some(_)));
    check(registry, call, old, is_bounded, |range| range.check_pod(&Pod::deserialize(new).unwrap_or_default()))
}

/// Refuses a claim that is out of the bounds of its namespace.
pub(crate) fn check_claim(registry: &Registry, call: &Call, new: &Value, old: Option<&Value>) -> Result<(), Refused> {
    check(registry, call, old, call.subresource.is_empty(), |range| {
        range.check_claim(&VolumeClaim::deserialize(new).unwrap_or_default())
    })
}

fn check(
    registry: &Registry,
    call: &Call,
    old: Option<&Value>,
    is_bounded: bool,
    check: impl Fn(&LimitRange) -> Result<(), String>,
) -> Result<(), Refused> {
    if !is_bounded || old.is_some_and(|old| is_set(&old["metadata"]["deletionTimestamp"])) {
        return Ok(());
    }
    let ranges = Lookup::list(registry, "", "limitranges", &call.namespace);
    ranges
        .iter()
        .try_for_each(|range| check(&LimitRange::deserialize(range).unwrap_or_default()))
        .map_err(Refused::because)
}
