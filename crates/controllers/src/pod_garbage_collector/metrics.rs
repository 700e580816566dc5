//! Deleted pods, under upstream's names.

use prometheus::{IntCounterVec, Opts};
use steersman_runtime::metrics::{Families, FamilyError};

use super::plan::Cause;

/// The number of deleted pods, and of failed deletions.
pub(super) struct Metrics {
    deleted: IntCounterVec,
    failed: IntCounterVec,
}

// === impl Metrics ===

impl Metrics {
    pub(super) fn new(families: &Families) -> Result<Self, FamilyError> {
        let counter = |name: &str, help: &str| {
            let options = Opts::new(format!("pod_gc_collector_{name}"), format!("[ALPHA] {help}"));
            families.counters(options, &["namespace", "reason"])
        };
        Ok(Self {
            deleted: counter(
                "force_delete_pods_total",
                "Number of pods that are being forcefully deleted since the Pod GC Controller started.",
            )?,
            failed: counter(
                "force_delete_pod_errors_total",
                "Number of errors encountered when forcefully deleting the pods since the Pod GC Controller started.",
            )?,
        })
    }

    /// Records an attempted deletion, and whether it failed.
    pub(super) fn count(&self, namespace: &str, cause: Cause, failed: bool) {
        let labels = [namespace, cause.label()];
        self.deleted.with_label_values(&labels).inc();
        if failed {
            self.failed.with_label_values(&labels).inc();
        }
    }
}
