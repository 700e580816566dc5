//! Guarantee 5: failures, and what events do to them.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_failed_key_waits_longer_each_time() {
    let queue = backing_off();
    queue.add("a", Priority::Live);
    fail(&queue);
    for (failures, want) in [(1, 100), (2, 200), (3, 400), (4, 800), (5, 1600)] {
        let (item, waited) = next_after(&queue).await;
        assert_eq!((item.failures(), waited), (failures, ms(want)));
        item.retry();
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_event_brings_a_backing_off_key_forward() {
    let queue = queue_with(Fixed(Duration::from_secs(1000)));
    queue.add("a", Priority::Live);
    fail(&queue);
    sleep(Duration::from_secs(10)).await;
    queue.add("a", Priority::Live);
    take(&queue).done();
    sleep(Duration::from_secs(2000)).await;
    assert_eq!(queue.len(), 0, "the retry was met by the event");
}

#[tokio::test(start_paused = true)]
async fn an_event_comes_no_sooner_than_one_second_after_the_last_start() {
    let queue = queue_with(Fixed(Duration::from_secs(1000)));
    queue.add("a", Priority::Live);
    let item = take(&queue);
    sleep(ms(300)).await; // the attempt takes its time
    item.retry();
    queue.add("a", Priority::Live);
    let (item, waited) = next_after(&queue).await;
    assert_eq!(waited, ms(700));
    item.done();
}

#[tokio::test(start_paused = true)]
async fn an_event_comes_no_sooner_than_the_back_off_after_the_last_start() {
    let queue = backing_off();
    queue.add("a", Priority::Live);
    let item = take(&queue);
    sleep(ms(30)).await;
    item.retry(); // due in 100 ms
    queue.add("a", Priority::Live);
    let (item, waited) = next_after(&queue).await;
    assert_eq!(waited, ms(70));
    item.done();
}

#[tokio::test(start_paused = true)]
async fn an_event_during_the_attempt_that_fails_counts_as_new() {
    let queue = queue_with(Fixed(Duration::from_secs(1000)));
    queue.add("a", Priority::Live);
    let item = take(&queue);
    queue.add("a", Priority::Live);
    sleep(ms(300)).await;
    item.retry();
    let (item, waited) = next_after(&queue).await;
    assert_eq!(waited, ms(700), "after its rest, not after its back-off");
    queue.add("a", Priority::Live);
    sleep(Duration::from_secs(5)).await;
    item.retry();
    assert_eq!(queue.len(), 1, "and at once if the attempt itself took longer than the rest");
}

#[tokio::test(start_paused = true)]
async fn a_delayed_add_too_comes_no_sooner_than_the_rest() {
    let queue = queue_with(Fixed(Duration::from_secs(1000)));
    queue.add("a", Priority::Live);
    fail(&queue);
    queue.add_after("a", ms(10));
    let (item, waited) = next_after(&queue).await;
    assert_eq!(waited, Duration::from_secs(1));
    queue.add_after("a", ms(10)); // while held, before the failure is known
    item.retry();
    let (item, waited) = next_after(&queue).await;
    assert_eq!(waited, Duration::from_secs(1));
    item.done();
}

/// kubernetes/kubernetes issue 132805: events that arrive while a key backs off must not take it to 1000 s.
#[tokio::test(start_paused = true)]
async fn a_failure_before_the_previous_back_off_deadline_does_not_raise_the_exponent() {
    let queue = queue_with(Exponential::new(Duration::from_secs(60), Duration::from_secs(1000)));
    let start = Instant::now();
    queue.add("a", Priority::Live);
    fail(&queue);
    for _ in 0..20 {
        sleep(Duration::from_secs(2)).await;
        queue.add("a", Priority::Live);
        let item = take(&queue);
        assert_eq!(item.failures(), 1);
        item.retry();
        assert_eq!(queue.num_requeues(&"a"), 1);
    }
    // The deadline has not moved either: the events added attempts and changed nothing else.
    let item = queue.next().await.expect("the retry comes");
    assert_eq!(start.elapsed(), Duration::from_secs(60));
    item.retry();
    assert_eq!(queue.num_requeues(&"a"), 2);
    queue.next().await.expect("the next retry comes").done();
    assert_eq!(start.elapsed(), Duration::from_secs(60 + 120));
}

#[tokio::test(start_paused = true)]
async fn an_early_failure_shortly_before_the_deadline_still_rests() {
    let queue = backing_off();
    queue.add("a", Priority::Live);
    let item = take(&queue);
    sleep(ms(30)).await;
    item.retry(); // due at 130 ms, not before 100 ms
    queue.add("a", Priority::Live);
    let (item, _) = next_after(&queue).await; // at 100 ms
    item.retry(); // early: the deadline is still 130 ms, but the next start is not before 200 ms
    assert_eq!(queue.num_requeues(&"a"), 1);
    let (item, waited) = next_after(&queue).await;
    assert_eq!(waited, ms(100));
    item.done();
}

#[tokio::test(start_paused = true)]
async fn a_key_that_succeeded_has_no_last_start_to_rest_from() {
    let queue = queue_with(Fixed(Duration::from_secs(1000)));
    queue.add("a", Priority::Live);
    let item = take(&queue);
    queue.add_after("a", ms(500));
    item.done();
    queue.add_rate_limited("a");
    queue.add("a", Priority::Live);
    assert_eq!(take_all(&queue), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn an_early_failure_uses_up_no_token() {
    let queue = Queue::new("test", QueueOptions::default());
    queue.add_rate_limited(0_u32);
    for _ in 0..200 {
        queue.add_rate_limited(0_u32); // before the deadline
    }
    for key in 1..100 {
        assert_eq!(queue.add_rate_limited(key), ms(5));
    }
    assert_eq!(queue.add_rate_limited(100), ms(100), "the hundred-and-first retry waits for its token");
}

#[tokio::test(start_paused = true)]
async fn forget_resets_num_requeues() {
    let queue = backing_off();
    assert_eq!(queue.num_requeues(&"a"), 0);
    queue.add("a", Priority::Live);
    for requeues in 1..=3 {
        queue.next().await.expect("there is a key").retry();
        assert_eq!(queue.num_requeues(&"a"), requeues);
    }
    queue.forget(&"a");
    assert_eq!(queue.num_requeues(&"a"), 0);
    let (item, waited) = next_after(&queue).await;
    assert_eq!(waited, ms(400), "the pending retry stays pending");
    item.retry();
    let (item, waited) = next_after(&queue).await;
    assert_eq!(waited, ms(100), "and its back-off begins anew");
    item.done();
    assert_eq!(queue.num_requeues(&"a"), 0, "success forgets too");
}

#[tokio::test(start_paused = true)]
async fn an_event_does_not_wait_for_the_rest_after_an_attempt_that_was_forgotten() {
    let queue = backing_off();
    queue.add("a", Priority::Live);
    fail(&queue);
    queue.forget(&"a"); // its retry is still pending
    queue.add_rate_limited("a");
    queue.add("a", Priority::Live);
    let (item, waited) = next_after(&queue).await;
    assert_eq!(waited, ms(0));
    item.done();
}

#[tokio::test(start_paused = true)]
async fn giving_up_after_n_failures_is_policy() {
    let queue = backing_off();
    queue.add("a", Priority::Live);
    let mut attempts = 0;
    loop {
        let item = queue.next().await.expect("there is a key");
        attempts += 1;
        if item.failures() < 5 {
            item.retry();
        } else {
            item.give_up();
            break;
        }
    }
    assert_eq!(attempts, 6, "the first attempt and five retries");
    sleep(Duration::from_secs(3600)).await;
    assert_eq!((queue.len(), queue.num_requeues(&"a"), queue.stats().given_up), (0, 0, 1));
    queue.add("a", Priority::Live);
    assert_eq!(take(&queue).failures(), 0, "a new event starts afresh");
}

#[tokio::test(start_paused = true)]
async fn again_is_rate_limited_and_no_failure() {
    let queue = backing_off();
    queue.add("a", Priority::Live);
    take(&queue).again();
    for (requeues, want) in [(1, 100), (2, 200), (3, 400)] {
        assert_eq!(queue.num_requeues(&"a"), requeues);
        let (item, waited) = next_after(&queue).await;
        assert_eq!((item.failures(), waited), (0, ms(want)));
        item.again();
    }
}

#[tokio::test(start_paused = true)]
async fn again_after_looks_again_then_and_forgets_the_failures() {
    let queue = backing_off();
    queue.add("a", Priority::Live);
    fail(&queue);
    queue.next().await.expect("the retry comes").again_after(Duration::from_secs(300));
    assert_eq!(queue.num_requeues(&"a"), 0);
    let (item, waited) = next_after(&queue).await;
    assert_eq!(waited, Duration::from_secs(300));
    item.again_after(Duration::from_secs(300));
    queue.add("a", Priority::Live);
    assert_eq!(take_all(&queue), ["a"], "an event does not wait");
}

#[tokio::test(start_paused = true)]
async fn a_parked_key_is_not_retried_not_forgotten_and_woken_at_once() {
    let queue = backing_off();
    queue.add("a", Priority::Live);
    fail(&queue);
    queue.next().await.expect("the retry comes").park();
    sleep(Duration::from_secs(3600)).await;
    assert_eq!((queue.len(), queue.num_requeues(&"a")), (0, 1));
    queue.add("a", Priority::Live);
    let item = take(&queue);
    assert_eq!(item.failures(), 1);
    item.retry(); // backs off 200 ms, rests as long
    sleep(ms(200)).await;
    take(&queue).park();
    queue.add("a", Priority::Live);
    take(&queue).done();
}

#[tokio::test(start_paused = true)]
async fn add_rate_limited_says_how_long_the_key_waits() {
    let queue = backing_off();
    assert_eq!(queue.add_rate_limited("a"), ms(100));
    sleep(ms(30)).await;
    assert_eq!(queue.add_rate_limited("a"), ms(70), "still the same back-off");
    queue.add_after("a", ms(10));
    assert_eq!(queue.add_rate_limited("a"), ms(10), "the earliest time wins");
    queue.add("a", Priority::Live);
    assert_eq!(queue.add_rate_limited("a"), Duration::ZERO, "it is ready");
    let item = take(&queue);
    sleep(ms(100)).await;
    assert_eq!(queue.add_rate_limited("a"), ms(200), "a held key can be delayed too");
    item.park();
    let (item, waited) = next_after(&queue).await;
    assert_eq!(waited, ms(200));
    item.done();
}
