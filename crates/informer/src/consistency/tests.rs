//! Each clause of the module, with real stores that a script feeds.

mod time;

use std::sync::Weak;
use std::sync::atomic::{AtomicUsize, Ordering};

use steersman_base::Meta;
use tokio::sync::oneshot;
use tokio::time::sleep;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::*;
use crate::PAST_FOR;
use crate::informer::SharedInformer;
use crate::sink::{InformerSink, Sink, WatchEvent};
use crate::store::{Advance, Watcher};
use crate::test_objects::{key, object, objects, target, terminating, things};

/// An object in a version: `a#1@5`.
fn shown(text: &str) -> Shown {
    Shown::from(&*object(text))
}

/// A store that a script feeds, a book that looks into it, and the answers of a server that is asked what it has.
struct Desk {
    book: Book,
    sink: InformerSink<Meta>,
    reads: Arc<Mutex<Vec<Read>>>,
    restarts: Arc<AtomicUsize>,
    wakes: Arc<AtomicUsize>,
    _stop: DropGuard,
}

/// A read that waits for its answer.
struct Read {
    place: ObjectKey,
    answer: oneshot::Sender<Option<Snapshot>>,
}

struct Shelf {
    informers: Vec<SharedInformer<Meta>>,
    reads: Arc<Mutex<Vec<Read>>>,
    restarts: Arc<AtomicUsize>,
}

impl Stores for Shelf {
    fn changes(&self) -> u64 {
        1
    }

    fn ledgers(&self, resource: &Resource) -> Vec<Arc<dyn Ledger>> {
        self.informers.iter().filter(|other| other.target().resource == *resource).map(SharedInformer::ledger).collect()
    }

    fn read(&self, resource: &Resource, place: &ObjectKey) -> BoxFuture<'static, Result<Option<Snapshot>, ReadFailed>> {
        let (answer, answered) = oneshot::channel();
        self.reads.lock().push(Read { place: place.clone(), answer });
        let resource = resource.clone();
        let place = place.clone();
        Box::pin(async move {
            match answered.await {
                Ok(Some(snapshot)) => Ok(Some(snapshot)),
                _ => Err(ReadFailed { resource, place, cause: "the server is busy".into() }),
            }
        })
    }

    fn restart(&self, _resource: &Resource, _store: &Arc<dyn Ledger>) {
        self.restarts.fetch_add(1, Ordering::Relaxed);
    }
}

/// What a server has, and at which version.
fn snapshot(have: &[&str], version: &str) -> Snapshot {
    Snapshot { objects: objects(have), version: version.into() }
}

impl Desk {
    /// A store that shows `a` and `b` at version 10.
    async fn open() -> Self {
        let (mut desks, _) = Self::open_with(1).await;
        desks.remove(0)
    }

    /// Several stores of the same resource; the first desk has the book that looks into all of them.
    async fn open_with(stores: usize) -> (Vec<Self>, Book) {
        let reads = Arc::default();
        let restarts = Arc::default();
        let stop = CancellationToken::new();
        let informers: Vec<_> = (0..stores).map(|_| SharedInformer::new(target(), stop.child_token())).collect();
        let shelf = Shelf { informers: informers.clone(), reads: Arc::clone(&reads), restarts: Arc::clone(&restarts) };
        let book = Book::looking_into(shelf).another_reading_live();
        let mut desks = Vec::new();
        for informer in informers {
            let stop = stop.child_token();
            let running = informer.clone();
            let token = stop.clone();
            tokio::spawn(async move { running.run(&token).await });
            let mut sink = informer.sink();
            sink.replace(objects(&["a#1@5", "b#1@6"]), "10".into());
            informer.synced().await;
            let book = book.clone();
            let reads = Arc::clone(&reads);
            let restarts = Arc::clone(&restarts);
            desks.push(Self { book, sink, reads, restarts, wakes: Arc::default(), _stop: stop.drop_guard() });
        }
        (desks, book)
    }

