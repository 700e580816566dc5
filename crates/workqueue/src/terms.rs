//! Pure: the choices that producers and owners of a queue have.

/// How urgent an add is.
///
/// Within a priority the first added is the first processed. While keys of both wait, one in eight is a background
/// one, so that neither starves. A key that waits in the background and is added live moves to the end of the live
/// line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// Nothing is known to have changed: the initial list, a resync.
    Background,
    /// Something changed.
    Live,
}

/// What becomes of the keys that wait when a queue is shut down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shutdown {
    /// They are handed out, and the shutdown waits until every key is released.
    Drain,
    /// They are discarded, and the shutdown does not wait.
    Drop,
}

/// Whether a new queue hands out keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Gate {
    /// It does.
    #[default]
    Open,
    /// It collects keys and hands none out until it is opened: a standby that keeps its queues warm.
    Closed,
}
