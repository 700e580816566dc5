//! The guarantees of the module, one by one; then random batches against a plain map.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;
use steersman_base::{Istr, Meta, Selector, StringMap};

use super::*;
use crate::delta_fifo::state::State;
use crate::lister::Lister;
use crate::sink::WatchEvent;
use crate::test_objects::{key, labelled, object, objects, owned, show, terminating};

/// A store, and the queue that feeds it.
#[derive(Default)]
struct Fed {
    store: Arc<Store<Meta>>,
    fifo: State<Meta>,
}

impl Fed {
    fn with(objects: Vec<Arc<Meta>>, version: &str) -> Self {
        let mut fed = Self::default();
        fed.replace(objects, version);
        fed
    }

    fn replace(&mut self, objects: Vec<Arc<Meta>>, version: &str) {
        self.replace_since(objects, version, None);
    }

    /// Applies a list that was requested at this time.
    fn replace_since(&mut self, objects: Vec<Arc<Meta>>, version: &str, begun: Option<Instant>) {
        let list = ListInfo { version: version.into(), begun };
        self.fifo.replace(objects, list, &*self.store);
        self.flush();
    }

    fn event(&mut self, event: WatchEvent<Meta>) {
        self.fifo.apply(event, &*self.store);
        self.flush();
    }

    fn flush(&mut self) -> Vec<Change<Meta>> {
        self.fifo.take(usize::MAX).map(|mut popped| self.store.apply(&mut popped, true).0).unwrap_or_default()
    }
}

fn names(objects: &[Arc<Meta>]) -> Vec<String> {
    let names: BTreeSet<_> = objects.iter().map(|object| object.name.to_string()).collect();
    assert_eq!(names.len(), objects.len(), "each object is found once");
    names.into_iter().collect()
}

#[test]
fn readers_see_a_batch_not_at_all_or_complete() {
    let mut fed = Fed::with(objects(&["a@1", "b@1"]), "1");
    let by_version = fed.store.index(|object| Some(object.resource_version.to_string()));
    let before = fed.store.snapshot();
    fed.replace(objects(&["b@2", "c@2"]), "2");
    assert_eq!(names(&before.to_vec()), ["a", "b"], "a snapshot stays what it was");
    assert_eq!(before.iter().map(|object| show(object)).collect::<Vec<_>>(), ["a#u-a@1", "b#u-b@1"]);
    assert_eq!(names(&fed.store.snapshot().to_vec()), ["b", "c"]);
    assert_eq!(by_version.get("1").len(), 0);
    assert_eq!(names(&by_version.get("2")), ["b", "c"]);
}

