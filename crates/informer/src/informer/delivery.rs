//! The pending changes of one subscriber: pure bookkeeping, coalesced per object.
//!
//! For each object there is at most one entry, whatever happened to it, so a subscriber that never runs costs at most
//! one entry per object that exists or that it has seen. What the subscriber saw last is not stored for every object:
//! while nothing is pending it is what the store shows.
//!
//! The initial state is a snapshot of the store and not an entry per object: a manager starts with a score of subscribers to the same
//! hundred thousand pods. Its objects are delivered before all entries; an object that has an entry by then is delivered in the
//! state of that entry, or not at all if it is gone.

use std::sync::Arc;

use steersman_model::View;

use crate::change::Change;
use crate::delta_fifo::End;
use crate::keyed_queue::{KeyRef, Keyed, KeyedQueue};
use crate::store::Snapshot;

/// The pending changes of one name: `old` of `Updated` is what the subscriber saw last.
pub(crate) enum Pending<V> {
    /// One change.
    One(Change<V>),
    /// The deletion of an object that the subscriber has seen, with what came before or after it.
    Ended(Box<Ended<V>>),
}

/// The deletion of an object that the subscriber has seen.
///
/// An update before it is delivered too: a handler may compare the states of an update, and ignore the deletion of an object
/// that was of no interest any more in its last state.
pub(crate) struct Ended<V> {
    /// The state that the subscriber saw last, and the newest one before the deletion, if they differ.
    update: Option<(Arc<V>, Arc<V>)>,
    last: Arc<V>,
    end: End,
    /// Another object with the same name.
    next: Option<Arc<V>>,
}

/// The objects of the initial state that are not delivered yet: those from `place` on.
struct Initial<V> {
    state: Snapshot<V>,
    place: usize,
}

/// The pending changes of a subscriber.
pub(crate) struct Backlog<V> {
    initial: Option<Initial<V>>,
    entries: KeyedQueue<Pending<V>>,
    /// Whether the first list was added.
    listed: bool,
    /// The number of objects of the initial state that the handler has not processed yet, including those being
    /// delivered.
    initial_left: usize,
    /// Whether a batch is being delivered.
    delivering: bool,
}

/// Entries that are being delivered.
pub(crate) struct Batch<V> {
    pub(crate) entries: Vec<Pending<V>>,
    /// The number of objects of the initial state that are done with it.
    initial: usize,
}

// === impl Backlog ===

impl<V: View> Backlog<V> {
    pub(crate) fn new() -> Self {
        Self { initial: None, entries: KeyedQueue::new(), listed: false, initial_left: 0, delivering: false }
    }

    /// Returns the number of pending objects. One that changed before its initial state was delivered counts twice.
    pub(crate) fn len(&self) -> usize {
        let initial = if self.initial.is_some() { self.initial_left } else { 0 };
        initial + self.entries.len()
    }

    fn is_empty(&self) -> bool {
        self.initial.is_none() && self.entries.is_empty()
    }

    /// Whether the handler has processed the whole initial state.
    pub(crate) fn is_synced(&self) -> bool {
        self.listed && self.initial_left == 0
    }

    /// Sets the initial state; `listed`: whether it is a whole list. The subscriber must have seen none of its objects, and nothing
    /// may be pending.
    pub(crate) fn seed(&mut self, state: Snapshot<V>, listed: bool) {
        debug_assert!(self.is_empty(), "the initial state comes first");
        self.initial_left += state.len();
        self.initial = (!state.is_empty()).then_some(Initial { state, place: 0 });
        self.listed |= listed;
    }

    /// Adds the first list: the changes that led to a state of the store.
    pub(crate) fn add_list(&mut self, changes: &[Change<V>], state: Snapshot<V>) {
        // Else the store knew objects before, of which the subscriber may have seen some.
        let is_all =
            changes.len() == state.len() && changes.iter().all(|change| matches!(change, Change::Added { .. }));
        if is_all && self.is_empty() {
            return self.seed(state, true);
        }
        changes.iter().for_each(|change| self.add(change.clone(), true));
        self.listed = true;
    }

