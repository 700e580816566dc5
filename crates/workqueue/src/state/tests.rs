//! What can be seen only from inside: that nothing is kept for longer than it is needed.

use std::{hash::BuildHasher, sync::Arc, time::Duration};

use foldhash::fast::FixedState;
use tokio::time::Instant;

use super::*;
use crate::limiter::Fixed;

fn state() -> State<u32> {
    State::new(Gate::Open, Box::new(Fixed(Duration::from_secs(1))))
}

fn spot(state: &State<u32>, key: u32) -> Spot {
    state.find(FixedState::default().hash_one(key), &key)
}

fn add(state: &mut State<u32>, key: u32, now: Instant) {
    state.add(spot(state, key), key, Priority::Live, now);
}

fn take(state: &mut State<u32>, now: Instant) -> Slot {
    match state.take(now) {
        Take::Item { slot, .. } => slot,
        Take::Nothing | Take::Finished => panic!("no key is ready"),
    }
}

#[test]
fn only_keys_with_a_reason_are_kept() {
    let rows = [
        ("done", Verdict::Done, 0),
        ("given up", Verdict::GiveUp, 0),
        ("parked", Verdict::Park, 0),
        ("delayed", Verdict::After(Duration::from_secs(9)), 1),
        ("failed", Verdict::Again(Cause::Failed), 1),
    ];
    for (name, verdict, want) in rows {
        let mut state = state();
        let now = Instant::now();
        add(&mut state, 7, now);
        assert_eq!(state.entries.len(), 1, "waiting");
        let slot = take(&mut state, now);
        assert_eq!(state.entries.len(), 1, "held");
        state.release(slot, verdict, now);
        assert_eq!(state.entries.len(), want, "{name}");
        state.forget(spot(&state, 7));
        assert_eq!(state.entries.len(), want, "{name}, forgotten, still pending");
        state.shut_down(Shutdown::Drain, now);
        assert_eq!(state.entries.len(), 0, "{name}, shut down");
    }
}

fn release(state: &mut State<u32>, verdict: Verdict, now: Instant) {
    let slot = take(state, now);
    state.release(slot, verdict, now);
}

#[test]
fn the_memory_of_a_burst_is_given_back() {
    let mut state = state();
    let now = Instant::now();
    for key in 0..100_000 {
        add(&mut state, key, now);
    }
    let burst = state.entries.capacity();
    for _ in 0..100_000 {
        release(&mut state, Verdict::Done, now);
    }
    assert!(burst >= 100_000 && state.entries.capacity() == 0);
    // Steady work reuses what there is.
    for key in 0..10_000 {
        add(&mut state, key, now);
        release(&mut state, Verdict::Done, now);
    }
    assert!(state.entries.capacity() < 16);
}

#[test]
fn re_timing_a_key_again_and_again_keeps_one_timer() {
    let mut state = state();
    let now = Instant::now();
    for delay in (1..1000).rev() {
        state.add_after(spot(&state, 7), 7, Duration::from_secs(delay), now);
    }
    assert_eq!(state.next_due(), Some(now + Duration::from_secs(1)));
    assert_eq!(state.timers.take_all().len(), 1);
}

#[test]
fn forget_is_called_once_for_each_key_that_the_limiter_has_delayed() {
    #[derive(Clone, Default)]
    struct Recorder(Arc<parking_lot::Mutex<Vec<(&'static str, u32)>>>);
    impl RateLimiter<u32> for Recorder {
        fn delay(&mut self, key: &u32, _requeues: u32, _now: Instant) -> Duration {
            self.0.lock().push(("delay", *key));
            Duration::ZERO
        }

        fn forget(&mut self, key: &u32) {
            self.0.lock().push(("forget", *key));
        }
    }
    let recorder = Recorder::default();
    let mut state = State::new(Gate::Open, Box::new(recorder.clone()));
    let now = Instant::now();
    add(&mut state, 1, now);
    release(&mut state, Verdict::Done, now); // never failed: the limiter does not know it
    add(&mut state, 2, now);
    release(&mut state, Verdict::Again(Cause::Failed), now);
    release(&mut state, Verdict::Again(Cause::Asked), now);
    release(&mut state, Verdict::Done, now);
    assert_eq!(*recorder.0.lock(), [("delay", 2), ("delay", 2), ("forget", 2)]);
}
