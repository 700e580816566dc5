//! A controller that is declared and does not run yet.

use super::Controller;

/// A controller that is declared and does not run yet: the result of a `build` function. It may have several queues,
/// each with its own reconciler ([`and`](Self::and)).
#[must_use = "a controller that is not handed to the manager never runs"]
pub struct Built(Vec<Box<dyn FnOnce() -> Controller + Send>>);

// === impl Built ===

impl Built {
    pub(super) fn new(start: impl FnOnce() -> Controller + Send + 'static) -> Self {
        Self(vec![Box::new(start)])
    }

    /// Joins two controllers.
    pub fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// Adds the controller to its manager: it runs when the manager runs, or at once if that runs already.
    pub fn start(self) -> Vec<Controller> {
        self.0.into_iter().map(|start| start()).collect()
    }
}

impl std::fmt::Debug for Built {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Built").field("queues", &self.0.len()).finish()
    }
}
