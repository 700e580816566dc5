//! When and how a watch is restarted that does not show a write.

use std::time::{Duration, Instant};

use crate::reflector::Restart;

/// The recent restarts of a watch.
#[derive(Debug, Default)]
pub(super) struct Staleness {
    last: Option<Instant>,
    count: u32,
}

/// The time between two restarts of one watch: a new one needs time to show something. Doubled from the second on.
const PAUSE_MIN: Duration = Duration::from_secs(30);
/// A watch ends by itself as often.
const PAUSE_MAX: Duration = Duration::from_secs(300);

// === impl Staleness ===

impl Staleness {
    /// Returns how to restart a watch that was found stale, if at all. First it is opened again from the version it has
    /// reached; if that does not help, the resource is listed. After a while without problems it starts over.
    pub(super) fn found(&mut self, now: Instant) -> Option<Restart> {
        let pause = |count: u32| (PAUSE_MIN * 2_u32.saturating_pow(count.saturating_sub(1))).min(PAUSE_MAX);
        if let Some(last) = self.last {
            let again = last + pause(self.count.saturating_sub(1).max(1));
            if now < again {
                return None;
            }
            if now > last + 2 * PAUSE_MAX {
                self.count = 0;
            }
        }
        self.last = Some(now);
        self.count = self.count.saturating_add(1);
        Some(if self.count == 1 { Restart::Watch } else { Restart::List })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_watch_is_opened_again_and_then_listed_ever_more_seldom() {
        let begin = tokio::time::Instant::now().into_std();
        let mut staleness = Staleness::default();
        let mut restarts = Vec::new();
        for second in (0..1_000).step_by(10) {
            if let Some(restart) = staleness.found(begin + Duration::from_secs(second)) {
                restarts.push((second, restart));
            }
        }
        let want = [
            (0, Restart::Watch),
            (30, Restart::List),
            (60, Restart::List),
            (120, Restart::List),
            (240, Restart::List),
            (480, Restart::List),
            (780, Restart::List),
        ];
        assert_eq!(restarts, want);
        let soon = begin + Duration::from_secs(780 + 400);
        assert_eq!(staleness.found(soon), Some(Restart::List), "it was not well for long enough");
        let later = begin + Duration::from_secs(3_000);
        assert_eq!(staleness.found(later), Some(Restart::Watch), "it was well for a while");
    }
}
