//! Leader election: of several processes, one works.
//!
//! client-go's algorithm (`tools/leaderelection`, v0.37) on one `Lease`, split into pure decisions and a thin
//! [`Elector`] that sends them.
//!
//! 1. **No process trusts another's clock.** A lease expires when its record has not *changed* for its duration on the
//!    observer's own monotonic clock. The times in the record are for people.
//! 2. **Of two concurrent writes, one wins**: every write has the resourceVersion that was read as a precondition, and
//!    `leaseTransitions` counts.
//! 3. **The deadline counts from before the renewal was sent.** Renewed at t₀, a leader may write until t₀ + renew
//!    deadline, which is less than the lease's duration; every standby starts to count later than t₀. So the leader has
//!    stopped before another process may take over, as long as both clocks run at the same speed.
//! 4. **A deadline needs no task.** [`Leadership::check`] reads the clock, so that it refuses in a process that was
//!    stopped and resumed before any of its tasks has run; and a request's body checks again when its bytes are sent,
//!    so that a write decided before the stop is not sent after it.
//! 5. **Once lost, it stays lost.** An [`Elector`] leads for one term at most; a lost [`Leadership`] never leads again.
//!    A leader that reads another name (or none) in the lease has lost it at once.
//! 6. **A lease is given back only in order**: [`Elector::run`] first ends the leadership, then empties the lease, on
//!    the stop signal, which is given after the workers have finished. After a loss nothing is given back.
//! 7. **The rest of the lease is preserved**: labels, annotations, owners, `strategy`, `preferredHolder` and fields
//!    newer than this program survive every write.
//!
//! Besides polling as client-go does (retry period, jittered), a standby watches the lease, if it may: it learns of a
//! release at once and takes over a dead leader's lease the moment that it expires. Without the right to watch, it
//! polls.
//!
//! # Where this is stricter than client-go
//! - The renew deadline counts from the last renewal that succeeded, not from the first that failed: with the defaults, a
//!   leader gives up after 10 s without a renewal, not after 12.
//! - The time for which the machine was suspended counts (on Linux); Go's monotonic clock stops with the machine.
//! - A lease held by another process is lost at once; client-go keeps trying until the deadline.
//! - A lost lease is not released: workers may still be running.
//! - A duration that is not a whole number of seconds is rounded up in the lease, so that others wait longer, not
//!   shorter.
//! - The classic elector drops `strategy` and `preferredHolder`; here they are preserved. Neither uses them.
//!
//! # What no lease can prevent
//! - A write that is on the wire, or in the server's queue, when the deadline passes. A create may then be executed
//!   after another process has taken over. Writes with a uid or a resourceVersion fail if another write was faster; a
//!   create under a generated name has no such precondition.
//! - A process that is stopped in the microseconds between the last check and the system call that sends the bytes.
//! - Clocks whose speeds differ by more than the ratio of lease duration and renew deadline (15 to 10 s by default).
//! - A suspended machine, where that stops its monotonic clock and no other clock measures the time. On Linux
//!   `CLOCK_BOOTTIME` does, and suspended time counts against the deadline; a virtual machine that is stopped by its
//!   host, or restored from a snapshot, may have both clocks stopped.
//! - A request without a body has no bytes to hold back; for these, the check right before sending is all.

mod decide;
mod elector;
mod guard;
mod leadership;
mod lease_watch;
mod metrics;
mod options;
mod server;
mod suspended;

pub use elector::{Elector, Ended, Transition};
pub use leadership::{Leadership, NotLeader};
pub use metrics::LeaseMetrics;
use options::default_identity;
pub use options::{LeaseOptions, LeaseOptionsError};
