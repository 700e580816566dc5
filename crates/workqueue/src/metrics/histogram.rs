//! Pure: durations, counted by power of ten.

use std::time::Duration;

/// The number of buckets with an upper bound; one more has none.
const BOUNDED: usize = 10;

/// Durations counted in upstream's buckets: 10 ns, 100 ns, … 10 s, and more.
///
/// The bounds are powers of ten, so finding the bucket is one integer logarithm, and counting needs no atomics since
/// a queue counts under its own lock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    counts: [u64; BOUNDED + 1],
    sum: Duration,
}

impl Histogram {
    /// Returns the upper bounds in seconds, computed as upstream does (`ExponentialBuckets(10e-9, 10, 10)`), so that
    /// they are the same to the last bit: the fourth is 9.999999999999999e-06.
    #[must_use]
    pub fn bounds() -> [f64; BOUNDED] {
        let mut bounds = [10e-9; BOUNDED];
        for at in 1..BOUNDED {
            bounds[at] = bounds[at - 1] * 10.0;
        }
        bounds
    }

    /// Returns the number of durations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the sum of all durations.
    #[must_use]
    pub fn sum(&self) -> Duration {
        self.sum
    }

    /// Returns, for each bound in turn, the number of durations that did not exceed it.
    pub fn cumulative(&self) -> impl Iterator<Item = (f64, u64)> {
        let mut below = 0;
        Self::bounds().into_iter().zip(self.counts).map(move |(bound, count)| {
            below += count;
            (bound, below)
        })
    }

    #[inline]
    pub(crate) fn observe(&mut self, duration: Duration) {
        // 10 ns and less is bucket 0, 100 ns and less is bucket 1, and so on. Not `as_nanos`: 128 bits are slow.
        let nanos = duration.as_secs().saturating_mul(1_000_000_000).saturating_add(duration.subsec_nanos().into());
        let bucket = nanos.saturating_sub(1).checked_ilog10().unwrap_or(0) as usize;
        self.counts[bucket.min(BOUNDED)] += 1;
        self.sum = self.sum.saturating_add(duration);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count += more;
        }
        self.sum = self.sum.saturating_add(other.sum);
    }
}
