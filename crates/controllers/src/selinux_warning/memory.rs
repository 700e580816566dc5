//! What the controller remembers between passes: how pods use volumes, and their conflicts.

use parking_lot::Mutex;
use steersman_base::{Istr, ObjectKey};

use super::conflicts::{Conflict, Used, Volumes};
use super::metrics::Metrics;

/// The use of volumes by pods.
pub(super) struct Memory {
    volumes: Mutex<Volumes>,
    metrics: Metrics,
}

// === impl Memory ===

impl Memory {
    pub(super) fn new(metrics: Metrics) -> Self {
        Self { volumes: Mutex::default(), metrics }
    }

    /// Sets the volumes of a pod. Returns the conflicts to report.
    pub(super) fn set(&self, pod: &ObjectKey, used: Used) -> Vec<Conflict> {
        let mut volumes = self.volumes.lock();
        let changed = volumes.set(pod, used);
        self.metrics.record(&changed);
        changed.new
    }

    /// Returns the pods that use volumes of a driver.
    pub(super) fn pods_of_driver(&self, driver: &Istr) -> Vec<ObjectKey> {
        self.volumes.lock().pods_of_driver(driver)
    }
}
