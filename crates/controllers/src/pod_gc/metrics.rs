//! Pure: what is counted.

use prometheus::{IntCounterVec, Opts, Registry};

use super::plan::Cause;

/// How many pods went, and how many would not; under upstream's names.
pub(super) struct Metrics(Option<Families>);

struct Families {
    deleted: IntCounterVec,
    failed: IntCounterVec,
}

// === impl Metrics ===

impl Metrics {
    /// Counts in a registry, if there is one. What is counted there already by another is counted nowhere.
    pub(super) fn new(registry: Option<&Registry>) -> Self {
        Self(registry.and_then(|registry| Families::register(registry).ok()))
    }

    /// A pod was to go; `failed`: and would not.
    pub(super) fn count(&self, namespace: &str, cause: Cause, failed: bool) {
        let Some(families) = &self.0 else { return };
        let labels = [namespace, cause.label()];
        families.deleted.with_label_values(&labels).inc();
        if failed {
            families.failed.with_label_values(&labels).inc();
        }
    }
}

// === impl Families ===

impl Families {
    fn register(registry: &Registry) -> prometheus::Result<Self> {
        let counter = |name: &str, help: &str| {
            let options = Opts::new(format!("pod_gc_collector_{name}"), format!("[ALPHA] {help}"));
            IntCounterVec::new(options, &["namespace", "reason"])
        };
        let deleted = counter(
            "force_delete_pods_total",
            "Number of pods that are being forcefully deleted since the Pod GC Controller started.",
        )?;
        let failed = counter(
            "force_delete_pod_errors_total",
            "Number of errors encountered when forcefully deleting the pods since the Pod GC Controller started.",
        )?;
        registry.register(Box::new(deleted.clone()))?;
        registry.register(Box::new(failed.clone()))?;
        Ok(Self { deleted, failed })
    }
}
