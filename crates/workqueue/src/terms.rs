//! Pure: the choices that producers and owners of a queue have.

/// The priority of an add.
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

/// The fate of waiting keys when a queue is shut down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shutdown {
    /// Waiting keys are handed out, and the shutdown waits until every key is released.
    Drain,
    /// Waiting keys are discarded, and the shutdown does not wait.
    Drop,
}

/// Whether a new queue hands out keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Gate {
    /// The queue hands out keys immediately.
    #[default]
    Open,
    /// The queue collects keys and hands none out until it is opened.
    Closed,
}
