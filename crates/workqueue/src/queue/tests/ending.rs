//! Guarantee 6: shutdown, gate, panics.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;

#[tokio::test(start_paused = true)]
async fn after_a_shutdown_nothing_is_added() {
    for how in [Shutdown::Drain, Shutdown::Drop] {
        let queue = backing_off();
        assert!(!queue.is_shutting_down());
        queue.shutdown(how).await;
        assert!(queue.is_shutting_down());
        queue.add("a", Priority::Live);
        queue.add_all(&["b", "c"], Priority::Background);
        queue.add_after("d", ms(1));
        assert_eq!(queue.add_rate_limited("e"), Duration::ZERO);
        sleep(ms(1000)).await;
        assert_eq!(queue.len(), 0, "{how:?}");
        assert!(matches!(poll(&queue), Poll::Ready(None)), "{how:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn draining_hands_out_what_waits_and_waits_for_what_is_held() {
    let queue = queue();
    queue.add_all(&["held", "waiting", "background"], Priority::Live);
    let held = take(&queue);
    queue.add("held", Priority::Live); // added again: it too is handed out
    let mut shutdown = tokio::spawn({
        let queue = queue.clone();
        async move { queue.shutdown(Shutdown::Drain).await }
    });
    sleep(ms(1)).await;
    assert_eq!(*take(&queue).key(), "waiting"); // dropped: failed, but not retried any more
    assert_eq!(*take(&queue).key(), "background");
    assert!(poll(&queue).is_pending(), "a held key will come back: workers are still needed");
    sleep(ms(1000)).await;
    assert!(!shutdown.is_finished());
    held.done();
    let held = take(&queue);
    assert_eq!(*held.key(), "held");
    assert!(matches!(poll(&queue), Poll::Ready(None)), "nothing is left for this worker");
    sleep(ms(1000)).await;
    assert!(!shutdown.is_finished(), "a key is still held");
    held.done();
    (&mut shutdown).await.expect("the shutdown ends");
    assert!(matches!(poll(&queue), Poll::Ready(None)));
}

#[tokio::test(start_paused = true)]
async fn dropping_discards_what_waits_and_does_not_wait() {
    let queue = queue();
    queue.add_all(&["held", "waiting"], Priority::Live);
    let held = take(&queue);
    queue.add("held", Priority::Live);
    queue.shutdown(Shutdown::Drop).await;
    assert!(matches!(poll(&queue), Poll::Ready(None)));
    held.done();
    assert!(matches!(poll(&queue), Poll::Ready(None)), "what was added again is discarded too");
    assert_eq!(queue.stats().depth, 0);
}

#[tokio::test(start_paused = true)]
async fn delayed_keys_are_dropped_at_shutdown() {
    let queue = backing_off();
    queue.add("failing", Priority::Live);
    fail(&queue);
    queue.add_after("delayed", ms(10));
    queue.shutdown(Shutdown::Drain).await;
    sleep(ms(1000)).await;
    assert!(matches!(poll(&queue), Poll::Ready(None)));
}

#[tokio::test(start_paused = true)]
async fn verdicts_after_a_shutdown_schedule_nothing() {
    let queue = backing_off();
    queue.add_all(&["a", "b", "c"], Priority::Live);
    let held = [take(&queue), take(&queue), take(&queue)];
    let shutdown = queue.shutdown(Shutdown::Drain);
    let release = async {
        sleep(ms(1)).await;
        let [a, b, c] = held;
        a.retry();
        b.again();
        c.again_after(ms(10));
    };
    tokio::join!(shutdown, release);
    sleep(ms(1000)).await;
    assert_eq!((queue.len(), queue.stats().retries), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn getters_are_released_at_shutdown() {
    for how in [Shutdown::Drain, Shutdown::Drop] {
        let queue = queue();
        let workers: Vec<_> = (0..4)
            .map(|_| {
                let queue = queue.clone();
                tokio::spawn(async move { queue.next().await.is_none() })
            })
            .collect();
        sleep(ms(1)).await;
        queue.shutdown(how).await;
        for worker in workers {
            assert!(worker.await.expect("a worker ends"), "{how:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn during_a_drain_workers_stay_for_a_held_key_that_was_added_again() {
    let queue = queue();
    queue.add("a", Priority::Live);
    let item = take(&queue);
    queue.add("a", Priority::Live);
    let [first, second] = [(); 2].map(|()| {
        let queue = queue.clone();
        tokio::spawn(async move { queue.next().await.map(|item| *item.key()) })
    });
    let shutdown = tokio::spawn({
        let queue = queue.clone();
        async move { queue.shutdown(Shutdown::Drain).await }
    });
    sleep(ms(1)).await;
    assert!(!first.is_finished() && !second.is_finished());
    item.done();
    assert_eq!(first.await.expect("it ends"), Some("a"), "the key came back");
    assert_eq!(second.await.expect("it ends"), None, "and nothing else can");
    shutdown.await.expect("the shutdown ends");
}

#[tokio::test(start_paused = true)]
async fn dropping_ends_a_drain_that_waits() {
    let queue = queue();
    queue.add("stuck", Priority::Live);
    let stuck = take(&queue);
    let drain = tokio::spawn({
        let queue = queue.clone();
        async move { queue.shutdown(Shutdown::Drain).await }
    });
    sleep(ms(1)).await;
    queue.shutdown(Shutdown::Drop).await;
    drain.await.expect("the drain ends");
    stuck.done();
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_panics_releases_its_key_as_failed() {
    let queue = backing_off();
    queue.add("a", Priority::Live);
    let item = take(&queue);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _item = item;
        panic!("as a test must now and then");
    }));
    assert!(panicked.is_err());
    let (item, waited) = next_after(&queue).await;
    assert_eq!((item.failures(), waited), (1, ms(100)));
    item.done();
}

#[tokio::test(start_paused = true)]
async fn a_closed_queue_collects_and_hands_out_once_opened() {
    let queue = Queue::new("test", QueueOptions { gate: Gate::Closed, ..QueueOptions::default() });
    queue.add("a", Priority::Live);
    queue.add_after("b", ms(10));
    let worker = tokio::spawn({
        let queue = queue.clone();
        async move {
            let mut keys = Vec::new();
            while let Some(item) = queue.next().await {
                keys.push(*item.key());
                item.done();
            }
            keys
        }
    });
    sleep(Duration::from_secs(60)).await;
    assert_eq!(queue.len(), 2, "a standby keeps its queue warm");
    queue.open();
    queue.add_after("c", ms(10));
    sleep(ms(20)).await;
    queue.shutdown(Shutdown::Drain).await;
    assert_eq!(worker.await.expect("the worker ends"), ["a", "b", "c"]);
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_was_never_opened_drains_nothing() {
    let queue: Keys = Queue::new("test", QueueOptions { gate: Gate::Closed, ..QueueOptions::default() });
    queue.add("a", Priority::Live);
    queue.shutdown(Shutdown::Drain).await;
    assert!(matches!(poll(&queue), Poll::Ready(None)));
    queue.open();
    assert!(matches!(poll(&queue), Poll::Ready(None)), "opening does not undo a shutdown");
}
