//! Pure: the queue as a state machine. Time comes in as a value; nothing here waits or locks.
//!
//! Each key is in one [`Place`]: idle, waiting in one of two lanes, or held. Beside that it may have one pending time
//! (delayed: idle with a timer) and, while held, a note that it was added again.
//!
//! ```text
//!            add                     take                    release
//!  idle ───────────────► waiting ───────────► held ──────────────────────► idle
//!    ▲ │                    ▲                  │ add: added_again            │
//!    │ └ add_after: timer ──┘ due              └──── release ──► waiting     └─ nothing pending, never failed: freed
//! ```
//!
//! What the rest of the crate relies on:
//!
//! 1. A waiting key has no timer: the coming hand-out serves everything that was pending.
//! 2. Only a held key is `added_again`; only an idle or held key has a timer.
//! 3. Due timers are served before anything else is done at `now`, so that waiting keys are ordered by the time they
//!    became ready, not by which call noticed it.
//! 4. After a shutdown there are no timers; after [`Shutdown::Drop`] nothing waits either.

mod backoff;
mod entries;
#[cfg(test)]
mod tests;
mod timers;

use std::time::Duration;

pub(crate) use self::{
    backoff::Cause,
    entries::{Slot, Spot},
};
use self::{
    entries::{Entries, Place},
    timers::Timers,
};
use crate::{
    Instant,
    key::IntoKey,
    limiter::RateLimiter,
    metrics::{Histogram, QueueStats},
    terms::{Gate, Priority, Shutdown},
};

/// While keys wait in both lanes, one key in this many is taken from the background lane. One in eight keeps the first
/// list moving (its 30,000 keys are processed after 240,000 live ones at worst) and costs live changes little.
const BACKGROUND_TURN: u32 = 8;

/// "Never", for time arithmetic: a longer delay is cut to this. Far from what an [`Instant`] can hold.
const LONGEST_DELAY: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// The verdict of a worker on a key it releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Done,
    Again(Cause),
    After(Duration),
    GiveUp,
    Park,
}

/// The answer to a worker that asks for a key.
pub(crate) enum Take<K> {
    Item { slot: Slot, key: K, failures: u32 },
    Nothing,
    Finished,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Closed,
    Open,
    Draining,
    Stopped,
}

/// The state of a queue.
pub(crate) struct State<K> {
    entries: Entries<K>,
    timers: Timers,
    limiter: Box<dyn RateLimiter<K>>,
    phase: Phase,
    /// The number of live keys handed out in a row while a background key waited.
    live_in_a_row: u32,
    /// The number of held keys that were added again.
    added_again: usize,
    tally: Tally,
}

/// The counters.
#[derive(Default)]
struct Tally {
    adds: u64,
    retries: u64,
    given_up: u64,
    waited: Histogram,
    worked: Histogram,
}

// === impl State: what producers do ===

impl<K: Eq> State<K> {
    /// Finds a key. The answer is valid until a key is added or released.
    pub(crate) fn find(&self, hash: u64, key: &K) -> Spot {
        self.entries.find(hash, key)
    }
}

impl<K> State<K> {
    pub(crate) fn new(gate: Gate, limiter: Box<dyn RateLimiter<K>>) -> Self {
        let phase = match gate {
            Gate::Open => Phase::Open,
            Gate::Closed => Phase::Closed,
        };
        Self {
            entries: Entries::new(),
            timers: Timers::default(),
            limiter,
            phase,
            live_in_a_row: 0,
            added_again: 0,
            tally: Tally::default(),
        }
    }

    /// Whether an add would change nothing: the key is already waiting, or the queue is shut down.
    ///
    /// This is the common case, and checking it first avoids reading the clock.
    pub(crate) fn is_settled(&self, spot: Spot, priority: Priority) -> bool {
        let Some(slot) = spot.slot else { return self.is_shutting_down() };
        let entry = &self.entries[slot];
        let lane = match entry.place() {
            Place::Idle => None,
            Place::Waiting(lane) => Some(lane),
            Place::Held => entry.added_again,
        };
        lane >= Some(priority) || self.is_shutting_down()
    }

