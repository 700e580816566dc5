//! Pure: a token bucket, for bursts and a rate.

use std::time::Duration;

/// A bucket of tokens that fills at a constant rate. Times are counted from any one point.
///
/// ```
/// # use std::time::Duration;
/// # use steersman_base::Bucket;
/// let mut bucket = Bucket::full(2, Duration::from_secs(10), Duration::ZERO);
/// assert!(bucket.try_take(2, Duration::ZERO) && !bucket.try_take(1, Duration::from_secs(9)));
/// assert_eq!(bucket.reserve(Duration::from_secs(15)), Duration::ZERO);
/// assert_eq!(bucket.reserve(Duration::from_secs(15)), Duration::from_secs(5), "half of the next one is there");
/// ```
#[derive(Clone, Debug)]
pub struct Bucket {
    burst: f64,
    every: f64,
    tokens: f64,
    at: Duration,
}

// === impl Bucket ===

impl Bucket {
    /// A full bucket that gets a token in every interval.
    #[must_use]
    pub fn full(burst: u32, every: Duration, now: Duration) -> Self {
        Self { burst: f64::from(burst), every: every.as_secs_f64(), tokens: f64::from(burst), at: now }
    }

    /// Takes this many tokens, if they are available: all of them, or none.
    pub fn try_take(&mut self, count: u32, now: Duration) -> bool {
        self.fill(now);
        let are_there = self.tokens >= f64::from(count);
        if are_there {
            self.tokens -= f64::from(count);
        }
        are_there
    }

    /// Takes a token, and returns how long to wait until it is available. Later callers wait longer.
    pub fn reserve(&mut self, now: Duration) -> Duration {
        self.fill(now);
        self.tokens -= 1.0;
        Duration::from_secs_f64((-self.tokens).max(0.0) * self.every)
    }

    fn fill(&mut self, now: Duration) {
        // A clock that goes back adds and removes no tokens.
        let since = now.saturating_sub(self.at).as_secs_f64();
        self.at = self.at.max(now);
        self.tokens = self.burst.min(self.tokens + since / self.every);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_gives_a_burst_and_then_one_per_interval() {
        let secs = Duration::from_secs;
        let mut bucket = Bucket::full(2, secs(300), secs(1_000));
        let taken: Vec<bool> =
            [1_000, 1_000, 1_000, 1_299, 1_300, 1_300, 900, 1_600].map(|at| bucket.try_take(1, secs(at))).to_vec();
        assert_eq!(taken, [true, true, false, false, true, false, false, true]);
        assert!(bucket.clone().try_take(1, secs(10_000)));
        bucket.fill(secs(1_000_000));
        assert!(bucket.tokens <= 2.0, "it never holds more than its burst");
    }
}
