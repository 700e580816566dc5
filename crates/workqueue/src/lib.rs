//! A work queue for controllers: which key to reconcile next, and when.
//!
//! A controller is level-driven: an event says only *that* something changed; the controller reads the current state
//! and acts on it. This queue is between the two. Producers (informers, timers, people) [`add`](Queue::add) keys from
//! any thread; workers take the [`next`](Queue::next) key, process it, and release it with a verdict. The semantics
//! follow client-go's `util/workqueue`; the few deliberate differences are listed below.
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
//! queue.add("default/web", Priority::Live); // already waiting: not added twice
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
//! 1. **Fair.** Within a priority, the first key added is the first processed. A delayed key is in the queue from the
//!    time it is due.
//! 2. **Stingy.** A key added many times before it is processed is processed once.
//! 3. **Single holder.** A key is never handed to two workers. Added while it is processed, it is processed again
//!    afterwards.
//! 4. **The earliest time wins.** A key has one pending time. A delayed add never postpones it, and an immediate add
//!    replaces it. The delay of retries comes from a [`RateLimiter`]; the default is the longer of 5 ms … 1000 s per
//!    key and a token bucket for all keys (ten per second, burst 100).
//! 5. **Events do not cut a back-off short.** A new event brings a failing key forward, but no sooner than its back-off
//!    or one second, whichever is less, after its last start. A failure before the deadline of the previous back-off
//!    changes neither deadline nor exponent. Success, or [`forget`](Queue::forget), resets both; [`Held::failures`] and
//!    [`num_requeues`](Queue::num_requeues) return the counts; giving up is the worker's decision.
//! 6. **Orderly shutdown.** After a [`shutdown`](Queue::shutdown) nothing is added; waiting keys are drained or
//!    dropped; workers get `None`. A worker that panics releases its key as failed.
//! 7. **No starvation.** Keys of the initial list and of resyncs ([`Priority::Background`]) run behind live changes;
//!    while both wait, one key in eight is taken from them. [Metrics](PrometheusMetrics) have upstream's names.
//!
//! Nothing grows without bound: the queue keeps one small entry per key that waits, is held, is delayed or has failed,
//! and frees the memory of a burst when it is empty. Everything works under tokio's paused clock.
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
//!   earliest time stands for all: the worker reads the whole state and returns when to reconcile again.
//! * **Early failures do not double the back-off** (guarantee 5). With client-go, events that arrive while a key backs
//!   off can take it to 1000 s within a second (kubernetes/kubernetes issues 132805 and 112325).
//! * **`Drop` discards waiting keys.** client-go's `ShutDown` lets workers process them first; here that is
//!   [`Shutdown::Drain`], which also hands out keys that were added again while held.

mod key;
pub mod limiter;
mod metrics;
mod queue;
mod state;
mod terms;

/// The time that limiters are given: tokio's, so that a paused clock pauses queues too.
pub use tokio::time::Instant;

pub use self::{
    key::IntoKey,
    limiter::{Bucket, Exponential, FastSlow, Fixed, MaxOf, RateLimiter, WithMaxWait, default_controller_limiter},
    metrics::{Histogram, Metrics, NoMetrics, Observe, PrometheusMetrics, QueueStats},
    queue::{Held, Next, Queue, QueueOptions},
    terms::{Gate, Priority, Shutdown},
};
