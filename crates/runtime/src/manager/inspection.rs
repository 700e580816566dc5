//! Inspection of a running manager.

use steersman_base::ObjectKey;
use steersman_informer::InformerFactory;
use steersman_informer::RunningInformer;
use steersman_workqueue::Queue;

use super::Manager;
use crate::Controller;

/// A view of a manager's state, also while it runs. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Inspection {
    manager: Manager,
}

// === impl Inspection ===

impl Inspection {
    pub(super) fn of(manager: Manager) -> Self {
        Self { manager }
    }

    /// Whether a key waits, is held or is parked, or a cache is not filled.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        let busy = |queue: &Queue<ObjectKey>| {
            let stats = queue.stats();
            stats.depth > 0 || !stats.unfinished.is_zero()
        };
        let filling = || self.informers().iter().any(|running| !running.informer.synced);
        self.controllers().iter().any(|controller| busy(controller.queue()) || controller.waits_for_caches())
            || !self.manager.0.book.is_empty()
            || filling()
    }

    /// Returns the controllers that were built so far.
    #[must_use]
    pub fn controllers(&self) -> Vec<Controller> {
        self.manager.0.state.lock().controllers.clone()
    }

    /// Returns the state of all informers: typed, of views, of metadata, of kinds chosen at run time.
    #[must_use]
    pub fn informers(&self) -> Vec<RunningInformer> {
        self.factory().running()
    }

    /// Returns the factory of the informers.
    #[must_use]
    pub fn factory(&self) -> &InformerFactory {
        &self.manager.0.informers
    }

    /// Returns the manager.
    #[must_use]
    pub fn manager(&self) -> &Manager {
        &self.manager
    }
}
