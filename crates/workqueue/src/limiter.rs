//! Pure: how long a key waits before it is retried.
//!
//! 1. A limiter gets the number of times the key went through it since it was last forgotten; the queue counts that, so
//!    a per-key limiter needs no table of its own and cannot leak one.
//! 2. Time and randomness come in as values (`now`, a seed): the same calls give the same delays.
//! 3. No delay overflows, however large the count or the configured bounds.
//! 4. A limiter is asked only when its answer is used: not for a failure before the previous back-off deadline, which
//!    keeps that deadline (guarantee 5 of the [crate]). Early failures therefore use no tokens.
//!
//! Defaults and formulas follow client-go 1.37, `util/workqueue/default_rate_limiters.go`.

mod jitter;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub use self::jitter::WithJitter;
use crate::Instant;

/// The delay of a key before it is retried.
pub trait RateLimiter<K>: Send {
    /// Returns the delay of `key`, which went through the limiter `requeues` times since it was last forgotten.
    ///
    /// Each call is one retry: a limiter may count it against a budget that all keys share.
    fn delay(&mut self, key: &K, requeues: u32, now: Instant) -> Duration;

    /// Forgets a key that succeeded or was given up.
    fn forget(&mut self, _key: &K) {}
}

/// Returns the default limiter of controllers: per key 5 ms, 10 ms, 20 ms … 1000 s, and for all keys together ten
/// retries a second after a burst of a hundred; whichever is longer.
#[must_use]
pub fn default_controller_limiter() -> MaxOf<Exponential, Bucket> {
    MaxOf(Exponential::default(), Bucket::default())
}

/// A delay per key: `base`, doubled with every requeue, up to `max`.
#[derive(Clone, Debug)]
pub struct Exponential {
    base: Duration,
    max: Duration,
}

/// A delay per key: `fast` for the first `attempts` requeues, `slow` from then on.
#[derive(Clone, Debug)]
pub struct FastSlow {
    fast: Duration,
    slow: Duration,
    attempts: u32,
}

/// The same delay for every key and every retry.
#[derive(Clone, Debug)]
pub struct Fixed(pub Duration);

/// A token bucket for all keys together. A retry takes a token; when none is left it waits for its own, in line with the
/// retries before it.
#[derive(Clone, Debug)]
pub struct Bucket {
    per_second: f64,
    burst: f64,
    /// Negative: tokens that are promised to retries already waiting.
    tokens: f64,
    counted_at: Option<Instant>,
}

/// The longer of two delays. Both limiters are asked, so both count the retry. Pairs nest.
#[derive(Clone, Debug)]
pub struct MaxOf<A, B>(pub A, pub B);

/// The inner delay, but never longer than the given one.
#[derive(Clone, Debug)]
pub struct WithMaxWait<L>(pub L, pub Duration);

// === impl Exponential ===

impl Exponential {
    /// Waits `base`, then twice that, and so on, up to `max`.
    #[must_use]
    pub fn new(base: Duration, max: Duration) -> Self {
        Self { base, max }
    }
}

impl Default for Exponential {
    /// 5 ms … 1000 s, as client-go.
    fn default() -> Self {
        Self::new(Duration::from_millis(5), Duration::from_secs(1000))
    }
}

impl<K> RateLimiter<K> for Exponential {
    fn delay(&mut self, _key: &K, requeues: u32, _now: Instant) -> Duration {
        // In nanoseconds, 64 bits hold 584 years; a value that does not fit is longer than any sensible `max`.
        let base = u64::try_from(self.base.as_nanos()).unwrap_or(u64::MAX);
        let factor = 1_u64.checked_shl(requeues).unwrap_or(u64::MAX);
        Duration::from_nanos(base.saturating_mul(factor)).min(self.max)
    }
}

// === impl FastSlow ===

impl FastSlow {
    /// Waits `fast` for the first `attempts` requeues, then `slow`.
    #[must_use]
    pub fn new(fast: Duration, slow: Duration, attempts: u32) -> Self {
        Self { fast, slow, attempts }
    }
}

impl<K> RateLimiter<K> for FastSlow {
    fn delay(&mut self, _key: &K, requeues: u32, _now: Instant) -> Duration {
        if requeues < self.attempts { self.fast } else { self.slow }
    }
}

// === impl Fixed ===

impl<K> RateLimiter<K> for Fixed {
    fn delay(&mut self, _key: &K, _requeues: u32, _now: Instant) -> Duration {
        self.0
    }
}

// === impl Bucket ===

impl Bucket {
    /// A full bucket of `burst` tokens that gets `per_second` new ones. With a rate of zero it is never refilled, and
    /// once it is empty retries wait forever.
    #[must_use]
    pub fn new(per_second: f64, burst: u32) -> Self {
        let burst = f64::from(burst);
        Self { per_second: per_second.max(0.0), burst, tokens: burst, counted_at: None }
    }
}

impl Default for Bucket {
    /// Ten a second, burst 100, as client-go.
    fn default() -> Self {
        Self::new(10.0, 100)
    }
}

impl<K> RateLimiter<K> for Bucket {
    fn delay(&mut self, _key: &K, _requeues: u32, now: Instant) -> Duration {
        let counted_at = self.counted_at.unwrap_or(now);
        let passed = now.saturating_duration_since(counted_at).as_secs_f64();
        self.counted_at = Some(now.max(counted_at));
        self.tokens = (self.tokens + passed * self.per_second).min(self.burst) - 1.0;
        if self.tokens >= 0.0 {
            return Duration::ZERO;
        }
        Duration::try_from_secs_f64(-self.tokens / self.per_second).unwrap_or(Duration::MAX)
    }
}

// === impl MaxOf ===

impl<K, A: RateLimiter<K>, B: RateLimiter<K>> RateLimiter<K> for MaxOf<A, B> {
    fn delay(&mut self, key: &K, requeues: u32, now: Instant) -> Duration {
        self.0.delay(key, requeues, now).max(self.1.delay(key, requeues, now))
    }

    fn forget(&mut self, key: &K) {
        self.0.forget(key);
        self.1.forget(key);
    }
}

// === impl WithMaxWait ===

impl<K, L: RateLimiter<K>> RateLimiter<K> for WithMaxWait<L> {
    fn delay(&mut self, key: &K, requeues: u32, now: Instant) -> Duration {
        self.0.delay(key, requeues, now).min(self.1)
    }

    fn forget(&mut self, key: &K) {
        self.0.forget(key);
    }
}

// === impl Box ===

impl<K> RateLimiter<K> for Box<dyn RateLimiter<K>> {
    fn delay(&mut self, key: &K, requeues: u32, now: Instant) -> Duration {
        (**self).delay(key, requeues, now)
    }

    fn forget(&mut self, key: &K) {
        (**self).forget(key);
    }
}
