//! Pure: one pending time per slot, the earliest first.
//!
//! A binary heap that knows where each slot's timer is, so that a timer can be moved or taken out. There is at most
//! one timer per slot: the heap never outgrows the keys, however often they are re-timed.

use super::entries::Slot;
use crate::Instant;

/// The pending times of all delayed keys.
#[derive(Default)]
pub(super) struct Timers {
    /// A binary heap, least [`Timer::rank`] on top.
    heap: Vec<Timer>,
    /// By slot: the index of its timer in `heap`, or [`ABSENT`].
    places: Vec<u32>,
    /// The number of timers that were ever set; breaks ties, so that equal times keep their order.
    set: u64,
}

#[derive(Clone, Copy)]
struct Timer {
    due: Instant,
    order: u64,
    slot: Slot,
}

const ABSENT: u32 = u32::MAX;

// === impl Timer ===

impl Timer {
    fn rank(&self) -> (Instant, u64) {
        (self.due, self.order)
    }
}

// === impl Timers ===

impl Timers {
    /// Returns the time at which the next timer is due.
    #[inline]
    pub(super) fn earliest(&self) -> Option<Instant> {
        self.heap.first().map(|timer| timer.due)
    }

    /// Returns the time at which the slot's timer is due, if it has one.
    #[inline]
    pub(super) fn due(&self, slot: Slot) -> Option<Instant> {
        self.place(slot).map(|at| self.heap[at].due)
    }

    /// Whether the slot has a timer.
    #[inline]
    pub(super) fn contains(&self, slot: Slot) -> bool {
        self.place(slot).is_some()
    }

    /// Sets the slot's timer, unless it has an earlier one.
    pub(super) fn bring_forward(&mut self, slot: Slot, due: Instant) {
        match self.place(slot) {
            Some(at) if self.heap[at].due <= due => return,
            Some(_) => self.cancel(slot),
            None => {}
        }
        self.set += 1;
        let at = self.heap.len();
        let timer = Timer { due, order: self.set, slot };
        self.heap.push(timer);
        self.rise(at, timer);
    }

    /// Takes the slot's timer out, if it has one.
    #[inline]
    pub(super) fn cancel(&mut self, slot: Slot) {
        let Some(at) = self.place(slot) else { return };
        self.places[slot.index()] = ABSENT;
        let Some(last) = self.heap.pop() else { return };
        if at == self.heap.len() {
            return; // it was the last one itself
        }
        // The last timer fills the hole: it moves up or down, whichever its rank asks for.
        if at > 0 && last.rank() < self.heap[(at - 1) / 2].rank() {
            self.rise(at, last);
        } else {
            self.sink(at, last);
        }
    }

    /// Takes out the earliest timer, if it is due.
    #[inline]
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<(Slot, Instant)> {
        let Timer { due, slot, .. } = *self.heap.first()?;
        if due > now {
            return None;
        }
        self.cancel(slot);
        Some((slot, due))
    }

    /// Takes out every timer, and says whose they were.
    pub(super) fn take_all(&mut self) -> Vec<Slot> {
        self.places.clear();
        self.heap.drain(..).map(|timer| timer.slot).collect()
    }

    #[inline]
    fn place(&self, slot: Slot) -> Option<usize> {
        self.places.get(slot.index()).filter(|&&at| at != ABSENT).map(|&at| at as usize)
    }

    /// Finds `timer` its place at `at` or above.
    fn rise(&mut self, mut at: usize, timer: Timer) {
        while at > 0 {
            let parent = (at - 1) / 2;
            if self.heap[parent].rank() <= timer.rank() {
                break;
            }
            self.put(at, self.heap[parent]);
            at = parent;
        }
        self.put(at, timer);
    }

    /// Finds `timer` its place at `at` or below.
    fn sink(&mut self, mut at: usize, timer: Timer) {
        loop {
            let left = 2 * at + 1;
            let Some(first) = self.heap.get(left) else { break };
            let child = match self.heap.get(left + 1) {
                Some(second) if second.rank() < first.rank() => left + 1,
                _ => left,
            };
            if timer.rank() <= self.heap[child].rank() {
                break;
            }
            self.put(at, self.heap[child]);
            at = child;
        }
        self.put(at, timer);
    }

    fn put(&mut self, at: usize, timer: Timer) {
        let slot = timer.slot.index();
        if self.places.len() <= slot {
            self.places.resize(slot + 1, ABSENT);
        }
        self.places[slot] = u32::try_from(at).unwrap_or(ABSENT); // a heap is no longer than there are slots
        self.heap[at] = timer;
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, time::Duration};

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The reference is a map from slot to (due, order), searched for its least.
        #[test]
        fn timers_fire_in_order_whatever_is_moved_or_cancelled(
            steps in prop::collection::vec((0u8..4, 0u32..12, 0u64..20), 1..200),
        ) {
            let epoch = Instant::now();
            let at = |tick: u64| epoch + Duration::from_millis(tick);
            let mut timers = Timers::default();
            let mut model: BTreeMap<u32, (u64, usize)> = BTreeMap::new();
            for (order, (step, slot, tick)) in steps.into_iter().enumerate() {
                match step {
                    0 | 1 => {
                        timers.bring_forward(Slot::new(slot), at(tick));
                        if model.get(&slot).is_none_or(|&(due, _)| tick < due) {
                            model.insert(slot, (tick, order));
                        }
                    }
                    2 => {
                        timers.cancel(Slot::new(slot));
                        model.remove(&slot);
                    }
                    _ => {
                        let first = model.iter().min_by_key(|(_, rank)| **rank).map(|(slot, rank)| (*slot, rank.0));
                        let want = first.filter(|&(_, due)| due <= tick);
                        if let Some((slot, _)) = want {
                            model.remove(&slot);
                        }
                        prop_assert_eq!(
                            timers.pop_due(at(tick)),
                            want.map(|(slot, due)| (Slot::new(slot), at(due)))
                        );
                    }
                }
                prop_assert_eq!(timers.earliest(), model.values().min().map(|&(due, _)| at(due)));
                prop_assert_eq!(timers.contains(Slot::new(slot)), model.contains_key(&slot));
            }
            prop_assert_eq!(timers.take_all().len(), model.len());
            prop_assert_eq!(timers.earliest(), None);
        }
    }
}
