//! Pure: which requests are answered, what the answer says, and which requests are old.

use std::time::Duration;

use serde_json::{Value, json};
use steersman_base::{ObjectKey, Time};
use steersman_informer::Change;
use steersman_model::View;
use steersman_model::resource::ResourcePoolStatusRequestView;

use super::pools::Pool;

/// The number of pools in an answer, if the request does not say.
const LIMIT: i32 = 100;
/// The time for which an answered request is kept.
const ANSWERED_FOR: Duration = Duration::from_secs(3600);
/// The time for which a request is kept that was never answered.
const PENDING_FOR: Duration = Duration::from_secs(24 * 3600);

/// Returns a request that is not answered.
pub(super) fn new_request(change: &Change<ResourcePoolStatusRequestView>) -> Option<ObjectKey> {
    let is_there = !matches!(change, Change::Deleted { .. });
    (is_there && is_pending(change.object())).then(|| change.key())
}

/// Whether a request has no answer. It gets one, which never changes.
pub(super) fn is_pending(request: &ResourcePoolStatusRequestView) -> bool {
    request.status.is_none()
}

/// Whether a request can be answered: slices of none of the pools that the answer shows are missing.
pub(super) fn is_answerable(request: &ResourcePoolStatusRequestView, pools: &[Pool<'_>]) -> bool {
    !shown(request, pools).iter().any(Pool::is_incomplete)
}

/// Returns the pools that an answer shows.
fn shown<'a, 'b>(request: &ResourcePoolStatusRequestView, pools: &'a [Pool<'b>]) -> &'a [Pool<'b>] {
    let limit = usize::try_from(request.spec.limit.unwrap_or(LIMIT)).unwrap_or_default();
    &pools[..limit.min(pools.len())]
}

/// Returns the patch with the answer. The version as a precondition keeps it from being given twice.
pub(super) fn answer(request: &ResourcePoolStatusRequestView, pools: &[Pool<'_>], now: Time) -> Value {
    let shown = shown(request, pools);
    let wrong = shown.iter().filter(|pool| pool.problem.is_some()).count();
    let mut message = format!("Calculated status for {} pools", shown.len());
    if wrong > 0 {
        message += &format!(" ({wrong} incomplete)");
    }
    let condition = json!({
        "type": "Complete", "status": "True", "lastTransitionTime": now, "reason": "CalculationComplete",
        "message": message,
    });
    let mut status = json!({ "poolCount": pools.len(), "conditions": [condition] });
    if !shown.is_empty() {
        status["pools"] = shown.iter().map(Pool::status).collect();
    }
    let meta = request.meta();
    json!({ "metadata": { "uid": meta.uid, "resourceVersion": meta.resource_version }, "status": status })
}

/// Whether a request is old: an hour after its answer, or a day without one.
pub(super) fn is_old(request: &ResourcePoolStatusRequestView, now: Time) -> bool {
    let created = request.meta().creation_timestamp;
    let (since, kept_for) = match &request.status {
        None => (created, PENDING_FOR),
        Some(status) => {
            let is_end = |type_: &str| matches!(type_, "Complete" | "Failed");
            let end = status.conditions.iter().find(|condition| is_end(&condition.type_));
            (end.map_or(created, |end| end.last_transition_time), ANSWERED_FOR)
        }
    };
    since.is_some_and(|since| now.since(since) > kept_for)
}
