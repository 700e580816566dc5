//! Waiting for a key.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use tokio::{
    task::coop,
    time::{Instant, Sleep, sleep_until},
};

use super::{Held, Shared, waiters::Ticket};
use crate::state::Take;

/// The future of [`Queue::next`](super::Queue::next).
#[must_use = "futures do nothing unless awaited"]
pub struct Next<'q, K> {
    shared: &'q Arc<Shared<K>>,
    /// The position among the waiting workers, once this one had to wait.
    ticket: Option<Ticket>,
    /// The timer for the next delayed key, if this worker is responsible for it.
    alarm: Option<Pin<Box<Sleep>>>,
}

impl<'q, K> Next<'q, K> {
    pub(super) fn new(shared: &'q Arc<Shared<K>>) -> Self {
        Self { shared, ticket: None, alarm: None }
    }
}

impl<K: Clone> Future for Next<'_, K> {
    type Output = Option<Held<K>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Held<K>>> {
        // A worker that always finds a key must still let other tasks run, as with tokio's own channels.
        let turn = ready!(coop::poll_proceed(context));
        loop {
            let now = Instant::now();
            let mut inner = self.shared.inner.lock();
            if let Some(ticket) = self.ticket.take() {
                inner.waiters.arrive(&ticket);
            }
            match inner.state.take(now) {
                Take::Item { slot, key, failures } => {
                    self.shared.unlock(inner);
                    turn.made_progress();
                    return Poll::Ready(Some(Held::new(Arc::clone(self.shared), slot, key, failures)));
                }
                Take::Finished => {
                    self.shared.unlock(inner);
                    turn.made_progress();
                    return Poll::Ready(None);
                }
                Take::Nothing => {}
            }
            let next_due = inner.state.next_due();
            let ticket = inner.waiters.sleep(context.waker().clone(), next_due);
            drop(inner);
            let alarm = ticket.alarm;
            self.ticket = Some(ticket);
            match alarm {
                None => self.alarm = None,
                Some(due) => self.set_alarm(due),
            }
            match &mut self.alarm {
                None => return Poll::Pending,
                Some(alarm) => ready!(alarm.as_mut().poll(context)),
            }
        }
    }
}

impl<K> Next<'_, K> {
    fn set_alarm(&mut self, due: Instant) {
        match &mut self.alarm {
            None => self.alarm = Some(Box::pin(sleep_until(due))),
            Some(alarm) => alarm.as_mut().reset(due),
        }
    }
}

impl<K> Drop for Next<'_, K> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            let mut inner = self.shared.inner.lock();
            inner.waiters.arrive(&ticket);
            self.shared.unlock(inner); // wakes another in its stead
        }
    }
}
