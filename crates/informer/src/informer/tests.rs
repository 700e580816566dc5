//! The guarantees of the module, one by one, with a script in the place of a server.

mod subscribers;

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use steersman_base::Meta;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::*;
use crate::sink::Sink;
use crate::sink::WatchEvent::{self, Added, Deleted, Modified};
use crate::test_objects::{key, object, objects, target};

/// An informer that a script feeds.
struct Script {
    informer: SharedInformer<Meta>,
    sink: InformerSink<Meta>,
    _stop: DropGuard,
}

/// What a subscriber received, as text.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

impl Script {
    fn start() -> Self {
        let stop = CancellationToken::new();
        let informer = SharedInformer::new(target(), stop.clone());
        tokio::spawn({
            let informer = informer.clone();
            let stop = stop.clone();
            async move { informer.run(&stop).await }
        });
        Self { sink: informer.sink(), informer, _stop: stop.drop_guard() }
    }

    fn list(&mut self, texts: &[&str], version: &str) {
        self.sink.listing();
        self.sink.replace(objects(texts), version.into());
    }

    fn event(&mut self, event: WatchEvent<Meta>) {
        self.sink.apply(event);
    }

    fn watch(&self) -> (Notes, Subscription) {
        let notes = Notes::default();
        (notes.clone(), self.informer.subscribe(notes.taker()))
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = self.informer.lister().list().iter().map(|held| held.name.to_string()).collect();
        names.sort();
        names
    }
}

impl Notes {
    fn taker(&self) -> impl FnMut(&Change<Meta>) + Send + 'static {
        let notes = Arc::clone(&self.0);
        move |change| notes.lock().push(format!("{change:?}"))
    }

    /// What was noted since the last time.
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock())
    }
}

/// Lets every task run until all of them wait. Time is paused, so this takes none.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

#[tokio::test(start_paused = true)]
async fn guarantee_1_after_sync_the_store_equals_the_list_and_subscribers_run_after_it() {
    let mut script = Script::start();
    let lister = script.informer.lister();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let subscription = script.informer.subscribe({
        let seen = Arc::clone(&seen);
        move |_: &Change<Meta>| seen.lock().push(lister.len())
    });
    assert!(!script.informer.has_synced());
    script.list(&["a@3", "b@5", "c@4"], "7");
    assert_eq!(script.informer.lister().len(), 0, "a list is not there bit by bit");
    script.informer.synced().await;
    subscription.synced().await;
    assert_eq!(script.names(), ["a", "b", "c"]);
    assert_eq!(script.informer.reached(), Some("7".into()));
    assert_eq!(*seen.lock(), [3, 3, 3], "whoever receives the first object finds all of them");
}

#[tokio::test(start_paused = true)]
async fn guarantee_1_an_empty_list_is_a_list() {
    let mut script = Script::start();
    let (notes, subscription) = script.watch();
    script.list(&[], "7");
    script.informer.synced().await;
    subscription.synced().await;
    assert_eq!(script.informer.reached(), Some("7".into()));
    assert!(notes.take().is_empty());
}

#[tokio::test(start_paused = true)]
async fn guarantee_2_a_subscriber_sees_a_subsequence_of_states_in_order_and_always_the_last() {
    let mut script = Script::start();
    let (notes, _subscription) = script.watch();
    script.list(&["a@1"], "1");
    settle().await;
    script.event(Modified(object("a@2")));
    settle().await;
    for version in 3..9 {
        script.event(Modified(object(&format!("a@{version}"))));
    }
    settle().await;
    assert_eq!(notes.take(), ["Added(initial) ns/a@1", "Updated ns/a@1->2", "Updated ns/a@2->8"]);
}

#[tokio::test(start_paused = true)]
async fn guarantee_2_old_is_what_this_subscriber_saw_last() {
    let mut script = Script::start();
    script.list(&["a@1"], "1");
    settle().await;
    let (early, _one) = script.watch();
    settle().await;
    script.event(Modified(object("a@2")));
    settle().await;
    let (late, _two) = script.watch();
    settle().await;
    script.event(Modified(object("a@3")));
    settle().await;
    assert_eq!(early.take(), ["Added(initial) ns/a@1", "Updated ns/a@1->2", "Updated ns/a@2->3"]);
    assert_eq!(late.take(), ["Added(initial) ns/a@2", "Updated ns/a@2->3"]);
}

