//! Random operations on a queue and on a reference model, side by side, under a paused clock.
//!
//! The model is the specification written down naively: a map of keys, whole milliseconds, and a search through all of
//! them whenever something has to be found.

use std::{
    collections::BTreeMap,
    pin::Pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

use proptest::prelude::*;
use steersman_workqueue::{Held, Priority, Queue, QueueOptions, Shutdown, limiter::Exponential};

const KEYS: u8 = 6;
const BASE_MS: u64 = 40;
const MAX_MS: u64 = 5_000;

#[derive(Clone, Debug)]
enum Step {
    Add(u8, Priority),
    AddAll(Vec<u8>, Priority),
    AddAfter(u8, u64),
    AddRateLimited(u8),
    Forget(u8),
    Take,
    Release(usize, Verdict),
    Sleep(u64),
    Shutdown(Shutdown),
}

#[derive(Clone, Copy, Debug)]
enum Verdict {
    Done,
    Again,
    After(u64),
    Retry,
    GiveUp,
    Park,
    Drop,
}

// === the model ===

#[derive(Default)]
struct Model {
    now: u64,
    keys: BTreeMap<u8, Key>,
    /// Counts everything that has an order.
    clock: u64,
    live_in_a_row: u32,
    ended: Option<Shutdown>,
    adds: u64,
    retries: u64,
    given_up: u64,
}

#[derive(Clone, Copy, Default)]
struct Key {
    /// Lane, and place in it.
    waiting: Option<(Priority, u64)>,
    held: bool,
    added_again: Option<Priority>,
    /// Time, and place among those of the same time.
    due: Option<(u64, u64)>,
    lane: Option<Priority>,
    requeues: u32,
    failures: u32,
    deadline: Option<u64>,
    rest: u64,
    started: Option<u64>,
}

impl Model {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    fn key(&mut self, key: u8) -> &mut Key {
        self.keys.entry(key).or_default()
    }

    /// Time passes: what is due arrives, one after the other.
    fn advance(&mut self, ms: u64) {
        self.now += ms;
        loop {
            let due = self.keys.iter().filter_map(|(key, it)| it.due.map(|due| (due, *key))).min();
            let Some(((at, _), key)) = due.filter(|((at, _), _)| *at <= self.now) else { break };
            self.key(key).due = None;
            let lane = self.key(key).lane.expect("a delayed key has a lane");
            self.arrive(key, lane, at);
        }
    }

    fn arrive(&mut self, key: u8, lane: Priority, at: u64) {
        let clock = self.tick();
        let it = self.key(key);
        if let Some((present, _)) = it.waiting {
            if lane > present {
                it.lane = Some(lane);
                it.waiting = Some((lane, clock));
            }
        } else if it.held {
            let is_new = it.added_again.is_none();
            it.added_again = it.added_again.max(Some(lane));
            self.adds += u64::from(is_new);
        } else {
            it.lane = if it.due.is_some() { it.lane.max(Some(lane)) } else { Some(lane) };
            if self.rest_or_wait(key, at) {
                self.adds += 1;
            }
        }
    }

    fn rest_or_wait(&mut self, key: u8, at: u64) -> bool {
        let clock = self.tick();
        let ended = self.ended.is_some();
        let it = self.key(key);
        let not_before = it.started.map_or(0, |started| started + it.rest);
        if not_before > at && !ended {
            it.due = Some(
                it.due.map_or((not_before, clock), |due| if due.0 <= not_before { due } else { (not_before, clock) }),
            );
            return false;
        }
        it.due = None;
        it.waiting = it.lane.map(|lane| (lane, clock));
        true
    }

    fn schedule(&mut self, key: u8, lane: Priority, due: u64) {
        if due <= self.now {
            return self.arrive(key, lane, self.now);
        }
        let clock = self.tick();
        let it = self.key(key);
        if it.waiting.is_none() {
            it.lane = if it.due.is_some() || it.held { it.lane.max(Some(lane)) } else { Some(lane) };
            it.due = Some(it.due.filter(|&(earlier, _)| earlier <= due).unwrap_or((due, clock)));
        }
    }

    fn back_off(&mut self, key: u8, failed: bool) -> u64 {
        let now = self.now;
        let it = self.key(key);
        if it.deadline.is_none_or(|deadline| deadline <= now) {
            let delay = (BASE_MS << it.requeues.min(20)).min(MAX_MS);
            it.requeues += 1;
            it.failures += u32::from(failed);
            it.deadline = Some(now + delay);
            it.rest = delay.min(1000);
        }
        it.deadline.max(it.started.map(|started| started + it.rest)).unwrap_or(now)
    }

    fn forget(&mut self, key: u8) {
        let it = self.key(key);
        it.requeues = 0;
        it.failures = 0;
        it.deadline = None;
        it.rest = 0;
        if !it.held {
            it.started = None;
        }
    }

    fn take(&mut self) -> Option<(u8, u32)> {
        let first = |lane| {
            let waiting = self.keys.iter().filter_map(|(key, it)| it.waiting.map(|(lane, at)| (lane, at, *key)));
            waiting.filter(|waiting| waiting.0 == lane).min_by_key(|waiting| waiting.1).map(|waiting| waiting.2)
        };
        let key = match (first(Priority::Live), first(Priority::Background)) {
            (Some(_), Some(background)) if self.live_in_a_row == 7 => {
                self.live_in_a_row = 0;
                background
            }
            (Some(live), Some(_)) => {
                self.live_in_a_row += 1;
                live
            }
            (live, background) => {
                self.live_in_a_row = 0;
                live.or(background)?
            }
        };
        let now = self.now;
        let it = self.key(key);
        it.waiting = None;
        it.held = true;
        it.started = Some(now);
        Some((key, it.failures))
    }

    fn release(&mut self, key: u8, verdict: Verdict) {
        let mut due = None;
        match verdict {
            Verdict::Done => self.forget(key),
            Verdict::GiveUp => {
                self.given_up += 1;
                self.forget(key);
            }
            Verdict::Park => self.key(key).rest = 0,
            _ if self.ended.is_some() => {}
            Verdict::After(ms) => {
                self.retries += 1;
                self.forget(key);
                due = Some(self.now + ms);
            }
            Verdict::Again | Verdict::Retry | Verdict::Drop => {
                self.retries += 1;
                due = Some(self.back_off(key, !matches!(verdict, Verdict::Again)));
            }
        }
        let now = self.now;
        let it = self.key(key);
        it.held = false;
        if it.requeues == 0 {
            it.started = None;
        }
        if let Some(lane) = it.added_again.take() {
            it.lane = Some(lane);
            self.rest_or_wait(key, now);
        } else if let Some(due) = due {
            let lane = it.lane.expect("a held key has a lane");
            self.schedule(key, lane, due);
        }
    }

    fn shut_down(&mut self, how: Shutdown) {
        self.ended = Some(if self.ended == Some(Shutdown::Drop) { Shutdown::Drop } else { how });
        for it in self.keys.values_mut() {
            it.due = None;
            if how == Shutdown::Drop {
                it.waiting = None;
                it.added_again = None;
            }
        }
    }

    fn len(&self) -> usize {
        self.keys.values().filter(|it| it.waiting.is_some()).count()
    }

    fn added_again(&self) -> usize {
        self.keys.values().filter(|it| it.added_again.is_some()).count()
    }

    fn is_finished(&self) -> bool {
        self.ended.is_some() && self.len() + self.added_again() == 0
    }
}

// === both, side by side ===

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn poll(queue: &Queue<u8>) -> Poll<Option<Held<u8>>> {
    Pin::new(&mut queue.next()).poll(&mut Context::from_waker(Waker::noop()))
}

fn release(item: Held<u8>, verdict: Verdict) {
    match verdict {
        Verdict::Done => item.done(),
        Verdict::Again => item.again(),
        Verdict::After(delay) => item.again_after(ms(delay)),
        Verdict::Retry => item.retry(),
        Verdict::GiveUp => item.give_up(),
        Verdict::Park => item.park(),
        Verdict::Drop => drop(item),
    }
}

async fn run(steps: Vec<Step>) -> Result<(), TestCaseError> {
    let limiter = Exponential::new(ms(BASE_MS), ms(MAX_MS));
    let queue = Queue::new("model", QueueOptions::default().limiter(limiter));
    let mut model = Model::default();
    let mut held = Vec::new();
    for step in steps {
        apply(step, &queue, &mut model, &mut held).await?;
        check(&queue, &mut model)?;
    }
    // In the end every key is released, time passes, and both agree on all that is left.
    while !held.is_empty() {
        apply(Step::Release(0, Verdict::Retry), &queue, &mut model, &mut held).await?;
    }
    apply(Step::Sleep(2 * MAX_MS), &queue, &mut model, &mut held).await?;
    for _ in 0..=KEYS {
        apply(Step::Take, &queue, &mut model, &mut held).await?;
    }
    check(&queue, &mut model)
}

async fn apply(
    step: Step,
    queue: &Queue<u8>,
    model: &mut Model,
    held: &mut Vec<Held<u8>>,
) -> Result<(), TestCaseError> {
    match step {
        Step::Add(key, priority) => {
            queue.add(key, priority);
            if model.ended.is_none() {
                model.arrive(key, priority, model.now);
            }
        }
        Step::AddAll(keys, priority) => {
            queue.add_all(&keys, priority);
            if model.ended.is_none() {
                keys.into_iter().for_each(|key| model.arrive(key, priority, model.now));
            }
        }
        Step::AddAfter(key, delay) => {
            queue.add_after(key, ms(delay));
            if model.ended.is_none() {
                model.retries += 1;
                model.schedule(key, Priority::Live, model.now + delay);
            }
        }
        Step::AddRateLimited(key) => {
            let said = queue.add_rate_limited(key);
            if model.ended.is_none() {
                model.retries += 1;
                let due = model.back_off(key, false);
                model.schedule(key, Priority::Live, due);
                let now = model.now;
                let it = model.key(key);
                prop_assert_eq!(said, ms(it.due.map_or(0, |(due, _)| due - now)));
            }
        }
        Step::Forget(key) => {
            queue.forget(&key);
            model.forget(key);
        }
        Step::Take => match (poll(queue), model.take()) {
            (Poll::Ready(Some(item)), want) => {
                prop_assert_eq!(Some((*item.key(), item.failures())), want);
                prop_assert!(held.iter().all(|other| other.key() != item.key()), "a key has one holder");
                held.push(item);
            }
            (Poll::Ready(None), want) => {
                prop_assert_eq!(want, None);
                prop_assert!(model.is_finished());
            }
            (Poll::Pending, want) => {
                prop_assert_eq!(want, None);
                prop_assert!(!model.is_finished());
            }
        },
        Step::Release(which, verdict) if !held.is_empty() => {
            let item = held.remove(which % held.len());
            model.release(*item.key(), verdict);
            release(item, verdict);
        }
        Step::Release(..) => {}
        Step::Sleep(millis) => {
            tokio::time::sleep(ms(millis)).await;
            model.advance(millis);
        }
        Step::Shutdown(how) => {
            // The drain itself would wait; that the queue is notified is enough.
            let _ = Box::pin(queue.shutdown(how)).as_mut().poll(&mut Context::from_waker(Waker::noop()));
            model.shut_down(how);
        }
    }
    Ok(())
}

fn check(queue: &Queue<u8>, model: &mut Model) -> Result<(), TestCaseError> {
    prop_assert_eq!(queue.len(), model.len());
    prop_assert_eq!(queue.is_shutting_down(), model.ended.is_some());
    for key in 0..KEYS {
        prop_assert_eq!(queue.num_requeues(&key), model.key(key).requeues, "requeues of {}", key);
    }
    let stats = queue.stats();
    prop_assert_eq!(stats.depth, model.len() + model.added_again());
    prop_assert_eq!(
        (stats.adds, stats.retries, stats.given_up),
        (model.adds, model.retries, model.given_up),
        "adds, retries, given up"
    );
    Ok(())
}

// === what is tried ===

fn step() -> impl Strategy<Value = Step> {
    let key = || 0..KEYS;
    let priority = || prop_oneof![Just(Priority::Live), Just(Priority::Background)];
    let delay = || prop_oneof![3 => 0_u64..200, 1 => 200_u64..4_000];
    let verdict = prop_oneof![
        3 => Just(Verdict::Done),
        1 => Just(Verdict::Again),
        2 => delay().prop_map(Verdict::After),
        4 => Just(Verdict::Retry),
        1 => Just(Verdict::GiveUp),
        2 => Just(Verdict::Park),
        1 => Just(Verdict::Drop),
    ];
    prop_oneof![
        20 => (key(), priority()).prop_map(|(key, priority)| Step::Add(key, priority)),
        3 => (prop::collection::vec(key(), 0..10), priority()).prop_map(|(keys, priority)| Step::AddAll(keys, priority)),
        10 => (key(), delay()).prop_map(|(key, delay)| Step::AddAfter(key, delay)),
        6 => key().prop_map(Step::AddRateLimited),
        3 => key().prop_map(Step::Forget),
        30 => Just(Step::Take),
        25 => (0..8_usize, verdict).prop_map(|(which, verdict)| Step::Release(which, verdict)),
        15 => delay().prop_map(Step::Sleep),
        1 => prop_oneof![Just(Shutdown::Drain), Just(Shutdown::Drop)].prop_map(Step::Shutdown),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn the_queue_does_what_the_model_says(steps in prop::collection::vec(step(), 1..150)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        // Unconstrained: a poll must not answer "pending" because the task has done much already.
        runtime.expect("a runtime").block_on(tokio::task::unconstrained(run(steps)))?;
    }
}
