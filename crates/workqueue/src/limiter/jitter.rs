//! Random jitter. The one limiter that is not pure: it draws random numbers, from a seed.

use std::time::Duration;

use super::RateLimiter;
use crate::Instant;

/// The inner delay, lengthened at random, so that keys which failed together do not return together.
#[derive(Clone, Debug)]
pub struct WithJitter<L> {
    inner: L,
    fraction: f64,
    random: fastrand::Rng,
}

impl<L> WithJitter<L> {
    /// Lengthens each delay by up to `fraction` of itself: with 0.1, ten seconds become ten to eleven.
    #[must_use]
    pub fn new(inner: L, fraction: f64, seed: u64) -> Self {
        Self { inner, fraction: fraction.max(0.0), random: fastrand::Rng::with_seed(seed) }
    }
}

impl<K, L: RateLimiter<K>> RateLimiter<K> for WithJitter<L> {
    fn delay(&mut self, key: &K, requeues: u32, now: Instant) -> Duration {
        let delay = self.inner.delay(key, requeues, now);
        let factor = 1.0 + self.random.f64() * self.fraction;
        Duration::try_from_secs_f64(delay.as_secs_f64() * factor).unwrap_or(Duration::MAX)
    }

    fn forget(&mut self, key: &K) {
        self.inner.forget(key);
    }
}
