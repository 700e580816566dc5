//! Pure: the workers that wait for a key, and which of them is woken.
//!
//! 1. While workers wait, one has been woken for every key that is ready: `woken` counts those that have not arrived
//!    yet.
//! 2. While keys are delayed and workers wait, at least one worker has a timer for the earliest.
//! 3. A woken worker that never arrives (cancelled) is replaced.

use std::{collections::VecDeque, task::Waker};

use crate::Instant;

/// The waiting workers.
#[derive(Default)]
pub(super) struct Waiters {
    /// The sleeping workers, in the order they came.
    asleep: VecDeque<(u64, Waker)>,
    /// The number of workers that were woken and have not arrived yet.
    woken: usize,
    /// The time for which a sleeping worker has set its timer.
    alarm: Option<Instant>,
    /// The number of workers that ever waited, which numbers their tickets.
    tickets: u64,
}

/// The position of a worker among the waiting ones.
#[derive(Debug)]
pub(super) struct Ticket {
    number: u64,
    /// The time at which the worker must wake by itself.
    pub(super) alarm: Option<Instant>,
}

impl Waiters {
    /// Puts a worker to sleep, with a timer if no other worker has one.
    pub(super) fn sleep(&mut self, waker: Waker, next_due: Option<Instant>) -> Ticket {
        self.tickets += 1;
        self.asleep.push_back((self.tickets, waker));
        let alarm = next_due.filter(|&due| self.misses(due));
        if alarm.is_some() {
            self.alarm = alarm;
        }
        Ticket { number: self.tickets, alarm }
    }

    /// Called when a worker wakes, or is cancelled.
    pub(super) fn arrive(&mut self, ticket: &Ticket) {
        match self.asleep.iter().position(|(number, _)| *number == ticket.number) {
            Some(asleep) => drop(self.asleep.remove(asleep)),
            None => self.woken -= 1,
        }
        // Two workers may have set timers for the same time. Then one timer is set more than needed.
        if ticket.alarm.is_some() && ticket.alarm == self.alarm {
            self.alarm = None;
        }
    }

    /// Returns the worker to wake for `on_offer` keys, or to set a timer for `next_due`.
    pub(super) fn wake_one(&mut self, on_offer: usize, next_due: Option<Instant>) -> Option<Waker> {
        let alarm_is_missed = || self.woken == 0 && next_due.is_some_and(|due| self.misses(due));
        if on_offer > self.woken || alarm_is_missed() {
            let (_, waker) = self.asleep.pop_front()?;
            self.woken += 1;
            return Some(waker);
        }
        None
    }

    /// Returns all workers, to wake them when the queue has ended.
    pub(super) fn wake_all(&mut self) -> impl Iterator<Item = Waker> + use<> {
        self.woken += self.asleep.len();
        std::mem::take(&mut self.asleep).into_iter().map(|(_, waker)| waker)
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.asleep.is_empty()
    }

    fn misses(&self, due: Instant) -> bool {
        self.alarm.is_none_or(|alarm| due < alarm)
    }
}
