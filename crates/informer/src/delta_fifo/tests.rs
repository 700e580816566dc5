//! The guarantees of the module, one by one; then random operations against a simple model.

mod model;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use steersman_base::{Meta, ObjectKey, ResourceVersion};

use super::*;
use crate::sink::Verdict;
use crate::sink::WatchEvent::{self, Added, Deleted, Modified};
use crate::test_objects::{key, object, objects, show};
use crate::wire::Peeked;

/// A store for tests: what was handed over is put in by [`Bench::take`].
#[derive(Default)]
struct Bench {
    fifo: DeltaFifo<Meta>,
    store: Shelf,
}

#[derive(Default)]
struct Shelf(BTreeMap<ObjectKey, Arc<Meta>>);

impl Known<Meta> for Shelf {
    fn known(&self, key: &ObjectKey) -> Option<Arc<Meta>> {
        self.0.get(key).cloned()
    }

    fn each_known(&self, look: &mut dyn FnMut(&Arc<Meta>)) {
        self.0.values().for_each(look);
    }
}

fn list(version: &str) -> ListInfo {
    ListInfo { version: version.into(), begun: None }
}

fn lines(popped: &Popped<Meta>) -> Vec<String> {
    popped.iter().map(|deltas| deltas.as_slice().iter().map(line).collect::<Vec<_>>().join(" ")).collect()
}

fn line(delta: &Delta<Meta>) -> String {
    let what = match delta {
        Delta::Added(_) => "A",
        Delta::Updated(_) => "U",
        Delta::Deleted { end: End::Observed, .. } => "D",
        Delta::Deleted { end: End::Missed, .. } => "M",
        Delta::Replaced(_) => "R",
        Delta::Sync(_) => "S",
    };
    format!("{what}:{}", show(delta.object()))
}

impl Bench {
    /// A store that already holds these.
    fn holding(texts: &[&str]) -> Self {
        let held = objects(texts).into_iter().map(|object| (object.key(), object)).collect();
        Self { store: Shelf(held), ..Self::default() }
    }

    fn apply(&self, event: WatchEvent<Meta>) -> bool {
        self.fifo.apply(event, &self.store) == Verdict::News
    }

    fn replace(&self, texts: &[&str], version: &str) {
        self.fifo.replace(objects(texts), list(version), &self.store);
    }

    /// Pops up to so many keys into the store, and shows what came.
    fn take(&mut self, keys_max: usize) -> Option<(Vec<String>, Option<ResourceVersion>)> {
        let store = &mut self.store;
        let popped = self.fifo.try_pop(keys_max, |popped| {
            let shown = (lines(popped), popped.reached.clone());
            for delta in popped.drain().flatten() {
                match delta.state() {
                    Some(state) => store.0.insert(state.key(), Arc::clone(state)),
                    None => store.0.remove(&delta.object().key()),
                };
            }
            Ok::<_, Infallible>(shown)
        });
        popped.map(|Ok(shown)| shown)
    }

    #[track_caller]
    fn expect(&mut self, want: &[&str]) {
        assert_eq!(self.take(usize::MAX).map(|(lines, _)| lines).unwrap_or_default(), want);
    }
}

#[test]
fn keys_come_first_in_first_out_with_their_deltas_in_order() {
    let mut bench = Bench::holding(&["b#1@1"]);
    bench.apply(Added(object("a#1@2")));
    bench.apply(Modified(object("b#1@3")));
    bench.apply(Added(object("c#1@4")));
    bench.apply(Deleted(object("b#1@5")));
    bench.expect(&["A:a#1@2", "U:b#1@3 D:b#1@5", "A:c#1@4"]);
}

