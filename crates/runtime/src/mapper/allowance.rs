//! Pure: the rate of discovery requests for unknown kinds.

use std::time::Duration;

/// The number of requests in a row: enough for a program that creates some kinds and uses them at once.
pub const REFRESH_BURST: u32 = 5;
/// The interval of requests in the long run: a controller that retries an unknown kind must not load the server more.
pub const REFRESH_EVERY: Duration = Duration::from_secs(5);

/// A bucket of [`REFRESH_BURST`] that fills by one every [`REFRESH_EVERY`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowance {
    left: u32,
    /// The time at which the next token began to fill, counted from the beginning.
    since: Duration,
}

// === impl Allowance ===

impl Allowance {
    /// Creates a full bucket.
    pub(super) fn full() -> Self {
        Self { left: REFRESH_BURST, since: Duration::ZERO }
    }

    /// Takes a token, if there is one at `now`.
    pub(super) fn take(&mut self, now: Duration) -> bool {
        let filled = now.saturating_sub(self.since).as_secs() / REFRESH_EVERY.as_secs();
        let filled = u32::try_from(filled).unwrap_or(u32::MAX);
        self.left = self.left.saturating_add(filled).min(REFRESH_BURST);
        self.since = if self.left == REFRESH_BURST { now } else { self.since + REFRESH_EVERY * filled };
        let has = self.left > 0;
        self.left -= u32::from(has);
        has
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_then_one_at_a_time() {
        let mut allowance = Allowance::full();
        let at = Duration::from_secs;
        let taken = |allowance: &mut Allowance, now| (0..9).filter(|_| allowance.take(now)).count();
        assert_eq!(taken(&mut allowance, at(0)), 5);
        assert_eq!(taken(&mut allowance, at(4)), 0);
        assert_eq!(taken(&mut allowance, at(5)), 1);
        assert_eq!(taken(&mut allowance, at(9)), 0);
        assert_eq!(taken(&mut allowance, at(16)), 2);
        assert_eq!(taken(&mut allowance, at(20)), 1, "what had filled before counts");
        assert_eq!(taken(&mut allowance, at(100_000)), 5);
    }
}
