//! The grace period of a deleted pod: `CheckGracefulDelete` of `pkg/registry/core/pod/strategy.go` and
//! `apiserver/pkg/registry/rest/delete.go`.

use serde_json::Value;
use steersman_base::Time;

use crate::registry::delete::{DeleteOptions, Deletion};
use crate::registry::object_meta::{meta_text, metadata};

/// The longest grace period: ten years. Upstream takes any number of seconds, and times that no calendar has.
const GRACE_SECONDS_MAX: i64 = 10 * 365 * 24 * 3600;

/// Sets the time at which a pod must have ended. A deletion of a terminating pod changes nothing, unless it asks for a
/// shorter grace period.
pub(crate) fn begin(pod: &mut Value, options: &DeleteOptions, now: Time) -> Deletion {
    let clamped = |seconds: i64| if seconds < 0 { 1 } else { seconds.min(GRACE_SECONDS_MAX) };
    let asked = options.grace_period_seconds().map(clamped);
    if let Ok(ends) = meta_text(pod, "deletionTimestamp").parse::<Time>() {
        let stored = pod["metadata"]["deletionGracePeriodSeconds"].as_i64().map_or(0, clamped);
        if stored == 0 {
            return Deletion::Immediate;
        }
        let Some(mut period) = asked.filter(|period| *period < stored) else { return Deletion::Pending };
        let mut ends = ends.plus_seconds(period - stored);
        if ends < now {
            ends = now;
            period = period.min(1);
        }
        return set_deletion(pod, ends, period);
    }
    let is_unbound = pod["spec"]["nodeName"].as_str().is_none_or(str::is_empty);
    let is_over = matches!(pod["status"]["phase"].as_str(), Some("Failed" | "Succeeded"));
    let period = match asked.or_else(|| pod["spec"]["terminationGracePeriodSeconds"].as_i64().map(clamped)) {
        _ if is_unbound || is_over => 0,
        Some(seconds) => seconds,
        None => 30,
    };
    if let Some(generation) = pod["metadata"]["generation"].as_i64() {
        metadata(pod).insert("generation".into(), generation.saturating_add(1).into());
    }
    set_deletion(pod, now.plus_seconds(period), period)
}

fn set_deletion(pod: &mut Value, at: Time, period: i64) -> Deletion {
    let meta = metadata(pod);
    meta.insert("deletionTimestamp".into(), at.to_string().into());
    meta.insert("deletionGracePeriodSeconds".into(), period.into());
    if period == 0 { Deletion::NoGracePeriod } else { Deletion::Graceful }
}