#[test]
fn a_push_compresses_and_never_across_uids() {
    let check = |what: &str, held: &[&str], events: Vec<WatchEvent<Meta>>, want: &[&str]| {
        let mut bench = Bench::holding(held);
        for event in events {
            bench.apply(event);
        }
        let got = bench.take(usize::MAX).map(|(lines, _)| lines).unwrap_or_default();
        assert_eq!(got, want, "{what}");
    };
    let o = object;
    check("added and updated is added", &[], vec![Added(o("a#1@2")), Modified(o("a#1@3"))], &["A:a#1@3"]);
    check("of updates the last counts", &["a#1@1"], vec![Modified(o("a#1@2")), Modified(o("a#1@3"))], &["U:a#1@3"]);
    check("an Added of what is known is an update", &["a#1@1"], vec![Added(o("a#1@2"))], &["U:a#1@2"]);
    check("one deletion is enough", &["a#1@1"], vec![Deleted(o("a#1@2")), Deleted(o("a#1@2"))], &["D:a#1@2"]);
    check(
        "the end of one and the beginning of the next stay two",
        &["a#1@1"],
        vec![Modified(o("a#1@2")), Deleted(o("a#1@3")), Added(o("a#2@4")), Modified(o("a#2@5"))],
        &["U:a#1@2 D:a#1@3 A:a#2@5"],
    );
    check(
        "a uid that came and went leaves no trace",
        &["a#1@1"],
        vec![
            Deleted(o("a#1@2")),
            Added(o("a#2@3")),
            Deleted(o("a#2@4")),
            Added(o("a#3@5")),
            Deleted(o("a#3@6")),
            Added(o("a#4@7")),
        ],
        &["D:a#1@2 A:a#4@7"],
    );
}

#[test]
fn a_deletion_that_was_observed_is_better_known_than_one_that_was_missed() {
    let mut state = state::State::new();
    let missed = |text| Delta::Deleted { last: object(text), end: End::Missed };
    let observed = |text| Delta::Deleted { last: object(text), end: End::Observed };
    for delta in [missed("a#1@1"), observed("a#1@2"), missed("a#1@3"), observed("b#1@9"), missed("b#1@9")] {
        state.push(delta);
    }
    assert_eq!(lines(&state.take(usize::MAX).unwrap()), ["D:a#1@2", "D:b#1@9"]);
}

#[test]
fn replace_deletes_what_the_store_or_the_queue_knows_and_the_list_does_not() {
    let mut bench = Bench::holding(&["gone#1@1", "kept#1@1", "reborn#1@1", "updated#1@1"]);
    bench.apply(Added(object("queued#1@2")));
    bench.apply(Modified(object("updated#1@3")));
    bench.apply(Added(object("short-lived#1@4")));
    bench.apply(Deleted(object("short-lived#1@5")));
    bench.replace(&["kept#1@1", "reborn#2@8", "new#1@9"], "10");
    bench.expect(&[
        "R:kept#1@1",
        "R:reborn#2@8",
        "R:new#1@9",
        "A:queued#1@2 M:queued#1@2",
        "U:updated#1@3 M:updated#1@3",
        "A:short-lived#1@4 D:short-lived#1@5",
        "M:gone#1@1",
    ]);
}

#[test]
fn a_list_and_all_that_is_pending_with_it_is_one_batch() {
    let mut bench = Bench::holding(&["a#1@1"]);
    bench.apply(Added(object("before#1@2")));
    bench.replace(&["a#1@1", "before#1@2", "b#1@3"], "5");
    bench.apply(Added(object("after#1@6")));
    bench.apply(Modified(object("b#1@7")));
    let (lines, reached) = bench.take(1).unwrap();
    assert_eq!(lines, ["R:a#1@1", "A:before#1@2", "U:b#1@7", "A:after#1@6"], "although one key was asked for");
    assert_eq!(reached, Some("7".into()));
    assert!(bench.take(1).is_none());
}

#[test]
fn a_list_that_shows_a_key_twice_counts_the_later_one() {
    let mut bench = Bench::default();
    bench.replace(&["a#1@1", "b#1@1", "a#1@2", "b#2@3"], "5");
    bench.expect(&["R:a#1@2", "R:b#1@1 R:b#2@3"]);
}

