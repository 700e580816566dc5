//! The shell: workers that wait, alarms, and adds from anywhere.

use super::*;

/// A worker in a task of its own that takes one key and says when.
fn worker(queue: &Keys) -> tokio::task::JoinHandle<(&'static str, Duration)> {
    let queue = queue.clone();
    tokio::spawn(async move {
        let (item, waited) = next_after(&queue).await;
        let key = *item.key();
        item.done();
        (key, waited)
    })
}

#[tokio::test(start_paused = true)]
async fn workers_that_wait_get_one_key_each_in_the_order_they_came() {
    let queue = queue();
    let mut workers = Vec::new();
    for _ in 0..3 {
        workers.push(worker(&queue));
        sleep(ms(1)).await;
    }
    queue.add_all(&["a", "b", "c"], Priority::Live);
    for (worker, want) in workers.into_iter().zip(["a", "b", "c"]) {
        assert_eq!(worker.await.expect("it gets a key").0, want);
    }
}

#[tokio::test(start_paused = true)]
async fn delayed_keys_wake_workers_without_a_background_task() {
    let queue = queue();
    let workers = [worker(&queue), worker(&queue), worker(&queue)];
    sleep(ms(1)).await;
    queue.add_after("third", ms(300));
    queue.add_after("first", ms(100)); // the alarm is set anew
    queue.add_after("second", ms(200));
    let mut got = Vec::new();
    for worker in workers {
        got.push(worker.await.expect("it gets a key"));
    }
    got.sort_by_key(|&(_, waited)| waited);
    assert_eq!(got, [("first", ms(101)), ("second", ms(201)), ("third", ms(301))]);
}

#[tokio::test(start_paused = true)]
async fn an_event_brings_the_alarm_forward() {
    let queue = queue_with(Fixed(Duration::from_secs(1000)));
    queue.add("a", Priority::Live);
    fail(&queue);
    let worker = worker(&queue);
    sleep(ms(400)).await;
    queue.add("a", Priority::Live);
    assert_eq!(worker.await.expect("it gets the key"), ("a", Duration::from_secs(1)));
}

#[tokio::test(start_paused = true)]
async fn a_worker_cancelled_on_its_way_passes_the_key_on() {
    let queue = queue();
    let mut cancelled = Box::pin(queue.next());
    assert!(Pin::new(&mut cancelled).poll(&mut Context::from_waker(Waker::noop())).is_pending());
    let second = worker(&queue);
    sleep(ms(1)).await;
    queue.add("a", Priority::Live); // wakes the first
    drop(cancelled);
    assert_eq!(second.await.expect("it gets the key").0, "a");
}

#[tokio::test(start_paused = true)]
async fn a_worker_cancelled_while_it_minds_the_alarm_passes_that_on() {
    let queue = queue();
    queue.add_after("a", ms(100));
    let mut cancelled = Box::pin(queue.next());
    assert!(Pin::new(&mut cancelled).poll(&mut Context::from_waker(Waker::noop())).is_pending());
    let second = worker(&queue);
    sleep(ms(1)).await;
    drop(cancelled);
    assert_eq!(second.await.expect("it gets the key"), ("a", ms(100)));
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_takes_a_key_hands_the_alarm_on() {
    let queue = queue();
    queue.add_after("later", ms(100));
    let first = worker(&queue); // minds the alarm
    let second = worker(&queue);
    sleep(ms(1)).await;
    queue.add("now", Priority::Live);
    assert_eq!(first.await.expect("it gets a key"), ("now", ms(1)));
    assert_eq!(second.await.expect("it gets a key"), ("later", ms(100)));
}

#[tokio::test(start_paused = true)]
async fn keys_due_together_are_shared_among_the_workers() {
    let queue = queue();
    let workers = [worker(&queue), worker(&queue)];
    queue.add_after("a", ms(100));
    queue.add_after("b", ms(100));
    for (worker, want) in workers.into_iter().zip(["a", "b"]) {
        assert_eq!(worker.await.expect("it gets a key"), (want, ms(100)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_busy_queue_lets_other_tasks_run() {
    let queue = queue();
    queue.add("a", Priority::Live);
    let busy = tokio::spawn({
        let queue = queue.clone();
        async move {
            while let Some(item) = queue.next().await {
                queue.add("a", Priority::Live);
                item.done();
            }
        }
    });
    tokio::task::yield_now().await; // would not come back
    queue.shutdown(Shutdown::Drop).await;
    busy.await.expect("it ends");
}

#[test]
fn adding_needs_no_runtime() {
    let queue = queue();
    let threads: Vec<_> = ["a", "b"]
        .into_iter()
        .map(|key| {
            let queue = queue.clone();
            std::thread::spawn(move || {
                queue.add(key, Priority::Live);
                queue.add_after(key, ms(1));
                queue.add_rate_limited(key);
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("it does not panic");
    }
    assert_eq!(queue.len(), 2);
    assert_eq!(take_all(&queue).len(), 2);
}

#[test]
fn a_queue_and_its_holds_can_go_anywhere() {
    fn check<T: Send + Sync>() {}
    check::<Queue<String>>();
    check::<Held<String>>();
    fn check_future<T: Send>(_: T) {}
    check_future(queue().next());
}