#[tokio::test(start_paused = true)]
async fn guarantee_2_coalescing_never_crosses_a_uid() {
    let mut script = Script::start();
    let (notes, _subscription) = script.watch();
    script.list(&["a#1@1"], "1");
    settle().await;
    notes.take();
    script.event(Modified(object("a#1@2")));
    script.event(Deleted(object("a#1@3")));
    script.event(Added(object("a#2@4")));
    script.event(Modified(object("a#2@5")));
    settle().await;
    assert_eq!(notes.take(), ["Updated ns/a@1->2", "Deleted ns/a@3", "Added ns/a@5"]);
}

#[tokio::test(start_paused = true)]
async fn guarantee_2_an_object_it_never_saw_and_that_is_gone_is_not_shown() {
    let mut script = Script::start();
    let (notes, _subscription) = script.watch();
    script.list(&["a#1@1"], "1");
    settle().await;
    notes.take();
    script.event(Added(object("b@2")));
    script.event(Deleted(object("b@3")));
    script.event(Deleted(object("a#1@4")));
    script.event(Added(object("a#2@5")));
    script.event(Deleted(object("a#2@6")));
    settle().await;
    assert_eq!(notes.take(), ["Deleted ns/a@4"], "neither b nor the second a");
}

#[tokio::test(start_paused = true)]
async fn guarantee_3_gone_while_disconnected_is_deleted_with_the_last_known_state_and_marked_missed() {
    let mut script = Script::start();
    let (notes, _subscription) = script.watch();
    script.list(&["gone@1", "kept@1", "reborn#1@1", "changed@1"], "1");
    settle().await;
    notes.take();
    script.list(&["kept@1", "reborn#2@5", "changed@6", "new@7"], "8");
    settle().await;
    assert_eq!(
        notes.take(),
        [
            "Deleted(missed) ns/reborn@1",
            "Added ns/reborn@5",
            "Updated ns/changed@1->6",
            "Added ns/new@7",
            "Deleted(missed) ns/gone@1",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn guarantee_3_a_store_seeded_with_an_object_that_the_first_list_lacks_yields_deleted_missed() {
    let mut script = Script::start();
    let (notes, _subscription) = script.watch();
    script.event(Added(object("seeded@1")));
    settle().await;
    script.list(&["listed@2"], "3");
    settle().await;
    assert_eq!(notes.take(), ["Added ns/seeded@1", "Added(initial) ns/listed@2", "Deleted(missed) ns/seeded@1"]);
}

#[tokio::test(start_paused = true)]
async fn guarantee_4_unchanged_objects_keep_their_allocation_over_a_relist() {
    let mut script = Script::start();
    let (notes, _subscription) = script.watch();
    script.list(&["same@1", "changed@1"], "1");
    settle().await;
    notes.take();
    let before = script.informer.lister().get(&key("same")).unwrap();
    script.list(&["same@1", "changed@2"], "2");
    settle().await;
    let after = script.informer.lister().get(&key("same")).unwrap();
    assert!(Arc::ptr_eq(&before, &after));
    assert_eq!(notes.take(), ["Updated ns/changed@1->2"], "and nobody is notified of them");
}

#[tokio::test(start_paused = true)]
async fn guarantee_4_the_reflector_learns_what_is_known_pending_or_stored() {
    let mut script = Script::start();
    script.list(&["stored@1", "gone@1"], "1");
    settle().await;
    script.event(Added(object("queued@2")));
    script.event(Deleted(object("gone@3")));
    assert!(script.sink.known(&key("stored")).is_some());
    assert!(script.sink.known(&key("queued")).is_some());
    assert!(script.sink.known(&key("gone")).is_none());
    assert!(script.sink.known(&key("never")).is_none());
}

#[tokio::test(start_paused = true)]
async fn guarantee_5_slow_subscribers_never_grow_memory() {
    let mut script = Script::start();
    // The subscriber's task stands still as long as this one does not yield to it: what comes meanwhile is its backlog.
    script.list(&["a@1", "b@1"], "1");
    let (notes, _subscription) = script.watch();
    settle().await;
    notes.take();
    let held = Arc::downgrade(&script.informer.lister().get(&key("a")).unwrap());
    for version in 2..2000 {
        script.event(Modified(object(&format!("a@{version}"))));
        script.event(Added(object(&format!("passing-{version}@{version}"))));
        script.event(Deleted(object(&format!("passing-{version}@{version}"))));
        assert!(
            script
                .informer
                .0
                .fifo
                .try_pop(usize::MAX, |popped| {
                    script.informer.take_in(popped);
                    Ok::<_, std::convert::Infallible>(())
                })
                .is_some()
        );
        let pending = script.informer.state().subscribers[0].pending;
        assert!(pending <= 2, "{pending} entries for two objects");
    }
    assert!(held.upgrade().is_some(), "what the subscriber saw last is kept for it");
    settle().await;
    assert_eq!(notes.take(), ["Updated ns/a@1->1999"]);
    assert!(held.upgrade().is_none(), "and goes when it has seen the next");
}

#[tokio::test(start_paused = true)]
async fn guarantee_6_the_store_knows_the_version_it_has_reached_and_bookmarks_advance_it() {
    let mut script = Script::start();
    assert_eq!(script.informer.reached(), None);
    script.list(&["a@3"], "5");
    settle().await;
    assert_eq!(script.informer.reached(), Some("5".into()));
    script.event(Modified(object("a@8")));
    settle().await;
    assert_eq!(script.informer.reached(), Some("8".into()));
    script.sink.reached("11".into());
    settle().await;
    assert_eq!(script.informer.reached(), Some("11".into()));
    script.event(Deleted(object("a@12")));
    settle().await;
    assert_eq!(script.informer.reached(), Some("12".into()), "a deletion is an event like any other");
}

#[tokio::test(start_paused = true)]
async fn guarantee_7_objects_are_shared() {
    let mut script = Script::start();
    let seen = Arc::new(Mutex::new(None));
    let _subscription = script.informer.subscribe({
        let seen = Arc::clone(&seen);
        move |change: &Change<Meta>| *seen.lock() = Some(Arc::clone(change.object()))
    });
    script.list(&["a@1"], "1");
    settle().await;
    let stored = script.informer.lister().get(&key("a")).unwrap();
    assert!(Arc::ptr_eq(&stored, seen.lock().as_ref().unwrap()));
}

#[tokio::test(start_paused = true)]
async fn duplicate_and_out_of_order_events_change_nothing() {
    let mut script = Script::start();
    let (notes, _subscription) = script.watch();
    script.list(&["a#1@5", "b#1@6"], "10");
    settle().await;
    notes.take();
    for event in [
        Added(object("a#1@5")),
        Modified(object("a#1@4")),
        Modified(object("b#0@3")),
        Deleted(object("b#0@4")),
        Deleted(object("c#1@9")),
    ] {
        script.event(event);
        settle().await;
    }
    assert_eq!(notes.take(), Vec::<String>::new());
    assert_eq!(script.informer.reached(), Some("10".into()));
}

#[tokio::test(start_paused = true)]
async fn two_views_of_one_resource_of_which_one_lags_each_show_their_own_truth() {
    let mut quick = Script::start();
    let mut slow = Script::start();
    let (quick_notes, _one) = quick.watch();
    let (slow_notes, _two) = slow.watch();
    quick.list(&["a#1@1"], "1");
    slow.list(&["a#1@1"], "1");
    settle().await;
    quick.event(Modified(object("a#1@2")));
    quick.event(Deleted(object("a#1@3")));
    quick.event(Added(object("a#2@4")));
    settle().await;
    assert_eq!(quick.informer.reached(), Some("4".into()));
    assert_eq!(slow.informer.reached(), Some("1".into()), "the lagging one does not claim what it does not show");
    assert_eq!(slow.informer.lister().get(&key("a")).unwrap().uid, "1".into());
    slow.list(&["a#2@4"], "4");
    settle().await;
    assert_eq!(quick_notes.take(), ["Added(initial) ns/a@1", "Updated ns/a@1->2", "Deleted ns/a@3", "Added ns/a@4"]);
    assert_eq!(slow_notes.take(), ["Added(initial) ns/a@1", "Deleted(missed) ns/a@1", "Added ns/a@4"]);
}

#[tokio::test(start_paused = true)]
async fn a_transform_changes_what_is_stored_once() {
    let mut script = Script::start();
    script.informer.transform(|object: &mut Meta| object.generation += 1).unwrap();
    assert!(script.informer.transform(|_: &mut Meta| {}).is_err());
    script.list(&["a@1"], "1");
    settle().await;
    let stored = script.informer.lister().get(&key("a")).unwrap();
    assert_eq!(stored.generation, 1);
    // As a reflector does: what is known goes back into the sink as it is.
    let known = script.sink.known(&key("a")).unwrap();
    script.sink.replace(vec![known], "2".into());
    script.event(Added(object("b@3")));
    settle().await;
    assert_eq!(script.informer.lister().get(&key("a")).unwrap().generation, 1);
    assert_eq!(script.informer.lister().get(&key("b")).unwrap().generation, 1);
}

#[tokio::test(start_paused = true)]
async fn a_transform_that_panics_costs_nothing_but_itself() {
    let mut script = Script::start();
    script.informer.transform(|object: &mut Meta| assert_ne!(object.name, "bad")).unwrap();
    script.list(&["bad@1", "good@1"], "1");
    settle().await;
    assert_eq!(script.names(), ["bad", "good"]);
}
