use std::time::Duration;

use steersman_base::ObjectKey;
use steersman_workqueue::{Queue, QueueOptions};
use tokio_util::sync::CancellationToken;

use super::{Connected, Feed, Source, ticker};

const PERIOD: Duration = Duration::from_secs(20);

/// Runs a source that is a task, and the queue that it feeds.
fn run(source: impl Into<Source>) -> (Queue<ObjectKey>, CancellationToken) {
    let queue = Queue::new("passes", QueueOptions::default());
    let feed = Feed::new(queue.clone(), Vec::new(), false);
    let stop = CancellationToken::new();
    let Connected::Task(task) = source.into().connect(&feed) else { panic!("it is no task") };
    tokio::spawn(task(feed, stop.clone()));
    (queue, stop)
}

async fn keys_after(queue: &Queue<ObjectKey>, time: Duration) -> usize {
    tokio::time::sleep(time).await;
    let mut count = 0;
    while let Ok(Some(held)) = tokio::time::timeout(Duration::ZERO, queue.next()).await {
        held.done();
        count += 1;
    }
    count
}

#[tokio::test(start_paused = true)]
async fn a_ticker_begins_after_its_period_or_at_once() {
    let keys = || vec![ObjectKey::cluster("all")];
    let moment = Duration::from_millis(1);
    let (queue, _stop) = run(ticker(PERIOD, keys));
    assert_eq!(keys_after(&queue, moment).await, 0);
    assert_eq!(keys_after(&queue, PERIOD).await, 1);

    let (queue, stop) = run(ticker(PERIOD, keys).immediately());
    assert_eq!(keys_after(&queue, moment).await, 1);
    assert_eq!(keys_after(&queue, PERIOD - 2 * moment).await, 0);
    assert_eq!(keys_after(&queue, 2 * moment).await, 1);
    stop.cancel();
    assert_eq!(keys_after(&queue, 10 * PERIOD).await, 0);
}
