//! How long a container waits before it is started again. Follows the kubelet of Kubernetes 1.37: the first restart comes
//! at once, then 10 s, 20 s, 40 s … up to five minutes.

use std::time::Duration;

/// The first wait.
const FIRST: Duration = Duration::from_secs(10);
/// The longest one.
pub(super) const MAX: Duration = Duration::from_secs(300);
/// Who ran for longer than this is started again at once: upstream forgets after twice the longest wait. Unlike upstream,
/// a short run after that waits by all restarts there were, because their number is all that a status tells.
const FORGIVEN_AFTER: Duration = Duration::from_secs(600);

/// How long the container waits that ran for so long, after so many restarts.
pub(super) fn wait(restarts: i32, ran: Duration) -> Duration {
    if restarts <= 0 || ran > FORGIVEN_AFTER {
        return Duration::ZERO;
    }
    let doublings = u32::try_from(restarts - 1).unwrap_or(0).min(16);
    (FIRST * 2_u32.pow(doublings)).min(MAX)
}
