//! The times of a node's heartbeats within each period.

use std::time::Duration;

use steersman_base::MicroTime;

/// Recurring times, a period apart; those of different nodes are spread evenly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Schedule {
    period_micros: i64,
    offset_micros: i64,
}

// === impl Beat ===

impl Schedule {
    /// Returns the times of one of `count` nodes.
    pub(super) fn new(period: Duration, index: usize, count: usize) -> Self {
        let period_micros = i64::try_from(period.as_micros()).unwrap_or(i64::MAX).max(1);
        let index = i64::try_from(index).unwrap_or(0);
        let count = i64::try_from(count.max(1)).unwrap_or(1);
        Self { period_micros, offset_micros: period_micros / count * (index % count) }
    }

    /// Whether a heartbeat has become due since `last`.
    pub(super) fn is_due(&self, last: Option<MicroTime>, now: MicroTime) -> bool {
        last.is_none_or(|last| self.number(last) != self.number(now))
    }

    /// Returns how long until the next heartbeat.
    pub(super) fn next(&self, now: MicroTime) -> Duration {
        let next = (self.number(now) + 1) * self.period_micros + self.offset_micros;
        MicroTime::from_unix_micros(next).since(now)
    }

    fn number(&self, time: MicroTime) -> i64 {
        (time.unix_micros() - self.offset_micros).div_euclid(self.period_micros)
    }
}
