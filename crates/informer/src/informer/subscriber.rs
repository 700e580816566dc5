//! One subscriber: its backlog, its task, and its handle.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};
use steersman_base::watch;
use steersman_model::View;
use tokio::sync::Notify;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::delivery::{Backlog, Pending};
use super::{Handler, SharedInformer, SubscribeOptions, SubscriberState};
use crate::change::Change;
use crate::store::Snapshot;

/// The number of objects that are delivered before the backlog is locked again: enough that the lock costs nothing per
/// change, few enough that objects deleted meanwhile are seldom delivered.
const BATCH_MAX: usize = 64;

/// A subscription, which ends when dropped.
#[derive(Debug)]
#[must_use = "a subscription ends when it is dropped; `detach` it to keep it until the informer stops"]
pub struct Subscription {
    end: Option<DropGuard>,
    progress: watch::Receiver<Progress>,
}

/// The other end of a [`Subscription`] to a source that is not known yet.
pub(crate) struct PendingSubscription {
    progress: watch::Sender<Progress>,
    stop: CancellationToken,
}

/// The progress of a subscriber.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Progress {
    Starting,
    Synced,
    Ended,
}

pub(super) struct Subscriber<V> {
    options: SubscribeOptions,
    backlog: Mutex<Backlog<V>>,
    /// `None` once the subscription has ended. Whoever delivers has it locked; [`Backlog`] says who may.
    handler: Mutex<Option<Handler<V>>>,
    news: Notify,
    panics: AtomicU64,
    progress: watch::Sender<Progress>,
    stop: CancellationToken,
}

// === impl Subscription ===

impl Subscription {
    /// Creates a subscription to a source that is not known yet.
    pub(crate) fn pending(stop: &CancellationToken) -> (Self, PendingSubscription) {
        let stop = stop.child_token();
        let (progress, seen) = watch::channel(Progress::Starting);
        (Self { end: Some(stop.clone().drop_guard()), progress: seen }, PendingSubscription { progress, stop })
    }

    /// Whether the handler has processed the initial state.
    #[must_use]
    pub fn has_synced(&self) -> bool {
        *self.progress.borrow() == Progress::Synced
    }

    /// Waits until the handler has processed the initial state, or the subscription has ended.
    pub fn synced(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut progress = self.progress.clone();
        async move {
            // An error means that the task has ended, which is an end too.
            drop(progress.wait_for(|progress| *progress >= Progress::Synced).await);
        }
    }

    /// Lets the subscription continue until the informer stops.
    pub fn detach(mut self) {
        if let Some(end) = self.end.take() {
            end.disarm();
        }
    }

    /// Ends the subscription, and waits until the handler does not run any more.
    pub async fn close(mut self) {
        drop(self.end.take());
        drop(self.progress.wait_for(|progress| *progress == Progress::Ended).await);
    }
}

// === impl PendingSubscription ===

impl PendingSubscription {
    /// Connects the subscription to `actual` from now on, until it ends.
    pub(crate) async fn follow(self, actual: Subscription) {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => {}
            () = actual.synced() => {
                self.progress.send_replace(Progress::Synced);
                self.stop.cancelled().await;
            }
        }
        actual.close().await;
        self.progress.send_replace(Progress::Ended);
    }
}

// === impl Subscriber ===

impl<V: View> Subscriber<V> {
    pub(super) fn new(
        options: SubscribeOptions,
        handler: Handler<V>,
        informer_stop: &CancellationToken,
    ) -> (Arc<Self>, Subscription) {
        let stop = informer_stop.child_token();
        let (progress, seen) = watch::channel(Progress::Starting);
        let subscription = Subscription { end: Some(stop.clone().drop_guard()), progress: seen };
        let subscriber = Self {
            options,
            backlog: Mutex::new(Backlog::new()),
            handler: Mutex::new(Some(handler)),
            news: Notify::new(),
            panics: AtomicU64::new(0),
            progress,
            stop,
        };
        (Arc::new(subscriber), subscription)
    }