    /// Adds the objects again that the subscriber has seen.
    pub(crate) fn again<'a>(&mut self, objects: impl Iterator<Item = &'a Arc<V>>) {
        for now in objects {
            if !self.entries.contains(now.meta().into()) {
                let again = Change::Updated { old: Arc::clone(now), new: Arc::clone(now) };
                self.entries.push_back(Pending::One(again));
            }
        }
    }

    /// Adds a change of the store. Calls come in the order in which the store changed, and miss nothing.
    pub(crate) fn add(&mut self, change: Change<V>, initial: bool) {
        let key = KeyRef::from(change.object().meta());
        let Some(entry) = self.entries.get_mut(key) else {
            let entry = Pending::One(match change {
                Change::Added { new, .. } => Change::Added { new, initial },
                change => change,
            });
            self.initial_left += usize::from(entry.is_initial());
            return self.entries.push_back(entry);
        };
        if let (Pending::One(Change::Added { initial, .. }), Change::Deleted { .. }) = (&*entry, &change) {
            self.initial_left -= usize::from(*initial);
            self.entries.remove(key);
            return;
        }
        entry.merge(change);
    }

    /// Begins the delivery of the next changes beside the backlog, if nothing is pending and nothing is being delivered: what
    /// the subscriber has seen is then what the store showed before them.
    pub(crate) fn bypass(&mut self) -> bool {
        if self.delivering || !self.is_synced() || !self.is_empty() {
            return false;
        }
        self.delivering = true;
        true
    }

    /// Takes out the first entries, to be delivered without holding the lock; none while others are being delivered.
    pub(crate) fn take(&mut self, entries_max: usize) -> Batch<V> {
        if self.delivering {
            return Batch { entries: Vec::new(), initial: 0 };
        }
        let mut batch = Batch { entries: Vec::with_capacity(entries_max.min(self.len())), initial: 0 };
        while batch.entries.len() < entries_max
            && let Some(initial) = &mut self.initial
        {
            let Some((next, object)) = initial.state.next_from(initial.place) else {
                self.initial = None;
                break;
            };
            initial.place = next;
            batch.initial += 1;
            let newest = match self.entries.remove(object.meta().into()) {
                None => Some(Arc::clone(object)),
                Some(changed) => changed.into_newest(),
            };
            batch.entries.extend(newest.map(|new| Pending::One(Change::Added { new, initial: true })));
        }
        while batch.entries.len() < entries_max
            && let Some(entry) = self.entries.pop_front()
        {
            batch.initial += usize::from(entry.is_initial());
            batch.entries.push(entry);
        }
        self.delivering = !batch.is_empty();
        batch
    }

    /// Records that the handler has processed a batch, or the changes beside the backlog; returns whether more wait.
    pub(crate) fn handed_over(&mut self, initial: usize) -> bool {
        self.initial_left -= initial;
        self.delivering = false;
        !self.is_empty()
    }
}

// === impl Batch ===

impl<V> Batch<V> {
    pub(crate) fn initial(&self) -> usize {
        self.initial
    }

    /// Whether there is nothing to hand over: not even objects of the initial state that are gone.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.initial == 0
    }
}

// === impl Pending ===

impl<V: View> Pending<V> {
    fn is_initial(&self) -> bool {
        matches!(self, Self::One(change) if change.is_initial())
    }

    /// Merges one more change. An object that was added and deleted does not come here: nothing remains of it.
    fn merge(&mut self, change: Change<V>) {
        if change.is_resync() {
            return;
        }
        match (&mut *self, change) {
            (
                Self::One(Change::Added { new, .. } | Change::Updated { new, .. }),
                Change::Added { new: next, .. } | Change::Updated { new: next, .. },
            ) => *new = next,
            (Self::One(Change::Deleted { last, end }), Change::Added { new, .. }) => {
                let last = Arc::clone(last);
                *self = Self::Ended(Box::new(Ended { update: None, last, end: *end, next: Some(new) }));
            }
            (Self::One(Change::Updated { old, new }), Change::Deleted { last, end }) => {
                let update = (!Arc::ptr_eq(old, new)).then(|| (Arc::clone(old), Arc::clone(new)));
                *self = match update {
                    Some(_) => Self::Ended(Box::new(Ended { update, last, end, next: None })),
                    None => Self::One(Change::Deleted { last, end }),
                };
            }
            (Self::Ended(ended), Change::Added { new, .. } | Change::Updated { new, .. }) => ended.next = Some(new),
            // The next object came and went unseen.
            (Self::Ended(ended), Change::Deleted { .. }) => ended.next = None,
            (Self::One(Change::Deleted { .. }), Change::Updated { .. } | Change::Deleted { .. })
            | (Self::One(Change::Added { .. }), Change::Deleted { .. }) => {
                // The store does not change deleted objects.
                debug_assert!(false, "a change of an object that is not there");
            }
        }
    }