#[test]
fn resync_looks_again_where_nothing_is_pending() {
    let mut bench = Bench::holding(&["a#1@1", "b#1@1"]);
    bench.apply(Modified(object("b#1@2")));
    bench.fifo.resync(&bench.store);
    bench.expect(&["U:b#1@2", "S:a#1@1"]);
    bench.fifo.resync(&bench.store);
    bench.apply(Modified(object("a#1@3")));
    bench.expect(&["U:a#1@3", "S:b#1@2"]);
}

#[test]
fn stale_events_are_dropped() {
    let check = |what: &str, held: &[&str], first: Option<WatchEvent<Meta>>, stale: WatchEvent<Meta>| {
        let mut bench = Bench::holding(held);
        bench.fifo.advance("50".into());
        if let Some(first) = first {
            assert!(bench.apply(first), "{what}: the first event is news");
        }
        bench.take(usize::MAX);
        assert!(!bench.apply(stale), "{what}");
        assert_eq!(bench.fifo.len(), 0, "{what}");
    };
    let o = object;
    check("a duplicate", &["a#1@40"], None, Modified(o("a#1@40")));
    check("older than what is known", &["a#1@40"], None, Modified(o("a#1@39")));
    check("of the object that had the name before", &["a#2@40"], None, Modified(o("a#1@39")));
    check("the end of the object that had the name before", &["a#2@40"], None, Deleted(o("a#1@39")));
    check("the end of what nobody knows", &[], None, Deleted(o("a#1@60")));
    check("a change that was overtaken by the end", &["a#1@40"], Some(Deleted(o("a#1@60"))), Modified(o("a#1@55")));
}

#[test]
fn objects_without_a_version_are_never_taken_for_stale() {
    let mut bench = Bench::holding(&["a#1@"]);
    assert!(bench.apply(Modified(object("a#1@"))));
    bench.expect(&["U:a#1@"]);
}

#[test]
fn an_older_list_counts_because_the_server_was_restored() {
    let mut bench = Bench::holding(&["a#1@90", "b#1@95"]);
    bench.fifo.advance("100".into());
    bench.replace(&["a#1@40"], "50");
    let (lines, reached) = bench.take(usize::MAX).unwrap();
    assert_eq!(lines, ["R:a#1@40", "M:b#1@95"]);
    assert_eq!(reached, Some("50".into()));
    assert!(bench.apply(Modified(object("a#1@51"))), "events go on from there");
}

#[test]
fn a_version_is_handed_over_when_all_before_it_is() {
    let mut bench = Bench::default();
    bench.apply(Added(object("a#1@2")));
    bench.apply(Added(object("b#1@3")));
    bench.apply(Modified(object("a#1@4")));
    assert_eq!(bench.take(1).unwrap(), (vec!["A:a#1@4".into()], None), "b@3 is still queued, so 4 is not reached");
    assert_eq!(bench.take(1).unwrap(), (vec!["A:b#1@3".into()], Some("4".into())));
    bench.fifo.advance("9".into());
    assert_eq!(bench.take(1).unwrap(), (vec![], Some("9".into())), "a bookmark comes alone");
    bench.fifo.advance("8".into());
    assert!(bench.take(1).is_none(), "and never goes back");
}

#[test]
fn it_has_synced_once_the_first_list_is_popped() {
    let mut bench = Bench::default();
    bench.apply(Added(object("a#1@1")));
    bench.take(1);
    assert!(!bench.fifo.has_synced());
    bench.replace(&[], "2");
    assert!(!bench.fifo.has_synced(), "the list is there, but nobody has taken it");
    let (lines, reached) = bench.take(1).unwrap();
    assert_eq!((lines, reached), (vec!["M:a#1@1".into()], Some("2".into())));
    assert!(bench.fifo.has_synced());
}

