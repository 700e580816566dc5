//! Guarantees 1, 2, 3, 4 and 7: who is next, how often, and when.

use super::*;

#[tokio::test(start_paused = true)]
async fn fair_first_added_first_processed_within_a_priority() {
    let queue = queue();
    for key in ["c", "a", "b"] {
        queue.add(key, Priority::Live);
    }
    assert_eq!(take_all(&queue), ["c", "a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn fair_a_delayed_key_stands_in_line_from_the_time_it_is_due() {
    let queue = queue();
    queue.add_after("due second", ms(20));
    queue.add_after("due first", ms(10));
    queue.add_after("due second too", ms(20));
    queue.add("added before", Priority::Live);
    sleep(ms(30)).await;
    queue.add("added after", Priority::Live);
    assert_eq!(take_all(&queue), ["added before", "due first", "due second", "due second too", "added after"]);
}

#[tokio::test(start_paused = true)]
async fn stingy_added_many_times_before_processing_is_processed_once() {
    let queue = queue();
    for _ in 0..10 {
        queue.add("a", Priority::Live);
        queue.add_all(&["a", "b", "a"], Priority::Live);
    }
    assert_eq!(queue.len(), 2);
    assert_eq!(take_all(&queue), ["a", "b"]);
    assert_eq!(queue.stats().adds, 2);
}

#[tokio::test(start_paused = true)]
async fn single_holder_never_two_workers_on_one_key() {
    let queue = queue();
    queue.add("a", Priority::Live);
    let item = take(&queue);
    queue.add("a", Priority::Live);
    assert!(poll(&queue).is_pending(), "the key is held");
    queue.add_after("a", ms(1));
    queue.add_rate_limited("a");
    sleep(ms(1000)).await;
    assert!(poll(&queue).is_pending(), "the key is still held");
    item.done();
    assert_eq!(take_all(&queue), ["a"], "once for all of the adds");
}

#[tokio::test(start_paused = true)]
async fn single_holder_added_while_processing_is_processed_again_after() {
    type Verdict = fn(Held<&'static str>);
    let verdicts: [(&str, Verdict); 4] = [
        ("done", Held::done),
        ("again_after", |item| item.again_after(Duration::from_secs(3600))),
        ("give_up", Held::give_up),
        ("park", Held::park),
    ];
    for (name, verdict) in verdicts {
        let queue = queue();
        queue.add("a", Priority::Live);
        let item = take(&queue);
        for _ in 0..3 {
            queue.add("a", Priority::Live);
        }
        assert_eq!(queue.stats().depth, 1, "{name}: it counts as waiting");
        queue.add("b", Priority::Live);
        verdict(item);
        assert_eq!(take_all(&queue), ["b", "a"], "{name}: it joins the end of the line");
        sleep(Duration::from_secs(7200)).await;
        assert_eq!(take_all(&queue), [""; 0], "{name}: and that was all");
    }
}

#[tokio::test(start_paused = true)]
async fn a_delayed_add_keeps_the_earliest_time() {
    for delays in [[50, 20, 90], [20, 50, 90], [90, 50, 20]] {
        let queue = queue();
        for delay in delays {
            queue.add_after("a", ms(delay));
        }
        let (item, waited) = next_after(&queue).await;
        assert_eq!(waited, ms(20), "{delays:?}");
        item.done();
        sleep(ms(200)).await;
        assert_eq!(queue.len(), 0, "{delays:?}: the later adds are met by the earliest");
    }
}

#[tokio::test(start_paused = true)]
async fn an_immediate_add_takes_the_place_of_a_delayed_one() {
    let queue = queue();
    queue.add_after("a", ms(50));
    queue.add("a", Priority::Live);
    queue.add_after("a", ms(20)); // waits already
    assert_eq!(take_all(&queue), ["a"]);
    sleep(ms(100)).await;
    assert_eq!(queue.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_delay_asked_for_while_the_key_is_held_is_kept() {
    let queue = queue();
    queue.add("a", Priority::Live);
    let item = take(&queue);
    queue.add_after("a", ms(50));
    item.done();
    let (item, waited) = next_after(&queue).await;
    assert_eq!(waited, ms(50));
    item.done();
}

#[tokio::test(start_paused = true)]
async fn no_delay_is_an_immediate_add() {
    let queue = queue_with(Fixed(Duration::ZERO));
    queue.add_after("a", Duration::ZERO);
    assert_eq!(queue.add_rate_limited("b"), Duration::ZERO);
    assert_eq!(take_all(&queue), ["a", "b"]);
    queue.add("a", Priority::Live);
    take(&queue).again_after(Duration::ZERO);
    assert_eq!(take_all(&queue), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn no_delay_is_too_long() {
    let queue = queue_with(Fixed(Duration::MAX));
    queue.add_after("a", Duration::MAX);
    assert!(queue.add_rate_limited("b") > Duration::from_secs(365 * 24 * 3600));
    sleep(Duration::from_secs(3600)).await;
    assert_eq!(queue.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn rate_limits_per_key_and_for_all_the_larger_wins() {
    let queue = Queue::new("test", QueueOptions::default());
    // The bucket lets a hundred keys pass; each key's own first delay is 5 ms.
    let delays: Vec<Duration> = (0..102).map(|key: u32| queue.add_rate_limited(key)).collect();
    assert!(delays[..100].iter().all(|&delay| delay == ms(5)));
    assert_eq!(delays[100..], [ms(100), ms(200)]);
}

#[tokio::test(start_paused = true)]
async fn background_keys_run_behind_live_ones_one_in_eight() {
    let queue = queue();
    let live = ["l0", "l1", "l2", "l3", "l4", "l5", "l6", "l7", "l8", "l9", "l10", "l11", "l12", "l13", "l14"];
    queue.add_all(&["b0", "b1", "b2", "b3"], Priority::Background);
    queue.add_all(&live, Priority::Live);
    let order = take_all(&queue);
    assert_eq!(order[..8], ["l0", "l1", "l2", "l3", "l4", "l5", "l6", "b0"]);
    assert_eq!(order[8..16], ["l7", "l8", "l9", "l10", "l11", "l12", "l13", "b1"]);
    assert_eq!(order[16..], ["l14", "b2", "b3"]);
}

#[tokio::test(start_paused = true)]
async fn a_background_key_added_live_moves_and_never_back() {
    let queue = queue();
    queue.add_all(&["a", "b"], Priority::Background);
    queue.add("c", Priority::Live);
    queue.add("b", Priority::Live);
    queue.add("b", Priority::Background);
    queue.add("c", Priority::Background);
    assert_eq!(take_all(&queue), ["c", "b", "a"]);
    assert_eq!(queue.stats().adds, 3, "a move is not an add");
}

#[tokio::test(start_paused = true)]
async fn a_retried_key_keeps_its_priority() {
    let queue = queue_with(Fixed(ms(10)));
    queue.add("background", Priority::Background);
    fail(&queue);
    sleep(ms(10)).await;
    queue.add("live", Priority::Live);
    assert_eq!(take_all(&queue), ["live", "background"]);

    queue.add("moved", Priority::Background);
    queue.add("moved", Priority::Live);
    fail(&queue);
    queue.add("background", Priority::Background);
    sleep(ms(10)).await;
    assert_eq!(take_all(&queue), ["moved", "background"]);
}