#[test]
fn readers_on_other_threads_never_see_half_a_list() {
    const OBJECTS: usize = 300;
    let list = |version: usize| {
        let texts = (0..OBJECTS).map(|n| format!("n{}@{version}", n + version));
        texts.map(|text| object(&text)).collect::<Vec<_>>()
    };
    let mut fed = Fed::with(list(1), "1");
    let by_version = fed.store.index(|object| Some(object.resource_version.to_string()));
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    let snapshot = fed.store.snapshot();
                    let versions: BTreeSet<_> = snapshot.iter().map(|held| held.resource_version.to_string()).collect();
                    assert_eq!((versions.len(), snapshot.len()), (1, OBJECTS), "{versions:?}");
                    let counts: Vec<_> = by_version.keys().iter().map(|key| by_version.count(key)).collect();
                    assert!(counts.iter().all(|&count| count == 0 || count == OBJECTS), "{counts:?}");
                }
            });
        }
        let store = Arc::clone(&fed.store);
        let fifo = &mut fed.fifo;
        let mut feeder = Fed { store, fifo: std::mem::take(fifo) };
        for version in 2..100 {
            feeder.replace(list(version), &version.to_string());
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn readers_and_a_writer_do_not_wait_for_each_others_work() {
    let mut fed = Fed::with(objects(&["a@1"]), "1");
    let snapshot = fed.store.snapshot();
    let held: Vec<_> = snapshot.iter().collect();
    fed.event(WatchEvent::Modified(object("a@2")));
    assert_eq!(held[0].resource_version, "1".into());
    assert_eq!(fed.store.get(&key("a")).unwrap().resource_version, "2".into());
}

#[test]
fn an_index_finds_objects_by_what_is_read_off_them() {
    let mut fed = Fed::with(vec![owned("a@1", "rs1"), owned("b@1", "rs1"), owned("c@1", "rs2"), object("d@1")], "1");
    let by_owner = fed.store.index(|object| object.controller().map(|owner| owner.uid.clone()));
    assert_eq!(names(&by_owner.get(&"rs1".into())), ["a", "b"], "what was there before the index is found");
    fed.event(WatchEvent::Added(owned("e@2", "rs1")));
    fed.event(WatchEvent::Modified(owned("a@3", "rs2")));
    fed.event(WatchEvent::Deleted(owned("b@4", "rs1")));
    assert_eq!(names(&by_owner.get(&"rs1".into())), ["e"]);
    assert_eq!(names(&by_owner.get(&"rs2".into())), ["a", "c"]);
    assert_eq!(by_owner.count(&"rs2".into()), 2);
    assert!(by_owner.get(&"rs3".into()).is_empty());
    fed.event(WatchEvent::Deleted(owned("e@5", "rs1")));
    assert_eq!(by_owner.keys(), ["rs2".into()], "a key without objects is not kept");
}

/// A key that counts how often it is compared.
#[derive(Clone, Debug)]
struct Counted(Istr);

thread_local! {
    static COMPARED: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

impl PartialEq for Counted {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Counted {}

impl PartialOrd for Counted {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Counted {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        COMPARED.set(COMPARED.get() + 1);
        self.0.cmp(&other.0)
    }
}

impl std::hash::Hash for Counted {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

#[test]
fn an_object_with_very_many_keys_costs_little_more_than_its_keys() {
    const KEYS: u64 = 50_000;
    // To sort twice and look each up in the other takes log2(50,000) = 16 comparisons each; the tables a few.
    const COMPARISONS_PER_KEY_MAX: u64 = 80;
    let many = |version: &str, values: &str| {
        let pairs = (0..KEYS).map(|at| (format!("k{at}"), format!("{values}{at}")));
        let labels: StringMap = pairs.collect::<Vec<_>>().iter().map(|(key, value)| (&**key, &**value)).collect();
        Arc::new(Meta { labels, ..(*object(&format!("a@{version}"))).clone() })
    };
    let mut fed = Fed::with(vec![object("b@1")], "1");
    let by_value =
        fed.store.index(|object| object.labels.iter().map(|(_, value)| Counted(value.clone())).collect::<Vec<_>>());
    let mut check = |what: &str, event: WatchEvent<Meta>| {
        COMPARED.set(0);
        fed.event(event);
        let compared = COMPARED.get();
        assert!(compared <= KEYS * COMPARISONS_PER_KEY_MAX, "{what}: {compared} comparisons");
    };
    check("new", WatchEvent::Added(many("2", "x")));
    check("the same keys", WatchEvent::Modified(many("3", "x")));
    check("all others", WatchEvent::Modified(many("4", "y")));
    assert_eq!(names(&by_value.get(&Counted("y49999".into()))), ["a"]);
    assert!(by_value.get(&Counted("x49999".into())).is_empty());
    let mut check = |what: &str, event: WatchEvent<Meta>| {
        COMPARED.set(0);
        fed.event(event);
        let compared = COMPARED.get();
        assert!(compared <= KEYS * COMPARISONS_PER_KEY_MAX, "{what}: {compared} comparisons");
    };
    check("gone", WatchEvent::Deleted(many("5", "y")));
    assert!(by_value.keys().is_empty());
}

#[test]
fn an_index_may_have_several_keys_per_object_and_the_same_twice() {
    let mut fed = Fed::default();
    let by_label = fed.store.index(|object| {
        let keys: Vec<Istr> = object.labels.iter().flat_map(|(key, value)| [key.clone(), value.clone()]).collect();
        keys
    });
    fed.replace(vec![labelled("a@1", &[("x", "y"), ("y", "x")]), labelled("b@1", &[("x", "z")])], "1");
    assert_eq!(names(&by_label.get("x")), ["a", "b"]);
    assert_eq!(names(&by_label.get("y")), ["a"]);
    fed.event(WatchEvent::Modified(labelled("a@2", &[("z", "z")])));
    assert_eq!(names(&by_label.get("x")), ["b"]);
    assert_eq!(names(&by_label.get("z")), ["a", "b"]);
}

#[test]
fn callers_with_the_same_function_share_an_index_and_no_others() {
    fn name(object: &Meta) -> Option<String> {
        Some(object.name.to_string())
    }
    let fed = Fed::with(objects(&["a@1"]), "1");
    let one = fed.store.shared_index(name);
    let two = fed.store.shared_index(name);
    let other = fed.store.shared_index(|object| Some(object.name.clone()));
    assert_eq!((one.count("a"), two.count("a"), other.count("a")), (1, 1, 1));
    assert_eq!(fed.store.read().indexes.len(), 2, "keys of another type are another index");
    let empty = fed.store.shared_index(|_| None::<String>);
    assert_eq!((one.count("a"), empty.count("a")), (1, 0), "another function with keys of the same type, too");
    assert_eq!(fed.store.read().indexes.len(), 3);
}

#[test]
fn an_index_function_that_panics_costs_nothing_but_that_object() {
    let mut fed = Fed::with(objects(&["bad@1", "good@1"]), "1");
    let by_name = fed.store.index(|object| {
        assert_ne!(object.name, "bad");
        Some(object.name.clone())
    });
    fed.event(WatchEvent::Modified(object("bad@2")));
    assert_eq!(by_name.get("bad").len(), 0);
    assert_eq!(names(&by_name.get("good")), ["good"]);
    assert_eq!(fed.store.len(), 2);
}

#[test]
fn a_lister_reads_by_key_by_namespace_and_by_selector() {
    let web = [("app", "web")];
    let fed = Fed::with(
        vec![labelled("one/a@1", &web), labelled("one/b@1", &[]), labelled("two/a@1", &web), object("two/c@1")],
        "1",
    );
    let lister = Lister::new(Arc::clone(&fed.store));
    let selector = Selector::from_labels(&StringMap::from(web));
    assert_eq!(lister.get(&key("one/b")).unwrap().namespace, "one");
    assert_eq!(lister.namespace("two").get("c").unwrap().name, "c");
    assert!(lister.namespace("one").get("c").is_none());
    assert_eq!(names(&lister.namespace("one").list()), ["a", "b"]);
    assert_eq!(names(&lister.namespace("one").select(&selector)), ["a"]);
    assert_eq!(lister.namespace("three").list().len(), 0);
    assert_eq!(lister.select(&selector).len(), 2);
    assert_eq!((lister.list().len(), lister.len()), (4, 4));
    assert_eq!(names(&lister.filter(|object| object.name == "b")), ["b"]);
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_a_version_is_woken_by_the_store() {
    let mut fed = Fed::default();
    let store = Arc::clone(&fed.store);
    let waiting = tokio::spawn(async move { store.reached_at_least(&"7".into()).await });
    fed.replace(vec![], "5");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!waiting.is_finished());
    fed.fifo.advance("7".into());
    fed.flush();
    assert_eq!(waiting.await.unwrap(), Waited::Reached);
    assert_eq!(fed.store.reached_at_least(&"6".into()).await, Waited::Reached, "at once");
    assert_eq!(
        fed.store.reached_at_least(&"abc".into()).await,
        Waited::Reached,
        "what cannot be compared is not waited for"
    );
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_a_version_ends_when_the_server_was_restored() {
    let mut fed = Fed::with(vec![], "50");
    let store = Arc::clone(&fed.store);
    let waiting = tokio::spawn(async move { store.reached_at_least(&"60".into()).await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    fed.replace(vec![], "20");
    assert_eq!(waiting.await.unwrap(), Waited::Restored);
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_an_end_is_woken_when_the_object_is_deleted_or_terminating() {
    for end in [
        WatchEvent::Deleted(object("a#1@3")),
        WatchEvent::Modified(terminating("a#1@3")),
        WatchEvent::Added(object("a#2@3")),
    ] {
        let mut fed = Fed::with(objects(&["a#1@1"]), "1");
        let store = Arc::clone(&fed.store);
        let waiting = tokio::spawn(async move { store.gone_or_terminating(&key("a"), &"1".into()).await });
        fed.event(WatchEvent::Modified(object("a#1@2")));
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(!waiting.is_finished());
        fed.event(end);
        waiting.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_an_end_does_not_end_before_the_first_list() {
    let mut fed = Fed::default();
    let store = Arc::clone(&fed.store);
    let waiting = tokio::spawn(async move { store.gone_or_terminating(&key("a"), &"1".into()).await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!waiting.is_finished(), "a store without a list does not know what exists");
    fed.replace(objects(&["a#1@1"]), "1");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!waiting.is_finished());
    fed.event(WatchEvent::Deleted(object("a#1@2")));
    waiting.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn only_a_list_changes_the_time_of_the_last_list() {
    let mut fed = Fed::default();
    assert_eq!(fed.store.listed_since(), None);
    let first = Instant::now();
    fed.replace_since(vec![], "1", Some(first));
    // The first event finds an empty store, which is built anew; the second one does not.
    for text in ["a@2", "b@3"] {
        tokio::time::sleep(Duration::from_secs(1)).await;
        fed.event(WatchEvent::Added(object(text)));
        assert_eq!(fed.store.listed_since(), Some(first), "{text}");
    }
    fed.fifo.advance("4".into());
    fed.flush();
    assert_eq!(fed.store.listed_since(), Some(first), "a bookmark");
    let second = Instant::now();
    fed.replace_since(objects(&["a@2"]), "5", Some(second));
    assert_eq!(fed.store.listed_since(), Some(second));
}

#[test]
fn an_object_without_a_version_is_never_taken_for_the_same_state() {
    let with = |label: &str| labelled("a@", &[("state", label)]);
    let state = |fed: &Fed| fed.store.get(&key("a")).unwrap().labels.get("state").map(ToString::to_string);
    let mut fed = Fed::with(vec![with("first")], "1");
    fed.event(WatchEvent::Modified(with("second")));
    assert_eq!(state(&fed).as_deref(), Some("second"), "an event");
    fed.replace(vec![with("third")], "2");
    assert_eq!(state(&fed).as_deref(), Some("third"), "a list");
    fed.fifo.push(Delta::Updated(with("fourth")));
    assert_eq!(fed.flush().len(), 1, "and it is reported");
    assert_eq!(state(&fed).as_deref(), Some("fourth"));
}

#[test]
fn an_object_costs_little_beside_itself() {
    let all: Vec<_> =
        (0..30_000).map(|n| owned(&format!("ns-{}/pod-{n}@1", n % 100), &format!("rs-{}", n / 100))).collect();
    let fed = Fed::with(all, "1");
    let namespace = fed.store.index(|object| Some(object.namespace.clone()));
    let owner = fed.store.index(|object| object.controller().map(|owner| owner.uid.clone()));
    assert_eq!((namespace.count("ns-7"), owner.count(&"rs-7".into())), (300, 100));
    let bytes = fed.store.read().bytes();
    assert!(bytes / 30_000 <= 50, "{} bytes per object", bytes / 30_000);
}

#[test]
fn the_end_of_one_object_is_not_the_end_of_another_that_has_its_name() {
    let mut fed = Fed::with(objects(&["a#2@5"]), "5");
    fed.fifo.push(Delta::Deleted { last: object("a#1@4"), end: End::Observed });
    assert_eq!(fed.flush().len(), 0);
    assert_eq!(fed.store.len(), 1);
}

#[test]
fn an_emptied_store_holds_nothing() {
    let texts: Vec<_> = (0..1000).map(|n| format!("n{n}@1")).collect();
    let mut fed = Fed::with(texts.iter().map(|text| object(text)).collect(), "1");
    let by_namespace = fed.store.index(|object| Some(object.namespace.clone()));
    assert_eq!(by_namespace.count("ns"), 1000);
    fed.replace(vec![], "2");
    assert_eq!((fed.store.len(), by_namespace.count("ns")), (0, 0));
    assert!(fed.store.read().slots.bytes() < 100);
    fed.event(WatchEvent::Added(object("again@3")));
    assert_eq!(names(&by_namespace.get("ns")), ["again"]);
}

#[derive(Clone, Debug)]
enum Step {
    Put { name: u8, owner: u8 },
    Delete(u8),
    List(Vec<(u8, u8)>),
    Index,
    Snapshot,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (any::<u8>(), 0u8..3).prop_map(|(name, owner)| Step::Put { name, owner }),
        5 => any::<u8>().prop_map(Step::Delete),
        1 => prop::collection::vec((any::<u8>(), 0u8..3), 0..300).prop_map(Step::List),
        1 => Just(Step::Index),
        2 => Just(Step::Snapshot),
    ];
    prop::collection::vec(step, 1..300)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn a_store_is_a_map_and_an_index_is_a_search(steps in steps()) {
        let mut fed = Fed::default();
        let mut model: BTreeMap<ObjectKey, Arc<Meta>> = BTreeMap::new();
        let mut indexes = Vec::new();
        let mut snapshots = Vec::new();
        for (version, step) in steps.into_iter().enumerate() {
            let version = version + 1;
            let make = |name: u8, owner: u8| owned(&format!("n{name}@{version}"), &format!("o{owner}"));
            match step {
                Step::Put { name, owner } => {
                    let put = make(name, owner);
                    model.insert(put.key(), Arc::clone(&put));
                    fed.event(WatchEvent::Added(put));
                }
                Step::Delete(name) => {
                    model.remove(&make(name, 0).key());
                    fed.event(WatchEvent::Deleted(make(name, 0)));
                }
                Step::List(all) => {
                    let list: Vec<_> = all.into_iter().map(|(name, owner)| make(name, owner)).collect();
                    model = list.iter().map(|object| (object.key(), Arc::clone(object))).collect();
                    // Of two states with one version the first counts, as they cannot differ.
                    for object in list.iter().rev() {
                        model.insert(object.key(), Arc::clone(object));
                    }
                    let mut seen = BTreeSet::new();
                    let unique = list.into_iter().filter(|object| seen.insert(object.key())).collect();
                    fed.replace(unique, &version.to_string());
                }
                Step::Index => indexes.push(fed.store.index(|object| object.controller().map(|owner| owner.uid.clone()))),
                Step::Snapshot => snapshots.push((fed.store.snapshot(), model.clone())),
            }
            prop_assert_eq!(fed.store.len(), model.len());
        }
        for (key, object) in &model {
            prop_assert!(Arc::ptr_eq(object, &fed.store.get(key).unwrap()));
        }
        for index in indexes {
            for owner in ["o0", "o1", "o2"] {
                let found = index.get(&Uid::new(owner));
                let want: Vec<_> =
                    model.values().filter(|object| object.controller().unwrap().uid == owner.into()).cloned().collect();
                prop_assert_eq!(names(&found), names(&want));
            }
        }
        for (snapshot, then) in snapshots {
            let shown: BTreeMap<_, _> = snapshot.iter().map(|object| (object.key(), Arc::clone(object))).collect();
            prop_assert_eq!(snapshot.len(), then.len());
            prop_assert_eq!(shown, then);
        }
    }
}