    /// Enqueues a key: at once or, if it is backing off, when the back-off allows.
    pub(crate) fn add(&mut self, spot: Spot, key: impl IntoKey<K>, priority: Priority, now: Instant) {
        self.serve_timers(now);
        if self.is_shutting_down() {
            return;
        }
        let slot = self.known(spot, key, priority, now);
        self.arrive(slot, priority, now);
    }

    /// Enqueues a key later. The earliest of all pending times wins.
    pub(crate) fn add_after(&mut self, spot: Spot, key: impl IntoKey<K>, delay: Duration, now: Instant) {
        self.serve_timers(now);
        if self.is_shutting_down() {
            return;
        }
        self.tally.retries += 1;
        let slot = self.known(spot, key, Priority::Live, now);
        self.schedule(slot, Priority::Live, after(now, delay), now);
    }

    /// Enqueues a key when the rate limiter allows it, and returns the delay.
    pub(crate) fn add_rate_limited(&mut self, spot: Spot, key: impl IntoKey<K>, now: Instant) -> Duration {
        self.serve_timers(now);
        if self.is_shutting_down() {
            return Duration::ZERO;
        }
        self.tally.retries += 1;
        let slot = self.known(spot, key, Priority::Live, now);
        let due = self.back_off(slot, Cause::Asked, now);
        self.schedule(slot, Priority::Live, due, now);
        self.timers.due(slot).map_or(Duration::ZERO, |due| due.saturating_duration_since(now))
    }

    /// Forgets a key's failures. A retry that is pending stays pending.
    pub(crate) fn forget(&mut self, spot: Spot) {
        if let Some(slot) = spot.slot {
            self.clear_failures(slot);
            // The next back-off is counted from its own start, not from an attempt that is forgotten.
            let entry = &mut self.entries[slot];
            if entry.place() != Place::Held {
                entry.started = None;
            }
            self.free_if_idle(slot);
        }
    }

    /// Returns how often a key went through the rate limiter since it was last forgotten.
    pub(crate) fn num_requeues(&self, spot: Spot) -> u32 {
        spot.slot.map_or(0, |slot| self.entries[slot].backoff.requeues())
    }
}

// === impl State: what workers do ===

impl<K: Clone> State<K> {
    /// Hands out the next key.
    pub(crate) fn take(&mut self, now: Instant) -> Take<K> {
        self.serve_timers(now);
        let Some(slot) = self.next_in_turn() else {
            return if self.is_finished() { Take::Finished } else { Take::Nothing };
        };
        let entry = &mut self.entries[slot];
        let key = entry.key().clone();
        let failures = entry.backoff.failures();
        entry.started = Some(now);
        self.tally.waited.observe(now.saturating_duration_since(entry.waits_since));
        self.entries.move_to(slot, Place::Held);
        Take::Item { slot, key, failures }
    }
}

impl<K> State<K> {
    /// Takes a held key back and applies the verdict of its holder. The returned key is dropped outside the lock.
    pub(crate) fn release(&mut self, slot: Slot, verdict: Verdict, now: Instant) -> Option<K> {
        self.serve_timers(now);
        let pending = self.settle(slot, verdict, now);
        self.entries.move_to(slot, Place::Idle);
        let entry = &mut self.entries[slot];
        if let Some(started) = entry.started {
            self.tally.worked.observe(now.saturating_duration_since(started));
        }
        if entry.backoff.requeues() == 0 {
            entry.started = None; // only a failing key keeps its distance
        }
        if let Some(lane) = entry.added_again.take() {
            self.added_again -= 1;
            entry.lane = lane;
            self.rest_or_wait(slot, now);
        } else if let Some(due) = pending {
            let lane = entry.lane;
            self.schedule(slot, lane, due, now);
        }
        self.free_if_idle(slot)
    }

    /// Counts a verdict, and returns when the key is due again.
    fn settle(&mut self, slot: Slot, verdict: Verdict, now: Instant) -> Option<Instant> {
        match verdict {
            Verdict::Done => self.clear_failures(slot),
            Verdict::GiveUp => {
                self.tally.given_up += 1;
                self.clear_failures(slot);
            }
            Verdict::Park => self.entries[slot].backoff.wake(),
            Verdict::After(_) | Verdict::Again(_) if self.is_shutting_down() => {}
            Verdict::After(delay) => {
                self.tally.retries += 1;
                self.clear_failures(slot);
                return Some(after(now, delay));
            }
            Verdict::Again(cause) => {
                self.tally.retries += 1;
                return Some(self.back_off(slot, cause, now));
            }
        }
        None
    }