    fn check(&self, owner: &str) -> Verdict {
        let wakes = Arc::clone(&self.wakes);
        self.book.check(&owner.into(), move || {
            wakes.fetch_add(1, Ordering::Relaxed);
        })
    }

    /// Lets all tasks run, and returns how many keys were woken since the last time.
    async fn wakes(&self) -> usize {
        sleep(Duration::from_millis(1)).await;
        self.wakes.swap(0, Ordering::Relaxed)
    }

    /// Answers the oldest read that was asked for, and returns what it was about.
    fn answer(&self, with: Option<Snapshot>) -> ObjectKey {
        let read = self.reads.lock().remove(0);
        read.answer.send(with).unwrap();
        read.place
    }

    /// How many watches were restarted since the last time.
    fn restarts(&self) -> usize {
        self.restarts.swap(0, Ordering::Relaxed)
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
        desk.book.deleted(&"rs".into(), &things(), shown("a#1@5"));
        assert_eq!(desk.check("rs"), Verdict::Parked);
        desk.sink.reached("50".into());
        assert_eq!(desk.wakes().await, 0, "a version says nothing about an object that is still shown");
        desk.sink.apply(end);
        assert_eq!(desk.wakes().await, 1);
        assert_eq!(desk.check("rs"), Verdict::Clear);
    }
}

#[tokio::test(start_paused = true)]
async fn clause_b_a_removal_is_met_when_the_store_does_not_show_the_uid() {
    for end in [WatchEvent::Deleted(object("a#1@12")), WatchEvent::Added(object("a#2@12"))] {
        let mut desk = Desk::open().await;
        desk.sink.apply(WatchEvent::Modified(terminating("a#1@11")));
        desk.wakes().await;
        desk.book.removed(&"rs".into(), &things(), shown("a#1@5"));
        assert_eq!(desk.check("rs"), Verdict::Parked, "it was terminating before");
        desk.sink.reached("50".into());
        assert_eq!(desk.wakes().await, 0);
        desk.sink.apply(end);
        assert_eq!(desk.wakes().await, 1);
        assert_eq!(desk.check("rs"), Verdict::Clear);
    }
}

#[tokio::test(start_paused = true)]
async fn clause_b_a_store_that_does_not_show_the_object_yet_does_not_show_its_end() {
    let mut desk = Desk::open().await;
    desk.book.deleted(&"rs".into(), &things(), shown("new#7@12"));
    assert_eq!(desk.check("rs"), Verdict::Parked, "a live read has shown it, and the store is at version 10");
    desk.sink.apply(WatchEvent::Added(object("new#7@12")));
    assert_eq!(desk.wakes().await, 0, "now the store shows it");
    assert_eq!(desk.check("rs"), Verdict::Parked);
    desk.sink.apply(WatchEvent::Deleted(object("new#7@13")));
    assert_eq!(desk.wakes().await, 1);
    assert_eq!(desk.check("rs"), Verdict::Clear);

    desk.book.removed(&"rs".into(), &things(), shown("newer#8@22"));
    assert_eq!(desk.check("rs"), Verdict::Parked);
    desk.sink.replace(objects(&["b#1@6"]), "30".into());
    assert_eq!(desk.wakes().await, 1, "it came and went between two lists");
    assert!(desk.book.is_empty());
}

#[tokio::test(start_paused = true)]
async fn clause_b_a_list_without_the_object_shows_it_gone() {
    let mut desk = Desk::open().await;
    desk.book.deleted(&"rs".into(), &things(), shown("a#1@5"));
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

    fn shows(&self, key: &ObjectKey, uid: &Uid) -> bool {
        self.shows_alive(key, uid)
    }

    fn shows_alive(&self, _key: &ObjectKey, _uid: &Uid) -> bool {
        !self.gone.load(Ordering::Relaxed)
    }

    fn shown_in(&self, _place: &ObjectKey) -> Vec<Shown> {
        Vec::new()
    }

    fn watch(&self, watcher: Weak<dyn Watcher>) {
        self.watchers.lock().push(watcher);
    }
}

