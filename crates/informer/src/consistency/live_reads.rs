//! The rate limit of live reads, which are made because a cache lags.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use steersman_base::Bucket;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep};

/// Limits live reads at once and over time. Cheap to clone; clones share the limit.
#[derive(Clone, Debug)]
pub struct LiveReads(Arc<Shared>);

/// A permit, held while reading.
#[derive(Debug)]
#[must_use = "the turn is over when this is dropped"]
pub struct Turn {
    _seat: Option<OwnedSemaphorePermit>,
}

#[derive(Debug)]
struct Shared {
    seats: Arc<Semaphore>,
    bucket: Mutex<Bucket>,
    began: Instant,
}

/// The number of concurrent reads: enough to hide the server's latency, too few to crowd out others.
pub const LIVE_READS_AT_ONCE: usize = 8;
/// The reads per second, over time: client-go gives all controllers together twenty requests by default.
pub const LIVE_READS_PER_SECOND: u32 = 50;
/// The reads at once after a pause.
pub const LIVE_READS_BURST: u32 = 100;

// === impl LiveReads ===

impl LiveReads {
    /// Waits for a permit.
    pub async fn turn(&self) -> Turn {
        let seat = Arc::clone(&self.0.seats).acquire_owned().await.ok();
        let wait = self.0.bucket.lock().reserve(self.0.began.elapsed());
        if !wait.is_zero() {
            sleep(wait).await;
        }
        Turn { _seat: seat }
    }
}

impl Default for LiveReads {
    fn default() -> Self {
        let every = Duration::from_secs(1) / LIVE_READS_PER_SECOND;
        let bucket = Mutex::new(Bucket::full(LIVE_READS_BURST, every, Duration::ZERO));
        Self(Arc::new(Shared { seats: Arc::new(Semaphore::new(LIVE_READS_AT_ONCE)), bucket, began: Instant::now() }))
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn so_many_read_at_once_and_so_many_over_time() {
        let reads = LiveReads::default();
        let mut turns = Vec::new();
        for _ in 0..LIVE_READS_AT_ONCE {
            turns.push(reads.turn().now_or_never().expect("there is a seat"));
        }
        assert!(reads.turn().now_or_never().is_none(), "all seats are taken");
        turns.clear();
        let began = Instant::now();
        let rest = LIVE_READS_BURST as usize - LIVE_READS_AT_ONCE + 2 * LIVE_READS_PER_SECOND as usize;
        for _ in 0..rest {
            drop(reads.turn().await);
        }
        let took = began.elapsed().as_millis();
        assert!((1_900..=2_100).contains(&took), "{took} ms for two seconds' worth");
    }
}
