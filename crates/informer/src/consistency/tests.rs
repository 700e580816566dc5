//! Each clause of the module, with real stores that a script feeds.

use std::sync::atomic::{AtomicUsize, Ordering};

use steersman_base::Meta;
use tokio::sync::oneshot;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::*;
use crate::informer::{InformerSink, SharedInformer};
use crate::sink::{Sink, WatchEvent};
use crate::test_objects::{key, object, objects, target, terminating, things};

/// A store that a script feeds, a book that looks into it, and the answers of a server that is asked for its version.
struct Desk {
    book: Book,
    sink: InformerSink<Meta>,
    lists: Arc<Mutex<Vec<oneshot::Sender<Option<&'static str>>>>>,
    wakes: Arc<AtomicUsize>,
    _stop: DropGuard,
}

struct Shelf {
    informers: Vec<SharedInformer<Meta>>,
    lists: Arc<Mutex<Vec<oneshot::Sender<Option<&'static str>>>>>,
}

impl Stores for Shelf {
    fn ledgers(&self, resource: &Resource) -> Vec<Arc<dyn Ledger>> {
        self.informers.iter().filter(|other| other.target().resource == *resource).map(SharedInformer::ledger).collect()
    }

    fn latest_version(&self, resource: &Resource) -> BoxFuture<'static, Result<ResourceVersion, BarrierFailed>> {
        let (answer, answered) = oneshot::channel();
        self.lists.lock().push(answer);
        let resource = resource.clone();
        Box::pin(async move {
            match answered.await {
                Ok(Some(version)) => Ok(version.into()),
                _ => Err(BarrierFailed { resource, cause: "the server is busy".into() }),
            }
        })
    }
}

impl Desk {
    /// A store that shows `a` and `b` at version 10.
    async fn open() -> Self {
        let (mut desks, _) = Self::open_with(1).await;
        desks.remove(0)
    }

    /// Several stores of the same resource; the first desk has the book that looks into all of them.
    async fn open_with(stores: usize) -> (Vec<Self>, Book) {
        let lists = Arc::new(Mutex::new(Vec::new()));
        let stop = CancellationToken::new();
        let informers: Vec<_> = (0..stores).map(|_| SharedInformer::new(target(), stop.child_token())).collect();
        let book = Book::looking_into(Shelf { informers: informers.clone(), lists: Arc::clone(&lists) });
        let mut desks = Vec::new();
        for informer in informers {
            let stop = stop.child_token();
            let (running, token) = (informer.clone(), stop.clone());
            tokio::spawn(async move { running.run(&token).await });
            let mut sink = informer.sink();
            sink.replace(objects(&["a#1@5", "b#1@6"]), "10".into());
            informer.synced().await;
            let (book, lists) = (book.clone(), Arc::clone(&lists));
            desks.push(Self { book, sink, lists, wakes: Arc::default(), _stop: stop.drop_guard() });
        }
        (desks, book)
    }

    fn check(&self, owner: &str) -> Verdict {
        let wakes = Arc::clone(&self.wakes);
        self.book.check(&owner.into(), move || {
            wakes.fetch_add(1, Ordering::Relaxed);
        })
    }

    /// Lets all tasks run, and tells how many keys were woken since the last time.
    async fn wakes(&self) -> usize {
        sleep(Duration::from_millis(1)).await;
        self.wakes.swap(0, Ordering::Relaxed)
    }

