//! The pending changes of one subscriber: pure bookkeeping, coalesced per object.
//!
//! For each object there is at most one entry, whatever happened to it, so a subscriber that never runs costs at most
//! one entry per object that exists or that it has seen. What the subscriber saw last is not stored for every object:
//! while nothing is pending it is what the store shows.

use std::sync::Arc;

use steersman_model::View;

use crate::change::Change;
use crate::delta_fifo::End;
use crate::keyed_queue::{KeyRef, Keyed, KeyedQueue};

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

/// The pending changes of a subscriber.
pub(crate) struct Backlog<V> {
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
    initial: usize,
}

// === impl Backlog ===

impl<V: View> Backlog<V> {
    pub(crate) fn new() -> Self {
        Self { entries: KeyedQueue::new(), listed: false, initial_left: 0, delivering: false }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the handler has processed the whole initial state.
    pub(crate) fn is_synced(&self) -> bool {
        self.listed && self.initial_left == 0
    }

    /// Adds the current state for a late subscriber; `listed`: whether that is a whole list already.
    pub(crate) fn seed<'a>(&mut self, objects: impl Iterator<Item = &'a Arc<V>>, listed: bool) {
        for now in objects {
            self.add(Change::Added { new: Arc::clone(now), initial: false }, true);
        }
        self.listed = listed;
    }

    /// Records that the first list has been added.
    pub(crate) fn set_listed(&mut self) {
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
        if self.delivering || !self.is_synced() || !self.entries.is_empty() {
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
        self.delivering = !self.entries.is_empty();
        let mut entries = Vec::with_capacity(entries_max.min(self.entries.len()));
        while entries.len() < entries_max
            && let Some(entry) = self.entries.pop_front()
        {
            entries.push(entry);
        }
        let initial = entries.iter().filter(|entry| entry.is_initial()).count();
        Batch { entries, initial }
    }

    /// Records that the handler has processed a batch, or the changes beside the backlog; returns whether more wait.
    pub(crate) fn handed_over(&mut self, initial: usize) -> bool {
        self.initial_left -= initial;
        self.delivering = false;
        !self.entries.is_empty()
    }
}

// === impl Batch ===

impl<V> Batch<V> {
    pub(crate) fn initial(&self) -> usize {
        self.initial
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
                    fresh.seed(store.values(), true);
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
                    prop_assert!(backlog.len() <= 5, "one entry per name at most");
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
