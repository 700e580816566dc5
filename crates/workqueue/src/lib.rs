//! A work queue for controllers: which key to look at next, and when.
//!
//! A controller is level-driven: it is told *that* something changed, looks at the world as it is now, and acts. Between
//! the two stands this queue. Producers (informers, timers, people) [`add`](Queue::add) keys from any thread; workers
//! take the [`next`](Queue::next) one, process it, and release it with a verdict. Semantics follow client-go's
//! `util/workqueue`; the few deliberate differences are listed below.
//!
//! ```
//! use std::time::Duration;
//! use steersman_workqueue::{Priority, Queue, QueueOptions, Shutdown};
//!
//! enum Action { Done, Again, After(Duration) }
//!
//! async fn reconcile(key: &str) -> Result<Action, String> {
//!     if key == "default/broken" { Err("no such luck".to_owned()) } else { Ok(Action::Done) }
//! }
//!
//! async fn work(queue: Queue<&'static str>) {
//!     while let Some(item) = queue.next().await {
//!         match reconcile(item.key()).await {
//!             Ok(Action::Done) => item.done(),
//!             Ok(Action::Again) => item.again(),
//!             Ok(Action::After(delay)) => item.again_after(delay),
//!             Err(_) if item.failures() < 5 => item.retry(),
//!             Err(error) => {
//!                 eprintln!("giving up on {}: {error}", item.key());
//!                 item.give_up();
//!             }
//!         }
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), tokio::task::JoinError> {
//! let queue = Queue::new("example", QueueOptions::default());
//! let worker = tokio::spawn(work(queue.clone()));
//!
//! queue.add("default/web", Priority::Live);
//! queue.add("default/web", Priority::Live); // it waits already
//! queue.add("default/broken", Priority::Live);
//! tokio::time::sleep(Duration::from_millis(500)).await;
//!
//! queue.shutdown(Shutdown::Drain).await;
//! worker.await?;
//! assert_eq!(queue.stats().given_up, 1);
//! # Ok(())
//! # }
//! ```
//!
//! # Guarantees
//!
//! Each has a test of its name.
//!
//! 1. **Fair.** Within a priority, the first key added is the first processed. A delayed key stands in line from the
//!    time it is due.
//! 2. **Stingy.** A key added many times before it is processed is processed once.
//! 3. **Single holder.** A key is never handed to two workers. Added while it is processed, it is processed again
//!    afterwards.
//! 4. **The earliest time wins.** A key has one pending time. A delayed add never postpones it, and an immediate add
//!    takes its place. How long retries wait is up to a [`RateLimiter`]; the default is the larger of 5 ms … 1000 s
//!    per key and a bucket of ten a second, burst 100, for all.
//! 5. **Back-off that events cannot spoil.** A new event brings a failing key forward, no sooner than its back-off or
//!    one second, whichever is less, after its last start. A failure before the deadline of the previous back-off
//!    leaves deadline and exponent alone. Success, or [`forget`](Queue::forget), resets; [`Held::failures`] and
//!    [`num_requeues`](Queue::num_requeues) tell; giving up is the worker's decision.
//! 6. **An orderly end.** After a [`shutdown`](Queue::shutdown) nothing is added; what waits is drained or dropped;
//!    workers get `None`. A worker that panics releases its key as failed.
//! 7. **Neither starves.** Keys of the initial list and of resyncs ([`Priority::Background`]) run behind live changes;
//!    while both wait, one hand-out in eight is theirs. [Metrics](PrometheusMetrics) have upstream's names.
//!
//! Nothing grows without bound: the queue keeps one small entry per key that waits, is held, is delayed or has failed,
//! and gives the memory of a burst back when it is empty. Everything works under tokio's paused clock.
//!
//! # Coming from client-go
//!
//! | client-go | here |
//! |---|---|
//! | `Get`, `Done` | [`next`](Queue::next), and a verdict on the [`Held`] key, which cannot be forgotten |
//! | `Forget` + `Done` | [`done`](Held::done) |
//! | `AddRateLimited` + `Done` | [`retry`](Held::retry), or [`again`](Held::again) if it did not fail |
//! | `Forget` + `AddAfter` + `Done` | [`again_after`](Held::again_after) |
//! | `Done` alone | [`park`](Held::park) |
//! | `ShutDownWithDrain`, `ShutDown` | [`shutdown`](Queue::shutdown) with [`Shutdown::Drain`], [`Shutdown::Drop`] |
//!
//! What differs, and why:
//!
//! * **A delayed add does not come on top of an immediate one.** client-go keeps them apart, so the key is processed
//!   now and once more when the delay is over. Here, as in controller-runtime's priority queue and in kube-rs, the
//!   earliest time stands for all: the worker looks at the whole state and says itself when to look again.
//! * **Early failures do not double the back-off** (guarantee 5). With client-go, events that arrive while a key backs
//!   off can take it to 1000 s within a second (kubernetes/kubernetes issues 132805 and 112325).
//! * **`Drop` discards what waits.** client-go's `ShutDown` lets workers finish the line first; here that is
//!   [`Shutdown::Drain`], which also hands out keys that were added again while held.

mod key;
pub mod limiter;
mod metrics;
mod queue;
mod state;
mod terms;

/// The time, as limiters are told it: tokio's, so that a paused clock pauses queues too.
pub use tokio::time::Instant;

pub use self::{
    key::IntoKey,
    limiter::{RateLimiter, default_controller_limiter},
    metrics::{Histogram, Metrics, NoMetrics, Observe, PrometheusMetrics, QueueStats},
    queue::{Held, Next, Queue, QueueOptions},
    terms::{Gate, Priority, Shutdown},
};