struct OneStore(Arc<OneObject>);

impl Stores for OneStore {
    fn changes(&self) -> u64 {
        1
    }

    fn ledgers(&self, _resource: &Resource) -> Vec<Arc<dyn Ledger>> {
        vec![Arc::clone(&self.0) as Arc<dyn Ledger>]
    }

    fn read(&self, _: &Resource, _: &ObjectKey) -> BoxFuture<'static, Result<Option<Snapshot>, ReadFailed>> {
        Box::pin(std::future::pending())
    }

    fn restart(&self, _: &Resource, _: &Arc<dyn Ledger>) {}
}

#[tokio::test(start_paused = true)]
async fn clause_b_a_batch_that_began_before_the_book_listened_counts_too() {
    let store = Arc::new(OneObject::default());
    let book = Book::looking_into(OneStore(Arc::clone(&store)));
    let woken = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&woken);
    book.deleted(&"rs".into(), &things(), shown("a#1@5"));
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
        desk.book.deleted(&owner.into(), &things(), shown("a#1@5"));
        assert_eq!(desk.check(owner), Verdict::Parked);
    }
    desk.sink.apply(WatchEvent::Deleted(object("a#1@11")));
    assert_eq!(desk.wakes().await, 2);
}

#[tokio::test(start_paused = true)]
async fn clause_c_an_unknown_outcome_is_met_when_the_store_shows_what_the_server_has() {
    let mut desk = Desk::open().await;
    desk.book.unknown(&"rs".into(), &things(), &key("c"));
    assert_eq!(desk.check("rs"), Verdict::Parked);
    desk.sink.reached("40".into());
    assert_eq!(desk.wakes().await, 0, "nobody knows how far is far enough");
    assert_eq!(desk.answer(Some(snapshot(&["c#1@41"], "50"))), key("c"), "one object is asked for");
    assert_eq!(desk.wakes().await, 0);
    assert_eq!(desk.check("rs"), Verdict::Parked);
    desk.sink.apply(WatchEvent::Added(object("c#1@41")));
    assert_eq!(desk.wakes().await, 1);
    assert_eq!(desk.check("rs"), Verdict::Clear);
}

#[tokio::test(start_paused = true)]
async fn clause_c_on_a_quiet_resource_the_answer_is_enough() {
    for (place, have) in [("c", &[] as &[&str]), ("a", &["a#1@5"]), ("", &["a#1@5", "b#1@6"])] {
        let desk = Desk::open().await;
        let place = ObjectKey { name: place.into(), ..key("") };
        desk.book.unknown(&"rs".into(), &things(), &place);
        assert_eq!(desk.check("rs"), Verdict::Parked);
        desk.wakes().await;
        // Other resources have moved on; this one is as the store shows it.
        assert_eq!(desk.answer(Some(snapshot(have, "900"))), place);
        assert_eq!(desk.wakes().await, 1, "{place}: nothing was done, and no event will come");
        assert_eq!(desk.check("rs"), Verdict::Clear);
    }
}

