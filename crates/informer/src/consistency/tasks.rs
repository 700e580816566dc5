//! The tasks of a book: reads about unknown outcomes, and the timer.

use std::sync::{Arc, Weak};
use std::time::Duration;

use steersman_base::{Istr, ObjectKey, Resource};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until};

use super::{Entries, Shared, Snapshot, call};

/// A failed read is retried after this time, doubling to the maximum.
const ASK_AGAIN_MIN: Duration = Duration::from_millis(200);
const ASK_AGAIN_MAX: Duration = Duration::from_secs(2);
/// Work that is due within this time is done at once.
const TIMER_STEP: Duration = Duration::from_millis(100);

/// Starts reads about the unknown outcomes in a namespace, until none is left.
pub(super) fn ask(book: &Arc<Shared>, resource: &Resource, namespace: &Istr) {
    let weak = Arc::downgrade(book);
    let resource = resource.clone();
    let namespace = namespace.clone();
    book.runtime.spawn(ask_until_known(weak, resource, namespace));
}

async fn ask_until_known(book: Weak<Shared>, resource: Resource, namespace: Istr) {
    let mut again_after = ASK_AGAIN_MIN;
    loop {
        let Some(shared) = book.upgrade() else { return };
        let live_reads = shared.live_reads.clone();
        drop(shared);
        let turn = live_reads.turn().await;
        let Some(shared) = book.upgrade() else { return };
        // Only now: outcomes that are unknown before the request is sent are settled by it.
        let begun = shared.entries.lock().state.read_begins(&resource, &namespace);
        let Some((number, name)) = begun else { return };
        let reading = shared.stores.read(&resource, &ObjectKey { namespace: namespace.clone(), name });
        drop(shared);
        let answer = reading.await;
        drop(turn);
        let Some(shared) = book.upgrade() else { return };
        match answer {
            Ok(snapshot) => {
                again_after = ASK_AGAIN_MIN;
                if !shared.answered(&resource, &namespace, number, snapshot.as_ref()) {
                    return;
                }
            }
            Err(error) => {
                tracing::warn!(%error, "an outcome is unknown, and the server does not report it; asking again");
                drop(shared);
                sleep(again_after).await;
                again_after = (again_after * 2).min(ASK_AGAIN_MAX);
            }
        }
    }
}

/// Sets the timer to this time, or earlier.
pub(super) fn arm(book: &Arc<Shared>, entries: &mut Entries, at: Instant) {
    match entries.timer {
        Some(armed) if armed <= at => {}
        Some(_) => {
            entries.timer = Some(at);
            book.rearm.notify_one();
        }
        None => {
            entries.timer = Some(at);
            book.runtime.spawn(look_at_the_time(Arc::downgrade(book), Arc::clone(&book.rearm)));
        }
    }
}

/// Does the work that is due, until nothing is pending.
async fn look_at_the_time(book: Weak<Shared>, rearm: Arc<Notify>) {
    let mut next = book.upgrade().and_then(|shared| shared.entries.lock().timer);
    while let Some(at) = next {
        let is_rearmed = tokio::select! {
            biased;
            () = rearm.notified() => true,
            () = sleep_until(at) => false,
        };
        let Some(shared) = book.upgrade() else { return };
        next = if is_rearmed { shared.entries.lock().timer } else { shared.deal_with_what_is_due() };
    }
}

// === impl Shared ===

impl Shared {
    /// Applies the result of a read about unknown outcomes. Returns whether another read is needed.
    fn answered(&self, resource: &Resource, namespace: &Istr, number: u64, snapshot: Option<&Snapshot>) -> bool {
        let mut entries = self.entries.lock();
        let Entries { state, tracked, names, .. } = &mut *entries;
        let settled = state.read_ends(resource, namespace, number, snapshot, Instant::now(), tracked);
        for (owner, name) in &settled.found {
            names.found(owner, resource, name);
        }
        drop(entries);
        call(settled.wakes);
        settled.needs_another
    }

    /// Wakes keys whose time has come, and restarts watches that do not show old writes. Returns when to check again;
    /// if never, the timer ends.
    fn deal_with_what_is_due(self: &Arc<Self>) -> Option<Instant> {
        let mut entries = self.entries.lock();
        let Entries { state, tracked, timer, .. } = &mut *entries;
        let now = Instant::now();
        let due = state.due(now);
        let mut wakes = due.wakes;
        let mut stale = Vec::new();
        for (resource, debts) in &due.unmet {
            // A retired informer shows nothing any more, and nothing waits for it.
            tracked.track(self, resource);
            stale.extend(tracked.behind(resource, debts).into_iter().map(|store| (resource.clone(), store)));
            wakes.extend(state.settle_all(resource, tracked));
        }
        let next = state.next_due(now).map(|next| next.max(now + TIMER_STEP));
        *timer = next;
        drop(entries);
        call(wakes);
        for (resource, store) in stale {
            self.stores.restart(&resource, &store);
        }
        next
    }
}
