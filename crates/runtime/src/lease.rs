//! Leader election: of several processes, one works.
//!
//! client-go's algorithm (`tools/leaderelection`, v0.37) on one `Lease`, told apart into decisions ([`decide`](self), pure)
//! and a thin [`Elector`] that sends them.
//!
//! 1. **Nobody trusts another's clock.** A lease is over when its record has not *changed* for its duration on the
//!    observer's own monotonic clock. The times in the record are for people.
//! 2. **Of two who write, one wins**: every write names the resourceVersion that was read, and `leaseTransitions` counts.
//! 3. **The deadline counts from before the renewal was sent.** Renewed at t₀, a leader may write until t₀ + renew deadline,
//!    which is less than the lease's duration; whoever waits starts to count later than t₀. So the leader has stopped
//!    before anybody may take over, as long as both clocks run at the same speed.
//! 4. **A deadline needs nobody to watch it.** [`Leadership::check`] reads the clock, so that it refuses in a process that
//!    was stopped and resumed before any of its tasks has run; and [`Leadership::send`] makes a request's body ask again
//!    when its bytes are pulled, so that what was decided before the stop does not leave after it.
//! 5. **Once lost, it stays lost.** An [`Elector`] leads for one term at most; what was lost is never found again under the
//!    same [`Leadership`]. A leader that reads somebody else's name (or nobody's) in the lease has lost it at once.
//! 6. **A lease is given back only in order**: [`Elector::run`] first ends the leadership, then empties the lease, and does
//!    so on the signal to stop, which is given after the workers are done. After a loss nothing is given back.
//! 7. **Nothing of the lease is lost**: labels, annotations, owners, `strategy`, `preferredHolder` and fields that are newer
//!    than this program survive every write.
//!
//! Besides polling as client-go does (retry period, jittered), a standby watches the lease, if it may: it learns of a release
//! at once and takes over a dead leader's lease the moment that it ends. Without the right to watch, polling remains.
//!
//! # Where this is stricter than client-go
//! - The renew deadline counts from the last renewal that succeeded, not from the first that failed: with the defaults, a
//!   leader gives up after 10 s without a renewal, not after 12.
//! - The time for which the machine was suspended counts (on Linux); Go's monotonic clock stops with the machine.
//! - A lease in other hands is lost at once; client-go goes on asking until the deadline.
//! - A lease that was lost is not released: workers may still be at it.
//! - A duration that is no whole number of seconds is rounded up in the lease, so that others wait longer, not shorter.
//! - The classic elector drops `strategy` and `preferredHolder`; here they are kept. Neither decides by them.
//!
//! # What no lease can exclude
//! - A write that is on the wire, or in the server's queue, when the deadline passes. A create may then be executed after
//!   another process has taken over. Writes with a uid or a resourceVersion fail if somebody was faster; a create under a
//!   generated name has no such guard.
//! - A process that is stopped in the microseconds between the pull of the last bytes and the system call that sends them.
//! - Clocks that run at different speeds, by more than lease duration to renew deadline (15 to 10 s by default).
//! - A machine that is suspended, where that stops its monotonic clock and no other one tells for how long. On Linux
//!   `CLOCK_BOOTTIME` does, and suspended time counts against the deadline; a virtual machine that is stopped by its host, or
//!   restored from a snapshot, may have both clocks stopped.
//! - A request without a body has no bytes to hold back; for these, [`Leadership::check`] right before sending is all.

mod decide;
mod elector;
mod guard;
mod leadership;
mod metrics;
mod options;
mod server;
mod sight;
mod suspended;

pub use elector::{Elector, Ended, Transition};
pub use leadership::{Leadership, NotLeader, RenewalOverdue};
pub use metrics::LeaseMetrics;
pub use options::{LeaseOptions, LeaseOptionsError, default_identity};
