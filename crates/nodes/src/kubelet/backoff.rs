//! The delay before a container is restarted. Follows the kubelet of Kubernetes 1.37: the first restart is immediate,
//! then 10 s, 20 s, 40 s … up to five minutes.

use std::time::Duration;

/// The first delay.
const FIRST: Duration = Duration::from_secs(10);
/// The longest delay.
pub(super) const MAX: Duration = Duration::from_secs(300);
/// A container that ran for longer than this is restarted at once: upstream resets after twice the longest delay.
/// Unlike upstream, a short run after that is delayed by the total number of restarts, because the status has nothing
/// else.
const RESET_AFTER: Duration = Duration::from_secs(600);

/// Returns the delay of a container that ran for this long, after this many restarts.
pub(super) fn wait(restarts: i32, ran: Duration) -> Duration {
    if restarts <= 0 || ran > RESET_AFTER {
        return Duration::ZERO;
    }
    let doublings = u32::try_from(restarts - 1).unwrap_or(0).min(16);
    (FIRST * 2_u32.pow(doublings)).min(MAX)
}