#[test]
fn what_could_not_be_processed_is_queued_again() {
    let bench = Bench::default();
    bench.replace(&["a#1@1", "b#1@1", "c#1@1"], "5");
    let failed = bench.fifo.try_pop(1, |popped| {
        let first = popped.next_key().unwrap();
        assert_eq!(first.object_key(), key("a"));
        Err::<(), _>("no room")
    });
    assert_eq!(failed, Some(Err("no room")));
    assert!(!bench.fifo.has_synced());
    bench.apply(Added(object("d#1@6")));
    let again = bench.fifo.try_pop(1, |popped| {
        assert!(popped.list.is_some() && popped.first_list, "it is still the first list");
        Ok::<_, Infallible>((lines(popped), popped.reached.clone()))
    });
    let want = ["R:b#1@1", "R:c#1@1", "A:d#1@6"].map(String::from).to_vec();
    assert_eq!(again, Some(Ok((want, Some("6".into())))), "but for what was processed");
}

#[test]
fn a_batch_that_is_queued_again_keeps_its_version() {
    let mut bench = Bench::default();
    bench.apply(Added(object("a#1@2")));
    assert_eq!(bench.fifo.try_pop(usize::MAX, |_| Err::<(), _>(())), Some(Err(())));
    assert_eq!(bench.take(usize::MAX), Some((vec!["A:a#1@2".to_owned()], Some("2".into()))));
}

#[test]
fn a_late_event_of_a_deleted_object_is_stale_before_and_after_the_deletion_is_handed_over() {
    let mut bench = Bench::holding(&["a#1@5"]);
    bench.apply(Deleted(object("a#1@7")));
    assert!(!bench.apply(Added(object("a#1@6"))));
    bench.expect(&["D:a#1@7"]);
    assert!(!bench.apply(Added(object("a#1@6"))));
    bench.expect(&[]);
}

#[test]
fn after_a_list_earlier_deletions_do_not_count() {
    let mut bench = Bench::holding(&["a#1@5"]);
    bench.apply(Deleted(object("a#1@7")));
    bench.expect(&["D:a#1@7"]);
    // The server was restored from a backup, in which the object exists.
    bench.replace(&["a#1@3"], "4");
    bench.expect(&["R:a#1@3"]);
    assert!(bench.apply(Modified(object("a#1@6"))));
    bench.expect(&["U:a#1@6"]);
}

#[test]
fn an_unreadable_event_ends_the_known_object_only_if_that_was_deleted_or_replaced() {
    let check = |what: &str, uid: &str, deleted: bool, want: &[&str]| {
        let mut bench = Bench::holding(&["a#1@5"]);
        let object = Peeked { key: key("a"), uid: uid.into(), resource_version: "6".into() };
        bench.apply(WatchEvent::Unreadable { object, deleted });
        let got = bench.take(usize::MAX).map(|(lines, _)| lines).unwrap_or_default();
        assert_eq!(got, want, "{what}");
    };
    check("it changed", "1", false, &[]);
    check("it was deleted", "1", true, &["D:a#1@5"]);
    check("another object has its name", "2", false, &["D:a#1@5"]);
    check("another object of its name was deleted", "2", true, &[]);
}

#[test]
fn a_single_key_that_fails_goes_to_the_end() {
    let bench = Bench::default();
    bench.apply(Added(object("a#1@1")));
    bench.apply(Added(object("b#1@2")));
    assert_eq!(bench.fifo.try_pop(1, |_| Err::<(), _>(())), Some(Err(())));
    let shown = bench.fifo.try_pop(1, |popped| Ok::<_, Infallible>(lines(popped)));
    assert_eq!(shown, Some(Ok(vec!["A:b#1@2".into()])));
}

#[tokio::test(start_paused = true)]
async fn pop_waits() {
    let bench = Arc::new(Bench::default());
    let popping = tokio::spawn({
        let bench = Arc::clone(&bench);
        async move { bench.fifo.pop(1, |popped| Ok::<_, Infallible>(lines(popped))).await }
    });
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    assert!(!popping.is_finished());
    bench.apply(Added(object("a#1@1")));
    assert_eq!(popping.await.unwrap(), Ok(vec!["A:a#1@1".into()]));
}

#[test]
fn an_entry_is_small_enough_for_half_a_million_of_them() {
    assert_eq!(size_of::<Deltas<Meta>>(), 16);
}
