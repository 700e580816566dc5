//! The guarantees of the crate, each by its name, through the public API under a paused clock.

mod backing_off;
mod ending;
mod ordering;
mod waiting;

use std::{
    pin::Pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

use tokio::time::{Instant, sleep};

use super::*;
use crate::limiter::{Exponential, Fixed};

type Keys = Queue<&'static str>;

fn queue() -> Keys {
    Queue::new("test", QueueOptions::default())
}

fn queue_with(limiter: impl RateLimiter<&'static str> + 'static) -> Keys {
    Queue::new("test", QueueOptions { limiter: Box::new(limiter), ..QueueOptions::default() })
}

/// A queue whose keys back off 100 ms, 200 ms, 400 ms and so on.
fn backing_off() -> Keys {
    queue_with(Exponential::new(ms(100), Duration::from_secs(1000)))
}

/// One look at the queue: what a worker that asks now gets.
fn poll(queue: &Keys) -> Poll<Option<Held<&'static str>>> {
    Pin::new(&mut queue.next()).poll(&mut Context::from_waker(Waker::noop()))
}

/// The key a worker gets now.
fn take(queue: &Keys) -> Held<&'static str> {
    match poll(queue) {
        Poll::Ready(Some(item)) => item,
        Poll::Ready(None) => panic!("the queue is shut down"),
        Poll::Pending => panic!("no key is ready"),
    }
}

/// The keys a worker gets now, each done at once.
fn take_all(queue: &Keys) -> Vec<&'static str> {
    let mut keys = Vec::new();
    while let Poll::Ready(Some(item)) = poll(queue) {
        keys.push(*item.key());
        item.done();
    }
    keys
}

/// Processes the key that is ready, and fails.
fn fail(queue: &Keys) {
    take(queue).retry();
}

/// Waits for the next key, and says how long that took.
async fn next_after(queue: &Keys) -> (Held<&'static str>, Duration) {
    let start = Instant::now();
    let item = queue.next().await.expect("the queue is not shut down");
    (item, start.elapsed())
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