    pub(super) fn backlog(&self) -> MutexGuard<'_, Backlog<V>> {
        self.backlog.lock()
    }

    /// Adds a batch to the backlog; for the first list, with the state of the store after it.
    pub(super) fn notify(&self, changes: &[Change<V>], first_list: Option<&Snapshot<V>>) {
        {
            let mut backlog = self.backlog.lock();
            match first_list {
                Some(state) => backlog.add_list(changes, state.clone()),
                None if changes.is_empty() => return,
                None => changes.iter().for_each(|change| backlog.add(change.clone(), false)),
            }
        }
        self.news.notify_one();
    }

    /// Whether this batch is for [`hand_over_now`](Self::hand_over_now), which must follow, instead of the backlog.
    pub(super) fn takes_now(&self, changes: &[Change<V>]) -> bool {
        self.options.quick && (1..=BATCH_MAX).contains(&changes.len()) && self.backlog.lock().bypass()
    }

    /// Delivers a batch to the handler in the task of the informer.
    pub(super) fn hand_over_now(&self, changes: &[Change<V>], informer: &SharedInformer<V>) {
        if let Some(handler) = &mut *self.handler.lock() {
            for change in changes {
                if self.stop.is_cancelled() {
                    break;
                }
                self.call(handler, change, informer);
            }
        }
        if self.backlog.lock().handed_over(0) {
            self.news.notify_one();
        }
    }

    pub(super) async fn ended(&self) {
        // The sender lives as long as `self`, so an error cannot come.
        drop(self.progress.subscribe().wait_for(|progress| *progress == Progress::Ended).await);
    }

    pub(super) fn state(&self) -> SubscriberState {
        let backlog = self.backlog.lock();
        SubscriberState {
            name: self.options.name.clone(),
            pending: backlog.len(),
            synced: backlog.is_synced(),
            panics: self.panics.load(Ordering::Relaxed),
        }
    }

    /// Delivers the backlog to the handler, again and again, until the subscription ends.
    pub(super) async fn run(&self, informer: &SharedInformer<V>) {
        let mut resync = self.options.resync.filter(|period| !period.is_zero()).and_then(|period| {
            // A time beyond the clock's range never comes.
            let first = Instant::now().checked_add(period)?;
            let mut ticks = tokio::time::interval_at(first, period);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            Some(ticks)
        });
        while !self.stop.is_cancelled() {
            if self.deliver(informer) {
                // Handlers may keep this running for long; other tasks need the thread too.
                tokio::task::yield_now().await;
                continue;
            }
            let tick = async {
                match &mut resync {
                    Some(ticks) => ticks.tick().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = self.stop.cancelled() => break,
                _ = tick => informer.resync_one(self),
                () = self.news.notified() => {}
            }
        }
        // Waits for the end of a delivery in the informer's task.
        let handler = self.handler.lock().take();
        drop(handler);
        self.progress.send_replace(Progress::Ended);
    }

    /// Delivers one batch; returns whether there was anything in it.
    fn deliver(&self, informer: &SharedInformer<V>) -> bool {
        let batch = self.backlog.lock().take(BATCH_MAX);
        let initial = batch.initial();
        let is_something = !batch.is_empty();
        if is_something {
            let mut handler = self.handler.lock();
            let Some(handler) = &mut *handler else { return false };
            for change in batch.entries.into_iter().flat_map(Pending::changes) {
                if self.stop.is_cancelled() {
                    return false;
                }
                self.call(handler, &change, informer);
            }
        }
        let is_synced = {
            let mut backlog = self.backlog.lock();
            if is_something {
                backlog.handed_over(initial);
            }
            backlog.is_synced()
        };
        if is_synced && *self.progress.borrow() == Progress::Starting {
            self.progress.send_replace(Progress::Synced);
        }
        is_something
    }

    fn call(&self, handler: &mut Handler<V>, change: &Change<V>, informer: &SharedInformer<V>) {
        if catch_unwind(AssertUnwindSafe(|| handler(change))).is_err() {
            self.panics.fetch_add(1, Ordering::Relaxed);
            informer.panicked();
            tracing::error!(
                resource = %informer.target(),
                subscriber = self.options.name,
                change = ?change,
                "a subscriber panicked; it goes on with the next change"
            );
        }
    }
}
