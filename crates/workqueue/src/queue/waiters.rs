//! Pure: the workers that wait for a key, and which of them is woken.
//!
//! 1. There is a worker on its way for every key on offer, as long as workers wait: `woken` counts those on their way.
//! 2. While keys are delayed and workers wait, at least one of them has its alarm set for the earliest.
//! 3. A worker on its way that never arrives (cancelled) is replaced.

use std::{collections::VecDeque, task::Waker};

use crate::Instant;

/// The workers that wait.
#[derive(Default)]
pub(super) struct Waiters {
    /// Asleep, first come first.
    asleep: VecDeque<(u64, Waker)>,
    /// How many were woken and have not come yet.
    woken: usize,
    /// The time for which a sleeping worker has set its alarm.
    alarm: Option<Instant>,
    /// How many workers ever waited; their tickets are numbered with it.
    tickets: u64,
}

/// A worker's place among those who wait.
#[derive(Debug)]
pub(super) struct Ticket {
    number: u64,
    /// When the worker must look again by itself.
    pub(super) alarm: Option<Instant>,
}

impl Waiters {
    /// A worker goes to sleep, and minds the alarm if nobody else does.
    pub(super) fn sleep(&mut self, waker: Waker, next_due: Option<Instant>) -> Ticket {
        self.tickets += 1;
        self.asleep.push_back((self.tickets, waker));
        let alarm = next_due.filter(|&due| self.misses(due));
        if alarm.is_some() {
            self.alarm = alarm;
        }
        Ticket { number: self.tickets, alarm }
    }

    /// A worker comes back, or goes away for good.
    pub(super) fn arrive(&mut self, ticket: &Ticket) {
        match self.asleep.iter().position(|(number, _)| *number == ticket.number) {
            Some(asleep) => drop(self.asleep.remove(asleep)),
            None => self.woken -= 1,
        }
        // Two workers may have set their alarms for the same time. Then it is set once more than needed.
        if ticket.alarm.is_some() && ticket.alarm == self.alarm {
            self.alarm = None;
        }
    }

    /// Whom to wake for `on_offer` keys, and to mind the alarm for `next_due`.
    pub(super) fn wake_one(&mut self, on_offer: usize, next_due: Option<Instant>) -> Option<Waker> {
        let alarm_is_missed = || self.woken == 0 && next_due.is_some_and(|due| self.misses(due));
        if on_offer > self.woken || alarm_is_missed() {
            let (_, waker) = self.asleep.pop_front()?;
            self.woken += 1;
            return Some(waker);
        }
        None
    }

    /// Whom to wake when the queue has ended: all.
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