#[tokio::test(start_paused = true)]
async fn clause_c_what_the_server_does_not_have_any_more_is_to_go() {
    for (place, have) in [("a", &[] as &[&str]), ("a", &["a#2@30"]), ("", &["b#1@6"])] {
        let mut desk = Desk::open().await;
        desk.book.unknown(&"rs".into(), &things(), &ObjectKey { name: place.into(), ..key("") });
        assert_eq!(desk.check("rs"), Verdict::Parked);
        // Made after the list: the list says nothing about it.
        desk.sink.apply(WatchEvent::Added(object("z#1@50")));
        desk.wakes().await;
        desk.answer(Some(snapshot(have, "40")));
        assert_eq!(desk.wakes().await, 0, "{have:?}: the store shows what is gone");
        desk.sink.apply(WatchEvent::Deleted(object("a#1@51")));
        assert_eq!(desk.wakes().await, 1, "{have:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn clause_c_one_read_settles_all_unknown_outcomes_of_a_namespace() {
    let desk = Desk::open().await;
    for name in ["c", "d"] {
        desk.book.unknown(&"rs".into(), &things(), &key(name));
        desk.book.unknown(&"other".into(), &things(), &key(name));
    }
    assert_eq!((desk.check("rs"), desk.check("other")), (Verdict::Parked, Verdict::Parked));
    desk.wakes().await;
    assert_eq!(desk.answer(Some(snapshot(&["a#1@5", "b#1@6"], "50"))), key(""), "the namespace is asked for");
    assert_eq!(desk.wakes().await, 2);
    assert!(desk.reads.lock().is_empty() && desk.book.is_empty());
}

#[tokio::test(start_paused = true)]
async fn clause_c_a_read_that_began_before_the_failure_does_not_count() {
    let desk = Desk::open().await;
    desk.book.unknown(&"one".into(), &things(), &key("c"));
    desk.wakes().await;
    desk.book.unknown(&"two".into(), &things(), &key("c"));
    assert_eq!((desk.check("one"), desk.check("two")), (Verdict::Parked, Verdict::Parked));
    desk.answer(Some(snapshot(&[], "10")));
    assert_eq!(desk.wakes().await, 1, "the read was under way when the second failed");
    assert_eq!((desk.check("one"), desk.check("two")), (Verdict::Clear, Verdict::Parked));
    desk.answer(Some(snapshot(&[], "10")));
    assert_eq!(desk.wakes().await, 1);
}

#[tokio::test(start_paused = true)]
async fn clause_c_a_read_that_fails_is_made_again() {
    let desk = Desk::open().await;
    desk.book.unknown(&"rs".into(), &things(), &key("c"));
    assert_eq!(desk.check("rs"), Verdict::Parked);
    for _ in 0..5 {
        desk.wakes().await;
        desk.answer(None);
        sleep(Duration::from_secs(3)).await;
    }
    desk.answer(Some(snapshot(&[], "10")));
    assert_eq!(desk.wakes().await, 1);
}

#[tokio::test(start_paused = true)]
async fn clause_c_an_outcome_that_stays_unknown_is_read_live_and_kept() {
    let desk = Desk::open().await;
    desk.book.unknown(&"rs".into(), &things(), &key("c"));
    assert_eq!(desk.check("rs"), Verdict::Parked);
    sleep(Duration::from_secs(31)).await;
    assert_eq!(desk.wakes().await, 1);
    assert_eq!(desk.check("rs"), Verdict::LiveRead);
    assert_eq!(desk.restarts(), 0, "that nobody answers proves nothing about the watch");
    desk.answer(Some(snapshot(&[], "10")));
    assert_eq!(desk.wakes().await, 1, "and when it is known, the key is looked at once more");
    assert_eq!(desk.check("rs"), Verdict::Clear);
}

#[tokio::test(start_paused = true)]
async fn after_thirty_seconds_every_pass_reads_live_until_the_store_shows_it() {
    let mut desk = Desk::open().await;
    desk.book.wrote(&"rs".into(), &things(), "12".into());
    assert_eq!(desk.check("rs"), Verdict::Parked);
    sleep(Duration::from_secs(29)).await;
    assert_eq!(desk.wakes().await, 0);
    assert_eq!(desk.check("rs"), Verdict::Parked, "asking again does not begin the wait anew");
    sleep(Duration::from_secs(2)).await;
    assert_eq!(desk.wakes().await, 1);
    for pass in 0..700 {
        assert_eq!(desk.check("rs"), Verdict::LiveRead, "pass {pass}: nothing is forgotten");
        assert_eq!(desk.check("rs"), Verdict::Parked, "pass {pass}: not twice in a second");
        assert_eq!(desk.wakes().await, 0);
        sleep(Duration::from_millis(1_200)).await;
        assert_eq!(desk.wakes().await, 1, "pass {pass}: woken for the next");
    }
    desk.book.wrote(&"rs".into(), &things(), "13".into());
    assert_eq!(desk.check("rs"), Verdict::LiveRead, "what a live pass wrote is waited for in the same way");
    desk.sink.reached("12".into());
    assert_eq!(desk.wakes().await, 0);
    desk.sink.reached("13".into());
    assert_eq!(desk.wakes().await, 1, "the pass that read live is followed by one that reads the caches");
    assert_eq!(desk.check("rs"), Verdict::Clear);
    assert!(desk.book.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_cannot_read_live_keeps_waiting() {
    let mut desk = Desk::open().await;
    desk.book = desk.book.another();
    desk.book.wrote(&"rs".into(), &things(), "12".into());
    assert_eq!(desk.check("rs"), Verdict::Parked);
    sleep(Duration::from_secs(600)).await;
    assert_eq!((desk.wakes().await, desk.check("rs")), (0, Verdict::Parked));
    assert!(desk.restarts() > 5, "but the watch is restarted over and over");
    desk.sink.reached("12".into());
    assert_eq!(desk.wakes().await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_does_not_show_a_write_for_thirty_seconds_has_its_watch_restarted() {
    let (mut desks, book) = Desk::open_with(2).await;
    book.wrote(&"rs".into(), &things(), "12".into());
    book.deleted(&"other".into(), &things(), shown("a#1@5"));
    desks[0].sink.reached("12".into());
    desks[0].sink.apply(WatchEvent::Deleted(object("a#1@12")));
    sleep(Duration::from_secs(29)).await;
    assert_eq!(desks[0].restarts(), 0);
    sleep(Duration::from_secs(2)).await;
    assert_eq!(desks[0].restarts(), 1, "of the store that lags, once, though nobody waits");
    sleep(Duration::from_secs(30)).await;
    assert_eq!(desks[0].restarts(), 1, "and again");
    desks[1].sink.reached("12".into());
    desks[1].sink.apply(WatchEvent::Deleted(object("a#1@12")));
    sleep(Duration::from_secs(120)).await;
    assert_eq!(desks[0].restarts(), 0);
    assert!(book.is_empty());
}

#[tokio::test(start_paused = true)]
async fn names_are_kept_for_the_next_create_and_forgotten_when_the_object_is_there() {
    let desk = Desk::open().await;
    let take = || desk.book.take_name(&"rs".into(), &things(), "", &|_| false, |_| true);
    desk.book.keep_name(&"rs".into(), &things(), "", &"c".into());
    assert_eq!(take().as_deref(), Some("c"));
    assert_eq!(take(), None);
    for name in ["c", "d"] {
        desk.book.keep_name(&"rs".into(), &things(), "", &name.into());
        desk.book.unknown(&"rs".into(), &things(), &key(name));
    }
    desk.wakes().await;
    desk.answer(Some(snapshot(&["a#1@5", "b#1@6", "c#1@20"], "50")));
    desk.wakes().await;
    assert_eq!(take().as_deref(), Some("d"), "the other one is there");
    assert_eq!(take(), None);
}

#[tokio::test(start_paused = true)]
async fn a_look_finds_the_object_or_none_and_gives_up_soon() {
    let desk = Desk::open().await;
    for (have, want) in [(&["c#1@20"] as &[&str], Some("20")), (&[], None)] {
        let things = things();
        let key = key("c");
        let mut look = std::pin::pin!(desk.book.look(&things, &key));
        assert!(futures::poll!(&mut look).is_pending());
        desk.answer(Some(snapshot(have, "50")));
        let found = look.await.unwrap();
        assert_eq!(found.as_ref().map(|found| found.resource_version.as_str()), want);
    }
    let began = Instant::now();
    assert!(desk.book.look(&things(), &key("c")).await.is_err());
    assert!(began.elapsed() <= Duration::from_secs(5));
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

/// A list that begins now, and shows object `a` and this version. Returns how many keys were woken.
async fn list(desk: &mut Desk, version: &str) -> usize {
    desk.wakes().await;
    desk.sink.listing();
    desk.sink.replace(objects(&["a#1@5"]), version.into());
    desk.wakes().await
}

#[tokio::test(start_paused = true)]
async fn lists_that_lack_a_write_for_a_minute_clear_the_resource() {
    let mut desk = Desk::open().await;
    desk.book.wrote(&"rs".into(), &things(), "20".into());
    desk.book.deleted(&"rs".into(), &things(), shown("a#1@5"));
    desk.book.unknown(&"other".into(), &things(), &key("c"));
    assert_eq!((desk.check("rs"), desk.check("other")), (Verdict::Parked, Verdict::Parked));
    assert_eq!(list(&mut desk, "15").await, 0, "the list may lag");
    assert_eq!((desk.check("rs"), desk.check("other")), (Verdict::Parked, Verdict::Parked));
    sleep(PAST_FOR).await;
    list(&mut desk, "16").await;
    assert_eq!((desk.check("rs"), desk.check("other")), (Verdict::Clear, Verdict::Clear), "the server was restored");
}

#[tokio::test(start_paused = true)]
async fn a_list_that_lags_keeps_the_debts_however_late_the_next_one_is() {
    let mut desk = Desk::open().await;
    desk.book.wrote(&"rs".into(), &things(), "20".into());
    list(&mut desk, "15").await;
    sleep(PAST_FOR).await;
    list(&mut desk, "20").await;
    desk.book.wrote(&"rs".into(), &things(), "30".into());
    sleep(PAST_FOR).await;
    list(&mut desk, "25").await;
    assert_ne!(desk.check("rs"), Verdict::Clear, "the lists caught up in between, so this one is the first that lags");
    desk.sink.apply(WatchEvent::Added(object("c#1@30")));
    desk.wakes().await;
    assert_eq!(desk.check("rs"), Verdict::Clear);
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
async fn versions_that_cannot_be_compared_do_not_block() {
    let desk = Desk::open().await;
    desk.book.wrote(&"rs".into(), &things(), "abc".into());
    assert_eq!(desk.check("rs"), Verdict::Clear, "a version that cannot be compared");
    let unwatched = Resource::namespaced("", "v1", "secrets", "Secret");
    desk.book.wrote(&"rs".into(), &unwatched, "99".into());
    desk.book.deleted(&"rs".into(), &unwatched, shown("a#1@5"));
    desk.book.unknown(&"rs".into(), &unwatched, &key("a"));
    assert_eq!(desk.check("rs"), Verdict::Clear, "a resource that nobody watches");
    assert!(desk.book.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_not_filled_blocks_no_key() {
    let informer = SharedInformer::<Meta>::new(target(), CancellationToken::new());
    let book = Book::looking_into(Shelf { informers: vec![informer], reads: Arc::default(), restarts: Arc::default() });
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
async fn entries_are_removed_when_they_are_met_even_without_a_check() {
    let mut desk = Desk::open().await;
    for owner in 0..100 {
        let owner = format!("rs-{owner}").as_str().into();
        desk.book.wrote(&owner, &things(), "12".into());
        desk.book.deleted(&owner, &things(), shown("a#1@5"));
        desk.book.unknown(&owner, &things(), &key("c"));
    }
    assert_eq!(desk.book.len(), 100);
    desk.wakes().await;
    desk.answer(Some(snapshot(&["c#1@13"], "13")));
    desk.sink.apply(WatchEvent::Deleted(object("a#1@13")));
    desk.wakes().await;
    assert!(desk.book.is_empty());
}

#[tokio::test(start_paused = true)]
async fn two_controllers_of_one_owner_wait_for_their_own_writes_and_are_woken_each() {
    let mut desk = Desk::open().await;
    let other = Desk { book: desk.book.another_reading_live(), ..Desk::open().await };
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