    /// Returns the newest state, which is to be delivered without what came before; `None` if the object is gone.
    fn into_newest(self) -> Option<Arc<V>> {
        match self {
            Self::One(Change::Added { new, .. } | Change::Updated { new, .. }) => Some(new),
            Self::One(Change::Deleted { .. }) => None,
            Self::Ended(ended) => ended.next,
        }
    }

    /// Returns the changes to deliver, in order: one, or up to three around a deletion.
    pub(crate) fn changes(self) -> impl Iterator<Item = Change<V>> {
        let changes = match self {
            Self::One(change) => [Some(change), None, None],
            Self::Ended(ended) => {
                let Ended { update, last, end, next } = *ended;
                let added = next.map(|new| Change::Added { new, initial: false });
                [update.map(|(old, new)| Change::Updated { old, new }), Some(Change::Deleted { last, end }), added]
            }
        };
        changes.into_iter().flatten()
    }
}

impl<V: View> Keyed for Pending<V> {
    fn key(&self) -> KeyRef<'_> {
        match self {
            Self::One(change) => change.object().meta().into(),
            Self::Ended(ended) => ended.last.meta().into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use steersman_base::{Istr, Meta};

    use super::*;
    use crate::test_objects::object;

    #[derive(Clone, Debug)]
    enum Step {
        Put(u8),
        Delete(u8),
        Again,
        Take(u8),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            6 => (0u8..5).prop_map(Step::Put),
            4 => (0u8..5).prop_map(Step::Delete),
            1 => Just(Step::Again),
            3 => (1u8..4).prop_map(Step::Take),
        ];
        prop::collection::vec(step, 1..200)
    }

    /// The state that one subscriber derives from its changes.
    #[derive(Default)]
    struct Believer(BTreeMap<Istr, Arc<Meta>>);

    impl Believer {
        fn hear(&mut self, change: &Change<Meta>) {
            let name = change.object().name.clone();
            match change {
                Change::Added { new, .. } => {
                    assert!(self.0.insert(name, Arc::clone(new)).is_none(), "{change:?}: it has one of that name");
                }
                Change::Updated { old, new } => {
                    let seen = self.0.insert(name, Arc::clone(new)).expect("it has seen the object");
                    assert!(Arc::ptr_eq(&seen, old), "{change:?}: `old` is what it saw last");
                    assert_eq!(old.uid, new.uid, "{change:?}");
                    let is_news = new.resource_version.is_newer_than(&old.resource_version);
                    assert!(is_news || change.is_resync(), "{change:?}: in order");
                }
                Change::Deleted { last, .. } => {
                    let seen = self.0.remove(&name).expect("it has seen the object");
                    assert!(Arc::ptr_eq(&seen, last), "{change:?}: the update before the deletion was delivered");
                }
            }
        }
    }

