//! Pure: which requests are deleted.

use std::time::Duration;

use steersman_base::{Meta, Time};

/// Whether a request is deleted: it is old, whatever became of it.
pub(super) fn is_over(request: &Meta, kept_for: Duration, now: Time) -> bool {
    let is_old = request.creation_timestamp.is_none_or(|created| now >= created && now.since(created) >= kept_for);
    is_old && !request.is_terminating()
}
