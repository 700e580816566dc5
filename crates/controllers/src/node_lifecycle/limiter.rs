//! Pure: the rate at which nodes of a zone get their taints: a token bucket that holds one token.
//!
//! Times are counted from any one point.

use std::time::Duration;

/// A rate, and when it admits the next one.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Limiter {
    per_second: f64,
    /// The time at which there is a token again; never, while the rate is zero.
    next: Duration,
}

// === impl Limiter ===

impl Limiter {
    /// Creates a limiter with a token.
    pub(super) fn full(per_second: f64, now: Duration) -> Self {
        Self { per_second, next: now }
    }

    /// Takes a token.
    ///
    /// # Errors
    /// There is none: the time until there is, or `None` if there never will be.
    pub(super) fn take(&mut self, now: Duration) -> Result<(), Option<Duration>> {
        let Some(every) = self.every() else { return Err(None) };
        if now < self.next {
            return Err(Some(self.next - now));
        }
        self.next = now + every;
        Ok(())
    }

    /// Records that the token that was taken has been used only now: the next one comes a whole interval later.
    pub(super) fn used(&mut self, now: Duration) {
        if let Some(every) = self.every() {
            self.next = self.next.max(now + every);
        }
    }

    /// Changes the rate. A limiter without a token has none at first at the new rate either.
    pub(super) fn set_rate(&mut self, per_second: f64, now: Duration) {
        if per_second == self.per_second {
            return;
        }
        let had_token = self.is_full(now);
        self.per_second = per_second;
        if let Some(every) = self.every() {
            self.next = if had_token { now } else { now + every };
        }
    }

    /// Whether there is a token.
    pub(super) fn is_full(&self, now: Duration) -> bool {
        self.every().is_some() && now >= self.next
    }

    /// Returns the time between two tokens; `None` if there are none.
    fn every(&self) -> Option<Duration> {
        let is_a_rate = self.per_second > 0.0;
        is_a_rate.then(|| Duration::try_from_secs_f64(self.per_second.recip()).ok()).flatten()
    }
}