    /// Answers the oldest list that was asked for.
    fn answer(&self, version: Option<&'static str>) {
        let list = self.lists.lock().remove(0);
        list.send(version).unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_written_is_nothing_to_wait_for() {
    let desk = Desk::open().await;
    assert_eq!(desk.check("rs"), Verdict::Clear);
    assert!(desk.book.is_empty());
}

#[tokio::test(start_paused = true)]
async fn clause_a_a_write_is_met_when_the_store_has_reached_its_version() {
    let mut desk = Desk::open().await;
    desk.book.wrote(&"rs".into(), &things(), "12".into());
    assert_eq!(desk.check("rs"), Verdict::Parked);
    assert_eq!(desk.check("other"), Verdict::Clear, "another owner is not concerned");
    desk.sink.apply(WatchEvent::Modified(object("a#1@11")));
    assert_eq!(desk.wakes().await, 0);
    assert_eq!(desk.check("rs"), Verdict::Parked);
    desk.sink.apply(WatchEvent::Added(object("c#1@12")));
    assert_eq!(desk.wakes().await, 1, "the store wakes it, once");
    assert_eq!(desk.check("rs"), Verdict::Clear);
    assert!(desk.book.is_empty());
}

#[tokio::test(start_paused = true)]
async fn clause_a_a_bookmark_is_as_good_as_an_event() {
    let mut desk = Desk::open().await;
    desk.book.wrote(&"rs".into(), &things(), "12".into());
    assert_eq!(desk.check("rs"), Verdict::Parked);
    desk.sink.reached("15".into());
    assert_eq!(desk.wakes().await, 1);
    assert_eq!(desk.check("rs"), Verdict::Clear);
}

#[tokio::test(start_paused = true)]
async fn clause_a_the_newest_write_per_resource_counts() {
    let mut desk = Desk::open().await;
    for version in ["12", "14", "13"] {
        desk.book.wrote(&"rs".into(), &things(), version.into());
    }
    desk.sink.reached("13".into());
    desk.wakes().await;
    assert_eq!(desk.check("rs"), Verdict::Parked);
    desk.sink.reached("14".into());
    assert_eq!(desk.wakes().await, 1);
}

#[tokio::test(start_paused = true)]
async fn clause_a_a_write_that_the_store_shows_already_is_not_entered() {
    let desk = Desk::open().await;
    desk.book.wrote(&"rs".into(), &things(), "9".into());
    assert!(desk.book.is_empty());
}

#[tokio::test(start_paused = true)]
async fn clause_a_every_store_of_the_resource_must_show_it() {
    let (mut desks, book) = Desk::open_with(2).await;
    book.wrote(&"rs".into(), &things(), "12".into());
    assert_eq!(desks[0].check("rs"), Verdict::Parked);
    desks[0].sink.reached("12".into());
    assert_eq!(desks[0].wakes().await, 0, "one of two stores lags");
    desks[1].sink.reached("12".into());
    assert_eq!(desks[0].wakes().await, 1);
}

#[tokio::test(start_paused = true)]
async fn clause_b_a_deletion_is_met_when_the_store_shows_the_uid_gone_or_terminating() {
    for end in [
        WatchEvent::Deleted(object("a#1@11")),
        WatchEvent::Modified(terminating("a#1@11")),
        WatchEvent::Added(object("a#2@11")),
    ] {
        let mut desk = Desk::open().await;
        desk.book.deleted(&"rs".into(), &things(), key("a"), "1".into());
        assert_eq!(desk.check("rs"), Verdict::Parked);
        desk.sink.reached("50".into());
        assert_eq!(desk.wakes().await, 0, "a version says nothing about an object that is still shown");
        desk.sink.apply(end);
        assert_eq!(desk.wakes().await, 1);
        assert_eq!(desk.check("rs"), Verdict::Clear);
    }
}

#[tokio::test(start_paused = true)]
async fn clause_b_a_list_without_the_object_shows_it_gone() {
    let mut desk = Desk::open().await;
    desk.book.deleted(&"rs".into(), &things(), key("a"), "1".into());
    assert_eq!(desk.check("rs"), Verdict::Parked);
    desk.sink.replace(objects(&["b#1@6"]), "20".into());
    assert_eq!(desk.wakes().await, 1);
}

/// A store of one object, which a test lets end without a word about which one it was.
#[derive(Default)]
struct OneObject {
    gone: std::sync::atomic::AtomicBool,
    watchers: Mutex<Vec<Weak<dyn Watcher>>>,
}

impl Ledger for OneObject {
    fn reached(&self) -> Option<ResourceVersion> {
        Some("10".into())
    }

    fn shows_alive(&self, _key: &ObjectKey, _uid: &Uid) -> bool {
        !self.gone.load(Ordering::Relaxed)
    }

    fn watch(&self, watcher: Weak<dyn Watcher>) {
        self.watchers.lock().push(watcher);
    }
}

struct OneStore(Arc<OneObject>);

impl Stores for OneStore {
    fn ledgers(&self, _resource: &Resource) -> Vec<Arc<dyn Ledger>> {
        vec![Arc::clone(&self.0) as Arc<dyn Ledger>]
    }

    fn latest_version(&self, _resource: &Resource) -> BoxFuture<'static, Result<ResourceVersion, BarrierFailed>> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test(start_paused = true)]
async fn clause_b_a_batch_that_began_before_the_book_listened_counts_too() {
    let store = Arc::new(OneObject::default());
    let book = Book::looking_into(OneStore(Arc::clone(&store)));
    let woken = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&woken);
    book.deleted(&"rs".into(), &things(), key("a"), "1".into());
    let verdict = book.check(&"rs".into(), move || {
        count.fetch_add(1, Ordering::Relaxed);
    });
    assert_eq!(verdict, Verdict::Parked);
    store.gone.store(true, Ordering::Relaxed);
    let watcher = store.watchers.lock()[0].upgrade().unwrap();
    watcher.advanced(&Advance { reached: Some(&"11".into()), list: None, went_back: false, ended: None });
    assert_eq!(woken.load(Ordering::Relaxed), 1);
    assert!(book.is_empty());
}

#[tokio::test(start_paused = true)]
async fn clause_b_two_owners_may_have_deleted_the_same_object() {
    let mut desk = Desk::open().await;
    for owner in ["one", "two"] {
        desk.book.deleted(&owner.into(), &things(), key("a"), "1".into());
        assert_eq!(desk.check(owner), Verdict::Parked);
    }
    desk.sink.apply(WatchEvent::Deleted(object("a#1@11")));
    assert_eq!(desk.wakes().await, 2);
}

#[tokio::test(start_paused = true)]
async fn clause_c_an_unknown_outcome_is_met_when_the_store_has_reached_a_list_made_after_it() {
    let mut desk = Desk::open().await;
    desk.book.unknown(&"rs".into(), &things());
    assert_eq!(desk.check("rs"), Verdict::Parked);
    desk.sink.reached("40".into());
    assert_eq!(desk.wakes().await, 0, "nobody knows how far is far enough");
    desk.answer(Some("41"));
    assert_eq!(desk.wakes().await, 0);
    desk.sink.reached("41".into());
    assert_eq!(desk.wakes().await, 1);
    assert_eq!(desk.check("rs"), Verdict::Clear);
}

#[tokio::test(start_paused = true)]
async fn clause_c_a_store_that_is_there_already_wakes_at_once() {
    let mut desk = Desk::open().await;
    desk.book.unknown(&"rs".into(), &things());
    assert_eq!(desk.check("rs"), Verdict::Parked);
    desk.sink.reached("40".into());
    desk.wakes().await;
    desk.answer(Some("40"));
    assert_eq!(desk.wakes().await, 1);
}

#[tokio::test(start_paused = true)]
async fn clause_c_a_list_that_began_before_the_failure_does_not_count() {
    let desk = Desk::open().await;
    desk.book.unknown(&"one".into(), &things());
    desk.wakes().await;
    desk.book.unknown(&"two".into(), &things());
    assert_eq!((desk.check("one"), desk.check("two")), (Verdict::Parked, Verdict::Parked));
    desk.answer(Some("10"));
    assert_eq!(desk.wakes().await, 1, "the list was under way when the second failed");
    assert_eq!((desk.check("one"), desk.check("two")), (Verdict::Clear, Verdict::Parked));
    desk.answer(Some("10"));
    assert_eq!(desk.wakes().await, 1);
}

#[tokio::test(start_paused = true)]
async fn clause_c_a_list_that_fails_is_made_again() {
    let desk = Desk::open().await;
    desk.book.unknown(&"rs".into(), &things());
    assert_eq!(desk.check("rs"), Verdict::Parked);
    for _ in 0..3 {
        desk.wakes().await;
        desk.answer(None);
        sleep(Duration::from_secs(2)).await;
    }
    desk.answer(Some("10"));
    assert_eq!(desk.wakes().await, 1);
}

#[tokio::test(start_paused = true)]
async fn after_thirty_seconds_the_wait_ends_in_a_live_read() {
    let desk = Desk::open().await;
    desk.book.wrote(&"rs".into(), &things(), "12".into());
    assert_eq!(desk.check("rs"), Verdict::Parked);
    sleep(Duration::from_secs(29)).await;
    assert_eq!(desk.wakes().await, 0);
    assert_eq!(desk.check("rs"), Verdict::Parked, "asking again does not begin the wait anew");
    sleep(Duration::from_secs(2)).await;
    assert_eq!(desk.wakes().await, 1);
    assert_eq!(desk.check("rs"), Verdict::LiveRead);
    assert_eq!(desk.check("rs"), Verdict::Clear, "once");
    assert!(desk.book.is_empty());
}

#[tokio::test(start_paused = true)]
async fn each_owner_has_a_wait_of_its_own() {
    let desk = Desk::open().await;
    desk.book.wrote(&"one".into(), &things(), "12".into());
    desk.book.wrote(&"two".into(), &things(), "12".into());
    assert_eq!(desk.check("one"), Verdict::Parked);
    sleep(Duration::from_secs(20)).await;
    assert_eq!(desk.check("two"), Verdict::Parked);
    sleep(Duration::from_secs(11)).await;
    assert_eq!(desk.wakes().await, 1);
    sleep(Duration::from_secs(20)).await;
    assert_eq!(desk.wakes().await, 1);
    assert_eq!((desk.check("one"), desk.check("two")), (Verdict::LiveRead, Verdict::LiveRead));
}

#[tokio::test(start_paused = true)]
async fn a_list_older_than_a_write_before_it_clears_the_resource() {
    let mut desk = Desk::open().await;
    desk.book.wrote(&"rs".into(), &things(), "20".into());
    desk.book.deleted(&"rs".into(), &things(), key("a"), "1".into());
    desk.book.unknown(&"other".into(), &things());
    assert_eq!((desk.check("rs"), desk.check("other")), (Verdict::Parked, Verdict::Parked));
    sleep(Duration::from_millis(1)).await;
    desk.sink.listing();
    desk.sink.replace(objects(&["a#1@5"]), "15".into());
    assert_eq!(desk.wakes().await, 2, "a consistent list that lacks the write: the server was restored");
    assert_eq!((desk.check("rs"), desk.check("other")), (Verdict::Clear, Verdict::Clear));
}

#[tokio::test(start_paused = true)]
async fn a_list_that_was_under_way_when_the_write_was_made_clears_nothing() {
    let mut desk = Desk::open().await;
    desk.sink.listing();
    sleep(Duration::from_secs(3)).await;
    desk.book.wrote(&"rs".into(), &things(), "20".into());
    assert_eq!(desk.check("rs"), Verdict::Parked);
    desk.sink.replace(objects(&["a#1@5"]), "15".into());
    assert_eq!(desk.wakes().await, 0, "it was asked for before the write, and may lack it");
    assert_eq!(desk.check("rs"), Verdict::Parked);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_goes_back_behind_the_store_clears_the_resource() {
    let mut desk = Desk::open().await;
    desk.book.wrote(&"rs".into(), &things(), "20".into());
    assert_eq!(desk.check("rs"), Verdict::Parked);
    desk.sink.replace(objects(&["a#1@5"]), "8".into());
    assert_eq!(desk.wakes().await, 1);
    assert_eq!(desk.check("rs"), Verdict::Clear);
}

#[tokio::test(start_paused = true)]
async fn who_cannot_tell_does_not_block() {
    let desk = Desk::open().await;
    desk.book.wrote(&"rs".into(), &things(), "abc".into());
    assert_eq!(desk.check("rs"), Verdict::Clear, "a version that cannot be compared");
    let unwatched = Resource::namespaced("", "v1", "secrets", "Secret");
    desk.book.wrote(&"rs".into(), &unwatched, "99".into());
    desk.book.deleted(&"rs".into(), &unwatched, key("a"), "1".into());
    desk.book.unknown(&"rs".into(), &unwatched);
    assert_eq!(desk.check("rs"), Verdict::Clear, "a resource that nobody watches");
    assert!(desk.book.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_not_filled_blocks_nobody() {
    let informer = SharedInformer::<Meta>::new(target(), CancellationToken::new());
    let book = Book::looking_into(Shelf { informers: vec![informer], lists: Arc::default() });
    book.wrote(&"rs".into(), &things(), "99".into());
    assert_eq!(book.check(&"rs".into(), || {}), Verdict::Clear);
}

#[tokio::test(start_paused = true)]
async fn forgetting_an_owner_wakes_its_key() {
    let desk = Desk::open().await;
    desk.book.wrote(&"rs".into(), &things(), "12".into());
    assert_eq!(desk.check("rs"), Verdict::Parked);
    desk.book.forget(&"rs".into());
    assert_eq!(desk.wakes().await, 1);
    assert!(desk.book.is_empty());
}

#[tokio::test(start_paused = true)]
async fn entries_go_when_they_are_met_though_nobody_asks() {
    let mut desk = Desk::open().await;
    for owner in 0..100 {
        let owner = format!("rs-{owner}").as_str().into();
        desk.book.wrote(&owner, &things(), "12".into());
        desk.book.deleted(&owner, &things(), key("a"), "1".into());
        desk.book.unknown(&owner, &things());
    }
    assert_eq!(desk.book.len(), 100);
    desk.wakes().await;
    desk.answer(Some("13"));
    desk.sink.apply(WatchEvent::Deleted(object("a#1@13")));
    desk.wakes().await;
    assert!(desk.book.is_empty());
}

#[tokio::test(start_paused = true)]
async fn two_controllers_of_one_owner_wait_for_their_own_writes_and_are_woken_each() {
    let mut desk = Desk::open().await;
    let other = Desk { book: desk.book.another(), ..Desk::open().await };
    desk.book.wrote(&"svc".into(), &things(), "12".into());
    assert_eq!(other.check("svc"), Verdict::Clear, "who wrote nothing waits for nothing");
    other.book.wrote(&"svc".into(), &things(), "11".into());
    assert_eq!((desk.check("svc"), other.check("svc")), (Verdict::Parked, Verdict::Parked));
    desk.sink.reached("11".into());
    assert_eq!((desk.wakes().await, other.wakes().await), (0, 1));
    desk.sink.reached("12".into());
    assert_eq!((desk.wakes().await, other.wakes().await), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_later_check_takes_the_place_of_an_earlier_one() {
    let mut desk = Desk::open().await;
    desk.book.wrote(&"rs".into(), &things(), "12".into());
    assert_eq!(desk.check("rs"), Verdict::Parked);
    assert_eq!(desk.check("rs"), Verdict::Parked);
    desk.sink.reached("12".into());
    assert_eq!(desk.wakes().await, 1, "one key waits per owner");
}
