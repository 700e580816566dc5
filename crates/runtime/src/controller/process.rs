//! One pass: a key, from the queue to its verdict.

use std::any::Any;
use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use steersman_base::{Istr, ObjectKey};
use steersman_informer::__internal::consistency::Verdict;
use steersman_workqueue::{Held, Priority};
use tracing::Instrument;

use super::{Engine, MainObject};
use crate::decisions::{Outcome, Pass};
use crate::metrics::Outcome as Counted;
use crate::reconcile::Freshness;
use crate::{Action, Context, Error};

impl Engine {
    pub(super) async fn process(&self, item: Held<ObjectKey>) {
        let main = (self.main)(item.key());
        let Some(freshness) = self.freshness(item.key(), main.as_ref()) else { return item.park() };
        let name = self.controller.name();
        let trigger = self.controller.triggered_by(item.key());
        let pass = self.decisions.begin(name, item.key(), Istr::new(&trigger.to_string()));
        match &main {
            Some(main) => pass.saw("resourceVersion", &main.version),
            None => pass.saw("object", "gone"),
        }
        if freshness == Freshness::ReadLive {
            pass.saw("caches", "behind");
        }
        let context = self.context.of_pass(freshness, self.context.writer.in_pass(&pass));
        let span = tracing::info_span!("reconcile", controller = name, key = %item.key(), id = pass.id());
        let running = self.activity.begin(item.key());
        let outcome = running.run(self.reconcile(&context, item.key()).instrument(span.clone())).await;
        running.end(counted(&outcome));
        let _entered = span.enter();
        let outcome = outcome.map_err(Failed::into_error);
        let reached = !outcome.as_ref().is_err_and(Error::is_unreachable);
        if !reached {
            self.reachability.lost();
        }
        self.controller.note_reached(item.key(), reached);
        self.conclude(item, outcome, &pass);
    }

    /// Returns how far the caches can be trusted; `None` if the key has to wait for them and will be woken.
    fn freshness(&self, key: &ObjectKey, main: Option<&MainObject>) -> Option<Freshness> {
        let Some(MainObject { uid, .. }) = main else { return Some(Freshness::CaughtUp) };
        let queue = self.controller.queue().clone();
        let parked = key.clone();
        match self.book.check(uid, move || queue.add(parked.clone(), Priority::Live)) {
            Verdict::Clear => Some(Freshness::CaughtUp),
            Verdict::LiveRead => Some(Freshness::ReadLive),
            Verdict::Parked => None,
        }
    }

    async fn reconcile(&self, context: &Context, key: &ObjectKey) -> Result<Action, Failed> {
        let reconcile = AssertUnwindSafe(self.reconciler.reconcile(context, key)).catch_unwind();
        let finished = match self.policy.timeout {
            None => reconcile.await,
            Some(time) => match tokio::time::timeout(time, reconcile).await {
                Ok(finished) => finished,
                Err(_) => return Err(Failed::TimedOut(format!("ended, because it took over {time:?}"))),
            },
        };
        match finished {
            Ok(outcome) => outcome.map_err(Failed::Error),
            Err(panic) => Err(Failed::Panic(format!("panicked: {}", panic_text(&*panic)))),
        }
    }

    /// Turns the outcome into a verdict of the queue: the only place that does.
    fn conclude(&self, item: Held<ObjectKey>, outcome: Result<Action, Error>, pass: &Pass) {
        match outcome {
            Ok(action) => {
                pass.end(match action {
                    Action::Done => Outcome::Done,
                    Action::Again => Outcome::Again,
                    Action::After(wait) => Outcome::After(wait),
                });
                match action {
                    Action::Done => item.done(),
                    Action::Again => item.again(),
                    Action::After(wait) => item.again_after(wait),
                }
            }
            Err(error) => {
                pass.end(Outcome::Failed(error.to_string()));
                let exhausted = self.policy.retries_max.is_some_and(|max| item.failures() >= max);
                let throttled = error.throttled().filter(|_| !error.is_terminal());
                if let Some(wait) = throttled {
                    tracing::debug!(%error, ?wait, "the server asks to retry later");
                    item.again_after(wait);
                } else if let Some(wait) = self.policy.set_aside.filter(|_| exhausted && !error.is_terminal()) {
                    tracing::error!(%error, failures = item.failures() + 1, ?wait, "setting aside");
                    item.again_after(wait);
                } else if error.is_terminal() || exhausted {
                    tracing::error!(%error, failures = item.failures() + 1, "giving up until the object changes");
                    item.give_up();
                } else {
                    tracing::warn!(%error, failures = item.failures() + 1, "retrying");
                    item.retry();
                }
            }
        }
    }
}

/// The failure of a reconcile.
enum Failed {
    Error(Error),
    Panic(String),
    TimedOut(String),
}

// === impl Failed ===

impl Failed {
    fn into_error(self) -> Error {
        match self {
            Self::Error(error) => error,
            Self::Panic(text) | Self::TimedOut(text) => Error::message(text),
        }
    }
}

fn counted(outcome: &Result<Action, Failed>) -> Counted {
    match outcome {
        Ok(Action::Done) => Counted::Done,
        Ok(Action::Again) => Counted::Again,
        Ok(Action::After(_)) => Counted::After,
        Err(Failed::Error(error)) if error.is_terminal() => Counted::FailedForGood,
        Err(Failed::Error(_)) => Counted::Failed,
        Err(Failed::Panic(_)) => Counted::Panicked,
        Err(Failed::TimedOut(_)) => Counted::TimedOut,
    }
}

/// Returns the message of a panic.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}