    /// Returns the next key in turn: see [`BACKGROUND_TURN`].
    fn next_in_turn(&mut self) -> Option<Slot> {
        if self.phase == Phase::Closed {
            return None;
        }
        let live = self.entries.first(Place::Waiting(Priority::Live));
        let background = self.entries.first(Place::Waiting(Priority::Background));
        let (Some(live), Some(background)) = (live, background) else {
            self.live_in_a_row = 0;
            return live.or(background);
        };
        if self.live_in_a_row + 1 == BACKGROUND_TURN {
            self.live_in_a_row = 0;
            Some(background)
        } else {
            self.live_in_a_row += 1;
            Some(live)
        }
    }
}

// === impl State: the life of the queue ===

impl<K> State<K> {
    /// Opens a closed queue.
    pub(crate) fn open(&mut self) {
        if self.phase == Phase::Closed {
            self.phase = Phase::Open;
        }
    }

    /// Ends the queue. Delayed keys are dropped in any case; so are keys behind a closed gate, since no worker was ever
    /// allowed to process them.
    pub(crate) fn shut_down(&mut self, how: Shutdown, now: Instant) {
        self.serve_timers(now);
        for slot in self.timers.take_all() {
            self.free_if_idle(slot);
        }
        if how == Shutdown::Drain && matches!(self.phase, Phase::Open | Phase::Draining) {
            self.phase = Phase::Draining;
            return;
        }
        self.phase = Phase::Stopped;
        for lane in [Priority::Live, Priority::Background] {
            while let Some(slot) = self.entries.first(Place::Waiting(lane)) {
                self.entries.move_to(slot, Place::Idle);
                self.free_if_idle(slot);
            }
        }
        let held: Vec<Slot> = self.entries.slots(Place::Held).collect();
        for slot in held {
            self.entries[slot].added_again = None;
        }
        self.added_again = 0;
    }

    pub(crate) fn is_shutting_down(&self) -> bool {
        matches!(self.phase, Phase::Draining | Phase::Stopped)
    }

    /// Whether no key will ever be handed out again.
    pub(crate) fn is_finished(&self) -> bool {
        match self.phase {
            Phase::Closed | Phase::Open => false,
            Phase::Draining => self.waiting() == 0 && self.added_again == 0,
            Phase::Stopped => true,
        }
    }

    /// Whether a draining shutdown is finished: all keys are released, or a later shutdown dropped them.
    pub(crate) fn is_drained(&self) -> bool {
        match self.phase {
            Phase::Closed | Phase::Open => false,
            Phase::Draining => self.waiting() == 0 && self.entries.count(Place::Held) == 0,
            Phase::Stopped => true,
        }
    }

    /// Returns the number of keys that wait to be handed out at `now`.
    pub(crate) fn len(&mut self, now: Instant) -> usize {
        self.serve_timers(now);
        self.waiting()
    }

    fn waiting(&self) -> usize {
        self.entries.count(Place::Waiting(Priority::Live)) + self.entries.count(Place::Waiting(Priority::Background))
    }

    /// Returns the number of keys that a worker could take now.
    pub(crate) fn on_offer(&self) -> usize {
        if self.phase == Phase::Closed { 0 } else { self.waiting() }
    }

    /// Returns when the next delayed key is due, if a worker could take it then.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        if self.phase == Phase::Closed { None } else { self.timers.earliest() }
    }

    /// Returns the counters and the current state.
    pub(crate) fn stats(&mut self, now: Instant) -> QueueStats {
        self.serve_timers(now);
        let ages = || {
            let started = self.entries.slots(Place::Held).filter_map(|slot| self.entries[slot].started);
            started.map(|started| now.saturating_duration_since(started))
        };
        QueueStats {
            depth: self.waiting() + self.added_again,
            adds: self.tally.adds,
            retries: self.tally.retries,
            given_up: self.tally.given_up,
            waited: self.tally.waited.clone(),
            worked: self.tally.worked.clone(),
            unfinished: ages().sum(),
            longest_running: ages().max().unwrap_or_default(),
        }
    }
}

