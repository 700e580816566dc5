//! Conflicts, under upstream's name.

use std::collections::HashMap;

use parking_lot::Mutex;
use prometheus::{IntGaugeVec, Opts};
use steersman_runtime::metrics::{Families, FamilyError};

use super::conflicts::{Changed, Conflict};

/// The conflicts between pods.
pub(super) struct Metrics {
    conflicts: IntGaugeVec,
    /// The number of volumes that two pods have each conflict about.
    volumes: Mutex<HashMap<Conflict, usize>>,
}

const LABELS: &[&str] =
    &["property", "pod1_namespace", "pod1_name", "pod1_value", "pod2_namespace", "pod2_name", "pod2_value"];

// === impl Metrics ===

impl Metrics {
    pub(super) fn new(families: &Families) -> Result<Self, FamilyError> {
        let options = Opts::new(
            "selinux_warning_controller_selinux_volume_conflict",
            "[ALPHA] Conflict between two Pods using the same volume",
        );
        Ok(Self { conflicts: families.gauges(options, LABELS)?, volumes: Mutex::default() })
    }

    /// Records conflicts that are new, and that are over.
    pub(super) fn record(&self, changed: &Changed) {
        let mut volumes = self.volumes.lock();
        for conflict in &changed.over {
            let count = volumes.get_mut(conflict).map(|count| {
                *count -= 1;
                *count
            });
            if count == Some(0) {
                volumes.remove(conflict);
                // It was set when the conflict began.
                let _ = self.conflicts.remove_label_values(&labels(conflict));
            }
        }
        for conflict in &changed.new {
            *volumes.entry(conflict.clone()).or_default() += 1;
            self.conflicts.with_label_values(&labels(conflict)).set(1);
        }
    }
}

fn labels(conflict: &Conflict) -> [&str; 7] {
    let Conflict { property, pod, value, other, other_value } = conflict;
    [property.name(), &pod.namespace, &pod.name, value, &other.namespace, &other.name, other_value]
}
