//! Subscribers: when they begin, when they end, and what they may do wrong.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

#[tokio::test(start_paused = true)]
async fn a_late_subscriber_gets_the_state_first() {
    let mut script = Script::start();
    script.list(&["a@1", "b@2"], "3");
    settle().await;
    let (notes, subscription) = script.watch();
    script.event(Modified(object("a@4")));
    subscription.synced().await;
    settle().await;
    let seen = notes.take();
    assert_eq!(seen[..2], ["Added(initial) ns/a@1", "Added(initial) ns/b@2"]);
    assert_eq!(seen[2..], ["Updated ns/a@1->4"]);
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_added_between_store_and_delivery_sees_each_change_once() {
    let mut script = Script::start();
    script.list(&["a@1"], "1");
    settle().await;
    let mut watchers = Vec::new();
    for version in 2..40 {
        script.event(Modified(object(&format!("a@{version}"))));
        watchers.push(script.watch());
        tokio::task::yield_now().await;
    }
    settle().await;
    for (notes, _subscription) in watchers {
        let seen = notes.take();
        assert!(seen[0].starts_with("Added(initial)"), "{seen:?}");
        let mut last = seen[0].rsplit('@').next().unwrap().to_owned();
        for change in &seen[1..] {
            let (old, new) = change.rsplit('@').next().unwrap().split_once("->").unwrap();
            assert_eq!(old, last, "{seen:?}");
            new.clone_into(&mut last);
        }
        assert_eq!(last, "39");
    }
}

#[tokio::test(start_paused = true)]
async fn a_subscription_has_synced_when_its_handler_has_been_through_the_initial_state() {
    let mut script = Script::start();
    let count = Arc::new(AtomicUsize::new(0));
    let subscription = script.informer.subscribe({
        let count = Arc::clone(&count);
        move |_: &Change<Meta>| {
            count.fetch_add(1, Ordering::Relaxed);
        }
    });
    settle().await;
    assert!(!subscription.has_synced(), "there was no list yet");
    let names: Vec<_> = (0..1000).map(|n| format!("n{n}@1")).collect();
    script.list(&names.iter().map(String::as_str).collect::<Vec<_>>(), "1");
    subscription.synced().await;
    assert_eq!(count.load(Ordering::Relaxed), 1000);
}

#[tokio::test(start_paused = true)]
async fn a_subscription_is_synced_even_if_all_of_its_initial_state_goes_before_it_is_shown() {
    let mut script = Script::start();
    let (notes, subscription) = script.watch();
    script.list(&["a@1"], "1");
    script.event(Deleted(object("a@2")));
    subscription.synced().await;
    assert!(notes.take().is_empty());
}

#[tokio::test(start_paused = true)]
async fn dropping_a_subscription_ends_it() {
    let mut script = Script::start();
    let (notes, subscription) = script.watch();
    script.list(&["a@1"], "1");
    settle().await;
    assert_eq!(notes.take().len(), 1);
    drop(subscription);
    settle().await;
    script.event(Modified(object("a@2")));
    settle().await;
    assert!(notes.take().is_empty());
    assert!(script.informer.state().subscribers.is_empty());
}

#[tokio::test(start_paused = true)]
async fn closing_a_subscription_waits_until_the_handler_does_not_run() {
    let mut script = Script::start();
    let alive = Arc::new(());
    let subscription = script.informer.subscribe({
        let alive = Arc::clone(&alive);
        move |_: &Change<Meta>| drop(Arc::clone(&alive))
    });
    script.list(&["a@1"], "1");
    subscription.close().await;
    settle().await;
    assert_eq!(Arc::strong_count(&alive), 1, "the handler is gone");
}

#[tokio::test(start_paused = true)]
async fn a_detached_subscription_ends_with_the_informer() {
    let mut script = Script::start();
    let (notes, subscription) = script.watch();
    subscription.detach();
    script.list(&["a@1"], "1");
    settle().await;
    assert_eq!(notes.take().len(), 1);
    let Script { informer, sink, _stop: stop } = script;
    drop(stop);
    settle().await;
    drop(sink);
    assert!(informer.state().subscribers.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_that_panics_is_isolated_counted_and_goes_on() {
    let mut script = Script::start();
    let (others, _other) = script.watch();
    let seen = Notes::default();
    let options = SubscribeOptions { name: "nervous".into(), ..SubscribeOptions::default() };
    let subscription = script.informer.subscribe_with(options, {
        let mut note = seen.taker();
        move |change: &Change<Meta>| {
            assert_ne!(change.object().name, "bad");
            note(change);
        }
    });
    script.list(&["bad@1", "good@1"], "1");
    subscription.synced().await;
    script.event(Modified(object("bad@2")));
    script.event(Modified(object("good@3")));
    settle().await;
    assert_eq!(seen.take(), ["Added(initial) ns/good@1", "Updated ns/good@1->3"]);
    assert_eq!(others.take().len(), 4, "others see everything");
    let state = script.informer.state().subscribers.into_iter().find(|other| other.name == "nervous").unwrap();
    assert_eq!((state.panics, state.synced, state.pending), (2, true, 0));
}

#[tokio::test(start_paused = true)]
async fn resync_is_per_subscriber_and_shows_the_same_object_twice() {
    let mut script = Script::start();
    let (never, _one) = script.watch();
    let every_minute = Notes::default();
    let options = SubscribeOptions { resync: Some(Duration::from_secs(60)), ..SubscribeOptions::default() };
    let _two = script.informer.subscribe_with(options, every_minute.taker());
    script.list(&["a@1", "b@1"], "1");
    settle().await;
    every_minute.take();
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert_eq!(every_minute.take(), ["Resync ns/a@1", "Resync ns/b@1"]);
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(every_minute.take().len(), 4);
    assert_eq!(never.take().len(), 2, "the initial state and nothing else");
    script.informer.resync();
    settle().await;
    assert_eq!(never.take(), ["Resync ns/a@1", "Resync ns/b@1"], "unless all are asked to");
}

#[tokio::test(start_paused = true)]
async fn a_resync_after_no_time_or_after_all_time_never_comes() {
    for period in [Duration::ZERO, Duration::MAX] {
        let mut script = Script::start();
        let notes = Notes::default();
        let options = SubscribeOptions { resync: Some(period), ..SubscribeOptions::default() };
        let _subscription = script.informer.subscribe_with(options, notes.taker());
        script.list(&["a@1"], "1");
        tokio::time::sleep(Duration::from_secs(86_400)).await;
        assert_eq!(notes.take().len(), 1, "{period:?}: the initial state and nothing else");
        script.event(Modified(object("a@2")));
        settle().await;
        assert_eq!(notes.take(), ["Updated ns/a@1->2"], "{period:?}: and it still follows");
    }
}

#[tokio::test(start_paused = true)]
async fn a_resync_gives_way_to_news() {
    let mut script = Script::start();
    let (notes, _subscription) = script.watch();
    script.list(&["a@1", "b@1"], "1");
    settle().await;
    notes.take();
    script.informer.resync();
    script.event(Modified(object("a@2")));
    script.event(Deleted(object("b@3")));
    settle().await;
    assert_eq!(notes.take(), ["Updated ns/a@1->2", "Deleted ns/b@3"]);
}

#[tokio::test(start_paused = true)]
async fn an_informer_reports_its_state() {
    let mut script = Script::start();
    let options = SubscribeOptions { name: "gc".into(), ..SubscribeOptions::default() };
    let _subscription = script.informer.subscribe_with(options, |_: &Change<Meta>| {});
    script.list(&["a@1"], "5");
    settle().await;
    let state = script.informer.state();
    assert_eq!((state.objects, state.synced, state.queued), (1, true, 0));
    assert_eq!(state.reached, Some("5".into()));
    assert_eq!(state.target.to_string(), "things");
    assert_eq!(state.subscribers[0].name, "gc");
}

fn quick() -> SubscribeOptions {
    SubscribeOptions { name: "quick".into(), quick: true, ..SubscribeOptions::default() }
}

#[tokio::test(start_paused = true)]
async fn a_quick_subscriber_is_called_by_the_informer_and_by_its_own_task_where_there_is_much() {
    let mut script = Script::start();
    script.list(&["a@1", "b@1"], "1");
    settle().await;
    let notes = Notes::default();
    let tasks = Arc::new(Mutex::new(Vec::new()));
    let subscription = script.informer.subscribe_with(quick(), {
        let mut note = notes.taker();
        let tasks = Arc::clone(&tasks);
        move |change: &Change<Meta>| {
            tasks.lock().push(tokio::task::id());
            note(change);
        }
    });
    script.event(Modified(object("a@2")));
    subscription.synced().await;
    settle().await;
    assert_eq!(notes.take(), ["Added(initial) ns/a@1", "Added(initial) ns/b@1", "Updated ns/a@1->2"]);
    let own = std::mem::take(&mut *tasks.lock())[0];
    script.event(Modified(object("a@3")));
    script.event(Deleted(object("b@4")));
    settle().await;
    assert_eq!(notes.take(), ["Updated ns/a@2->3", "Deleted ns/b@4"]);
    assert!(std::mem::take(&mut *tasks.lock()).iter().all(|task| *task != own), "in the informer's task");
    let names: Vec<_> = (0..1000).map(|n| format!("n{n}@5")).collect();
    script.list(&names.iter().map(String::as_str).collect::<Vec<_>>(), "5");
    settle().await;
    assert_eq!(notes.take().len(), 1001, "a thousand are new, one is deleted");
    assert!(tasks.lock().iter().all(|task| *task == own), "in its own task, which gives way to others");
}

#[tokio::test(start_paused = true)]
async fn a_quick_subscriber_that_panics_is_isolated_counted_and_goes_on() {
    let mut script = Script::start();
    let (others, _other) = script.watch();
    let seen = Notes::default();
    let _subscription = script.informer.subscribe_with(quick(), {
        let mut note = seen.taker();
        move |change: &Change<Meta>| {
            assert_ne!(change.object().name, "bad");
            note(change);
        }
    });
    script.list(&["good@1"], "1");
    settle().await;
    script.event(Added(object("bad@2")));
    script.event(Modified(object("good@3")));
    settle().await;
    assert_eq!(seen.take(), ["Added(initial) ns/good@1", "Updated ns/good@1->3"]);
    assert_eq!(others.take().len(), 3, "others see everything");
    let state = script.informer.state().subscribers.into_iter().find(|other| other.name == "quick").unwrap();
    assert_eq!((state.panics, state.pending), (1, 0));
}

/// On several threads, and so on the real clock.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn closing_a_quick_subscription_waits_until_the_handler_does_not_run() {
    let mut script = Script::start();
    let (began, begins) = std::sync::mpsc::channel();
    let (end, ends) = std::sync::mpsc::channel();
    let subscription = script.informer.subscribe_with(quick(), move |change: &Change<Meta>| {
        if !change.is_initial() {
            began.send(()).unwrap();
            ends.recv().unwrap();
        }
    });
    script.list(&["a@1"], "1");
    subscription.synced().await;
    script.event(Modified(object("a@2")));
    begins.recv().unwrap();
    let mut closing = tokio::spawn(subscription.close());
    let closed = tokio::time::timeout(Duration::from_millis(50), &mut closing).await;
    assert!(closed.is_err(), "the handler still runs");
    end.send(()).unwrap();
    closing.await.unwrap();
    script.event(Modified(object("a@3")));
    assert!(begins.recv().is_err(), "the handler is gone");
}