// === impl State: inner steps ===

impl<K> State<K> {
    /// Returns the slot of a key, which is inserted if it is new.
    fn known(&mut self, spot: Spot, key: impl IntoKey<K>, lane: Priority, now: Instant) -> Slot {
        spot.slot.unwrap_or_else(|| self.entries.insert(key.into_key(), spot.hash, lane, now))
    }

    /// Enqueues every key whose time has come, in the order of those times.
    fn serve_timers(&mut self, now: Instant) {
        while let Some((slot, due)) = self.timers.pop_due(now) {
            let lane = self.entries[slot].lane;
            self.arrive(slot, lane, due);
        }
    }

    /// Handles a reason to process the key that came up at `at`.
    fn arrive(&mut self, slot: Slot, lane: Priority, at: Instant) {
        let delayed = self.timers.contains(slot);
        let entry = &mut self.entries[slot];
        match entry.place() {
            Place::Idle => {
                entry.lane = if delayed { entry.lane.max(lane) } else { lane };
                entry.waits_since = at;
                if self.rest_or_wait(slot, at) {
                    self.tally.adds += 1;
                }
            }
            Place::Waiting(present) if present >= lane => {}
            Place::Waiting(_) => {
                entry.lane = lane;
                self.entries.move_to(slot, Place::Waiting(lane));
            }
            Place::Held => {
                if entry.added_again.is_none() {
                    entry.waits_since = at;
                    self.added_again += 1;
                    self.tally.adds += 1;
                }
                entry.added_again = entry.added_again.max(Some(lane));
            }
        }
    }

    /// Handles an idle key that is to be processed: it backs off first if it has to, else it waits from now on. Returns
    /// whether it waits.
    fn rest_or_wait(&mut self, slot: Slot, now: Instant) -> bool {
        let entry = &self.entries[slot];
        let rested = entry.backoff.not_before(entry.started);
        if let Some(rested) = rested.filter(|&rested| rested > now && !self.is_shutting_down()) {
            self.timers.bring_forward(slot, rested);
            return false;
        }
        let place = Place::Waiting(entry.lane);
        self.timers.cancel(slot);
        self.entries.move_to(slot, place);
        true
    }

    /// Schedules the key for `due`, or sooner if something was pending earlier.
    fn schedule(&mut self, slot: Slot, lane: Priority, due: Instant, now: Instant) {
        if due <= now {
            return self.arrive(slot, lane, now);
        }
        let delayed = self.timers.contains(slot);
        let entry = &mut self.entries[slot];
        entry.lane = match entry.place() {
            Place::Waiting(_) => return,
            Place::Idle if !delayed => lane,
            Place::Idle | Place::Held => entry.lane.max(lane),
        };
        self.timers.bring_forward(slot, due);
    }

    /// Passes a key through the rate limiter, and returns when it is to be retried.
    fn back_off(&mut self, slot: Slot, cause: Cause, now: Instant) -> Instant {
        let entry = &mut self.entries[slot];
        if !entry.backoff.is_early(now) {
            let delay = self.limiter.delay(entry.key(), entry.backoff.requeues(), now);
            entry.backoff.raise(cause, delay, after(now, delay));
        }
        entry.backoff.due(entry.started).unwrap_or(now)
    }

    fn clear_failures(&mut self, slot: Slot) {
        let entry = &mut self.entries[slot];
        if entry.backoff.requeues() > 0 {
            entry.backoff = backoff::Backoff::default();
            self.limiter.forget(entry.key());
        }
    }

    /// Frees a key that has no failures and nothing pending.
    fn free_if_idle(&mut self, slot: Slot) -> Option<K> {
        let entry = &self.entries[slot];
        if entry.place() != Place::Idle || entry.backoff.requeues() > 0 || self.timers.contains(slot) {
            return None;
        }
        let key = self.entries.remove(slot);
        if self.entries.is_oversized() {
            self.entries = Entries::new();
            self.timers = Timers::default();
        }
        key
    }
}

/// Returns the time `delay` from now, however long.
fn after(now: Instant, delay: Duration) -> Instant {
    now + delay.min(LONGEST_DELAY)
}
