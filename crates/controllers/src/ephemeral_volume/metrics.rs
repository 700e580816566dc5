//! Created claims, under upstream's names.

use prometheus::{IntCounter, Opts};
use steersman_runtime::metrics::{Families, FamilyError};

/// The number of requests to create claims, and of failed ones.
pub(super) struct Metrics {
    created: IntCounter,
    failed: IntCounter,
}

// === impl Metrics ===

impl Metrics {
    pub(super) fn new(families: &Families) -> Result<Self, FamilyError> {
        // Upstream has the same help text for both.
        let help = "[ALPHA] Number of PersistentVolumeClaim creation requests";
        let counter = |name: &str| families.counter(Opts::new(name, help).subsystem("ephemeral_volume_controller"));
        Ok(Self { created: counter("create_total")?, failed: counter("create_failures_total")? })
    }

    /// Counts a request, and whether it failed.
    pub(super) fn count(&self, failed: bool) {
        self.created.inc();
        if failed {
            self.failed.inc();
        }
    }
}