    #[test]
    fn an_object_of_the_initial_state_is_shown_once_as_it_is_by_then() {
        let mut store: BTreeMap<&str, Arc<Meta>> = BTreeMap::new();
        for name in ["changed", "gone", "kept", "replaced"] {
            store.insert(name, object(&format!("{name}#{name}@1")));
        }
        let mut backlog = Backlog::new();
        backlog.seed(store.values().cloned().collect(), true);
        let changed = object("changed#changed@2");
        backlog.add(Change::Updated { old: Arc::clone(&store["changed"]), new: Arc::clone(&changed) }, false);
        backlog.add(Change::Deleted { last: Arc::clone(&store["gone"]), end: End::Observed }, false);
        backlog.add(Change::Deleted { last: Arc::clone(&store["replaced"]), end: End::Observed }, false);
        let replaced = object("replaced#another@5");
        backlog.add(Change::Added { new: Arc::clone(&replaced), initial: false }, false);
        let mut shown = Vec::new();
        while !backlog.is_synced() {
            let batch = backlog.take(1);
            assert!(!batch.is_empty(), "something is left of the initial state");
            backlog.handed_over(batch.initial());
            shown.extend(batch.entries.into_iter().flat_map(Pending::changes));
        }
        let added: Vec<_> =
            shown.iter().map(|change| (change.is_initial(), change.object().as_ref().clone())).collect();
        let want = [&changed, &store["kept"], &replaced].map(|object| (true, object.as_ref().clone()));
        assert_eq!(added, want);
        assert!(backlog.take(5).is_empty());
        assert!(!backlog.delivering, "nothing is being delivered");
    }

    proptest! {
        #[test]
        fn a_subscriber_that_applies_its_changes_ends_with_the_state_of_the_store(
            steps in steps(),
            late in 0usize..50,
            quick: bool,
        ) {
            let mut store: BTreeMap<u8, Arc<Meta>> = BTreeMap::new();
            let mut backlog = None;
            let mut believer = Believer::default();
            let mut ever_seen = 0;
            // What is being delivered beside the backlog.
            let mut now: Vec<Change<Meta>> = Vec::new();
            for (at, step) in steps.into_iter().enumerate() {
                if at == late {
                    let mut fresh = Backlog::new();
                    fresh.seed(store.values().cloned().collect(), true);
                    backlog = Some(fresh);
                }
                let mut applied = Vec::new();
                // A resync may come in between, from another task; other changes come from the one that delivers.
                if let Some(backlog) = backlog.as_mut().filter(|_| !now.is_empty() && !matches!(step, Step::Again)) {
                    prop_assert!(backlog.take(5).entries.is_empty(), "one delivers at a time");
                    now.drain(..).for_each(|change| believer.hear(&change));
                    backlog.handed_over(0);
                }
                match step {
                    Step::Put(name) => {
                        // After a deletion the next object of the name has another uid.
                        let uid = store.get(&name).map_or_else(|| format!("{at}"), |held| held.uid.to_string());
                        let new = object(&format!("n{name}#{uid}@{}", at + 1));
                        applied.push(match store.insert(name, Arc::clone(&new)) {
                            Some(old) => Change::Updated { old, new },
                            None => Change::Added { new, initial: false },
                        });
                    }
                    Step::Delete(name) => applied.extend(
                        store.remove(&name).map(|last| Change::Deleted { last, end: End::Observed }),
                    ),
                    Step::Again => backlog.iter_mut().for_each(|backlog| backlog.again(store.values())),
                    Step::Take(count) => if let Some(backlog) = &mut backlog {
                        let batch = backlog.take(usize::from(count));
                        prop_assert!(batch.entries.is_empty() || !backlog.bypass(), "one delivers at a time");
                        backlog.handed_over(batch.initial());
                        for entry in batch.entries {
                            entry.changes().for_each(|change| believer.hear(&change));
                        }
                        ever_seen = ever_seen.max(believer.0.len());
                    },
                }
                if let Some(backlog) = &mut backlog {
                    if quick && !applied.is_empty() && backlog.bypass() {
                        now.append(&mut applied);
                    }
                    applied.into_iter().for_each(|change| backlog.add(change, false));
                    prop_assert!(backlog.entries.len() <= 5, "one entry per name at most");
                    prop_assert!(backlog.len() <= 10, "beside the initial state");
                }
            }
            let Some(mut backlog) = backlog else { return Ok(()) };
            if !now.is_empty() {
                now.drain(..).for_each(|change| believer.hear(&change));
                backlog.handed_over(0);
            }
            let batch = backlog.take(usize::MAX);
            backlog.handed_over(batch.initial());
            prop_assert!(backlog.is_synced());
            for entry in batch.entries {
                entry.changes().for_each(|change| believer.hear(&change));
            }
            let believed: Vec<_> = believer.0.into_values().collect();
            prop_assert_eq!(believed, store.into_values().collect::<Vec<_>>());
        }
    }
}
